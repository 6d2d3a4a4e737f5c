//! Readings of the processors' clocks, as the recorder has noted them.

use crate::trace::format::event::{Event, Kind};

/// A reading of the clocks of a native thread, or of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The time, in nanoseconds of the monotonic clock.
    pub time: u64,
    /// For how long it has run on a processor, in microseconds.
    pub cpu: u64,
    /// For how long it has been ready to run without one, in microseconds; `None` if the system does not say.
    pub run_delay: Option<u64>,
}

/// A reading of the clocks of the machine's processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineUsed {
    /// The time, in nanoseconds of the monotonic clock.
    pub time: u64,
    /// For how long they have been busy, in units of the system.
    pub busy: u64,
    /// For how long they have been there.
    pub total: u64,
}

impl Used {
    /// It as records.
    pub(super) fn events(&self) -> impl Iterator<Item = Event> + use<> {
        let (time, thread) = (self.time, 0);
        let numbers = [(Kind::Cpu, Some(self.cpu)), (Kind::RunDelay, self.run_delay)];
        let event = move |(kind, number): (Kind, Option<u64>)| {
            Some(Event { time, thread, kind, argument: number? as u32 })
        };
        numbers.into_iter().filter_map(event)
    }
}

/// Sorts readings and adds what their 32 bits have lost. A thread notes its own clock while the recorder
/// reads it, so a number may be a little smaller than the one before; it is much smaller if a new thread has
/// the number of an ended one. A thread knows only for how long it ran; for how long it was ready, the last
/// known number stands.
pub(super) fn complete(readings: &mut [Used]) {
    readings.sort_by_key(|used| used.time);
    let mut lasts = [None::<u64>; 2];
    for used in readings {
        let [cpu, run_delay] = &mut lasts;
        used.cpu = continued(cpu, used.cpu);
        used.run_delay = used.run_delay.map(|number| continued(run_delay, number)).or(*run_delay);
    }
}

fn continued(last: &mut Option<u64>, number: u64) -> u64 {
    let step = |last: u64| (number as u32).wrapping_sub(last as u32).cast_signed().max(0);
    *last.insert(last.map_or(number, |last| last + u64::from(step(last).cast_unsigned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_32_bits_have_lost_is_added() {
        let used = |time, cpu| Used { time, cpu, run_delay: Some(cpu / 2) };
        let full = u64::from(u32::MAX);
        let mut readings = vec![used(3, 5), used(1, full - 9), used(2, full), used(4, 4), used(5, 100)];
        complete(&mut readings);
        let cpu: Vec<u64> = readings.iter().map(|used| used.cpu - (full - 9)).collect();
        assert_eq!(cpu, [0, 9, 15, 15, 110]);
        assert!(readings.is_sorted_by_key(|used| used.run_delay));
        let mut own = [None, Some(7), None, Some(9)].map(|run_delay| Used { time: 1, cpu: 1, run_delay });
        complete(&mut own);
        assert_eq!(own.map(|used| used.run_delay), [None, Some(7), Some(7), Some(9)]);
    }
}
