//! The timeline: from events to the states of every thread, without gaps, and to the holds of every lock.
//!
//! A thread's events drive a small state machine ([`Walk`]) whose base state is off the lock, waiting or
//! holding; garbage collection and operations off the lock refine it. The state before the first event is
//! inferred from that event: a thread whose first event is an acquisition had been waiting. Impossible
//! transitions are counted, not rejected. `assemble.rs` puts the threads together.

use serde::Serialize;

use super::recording::{Moment, RecordedThread, Recording};
use crate::trace::OWN_THREADS;
use crate::trace::format::definition::{LockKind, Stand};
use crate::trace::format::event::{Kind, Reason, unpack_release, unpack_size};

/// What a thread does, as far as the lock is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// It holds the lock.
    Running = 0,
    /// It wants the lock.
    Waiting = 1,
    /// It is blocked on something else, off the lock.
    Idle = 2,
    /// It sleeps because the program told it to, off the lock.
    Sleep = 3,
    /// It computes without the lock: in one of offlock's operations, or in other code that releases the lock.
    OffLock = 4,
    /// It holds the lock and collects garbage.
    Gc = 5,
}

/// The number of states.
pub const STATES: usize = 6;

impl State {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; STATES] =
        [Self::Running, Self::Waiting, Self::Idle, Self::Sleep, Self::OffLock, Self::Gc];

    /// Its name.
    pub fn name(self) -> &'static str {
        ["running", "waiting", "idle", "sleep", "off-lock", "gc"][self as usize]
    }

    /// Whether a thread in this state has the lock.
    pub fn holds(self) -> bool {
        matches!(self, Self::Running | Self::Gc)
    }
}

/// A state that lasts until the next slice of the thread begins, or the thread ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// When it begins.
    pub start: u64,
    /// The state.
    pub state: State,
    /// The lock, for `Running`, `Waiting` and `Gc`; the operation's name or [`Recording::OTHER_CODE`], for
    /// `OffLock`; otherwise 0.
    pub what: u32,
}

/// A time during which a thread held a lock or waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The lock.
    pub lock: u32,
    /// When it begins.
    pub start: u64,
    /// When it ends.
    pub end: u64,
}

impl Stretch {
    /// How long it lasts.
    pub fn length(&self) -> u64 {
        self.end - self.start
    }
}

/// An operation off the lock, or a span that the program marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The number of its name.
    pub name: u32,
    /// When it begins.
    pub start: u64,
    /// When it ends.
    pub end: u64,
    /// The bytes that an operation processed.
    pub bytes: u64,
}

/// How threads used the processors, by the system's clocks, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// On a processor.
    pub cpu: u64,
    /// Of that, off the lock and in none of offlock's operations: in other libraries that release the lock,
    /// and in the system.
    pub others: u64,
    /// Ready to run, but without a processor; `None` where the system does not say. Linux does.
    pub run_delay: Option<u64>,
    /// Of that, while waiting for the lock: the lock was free, or soon was, and the thread had no processor
    /// to take it.
    pub run_delay_waiting: Option<u64>,
    /// Of that, while it held the lock or computed without it. The rest was late to wake up.
    #[serde(skip)]
    pub run_delay_working: Option<u64>,
}

impl Usage {
    /// The sum of two times, as far as they are known.
    pub(super) fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
        a.zip(b).map(|(a, b)| a + b).or(a).or(b)
    }

    /// The sum of those that are known.
    pub(super) fn sum(all: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        all.flatten().reduce(|a, b| Self {
            cpu: a.cpu + b.cpu,
            others: a.others + b.others,
            run_delay: Self::plus(a.run_delay, b.run_delay),
            run_delay_waiting: Self::plus(a.run_delay_waiting, b.run_delay_waiting),
            run_delay_working: Self::plus(a.run_delay_working, b.run_delay_working),
        })
    }
}

/// The history of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Life {
    /// The thread's number in the recording.
    pub id: u32,
    /// The thread's name, or a generic one.
    pub name: String,
    /// When the thread or the recording began, whichever is later.
    pub start: u64,
    /// When the thread or the recording ended, whichever is earlier.
    pub end: u64,
    /// Its states in order. They cover its life without gaps, and none is empty.
    pub slices: Vec<Slice>,
    /// The times during which it held a lock.
    pub holds: Vec<Stretch>,
    /// The times during which it waited for a lock.
    pub waits: Vec<Stretch>,
    /// How often it acquired a lock.
    pub acquisitions: u64,
    /// How often it released one.
    pub releases: u64,
    /// Its operations off the lock.
    pub regions: Vec<Span>,
    /// The spans that the program marked on it.
    pub marks: Vec<Span>,
    /// The native threads on which it ran, each with the time of the change.
    pub natives: Vec<(u64, u32)>,
    /// The number of impossible transitions, such as a release by a thread that does not hold the lock.
    pub oddities: u64,
    /// How it used the processors; `None` if that was not recorded.
    pub usage: Option<Usage>,
}

