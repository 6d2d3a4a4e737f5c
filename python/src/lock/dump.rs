//! What all threads do at one moment, for `offlock dump`.
//!
//! Everything is read on the connection's own thread, without the interpreter and without its lock
//! ([`thread_stacks`](crate::cpython::thread_stacks)).

use std::time::Duration;

use offlock_core::trace::{Patience, TakenStacks};

/// How many stacks are taken at one moment. Each takes some tens of microseconds, in which no thread gets the lock.
#[cfg(target_os = "linux")]
const AT_ONCE: usize = 16;
/// How long threads get between two such moments.
#[cfg(target_os = "linux")]
const BETWEEN: Duration = Duration::from_micros(200);

/// The stacks of all threads, and what these do with the lock. Of many threads the stacks are taken in several parts.
#[cfg(target_os = "linux")]
pub(super) fn take(patience: &Patience<'_>) -> TakenStacks {
    use std::collections::VecDeque;

    use offlock_core::trace::{ThreadStack, standings};

    use super::feed;
    use crate::cpython::gil_hooks::hold_still;
    use crate::cpython::thread_stacks::{ThreadState, states};

    let stack_of = |state: ThreadState, still: &_| {
        let text = state.stack(still);
        ThreadStack {
            thread: feed::find(state.native_id).map_or(0, |thread| thread.id()),
            native_id: Some(state.native_id),
            task: text.task,
            frames: text.frames,
            left_out: text.left_out,
            was_idle: false,
        }
    };
    let first = hold_still(patience.left(), |still| {
        let mut states: VecDeque<ThreadState> = states(still)?.into();
        let now = states.drain(..states.len().min(AT_ONCE)).map(|state| stack_of(state, still)).collect();
        Some((TakenStacks { standings: standings(), stacks: now, obstacle: None }, states))
    });
    let Some((mut taken, mut states)) = first.flatten() else {
        return TakenStacks::without_stacks("the threads of this interpreter cannot be read".into());
    };
    while !states.is_empty() && !patience.is_over() {
        std::thread::sleep(BETWEEN);
        let more = hold_still(patience.left(), |still| {
            states.drain(..states.len().min(AT_ONCE)).map(|state| stack_of(state, still)).collect::<Vec<_>>()
        });
        taken.stacks.extend(more.into_iter().flatten());
    }
    if !states.is_empty() {
        let within = patience.within();
        taken.obstacle =
            Some(format!("of {} threads the stacks were not read within {within:?}", states.len()));
    }
    taken
}

/// On other systems no stacks are read.
#[cfg(not(target_os = "linux"))]
pub(super) fn take(_: &Patience<'_>) -> TakenStacks {
    TakenStacks::without_stacks("recording stacks needs Linux".into())
}
