//! Notices long waits and long holds soon after they begin to be too long.
//!
//! It gets the events of all threads, in any order, and settles them up to a time: it sorts them, follows
//! which thread holds each lock and which wait, and finds what has been too long, ended or not.

use std::collections::{HashMap, HashSet};

use crate::trace::format::event::{Event, Kind, Reason, unpack_release};

/// The most events that wait to be settled. If nobody settles them, the watch begins anew.
const MOST: usize = 1 << 20;

/// What a watch looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// A thread that waits for the lock.
    Wait,
    /// A thread that holds the lock while another one waits.
    Hold,
}

/// A wait or a hold that was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::trace) struct Long {
    /// The thread that held the lock longest during the wait; of a hold, its thread.
    pub(in crate::trace) holder: Option<u32>,
    /// The thread that waits, or waited, longest.
    pub(in crate::trace) waiting: u32,
    /// How long so far, in nanoseconds.
    pub(in crate::trace) time: u64,
    /// Whether it has ended.
    pub(in crate::trace) is_over: bool,
    /// The last sample of the holder's stack during the hold or, without samples, the stack at its end.
    pub(in crate::trace) stack: Option<u32>,
}

/// Looks for waits or holds of at least some time.
#[derive(Debug)]
pub(in crate::trace) struct LockWatch {
    watched: Watched,
    at_least: u64,
    /// The threads whose waits do not count.
    ignored: HashSet<u32>,
    pending: Vec<Event>,
    locks: HashMap<u32, Use>,
    found: Vec<Long>,
}

/// Which threads use a lock.
#[derive(Debug, Default)]
struct Use {
    /// The hold that goes on or, if `is_held` is false, the last one.
    hold: Option<Hold>,
    is_held: bool,
    waiting: Vec<Wait>,
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    thread: u32,
    since: u64,
    stack: Option<u32>,
    told: bool,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    thread: u32,
    since: u64,
    told: bool,
    /// The hold that took most of the wait, of those that have ended, and how much that was. The last one is often
    /// another thread's that was quicker to get the lock.
    longest: Option<(Hold, u64)>,
}

impl Use {
    fn longest(&self) -> Option<Wait> {
        self.waiting.iter().copied().min_by_key(|wait| wait.since)
    }

    fn leave(&mut self, thread: u32) -> Option<Wait> {
        let place = self.waiting.iter().position(|wait| wait.thread == thread)?;
        Some(self.waiting.swap_remove(place))
    }

    fn enter(&mut self, thread: u32, since: u64) {
        if self.waiting.iter().all(|wait| wait.thread != thread) {
            self.waiting.push(Wait { thread, since, told: false, longest: None });
        }
    }

    /// A thread gets the lock. Returns the long wait that this ends, and the long hold before if that was not seen to end:
    /// a thread that the system stops meanwhile records the end of its hold a little later than it happens.
    fn acquire(&mut self, thread: u32, time: u64) -> (Option<Long>, Option<Long>) {
        let is_late = self.hold.is_some_and(|hold| hold.since > time);
        let ended = if is_late { None } else { self.end(time) };
        let waited = self.leave(thread).filter(|wait| !wait.told);
        let waited = waited.map(|wait| self.long_wait(wait, time, true));
        if !is_late {
            self.hold = Some(Hold { thread, since: time, stack: None, told: false });
            self.is_held = true;
        }
        (waited, ended)
    }

    /// A thread's hold ends, unless another thread's has begun since then. Returns it.
    fn release(&mut self, thread: u32, time: u64) -> Option<Long> {
        let is_this = self.hold.is_some_and(|hold| hold.thread == thread && hold.since <= time);
        if is_this { self.end(time) } else { None }
    }

    /// Ends the hold that goes on, notes how much of each wait it took, and returns it if it was not told before.
    fn end(&mut self, time: u64) -> Option<Long> {
        let hold = self.hold.filter(|_| self.is_held)?;
        let long = self.long_hold(time, true);
        for wait in &mut self.waiting {
            let took = time.saturating_sub(hold.since.max(wait.since));
            if wait.longest.is_none_or(|(_, most)| took > most) {
                wait.longest = Some((hold, took));
            }
        }
        self.is_held = false;
        long.filter(|_| !hold.told)
    }

