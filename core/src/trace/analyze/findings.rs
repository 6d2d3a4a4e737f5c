//! Findings: what the numbers of a recording mean, and what to do about it.
//!
//! The verdict comes first (`verdict.rs`), then its causes: a list of rules, each with fixed thresholds. A
//! rule that matches gives one finding with the numbers in its text. `core/tests/trace_analysis.rs` checks
//! each on recordings with known causes.

use super::finding::{Finding, FindingKind, Strength};
use super::summary::{GroupSummary, LockSummary, Summary, ThreadSummary, per};
use super::units::{duration, list, percent};
use super::verdict::{LONG_ENOUGH, Verdict};

/// The share of the time for which a lock was held or wanted below which the waits for it cause little.
const LITTLE: f64 = 0.05;

/// The findings, the most important ones first.
pub(super) fn of(summary: &Summary) -> Vec<Finding> {
    let words = Words::of(summary);
    let mut all = caveats(summary);
    let verdict = Verdict::of(summary);
    all.push(judged(summary, &verdict));
    if let Verdict::Problem(..) = verdict {
        let locks = summary.locks.iter();
        for lock in locks.filter(|lock| per(lock.waited, lock.waited + lock.held) >= LITTLE) {
            let lock = Contended::new(summary, lock);
            all.extend(main_holder(&lock, &words));
            all.extend(brief_users(&lock, &words));
            all.extend(saturated(&lock, &words));
            all.extend(hand_over(&lock));
        }
    }
    all.extend(garbage(summary));
    all.extend(off_lock(summary));
    all
}

/// The verdict in words, with what it rests on.
fn judged(summary: &Summary, verdict: &Verdict<'_>) -> Finding {
    match *verdict {
        Verdict::Unused => Finding::new(
            FindingKind::Unused,
            "No thread used an interpreter lock during this recording.".into(),
        ),
        Verdict::TooShort => too_short(summary),
        Verdict::NoProblem(lost) => {
            let text = format!(
                "The lock is not what slows this program down: no thread lost more than {} of its active time waiting for it.",
                percent(lost)
            );
            Finding::new(FindingKind::NotTheLock, text)
        }
        Verdict::Problem(group, strength) => problem(group, strength),
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

fn problem(group: &GroupSummary, strength: Strength) -> Finding {
    let how = match strength {
        Strength::Weak => "a little",
        Strength::Clear => "clearly",
        Strength::Strong => "strongly",
    };
    let waits = &group.contended;
    let text = format!(
        "Waiting for the lock slows this program down {how}: {} lost {} of {} active time in {} waits (p50 {}, p99 {}, longest {}).",
        group.named(),
        percent(group.lost),
        if group.threads.len() == 1 { "its" } else { "their" },
        waits.count,
        duration(waits.p50),
        duration(waits.p99),
        duration(waits.max),
    );
    Finding { strength: Some(strength), ..Finding::new(FindingKind::Lock, text).about(&group.name) }
}

/// A lock that threads waited for, and the groups of these threads.
struct Contended<'a> {
    summary: &'a Summary,
    lock: &'a LockSummary,
    /// The index in `summary.groups` for each thread.
    group_of: Vec<usize>,
}

impl<'a> Contended<'a> {
    fn new(summary: &'a Summary, lock: &'a LockSummary) -> Self {
        let mut group_of = vec![0; summary.threads.len()];
        for (index, group) in summary.groups.iter().enumerate() {
            group.threads.iter().for_each(|thread| group_of[*thread] = index);
        }
        Self { summary, lock, group_of }
    }

    fn group(&self, thread: usize) -> &'a GroupSummary {
        &self.summary.groups[self.group_of[thread]]
    }

    /// The group during whose holds others waited longest, for how long, and for how long they waited in all.
    /// The threads of a group wait for each other; a thread alone does not wait for itself.
    fn worst(&self) -> Option<(usize, u64, u64)> {
        let mut inflicted = vec![0_u64; self.summary.groups.len()];
        for (holder, time) in self.lock.blame.iter().flat_map(|row| &row.by) {
            inflicted[self.group_of[*holder]] += time;
        }
        let worst =
            (0..inflicted.len()).max_by_key(|group| (inflicted[*group], std::cmp::Reverse(*group)))?;
        let is_alone = self.summary.groups[worst].threads.len() == 1;
        let others = self.lock.blame.iter().filter(|row| !is_alone || self.group_of[row.thread] != worst);
        Some((worst, inflicted[worst], others.map(|row| row.waited).sum()))
    }

    /// The groups that waited longest, except `but` if that is a single thread, and how many more there are.
    fn waiters(&self, but: usize) -> String {
        let mut seen = Vec::new();
        for row in &self.lock.blame {
            let group = self.group_of[row.thread];
            if !seen.contains(&group) && (group != but || self.summary.groups[but].threads.len() > 1) {
                seen.push(group);
            }
        }
        list(seen.into_iter().map(|group| match group {
            own if own == but => "its own threads".to_owned(),
            group => self.summary.groups[group].named(),
        }))
    }

    fn name(&self) -> String {
        if self.summary.locks.len() > 1 { format!("the lock {}", self.lock.name) } else { "the lock".into() }
    }
}

