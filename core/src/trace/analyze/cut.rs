//! Cuts a recording to a period and to some of its threads.
//!
//! The result is a recording like any other. What a thread was doing at the cut does not follow from the
//! events after it, so events at the cut say it again: that the thread is off the lock, that it waits, which
//! operations and marks are open. Their number is small, but acquisitions and releases are counted with them.
//! The threads that are left out stay as one, `other threads`, which holds the lock whenever one of them did,
//! with the stacks that they had: waiting stays explained.

use std::collections::BTreeMap;
use std::ops::Range;

use super::cut_stacks;
use super::holder_stacks::{is_of_lock, is_stack_of_holder};
use super::readings::{MachineUsed, Used};
use super::recording::{Moment, RecordedThread, Recording};
use crate::trace::format::definition::Stand;
use crate::trace::format::event::{Kind, Reason, pack_release, unpack_release};

impl Recording {
    /// The part of the recording in `period`, in nanoseconds since its beginning, with the threads whose
    /// names `keeps` selects; a thread without a name is called `thread` and its number. A period outside of
    /// the recording is shortened, at worst to nothing.
    pub fn cut(mut self, period: Range<u64>, keeps: impl Fn(&str) -> bool) -> Self {
        let start = self.start.saturating_add(period.start).min(self.end);
        let cut = Cut {
            start,
            end: self.start.saturating_add(period.end).clamp(start, self.end),
            is_estimate: self.is_estimate(),
        };
        cut_stacks::settle(&mut self);
        let mut left_out = BTreeMap::new();
        for (id, thread) in std::mem::take(&mut self.threads) {
            let Some(thread) = cut.thread(thread) else { continue };
            if keeps(&thread.name_or(id)) {
                self.threads.insert(id, thread);
            } else {
                cut.add_holds(&thread, &mut left_out);
            }
        }
        for moments in left_out.into_values() {
            let id = self.threads.keys().next_back().map_or(1, |last| last.saturating_add(1));
            self.threads.insert(id, cut.others(moments));
        }
        self.finish_cut(&cut)
    }

    fn finish_cut(mut self, cut: &Cut) -> Self {
        if (cut.start, cut.end) != (self.start, self.end) {
            self.losses.retain(|(time, _)| (cut.start..=cut.end).contains(time));
            self.lost = self.losses.iter().map(|(_, count)| count).sum();
            self.damage = self.damage.filter(|_| cut.end == self.end);
            self.usage.values_mut().for_each(|readings| *readings = cut.readings(readings));
            self.machine = cut.readings(&self.machine);
        }
        for (key, value) in &mut self.about {
            let Ok(number) = value.parse::<u64>() else { continue };
            if key == "start" || key == "started" {
                *value = (number + (cut.start - self.start)).to_string();
            }
        }
        (self.start, self.end) = (cut.start, cut.end);
        self.events = self.threads.values().map(|thread| thread.moments.len() as u64).sum();
        self
    }
}

/// A period on the clock of the recording.
struct Cut {
    start: u64,
    end: u64,
    is_estimate: bool,
}

impl Cut {
    /// A thread's part in the period; `None` if it did not live then.
    fn thread(&self, thread: RecordedThread) -> Option<RecordedThread> {
        let moments = &thread.moments;
        let time_of = |kind| moments.iter().find(|moment| moment.kind == kind).map(|moment| moment.time);
        let ended = time_of(Kind::ThreadEnd).is_some_and(|end| end <= self.start && self.start < self.end);
        let begins = time_of(Kind::ThreadStart).is_some_and(|start| start > self.end);
        if ended || begins {
            return None;
        }
        let first = moments.partition_point(|moment| moment.time < self.start);
        let last = first + moments[first..].partition_point(|moment| moment.time <= self.end);
        let [before, within, after] = [&moments[..first], &moments[first..last], &moments[last..]];
        let [at_start, at_end] = self.lock_at(before, within, after);
        let open = open(before).into_iter().map(|moment| Moment { time: self.start, ..moment });
        let first_stack = cut_stacks::at_start(self.start, before, &moments[first..]);
        let last_stack = cut_stacks::at_end(self.end, &moments[..last], after);
        let moments = at_start.into_iter().chain(open).chain(first_stack);
        let moments = moments.chain(within.iter().copied()).chain(last_stack).chain(at_end).collect();
        let stand = if before.is_empty() { thread.stand } else { Stand::Unknown };
        Some(RecordedThread { name: thread.name, stand, moments })
    }

    /// Events at the start and at the end of the period that tell the thread's relation to its lock, as far
    /// as the events within do not.
    fn lock_at(&self, before: &[Moment], within: &[Moment], after: &[Moment]) -> [Option<Moment>; 2] {
        let next = within.iter().chain(after).find(|moment| is_of_lock(moment));
        let next_kind = within.iter().find(|moment| is_of_lock(moment)).map(|moment| moment.kind);
        let at = |time, moment: &Moment, kind, argument| Some(Moment { time, kind, argument, ..*moment });
        let waits = |moment: &Moment, lock| match next_kind {
            Some(Kind::Acquired) => None,
            _ => at(self.start, moment, Kind::Wants, lock),
        };
        let holds = |moment: &Moment, lock| match next_kind {
            Some(_) => None,
            None => at(self.end, moment, Kind::Released, pack_release(lock, Reason::Blocks)),
        };
        match before.iter().rev().find(|moment| is_of_lock(moment)) {
            Some(last) if last.kind == Kind::Wants => [waits(last, last.argument), None],
            Some(last) if last.kind == Kind::Acquired => [None, holds(last, last.argument)],
            Some(last) => match unpack_release(last.argument) {
                (lock, Reason::Yields) => [waits(last, lock), None],
                (lock, Reason::Unheld) => {
                    let off = pack_release(lock, Reason::Blocks);
                    [at(self.start, last, Kind::Released, off), None]
                }
                _ => [at(self.start, last, Kind::Released, last.argument), None],
            },
            None if has_begun(before) || has_begun(within) => [None, None],
            None => match next {
                Some(next) if next.kind == Kind::Acquired && !self.is_estimate => {
                    [waits(next, next.argument), None]
                }
                Some(next) if next.kind == Kind::Released => match unpack_release(next.argument) {
                    (lock, Reason::Unheld) => [waits(next, lock), None],
                    (lock, _) => [None, holds(next, lock)],
                },
                _ => [None, None],
            },
        }
    }

