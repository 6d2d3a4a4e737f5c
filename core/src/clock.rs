//! Time stamps that cost a few nanoseconds, and their conversion to nanoseconds.
//!
//! A stamp is the processor's time stamp counter (x86-64, if the counter is invariant and Linux trusts it)
//! or, elsewhere, the monotonic clock. Reading the counter is cheaper than `clock_gettime`, and the recorder
//! does it at each event. The recorder's writer thread reads both clocks every few milliseconds and converts
//! the stamps between two such readings along a straight line ([`Scale`]). So the result follows the system's
//! clock, whose rate is adjusted while programs run.
//!
//! The crate `quanta` reads the same counter at the same cost, but measures its rate once, in a busy loop at
//! first use (50 to 200 ms), and keeps it for the life of the process, behind a `OnceCell`, for which the
//! child of a fork could wait forever.

use std::time::Duration;

use crate::fork::Remade;
use crate::os;
#[cfg(target_arch = "x86_64")]
use crate::tsc;

/// A point in time as the recorder stamps it: ticks of the processor's counter where that counter can be
/// trusted, nanoseconds of the monotonic clock elsewhere. Stamps never decrease.
pub type Ticks = u64;

/// The current time.
#[inline]
pub fn now() -> Ticks {
    #[cfg(target_arch = "x86_64")]
    if counter_is_used() {
        return tsc::time_stamp_counter();
    }
    os::monotonic_nanoseconds()
}

/// The current time, read after all earlier instructions have completed: a processor may read its counter
/// ahead of them.
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

/// One point in time on both time scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sync {
    pub(crate) ticks: Ticks,
    pub(crate) nanoseconds: u64,
}

impl Sync {
    /// The current time on both scales: of four readings, the one that took the shortest time.
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

    /// Ticks per nanosecond between two points; 1 if they are too close to tell.
    fn rate(self, later: Self) -> f64 {
        let nanoseconds = later.nanoseconds.saturating_sub(self.nanoseconds);
        let ticks = later.ticks.saturating_sub(self.ticks);
        if nanoseconds == 0 || ticks == 0 { 1.0 } else { ticks as f64 / nanoseconds as f64 }
    }
}

/// Not a `OnceLock`: if the process forks while another thread initializes it, the child waits for that
/// thread forever.
fn origin() -> Sync {
    static ORIGIN: Remade<Sync> = Remade::new();
    *ORIGIN.get_or_make(Sync::now)
}

/// Takes the current time as the point from which the counter's rate is measured.
pub(crate) fn start() {
    origin();
}

/// Converts a number of ticks to nanoseconds, at the rate measured between the first use of the recorder and
/// the first call of this function: the same number of ticks always gives the same duration.
pub fn nanoseconds(ticks: Ticks) -> u64 {
    if !counter_is_used() {
        return ticks;
    }
    (ticks as f64 / rate()) as u64
}

/// The number of ticks in a duration, at the rate of [`nanoseconds`].
pub fn ticks(duration: Duration) -> Ticks {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if !counter_is_used() {
        return nanoseconds;
    }
    (nanoseconds as f64 * rate()) as u64
}

fn rate() -> f64 {
    static RATE: Remade<f64> = Remade::new();
    *RATE.get_or_make(measured_rate)
}

/// Takes up to 5 ms, and only if the recorder was first used less than 5 ms ago.
fn measured_rate() -> f64 {
    let origin = origin();
    let mut present = Sync::now();
    while present.nanoseconds - origin.nanoseconds < 5_000_000 {
        std::hint::spin_loop();
        present = Sync::now();
    }
    origin.rate(present)
}

/// A straight line from ticks to nanoseconds that starts at a known point.
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

/// Converts ticks to nanoseconds of the monotonic clock, given points that are known on both scales.
///
/// Between two known points the conversion is linear. So it is exact at both points, monotonic, and follows
/// the monotonic clock over any length of time. Finding the line for a stamp takes O(log [`LINES`]) steps;
/// for a stamp newer than the last known point, which is the common case, it takes one.
#[derive(Debug)]
pub(crate) struct Scale {
    lines: Vec<Line>,
    last: Sync,
}

/// Stamps older than this many lines are converted along the oldest line.
const LINES: usize = 64;

impl Scale {
    pub(crate) fn new() -> Self {
        Self { lines: Vec::new(), last: origin() }
    }

    /// Adds a known point. Stamps before it can be converted from now on.
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

    /// Fixes the conversion of all stamps up to now: the next line starts where the last one ends, so that
    /// the result for a stamp does not depend on when it is computed.
    pub(crate) fn seal(&mut self) {
        let ticks = now();
        self.last = Sync { ticks, nanoseconds: self.place(ticks) };
    }

    /// Converts a stamp to nanoseconds.
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
        assert!(nanoseconds(super::ticks(Duration::from_secs(1))).abs_diff(1_000_000_000) < 10);
    }
}
