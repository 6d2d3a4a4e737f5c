//! Shows the progress of long work in the terminal.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use offlock_core::Task;

const PATIENCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(100);

/// Runs `work`. If that takes long and standard error is a terminal, shows there the share of `total` that
/// the task has done or, if `total` is unknown, the time taken so far.
pub(crate) fn during<T>(what: &str, total: Option<u64>, work: impl FnOnce(&Task<'_>) -> T) -> T {
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

fn show(what: &str, total: Option<u64>, task: &Task<'_>, is_done: &mpsc::Receiver<()>) {
    let (began, mut wait) = (Instant::now(), PATIENCE);
    while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        eprint!("\r{what}: {}", so_far(task.done(), total, began.elapsed()));
        let _ = std::io::stderr().flush();
        wait = STEP;
    }
    if wait == STEP {
        eprint!("\r\x1b[K");
    }
}

fn so_far(done: u64, total: Option<u64>, time: Duration) -> String {
    match total {
        Some(total) => format!("{}%", (done.saturating_mul(100) / total.max(1)).min(100)),
        None => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_shown_where_the_whole_is_known() {
        let time = Duration::from_millis(1_540);
        assert_eq!(so_far(0, Some(0), time), "0%");
        assert_eq!(so_far(1, Some(3), time), "33%");
        assert_eq!(so_far(u64::MAX, Some(3), time), "100%");
        assert_eq!(so_far(1, None, time), "1.5 s");
    }
}