    /// Adds the holds of a thread that is left out and its stacks meanwhile, by lock.
    fn add_holds(&self, thread: &RecordedThread, holds: &mut BTreeMap<u32, Vec<Moment>>) {
        add_stacks(thread, holds);
        let mut held = None;
        for moment in thread.moments.iter().filter(|moment| is_of_lock(moment)) {
            let (lock, reason) = unpack_release(moment.argument);
            if reason == Reason::Unheld {
                held = Some(moment.kind);
                continue;
            }
            let moments = holds.entry(lock).or_default();
            match moment.kind {
                Kind::Acquired => moments.push(*moment),
                Kind::Released if moment.time > self.start => {
                    if held.is_none() {
                        let (time, argument) = (self.start, lock);
                        moments.push(Moment { time, kind: Kind::Acquired, argument, ..*moment });
                    }
                    moments.push(Moment { argument: pack_release(lock, Reason::Blocks), ..*moment });
                }
                _ => {}
            }
            held = Some(moment.kind);
        }
    }

    /// The threads that are left out, as one that takes the lock whenever one of them did.
    fn others(&self, mut moments: Vec<Moment>) -> RecordedThread {
        moments.sort_by_key(|moment| (moment.time, moment.kind == Kind::Acquired));
        let begin = Moment { time: self.start, kind: Kind::ThreadStart, argument: 0, native: 0 };
        moments.insert(0, begin);
        RecordedThread { name: "other threads".into(), stand: Stand::Off, moments }
    }

    /// The readings in the period, and what the clocks showed at its start and end.
    fn readings<R: Reading>(&self, readings: &[R]) -> Vec<R> {
        let at = |time: u64| {
            let after = readings.partition_point(|reading| reading.time() < time);
            let [before, after] = [readings.get(after.checked_sub(1)?)?, readings.get(after)?];
            Some(before.towards(after, time))
        };
        let within = readings.iter().filter(|reading| (self.start..=self.end).contains(&reading.time()));
        at(self.start).into_iter().chain(within.copied()).chain(at(self.end)).collect()
    }
}

/// Adds the stacks of a thread that is left out, to the lock that it holds: that of the event before, or of the
/// first event.
fn add_stacks(thread: &RecordedThread, holds: &mut BTreeMap<u32, Vec<Moment>>) {
    let Some(first) = thread.moments.iter().find(|moment| is_of_lock(moment)) else { return };
    let mut lock = unpack_release(first.argument).0;
    for moment in &thread.moments {
        if is_of_lock(moment) {
            lock = unpack_release(moment.argument).0;
        } else if is_stack_of_holder(moment) {
            holds.entry(lock).or_default().push(*moment);
        }
    }
}

fn has_begun(moments: &[Moment]) -> bool {
    moments.iter().any(|moment| moment.kind == Kind::ThreadStart)
}

/// The beginnings of what has begun, and not ended, in the order of their time.
fn open(moments: &[Moment]) -> Vec<Moment> {
    let mut open: Vec<Moment> = Vec::new();
    for moment in moments {
        let begin = match moment.kind {
            Kind::GcEnter | Kind::RegionBegin | Kind::MarkBegin => {
                open.push(*moment);
                continue;
            }
            Kind::GcExit => Kind::GcEnter,
            Kind::RegionEnd => Kind::RegionBegin,
            Kind::MarkEnd => Kind::MarkBegin,
            _ => continue,
        };
        if let Some(innermost) = open.iter().rposition(|each| each.kind == begin) {
            open.remove(innermost);
        }
    }
    open
}

/// A reading of clocks, between two of which one can interpolate.
trait Reading: Copy {
    fn time(&self) -> u64;
    fn towards(&self, later: &Self, time: u64) -> Self;
}

/// The value at a part of the way from one time to another.
fn between(time: u64, (from, start): (u64, u64), (to, end): (u64, u64)) -> u64 {
    let share = (time - from) as f64 / (to - from).max(1) as f64;
    start + (end.saturating_sub(start) as f64 * share) as u64
}

impl Reading for Used {
    fn time(&self) -> u64 {
        self.time
    }

    fn towards(&self, later: &Self, time: u64) -> Self {
        let value = |a, b| between(time, (self.time, a), (later.time, b));
        let run_delay = self.run_delay.zip(later.run_delay).map(|(a, b)| value(a, b));
        Self { time, cpu: value(self.cpu, later.cpu), run_delay }
    }
}

impl Reading for MachineUsed {
    fn time(&self) -> u64 {
        self.time
    }

    fn towards(&self, later: &Self, time: u64) -> Self {
        let value = |a, b| between(time, (self.time, a), (later.time, b));
        Self { time, busy: value(self.busy, later.busy), total: value(self.total, later.total) }
    }
}