impl Life {
    /// Its states with start and end.
    pub fn states(&self) -> impl Iterator<Item = (Slice, u64)> + '_ {
        let ends = self.slices.iter().skip(1).map(|slice| slice.start).chain([self.end]);
        self.slices.iter().copied().zip(ends)
    }

    /// Its time in each state between two points in time.
    pub(super) fn times_within(&self, start: u64, end: u64) -> [u64; STATES] {
        let first = self.slices.partition_point(|slice| slice.start <= start).saturating_sub(1);
        let ends = self.slices[first..].iter().skip(1).map(|slice| slice.start).chain([self.end]);
        let mut times = [0; STATES];
        for (Slice { start: from, state, .. }, to) in self.slices[first..].iter().zip(ends) {
            if *from >= end {
                break;
            }
            times[*state as usize] += to.min(end) - (*from).max(start);
        }
        times
    }
}

/// A time during which two threads seem to hold the same lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The lock.
    pub lock: u32,
    /// The thread that held it, by its index.
    pub first: usize,
    /// The thread that acquired it too early, by its index.
    pub second: usize,
    /// When the second one acquired it.
    pub start: u64,
    /// When the first one released it, or the second one if that was earlier.
    pub end: u64,
}

/// A hold of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The thread, by its index.
    pub thread: usize,
    /// When it begins.
    pub start: u64,
    /// When it ends; never after the next one begins.
    pub end: u64,
}

/// The history of a lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockLife {
    /// The lock's number in the recording.
    pub id: u32,
    /// Its name, or a generic one.
    pub name: String,
    /// What it stands for.
    pub kind: LockKind,
    /// Its holds, in order.
    pub holds: Vec<Hold>,
}

/// The states of all threads and locks during a recording. All times are nanoseconds since its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// How long the recording lasted.
    pub length: u64,
    /// The threads, in the order in which they became known.
    pub threads: Vec<Life>,
    /// The locks.
    pub locks: Vec<LockLife>,
    /// Times at which a lock seems to have had two holders. There are none in a faithful recording.
    pub overlaps: Vec<Overlap>,
}

/// A thread's relation to its lock.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Base {
    Off(Reason),
    Waiting(u32),
    Holding(u32),
}

/// Builds a thread's history from its events.
struct Walk {
    life: Life,
    /// Whether it is one of [`OWN_THREADS`].
    is_own: bool,
    base: Base,
    since: u64,
    gc: u32,
    /// Whether operations off the lock are known better than the thread's relation to the lock.
    trusts_regions: bool,
    open_regions: Vec<Span>,
    open_marks: Vec<Span>,
}

/// The history of a thread. `only_lock` is the lock that it has or wants if no event says so.
pub(super) fn live(recording: &Recording, only_lock: u32, id: u32, thread: &RecordedThread) -> Life {
    let length = recording.end - recording.start;
    let relative = |time: u64| time.saturating_sub(recording.start).min(length);
    let find =
        |kind| thread.moments.iter().find(|moment| moment.kind == kind).map(|moment| relative(moment.time));
    let start = find(Kind::ThreadStart).unwrap_or(0);
    let end = find(Kind::ThreadEnd).unwrap_or(length).max(start);
    let mut walk = Walk {
        life: Life { id, name: thread.name_or(id), start, end, ..Life::default() },
        is_own: OWN_THREADS.contains(&thread.name.as_str()),
        base: first_base(thread, only_lock, recording.is_estimate()),
        since: start,
        gc: 0,
        trusts_regions: recording.is_estimate() && !recording.has_no_lock(),
        open_regions: Vec::new(),
        open_marks: Vec::new(),
    };
    walk.show(start);
    for moment in &thread.moments {
        walk.step(relative(moment.time).clamp(start, end), moment);
    }
    walk.finish()
}

/// A thread's relation to its lock before its first event, inferred from that event if possible. Samples do
/// not show waiting.
fn first_base(thread: &RecordedThread, only_lock: u32, is_estimate: bool) -> Base {
    for moment in &thread.moments {
        match moment.kind {
            Kind::ThreadStart | Kind::Wants => return Base::Off(Reason::Blocks),
            Kind::Acquired if is_estimate => return Base::Off(Reason::Blocks),
            Kind::Acquired => return Base::Waiting(moment.argument),
            Kind::Released => {
                return match unpack_release(moment.argument) {
                    (lock, Reason::Unheld) => Base::Waiting(lock),
                    (lock, _) => Base::Holding(lock),
                };
            }
            _ => {}
        }
    }
    match thread.stand {
        Stand::Holds => Base::Holding(only_lock),
        Stand::Wants => Base::Waiting(only_lock),
        Stand::Off | Stand::Unknown => Base::Off(Reason::Blocks),
    }
}

