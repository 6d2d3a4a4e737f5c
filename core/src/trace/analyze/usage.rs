//! What the processors' clocks say about threads: how long they ran, and what they did without the lock.
//!
//! No event tells a thread that computes in another library's code, which has released the lock, from one
//! that waits for input: both are off the lock. The clocks do: in the first case the thread runs on a
//! processor. They are read every 50 ms or so, and the time of each such interval is divided among what the
//! thread did in it, first what is certain to need a processor:
//!
//! ```text
//! states     running 6 ms, off-lock 2 ms, idle 12 ms
//! clock      17 ms on a processor: 6 running, 2 off-lock, 9 in other code
//! ```
//!
//! The time for which it was ready to run without a processor is divided in the same way: first to what ran
//! for less than it lasted, then to waiting for the lock, which ends only when the thread runs, then to idle
//! time. If a thread was on a processor, or ready to be, for most of the time for which it seemed to be idle,
//! those slices become [`State::OffLock`] with the name [`Recording::OTHER_CODE`].

use std::collections::BTreeMap;

use super::readings::Used;
use super::recording::Recording;
use super::timeline::{Life, Slice, State, Usage};

/// Adds to each thread how it used the processors, and shows what it computed in other code.
pub(super) fn add(recording: &Recording, threads: &mut [Life]) {
    let mut computed: Vec<Vec<Period>> = vec![Vec::new(); threads.len()];
    for (native, stays) in stays(threads) {
        let Some(readings) = recording.usage.get(&native) else { continue };
        let mut present = Present { stays: &stays, next: 0, now: Vec::new() };
        for pair in readings.windows(2) {
            let Some(change) = Change::between(recording, pair[0], pair[1]) else { continue };
            change.divide(present.during(change.period), threads, &mut computed);
        }
    }
    for (life, mut periods) in threads.iter_mut().zip(computed) {
        periods.sort_unstable();
        show(life, &periods);
    }
}

/// A beginning and an end.
type Period = (u64, u64);

/// The time for which a thread ran on a certain native thread.
#[derive(Clone, Copy)]
struct Stay {
    thread: usize,
    period: Period,
}

/// The stays on each native thread, in the order in which they begin.
fn stays(threads: &[Life]) -> BTreeMap<u32, Vec<Stay>> {
    let mut stays: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
    for (thread, life) in threads.iter().enumerate() {
        let ends = life.natives.iter().skip(1).map(|(time, _)| *time).chain([life.end]);
        for (number, ((time, native), end)) in life.natives.iter().zip(ends).enumerate() {
            // It got its first native thread before it got the lock on it.
            let start = if number == 0 { life.start } else { *time };
            stays.entry(*native).or_default().push(Stay { thread, period: (start, end) });
        }
    }
    stays.values_mut().for_each(|stays| stays.sort_by_key(|stay| stay.period));
    stays
}

/// The stays on a native thread during a period that moves forward.
struct Present<'a> {
    stays: &'a [Stay],
    next: usize,
    now: Vec<Stay>,
}

impl Present<'_> {
    fn during(&mut self, (start, end): Period) -> &[Stay] {
        let begun = self.stays[self.next..].iter().take_while(|stay| stay.period.0 < end);
        self.now.extend(begun);
        self.next = self.stays.partition_point(|stay| stay.period.0 < end);
        self.now.retain(|stay| stay.period.1 > start);
        &self.now
    }
}

/// What a native thread's clocks counted in a period.
struct Change {
    period: Period,
    cpu: u64,
    run_delay: Option<u64>,
}

/// What a thread did in a part of a period.
struct Part {
    thread: usize,
    period: Period,
    holding: u64,
    off_lock: u64,
    idle: u64,
    waiting: u64,
    usage: Usage,
    /// How long it was ready to run, without a processor, while it seemed to be idle.
    ready: u64,
}

impl Change {
    /// No more than the time between the readings, by the recording's clock.
    fn between(recording: &Recording, first: Used, second: Used) -> Option<Self> {
        let length = recording.end - recording.start;
        let relative = |time: u64| time.saturating_sub(recording.start).min(length);
        let (start, end) = (relative(first.time), relative(second.time));
        let change = |first: u64, second: u64| (second.saturating_sub(first) * 1_000).min(end - start);
        let run_delay = first.run_delay.zip(second.run_delay);
        let change = Self {
            period: (start, end),
            cpu: change(first.cpu, second.cpu),
            run_delay: run_delay.map(|(first, second)| change(first, second)),
        };
        (end > start).then_some(change)
    }

