//! Findings: what the numbers of a recording mean, and what to do about it.
//!
//! The verdict comes first (`verdict.rs`), then its causes (`causes.rs`), then what is good to know. A rule that
//! matches gives one finding with the numbers in its text. `core/tests/trace_analysis.rs` checks each on
//! recordings with known causes, and the programs in the folder `verdicts` on real ones.

use super::causes;
use super::finding::{Finding, FindingKind};
use super::summary::{Summary, per};
use super::units::{capital, duration, list, percent};
use super::verdict::{LONG_ENOUGH, Problem, Verdict, WEAK, machine_is_full};
use super::verdict_text::{machine_full, slowed_down};
use super::without_lock;

/// The share of the recording below which collecting garbage costs little.
const LITTLE: f64 = 0.05;

/// The findings, the most important ones first.
pub(super) fn of(summary: &Summary) -> Vec<Finding> {
    let mut all = caveats(summary);
    let verdict = Verdict::of(summary);
    all.push(judged(summary, &verdict));
    if summary.has_no_lock() {
        all.extend(without_lock::waits(summary));
    }
    if let Verdict::Lock(_) = verdict {
        all.extend(causes::of(summary));
        all.extend(machine_is_full(summary).map(|lost| machine_full(summary, lost, "too")));
    }
    all.extend(garbage(summary));
    all.extend(off_lock(summary));
    all
}

/// The verdict in words, with what it rests on.
fn judged(summary: &Summary, verdict: &Verdict<'_>) -> Finding {
    if summary.has_no_lock()
        && let Some(finding) = without_lock::judged(summary, verdict)
    {
        return finding;
    }
    match verdict {
        Verdict::Unused => Finding::new(
            FindingKind::Unused,
            "No thread used an interpreter lock during this recording.".into(),
        ),
        Verdict::TooShort => too_short(summary),
        Verdict::NotTheLock(lost) => not_the_lock(summary, *lost),
        Verdict::MachineFull(lost) => {
            machine_full(summary, *lost, "and the lock is not what slows this program down")
        }
        Verdict::Lock(problem) => the_lock(problem),
    }
}

fn too_short(summary: &Summary) -> Finding {
    let waits: u64 = summary.groups.iter().map(|group| group.contended.count).sum();
    let text = format!(
        "Too short to tell: the recording took {}, and threads waited for the lock {waits} times while another had it.",
        duration(summary.length)
    );
    let advice = if summary.length < LONG_ENOUGH {
        "Record the program while it does its usual work, for some seconds."
    } else {
        "Record more of what the program does."
    };
    Finding::new(FindingKind::TooShort, text).advise(advice)
}

fn not_the_lock(summary: &Summary, lost: f64) -> Finding {
    let waits = || summary.groups.iter().map(|group| &group.contended);
    let longest = duration(waits().map(|waits| waits.max).max().unwrap_or(0));
    let all = duration(waits().map(|waits| waits.total).sum());
    let why = if lost < WEAK {
        format!(
            "its threads lost {} of their active time waiting for it, {longest} at most at a time",
            percent(lost)
        )
    } else {
        format!(
            "its threads, which idle most of the time, waited for it for {all} in all, {longest} at most at a time"
        )
    };
    Finding::new(FindingKind::NotTheLock, format!("The lock is not what slows this program down: {why}."))
}

fn the_lock(problem: &Problem<'_>) -> Finding {
    slowed_down(FindingKind::Lock, "Waiting for the lock", problem)
}

fn caveats(summary: &Summary) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |kind: FindingKind, holds: bool, text: String| {
        if holds {
            all.push(Finding::new(kind, text));
        }
    };
    let (lost, violations) = (summary.lost, summary.violations);
    let is_nothing = summary.threads.is_empty();
    let estimated = match summary.about("obstacle") {
        _ if summary.has_no_lock() && !is_nothing => without_lock::estimate(summary),
        obstacle => estimate(obstacle, is_nothing),
    };
    add(FindingKind::Estimate, summary.is_estimate(), estimated);
    let enabled = summary.about("lock_enabled");
    add(FindingKind::LockEnabled, enabled.is_some(), lock_enabled(enabled.unwrap_or_default()));
    add(
        FindingKind::EventsLost,
        lost > 0,
        format!("{lost} of {} events were lost: times around them are wrong.", summary.events + lost),
    );
    add(
        FindingKind::Contradictions,
        violations > 0,
        format!(
            "{violations} transitions contradict each other: a lock had two holders, or a thread released what it did not hold."
        ),
    );
    if let Some(damage) = &summary.damage {
        let text = if summary.is_incomplete { format!("Incomplete: {damage}") } else { capital(damage) };
        add(FindingKind::Damaged, true, format!("{text}."));
    }
    all
}

fn estimate(obstacle: Option<&str>, is_nothing: bool) -> String {
    let why = obstacle.map(|obstacle| format!(", because {obstacle}")).unwrap_or_default();
    if is_nothing {
        return format!("Nothing was recorded{why}.");
    }
    format!(
        "These numbers are estimated from samples, not recorded exactly{why}. A thread counts as running for the \
         time that it used a processor; of waiting, only the sampler's own is seen, which stands for any thread that \
         wants the lock."
    )
}

fn lock_enabled(reason: &str) -> String {
    format!(
        "This interpreter was built to run without a lock, but has one, so that one thread computes at a time: {reason}."
    )
}

fn garbage(summary: &Summary) -> Option<Finding> {
    let (gc, holding) = (summary.times.gc, summary.times.holding());
    // Without a lock, only what stopped other threads is known.
    if summary.has_no_lock() || per(gc, holding) < 0.1 || per(gc, summary.length) < LITTLE {
        return None;
    }
    let text = format!(
        "Garbage collection took {} of the time with the lock ({}).",
        percent(per(gc, holding)),
        duration(gc)
    );
    let advice = "Allocate less in the hot paths, or tune the collector.";
    Some(Finding::new(FindingKind::Garbage, text).advise(advice))
}

fn off_lock(summary: &Summary) -> Option<Finding> {
    let time = summary.operations.iter().map(|operation| operation.times.off_lock).sum();
    if per(time, summary.length) < 0.01 {
        return None;
    }
    let names = list(summary.operations.iter().map(|operation| format!("`{}`", operation.name)));
    let text = format!(
        "Operations off the lock ({names}) ran for {} in all; {:.2} threads computed at a time.",
        duration(time),
        summary.useful_parallelism,
    );
    Some(Finding::new(FindingKind::OffLock, text))
}
