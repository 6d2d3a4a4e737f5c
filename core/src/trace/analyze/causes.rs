//! The causes of waiting for a lock: rules, each with fixed thresholds.

use super::contention::LATE;
use super::finding::{Finding, FindingKind};
use super::loss::Free;
use super::summary::{
    BlameRow, GroupSummary, LockSummary, MarkBlame, MarkSummary, Summary, ThreadSummary, group_of, per,
};
use super::units::{capital, duration, list, percent};

/// The share of the time for which a lock was held or wanted below which the waits for it cause little.
const LITTLE: f64 = 0.05;
/// A holder is the main one from this share of the waiting on.
const MOST: f64 = 0.5;
/// The least share of the waiting that is a cause of its own, where the rest of it is no thread's.
const MUCH: f64 = 0.25;

/// Why threads waited for the locks of a program that this slows down.
pub(super) fn of(summary: &Summary) -> Vec<Finding> {
    if summary.has_no_lock() {
        return Vec::new();
    }
    let words = Words::of(summary);
    let locks = summary.locks.iter();
    let wanted = locks.filter(|lock| per(lock.waited, lock.waited + lock.held) >= LITTLE);
    let of_lock = |lock| {
        let lock = Contended::new(summary, lock);
        let causes = [main_holder(&lock, &words), brief_users(&lock, &words), saturated(&lock, &words)];
        causes.into_iter().chain([hand_over(&lock)]).flatten().collect::<Vec<_>>()
    };
    wanted.flat_map(of_lock).collect()
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

/// A lock that threads waited for, and the groups of these threads.
struct Contended<'a> {
    summary: &'a Summary,
    lock: &'a LockSummary,
    /// The index in `summary.groups` for each thread.
    group_of: Vec<usize>,
}

/// The group behind which others waited longest.
struct Holder<'a> {
    group: usize,
    /// The share of the others' waiting that was behind it, apart from waits for a processor.
    share: f64,
    /// Its share of all their waiting.
    of_all: f64,
    /// What it did meanwhile, mostly.
    mark: Option<&'a MarkSummary>,
}

impl<'a> Contended<'a> {
    fn new(summary: &'a Summary, lock: &'a LockSummary) -> Self {
        Self { summary, lock, group_of: group_of(&summary.groups, summary.threads.len()) }
    }

    fn groups(&self) -> &'a [GroupSummary] {
        &self.summary.groups
    }

    fn is_alone(&self, group: usize) -> bool {
        self.groups()[group].threads.len() == 1
    }

    /// The threads of a group wait for each other; a thread alone does not wait for itself.
    fn worst(&self) -> Option<Holder<'a>> {
        let inflicted = self.inflicted();
        let worst =
            (0..inflicted.len()).max_by_key(|group| (inflicted[*group], std::cmp::Reverse(*group)))?;
        let is_other = |thread: usize| !self.is_alone(worst) || self.group_of[thread] != worst;
        let others = || self.lock.blame.iter().filter(|row| is_other(row.thread));
        // Time in which the lock was free for want of a processor is nobody's.
        let is_late = Free::of(self.summary, self.lock).is_late;
        let behind = |row: &BlameRow| row.waited - if is_late { row.by_no_thread } else { 0 };
        let share = per(inflicted[worst], others().map(behind).sum());
        let of_all = per(inflicted[worst], others().map(|row| row.waited).sum());
        Some(Holder { group: worst, share, of_all, mark: self.main_mark(worst, inflicted[worst]) })
    }

    /// How long others waited behind each group. The blame of each thread has a column for some threads only;
    /// that by marks has all.
    fn inflicted(&self) -> Vec<u64> {
        let mut inflicted = vec![0_u64; self.groups().len()];
        for (holder, time) in self.lock.blame.iter().flat_map(|row| &row.by) {
            inflicted[self.group_of[*holder]] += time;
        }
        for by_mark in &self.lock.by_mark {
            inflicted[by_mark.group] = inflicted[by_mark.group].max(by_mark.inflicted);
        }
        inflicted
    }

    /// The mark in which the group was for most of the time in which others waited behind it.
    fn main_mark(&self, group: usize, inflicted: u64) -> Option<&'a MarkSummary> {
        let of_group = self.lock.by_mark.iter().filter(|by_mark| by_mark.group == group);
        let marked = of_group.filter_map(|by_mark| Some((by_mark.mark?, by_mark.inflicted)));
        let (mark, most) = marked.max_by_key(|(mark, time)| (*time, std::cmp::Reverse(*mark)))?;
        (per(most, inflicted) >= MOST).then(|| &self.summary.marks[mark])
    }

    /// How long the holder held the lock at the most while others waited.
    fn longest_hold(&self, holder: &Holder<'_>) -> u64 {
        let is = |mark: &MarkSummary, other: usize| std::ptr::eq(mark, &raw const self.summary.marks[other]);
        let is_in =
            |mark: &MarkSummary, by_mark: &MarkBlame| by_mark.mark.is_some_and(|other| is(mark, other));
        let of_group = self.lock.by_mark.iter().filter(|by_mark| by_mark.group == holder.group);
        let of_holder = of_group.filter(|by_mark| holder.mark.is_none_or(|mark| is_in(mark, by_mark)));
        of_holder.map(|by_mark| by_mark.longest_hold).max().unwrap_or(0)
    }

    /// The groups that waited longest, except `but` if that is a single thread, and how many more there are.
    fn waiters(&self, but: usize) -> String {
        let mut seen = Vec::new();
        for row in &self.lock.blame {
            let group = self.group_of[row.thread];
            if !seen.contains(&group) && (group != but || !self.is_alone(but)) {
                seen.push(group);
            }
        }
        list(seen.into_iter().map(|group| match group {
            own if own == but => "its own threads".to_owned(),
            group => self.groups()[group].named(),
        }))
    }

    fn name(&self) -> String {
        if self.summary.locks.len() > 1 { format!("the lock {}", self.lock.name) } else { "the lock".into() }
    }
}