    /// Divides it among the threads that were on the native thread.
    fn divide(&self, stays: &[Stay], threads: &mut [Life], computed: &mut [Vec<Period>]) {
        let mut parts: Vec<Part> = stays.iter().map(|stay| Part::of(*stay, self.period, threads)).collect();
        self.divide_cpu(&mut parts);
        self.divide_run_delay(&mut parts);
        for mut part in parts {
            let life = &mut threads[part.thread];
            if part.computed() {
                computed[part.thread].push(part.period);
                part.usage.run_delay_working = part.usage.run_delay_working.map(|delay| delay + part.ready);
            }
            life.usage = Usage::sum([life.usage, Some(part.usage)].into_iter());
        }
    }

    /// To holding the lock first, then to work off the lock, then to other code.
    fn divide_cpu(&self, parts: &mut [Part]) {
        let mut left = self.cpu;
        for part in parts.iter_mut() {
            part.usage.cpu += take(&mut left, part.holding);
        }
        for part in parts.iter_mut() {
            part.usage.cpu += take(&mut left, part.off_lock);
        }
        for part in parts.iter_mut() {
            part.usage.others = take(&mut left, part.idle);
            part.usage.cpu += part.usage.others;
        }
        // The rest went into asking for the lock.
        if let Some(part) = parts.first_mut() {
            part.usage.cpu += left;
        }
    }

    /// To work that had no processor first, then to waiting for the lock, then to idle time.
    fn divide_run_delay(&self, parts: &mut [Part]) {
        let Some(mut left) = self.run_delay else { return };
        for part in parts.iter_mut() {
            let worked = part.usage.cpu - part.usage.others;
            let delayed = take(&mut left, (part.holding + part.off_lock).saturating_sub(worked));
            part.usage.run_delay = Some(delayed);
            part.usage.run_delay_working = Some(delayed);
        }
        for part in parts.iter_mut() {
            part.usage.run_delay_waiting = Some(take(&mut left, part.waiting));
            part.usage.run_delay = Usage::plus(part.usage.run_delay, part.usage.run_delay_waiting);
        }
        for part in parts.iter_mut() {
            part.ready = take(&mut left, part.idle - part.usage.others);
            part.usage.run_delay = Usage::plus(part.usage.run_delay, Some(part.ready));
        }
        if let Some(part) = parts.first_mut() {
            part.usage.run_delay = Usage::plus(part.usage.run_delay, Some(left));
        }
    }
}

/// Takes up to `most` away.
fn take(left: &mut u64, most: u64) -> u64 {
    let taken = most.min(*left);
    *left -= taken;
    taken
}

impl Part {
    fn of(Stay { thread, period }: Stay, (start, end): Period, threads: &[Life]) -> Self {
        let period = (start.max(period.0), end.min(period.1));
        let times = threads[thread].times_within(period.0, period.1);
        let time = |state: State| times[state as usize];
        Self {
            thread,
            period,
            holding: time(State::Running) + time(State::Gc),
            off_lock: time(State::OffLock),
            idle: time(State::Idle),
            waiting: time(State::Waiting),
            usage: Usage::default(),
            ready: 0,
        }
    }

    /// Whether it computed, or could have with a processor, for most of its idle time. A thread that was only
    /// late to wake up hardly ran.
    fn computed(&self) -> bool {
        let others = self.usage.others;
        (others + self.ready) * 2 >= self.idle && others * 20 >= self.period.1 - self.period.0 && others > 0
    }
}

/// Shows idle slices during `computed` as work off the lock.
fn show(life: &mut Life, computed: &[Period]) {
    if computed.is_empty() {
        return;
    }
    let mut slices: Vec<Slice> = Vec::with_capacity(life.slices.len());
    let mut add = |start: u64, state: State, what: u32| {
        if slices.last().is_none_or(|last| (last.state, last.what) != (state, what)) {
            slices.push(Slice { start, state, what });
        }
    };
    let mut next = 0;
    for (Slice { mut start, state, what }, end) in life.states() {
        next += computed[next..].partition_point(|(_, to)| *to <= start);
        let during = computed[next..].iter().take_while(|(from, _)| *from < end);
        for (from, to) in during.filter(|_| state == State::Idle) {
            if *to <= start {
                continue;
            }
            if *from > start {
                add(start, state, what);
            }
            add(start.max(*from), State::OffLock, Recording::OTHER_CODE);
            start = end.min(*to);
        }
        if start < end {
            add(start, state, what);
        }
    }
    life.slices = slices;
}
