//! What the threads of a process do at one moment: their relations to the lock, and their stacks.
//!
//! The feed takes the stacks ([`TakeStacks`]), and says what each thread did with the lock meanwhile. Here both become
//! a [`ThreadDump`], which goes to the command as JSON.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::clock::{self, Ticks};
use crate::os;
use crate::trace::analyze::code::FrameText;
use crate::trace::format::definition::Stand;
use crate::trace::record::code::last_stack;
use crate::trace::record::registry::{Standing, nameless_thread, standings};

/// What the threads of a process do at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadDump {
    /// The process.
    pub pid: u32,
    /// Its program, without arguments.
    pub command: String,
    /// The interpreter and its version.
    pub runtime: String,
    /// Why stacks are missing, if they are.
    pub obstacle: Option<String>,
    /// The threads: those that hold a lock, then those that wait for it, longest first, then the others.
    pub threads: Vec<DumpedThread>,
}

/// What a thread does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpedThread {
    /// Its name.
    pub name: String,
    /// The system's id of it, if that is known.
    pub native_id: Option<u32>,
    /// Its relation to the lock.
    pub state: DumpedState,
    /// For how long, in nanoseconds, if that is known.
    pub nanoseconds: Option<u64>,
    /// The name of the thread that holds the lock for which it waits.
    pub behind: Option<String>,
    /// The asyncio task that it runs.
    pub task: Option<String>,
    /// Its stack, innermost frame first.
    pub frames: Vec<FrameText>,
    /// How many outer frames are missing.
    pub left_out: usize,
    /// How long ago it had this stack, in nanoseconds, if that is not now.
    pub age: Option<u64>,
}

/// A thread's relation to the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DumpedState {
    /// It holds the lock.
    Running,
    /// It waits for it.
    Waiting,
    /// It runs without the lock.
    OffLock,
    /// It neither has the lock nor wants it, and waits for something else.
    Idle,
}

/// The longest time that a dump may take.
pub(super) const LONGEST_PATIENCE: Duration = Duration::from_secs(600);

/// How long the feed may take.
pub struct Patience<'a> {
    deadline: Instant,
    within: Duration,
    is_unwanted: &'a dyn Fn() -> bool,
}

impl<'a> Patience<'a> {
    /// Until this time has passed, or `is_unwanted` returns true.
    pub fn new(within: Duration, is_unwanted: &'a dyn Fn() -> bool) -> Self {
        Self { deadline: Instant::now() + within, within, is_unwanted }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.deadline || (self.is_unwanted)()
    }

