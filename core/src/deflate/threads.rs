//! How many threads to use, and how they share the work.
//!
//! As many as the caller asks for, but no more than one per 64 KB of input, because starting a thread costs
//! about as much as processing that. They take ranges of the items through an atomic counter: a thread that
//! gets easy items takes more of them. `parallel.rs` runs them.

use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Task;
use crate::parallel::on_threads;

/// Starting a thread costs about as much as processing this many bytes.
const WORTH_A_THREAD: usize = 64 << 10;

/// The number of threads for `bytes` of input if the caller asks for `threads` (0: one per core).
pub(super) fn threads_for(threads: usize, bytes: usize) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = if threads == 0 { cores() } else { threads };
    wanted.min(bytes / WORTH_A_THREAD).max(1)
}

/// Runs `worker` on `threads` threads, which take ranges of `0..count`, `step` at a time, and returns the
/// result of each.
pub(super) fn share<T: Send>(
    count: usize,
    step: usize,
    threads: usize,
    task: &Task<'_>,
    worker: impl Fn(&mut dyn Iterator<Item = Range<usize>>) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    on_threads(threads, task, || {
        let mut ranges = std::iter::from_fn(|| {
            let start = next.fetch_add(step, Ordering::Relaxed);
            (start < count).then(|| start..count.min(start + step))
        });
        worker(&mut ranges)
    })
}
