//! Tells a waiting user how far long work has come.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use offlock_core::Task;

const PATIENCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(100);

/// Does `work` and, when that takes long and standard error is a terminal, shows there which share of
/// `total` the task has done.
pub(crate) fn during<T>(what: &str, total: u64, work: impl FnOnce(&Task<'_>) -> T) -> T {
    let task = Task::new();
    if !std::io::stderr().is_terminal() {
        return work(&task);
    }
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let task = &task;
        scope.spawn(move || show(what, total, task, &is_done));
        let result = work(task);
        drop(done);
        result
    })
}

fn show(what: &str, total: u64, task: &Task<'_>, is_done: &mpsc::Receiver<()>) {
    let mut wait = PATIENCE;
    while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let percent = task.done().saturating_mul(100) / total.max(1);
        eprint!("\r{what}: {percent}%");
        let _ = std::io::stderr().flush();
        wait = STEP;
    }
    if wait == STEP {
        eprint!("\r\x1b[K");
    }
}
