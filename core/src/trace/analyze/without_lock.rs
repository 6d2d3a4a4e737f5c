//! Findings about an interpreter without a lock, free-threaded CPython: what its threads wait for instead.
//!
//! One thread may stop all others ([`LockKind::StopTheWorld`]), above all to collect garbage, and a thread waits for the
//! lock of an object ([`LockKind::Objects`]) that another thread is using. Both are recorded exactly, as waits for locks of
//! these kinds, so the verdict rests on the same measure as that on an interpreter lock; only the words differ.
//!
//! Before a thread parks, it tries some tens of times to get the lock ([`LockKind::Spinning`], if it gets it so). Whether that
//! was a lock of the program's own cannot be told, so the verdict leaves it out.

use super::finding::{Finding, FindingKind, Weight};
use super::summary::{LockSummary, Summary, WaitTimes, per};
use super::units::{capital, duration, percent};
use super::verdict::{LONG_ENOUGH, Verdict, WEAK};
use super::verdict_text::{machine_full, slowed_down};
use crate::trace::format::definition::{LockKind, type_of_objects};

/// The share of active time below which waits for the objects of a type are not worth a sentence.
const LITTLE: f64 = 0.005;
/// The most types that are named.
const TYPES: usize = 3;
/// The share of a whole that is most of it.
const MOST: f64 = 0.5;

/// The verdict in words; `None` where those about other interpreters are right.
pub(super) fn judged(summary: &Summary, verdict: &Verdict<'_>) -> Option<Finding> {
    match verdict {
        Verdict::Unused | Verdict::NotTheLock(_) if is_seen(summary) && summary.contended.count == 0 => {
            let text = "This interpreter has no lock, and no thread waited in it for another one.";
            Some(Finding::new(FindingKind::Unused, text.into()))
        }
        Verdict::Unused => None,
        Verdict::TooShort => Some(too_short(summary)),
        Verdict::NotTheLock(lost) => Some(not_much(summary, *lost)),
        Verdict::MachineFull(lost) => {
            let addition = "and waiting in the interpreter is not what slows this program down";
            Some(machine_full(summary, *lost, addition))
        }
        Verdict::Lock(problem) => {
            Some(slowed_down(FindingKind::Waits, "Waiting in the interpreter, which has no lock,", problem))
        }
    }
}

/// Whether waits could be recorded.
fn is_seen(summary: &Summary) -> bool {
    summary.about("waits_obstacle").is_none()
}

fn too_short(summary: &Summary) -> Finding {
    let text = format!(
        "Too short to tell: the recording took {}, and threads waited in the interpreter, which has no lock, {} times.",
        duration(summary.length),
        summary.contended.count,
    );
    let advice = if summary.length < LONG_ENOUGH {
        "Record the program while it does its usual work, for some seconds."
    } else {
        "Record more of what the program does."
    };
    Finding::new(FindingKind::TooShort, text).advise(advice)
}

fn not_much(summary: &Summary, lost: f64) -> Finding {
    let WaitTimes { total, max, .. } = summary.contended;
    let why = if lost < WEAK {
        format!(
            "its threads lost {} of their active time so, {} at most at a time",
            percent(lost),
            duration(max)
        )
    } else {
        let (total, max) = (duration(total), duration(max));
        format!(
            "its threads, which idle most of the time, did so for {total} in all, {max} at most at a time"
        )
    };
    let text = format!(
        "This interpreter has no lock, and waiting in it is not what slows this program down: {why}."
    );
    Finding::new(FindingKind::Unused, text)
}

/// What the numbers rest on.
pub(super) fn estimate(summary: &Summary) -> String {
    let waits = match summary.about("waits_obstacle") {
        None => "Stop-the-world pauses and waits for the locks of objects are recorded exactly.".to_owned(),
        Some(obstacle) => {
            format!(
                "Stop-the-world pauses and waits for the locks of objects are not seen, because {obstacle}."
            )
        }
    };
    let why = summary.about("obstacle").unwrap_or("this interpreter runs without a lock");
    format!(
        "These numbers are estimated from samples, not recorded exactly, because {why}. A thread counts as computing for \
         the time that it used a processor. {waits}"
    )
}

