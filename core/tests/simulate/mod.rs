//! Made-up recordings whose truth is known: threads that follow a script, and a lock with a queue
//! and time slices.
#![allow(dead_code, reason = "each user of this module needs a part of it")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use offlock_core::trace::{Kind, Moment, Reason, RecordedThread, Recording, Stand, State, pack_size};

/// One thing that a thread does, for so many nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// Computes with the lock.
    Hold(u64),
    /// Collects garbage with the lock.
    Gc(u64),
    /// Blocks on something else.
    Idle(u64),
    /// Sleeps.
    Sleep(u64),
    /// Computes without the lock.
    OffLock(u64),
}

/// A thread: its name, when it begins, what it does. It sleeps only after it held the lock, and holds
/// it between two steps off the lock: nobody could tell them apart otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) steps: Vec<Step>,
}

impl Script {
    pub(crate) fn new(name: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        Self { name: name.into(), start: 0, steps: steps.into_iter().collect() }
    }
}

pub(crate) fn ms(milliseconds: u64) -> u64 {
    milliseconds * 1_000_000
}

/// What was the case: a thread was in a state from `start` to `end`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Truth {
    pub(crate) thread: usize,
    pub(crate) state: State,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// How the simulated interpreter behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interpreter {
    /// After this long a holder gives the lock to the next in the queue.
    pub(crate) time_slice: u64,
    /// How long the lock takes from one thread to the next.
    pub(crate) hand_over: u64,
    /// When the monotonic clock said that the recording began.
    pub(crate) origin: u64,
}

pub(crate) const OPERATION: u32 = 5;
pub(crate) const LOCK: u32 = 1;

struct Thread {
    steps: VecDeque<Step>,
    state: State,
    since: u64,
    in_region: bool,
}

/// The simulation in progress.
struct World {
    interpreter: Interpreter,
    threads: Vec<Thread>,
    queue: VecDeque<usize>,
    holder: Option<usize>,
    /// What happens next: when, in the order of being planned, to whom.
    agenda: BinaryHeap<Reverse<(u64, u64, usize)>>,
    planned: u64,
    recording: Recording,
    truth: Vec<Truth>,
}

