//! The verdicts on interpreters with and without a lock that have the same words.

use super::finding::{Finding, FindingKind, Strength};
use super::summary::{GroupSummary, MarkSummary, Summary};
use super::units::{duration, percent};
use super::verdict::Problem;

/// The share `lost` of the threads' active time, in which they had no processor.
pub(super) fn machine_full(summary: &Summary, lost: f64, addition: &str) -> Finding {
    let busy = |share: Option<f64>, what: &str| Some(format!("{what} {}", percent(share?)));
    let processors = summary.processors.map(|count| format!("{count:.0} processors"));
    let known =
        [processors, busy(summary.busy, "of which it used"), busy(summary.machine_busy, "machine busy")];
    let known: Vec<String> = known.into_iter().flatten().collect();
    let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    let text = format!(
        "The machine is full, {addition}: for {} of their active time, threads that were ready to run, or waited for such a thread, had no processor{known}.",
        percent(lost)
    );
    let advice = "Give the program more processors, or less work: fewer threads that compute at a time, fewer other programs.";
    Finding::new(FindingKind::MachineFull, text).advise(advice)
}

/// What slows the program down, and which threads and marks lost how much to it.
pub(super) fn slowed_down(kind: FindingKind, what: &str, problem: &Problem<'_>) -> Finding {
    let how = match problem.strength {
        Strength::Weak => "a little",
        Strength::Clear => "clearly",
        Strength::Strong => "strongly",
    };
    let mut losers = Vec::new();
    losers.extend(problem.group.map(|(group, lost)| group_lost(group, lost)));
    losers.extend(problem.mark.map(|(mark, lost)| mark_lost(mark, lost)));
    let text = format!("{what} slows this program down {how}: {}.", losers.join("; "));
    Finding {
        strength: Some(problem.strength),
        group: problem.group.map(|(group, _)| group.name.clone()),
        mark: problem.mark.map(|(mark, _)| mark.span.name.clone()),
        ..Finding::new(kind, text)
    }
}

fn group_lost(group: &GroupSummary, lost: f64) -> String {
    let waits = &group.contended;
    format!(
        "{} lost {} of {} active time in {} waits (p50 {}, p99 {}, longest {})",
        group.named(),
        percent(lost),
        if group.threads.len() == 1 { "its" } else { "their" },
        waits.count,
        duration(waits.p50),
        duration(waits.p99),
        duration(waits.max),
    )
}

fn mark_lost(mark: &MarkSummary, lost: f64) -> String {
    format!(
        "`{}` lost {} of its time, {} each on average (p99 {})",
        mark.span.name,
        percent(lost),
        duration(mark.losses.total / mark.losses.count.max(1)),
        duration(mark.losses.p99),
    )
}
