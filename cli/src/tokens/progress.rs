//! Shows how far a run over shards has come, and ends it when the user interrupts.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use offlock_core::Task;
use signal_hook::consts::{SIGINT, SIGTERM};

/// The time between two refreshes in a terminal, and between two lines elsewhere.
const REFRESH: Duration = Duration::from_millis(200);
const LINES: Duration = Duration::from_secs(30);

/// Runs `work` and shows how much of the `total` bytes it has read. SIGINT and SIGTERM stop the task. Also returns which of
/// them did, 0 if neither.
pub(super) fn during<T>(total: u64, work: impl FnOnce(&Task<'_>) -> T) -> (T, usize) {
    let signalled = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        // Without a handler the signal ends the process, which loses no finished shard either.
        let _ = signal_hook::flag::register_usize(signal, Arc::clone(&signalled), signal as usize);
    }
    let poll = |_| signalled.load(Ordering::Relaxed) != 0;
    let task = Task::with_poll(&poll);
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| show(total, &task, is_done));
        let result = work(&task);
        drop(done);
        (result, signalled.load(Ordering::Relaxed))
    })
}

fn show(total: u64, task: &Task<'_>, is_done: mpsc::Receiver<()>) {
    let is_terminal = std::io::stderr().is_terminal();
    let (began, wait) = (Instant::now(), if is_terminal { REFRESH } else { LINES });
    let mut shown = false;
    while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let line = line(task.done(), total, began.elapsed());
        if is_terminal {
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
            shown = true;
        } else {
            eprintln!("offlock: {line}");
        }
    }
    if shown {
        eprint!("\r\x1b[K");
    }
}

fn line(done: u64, total: u64, time: Duration) -> String {
    const WIDTH: u64 = 20;
    let done = done.min(total);
    let share = done as f64 / total.max(1) as f64;
    let full = (share * WIDTH as f64) as usize;
    let bar: String = (0..WIDTH as usize).map(|at| if at < full { '█' } else { '░' }).collect();
    let rate = done as f64 / time.as_secs_f64().max(1e-9);
    let left = (total - done) as f64 / rate.max(1.0);
    format!("{bar} {:3.0}%  {:.1} MB/s read  {} left", share * 100.0, rate / 1e6, duration(left))
}

/// Seconds for people: `5 s`, `3 min`, `2 h 05 min`.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        ..10.0 => format!("{seconds:.1} s"),
        ..90.0 => format!("{seconds:.0} s"),
        ..5_400.0 => format!("{:.0} min", seconds / 60.0),
        _ => {
            let minutes = (seconds / 60.0) as u64;
            format!("{} h {:02} min", minutes / 60, minutes % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_from_the_rate() {
        let ten = Duration::from_secs(10);
        assert_eq!(line(50_000_000, 200_000_000, ten), "█████░░░░░░░░░░░░░░░  25%  5.0 MB/s read  30 s left");
        assert_eq!(line(0, 0, ten), "░░░░░░░░░░░░░░░░░░░░   0%  0.0 MB/s read  0.0 s left");
    }

    #[test]
    fn durations_are_for_people() {
        let texts = [0.04, 12.4, 89.0, 600.0, 7_500.0].map(duration);
        assert_eq!(texts, ["0.0 s", "12 s", "89 s", "10 min", "2 h 05 min"]);
    }
}
