//! The summary as text for the terminal.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::finding::{Finding, Weight};
use super::summary::{GroupSummary, LockSummary, SpanSummary, Summary, per};
use super::table::{Table, printable, write_rest};
use super::timeline::State;
use super::units::{duration, percent, size};

/// The most rows of a table.
const ROWS: usize = 20;

/// [`BlameRow`](super::summary::BlameRow)s of the threads of a group, by index in [`Summary::groups`].
#[derive(Default)]
struct GroupBlame {
    group: usize,
    waited: u64,
    by: BTreeMap<usize, u64>,
    by_others: u64,
    by_no_thread: u64,
}

impl Summary {
    /// The summary as JSON, times in nanoseconds.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts only, no maps with other keys")
    }

    /// The summary as text of at most about 110 columns.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write_head(&mut out);
        self.write_threads(&mut out);
        for lock in &self.locks {
            self.write_lock(&mut out, lock);
        }
        self.write_blamed_code(&mut out);
        write_spans(&mut out, "Operations off the lock", self.operations.iter());
        write_spans(&mut out, "Marks", self.marks.iter().map(|mark| &mark.span));
        self.write_findings(&mut out);
        out
    }

    fn write_head(&self, out: &mut String) {
        let about = ["command", "language", "runtime"].iter().filter_map(|key| self.about(key));
        let about: Vec<String> = about.map(printable_line).collect();
        if !about.is_empty() {
            let _ = writeln!(out, "{}", about.join(" · "));
        }
        let exact = if self.is_estimate() { "estimated from samples" } else { "exact" };
        let (length, threads) = (duration(self.length), self.threads.len());
        let _ = writeln!(out, "{length} · {threads} threads · {} events · {exact}\n", self.events);
    }

    fn write_threads(&self, out: &mut String) {
        let mut table = Table::new(&[
            "thread",
            "life",
            "running",
            "waiting",
            "idle",
            "sleep",
            "off-lock",
            "gc",
            "lost",
            "contended",
            "p50",
            "p99",
            "max",
            "longest hold",
        ]);
        table.0.extend(self.groups.iter().take(ROWS).map(|group| self.group_row(group)));
        out.push_str("Threads (× how many in a pool; lost: of their active time, in contended waits)\n");
        table.write(out);
        write_rest(out, self.groups.len(), ROWS);
    }

    fn group_row(&self, group: &GroupSummary) -> Vec<String> {
        let members = || group.threads.iter().map(|thread| &self.threads[*thread]);
        let lifetimes: u64 = members().map(|thread| thread.lifetime).sum();
        let longest_life = members().map(|thread| thread.lifetime).max().unwrap_or(0);
        let mut row = vec![self.label(group), duration(longest_life)];
        row.extend(State::ALL.map(|state| percent(per(group.times.all()[state as usize], lifetimes))));
        row.extend([percent(group.lost), group.contended.count.to_string()]);
        let longest_hold = members().map(|thread| thread.longest_hold).max().unwrap_or(0);
        let waits = &group.contended;
        row.extend([waits.p50, waits.p99, waits.max, longest_hold].map(duration));
        row
    }

    fn label(&self, group: &GroupSummary) -> String {
        match group.threads.len() {
            1 => printable(&group.name),
            count => format!("{} ×{count}", printable(&group.name)),
        }
    }

    fn write_lock(&self, out: &mut String, lock: &LockSummary) {
        let _ = writeln!(
            out,
            "\n{}: held {} of the time, {:.2} threads waiting on average, {:.2} computing (useful parallelism)",
            printable(&lock.name),
            percent(lock.utilization),
            lock.mean_waiters,
            self.useful_parallelism,
        );
        if lock.blame.is_empty() {
            return;
        }
        out.push_str("Blame: which threads held the lock while a thread waited\n");
        let mut table = Table::new(&["waiting thread", "waited", "held meanwhile by"]);
        let rows = self.blame_by_group(lock);
        table.0.extend(rows.iter().take(ROWS).map(|row| self.blame_row(row)));
        table.write_with_prose(2, out);
        write_rest(out, rows.len(), ROWS);
    }

    /// The blame of the threads of a group added up, behind groups of threads.
    fn blame_by_group(&self, lock: &LockSummary) -> Vec<GroupBlame> {
        let mut group_of = vec![0; self.threads.len()];
        for (index, group) in self.groups.iter().enumerate() {
            group.threads.iter().for_each(|thread| group_of[*thread] = index);
        }
        let mut rows: BTreeMap<usize, GroupBlame> = BTreeMap::new();
        for row in &lock.blame {
            let group = group_of[row.thread];
            let sum = rows.entry(group).or_insert_with(|| GroupBlame { group, ..GroupBlame::default() });
            sum.waited += row.waited;
            sum.by_others += row.by_others;
            sum.by_no_thread += row.by_no_thread;
            for (holder, time) in &row.by {
                *sum.by.entry(group_of[*holder]).or_default() += time;
            }
        }
        let mut rows: Vec<GroupBlame> = rows.into_values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.waited));
        rows
    }

    fn blame_row(&self, row: &GroupBlame) -> Vec<String> {
        let mut holders: Vec<(usize, u64)> = row.by.iter().map(|(group, time)| (*group, *time)).collect();
        holders.sort_by_key(|(group, time)| (std::cmp::Reverse(*time), *group));
        let more: u64 = holders.iter().skip(3).map(|(_, time)| time).sum::<u64>() + row.by_others;
        let named = |(group, time): &(usize, u64)| (self.label(&self.groups[*group]), *time);
        let mut by: Vec<(String, u64)> = holders.iter().take(3).map(named).collect();
        by.extend([
            ("others".to_owned(), more),
            ("no thread (being handed over)".to_owned(), row.by_no_thread),
        ]);
        by.retain(|(_, time)| per(*time, row.waited) >= 0.0005);
        let by = by.iter().map(|(name, time)| format!("{name} {}", percent(per(*time, row.waited))));
        let by = by.collect::<Vec<_>>().join(", ");
        vec![self.label(&self.groups[row.group]), duration(row.waited), by]
    }

    fn write_findings(&self, out: &mut String) {
        out.push_str("\nFindings\n");
        for Finding { weight, text, advice, .. } in &self.findings {
            let bullet = match weight {
                Weight::Caveat => "?",
                Weight::Problem => "!",
                Weight::Note => "-",
            };
            let _ = writeln!(out, "  {bullet} {}", printable_line(text));
            if let Some(advice) = advice {
                let _ = writeln!(out, "    -> {}", printable_line(advice));
            }
        }
    }
}

fn printable_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn write_spans<'a>(
    out: &mut String,
    title: &str,
    spans: impl ExactSizeIterator<Item = &'a SpanSummary> + Clone,
) {
    if spans.len() == 0 {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    let mut table = Table::new(&["name", "count", "time", "running", "waiting", "off-lock", "bytes"]);
    for span in spans.clone().take(ROWS) {
        let times = [span.times.holding(), span.times.waiting, span.times.off_lock];
        let mut row = vec![printable(&span.name), span.count.to_string(), duration(span.total)];
        row.extend(times.map(|time| percent(per(time, span.total))));
        row.push(if span.bytes > 0 { size(span.bytes) } else { String::new() });
        table.0.push(row);
    }
    table.write(out);
    write_rest(out, spans.len(), ROWS);
}
