//! Operations off the lock, and marks, by name.

use std::collections::BTreeMap;

use super::recording::Recording;
use super::summary::{SpanSummary, Times};
use super::timeline::{Life, Span, Timeline};

/// The spans that `of` selects, by the number of their name.
pub(super) fn by_name(
    recording: &Recording,
    timeline: &Timeline,
    of: impl Fn(&Life) -> &Vec<Span>,
) -> BTreeMap<u32, SpanSummary> {
    let mut all = BTreeMap::<u32, SpanSummary>::new();
    for life in &timeline.threads {
        for span in of(life) {
            let named = || SpanSummary { name: recording.name(span.name), ..SpanSummary::default() };
            let summary = all.entry(span.name).or_insert_with(named);
            summary.count += 1;
            summary.total += span.end - span.start;
            summary.bytes += span.bytes;
            let within = Times::of(life.times_within(span.start, span.end));
            summary.times = Times::sum([summary.times, within].into_iter());
        }
    }
    all
}

/// The operations off the lock, the longest first.
pub(super) fn operations(recording: &Recording, timeline: &Timeline) -> Vec<SpanSummary> {
    let mut all: Vec<_> = by_name(recording, timeline, |life| &life.regions).into_values().collect();
    all.sort_by_key(|span| std::cmp::Reverse(span.total));
    all
}
