//! Comparison of two recordings, by their summaries.

use std::collections::BTreeMap;

use serde::Serialize;

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

/// Which direction is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less of it.
    Less,
    /// More of it.
    More,
    /// Neither direction is.
    Neither,
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
}

/// Running and waiting, in nanoseconds.
type Times = (u64, u64);

/// The times of all threads of one name, running and waiting, in nanoseconds; `None` if there are no such
/// threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadChange {
    /// The name.
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
    /// The threads by name, those that run and wait longest first.
    pub threads: Vec<ThreadChange>,
}

impl Comparison {
    /// Compares two recordings.
    pub fn of(before: &Summary, after: &Summary) -> Self {
        Self { measures: measures(before, after), threads: threads(before, after) }
    }

    /// The comparison as text.
    pub fn to_text(&self) -> String {
        let mut out = String::from("Before and after\n");
        let mut table = Table::new(&["", "before", "after", "change"]);
        table.0.extend(self.measures.iter().map(Measure::row));
        table.write(&mut out);
        out.push_str("\nThreads by name\n");
        let mut table = Table::new(&["thread", "running before", "after", "waiting before", "after"]);
        table.0.extend(self.threads.iter().take(ROWS).map(ThreadChange::row));
        table.write(&mut out);
        if self.threads.len() > ROWS {
            out.push_str(&format!("  … and {} more\n", self.threads.len() - ROWS));
        }
        out
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
    ("time waited", Unit::Time, Better::Less, |s| s.times.waiting as f64),
    ("share waited", Unit::Share, Better::Less, |s| per(s.times.waiting, s.times.total())),
    ("waits", Unit::Number, Better::Neither, |s| s.waits.count as f64),
    ("wait p50", Unit::Time, Better::Less, |s| s.waits.p50 as f64),
    ("wait p99", Unit::Time, Better::Less, |s| s.waits.p99 as f64),
    ("longest wait", Unit::Time, Better::Less, |s| s.waits.max as f64),
    ("longest hold", Unit::Time, Better::Less, |s| longest_hold(s) as f64),
    ("running", Unit::Time, Better::Neither, |s| s.times.running as f64),
    ("off-lock", Unit::Time, Better::Neither, |s| s.times.off_lock as f64),
    ("gc", Unit::Time, Better::Less, |s| s.times.gc as f64),
];

fn longest_hold(summary: &Summary) -> u64 {
    summary.threads.iter().map(|thread| thread.longest_hold).max().unwrap_or(0)
}

fn measures(before: &Summary, after: &Summary) -> Vec<Measure> {
    let measure = |(name, unit, better, of): (&'static str, Unit, Better, Of)| Measure {
        name,
        unit,
        before: of(before),
        after: of(after),
        better,
    };
    MEASURES.into_iter().map(measure).collect()
}

fn threads(before: &Summary, after: &Summary) -> Vec<ThreadChange> {
    let mut by_name: BTreeMap<&str, [Option<Times>; 2]> = BTreeMap::new();
    for (side, summary) in [before, after].into_iter().enumerate() {
        for thread in &summary.threads {
            let (running, waiting) = by_name.entry(&thread.name).or_default()[side].get_or_insert((0, 0));
            *running += thread.times.holding();
            *waiting += thread.times.waiting;
        }
    }
    let change = |(name, [before, after]): (&str, [Option<Times>; 2])| ThreadChange {
        name: name.to_owned(),
        before,
        after,
    };
    let mut all: Vec<ThreadChange> = by_name.into_iter().map(change).collect();
    let weight = |times: Option<Times>| times.map_or(0, |(running, waiting)| running + waiting);
    all.sort_by_key(|change| std::cmp::Reverse(weight(change.before).max(weight(change.after))));
    all
}

/// The smallest change that is called better or worse.
const NOTABLE: f64 = 0.05;

impl Measure {
    /// Whether the second recording is notably better (`Some(true)`) or worse.
    pub fn verdict(&self) -> Option<bool> {
        let notable = (self.after - self.before).abs() > NOTABLE * self.before.max(self.after);
        match self.better {
            Better::Less if notable => Some(self.after < self.before),
            Better::More if notable => Some(self.after > self.before),
            _ => None,
        }
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
        let change = match (self.before, self.after) {
            (before, after) if before == after => "=".to_owned(),
            (0.0, _) => "new".to_owned(),
            (_, 0.0) => "gone".to_owned(),
            (before, after) => format!("x {}", three_digits(after / before)),
        };
        let verdict = match self.verdict() {
            Some(true) => " better",
            Some(false) => " worse",
            None => "",
        };
        vec![self.name.into(), self.format(self.before), self.format(self.after), change + verdict]
    }
}

/// A positive factor in three digits; a negligible one is shown as zero.
fn three_digits(factor: f64) -> String {
    let digits = match factor {
        ..0.0995 => (2.0 - factor.log10().floor()).min(6.0) as usize,
        ..9.995 => 2,
        _ => usize::from(factor < 99.95),
    };
    format!("{factor:.digits$}")
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

    fn change(before: f64, after: f64) -> String {
        Measure { name: "gc", unit: Unit::Time, before, after, better: Better::Less }.row().remove(3)
    }

    #[test]
    fn changes_from_and_to_nothing_are_shown() {
        assert_eq!(change(0.0, 0.0), "=");
        assert_eq!(change(0.0, 5.0), "new worse");
        assert_eq!(change(5.0, 0.0), "gone better");
    }

    #[test]
    fn factors_have_three_digits_as_far_as_that_says_something() {
        assert_eq!([2.0, 20.0, 200.0].map(three_digits), ["2.00", "20.0", "200"]);
        assert_eq!([0.5, 0.05, 0.0005].map(three_digits), ["0.50", "0.0500", "0.000500"]);
        assert_eq!(three_digits(1e-300), "0.000000");
    }
}