/// The numbers of all threads of a group together.
struct Totals {
    acquisitions: u64,
    holding: u64,
}

impl Totals {
    fn of(summary: &Summary, group: &GroupSummary) -> Self {
        let members = || group.threads.iter().map(|thread| &summary.threads[*thread]);
        Self {
            acquisitions: members().map(|thread: &ThreadSummary| thread.acquisitions).sum(),
            holding: group.times.holding(),
        }
    }

    fn each_hold(&self) -> u64 {
        self.holding / self.acquisitions.max(1)
    }
}

/// Most of the waiting was behind one thread, or behind one pool.
fn main_holder(lock: &Contended<'_>, words: &Words) -> Option<Finding> {
    let holder = lock.worst().filter(|holder| holder.share >= MOST && holder.of_all >= MUCH)?;
    let group = &lock.groups()[holder.group];
    let totals = Totals::of(lock.summary, group);
    let (subject, share, others) = match holder.mark {
        Some(mark) => {
            let (share, others) = behind(mark, lock.lock);
            (format!("`{}` of {}", mark.span.name, group.named()), share, others)
        }
        None if holder.share - holder.of_all >= LITTLE => {
            let others = lock.waiters(holder.group);
            (group.named(), holder.share, format!("{others} waited, apart from waits for a processor"))
        }
        None => (group.named(), holder.share, format!("{} waited", lock.waiters(holder.group))),
    };
    let text = format!(
        "{subject} held {} for {} of the time in which {others}; the longest hold kept them waiting for {}.",
        lock.name(),
        percent(share),
        duration(lock.longest_hold(&holder)),
    );
    let finding = Finding::new(FindingKind::MainHolder, text).about(&group.name);
    let mark = holder.mark.map(|mark| mark.span.name.clone());
    Some(Finding { mark, ..finding }.advise(what_to_move(group, &totals, words)))
}

/// The share of the waiting outside of a mark that was behind it; if there was little, of all waiting.
fn behind(mark: &MarkSummary, lock: &LockSummary) -> (f64, String) {
    if per(mark.others_waited, lock.waited) >= LITTLE {
        (per(mark.inflicted_on_others, mark.others_waited), "others waited".into())
    } else {
        (per(mark.inflicted, lock.waited), "threads waited".into())
    }
}

/// Work takes the lock for a millisecond and more; what takes it for less takes it too often.
fn what_to_move(group: &GroupSummary, totals: &Totals, words: &Words) -> String {
    let (it, computes, takes) =
        if group.threads.len() == 1 { ("It", "computes", "takes") } else { ("They", "compute", "take") };
    if group.typical_hold >= LATE {
        return format!(
            "{it} {computes} with the lock. Move that work off the lock (an operation that releases it, such as offlock's) or to {}.",
            words.elsewhere
        );
    }
    format!(
        "{it} {takes} the lock {} times for {} each. Do more per turn (batch calls), or move that work to {}.",
        totals.acquisitions,
        duration(totals.each_hold()),
        words.elsewhere
    )
}

