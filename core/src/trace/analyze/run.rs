//! Several recordings of one run: a server's processes, or a test suite that forks.
//!
//! The processes are in the order of what they lost, so that a server's idle master does not hide its busy
//! worker: those for which the lock is a problem come first, then those that lack processors, then those whose
//! threads waited longest behind others, then those that computed most.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt::Write;

use serde::Serialize;

use super::finding::{Finding, FindingKind, Strength};
use super::look::{Look, TITLE};
use super::summary::{GroupSummary, Summary};
use super::table::{Table, printable, write_rest};
use super::units::percent;

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
        let busiest = Loss::busiest(processes.iter().map(|process| &process.summary));
        processes.sort_by_cached_key(|process| Reverse(Loss::of(&process.summary, busiest)));
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

    /// The run as text of 80 columns without colours.
    pub fn to_text(&self) -> String {
        self.to_text_as(Look::default())
    }

    /// The run as text: the summary of the process that lost most, and a line for each of the others.
    pub fn to_text_as(&self, look: Look) -> String {
        let Some((worst, others)) = self.processes.split_first() else { return String::new() };
        let mut out = String::new();
        if !others.is_empty() {
            let (name, count, what) = (self.name(worst), self.processes.len(), self.kind().1);
            let busiest = Loss::busiest(self.processes.iter().map(|process| &process.summary));
            let most = if Loss::of(&worst.summary, busiest).lost > 0 { "lost" } else { "computed" };
            let _ = writeln!(out, "{name}, which {most} most of {count} {what}:\n");
        }
        out.push_str(&worst.summary.to_text_as(look));
        self.write_others(others, look, &mut out);
        out
    }

    fn write_others(&self, others: &[Process], look: Look, out: &mut String) {
        if others.is_empty() {
            return;
        }
        let (one, many) = self.kind();
        let title = format!("Other {many} (lost: by the threads that lost most)");
        let _ = writeln!(out, "\n{}", look.paint(TITLE, &title));
        let mut table = Table::new(&[one, "lost", "verdict", "command"]);
        table.0.extend(others.iter().take(ROWS).map(|process| self.row(process)));
        table.fit(look.width, &["command"]);
        table.write_as(look, out);
        write_rest(out, others.len(), ROWS);
    }

    fn row(&self, process: &Process) -> Vec<String> {
        let summary = &process.summary;
        let lost = most_lost(summary).map_or(0.0, |group| group.lost);
        let command = printable(summary.about("command").unwrap_or(""));
        vec![self.name(process), percent(lost), in_short(summary).into(), command]
    }

    /// What the traces are of: processes, unless several are of one, as after a signal that starts and stops it.
    fn kind(&self) -> (&'static str, &'static str) {
        if self.has_namesakes() { ("recording", "recordings") } else { ("process", "processes") }
    }

    fn has_namesakes(&self) -> bool {
        let mut seen = HashSet::new();
        let mut pids = self.processes.iter().filter_map(|process| process.summary.about("pid"));
        pids.any(|pid| !seen.insert(pid))
    }

    /// What tells a trace from the others: its process, or its file if several are of one process.
    fn name(&self, process: &Process) -> String {
        if self.has_namesakes() { printable(&process.file) } else { self.role(&process.summary) }
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
pub(in crate::trace) struct Loss {
    is_problem: bool,
    lacks_processors: bool,
    /// In contended waits, in nanoseconds; 0 if that is next to nothing.
    lost: u64,
    computed: u64,
}

/// If the busiest process computed so many times as long as a process lost, then that has lost next to nothing.
const NEXT_TO_NOTHING: u64 = 50;

impl Loss {
    /// For how long the process of a run computed that computed longest, in nanoseconds.
    pub(in crate::trace) fn busiest<'a>(run: impl Iterator<Item = &'a Summary>) -> u64 {
        run.map(|summary| summary.times.computing()).max().unwrap_or(0)
    }

    /// Of a process with these numbers, in a run whose busiest process computed for so long.
    pub(in crate::trace) fn of(summary: &Summary, busiest: u64) -> Self {
        let kind = verdict(summary).map(|verdict| verdict.kind);
        let lost: u64 = summary.groups.iter().map(|group| group.contended.total).sum();
        Self {
            is_problem: matches!(kind, Some(FindingKind::Lock | FindingKind::Waits)),
            lacks_processors: kind == Some(FindingKind::MachineFull),
            lost: if lost.saturating_mul(NEXT_TO_NOTHING) < busiest { 0 } else { lost },
            computed: summary.times.computing(),
        }
    }
}

/// The group of threads that the verdict is about, or the one that lost the greatest share.
fn most_lost(summary: &Summary) -> Option<&GroupSummary> {
    let judged = verdict(summary).and_then(|verdict| verdict.group.as_deref());
    let groups = || summary.groups.iter();
    let judged = judged.and_then(|name| groups().find(|group| group.name == name));
    judged.or_else(|| groups().max_by(|a, b| a.lost.total_cmp(&b.lost)))
}

fn verdict(summary: &Summary) -> Option<&Finding> {
    summary.findings.iter().find(|finding| finding.kind.is_verdict())
}

fn in_short(summary: &Summary) -> &'static str {
    match verdict(summary).map(|verdict| (verdict.kind, verdict.strength)) {
        Some((FindingKind::Lock | FindingKind::Waits, Some(Strength::Weak))) => "slowed down a little",
        Some((FindingKind::Lock | FindingKind::Waits, Some(Strength::Clear))) => "slowed down clearly",
        Some((FindingKind::Lock | FindingKind::Waits, _)) => "slowed down strongly",
        Some((FindingKind::NotTheLock, _)) => "not the lock",
        Some((FindingKind::MachineFull, _)) => "too few processors",
        Some((FindingKind::TooShort, _)) => "too short to tell",
        _ => "used no lock",
    }
}
