//! The summary as text for the terminal.

use std::fmt::Write;

use super::finding::{Finding, Weight};
use super::look::{BAD, DOUBT, GOOD, Look, TITLE};
use super::summary::{GroupBlame, GroupSummary, LockSummary, MarkSummary, SpanSummary, Summary, per};
use super::table::{Table, printable, printable_line, shorten, write_rest};
use super::timeline::State;
use super::units::{capital, duration, percent, size};
use super::without_lock;
use crate::trace::format::definition::LockKind;

/// The most rows of a table.
const ROWS: usize = 20;

impl Summary {
    /// The summary as JSON, times in nanoseconds.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts only, no maps with other keys")
    }

    /// The summary as text of 80 columns without colours.
    pub fn to_text(&self) -> String {
        self.to_text_as(Look::default())
    }

    /// The summary as text: the verdict, then what it rests on, then the tables. Tables leave out the columns
    /// that do not fit.
    pub fn to_text_as(&self, look: Look) -> String {
        let mut out = String::new();
        self.write_head(look, &mut out);
        self.write_findings(look, &mut out);
        self.write_threads(look, &mut out);
        for lock in &self.locks {
            self.write_lock(lock, look, &mut out);
        }
        self.write_blamed_code(look, &mut out);
        self.write_operations(look, &mut out);
        self.write_marks(look, &mut out);
        out
    }

    fn write_head(&self, look: Look, out: &mut String) {
        let about = ["command", "language", "runtime"].iter().filter_map(|key| self.about(key));
        let about: Vec<String> = about.map(printable_line).collect();
        if !about.is_empty() {
            let _ = writeln!(out, "{}", look.paint(TITLE, &shorten(&about.join(" · "), look.width)));
        }
        let exact = if self.is_estimate() { "estimated from samples" } else { "exact" };
        let (length, threads) = (duration(self.length), self.threads.len());
        let _ = writeln!(out, "{length} · {threads} threads · {} events · {exact}\n", self.events);
    }

    /// The verdict comes first.
    fn write_findings(&self, look: Look, out: &mut String) {
        let (verdicts, others): (Vec<&Finding>, Vec<&Finding>) =
            self.findings.iter().partition(|finding| finding.kind.is_verdict());
        for finding in verdicts.into_iter().chain(others) {
            write_finding(finding, look, out);
        }
    }

    fn write_threads(&self, look: Look, out: &mut String) {
        let mut table = Table::new(&[
            "thread",
            "lost",
            "waits",
            "p50",
            "p99",
            "max",
            "longest hold",
            "running",
            "waiting",
            "idle",
            "sleep",
            "off-lock",
            "gc",
            "life",
        ]);
        table.0.extend(self.groups.iter().take(ROWS).map(|group| self.group_row(group)));
        table.fit(look.width, &LEAST_OF_THREADS);
        let to = if self.has_no_lock() { "in waits" } else { "to the lock" };
        let title = format!("Threads (× how many in a pool; lost: of their active time, {to})");
        write_title(&title, look, out);
        table.write_as(look, out);
        write_rest(out, self.groups.len(), ROWS);
    }

    fn group_row(&self, group: &GroupSummary) -> Vec<String> {
        let members = || group.threads.iter().map(|thread| &self.threads[*thread]);
        let lifetimes: u64 = members().map(|thread| thread.lifetime).sum();
        let longest_life = members().map(|thread| thread.lifetime).max().unwrap_or(0);
        let longest_hold = members().map(|thread| thread.longest_hold).max().unwrap_or(0);
        let waits = &group.contended;
        let mut row = vec![self.label(group), percent(group.lost), waits.count.to_string()];
        row.extend([waits.p50, waits.p99, waits.max, longest_hold].map(duration));
        row.extend(State::ALL.map(|state| percent(per(group.times.all()[state as usize], lifetimes))));
        row.push(duration(longest_life));
        row
    }

    fn label(&self, group: &GroupSummary) -> String {
        match group.threads.len() {
            1 => printable(&group.name),
            count => format!("{} ×{count}", printable(&group.name)),
        }
    }

    fn write_lock(&self, lock: &LockSummary, look: Look, out: &mut String) {
        let text = if lock.kind == LockKind::Interpreter {
            self.lock_in_words(lock)
        } else {
            capital(&format!("{}.", without_lock::in_words(self, lock)))
        };
        let _ = writeln!(out, "\n{}", look.hang(0, &text));
        if lock.blame.is_empty() || matches!(lock.kind, LockKind::Objects | LockKind::Spinning) {
            return;
        }
        let title = match lock.kind {
            LockKind::StopTheWorld => "Blame: which threads had stopped a thread that waited",
            _ => "Blame: which threads held the lock while a thread waited",
        };
        write_title(title, look, out);
        let mut table = Table::new(&["waiting thread", "waited", "held meanwhile by"]);
        let free =
            if lock.kind == LockKind::StopTheWorld { AFTER_PAUSE } else { "no thread (being handed over)" };
        table.0.extend(lock.by_group.iter().take(ROWS).map(|row| self.blame_row(row, free)));
        table.write_prose(look, out);
        write_rest(out, lock.by_group.len(), ROWS);
    }

    fn lock_in_words(&self, lock: &LockSummary) -> String {
        format!(
            "{}: held {} of the time, {:.2} threads waiting on average, {:.2} computing (useful parallelism)",
            printable(&lock.name),
            percent(lock.utilization),
            lock.mean_waiters,
            self.useful_parallelism,
        )
    }

    fn blame_row(&self, row: &GroupBlame, free: &str) -> Vec<String> {
        let more: u64 = row.by.iter().skip(3).map(|(_, time)| time).sum::<u64>() + row.by_others;
        let named = |(group, time): &(usize, u64)| (self.label(&self.groups[*group]), *time);
        let mut by: Vec<(String, u64)> = row.by.iter().take(3).map(named).collect();
        by.extend([("others".to_owned(), more), (free.to_owned(), row.by_no_thread)]);
        by.retain(|(_, time)| per(*time, row.waited) >= 0.0005);
        let by = by.iter().map(|(name, time)| format!("{name} {}", percent(per(*time, row.waited))));
        let by = by.collect::<Vec<_>>().join(", ");
        vec![self.label(&self.groups[row.group]), duration(row.waited), by]
    }

    fn write_operations(&self, look: Look, out: &mut String) {
        if self.operations.is_empty() {
            return;
        }
        write_title("Operations off the lock", look, out);
        let mut table = Table::new(&["name", "count", "time", "running", "waiting", "off-lock", "bytes"]);
        table.0.extend(self.operations.iter().take(ROWS).map(operation_row));
        table.fit(look.width, &["bytes", "count"]);
        table.write_as(look, out);
        write_rest(out, self.operations.len(), ROWS);
    }

    fn write_marks(&self, look: Look, out: &mut String) {
        if self.marks.is_empty() {
            return;
        }
        write_title("Marks (how long they took; others waited: for the lock, behind the mark)", look, out);
        let mut table = Table::new(&[
            "mark",
            "count",
            "p50",
            "p99",
            "max",
            "lost",
            "running",
            "waiting",
            "others waited",
        ]);
        table.0.extend(self.marks.iter().take(ROWS).map(mark_row));
        table.fit(look.width, &["max", "waiting", "running", "p50", "count"]);
        table.write_as(look, out);
        write_rest(out, self.marks.len(), ROWS);
    }
}