    fn long_wait(&self, wait: Wait, time: u64, is_over: bool) -> Long {
        let now = self.hold.filter(|_| self.is_held || wait.longest.is_none());
        let took = now.map_or(0, |hold| time.saturating_sub(hold.since.max(wait.since)));
        let ended = wait.longest.filter(|(_, most)| now.is_none() || *most > took);
        let hold = ended.map(|(hold, _)| hold).or(now);
        let (holder, stack) = (hold.map(|hold| hold.thread), hold.and_then(|hold| hold.stack));
        Long { holder, waiting: wait.thread, time: time.saturating_sub(wait.since), is_over, stack }
    }

    /// The hold as far as another thread waited meanwhile.
    fn long_hold(&self, time: u64, is_over: bool) -> Option<Long> {
        let (hold, wait) = (self.hold.filter(|_| self.is_held)?, self.longest()?);
        let since = hold.since.max(wait.since);
        let time = time.saturating_sub(since);
        Some(Long { holder: Some(hold.thread), waiting: wait.thread, time, is_over, stack: hold.stack })
    }
}

impl LockWatch {
    pub(in crate::trace) fn new(watched: Watched, at_least: u64) -> Self {
        let (ignored, pending, locks, found) = (HashSet::new(), Vec::new(), HashMap::new(), Vec::new());
        Self { watched, at_least, ignored, pending, locks, found }
    }

    /// From here on the waits of these threads, and of no others, do not count.
    pub(in crate::trace) fn ignore(&mut self, threads: HashSet<u32>) {
        self.ignored = threads;
    }

    /// Takes an event.
    pub(in crate::trace) fn put(&mut self, event: Event) {
        let is_of_use = matches!(
            event.kind,
            Kind::Wants
                | Kind::Acquired
                | Kind::Released
                | Kind::ThreadEnd
                | Kind::StackHolding
                | Kind::StackReleasing
                | Kind::Lost
        );
        if is_of_use {
            self.pending.push(event);
        }
        if self.pending.len() > MOST {
            self.pending.clear();
            self.locks.clear();
        }
    }

