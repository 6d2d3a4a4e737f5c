//! Samples of the processor time of the process and of its native threads.
//!
//! The system keeps the time for which each thread has run on a processor and, on Linux, for which it was
//! ready to run without one. The writer thread reads these clocks between its passes, which costs the
//! program's threads nothing, and writes them as records of the native thread. A call to the system takes 0.3
//! to 20 µs, so the samples are taken every [`EVERY`] and, if there are many threads, less often: they never
//! take more than 1 in [`THRIFT`] parts of a processor's time. Reading a clock at each hand-over of the lock
//! would cost more than the hand-over.
//!
//! A sample that equals the previous one is written only if a later one differs. So threads that do nothing
//! leave nothing in the file, and it is known since when one does something.

use std::collections::HashMap;

use crate::os;
use crate::processors;
use crate::trace::format::event::{Event, Kind};
use crate::trace::format::wire::{self, Section};

/// The shortest time between two samples, in nanoseconds.
const EVERY: u64 = 50_000_000;
/// See the module's documentation.
const THRIFT: u64 = 200;
/// Less than 1 in so many parts of a processor's time is nothing new about the process.
const LITTLE: u64 = 16;

/// A reading of the clocks of a thread, or of the process, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    time: u64,
    cpu: u64,
    run_delay: Option<u64>,
}

/// The last sample, and whether it was written.
type Last = (Sample, bool);

/// Reads the clocks, and decides when.
#[derive(Default)]
pub(super) struct Meter {
    began: u64,
    due: u64,
    is_last: bool,
    last: HashMap<u32, Last>,
}

impl Meter {
    /// The number under which the samples of the process are written.
    pub(super) const PROCESS: u32 = 0;

    /// Begins a round of samples if it is time; [`process`](Self::process) ends it.
    pub(super) fn begin(&mut self) -> bool {
        self.began = os::monotonic_nanoseconds();
        self.began >= self.due
    }

    /// Makes the next round begin as soon as possible, and be written even if it says nothing new.
    pub(super) fn finish(&mut self) {
        (self.due, self.is_last) = (0, true);
    }

    /// Samples a thread and passes what has to be written to `put`.
    pub(super) fn thread(&mut self, native: u32, put: impl FnMut(Event)) {
        let Some(cpu) = os::cpu_nanoseconds_of(native) else { return };
        let last = self.last.get(&native).map(|(last, _)| *last);
        let run_delay = match last {
            // What does not run is not ready to run, as a rule: the delay is counted when it runs again.
            Some(last) if last.cpu == cpu => last.run_delay,
            _ => processors::run_delay(native),
        };
        let sample = Sample { time: os::monotonic_nanoseconds(), cpu, run_delay };
        self.note(native, sample, last.is_none_or(|last| last.cpu != cpu), put);
    }

    /// Samples the process, and ends the round. The recorder itself always needs a little time.
    pub(super) fn process(&mut self, put: impl FnMut(Event)) {
        let (time, cpu) = (os::monotonic_nanoseconds(), os::process_cpu_nanoseconds());
        let little = |last: &Last| (cpu - last.0.cpu) * LITTLE < time - last.0.time;
        let is_news = !self.last.get(&Self::PROCESS).is_some_and(little);
        self.note(Self::PROCESS, Sample { time, cpu, run_delay: None }, is_news, put);
        let taken = os::monotonic_nanoseconds() - self.began;
        (self.due, self.is_last) = (self.began + EVERY.max(taken * THRIFT), false);
    }

    fn note(&mut self, native: u32, sample: Sample, is_news: bool, mut put: impl FnMut(Event)) {
        let last = self.last.get(&native).copied();
        let is_written = is_news || self.is_last;
        if is_written {
            let skipped = last.filter(|(_, is_written)| !is_written).map(|(skipped, _)| skipped);
            skipped.into_iter().chain([sample]).flat_map(events).for_each(&mut put);
        }
        self.last.insert(native, (sample, is_written));
    }

    /// Forgets an ended thread, whose number another one may get.
    pub(super) fn forget(&mut self, native: u32) {
        self.last.remove(&native);
    }
}

/// A sample as records.
fn events(sample: Sample) -> impl Iterator<Item = Event> {
    let numbers = [(Kind::Cpu, Some(sample.cpu)), (Kind::RunDelay, sample.run_delay)];
    numbers.into_iter().filter_map(move |(kind, time)| {
        Some(Event { time: sample.time, thread: 0, kind, argument: (time? / 1_000) as u32 })
    })
}

/// A frame with a reading of the process's clock: where a trace begins to count.
pub(super) fn frame_of_process() -> Vec<u8> {
    let time = os::monotonic_nanoseconds();
    let sample = Sample { time, cpu: os::process_cpu_nanoseconds(), run_delay: None };
    let (mut body, mut section) = (Vec::new(), Section::new());
    wire::put_number(&mut body, time);
    section.begin(time);
    events(sample).for_each(|event| section.put(event));
    section.finish(Meter::PROCESS, &mut body);
    wire::frame(wire::EVENTS, &body)
}

/// The record of the calling thread's own clock, stamped with `time` in ticks.
pub(super) fn own(time: u64) -> Event {
    let argument = (os::thread_cpu_nanoseconds() / 1_000) as u32;
    Event { time, thread: 0, kind: Kind::Cpu, argument }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: u64, cpu: u64) -> Sample {
        Sample { time, cpu, run_delay: Some(cpu) }
    }

    #[test]
    fn a_sample_that_says_nothing_new_is_written_before_the_next_that_does() {
        let (mut meter, mut written, mut last) = (Meter::default(), Vec::new(), 0);
        for (time, cpu) in [(1, 5_000), (2, 5_000), (3, 5_000), (4, 8_000), (5, 9_000), (6, 9_000)] {
            let is_news = cpu != last;
            last = cpu;
            meter.note(7, sample(time, cpu), is_news, |event| {
                written.push((event.time, event.kind, event.argument))
            });
        }
        use Kind::{Cpu, RunDelay};
        let expected = [(1, 5), (3, 5), (4, 8), (5, 9)];
        let expected = expected.into_iter().flat_map(|(time, n)| [(time, Cpu, n), (time, RunDelay, n)]);
        assert!(written.into_iter().eq(expected));
    }

    #[test]
    fn a_round_is_due_after_a_while_or_at_the_end() {
        let mut meter = Meter::default();
        assert!(meter.begin());
        meter.process(|_| {});
        assert!(meter.due >= meter.began + EVERY);
        meter.finish();
        assert!(meter.begin());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_threads_clock_counts_its_work() {
        let own = os::native_thread_id();
        let before = os::cpu_nanoseconds_of(own).expect("alive");
        let until = os::thread_cpu_nanoseconds() + 2_000_000;
        while os::thread_cpu_nanoseconds() < until {}
        let worked = os::cpu_nanoseconds_of(own).expect("alive") - before;
        assert!((1_500_000..100_000_000).contains(&worked), "{worked}");
        assert_eq!(os::cpu_nanoseconds_of(u32::MAX >> 4), None, "no such thread");
    }
}