impl Walk {
    fn step(&mut self, time: u64, moment: &Moment) {
        match moment.kind {
            Kind::Wants => self.wants(time, moment.argument),
            Kind::Acquired => self.acquired(time, moment),
            Kind::Released => self.released(time, moment),
            Kind::GcEnter => self.gc += 1,
            Kind::GcExit => self.gc = self.gc.saturating_sub(1),
            Kind::RegionBegin => self.open_regions.push(open(time, moment.argument)),
            Kind::RegionEnd => {
                let closed = self.open_regions.pop();
                let bytes = unpack_size(moment.argument);
                self.life.regions.extend(closed.map(|span| Span { end: time, bytes, ..span }));
            }
            Kind::MarkBegin => self.open_marks.push(open(time, moment.argument)),
            Kind::MarkEnd => {
                let renamed = |span: Span| if moment.argument == 0 { span.name } else { moment.argument };
                let closed = self.open_marks.pop();
                self.life.marks.extend(closed.map(|span| Span { end: time, name: renamed(span), ..span }));
            }
            Kind::StackHolding | Kind::StackReleasing | Kind::StackWaiting => return,
            Kind::ThreadStart | Kind::ThreadEnd | Kind::Lost | Kind::Cpu | Kind::RunDelay => {}
        }
        self.show(time);
    }

    fn wants(&mut self, time: u64, lock: u32) {
        match self.base {
            Base::Waiting(same) if same == lock => return,
            Base::Holding(_) => self.life.oddities += 1,
            _ => {}
        }
        self.enter(time, Base::Waiting(lock));
    }

    fn acquired(&mut self, time: u64, moment: &Moment) {
        if matches!(self.base, Base::Holding(_)) {
            self.life.oddities += 1;
        }
        self.life.acquisitions += 1;
        self.runs_on(time, moment.native);
        self.enter(time, Base::Holding(moment.argument));
    }

    fn runs_on(&mut self, time: u64, native: u32) {
        if self.life.natives.last().is_none_or(|(_, last)| *last != native) {
            self.life.natives.push((time, native));
        }
    }

    fn released(&mut self, time: u64, moment: &Moment) {
        let (lock, reason) = unpack_release(moment.argument);
        self.runs_on(time, moment.native);
        let (expected, next) = match reason {
            Reason::Unheld => (Base::Waiting(lock), Base::Off(Reason::Blocks)),
            Reason::Yields => (Base::Holding(lock), Base::Waiting(lock)),
            _ => (Base::Holding(lock), Base::Off(reason)),
        };
        self.life.releases += u64::from(reason != Reason::Unheld);
        self.life.oddities += u64::from(self.base != expected);
        self.enter(time, next);
    }

    fn enter(&mut self, time: u64, base: Base) {
        self.close_base(time);
        self.base = base;
        self.since = time;
    }

    fn close_base(&mut self, end: u64) {
        let start = self.since;
        match self.base {
            Base::Holding(lock) => self.life.holds.push(Stretch { lock, start, end }),
            Base::Waiting(lock) if !self.is_own => self.life.waits.push(Stretch { lock, start, end }),
            Base::Waiting(_) | Base::Off(_) => {}
        }
    }

    /// The resulting state. Operations are known exactly even if the rest is estimated; where there is no lock, waits are
    /// exact, and computing is an estimate.
    fn state(&self) -> (State, u32) {
        match (self.base, self.open_regions.last()) {
            (_, Some(region)) if self.trusts_regions => (State::OffLock, region.name),
            (Base::Holding(lock), _) if self.gc > 0 => (State::Gc, lock),
            (Base::Holding(lock), _) => (State::Running, lock),
            (Base::Waiting(lock), _) if !self.is_own => (State::Waiting, lock),
            (Base::Waiting(_) | Base::Off(_), Some(region)) => (State::OffLock, region.name),
            (Base::Off(Reason::Sleeps), None) => (State::Sleep, 0),
            (Base::Waiting(_) | Base::Off(_), None) => (State::Idle, 0),
        }
    }

    fn show(&mut self, start: u64) {
        let (state, what) = self.state();
        let slices = &mut self.life.slices;
        while slices.last().is_some_and(|last| last.start == start) {
            slices.pop();
        }
        if slices.last().is_none_or(|last| (last.state, last.what) != (state, what)) {
            slices.push(Slice { start, state, what });
        }
    }

    fn finish(mut self) -> Life {
        let end = self.life.end;
        self.close_base(end);
        let close = |span: Span| Span { end, ..span };
        self.life.regions.extend(self.open_regions.drain(..).map(close));
        self.life.marks.extend(self.open_marks.drain(..).map(close));
        self.life.regions.sort_by_key(|span| span.start);
        self.life.marks.sort_by_key(|span| span.start);
        if self.life.slices.last().is_some_and(|last| last.start == end) && self.life.slices.len() > 1 {
            self.life.slices.pop();
        }
        self.life
    }
}

fn open(start: u64, name: u32) -> Span {
    Span { name, start, end: start, bytes: 0 }
}
