//! One job on several threads.
//!
//! The calling thread works as well. While it waits for the other threads, it checks the task every 5 ms,
//! because it may be the only thread that can find out that the task must stop (see [`Task::with_poll`]).
//! Threads live for one call, so nothing has to be made again after `fork`. How the job is divided is up to
//! the callers: they hand out items or ranges through an atomic counter, so that a thread that finishes early
//! takes more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::{Task, memory};

/// Bytes of memory that a thread needs besides its stack, estimated generously.
const FOR_ITSELF: usize = 4 << 20;

/// How long the caller waits between two checks of the task.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Calls `work` on the calling thread and on up to `threads - 1` others, and returns the results, the
/// caller's first.
///
/// The calls must divide the work among themselves and return soon after the task is stopped. If the system
/// refuses further threads, the existing ones do all of the work. If a call panics, the panic is resumed on
/// the calling thread after all calls have ended.
pub(crate) fn on_threads<T: Send>(threads: usize, task: &Task<'_>, work: impl Fn() -> T + Sync) -> Vec<T> {
    if threads <= 1 {
        return vec![work()];
    }
    let others = Others { running: AtomicUsize::new(0), caller: thread::current() };
    thread::scope(|scope| {
        let help = || {
            let _gone = Gone(&others);
            work()
        };
        let start = |_| {
            // A thread that fails to allocate while it starts ends the process. So check for the memory
            // first.
            memory::with_capacity::<u8>(FOR_ITSELF).ok()?;
            others.running.fetch_add(1, Ordering::Relaxed);
            let started = thread::Builder::new().spawn_scoped(scope, help);
            if started.is_err() {
                drop(Gone(&others));
            }
            started.ok()
        };
        // After the first failure, further attempts are useless.
        let started: Vec<_> = (1..threads).map_while(start).collect();
        let mut made = vec![work()];
        others.wait(task);
        for helper in started {
            made.push(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    })
}

/// How many helper threads still work, and the thread that waits for them.
struct Others {
    running: AtomicUsize,
    caller: Thread,
}

impl Others {
    fn wait(&self, task: &Task<'_>) {
        while self.running.load(Ordering::Acquire) > 0 {
            thread::park_timeout(LOOK_EVERY);
            let _ = task.check(); // if the poll says stop, this stops the helpers as well
        }
    }
}

/// Tells the caller that a helper thread has ended, even by a panic.
struct Gone<'a>(&'a Others);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Release);
        self.0.caller.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_caller_that_waits_for_a_helper_still_looks_at_the_task() {
        let caller = thread::current().id();
        let waits = AtomicBool::new(false);
        let poll = |_| waits.load(Ordering::Relaxed) && thread::current().id() == caller;
        let task = Task::with_poll(&poll);
        let both = Barrier::new(2);
        let results = on_threads(2, &task, || {
            both.wait();
            waits.store(true, Ordering::Relaxed);
            while thread::current().id() != caller {
                task.check()?;
                thread::yield_now();
            }
            Ok::<_, crate::Stopped>(())
        });
        assert_eq!(results, [Ok(()), Err(crate::Stopped)]);
    }

    #[test]
    fn every_thread_works_once() {
        let calls = AtomicUsize::new(0);
        let made = on_threads(4, &Task::new(), || calls.fetch_add(1, Ordering::Relaxed));
        assert_eq!((made.len(), calls.into_inner()), (4, 4));
    }

    #[test]
    fn a_panic_of_a_helper_reaches_the_caller() {
        let caller = thread::current().id();
        let panicked = std::panic::catch_unwind(|| {
            on_threads(2, &Task::new(), || assert_eq!(thread::current().id(), caller))
        });
        assert!(panicked.is_err());
    }
}
