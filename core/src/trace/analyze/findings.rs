//! Findings: what the numbers of a recording mean, and what to do about it.
//!
//! A list of rules, each with fixed thresholds. A rule that matches gives one finding with the numbers in its
//! text. `core/tests/trace_analysis.rs` checks each on recordings with known causes.

use super::finding::{Finding, Weight};
use super::summary::{LockSummary, Summary, ThreadSummary, per};
use super::units::{duration, list, percent};

/// The average number of waiting threads below which a lock is no problem.
const FEW_WAITERS: f64 = 0.05;

/// The findings, the most important ones first.
pub(super) fn of(summary: &Summary) -> Vec<Finding> {
    let words = Words::of(summary);
    let mut all = caveats(summary);
    for lock in &summary.locks {
        if lock.mean_waiters >= FEW_WAITERS {
            all.extend(main_holder(summary, lock, &words));
            all.extend(brief_users(summary, lock, &words));
            all.extend(saturated(summary, lock, &words));
            all.extend(hand_over(summary, lock, &words));
        }
    }
    all.extend(garbage(summary));
    all.extend(off_lock(summary));
    if !all.iter().any(|finding| finding.weight == Weight::Problem) {
        all.push(no_problem(summary));
    }
    all
}

/// What depends on the interpreter.
struct Words {
    elsewhere: &'static str,
    time_slice: u64,
}

impl Words {
    fn of(summary: &Summary) -> Self {
        match summary.about("language") {
            Some("ruby") => Self { elsewhere: "another process or a Ractor", time_slice: 100_000_000 },
            Some("python") => {
                Self { elsewhere: "another process or a subinterpreter", time_slice: 5_000_000 }
            }
            _ => Self { elsewhere: "another process", time_slice: 10_000_000 },
        }
    }
}

fn finding(weight: Weight, text: String, advice: &str) -> Finding {
    Finding { weight, text, advice: (!advice.is_empty()).then(|| advice.to_owned()) }
}

fn caveats(summary: &Summary) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |holds: bool, text: String| {
        if holds {
            all.push(finding(Weight::Caveat, text, ""));
        }
    };
    let (lost, violations) = (summary.lost, summary.violations);
    add(summary.is_estimate(), estimate(summary.about("obstacle")));
    add(
        lost > 0,
        format!("{lost} of {} events were lost: times around them are wrong.", summary.events + lost),
    );
    add(
        violations > 0,
        format!(
            "{violations} transitions contradict each other: a lock had two holders, or a thread released what it did not hold."
        ),
    );
    if let Some(damage) = &summary.damage {
        let text = if summary.is_incomplete { format!("Incomplete: {damage}") } else { capital(damage) };
        add(true, format!("{text}."));
    }
    all
}

fn estimate(obstacle: Option<&str>) -> String {
    let why = obstacle.map(|obstacle| format!(", because {obstacle}")).unwrap_or_default();
    format!(
        "These numbers are estimated from samples, not recorded exactly{why}. A thread counts as running for the \
         time that it used a processor; of waiting, only the sampler's own is seen, which stands for any thread that \
         wants the lock."
    )
}

fn named(thread: &ThreadSummary) -> String {
    format!("`{}`", thread.name)
}

/// The names of the threads that waited longest for a lock, except `but`, and how many more there are.
fn waiters(summary: &Summary, lock: &LockSummary, but: usize) -> String {
    let others = lock.blame.iter().filter(|row| row.thread != but);
    list(others.map(|row| named(&summary.threads[row.thread])))
}

fn in_lock(summary: &Summary, lock: &LockSummary) -> String {
    if summary.locks.len() > 1 { format!("the lock {}", lock.name) } else { "the lock".into() }
}

/// Most of the waiting was behind one thread.
fn main_holder(summary: &Summary, lock: &LockSummary, words: &Words) -> Option<Finding> {
    let (holder, inflicted) = *lock.holders.first()?;
    let others: u64 = lock.blame.iter().filter(|row| row.thread != holder).map(|row| row.waited).sum();
    let share = per(inflicted, others);
    if share < 0.5 || per(inflicted, summary.length) < FEW_WAITERS {
        return None;
    }
    let thread = &summary.threads[holder];
    let text = format!(
        "{} held {} for {} of the time in which {} waited; its longest hold took {}.",
        named(thread),
        in_lock(summary, lock),
        percent(share),
        waiters(summary, lock, holder),
        duration(thread.longest_hold),
    );
    let advice = if thread.longest_hold * 2 >= words.time_slice {
        format!(
            "It computes with the lock. Move that work off the lock (an operation that releases it, such as offlock's) or to {}.",
            words.elsewhere
        )
    } else {
        let each = duration(thread.times.holding() / thread.acquisitions.max(1));
        format!(
            "It takes the lock {} times for {each} each. Do more per acquisition (batch calls), or move that work to {}.",
            thread.acquisitions, words.elsewhere
        )
    };
    Some(finding(Weight::Problem, text, &advice))
}

