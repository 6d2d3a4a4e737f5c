//! The stacks at the borders of a cut.
//!
//! A sample stands for the time before it, the last one of a hold also for the rest of the hold; see
//! [`blamed_code`](super::blamed_code). So time within the period may belong to a sample outside of it, which is
//! then moved to the border.

use super::blamed_code::CLOSE;
use super::recording::Moment;
use crate::trace::format::event::Kind;

/// Whether it is about the thread's relation to a lock.
pub(super) fn is_of_lock(moment: &Moment) -> bool {
    matches!(moment.kind, Kind::Wants | Kind::Acquired | Kind::Released)
}

/// Whether it is the stack of the thread as the holder of a lock.
pub(super) fn is_stack_of_holder(moment: &Moment) -> bool {
    matches!(moment.kind, Kind::StackHolding | Kind::StackReleasing)
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
    let sample = match (last, next) {
        (Some(last), Some(next)) if next.kind == Kind::StackReleasing && next.time - last.time <= CLOSE => {
            Some(last)
        }
        _ => next.or(last),
    };
    sample.filter(|_| holds).copied()
}
