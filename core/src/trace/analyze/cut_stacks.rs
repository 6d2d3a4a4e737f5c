//! The stacks at the borders of a cut.
//!
//! A recording is cut once its stacks are at the ends of the parts of holds that they stand for, the last one of a
//! hold also for the rest; see [`holder_stacks`](super::holder_stacks). So time within the period may belong to a
//! stack outside of it, which is then moved to the border.

use super::holder_stacks::{is_of_lock, is_stack_of_holder, settled};
use super::recording::{Moment, Recording};
use crate::trace::format::event::Kind;

/// Moves the stacks of holders to the ends of the parts that they stand for.
pub(super) fn settle(recording: &mut Recording) {
    let mut stacks = settled(recording);
    if stacks.is_empty() {
        return;
    }
    for (id, thread) in &mut recording.threads {
        thread.moments.retain(|moment| !is_stack_of_holder(moment));
        if let Some(stacks) = stacks.remove(id) {
            thread.moments.extend(stacks);
            thread.moments.sort_by_key(|moment| moment.time);
        }
    }
    recording.has_settled_stacks = true;
}

/// The sample that a cut adds where the period starts. `before` has the thread's events before that time.
pub(super) fn at_start(time: u64, before: &[Moment], after: &[Moment]) -> Option<Moment> {
    covering(before, after).filter(|sample| sample.time < time).map(|sample| moved(sample, time))
}

/// The sample that a cut adds where the period ends. `after` has the thread's events after that time.
pub(super) fn at_end(time: u64, before: &[Moment], after: &[Moment]) -> Option<Moment> {
    covering(before, after).filter(|sample| sample.time > time).map(|sample| moved(sample, time))
}

fn moved(sample: Moment, time: u64) -> Moment {
    Moment { time, kind: Kind::StackHolding, ..sample }
}

/// The sample to which the time between two events belongs, if the thread holds a lock then.
fn covering(before: &[Moment], after: &[Moment]) -> Option<Moment> {
    let last_change = before.iter().rev().find(|moment| is_of_lock(moment));
    let next_change = after.iter().find(|moment| is_of_lock(moment));
    let holds = match (last_change, next_change) {
        (Some(last), _) => last.kind == Kind::Acquired,
        (None, Some(next)) => next.kind == Kind::Released,
        (None, None) => true,
    };
    let [since, until] =
        [last_change.map_or(0, |change| change.time), next_change.map_or(u64::MAX, |change| change.time)];
    let in_hold = |moment: &&Moment| (since..=until).contains(&moment.time);
    let last = before.iter().rev().take_while(in_hold).find(|moment| is_stack_of_holder(moment));
    let next = after.iter().take_while(in_hold).find(|moment| is_stack_of_holder(moment));
    next.or(last).filter(|_| holds).copied()
}
