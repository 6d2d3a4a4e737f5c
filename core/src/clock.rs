//! Time stamps that cost a few nanoseconds, and their way back to nanoseconds.

use crate::fork::Remade;
use crate::os;
#[cfg(target_arch = "x86_64")]
use crate::tsc;

/// A moment as the recorder stamps it: ticks of the processor's counter where that can be trusted,
/// nanoseconds of the monotonic clock elsewhere. Later moments are never smaller.
pub type Ticks = u64;

/// The present moment.
#[inline]
pub fn now() -> Ticks {
    #[cfg(target_arch = "x86_64")]
    if counter_is_used() {
        return tsc::time_stamp_counter();
    }
    os::monotonic_nanoseconds()
}

/// The present moment, after everything that comes earlier in the program: a processor may read its counter ahead of that.
#[inline]
pub(crate) fn now_in_order() -> Ticks {
    #[cfg(target_arch = "x86_64")]
    tsc::finish_what_is_before();
    now()
}

/// The name of the time source: `tsc` or `monotonic`.
pub fn source() -> &'static str {
    if counter_is_used() { "tsc" } else { "monotonic" }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter_is_used() -> bool {
    use std::sync::atomic::{AtomicU8, Ordering};
    static USED: AtomicU8 = AtomicU8::new(2);
    match USED.load(Ordering::Relaxed) {
        2 => {
            let used = tsc::has_invariant_counter();
            USED.store(u8::from(used), Ordering::Relaxed);
            used
        }
        used => used == 1,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_used() -> bool {
    false
}

/// One moment on both time scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sync {
    pub(crate) ticks: Ticks,
    pub(crate) nanoseconds: u64,
}

impl Sync {
    /// The present moment on both scales, as close together as a few tries get them.
    pub(crate) fn now() -> Self {
        let tries = (0..4).map(|_| {
            let before = now();
            let nanoseconds = os::monotonic_nanoseconds();
            let after = now();
            (after.saturating_sub(before), Self { ticks: before + (after - before) / 2, nanoseconds })
        });
        tries
            .min_by_key(|(width, _)| *width)
            .map(|(_, sync)| sync)
            .unwrap_or(Self { ticks: 0, nanoseconds: 0 })
    }

    /// Ticks per nanosecond between two moments; 1 when they are too close to tell.
    fn rate(self, later: Self) -> f64 {
        let nanoseconds = later.nanoseconds.saturating_sub(self.nanoseconds);
        let ticks = later.ticks.saturating_sub(self.ticks);
        if nanoseconds == 0 || ticks == 0 { 1.0 } else { ticks as f64 / nanoseconds as f64 }
    }
}

/// Not a `OnceLock`: in the child of a fork that came while another thread filled it, nobody would ever get its value.
fn origin() -> Sync {
    static ORIGIN: Remade<Sync> = Remade::new();
    *ORIGIN.get_or_make(Sync::now)
}

/// Remembers the present as the moment from which the counter's rate is measured.
pub(crate) fn start() {
    origin();
}

/// How many nanoseconds `ticks` last, by the rate measured between the first use of the recorder and the first call of
/// this: the same ticks are always as long.
pub fn nanoseconds(ticks: Ticks) -> u64 {
    static RATE: Remade<f64> = Remade::new();
    if !counter_is_used() {
        return ticks;
    }
    (ticks as f64 / RATE.get_or_make(measured_rate)) as u64
}

/// Takes a while only if the recorder has just been used for the first time.
fn measured_rate() -> f64 {
    let origin = origin();
    let mut present = Sync::now();
    while present.nanoseconds - origin.nanoseconds < 5_000_000 {
        std::hint::spin_loop();
        present = Sync::now();
    }
    origin.rate(present)
}

/// From one known moment on: a straight line from ticks to nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Line {
    from: Sync,
    nanoseconds_per_tick: f64,
}

impl Line {
    fn through(from: Sync, to: Sync) -> Self {
        Self { from, nanoseconds_per_tick: 1.0 / from.rate(to) }
    }

    fn place(&self, ticks: Ticks) -> u64 {
        let offset = ticks.wrapping_sub(self.from.ticks) as i64 as f64 * self.nanoseconds_per_tick;
        self.from.nanoseconds.saturating_add_signed(offset as i64)
    }
}

/// Turns ticks into nanoseconds of the monotonic clock, by moments known on both scales.
///
/// Between two known moments the conversion is a straight line, so it is exact at both ends,
/// monotonic, and follows the monotonic clock over any length of time.
#[derive(Debug)]
pub(crate) struct Scale {
    lines: Vec<Line>,
    last: Sync,
}

/// Moments older than this many lines are placed on the oldest line, prolonged.
const LINES: usize = 64;

impl Scale {
    pub(crate) fn new() -> Self {
        Self { lines: Vec::new(), last: origin() }
    }

    /// Learns the present moment. Moments before it can be placed from here on.
    pub(crate) fn learn(&mut self, sync: Sync) {
        if sync.ticks <= self.last.ticks || sync.nanoseconds <= self.last.nanoseconds {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.remove(0);
        }
        self.lines.push(Line::through(self.last, sync));
        self.last = sync;
    }

    /// Fixes where the moments up to the present are placed: the next line begins where the last
    /// one has come to, so that a moment's place does not depend on when it is asked for.
    pub(crate) fn seal(&mut self) {
        let ticks = now();
        self.last = Sync { ticks, nanoseconds: self.place(ticks) };
    }

    /// The nanosecond of a moment.
    pub(crate) fn place(&self, ticks: Ticks) -> u64 {
        match self.lines.last() {
            None => self.last.nanoseconds,
            Some(line) if ticks >= line.from.ticks => line.place(ticks),
            Some(_) => {
                let after = self.lines.partition_point(|line| line.from.ticks <= ticks);
                self.lines[after.saturating_sub(1)].place(ticks)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_exact_at_known_moments_and_straight_between() {
        let mut scale = Scale { lines: Vec::new(), last: Sync { ticks: 1_000, nanoseconds: 10_000 } };
        scale.learn(Sync { ticks: 4_000, nanoseconds: 11_000 });
        scale.learn(Sync { ticks: 10_000, nanoseconds: 13_500 });
        assert_eq!(scale.place(1_000), 10_000);
        assert_eq!(scale.place(2_500), 10_500);
        assert_eq!(scale.place(4_000), 11_000);
        assert_eq!(scale.place(10_000), 13_500);
        assert_eq!(scale.place(400), 9_800, "before the first: its line prolonged");
        assert_eq!(scale.place(12_400), 14_500, "after the last: its line prolonged");
    }

    #[test]
    fn a_scale_never_goes_backwards() {
        let mut scale = Scale::new();
        let (mut stamps, mut places) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            scale.learn(Sync::now());
            stamps.extend((0..20).map(|_| now()));
            places.extend(stamps.iter().skip(places.len()).map(|ticks| scale.place(*ticks)));
            scale.seal();
        }
        assert!(places.is_sorted());
        let again: Vec<u64> = stamps.iter().map(|ticks| scale.place(*ticks)).collect();
        assert_eq!(again, places, "wherever it is asked from");
    }

    #[test]
    fn durations_agree_with_the_standard_library() {
        start();
        let (before, instant) = (now(), std::time::Instant::now());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (ticks, elapsed) = (now() - before, instant.elapsed().as_nanos() as f64);
        let ratio = nanoseconds(ticks) as f64 / elapsed;
        assert!((0.98..1.02).contains(&ratio), "{ratio}");
    }
}
