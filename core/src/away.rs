//! A job on a thread of its own, which its caller need not wait for.
//!
//! Some calls of C libraries take long and cannot be interrupted. Such a job owns everything that it uses, so that a
//! caller who is interrupted leaves it: it ends by itself, and what it made is dropped or collected later.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::{Stopped, Task, memory};

/// How long the caller waits between two checks of the task.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Bytes of memory that a thread needs, its stack included, estimated generously.
const FOR_ITSELF: usize = 4 << 20;

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoResult {
    /// The task was stopped; the job goes on.
    Stopped,
    /// The job's thread is gone: it panicked, or this is the child of a fork.
    Lost,
}

impl From<Stopped> for NoResult {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// A job that has been started.
#[derive(Debug)]
pub(crate) struct Away<T> {
    result: Receiver<T>,
    /// The process in which the thread runs: the child of a fork has no copy of it.
    process: u32,
}

impl<T: Send + 'static> Away<T> {
    /// Starts `job`. Runs it here and now if the system refuses a thread.
    pub(crate) fn start(job: impl FnOnce() -> T + Send + 'static) -> Self {
        let (sender, result) = sync_channel(1);
        // In a cell both threads can reach, so that it is not lost with a thread that does not start.
        let mut job = Some(move || {
            // The caller may have gone.
            let _ = sender.send(job());
        });
        // A thread that fails to allocate while it starts ends the process. So check for the memory first.
        if memory::with_capacity::<u8>(FOR_ITSELF).is_ok() {
            let (hand_over, take) = sync_channel(1);
            let started = thread::Builder::new().spawn(move || {
                if let Ok(job) = take.recv() {
                    let job: Box<dyn FnOnce() + Send> = job;
                    job();
                }
            });
            if started.is_ok()
                && let Some(job) = job.take()
            {
                let _ = hand_over.send(Box::new(job) as Box<dyn FnOnce() + Send>);
            }
        }
        if let Some(job) = job {
            job();
        }
        Self { result, process: std::process::id() }
    }

    /// Waits for the result. If the task is stopped, the job goes on, and this can be called again.
    pub(crate) fn wait(&self, task: &Task<'_>) -> Result<T, NoResult> {
        loop {
            // First without waiting: a job that is done counts even if the task is stopped.
            match self.result.recv_timeout(Duration::ZERO) {
                Ok(made) => return Ok(made),
                Err(RecvTimeoutError::Disconnected) => return Err(NoResult::Lost),
                Err(RecvTimeoutError::Timeout) if self.process != std::process::id() => {
                    return Err(NoResult::Lost);
                }
                Err(RecvTimeoutError::Timeout) => task.check()?,
            }
            match self.result.recv_timeout(LOOK_EVERY) {
                Ok(made) => return Ok(made),
                Err(RecvTimeoutError::Disconnected) => return Err(NoResult::Lost),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_done() {
        assert_eq!(Away::start(|| 7).wait(&Task::new()), Ok(7));
    }

    #[test]
    fn a_caller_that_is_stopped_can_come_back() {
        let (go, wait) = sync_channel::<()>(1);
        let away = Away::start(move || {
            wait.recv().unwrap();
            7
        });
        let task = Task::new();
        task.stop();
        assert_eq!(away.wait(&task), Err(NoResult::Stopped));
        go.send(()).unwrap();
        assert_eq!(away.wait(&Task::new()), Ok(7));
    }

    #[test]
    fn a_panic_loses_the_result() {
        let away: Away<u8> = Away::start(|| std::panic::resume_unwind(Box::new("gone")));
        assert_eq!(away.wait(&Task::new()), Err(NoResult::Lost));
    }
}
