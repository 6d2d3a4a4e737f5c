//! Definitions: what the numbers in records stand for.

/// An interpreter lock: the GIL, a subinterpreter's own, Ruby's GVL, a Ractor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lock(pub(in crate::trace) u32);

/// The number of a text in the records, for operations and marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(pub(in crate::trace) u32);

/// The definition of a number in the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::trace) enum Definition {
    Name { id: u32, text: String },
    Thread { id: u32, name: String, stand: Stand },
    Lock { id: u32, name: String },
}

/// A thread's relation to its lock, as far as the recorder knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Stand {
    /// Nothing is known yet.
    #[default]
    Unknown = 0,
    /// It neither has nor wants the lock.
    Off = 1,
    /// It wants the lock.
    Wants = 2,
    /// It has the lock.
    Holds = 3,
}

impl Stand {
    pub(in crate::trace) fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Off,
            2 => Self::Wants,
            3 => Self::Holds,
            _ => Self::Unknown,
        }
    }
}
