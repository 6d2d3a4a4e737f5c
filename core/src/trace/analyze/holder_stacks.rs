//! Which part of a hold each stack of its holder stands for.
//!
//! While somebody waits, samples of the holder's stack are taken about every two milliseconds, and one more as
//! it lets go of the lock. A hold is cut between its samples, in the middle as a rule:
//!
//! ```text
//! holder    ├────────────┬────────────┬─────┤
//! samples          parse     render       send (at the release)
//! stand for ├ parse ──┼ render ─────────────┤
//! ```
//!
//! - A function in C, of Ruby, is seen when it returns: what comes before belongs to it, what follows does not.
//! - If the next sample is late, the holder was in a function in which none could be taken. The last sample
//!   then stands for what is usual, not for half of that.
//! - The stack at the release says where the hold ended, which may be a line that took no time. It counts only
//!   if there is no sample or, where functions in C hide from samples, if the last one is long before. Python's
//!   do not hide: there samples are late only because the system did not run the thread that takes them.
//! - Most holds of a fraction of a millisecond end between two samples, so that only their release was seen.
//!   These get the stacks of samples that were met in other holds as short that ended in the same place, of
//!   the same thread if enough are known: each sample stands for its share of such holds.

use std::collections::{BTreeMap, HashMap};

use super::recording::{Moment, Recording};
use crate::trace::format::event::Kind;

/// Samples of a hold are 1 to 2 ms apart. If the last one is longer than this before the release, in
/// nanoseconds, the holder was then in a function in which no sample could be taken.
const CLOSE: u64 = 4_000_000;
/// Half of the usual time between two samples, in nanoseconds.
const HALF: u64 = 1_000_000;
/// From so many samples on, those of one thread say enough about its holds.
const ENOUGH: usize = 8;

/// Whether it is about the thread's relation to a lock.
pub(super) fn is_of_lock(moment: &Moment) -> bool {
    matches!(moment.kind, Kind::Wants | Kind::Acquired | Kind::Released)
}

/// Whether it is the stack of the thread as the holder of a lock.
pub(super) fn is_stack_of_holder(moment: &Moment) -> bool {
    matches!(moment.kind, Kind::StackHolding | Kind::StackReleasing)
}

/// The stacks of each thread as a holder, at the ends of the parts of holds that they stand for; the last one of a
/// hold also stands for the rest. Stacks that the recording does not explain are left out.
pub(super) fn settled(recording: &Recording) -> BTreeMap<u32, Vec<Moment>> {
    let is_known = |stack: u32| recording.code.frames.contains_key(&stack);
    let holds = recording.threads.iter();
    let mut holds: Vec<Hold> =
        holds.flat_map(|(id, thread)| holds_of(*id, &thread.moments, is_known)).collect();
    if !recording.has_settled_stacks {
        let returns = |stack: u32| has_returned(recording, stack);
        let hides = recording.about("language") != Some("python");
        let short = ShortHolds::of(&holds);
        holds.iter_mut().for_each(|hold| hold.settle(hides, returns));
        short.settle(&mut holds);
    }
    let mut of_threads: BTreeMap<u32, Vec<Moment>> = BTreeMap::new();
    for hold in holds {
        of_threads.entry(hold.thread).or_default().extend(hold.stacks);
    }
    of_threads
}

/// Whether the innermost function is one in C, which was seen as it returned.
fn has_returned(recording: &Recording, stack: u32) -> bool {
    let function =
        recording.code.stack(stack).next().and_then(|frame| recording.code.functions.get(&frame.function));
    recording.about("language") == Some("ruby") && function.is_some_and(|function| function.line == 0)
}

/// A hold of which there are stacks.
struct Hold {
    thread: u32,
    length: Option<u64>,
    stacks: Vec<Moment>,
}

/// The holds of a thread of which there are stacks. The stack at a release has the time of the release.
fn holds_of(thread: u32, recorded: &[Moment], is_known: impl Fn(u32) -> bool) -> Vec<Hold> {
    let stacks = recorded.iter().filter(|moment| is_stack_of_holder(moment) && is_known(moment.argument));
    let mut stacks = stacks.copied().peekable();
    let mut holds = Vec::new();
    if stacks.peek().is_none() {
        return holds;
    }
    for (since, until) in spans(recorded) {
        let (start, end) = (since.unwrap_or(0), until.unwrap_or(u64::MAX));
        while stacks.next_if(|stack| stack.time < start).is_some() {}
        let within: Vec<Moment> = std::iter::from_fn(|| stacks.next_if(|stack| stack.time <= end)).collect();
        if !within.is_empty() {
            holds.push(Hold { thread, length: since.zip(until).map(|(a, b)| b - a), stacks: within });
        }
    }
    holds
}

