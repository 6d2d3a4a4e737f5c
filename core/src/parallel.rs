//! One job on several threads.
//!
//! The calling thread always works, too, and it is the one that looks at the task while it waits for the others: it may
//! be the only one that can see that the task has to stop. Threads live for one call, so that nothing has to be made again
//! after `fork`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::{Task, memory};

/// Bytes of memory that a thread needs beside its stack, generously.
const FOR_ITSELF: usize = 4 << 20;

/// How long the caller waits between two looks at the task.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Calls `work` on the calling thread and on up to `threads - 1` others, and returns what each call made; the caller's
/// first.
///
/// The calls have to divide the work among themselves, and to end soon once the task is told to stop. Where no more threads
/// can be had, those that there are do all of it. A panic of one call goes on in the caller when all have ended.
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
            // A thread that finds no memory when it begins would end the process.
            memory::with_room::<u8>(FOR_ITSELF).ok()?;
            others.running.fetch_add(1, Ordering::Relaxed);
            let started = thread::Builder::new().spawn_scoped(scope, help);
            if started.is_err() {
                drop(Gone(&others));
            }
            started.ok()
        };
        // From the first thread that cannot be had on, there is no use in asking.
        let started: Vec<_> = (1..threads).map_while(start).collect();
        let mut made = vec![work()];
        others.wait(task);
        for helper in started {
            made.push(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    })
}

/// How many helpers are still at work, and who waits for them.
struct Others {
    running: AtomicUsize,
    caller: Thread,
}

impl Others {
    fn wait(&self, task: &Task<'_>) {
        while self.running.load(Ordering::Acquire) > 0 {
            thread::park_timeout(LOOK_EVERY);
            let _ = task.check(); // stops the task for the helpers, too
        }
    }
}

/// Tells the caller that a helper is gone, even if it panicked.
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
        let poll = || waits.load(Ordering::Relaxed) && thread::current().id() == caller;
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