/// The number of contended waits from which on their median is typical.
const SOME_WAITS: u64 = 10;

/// Threads that need the lock briefly, but wait long for it each time, behind others that compute.
fn brief_users(lock: &Contended<'_>, words: &Words) -> Option<Finding> {
    let worst = lock.worst().map(|holder| holder.group);
    let sufferers = lock.groups().iter().enumerate().filter(|(index, _)| Some(*index) != worst);
    let sufferers = sufferers.map(|(_, group)| group).filter(|group| is_brief(lock, group));
    let mut sufferers: Vec<&GroupSummary> = sufferers.collect();
    sufferers.sort_by_key(|group| std::cmp::Reverse(group.contended.total));
    let first = sufferers.first()?;
    let text = format!(
        "{} needed {} only briefly ({} at a time) but waited {} for it (p50), {} times: each input or output costs up to a time slice ({}) of the threads that compute.",
        list(sufferers.iter().map(|group| group.named())),
        lock.name(),
        duration(Totals::of(lock.summary, first).each_hold()),
        duration(first.contended.p50),
        first.contended.count,
        duration(words.time_slice),
    );
    let advice = format!(
        "Take the computing threads out of this process's lock (off the lock, or {}); then these threads run at full speed.",
        words.elsewhere
    );
    Some(Finding::new(FindingKind::BriefUsers, text).about(&first.name).advise(advice))
}

fn is_brief(lock: &Contended<'_>, group: &GroupSummary) -> bool {
    let hold = Totals::of(lock.summary, group).each_hold();
    let waits = &group.contended;
    waits.count >= SOME_WAITS && waits.p50 >= LATE && hold < LATE && hold * 5 <= waits.p50
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

/// From so many hand-overs a second on, they are worth avoiding. Where fewer take long, the system was late.
const OFTEN: f64 = 50.0;

/// During much of the waiting, no thread held the lock, although there were processors.
fn hand_over(contended: &Contended<'_>) -> Option<Finding> {
    let Contended { summary, lock, .. } = *contended;
    let free = Free::of(summary, lock);
    let share = per(free.waited, lock.waited);
    if summary.is_estimate() || free.is_late || share < MUCH || free.per_second < OFTEN {
        return None;
    }
    let text = format!(
        "For {} of the waiting no thread held {}: it was being handed over, {:.0} times a second.",
        percent(share),
        contended.name(),
        free.per_second,
    );
    let advice = "Switch less: batch small operations, use fewer threads, keep small work under the lock.";
    Some(Finding::new(FindingKind::HandOver, text).advise(advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::analyze::timeline::Usage;

    const MS: u64 = 1_000_000;

    /// Two threads that waited for 100 ms each, a part of it behind each other and the rest while the lock was free,
    /// because the next thread had no processor.
    #[test]
    fn a_thread_that_held_the_lock_for_little_of_the_waiting_is_no_cause() {
        for (behind, expected) in [
            (24 * MS, None),
            (25 * MS, Some("waited, apart from waits for a processor;")),
            (95 * MS, Some("waited, apart from waits for a processor;")),
            (96 * MS, Some("waited;")),
        ] {
            let row = |thread| BlameRow {
                thread,
                waited: 100 * MS,
                by: vec![(1 - thread, behind)],
                by_others: 0,
                by_no_thread: 100 * MS - behind,
            };
            let group =
                GroupSummary { name: "worker *".into(), threads: vec![0, 1], ..GroupSummary::default() };
            let (blame, waited) = (vec![row(0), row(1)], 200 * MS);
            let lock = LockSummary { holds: 20, held: 50 * MS, waited, blame, ..LockSummary::default() };
            let summary = Summary {
                length: 1000 * MS,
                threads: vec![ThreadSummary::default(), ThreadSummary::default()],
                groups: vec![group],
                locks: vec![lock],
                usage: Some(Usage { run_delay_waiting: Some(100 * MS), ..Usage::default() }),
                ..Summary::default()
            };
            let causes = of(&summary);
            let text =
                causes.iter().find(|cause| cause.kind == FindingKind::MainHolder).map(|cause| &cause.text);
            assert_eq!(text.is_some(), expected.is_some(), "{behind} {causes:?}");
            let is_said = text.zip(expected).is_none_or(|(text, expected)| text.contains(expected));
            assert!(is_said, "{behind} {text:?}");
        }
    }
}
