//! One run of an operation: its stop flag and its progress.
//!
//! ```
//! use offlock_core::{Stopped, Task};
//!
//! let task = Task::new();
//! task.advance(100);
//! assert_eq!((task.check(), task.done()), (Ok(()), 100));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| task.stop());
//! });
//! assert_eq!(task.check(), Err(Stopped));
//! ```

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The task was stopped before it finished.
///
/// The partial result is dropped; the front end raises the interpreter's own interrupt instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operation was interrupted")
    }
}

impl std::error::Error for Stopped {}

/// Tells whether the task should stop, given the number of units done so far; see [`Task::with_poll`].
pub type Poll<'a> = &'a (dyn Fn(u64) -> bool + Sync);

/// Stop flag and progress of one run of an operation.
///
/// Operations call [`check`](Task::check) at least once per millisecond of work. Any thread with a reference,
/// and a signal handler, may call [`stop`](Task::stop).
#[derive(Default)]
pub struct Task<'a> {
    stop: AtomicBool,
    done: AtomicU64,
    poll: Option<Poll<'a>>,
}

impl<'a> Task<'a> {
    /// A task that runs until [`stop`](Task::stop) is called.
    pub const fn new() -> Self {
        Self { stop: AtomicBool::new(false), done: AtomicU64::new(0), poll: None }
    }

    /// A task that also calls `poll` at each check and stops when it returns true.
    ///
    /// For interpreters that cannot set the flag from outside: CPython runs signal handlers only on the main
    /// thread, so that thread has to look for signals itself. `poll` should limit by itself how often it does
    /// expensive work.
    pub const fn with_poll(poll: Poll<'a>) -> Self {
        Self { stop: AtomicBool::new(false), done: AtomicU64::new(0), poll: Some(poll) }
    }

    /// Makes the next check fail.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns an error once the task is stopped.
    ///
    /// # Errors
    ///
    /// [`Stopped`] after [`stop`](Self::stop), or after `poll` has returned true.
    #[inline]
    pub fn check(&self) -> Result<(), Stopped> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        match self.poll {
            Some(poll) if poll(self.done()) => {
                self.stop();
                Err(Stopped)
            }
            _ => Ok(()),
        }
    }

    /// Records that `n` more units (bytes of input, unless the operation says otherwise) are done.
    #[inline]
    pub fn advance(&self, n: u64) {
        self.done.fetch_add(n, Ordering::Relaxed);
    }

    /// The number of units done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// Limits how often an operation with many short steps checks its task.
pub(crate) struct Stretches<'a> {
    task: &'a Task<'a>,
    length: usize,
    checked: usize,
}

impl<'a> Stretches<'a> {
    /// Checks once per `length` units of work (bytes of input).
    pub(crate) const fn new(task: &'a Task<'a>, length: usize) -> Self {
        Self { task, length, checked: 0 }
    }

    /// Checks once per 4096 small steps, such as entering an item into a table.
    pub(crate) const fn of_items(task: &'a Task<'a>) -> Self {
        Self::new(task, 4096)
    }

    /// [`Task::check`], if at least `length` units were done since the last check.
    #[inline]
    pub(crate) fn check(&mut self, at: usize) -> Result<(), Stopped> {
        if at - self.checked < self.length {
            return Ok(());
        }
        self.checked = at;
        self.task.check()
    }
}

impl fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("stopped", &self.stop).field("done", &self.done).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_task_runs() {
        assert_eq!(Task::new().check(), Ok(()));
    }

    #[test]
    fn stopping_from_another_thread_is_seen() {
        let task = Task::new();
        std::thread::scope(|scope| {
            scope.spawn(|| task.stop());
        });
        assert_eq!(task.check(), Err(Stopped));
    }

    #[test]
    fn a_poll_that_says_stop_stops_for_good() {
        let asked = AtomicU64::new(0);
        let poll = |_| asked.fetch_add(1, Ordering::Relaxed) == 1;
        let task = Task::with_poll(&poll);
        assert_eq!(task.check(), Ok(()));
        assert_eq!(task.check(), Err(Stopped));
        assert_eq!(task.check(), Err(Stopped));
        assert_eq!(asked.load(Ordering::Relaxed), 2, "not asked again once stopped");
    }

    #[test]
    fn stretches_are_checked_once_each() {
        let asked = AtomicU64::new(0);
        let poll = |_| asked.fetch_add(1, Ordering::Relaxed) == 2;
        let task = Task::with_poll(&poll);
        let mut stretches = Stretches::new(&task, 10);
        let checks: Vec<_> = (0..40).map(|at| stretches.check(at)).collect();
        assert_eq!(checks.iter().position(Result::is_err), Some(30));
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn progress_adds_up() {
        let task = Task::new();
        task.advance(3);
        task.advance(4);
        assert_eq!(task.done(), 7);
    }
}
