//! A histogram of durations with a bounded relative error, updated by one addition, readable at any time.
//!
//! Log-linear buckets, as in HdrHistogram: each power of two is divided into 16 buckets of equal width, so
//! the middle of a bucket is at most 1/32 off. 546 buckets cover 2^8 to 2^42 ticks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Each power of two is divided into this many buckets, so a bucket is at most 1/16 of its value wide.
const SPLIT_BITS: u32 = 4;
const SPLIT: usize = 1 << SPLIT_BITS;
/// Durations below 2^8 ticks share the first bucket, those from 2^42 on the last.
const LOWEST: u32 = 8;
const HIGHEST: u32 = 42;
/// The number of buckets.
pub(in crate::trace) const BUCKETS: usize = (HIGHEST - LOWEST) as usize * SPLIT + 2;

fn bucket(ticks: u64) -> usize {
    match ticks.checked_ilog2().unwrap_or(0) {
        ..LOWEST => 0,
        HIGHEST.. => BUCKETS - 1,
        power => {
            let split = (ticks >> (power - SPLIT_BITS)) as usize % SPLIT;
            1 + (power - LOWEST) as usize * SPLIT + split
        }
    }
}

/// The middle of a bucket, in ticks.
fn middle(bucket: usize) -> u64 {
    match bucket {
        0 => 1 << (LOWEST - 1),
        _ if bucket == BUCKETS - 1 => 1 << HIGHEST,
        _ => {
            let (power, split) = ((bucket - 1) / SPLIT, (bucket - 1) % SPLIT);
            let width = 1u64 << (LOWEST as usize + power - SPLIT_BITS as usize);
            (SPLIT + split) as u64 * width + width / 2
        }
    }
}

/// The live histogram.
pub(in crate::trace) struct Histogram([AtomicU64; BUCKETS]);

impl Histogram {
    pub(in crate::trace) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }

    /// Counts a duration. Only one thread at a time may call this.
    #[inline]
    pub(in crate::trace) fn add(&self, ticks: u64) {
        let count = &self.0[bucket(ticks)];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts a duration. Any number of threads may call this at once.
    #[inline]
    pub(in crate::trace) fn add_shared(&self, ticks: u64) {
        self.0[bucket(ticks)].fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::trace) fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// The number of durations counted.
    pub(in crate::trace) fn count(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// The sum of several histograms.
    pub(in crate::trace) fn snapshot<'a>(
        histograms: impl IntoIterator<Item = &'a Self>,
        nanoseconds: impl Fn(u64) -> u64,
    ) -> Waits {
        let mut counts = [0; BUCKETS];
        for histogram in histograms {
            counts
                .iter_mut()
                .zip(&histogram.0)
                .for_each(|(sum, count)| *sum += count.load(Ordering::Relaxed));
        }
        let filled = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
        Waits(filled.map(|(i, count)| (nanoseconds(middle(i)), count)).collect())
    }
}

/// The distribution of waits: pairs of a duration in nanoseconds (at most 1/32 off) and the number of waits
/// of that duration, shortest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits(pub Vec<(u64, u64)>);

impl Waits {
    /// The number of waits.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The duration that a share `quantile` (0.5 for the median) of the waits did not exceed.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((self.count() as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.0.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        found.or(self.0.last()).map_or(0, |(duration, _)| *duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_at_most_a_thirty_second_off() {
        let mut ticks = 256_u64;
        while ticks < 1 << HIGHEST {
            let off = middle(bucket(ticks)).abs_diff(ticks) as f64 / ticks as f64;
            assert!(off <= 1.0 / 32.0, "{ticks}: {off}");
            ticks += ticks / 97;
        }
    }

    #[test]
    fn buckets_rise_and_stay_in_range() {
        let ticks = (0..64).flat_map(|power| [(1_u64 << power) - 1, 1 << power]).chain([u64::MAX]);
        let buckets: Vec<usize> = ticks.map(bucket).collect();
        assert!(buckets.is_sorted() && buckets[0] == 0 && buckets[buckets.len() - 1] == BUCKETS - 1);
        assert!((0..BUCKETS).map(middle).is_sorted());
        assert!((0..BUCKETS).all(|i| bucket(middle(i)) == i));
    }

    #[test]
    fn quantiles_come_from_the_counts() {
        let histogram = Histogram::new();
        for ticks in 1..=1_000 {
            histogram.add(ticks * 1_000);
            histogram.add_shared(ticks * 1_000);
        }
        let waits = Histogram::snapshot([&histogram], |ticks| ticks);
        assert_eq!(histogram.count(), 2_000);
        assert_eq!(waits.count(), 2_000);
        for (quantile, exact) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let off = (waits.quantile(quantile) as f64 - exact).abs() / exact;
            assert!(off < 0.04, "{quantile}: {off}");
        }
        assert_eq!(Waits::default().quantile(0.5), 0);
    }
}