/// What threads waited for, in an interpreter without a lock.
pub(super) fn waits(summary: &Summary) -> Vec<Finding> {
    let of_kind = |kind| summary.locks.iter().filter(move |lock| lock.kind == kind && lock.waits.count > 0);
    let mut objects: Vec<&LockSummary> =
        of_kind(LockKind::Objects).filter(|lock| lost(summary, lock) >= LITTLE).collect();
    objects.sort_by_key(|lock| std::cmp::Reverse(lock.waits.total));
    objects.truncate(TYPES);
    let spinning = of_kind(LockKind::Spinning).filter(|lock| lost(summary, lock) >= LITTLE);
    let mut all: Vec<&LockSummary> = of_kind(LockKind::StopTheWorld).chain(spinning).chain(objects).collect();
    all.sort_by_key(|lock| std::cmp::Reverse(lock.waits.total));
    all.into_iter().map(|lock| finding(summary, lock)).collect()
}

fn finding(summary: &Summary, lock: &LockSummary) -> Finding {
    let text = format!("{}.", capital(&in_words(summary, lock)));
    let (kind, advice) = match lock.kind {
        LockKind::Objects => (FindingKind::SharedObjects, APART),
        LockKind::Spinning => (FindingKind::Spinning, ""),
        _ if is_for_garbage(summary, lock) => (FindingKind::StopTheWorld, COLLECT_LESS),
        _ => (FindingKind::StopTheWorld, STOP_LESS),
    };
    let finding = Finding { group: culprit(summary, lock).map(|(name, _)| name), ..Finding::new(kind, text) };
    if lost(summary, lock) < WEAK || lock.kind == LockKind::Spinning {
        return Finding { weight: Weight::Note, ..finding };
    }
    finding.advise(advice)
}

const APART: &str = "Give each thread an object of its own and merge them at the end, or change the shared one less often and \
     more at a time.";
const COLLECT_LESS: &str = "Collect garbage less often: fewer calls of gc.collect(), a higher gc.set_threshold(), gc.freeze() \
     once the program has started; and keep fewer containers alive.";
const STOP_LESS: &str = "Do what stops all threads before they start: changing classes and functions, setting functions that \
     trace or profile, os.fork().";

/// The share of their active time that all threads lost in waits for the lock.
fn lost(summary: &Summary, lock: &LockSummary) -> f64 {
    per(lock.waits.total, summary.contended.total + summary.times.computing())
}

/// How long and how often threads waited for a lock, and behind which thread.
pub(super) fn in_words(summary: &Summary, lock: &LockSummary) -> String {
    let waits = &lock.waits;
    let figures = format!(
        "(p50 {}, p99 {}, longest {}; {} of their active time)",
        duration(waits.p50),
        duration(waits.p99),
        duration(waits.max),
        percent(lost(summary, lock)),
    );
    let times = if waits.count == 1 { "once".to_owned() } else { format!("{} times", waits.count) };
    let total = duration(waits.total);
    if lock.kind == LockKind::Objects {
        let name = type_of_objects(&lock.name);
        return format!(
            "threads waited {times} for {total} in all for the locks of `{name}` objects {figures}"
        );
    }
    if lock.kind == LockKind::Spinning {
        return format!(
            "threads tried {times} for {total} in all (p50 {}, p99 {}, longest {}) to get locks that others had, and got \
             them without going to sleep: locks of objects, of the interpreter, or of the program",
            duration(waits.p50),
            duration(waits.p99),
            duration(waits.max),
        );
    }
    let behind = match culprit(summary, lock) {
        Some((name, share)) => format!(", {} of that behind `{name}`", percent(share)),
        None => String::new(),
    };
    let purpose = if is_for_garbage(summary, lock) { ", mostly to collect garbage" } else { "" };
    let pauses = if lock.holds > 0 { format!(" in {} pauses", lock.holds) } else { String::new() };
    format!(
        "stop-the-world pauses stopped threads {times}{pauses}, for {total} in all {figures}{behind}{purpose}"
    )
}

/// The group behind which threads waited most, with its share of the waiting.
fn culprit(summary: &Summary, lock: &LockSummary) -> Option<(String, f64)> {
    let mut behind = vec![0; summary.groups.len()];
    let pairs = lock.by_group.iter().flat_map(|row| &row.by);
    pairs.for_each(|(group, time)| behind[*group] += time);
    let (group, time) = behind.into_iter().enumerate().max_by_key(|(_, time)| *time)?;
    (time > 0).then(|| (summary.groups[group].name.clone(), per(time, lock.waited).min(1.0)))
}

/// Whether most of the pauses' time went into collecting garbage. Without an interpreter lock, threads count as collecting
/// only while they have stopped the others.
fn is_for_garbage(summary: &Summary, lock: &LockSummary) -> bool {
    lock.held > 0 && per(summary.times.gc, lock.held) >= MOST
}