/// Runs the scripts on one lock.
pub(crate) fn simulate(interpreter: Interpreter, scripts: &[Script]) -> (Recording, Vec<Truth>) {
    let about = [("language", "ruby"), ("command", "simulated")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let start = ("start".to_owned(), interpreter.origin.to_string());
    let mut world = World {
        interpreter,
        threads: Vec::new(),
        queue: VecDeque::new(),
        holder: None,
        agenda: BinaryHeap::new(),
        planned: 0,
        recording: Recording {
            about: about.into_iter().chain([start]).collect(),
            start: interpreter.origin,
            locks: BTreeMap::from([(LOCK, "GVL".to_owned())]),
            names: BTreeMap::from([(OPERATION, "deflate".to_owned())]),
            ..Recording::default()
        },
        truth: Vec::new(),
    };
    for (thread, script) in scripts.iter().enumerate() {
        let recorded = RecordedThread { name: script.name.clone(), stand: Stand::Off, moments: Vec::new() };
        world.recording.threads.insert(thread as u32 + 1, recorded);
        let steps = script.steps.iter().copied().collect();
        world.threads.push(Thread { steps, state: State::Idle, since: script.start, in_region: false });
        world.record(script.start, thread, Kind::ThreadStart, 0);
        world.plan(script.start, thread);
    }
    world.run()
}

impl World {
    fn run(mut self) -> (Recording, Vec<Truth>) {
        let mut end = 0;
        while let Some(Reverse((time, _, thread))) = self.agenda.pop() {
            end = time;
            self.wake(time, thread);
        }
        self.recording.end = self.interpreter.origin + end;
        self.recording.events =
            self.recording.threads.values().map(|thread| thread.moments.len() as u64).sum();
        self.truth.retain(|truth| truth.end > truth.start);
        (self.recording, self.truth)
    }

    fn plan(&mut self, time: u64, thread: usize) {
        self.planned += 1;
        self.agenda.push(Reverse((time, self.planned, thread)));
    }

    fn record(&mut self, time: u64, thread: usize, kind: Kind, argument: u32) {
        let time = self.interpreter.origin + time;
        let native = 1_000 + thread as u32;
        let recorded = self.recording.threads.entry(thread as u32 + 1).or_default();
        recorded.moments.push(Moment { time, kind, argument, native });
    }

    fn become_state(&mut self, time: u64, thread: usize, state: State) {
        let Thread { state: before, since, .. } = &mut self.threads[thread];
        self.truth.push(Truth { thread, state: *before, start: *since, end: time });
        (*before, *since) = (state, time);
    }

    fn wake(&mut self, time: u64, thread: usize) {
        match self.threads[thread].state {
            State::Running | State::Gc => self.worked(time, thread),
            State::Waiting => self.got_lock(time, thread),
            _ => self.next_step(time, thread),
        }
    }

    /// Begins the step at the front of the thread's script. The thread is off the lock.
    fn next_step(&mut self, time: u64, thread: usize) {
        let Some(step) = self.threads[thread].steps.front().copied() else { return self.end(time, thread) };
        if let Step::Hold(_) | Step::Gc(_) = step {
            return self.want(time, thread);
        }
        self.threads[thread].steps.pop_front();
        self.end_region(time, thread);
        self.leave(time, thread, step);
    }

    fn end_region(&mut self, time: u64, thread: usize) {
        if std::mem::take(&mut self.threads[thread].in_region) {
            self.record(time, thread, Kind::RegionEnd, pack_size(4_096));
        }
    }

    fn end(&mut self, time: u64, thread: usize) {
        self.end_region(time, thread);
        self.record(time, thread, Kind::ThreadEnd, 0);
        self.become_state(time, thread, State::Idle);
    }

    fn leave(&mut self, time: u64, thread: usize, step: Step) {
        let (length, state) = match step {
            Step::Idle(length) => (length, State::Idle),
            Step::Sleep(length) => (length, State::Sleep),
            Step::OffLock(length) => (length, State::OffLock),
            Step::Hold(_) | Step::Gc(_) => unreachable!("needs the lock"),
        };
        if state == State::OffLock {
            self.record(time, thread, Kind::RegionBegin, OPERATION);
            self.threads[thread].in_region = true;
        }
        if self.holder == Some(thread) {
            let reason = if state == State::Sleep { Reason::Sleeps } else { Reason::Blocks };
            self.release(time, thread, reason);
        }
        self.become_state(time, thread, state);
        self.plan(time + length, thread);
    }

    fn want(&mut self, time: u64, thread: usize) {
        self.record(time, thread, Kind::Wants, LOCK);
        self.become_state(time, thread, State::Waiting);
        match self.holder {
            None => self.grant(time, thread),
            Some(_) => self.queue.push_back(thread),
        }
    }

    fn grant(&mut self, time: u64, thread: usize) {
        self.holder = Some(thread);
        self.plan(time + self.interpreter.hand_over, thread);
    }

    fn got_lock(&mut self, time: u64, thread: usize) {
        self.record(time, thread, Kind::Acquired, LOCK);
        self.end_region(time, thread);
        self.work(time, thread);
    }

    /// Works on the step at the front until it is done or the time slice is over.
    fn work(&mut self, time: u64, thread: usize) {
        let (length, state) = match self.threads[thread].steps.front() {
            Some(Step::Hold(length)) => (*length, State::Running),
            Some(Step::Gc(length)) => (*length, State::Gc),
            _ => unreachable!("works with the lock"),
        };
        if state == State::Gc {
            self.record(time, thread, Kind::GcEnter, 0);
        }
        self.become_state(time, thread, state);
        self.plan(time + length.min(self.interpreter.time_slice), thread);
    }

    fn worked(&mut self, time: u64, thread: usize) {
        let done = time - self.threads[thread].since;
        if self.threads[thread].state == State::Gc {
            self.record(time, thread, Kind::GcExit, 0);
        }
        let Some(Step::Hold(left) | Step::Gc(left)) = self.threads[thread].steps.front_mut() else {
            unreachable!("works with the lock")
        };
        *left -= done;
        if *left == 0 {
            self.threads[thread].steps.pop_front();
        }
        match self.threads[thread].steps.front().copied() {
            None => {
                self.release(time, thread, Reason::Blocks);
                self.end(time, thread);
            }
            Some(Step::Hold(_) | Step::Gc(_)) if self.queue.is_empty() => self.work(time, thread),
            Some(Step::Hold(_) | Step::Gc(_)) => {
                self.become_state(time, thread, State::Waiting);
                self.queue.push_back(thread);
                self.release(time, thread, Reason::Yields);
            }
            Some(step) => {
                self.threads[thread].steps.pop_front();
                self.leave(time, thread, step);
            }
        }
    }

    fn release(&mut self, time: u64, thread: usize, reason: Reason) {
        self.record(time, thread, Kind::Released, LOCK | (reason as u32) << 24);
        self.holder = None;
        if let Some(next) = self.queue.pop_front() {
            self.grant(time, next);
        }
    }
}
