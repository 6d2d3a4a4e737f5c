//! Comparison of two recordings, by their summaries.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::change::Better;
use super::compare_code::CodeChanges;
use super::groups::pattern;
use super::summary::{Summary, per};
use super::table::{Table, printable};
use super::units::{duration, percent};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// A part of the whole.
    Share,
    /// Anything else.
    Number,
}

/// A number of both recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    /// What it means.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// In the first recording.
    pub before: f64,
    /// In the second.
    pub after: f64,
    /// Which direction is an improvement.
    pub better: Better,
    /// The change in words.
    pub change: String,
}

/// Running and waiting, in nanoseconds.
type Times = (u64, u64);

/// The times of the threads of a group together, running and waiting, in nanoseconds; `None` if there are no
/// such threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadChange {
    /// The name of the group: `*` stands for numbers that differ.
    pub name: String,
    /// In the first recording.
    pub before: Option<(u64, u64)>,
    /// In the second.
    pub after: Option<(u64, u64)>,
}

/// Two recordings side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The numbers of the whole program.
    pub measures: Vec<Measure>,
    /// The threads by group, those that run and wait longest first.
    pub threads: Vec<ThreadChange>,
    /// The code that others waited for.
    pub code: CodeChanges,
}

impl Comparison {
    /// Compares two recordings.
    pub fn of(before: &Summary, after: &Summary) -> Self {
        Self {
            measures: measures(before, after),
            threads: threads(before, after),
            code: CodeChanges::of(before, after),
        }
    }

    /// The comparison as text.
    pub fn to_text(&self) -> String {
        let mut out = String::from("Before and after\n");
        let mut table = Table::new(&["", "before", "after", "change"]);
        table.0.extend(self.measures.iter().map(Measure::row));
        table.write(&mut out);
        if self.lengths_differ() {
            out.push_str(
                "  The recordings differ in length: unless the work was the same, compare shares, not times.\n",
            );
        }
        out.push_str("\nThreads\n");
        let mut table = Table::new(&["thread", "running before", "after", "waiting before", "after"]);
        table.0.extend(self.threads.iter().take(ROWS).map(ThreadChange::row));
        table.write(&mut out);
        if self.threads.len() > ROWS {
            out.push_str(&format!("  … and {} more\n", self.threads.len() - ROWS));
        }
        self.code.write(&mut out);
        out
    }

    /// Whether one recording is more than a quarter longer.
    fn lengths_differ(&self) -> bool {
        let length = self.measures.iter().find(|measure| measure.name == "length");
        length.is_some_and(|length| {
            let [less, more] = [length.before.min(length.after), length.before.max(length.after)];
            more > 1.25 * less
        })
    }

    /// The comparison as JSON, times in nanoseconds.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts only")
    }
}

/// The most rows of a table in the terminal.
const ROWS: usize = 20;

type Of = fn(&Summary) -> f64;

/// What is compared: name, unit, better direction, and its function of a summary.
const MEASURES: [(&str, Unit, Better, Of); 15] = [
    ("length", Unit::Time, Better::Less, |s| s.length as f64),
    ("threads", Unit::Number, Better::Neither, |s| s.threads.len() as f64),
    ("lock held", Unit::Share, Better::Neither, |s| s.locks.first().map_or(0.0, |lock| lock.utilization)),
    ("threads waiting", Unit::Number, Better::Less, |s| s.locks.iter().map(|lock| lock.mean_waiters).sum()),
    ("useful parallelism", Unit::Number, Better::More, |s| s.useful_parallelism),
    ("time waited", Unit::Time, Better::Less, |s| s.contended.total as f64),
    ("share waited", Unit::Share, Better::Less, |s| per(s.times.waiting, s.times.total())),
    ("contended waits", Unit::Number, Better::Neither, |s| s.contended.count as f64),
    ("wait p50", Unit::Time, Better::Less, |s| s.contended.p50 as f64),
    ("wait p99", Unit::Time, Better::Less, |s| s.contended.p99 as f64),
    ("longest wait", Unit::Time, Better::Less, |s| s.contended.max as f64),
    ("longest hold", Unit::Time, Better::Less, |s| longest_hold(s) as f64),
    ("running", Unit::Time, Better::Neither, |s| s.times.running as f64),
    ("off-lock", Unit::Time, Better::Neither, |s| s.times.off_lock as f64),
    ("gc", Unit::Time, Better::Less, |s| s.times.gc as f64),
];

fn longest_hold(summary: &Summary) -> u64 {
    summary.threads.iter().map(|thread| thread.longest_hold).max().unwrap_or(0)
}

fn measures(before: &Summary, after: &Summary) -> Vec<Measure> {
    let measure = |(name, unit, better, of): (&'static str, Unit, Better, Of)| {
        // The sum of no numbers is -0.0, which adding 0.0 makes 0.0.
        Measure::of(name, unit, better, [before, after].map(|summary| of(summary) + 0.0))
    };
    MEASURES.into_iter().map(measure).collect()
}