fn operation_row(operation: &SpanSummary) -> Vec<String> {
    let times = [operation.times.holding(), operation.times.waiting, operation.times.off_lock];
    let mut row = vec![printable(&operation.name), operation.count.to_string(), duration(operation.total)];
    row.extend(times.map(|time| percent(per(time, operation.total))));
    row.push(if operation.bytes > 0 { size(operation.bytes) } else { String::new() });
    row
}

fn mark_row(mark: &MarkSummary) -> Vec<String> {
    let MarkSummary { span, lengths, .. } = mark;
    let mut row = vec![printable(&span.name), span.count.to_string()];
    row.extend([lengths.p50, lengths.p99, lengths.max].map(duration));
    row.push(percent(mark.lost));
    row.extend([span.times.holding(), span.times.waiting].map(|time| percent(per(time, span.total))));
    row.push(duration(mark.inflicted_on_others));
    row
}

/// What a thread waits for once it may run again.
const AFTER_PAUSE: &str = "no thread any more (a processor)";

/// The columns of the table of threads that narrow terminals do without, the least important one first.
const LEAST_OF_THREADS: [&str; 12] = [
    "life",
    "sleep",
    "gc",
    "off-lock",
    "idle",
    "p50",
    "max",
    "running",
    "waiting",
    "longest hold",
    "waits",
    "p99",
];

fn write_title(title: &str, look: Look, out: &mut String) {
    let _ = writeln!(out, "\n{}", look.paint(TITLE, &look.hang(0, title)));
}

fn write_finding(finding: &Finding, look: Look, out: &mut String) {
    let Finding { kind, weight, text, advice, .. } = finding;
    let (bullet, style) = match weight {
        Weight::Caveat => ("?", DOUBT),
        Weight::Problem => ("!", BAD),
        Weight::Note => ("-", GOOD),
    };
    let text = look.hang(2, &printable_line(text));
    let text = if kind.is_verdict() { look.paint(style, &text) } else { text };
    let _ = writeln!(out, "{} {text}", look.paint(style, bullet));
    if let Some(advice) = advice {
        let _ = writeln!(out, "  -> {}", look.hang(5, &printable_line(advice)));
    }
}