/// The numbers of all threads of a group together.
struct Totals {
    acquisitions: u64,
    longest_hold: u64,
    holding: u64,
    waiting: u64,
}

impl Totals {
    fn of(summary: &Summary, group: &GroupSummary) -> Self {
        let members = || group.threads.iter().map(|thread| &summary.threads[*thread]);
        Self {
            acquisitions: members().map(|thread: &ThreadSummary| thread.acquisitions).sum(),
            longest_hold: members().map(|thread| thread.longest_hold).max().unwrap_or(0),
            holding: group.times.holding(),
            waiting: group.times.waiting,
        }
    }
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

fn caveats(summary: &Summary) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |kind: FindingKind, holds: bool, text: String| {
        if holds {
            all.push(Finding::new(kind, text));
        }
    };
    let (lost, violations) = (summary.lost, summary.violations);
    add(FindingKind::Estimate, summary.is_estimate(), estimate(summary.about("obstacle")));
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

fn estimate(obstacle: Option<&str>) -> String {
    let why = obstacle.map(|obstacle| format!(", because {obstacle}")).unwrap_or_default();
    format!(
        "These numbers are estimated from samples, not recorded exactly{why}. A thread counts as running for the \
         time that it used a processor; of waiting, only the sampler's own is seen, which stands for any thread that \
         wants the lock."
    )
}

/// Most of the waiting was behind one thread, or behind one pool.
fn main_holder(lock: &Contended<'_>, words: &Words) -> Option<Finding> {
    let (holder, inflicted, waited) = lock.worst()?;
    let share = per(inflicted, waited);
    if share < 0.5 {
        return None;
    }
    let group = &lock.summary.groups[holder];
    let totals = Totals::of(lock.summary, group);
    let text = format!(
        "{} held {} for {} of the time in which {} waited; the longest hold took {}.",
        group.named(),
        lock.name(),
        percent(share),
        lock.waiters(holder),
        duration(totals.longest_hold),
    );
    let (it, computes, takes) =
        if group.threads.len() == 1 { ("It", "computes", "takes") } else { ("They", "compute", "take") };
    let advice = if totals.longest_hold * 2 >= words.time_slice {
        format!(
            "{it} {computes} with the lock. Move that work off the lock (an operation that releases it, such as offlock's) or to {}.",
            words.elsewhere
        )
    } else {
        let each = duration(totals.holding / totals.acquisitions.max(1));
        format!(
            "{it} {takes} the lock {} times for {each} each. Do more per turn (batch calls), or move that work to {}.",
            totals.acquisitions, words.elsewhere
        )
    };
    Some(Finding::new(FindingKind::MainHolder, text).about(&group.name).advise(advice))
}

/// Threads that need the lock briefly, but wait about a time slice for it each time.
fn brief_users(lock: &Contended<'_>, words: &Words) -> Option<Finding> {
    let suffers = |group: &GroupSummary| {
        let totals = Totals::of(lock.summary, group);
        let turns = totals.acquisitions.max(1);
        let (wait, hold) = (totals.waiting / turns, totals.holding / turns);
        totals.acquisitions >= 5 && wait * 2 >= words.time_slice && hold * 5 <= wait
    };
    let mut sufferers: Vec<&GroupSummary> = Vec::new();
    for group in lock.lock.blame.iter().map(|row| lock.group(row.thread)) {
        if !sufferers.iter().any(|other| std::ptr::eq(*other, group)) && suffers(group) {
            sufferers.push(group);
        }
    }
    let first = Totals::of(lock.summary, sufferers.first()?);
    let turns = first.acquisitions.max(1);
    let text = format!(
        "{} needed {} only briefly ({} at a time) but waited {} for it on average, {} times: each input or output costs up to a time slice ({}) of the thread that computes.",
        list(sufferers.iter().map(|group| group.named())),
        lock.name(),
        duration(first.holding / turns),
        duration(first.waiting / turns),
        first.acquisitions,
        duration(words.time_slice),
    );
    let advice = format!(
        "Take the computing threads out of this process's lock (off the lock, or {}); then these threads run at full speed.",
        words.elsewhere
    );
    Some(Finding::new(FindingKind::BriefUsers, text).about(&sufferers[0].name).advise(advice))
}

/// The lock is always held, and threads queue for it.
fn saturated(lock: &Contended<'_>, words: &Words) -> Option<Finding> {
    if lock.lock.utilization < 0.9 || lock.lock.mean_waiters < 0.5 {
        return None;
    }
    let text = format!(
        "{} was held {} of the time, and on average {:.1} threads waited for it; {:.2} threads computed at a time.",
        capital(&lock.name()),
        percent(lock.lock.utilization),
        lock.lock.mean_waiters,
        lock.summary.useful_parallelism,
    );
    let advice =
        format!("More threads cannot make this faster. Move work off the lock or to {}.", words.elsewhere);
    Some(Finding::new(FindingKind::Saturated, text).advise(advice))
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
fn hand_over(contended: &Contended<'_>) -> Option<Finding> {
    let Contended { summary, lock, .. } = *contended;
    let free: u64 = lock.blame.iter().map(|row| row.by_no_thread).sum();
    let share = per(free, lock.waited);
    if summary.is_estimate() || share < 0.25 {
        return None;
    }
    let per_second = lock.holds as f64 / (summary.length as f64 / 1e9);
    // Several threads may wait while it passes to one.
    let on_the_way = free.min(summary.length.saturating_sub(lock.held)) / lock.holds.max(1);
    let few = lock.holds < FEW_HAND_OVERS || per_second < FEW_HAND_OVERS as f64;
    if few || on_the_way > LONG_WAY {
        return Some(kept_from_a_processor(contended, share, on_the_way));
    }
    let text = format!(
        "For {} of the waiting no thread held {}: it was being handed over, {per_second:.0} times a second.",
        percent(share),
        contended.name(),
    );
    Some(
        Finding::new(FindingKind::HandOver, text).advise(
            "Switch less: batch small operations, use fewer threads, keep small work under the lock.",
        ),
    )
}

/// The lock was free, and the threads that wanted it did not run.
fn kept_from_a_processor(lock: &Contended<'_>, share: f64, each: u64) -> Finding {
    let text = format!(
        "For {} of the waiting no thread held {}: the threads that wanted it had no processor yet, {} each time.",
        percent(share),
        lock.name(),
        duration(each),
    );
    let advice = "The lock is not the cause. Let fewer threads compute at a time, or give the program more processors.";
    Finding::new(FindingKind::MachineFull, text).advise(advice)
}

fn garbage(summary: &Summary) -> Option<Finding> {
    let (gc, holding) = (summary.times.gc, summary.times.holding());
    if per(gc, holding) < 0.1 || per(gc, summary.length) < LITTLE {
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