/// Groups of both recordings with the same pattern are the same; the name has a number if no other is known.
fn threads(before: &Summary, after: &Summary) -> Vec<ThreadChange> {
    let mut all: BTreeMap<String, (BTreeSet<&str>, [Option<Times>; 2])> = BTreeMap::new();
    for (side, summary) in [before, after].into_iter().enumerate() {
        for thread in &summary.threads {
            let (names, sides) = all.entry(pattern(&thread.name)).or_default();
            names.insert(&thread.name);
            let (running, waiting) = sides[side].get_or_insert((0, 0));
            *running += thread.times.holding();
            *waiting += thread.times.waiting;
        }
    }
    let change = |(pattern, (names, [before, after])): (String, (BTreeSet<&str>, [Option<Times>; 2]))| {
        let alone = names.first().filter(|_| names.len() == 1);
        ThreadChange { name: alone.map_or(pattern, |name| (*name).to_owned()), before, after }
    };
    let mut all: Vec<ThreadChange> = all.into_iter().map(change).collect();
    let weight = |times: Option<Times>| times.map_or(0, |(running, waiting)| running + waiting);
    all.sort_by_key(|change| std::cmp::Reverse(weight(change.before).max(weight(change.after))));
    all
}

impl Measure {
    fn of(name: &'static str, unit: Unit, better: Better, [before, after]: [f64; 2]) -> Self {
        Self { name, unit, before, after, better, change: better.change(before, after) }
    }

    /// Whether the second recording is notably better (`Some(true)`) or worse.
    pub fn verdict(&self) -> Option<bool> {
        self.better.verdict(self.before, self.after)
    }

    fn format(&self, value: f64) -> String {
        match self.unit {
            Unit::Time => duration(value as u64),
            Unit::Share => percent(value),
            Unit::Number if value.fract() == 0.0 => format!("{value}"),
            Unit::Number => format!("{value:.2}"),
        }
    }

    fn row(&self) -> Vec<String> {
        vec![self.name.into(), self.format(self.before), self.format(self.after), self.change.clone()]
    }
}

impl ThreadChange {
    fn row(&self) -> Vec<String> {
        let cell = |times: Option<(u64, u64)>, of: fn((u64, u64)) -> u64| {
            times.map_or("-".into(), |t| duration(of(t)))
        };
        let [running, waiting]: [fn((u64, u64)) -> u64; 2] = [|t| t.0, |t| t.1];
        let times = [
            cell(self.before, running),
            cell(self.after, running),
            cell(self.before, waiting),
            cell(self.after, waiting),
        ];
        [printable(&self.name)].into_iter().chain(times).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::analyze::summary::{ThreadSummary, Times};

    #[test]
    fn changes_are_told_in_words() {
        for (before, after, words) in [
            (0.0, 0.0, "the same"),
            (0.0, 5.0, "new, worse"),
            (5.0, 0.0, "gone, better"),
            (100.0, 104.0, "about the same"),
            (100.0, 140.0, "40% more, worse"),
            (100.0, 60.0, "40% less, better"),
            (100.0, 200.0, "2 times as much, worse"),
            (100.0, 1_234.0, "12 times as much, worse"),
            (1.0, 1e9, "over 100 times as much, worse"),
            (240.0, 100.0, "1/2.4 as much, better"),
            (100.0, 1.0, "1/100 as much, better"),
            (11_800_000_000.0, 275_000.0, "almost gone, better"),
        ] {
            let measure = Measure::of("gc", Unit::Time, Better::Less, [before, after]);
            assert_eq!(measure.change, words, "{before} {after}");
        }
        let neither = Measure::of("threads", Unit::Number, Better::Neither, [5.0, 10.0]);
        assert_eq!(neither.row(), ["threads", "5", "10", "2 times as much"]);
    }

    #[test]
    fn pools_are_compared_whatever_their_size_and_numbers() {
        let thread = |name: &str, running| ThreadSummary {
            name: name.into(),
            times: Times { running, ..Default::default() },
            ..ThreadSummary::default()
        };
        let summary = |threads: &[(&str, u64)]| Summary {
            threads: threads.iter().map(|(name, running)| thread(name, *running)).collect(),
            ..Summary::default()
        };
        let before = summary(&[("worker 1", 10), ("worker 2", 5), ("main", 1), ("job 7", 2)]);
        let changes = threads(&before, &summary(&[("worker 9", 20), ("main", 3), ("job 7", 1)]));
        let change = |name: &str, before, after| ThreadChange { name: name.into(), before, after };
        assert_eq!(
            changes,
            [
                change("worker *", Some((15, 0)), Some((20, 0))),
                change("main", Some((1, 0)), Some((3, 0))),
                change("job 7", Some((2, 0)), Some((1, 0))),
            ]
        );
    }
}
