//! Many texts at once, on several threads.

use super::{Encoding, Error, Specials, TokenId};
use crate::Task;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

impl Encoding {
    /// The tokens of each text, as [`encode`](Self::encode) gives them, computed on up to `threads` threads.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary), the first in the order of the texts.
    pub fn encode_batch(
        &self,
        texts: &[&str],
        allowed: Specials<'_>,
        threads: usize,
        task: &Task<'_>,
    ) -> Result<Vec<Vec<TokenId>>, Error> {
        map(texts, threads, task, |text| self.encode(text, allowed, task))
    }

    /// The number of tokens of each text, computed on up to `threads` threads.
    ///
    /// # Errors
    ///
    /// As [`encode_batch`](Self::encode_batch).
    pub fn count_batch(
        &self,
        texts: &[&str],
        allowed: Specials<'_>,
        threads: usize,
        task: &Task<'_>,
    ) -> Result<Vec<usize>, Error> {
        map(texts, threads, task, |text| self.count(text, allowed, task))
    }
}

/// Applies `f` to all texts. Threads take the next text when they are done with one, so that none waits for long.
fn map<T: Send>(
    texts: &[&str],
    threads: usize,
    task: &Task<'_>,
    f: impl Fn(&str) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < texts.len());
        let taken = std::iter::from_fn(take);
        taken.map(|index| (index, f(texts[index]))).collect::<Vec<_>>()
    };
    let helpers = threads.min(texts.len()).saturating_sub(1);
    let helping = Helping { running: AtomicUsize::new(helpers), caller: thread::current() };
    let mut done = thread::scope(|scope| {
        let help = || {
            let _gone = Gone(&helping);
            work()
        };
        // Where no more threads can be had, those that there are do all the work.
        let start = |_| match thread::Builder::new().spawn_scoped(scope, help) {
            Ok(started) => Some(started),
            Err(_) => {
                drop(Gone(&helping));
                None
            }
        };
        let started: Vec<_> = (0..helpers).filter_map(start).collect();
        let mut done = work();
        helping.wait(task);
        for helper in started {
            done.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// How many helpers are still at work, and who waits for them.
struct Helping {
    running: AtomicUsize,
    caller: Thread,
}

impl Helping {
    /// Waits for the helpers. The caller goes on looking at the task: it may be the only thread that can see
    /// that the task has to stop.
    fn wait(&self, task: &Task<'_>) {
        while self.running.load(Ordering::Acquire) > 0 {
            thread::park_timeout(Duration::from_millis(5));
            let _ = task.check(); // stops the task for the helpers, too
        }
    }
}

/// Tells the caller that a helper is gone, even if it panicked.
struct Gone<'a>(&'a Helping);

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
        let result = map(&["a", "b"], 2, &task, |_| {
            both.wait();
            waits.store(true, Ordering::Relaxed);
            while thread::current().id() != caller {
                task.check()?;
                thread::yield_now();
            }
            Ok(())
        });
        assert_eq!(result, Err(crate::Stopped.into()));
    }
}