/// When a thread held a lock, in the order of time; `None` for what the recording does not have.
fn spans(recorded: &[Moment]) -> Vec<(Option<u64>, Option<u64>)> {
    let (mut spans, mut since) = (Vec::new(), None);
    let first = recorded.iter().find(|moment| is_of_lock(moment));
    let mut holds = first.is_none_or(|first| first.kind == Kind::Released);
    for moment in recorded.iter().filter(|moment| is_of_lock(moment)) {
        if holds {
            spans.push((since, Some(moment.time)));
        }
        holds = moment.kind == Kind::Acquired;
        since = Some(moment.time);
    }
    if holds {
        spans.push((since, None));
    }
    spans
}

impl Hold {
    fn samples(&self) -> impl Iterator<Item = &Moment> {
        self.stacks.iter().filter(|stack| stack.kind == Kind::StackHolding)
    }

    fn release(&self) -> Option<&Moment> {
        self.stacks.iter().rfind(|stack| stack.kind == Kind::StackReleasing)
    }

    /// Moves samples to the ends of their parts, and keeps the stack at the release only if it counts.
    fn settle(&mut self, hides: bool, returns: impl Fn(u32) -> bool) {
        let mut settled: Vec<Moment> = self.samples().copied().collect();
        for at in 1..settled.len() {
            let (sample, next) = (settled[at - 1], settled[at].time);
            if !returns(sample.argument) {
                settled[at - 1].time += ((next - sample.time) / 2).min(HALF);
            }
        }
        let last = settled.last().map(|last| last.time);
        // A broken file may have samples after the release.
        let is_long_before = |last: u64, release: &Moment| release.time.saturating_sub(last) > CLOSE;
        let counts = |release: &&Moment| last.is_none_or(|last| hides && is_long_before(last, release));
        settled.extend(self.release().filter(counts));
        self.stacks = settled;
    }
}

/// Where holds ended: the stack at the release; of one thread, or of all.
type Ending = (Option<u32>, u32);

/// What is known of holds that are too short for samples, as a rule.
struct ShortHolds {
    /// The samples of those that have some, by their ending, in the order of time.
    samples: HashMap<Ending, Vec<(u64, u32)>>,
}

impl ShortHolds {
    fn of(holds: &[Hold]) -> Self {
        let mut samples: HashMap<Ending, Vec<(u64, u32)>> = HashMap::new();
        for hold in holds.iter().filter(|hold| hold.length.is_some_and(|length| length <= CLOSE)) {
            let Some(release) = hold.release() else { continue };
            for sample in hold.samples() {
                for thread in [Some(hold.thread), None] {
                    let ending = (thread, release.argument);
                    samples.entry(ending).or_default().push((sample.time, sample.argument));
                }
            }
        }
        samples.values_mut().for_each(|samples| samples.sort_unstable());
        Self { samples }
    }

    fn samples_of(&self, thread: u32, release: u32) -> Option<(Ending, &[(u64, u32)])> {
        let own = (Some(thread), release);
        let ending =
            Some(own).filter(|own| self.samples.get(own).is_some_and(|samples| samples.len() >= ENOUGH));
        let ending = ending.unwrap_or((None, release));
        Some((ending, self.samples.get(&ending)?))
    }

    /// Gives holds of which only the release is known the stacks of samples.
    fn settle(&self, holds: &mut [Hold]) {
        let mut unseen: HashMap<Ending, Vec<(u64, usize)>> = HashMap::new();
        for (index, hold) in holds.iter().enumerate() {
            let [release] = hold.stacks[..] else { continue };
            let is_short = hold.length.is_some_and(|length| length <= CLOSE);
            if is_short
                && release.kind == Kind::StackReleasing
                && let Some((ending, _)) = self.samples_of(hold.thread, release.argument)
            {
                unseen.entry(ending).or_default().push((release.time, index));
            }
        }
        for (ending, mut of_ending) in unseen {
            of_ending.sort_unstable();
            let (samples, count) = (&self.samples[&ending], of_ending.len());
            for (place, (_, index)) in of_ending.into_iter().enumerate() {
                holds[index].stacks[0].argument = samples[place * samples.len() / count].1;
            }
        }
    }
}
