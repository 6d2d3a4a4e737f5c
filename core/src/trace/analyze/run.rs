//! Several recordings of one run: a server's processes, or a test suite that forks.
//!
//! The processes are in the order of what they lost, so that a server's idle master does not hide its busy
//! worker: those for which the lock is a problem come first, then those whose threads waited longest behind
//! others, then those that computed most.

use std::cmp::Reverse;
use std::fmt::Write;

use serde::Serialize;

use super::finding::Strength;
use super::summary::{GroupSummary, Summary};
use super::table::{Table, printable, write_rest};
use super::units::percent;
use super::verdict::Verdict;

/// The most processes that are listed.
const ROWS: usize = 20;

/// A process of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Process {
    /// The name of its recording.
    pub file: String,
    /// Its numbers.
    pub summary: Summary,
}

/// The processes of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Run {
    /// The one that lost most comes first.
    processes: Vec<Process>,
}

impl Run {
    /// A run of these processes, in any order.
    pub fn new(mut processes: Vec<Process>) -> Self {
        processes.sort_by_cached_key(|process| Reverse(Loss::of(&process.summary)));
        Self { processes }
    }

    /// The processes, the one that lost most first.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The run as JSON, times in nanoseconds: the summary of the only process, or an object with `processes`,
    /// each with its `file` and `summary`.
    pub fn to_json(&self) -> String {
        match self.processes.as_slice() {
            [alone] => alone.summary.to_json(),
            _ => serde_json::to_string_pretty(self).expect("numbers and texts only, no maps with other keys"),
        }
    }

    /// The run as text: the summary of the process that lost most, and a line for each of the others.
    pub fn to_text(&self) -> String {
        let Some((worst, others)) = self.processes.split_first() else { return String::new() };
        let mut out = String::new();
        if !others.is_empty() {
            let (role, count) = (self.role(&worst.summary), self.processes.len());
            let _ = writeln!(out, "{role}, which lost most of {count} processes:\n");
        }
        out.push_str(&worst.summary.to_text());
        self.write_others(&mut out, others);
        out
    }

    fn write_others(&self, out: &mut String, others: &[Process]) {
        if others.is_empty() {
            return;
        }
        out.push_str("\nOther processes (lost: by the threads that lost most)\n");
        let mut table = Table::new(&["process", "lost", "verdict", "command"]);
        table.0.extend(others.iter().take(ROWS).map(|process| self.row(&process.summary)));
        table.write(out);
        write_rest(out, others.len(), ROWS);
    }

    fn row(&self, summary: &Summary) -> Vec<String> {
        let lost = most_lost(summary).map_or(0.0, |group| group.lost);
        let command = printable(summary.about("command").unwrap_or(""));
        vec![self.role(summary), percent(lost), in_short(&Verdict::of(summary)).into(), command]
    }

    /// The process id, and which of the others it started or which one started it.
    fn role(&self, summary: &Summary) -> String {
        let of = |other: &Summary, key| other.about(key).map(str::to_owned);
        let (pid, parent) = (of(summary, "pid"), of(summary, "parent"));
        let others = || self.processes.iter().map(|process| &process.summary);
        let children = others().filter(|other| pid.is_some() && of(other, "parent") == pid).count();
        let has_parent = parent.is_some() && others().any(|other| of(other, "pid") == parent);
        let name = format!("process {}", pid.as_deref().map_or_else(|| "?".into(), printable));
        match (has_parent, children) {
            (true, _) => format!("{name} (child of {})", printable(&parent.unwrap_or_default())),
            (false, 0) => name,
            (false, children) => format!("{name} (parent of {children})"),
        }
    }
}

/// What processes are ordered by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Loss {
    is_problem: bool,
    /// In contended waits, in nanoseconds.
    lost: u64,
    computed: u64,
}

impl Loss {
    fn of(summary: &Summary) -> Self {
        Self {
            is_problem: matches!(Verdict::of(summary), Verdict::Problem(..)),
            lost: summary.groups.iter().map(|group| group.contended.total).sum(),
            computed: summary.times.computing(),
        }
    }
}

/// The group of threads that the verdict is about: the one that lost most time.
fn most_lost(summary: &Summary) -> Option<&GroupSummary> {
    match Verdict::of(summary) {
        Verdict::Problem(group, _) => Some(group),
        _ => summary.groups.iter().max_by(|a, b| a.lost.total_cmp(&b.lost)),
    }
}

fn in_short(verdict: &Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Unused => "used no lock",
        Verdict::TooShort => "too short to tell",
        Verdict::NoProblem(_) => "no problem",
        Verdict::Problem(_, Strength::Weak) => "slowed down a little",
        Verdict::Problem(_, Strength::Clear) => "slowed down clearly",
        Verdict::Problem(_, Strength::Strong) => "slowed down strongly",
    }
}