/// Threads that need the lock briefly, but wait about a time slice for it each time.
fn brief_users(summary: &Summary, lock: &LockSummary, words: &Words) -> Option<Finding> {
    let suffers = |thread: &&ThreadSummary| {
        let turns = thread.acquisitions.max(1);
        let (wait, hold) = (thread.times.waiting / turns, thread.times.holding() / turns);
        thread.acquisitions >= 5 && wait * 2 >= words.time_slice && hold * 5 <= wait
    };
    let rows = lock.blame.iter().map(|row| &summary.threads[row.thread]);
    let sufferers: Vec<&ThreadSummary> = rows.filter(suffers).collect();
    let first = sufferers.first()?;
    let turns = first.acquisitions.max(1);
    let text = format!(
        "{} needed {} only briefly ({} at a time) but waited {} for it on average, {} times: each input or output costs up to a time slice ({}) of the thread that computes.",
        list(sufferers.iter().map(|thread| named(thread))),
        in_lock(summary, lock),
        duration(first.times.holding() / turns),
        duration(first.times.waiting / turns),
        first.acquisitions,
        duration(words.time_slice),
    );
    let advice = format!(
        "Move the computation off the lock, or to {}; then these threads run at full speed.",
        words.elsewhere
    );
    Some(finding(Weight::Problem, text, &advice))
}

/// The lock is always held, and threads queue for it.
fn saturated(summary: &Summary, lock: &LockSummary, words: &Words) -> Option<Finding> {
    if lock.utilization < 0.9 || lock.mean_waiters < 0.5 {
        return None;
    }
    let text = format!(
        "{} was held {} of the time, and on average {:.1} threads waited for it; {:.2} threads computed at a time.",
        capital(&in_lock(summary, lock)),
        percent(lock.utilization),
        lock.mean_waiters,
        summary.useful_parallelism,
    );
    let advice =
        format!("More threads cannot make this faster. Move work off the lock or to {}.", words.elsewhere);
    Some(finding(Weight::Problem, text, &advice))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The longest time, in nanoseconds, for which a lock is free while it passes to a thread that is awake: that
/// takes microseconds.
const LONG_WAY: u64 = 1_000_000;
/// The number of hand-overs, in total or per second, below which fewer of them would gain little.
const FEW_HAND_OVERS: u64 = 100;

/// During much of the waiting, no thread held the lock.
fn hand_over(summary: &Summary, lock: &LockSummary, _words: &Words) -> Option<Finding> {
    let free: u64 = lock.blame.iter().map(|row| row.by_no_thread).sum();
    let share = per(free, lock.waited);
    if summary.is_estimate() || share < 0.25 || per(free, summary.length) < FEW_WAITERS {
        return None;
    }
    let per_second = lock.holds as f64 / (summary.length as f64 / 1e9);
    // Several threads may wait while it passes to one.
    let on_the_way = free.min(summary.length.saturating_sub(lock.held)) / lock.holds.max(1);
    let few = lock.holds < FEW_HAND_OVERS || per_second < FEW_HAND_OVERS as f64;
    if few || on_the_way > LONG_WAY {
        return Some(kept_from_a_processor(summary, lock, share, on_the_way));
    }
    let text = format!(
        "For {} of the waiting no thread held {}: it was being handed over, {per_second:.0} times a second.",
        percent(share),
        in_lock(summary, lock),
    );
    Some(finding(
        Weight::Problem,
        text,
        "Switch less: batch small operations, use fewer threads, keep small work under the lock.",
    ))
}

/// The lock was free, and the threads that wanted it did not run.
fn kept_from_a_processor(summary: &Summary, lock: &LockSummary, share: f64, each: u64) -> Finding {
    let text = format!(
        "For {} of the waiting no thread held {}: the threads that wanted it had no processor yet, {} each time.",
        percent(share),
        in_lock(summary, lock),
        duration(each),
    );
    let advice = "The lock is not the cause. Let fewer threads compute at a time, or give the program more processors.";
    finding(Weight::Problem, text, advice)
}

fn garbage(summary: &Summary) -> Option<Finding> {
    let (gc, holding) = (summary.times.gc, summary.times.holding());
    if per(gc, holding) < 0.1 || per(gc, summary.length) < FEW_WAITERS {
        return None;
    }
    let text = format!(
        "Garbage collection took {} of the time with the lock ({}).",
        percent(per(gc, holding)),
        duration(gc)
    );
    Some(finding(Weight::Note, text, "Allocate less in the hot paths, or tune the collector."))
}

fn off_lock(summary: &Summary) -> Option<Finding> {
    let time = summary.times.off_lock;
    if per(time, summary.length) < 0.01 {
        return None;
    }
    let names = list(summary.operations.iter().map(|operation| format!("`{}`", operation.name)));
    let text = format!(
        "Operations off the lock ({names}) ran for {} in all; {:.2} threads computed at a time.",
        duration(time),
        summary.useful_parallelism,
    );
    Some(finding(Weight::Note, text, ""))
}

fn no_problem(summary: &Summary) -> Finding {
    let share = percent(per(summary.times.waiting, summary.times.total()));
    let text = match summary.locks.first() {
        None => "No thread used an interpreter lock during this recording.".into(),
        Some(_) => format!(
            "The lock is not what slows this program down: threads waited for it {share} of their time."
        ),
    };
    finding(Weight::Note, text, "")
}
