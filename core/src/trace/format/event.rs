//! Events, and how they are packed into records of two words.
//!
//! A record in memory has the kind in 8 bits and the lower 56 bits of the time stamp in the first word, the
//! thread and the argument in the second. At 4 GHz, 56 bits of ticks last for 208 days; records are unpacked
//! within seconds, relative to the current time.

use crate::clock::Ticks;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The thread wants the lock; the argument names the lock.
    Wants = 1,
    /// The thread has the lock; the argument names the lock.
    Acquired = 2,
    /// The thread released the lock; the argument holds the lock and the [`Reason`].
    Released = 3,
    /// The thread began.
    ThreadStart = 4,
    /// The thread ended.
    ThreadEnd = 5,
    /// The thread began to collect garbage.
    GcEnter = 6,
    /// The thread finished collecting garbage.
    GcExit = 7,
    /// An operation off the lock begins; the argument is its name.
    RegionBegin = 8,
    /// The innermost operation off the lock ended; the argument is its size, see [`pack_size`].
    RegionEnd = 9,
    /// The program marks the beginning of a span; the argument is its name.
    MarkBegin = 10,
    /// The innermost span ended; the argument is its name if that differs from the one at its beginning, or 0.
    MarkEnd = 11,
    /// Events were lost here; the argument is their number.
    Lost = 12,
    /// The thread's stack while it held the lock and another thread waited; the argument is a [`Stack`].
    ///
    /// [`Stack`]: super::code::Stack
    StackHolding = 13,
    /// The thread's stack when it released the lock for which another thread waited; the argument is a stack.
    StackReleasing = 14,
    /// The thread's stack while it waits for the lock; the argument is a stack.
    StackWaiting = 15,
    /// The native thread (0: the process) has used a processor for so many microseconds, modulo 2^32.
    Cpu = 16,
    /// The native thread of the last [`Cpu`](Self::Cpu) record has been ready to run, but without a processor,
    /// for so many microseconds, modulo 2^32.
    RunDelay = 17,
}

impl Kind {
    /// Whether it is an event, and not a note of the recorder's.
    pub(in crate::trace) fn is_event(self) -> bool {
        !matches!(self, Self::Lost | Self::Cpu | Self::RunDelay)
    }

    /// The kind with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Wants,
            2 => Self::Acquired,
            3 => Self::Released,
            4 => Self::ThreadStart,
            5 => Self::ThreadEnd,
            6 => Self::GcEnter,
            7 => Self::GcExit,
            8 => Self::RegionBegin,
            9 => Self::RegionEnd,
            10 => Self::MarkBegin,
            11 => Self::MarkEnd,
            12 => Self::Lost,
            13 => Self::StackHolding,
            14 => Self::StackReleasing,
            15 => Self::StackWaiting,
            16 => Self::Cpu,
            17 => Self::RunDelay,
            _ => return None,
        })
    }
}

/// Why a thread released the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Reason {
    /// It blocks, on input or output, a mutex, a queue, or something unknown.
    #[default]
    Blocks = 0,
    /// Its time slice is over, or it let other threads go first; it still wants the lock.
    Yields = 1,
    /// The program told it to sleep.
    Sleeps = 2,
    /// It did not have it: it has waited for it, and goes on.
    Unheld = 3,
}

impl Reason {
    fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Yields,
            2 => Self::Sleeps,
            3 => Self::Unheld,
            _ => Self::Blocks,
        }
    }
}

const LOCK_BITS: u32 = 24;

/// Packs the argument of a [`Kind::Released`] record. Only the lower 24 bits of `lock` are kept.
#[inline]
pub fn pack_release(lock: u32, reason: Reason) -> u32 {
    lock & ((1 << LOCK_BITS) - 1) | (reason as u32) << LOCK_BITS
}

/// Lock and reason of a [`Kind::Released`] record's argument.
pub fn unpack_release(argument: u32) -> (u32, Reason) {
    (argument & ((1 << LOCK_BITS) - 1), Reason::from_u8((argument >> LOCK_BITS) as u8))
}

const IN_KIBIBYTES: u32 = 1 << 31;

/// Packs a number of bytes as the argument of a record: exact below 2 GiB, in KiB from there on.
#[inline]
pub fn pack_size(bytes: u64) -> u32 {
    match u32::try_from(bytes) {
        Ok(small) if small < IN_KIBIBYTES => small,
        _ => (bytes >> 10).min(u64::from(IN_KIBIBYTES - 1)) as u32 | IN_KIBIBYTES,
    }
}

/// The number of bytes that [`pack_size`] packed.
pub fn unpack_size(argument: u32) -> u64 {
    match argument & IN_KIBIBYTES {
        0 => u64::from(argument),
        _ => u64::from(argument & !IN_KIBIBYTES) << 10,
    }
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The time: [`Ticks`] while recording, nanoseconds of the monotonic clock in a file.
    pub time: u64,
    /// The interpreter thread.
    pub thread: u32,
    /// The kind.
    pub kind: Kind,
    /// The argument; see [`Kind`].
    pub argument: u32,
}

const TIME_BITS: u32 = 56;

impl Event {
    /// The event as a record of two words.
    #[inline]
    pub(in crate::trace) fn pack(self) -> [u64; 2] {
        [
            self.time << (64 - TIME_BITS) | self.kind as u64,
            u64::from(self.thread) << 32 | u64::from(self.argument),
        ]
    }

    /// The event of a record that was made less than 2^55 ticks from `now`.
    pub(in crate::trace) fn unpack([head, tail]: [u64; 2], now: Ticks) -> Option<Self> {
        let age = now.wrapping_sub(head >> (64 - TIME_BITS)) << (64 - TIME_BITS);
        let age = age as i64 >> (64 - TIME_BITS);
        Some(Self {
            time: now.wrapping_sub(age as u64),
            thread: (tail >> 32) as u32,
            kind: Kind::from_u8(head as u8)?,
            argument: tail as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_numbers() {
        for number in 0..=255 {
            match Kind::from_u8(number) {
                Some(kind) => assert_eq!(kind as u8, number),
                None => assert!(matches!(number, 0 | 18..)),
            }
        }
    }

    #[test]
    fn records_keep_events_even_when_the_counter_has_outgrown_them() {
        for base in [5_000, (1 << 56) - 10, 1 << 60, u64::MAX >> 1] {
            for time in [base - 1_000, base, base + 1_000] {
                let event = Event { time, thread: u32::MAX, kind: Kind::Lost, argument: u32::MAX - 1 };
                assert_eq!(Event::unpack(event.pack(), base), Some(event));
            }
        }
    }

    #[test]
    fn releases_keep_lock_and_reason() {
        for reason in [Reason::Blocks, Reason::Yields, Reason::Sleeps, Reason::Unheld] {
            assert_eq!(unpack_release(pack_release(77, reason)), (77, reason));
        }
    }

    #[test]
    fn sizes_are_exact_below_two_gibibytes() {
        for bytes in [0, 1, (1 << 31) - 1, 1 << 31, 5 << 40 >> 10 << 10] {
            assert_eq!(unpack_size(pack_size(bytes)), bytes.min((u64::from(u32::MAX) >> 1) << 10));
        }
        assert_eq!(unpack_size(pack_size((1 << 31) + 1_023)), 1 << 31);
        assert_eq!(unpack_size(pack_size(u64::MAX)), ((1 << 31) - 1) << 10);
    }
}