    /// All of it.
    pub fn within(&self) -> Duration {
        self.within
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Takes the stacks of all threads of this process, as far as the feed can, on a native thread that is none of the
/// interpreter's.
pub type TakeStacks = fn(&Patience<'_>) -> TakenStacks;

/// What a feed knows of all threads at one moment.
#[derive(Debug, Clone, Default)]
pub struct TakenStacks {
    /// Their relations to the locks.
    pub standings: Vec<Standing>,
    /// Their stacks.
    pub stacks: Vec<ThreadStack>,
    /// Why stacks are missing, if they are.
    pub obstacle: Option<String>,
}

impl TakenStacks {
    /// Nothing but what is known of the lock.
    pub fn without_stacks(obstacle: String) -> Self {
        Self { standings: standings(), stacks: Vec::new(), obstacle: Some(obstacle) }
    }
}

/// The stack of a thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadStack {
    /// The thread's [`id`](crate::trace::Thread::id) or, if the recorder does not know it, 0.
    pub thread: u32,
    /// The system's id of it.
    pub native_id: Option<u32>,
    /// The asyncio task that it runs.
    pub task: Option<String>,
    /// Its frames, innermost first.
    pub frames: Vec<FrameText>,
    /// How many outer frames are missing.
    pub left_out: usize,
    /// Whether it was idle before the feed made it tell its stack.
    pub was_idle: bool,
}

impl ThreadDump {
    /// What the threads do that the feed has looked at. `about` describes the program.
    pub(super) fn of(about: &[(String, String)], taken: TakenStacks) -> Self {
        let now = clock::now();
        let about = |key| {
            about.iter().find(|(known, _)| known == key).map(|(_, text)| text.clone()).unwrap_or_default()
        };
        let mut stacks: HashMap<u32, ThreadStack> = HashMap::new();
        let mut unknown = Vec::new();
        for stack in taken.stacks {
            if stack.thread == 0 { unknown.push(stack) } else { drop(stacks.insert(stack.thread, stack)) }
        }
        let by_now = standings();
        let mut threads: Vec<DumpedThread> = Vec::new();
        for standing in &taken.standings {
            let stack = stacks.remove(&standing.thread);
            let was_idle = stack.as_ref().is_some_and(|stack| stack.was_idle);
            let standing = if was_idle { standing } else { arrived(standing, &by_now) };
            threads.push(DumpedThread::of(standing, stack, &taken.standings, now, taken.obstacle.is_some()));
        }
        threads.extend(unknown.into_iter().chain(stacks.into_values()).map(DumpedThread::nameless));
        threads.sort_by_key(|thread| (thread.state as u8, std::cmp::Reverse(thread.nanoseconds)));
        Self {
            pid: std::process::id(),
            command: about("command"),
            runtime: about("runtime"),
            obstacle: taken.obstacle,
            threads,
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("texts and numbers")
    }
}

impl DumpedThread {
    fn of(
        standing: &Standing,
        stack: Option<ThreadStack>,
        all: &[Standing],
        now: Ticks,
        asks_last: bool,
    ) -> Self {
        let elapsed = |at: Ticks| clock::nanoseconds(now.saturating_sub(at));
        let (state, behind) = match standing.stand {
            Stand::Holds => (DumpedState::Running, None),
            Stand::Wants => (DumpedState::Waiting, holder(standing, all)),
            Stand::Off | Stand::Unknown if stack.as_ref().is_some_and(|stack| stack.was_idle) => {
                (DumpedState::Idle, None)
            }
            Stand::Off | Stand::Unknown => {
                (off_the_lock(stack.as_ref().and_then(|stack| stack.native_id)), None)
            }
        };
        let is_known = matches!(standing.stand, Stand::Holds | Stand::Wants);
        let nothing = stack.as_ref().is_none_or(|stack| stack.frames.is_empty());
        let last =
            last_stack(standing.thread).filter(|_| asks_last && nothing && standing.stand == Stand::Holds);
        let age = last.as_ref().map(|(at, ..)| elapsed(*at));
        let mut stack = stack.unwrap_or_default();
        if let Some((_, frames, left_out)) = last {
            (stack.frames, stack.left_out) = (frames, left_out);
        }
        Self {
            name: standing.name.clone(),
            native_id: stack.native_id,
            state,
            nanoseconds: standing.since.filter(|_| is_known).map(elapsed),
            behind,
            task: stack.task,
            frames: stack.frames,
            left_out: stack.left_out,
            age,
        }
    }

    /// A thread that the recorder has not met.
    fn nameless(stack: ThreadStack) -> Self {
        Self {
            name: stack.native_id.map_or("thread".to_owned(), nameless_thread),
            native_id: stack.native_id,
            state: off_the_lock(stack.native_id),
            nanoseconds: None,
            behind: None,
            task: stack.task,
            frames: stack.frames,
            left_out: stack.left_out,
            age: None,
        }
    }
}

/// The standing of a thread, or that by now if the thread was between giving up the lock and asking for it again: it may
/// have had to wait for a processor in between, and is asleep by the time that the system is asked.
fn arrived<'a>(before: &'a Standing, by_now: &'a [Standing]) -> &'a Standing {
    let waits = |now: &&Standing| now.thread == before.thread && now.stand == Stand::Wants;
    let now = if before.stand == Stand::Off { by_now.iter().find(waits) } else { None };
    now.unwrap_or(before)
}

/// The name of the thread that holds the lock that a thread wants.
fn holder(wants: &Standing, all: &[Standing]) -> Option<String> {
    let holds =
        |other: &&Standing| other.stand == Stand::Holds && (other.lock == wants.lock || other.lock == 0);
    all.iter().find(holds).map(|holder| holder.name.clone())
}

/// What a thread does that has no part in its lock. It is idle if that is unknown.
fn off_the_lock(native_id: Option<u32>) -> DumpedState {
    match native_id.and_then(os::is_on_processor) {
        Some(true) => DumpedState::OffLock,
        _ => DumpedState::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(thread: u32, stand: Stand, lock: u32, since: Option<Ticks>) -> Standing {
        Standing { thread, name: format!("t{thread}"), stand, lock, since }
    }

    fn stack(thread: u32, function: &str) -> ThreadStack {
        let frame = FrameText { function: function.into(), file: "a.py".into(), line: 3 };
        ThreadStack { thread, frames: vec![frame], ..ThreadStack::default() }
    }

    #[test]
    fn threads_wait_behind_the_holder_of_their_own_lock() {
        let now = clock::now();
        let ago = |time| Some(now - clock::ticks(Duration::from_millis(time)));
        let standings = vec![
            standing(1, Stand::Off, 7, None),
            standing(2, Stand::Wants, 7, ago(5)),
            standing(3, Stand::Wants, 8, ago(10)),
            standing(4, Stand::Holds, 7, ago(20)),
            standing(5, Stand::Holds, 8, None),
        ];
        let stacks = vec![stack(4, "compute"), stack(0, "foreign")];
        let about = [("command".to_owned(), "python app.py".to_owned())];
        let dump = ThreadDump::of(&about, TakenStacks { standings, stacks, obstacle: None });
        assert_eq!(
            (dump.pid, dump.command.as_str(), dump.runtime.as_str()),
            (std::process::id(), "python app.py", "")
        );
        let shown =
            dump.threads.iter().map(|thread| (thread.name.as_str(), thread.state, thread.behind.as_deref()));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                ("t4", DumpedState::Running, None),
                ("t5", DumpedState::Running, None),
                ("t3", DumpedState::Waiting, Some("t5")),
                ("t2", DumpedState::Waiting, Some("t4")),
                ("t1", DumpedState::Idle, None),
                ("thread", DumpedState::Idle, None),
            ]
        );
        assert!(dump.threads[0].nanoseconds.is_some_and(|time| time >= 20_000_000));
        assert_eq!(dump.threads[0].frames[0].to_string(), "compute (a.py:3)");
        assert_eq!(serde_json::from_str::<ThreadDump>(&dump.to_json()).expect("it was written"), dump);
    }

    #[test]
    fn a_thread_that_was_about_to_wait_waits() {
        let off = standing(1, Stand::Off, 7, None);
        let wants = standing(1, Stand::Wants, 7, Some(clock::now()));
        let holds = standing(1, Stand::Holds, 7, None);
        let other = standing(2, Stand::Wants, 7, None);
        let stand = |before, by_now: &[Standing]| arrived(before, by_now).stand;
        assert_eq!(stand(&off, &[other.clone(), wants.clone()]), Stand::Wants);
        assert_eq!(stand(&off, &[other]), Stand::Off);
        assert_eq!(stand(&holds, &[wants]), Stand::Holds);
        assert_eq!(stand(&off, std::slice::from_ref(&holds)), Stand::Off);
    }

    #[test]
    fn patience_ends_with_the_time_or_with_the_client() {
        let (never, at_once) = (|| false, || true);
        assert!(!Patience::new(Duration::from_secs(60), &never).is_over());
        assert!(Patience::new(Duration::from_secs(60), &at_once).is_over());
        assert!(Patience::new(Duration::ZERO, &never).is_over());
    }
}