    /// Returns what was found up to `time`, to which all events have arrived. Each wait and each hold is found
    /// once.
    pub(in crate::trace) fn settle(&mut self, time: u64) -> Vec<Long> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|event| event.time);
        pending.into_iter().for_each(|event| self.step(event));
        for usage in self.locks.values_mut() {
            match self.watched {
                Watched::Wait => {
                    for place in 0..usage.waiting.len() {
                        let wait = usage.waiting[place];
                        let long = usage.long_wait(wait, time, false);
                        if !wait.told && long.time >= self.at_least {
                            usage.waiting[place].told = true;
                            self.found.push(long);
                        }
                    }
                }
                Watched::Hold => {
                    let long = usage.long_hold(time, false).filter(|long| long.time >= self.at_least);
                    if let Some((hold, long)) = usage.hold.as_mut().filter(|hold| !hold.told).zip(long) {
                        hold.told = true;
                        self.found.push(long);
                    }
                }
            }
        }
        std::mem::take(&mut self.found)
    }

    /// Notes what has ended, if it is looked for and was too long.
    fn find(&mut self, kind: Watched, ended: Option<Long>) {
        let is_watched = self.watched == kind;
        self.found.extend(ended.filter(|long| is_watched && long.time >= self.at_least));
    }

    fn step(&mut self, Event { time, thread, kind, argument }: Event) {
        match kind {
            Kind::Wants if self.ignored.contains(&thread) => {}
            Kind::Wants => self.locks.entry(argument).or_default().enter(thread, time),
            Kind::Acquired => {
                let usage = self.locks.entry(argument).or_default();
                let (waited, ended) = usage.acquire(thread, time);
                self.find(Watched::Wait, waited);
                self.find(Watched::Hold, ended);
            }
            Kind::Released => {
                let (lock, reason) = unpack_release(argument);
                let usage = self.locks.entry(lock).or_default();
                if reason == Reason::Unheld {
                    let waited = usage.leave(thread).filter(|wait| !wait.told);
                    let long = waited.map(|wait| usage.long_wait(wait, time, true));
                    self.find(Watched::Wait, long);
                    return;
                }
                let ended = usage.release(thread, time);
                if reason == Reason::Yields && !self.ignored.contains(&thread) {
                    usage.enter(thread, time);
                }
                self.find(Watched::Hold, ended);
            }
            Kind::StackHolding | Kind::StackReleasing => {
                let holds = self.locks.values_mut().filter_map(|usage| usage.hold.as_mut());
                for hold in holds.filter(|hold| hold.thread == thread) {
                    // The line at which a hold ends may have taken no time.
                    let is_better = kind == Kind::StackHolding || hold.stack.is_none();
                    hold.stack = if is_better { Some(argument) } else { hold.stack };
                }
            }
            Kind::ThreadEnd => {
                for usage in self.locks.values_mut() {
                    usage.leave(thread);
                    usage.is_held &= usage.hold.is_some_and(|hold| hold.thread != thread);
                }
            }
            // What is missing may have ended any wait or hold.
            Kind::Lost => self.locks.clear(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::format::event::pack_release;

    const LOCK: u32 = 1;
    const RELEASED: u32 = LOCK | (Reason::Blocks as u32) << 24;

    fn event(time: u64, thread: u32, kind: Kind, argument: u32) -> Event {
        Event { time, thread, kind, argument }
    }

    fn watch(watched: Watched, events: &[Event]) -> LockWatch {
        let mut watch = LockWatch::new(watched, 100);
        events.iter().for_each(|event| watch.put(*event));
        watch
    }

    /// Thread 1 has held the lock from 100 to 400, with these stacks, while thread 2 waited for it since 150.
    fn after_a_hold_with(stacks: &[Event]) -> LockWatch {
        let before = [event(100, 1, Kind::Acquired, LOCK), event(150, 2, Kind::Wants, LOCK)];
        let after = [event(400, 1, Kind::Released, RELEASED), event(401, 2, Kind::Acquired, LOCK)];
        watch(Watched::Wait, &[&before[..], stacks, &after].concat())
    }

    #[test]
    fn releases_are_of_the_lock() {
        assert_eq!(RELEASED, pack_release(LOCK, Reason::Blocks));
    }

    #[test]
    fn a_wait_is_found_once_while_it_goes_on() {
        let mut watch = watch(
            Watched::Wait,
            &[
                // The order of arrival is that of native threads, not of time.
                event(150, 2, Kind::Wants, LOCK),
                event(100, 1, Kind::Acquired, LOCK),
                event(210, 1, Kind::StackHolding, 77),
            ],
        );
        assert_eq!(watch.settle(249), []);
        let long = Long { holder: Some(1), waiting: 2, time: 105, is_over: false, stack: Some(77) };
        assert_eq!(watch.settle(255), [long]);
        watch.put(event(400, 1, Kind::Released, RELEASED));
        watch.put(event(401, 2, Kind::Acquired, LOCK));
        assert_eq!(watch.settle(500), []);
    }

    #[test]
    fn what_arrives_late_does_not_end_the_hold_that_goes_on() {
        for late in [event(149, 2, Kind::Released, RELEASED), event(90, 2, Kind::Acquired, LOCK)] {
            let mut watch = watch(Watched::Hold, &[event(150, 1, Kind::Acquired, LOCK)]);
            assert_eq!(watch.settle(151), []);
            watch.put(late);
            watch.put(event(160, 2, Kind::Wants, LOCK));
            let long = Long { holder: Some(1), waiting: 2, time: 100, is_over: false, stack: None };
            assert_eq!(watch.settle(260), [long]);
        }
    }

    #[test]
    fn a_hold_whose_end_arrives_late_ends_with_the_next() {
        let mut watch = watch(
            Watched::Hold,
            &[
                event(100, 1, Kind::Acquired, LOCK),
                event(110, 2, Kind::Wants, LOCK),
                event(300, 2, Kind::Acquired, LOCK),
            ],
        );
        let long = Long { holder: Some(1), waiting: 2, time: 190, is_over: true, stack: None };
        assert_eq!(watch.settle(301), [long]);
        watch.put(event(299, 1, Kind::Released, RELEASED));
        assert_eq!(watch.settle(400), []);
    }

    #[test]
    fn a_wait_that_ended_unseen_names_its_holder() {
        let mut watch = after_a_hold_with(&[event(399, 1, Kind::StackReleasing, 5)]);
        let long = Long { holder: Some(1), waiting: 2, time: 251, is_over: true, stack: Some(5) };
        assert_eq!(watch.settle(500), [long]);
        assert_eq!(watch.settle(600), []);
    }

    #[test]
    fn the_waits_of_ignored_threads_do_not_count() {
        let events = [
            event(100, 1, Kind::Acquired, LOCK),
            event(150, 2, Kind::Wants, LOCK),
            event(200, 3, Kind::Wants, LOCK),
            event(400, 1, Kind::Released, RELEASED),
        ];
        for watched in [Watched::Wait, Watched::Hold] {
            let mut watch = watch(watched, &events);
            watch.ignore([2].into());
            assert_eq!(watch.settle(500).iter().map(|long| long.waiting).collect::<Vec<_>>(), [3]);
            let mut watch = self::watch(watched, &events);
            watch.ignore([2, 3].into());
            assert_eq!(watch.settle(500), []);
        }
    }

    #[test]
    fn the_stack_at_the_end_of_a_hold_is_told_only_without_samples() {
        let stacks = [event(200, 1, Kind::StackHolding, 7), event(399, 1, Kind::StackReleasing, 5)];
        let mut watch = after_a_hold_with(&stacks);
        assert_eq!(watch.settle(500).iter().map(|long| long.stack).collect::<Vec<_>>(), [Some(7)]);
    }

    #[test]
    fn a_wait_names_the_thread_that_held_the_lock_longest_and_not_last() {
        let begin = [
            event(100, 1, Kind::Acquired, LOCK),
            event(150, 2, Kind::Wants, LOCK),
            event(380, 1, Kind::StackReleasing, 5),
            event(400, 1, Kind::Released, RELEASED),
            event(401, 3, Kind::Acquired, LOCK),
            event(430, 3, Kind::Released, RELEASED),
            event(431, 2, Kind::Acquired, LOCK),
        ];
        let long = Long { holder: Some(1), waiting: 2, time: 281, is_over: true, stack: Some(5) };
        assert_eq!(watch(Watched::Wait, &begin).settle(500), std::slice::from_ref(&long));
        let long = Long { time: 260, is_over: false, ..long };
        assert_eq!(watch(Watched::Wait, &begin[..5]).settle(410), [long]);
    }

    #[test]
    fn a_hold_counts_from_the_moment_another_thread_waits() {
        let mut watch =
            watch(Watched::Hold, &[event(100, 1, Kind::Acquired, LOCK), event(1_000, 2, Kind::Wants, LOCK)]);
        assert_eq!(watch.settle(1_099), []);
        let long = Long { holder: Some(1), waiting: 2, time: 120, is_over: false, stack: None };
        assert_eq!(watch.settle(1_120), [long]);
        watch.put(event(1_200, 1, Kind::Released, pack_release(LOCK, Reason::Yields)));
        watch.put(event(1_201, 2, Kind::Acquired, LOCK));
        watch.put(event(1_350, 2, Kind::Released, RELEASED));
        let long = Long { holder: Some(2), waiting: 1, time: 149, is_over: true, stack: None };
        assert_eq!(watch.settle(1_400), [long]);
    }

    #[test]
    fn threads_that_take_turns_hold_the_lock_for_short_times() {
        let mut events = vec![event(0, 9, Kind::Wants, LOCK)];
        for turn in 0..10 {
            let thread = 1 + turn as u32 % 2;
            events.push(event(turn * 50, thread, Kind::Acquired, LOCK));
            events.push(event(turn * 50 + 49, thread, Kind::Released, RELEASED));
        }
        assert_eq!(watch(Watched::Hold, &events).settle(500), []);
        let found = watch(Watched::Wait, &events).settle(500);
        assert_eq!(found.iter().map(|long| (long.waiting, long.time)).collect::<Vec<_>>(), [(9, 500)]);
    }

    #[test]
    fn threads_that_end_and_events_that_are_lost_leave_nothing() {
        for last in [event(160, 2, Kind::ThreadEnd, 0), event(160, 3, Kind::Lost, 10)] {
            let begin = [event(100, 1, Kind::Acquired, LOCK), event(150, 2, Kind::Wants, LOCK), last];
            assert_eq!(watch(Watched::Wait, &begin).settle(1_000), []);
        }
    }

    #[test]
    fn what_nobody_settles_stays_bounded() {
        let mut watch = LockWatch::new(Watched::Wait, 100);
        for time in 0..MOST as u64 + 10 {
            watch.put(event(time, 1, Kind::Wants, LOCK));
        }
        assert!(watch.pending.len() <= 10);
    }
}
