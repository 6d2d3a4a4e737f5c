//! Definitions: what the numbers in records stand for.

use serde::Serialize;

/// An interpreter lock: the GIL, a subinterpreter's own, Ruby's GVL, a Ractor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lock(pub(in crate::trace) u32);

impl Lock {
    /// The name of the lock that stands for stop-the-world pauses in an interpreter that has no lock: the thread that
    /// stopped the others has it.
    pub const STOP_THE_WORLD: &'static str = "stop the world";

    /// The name of the lock that stands for those that threads got after some tries, in an interpreter that has no lock: they
    /// may be objects', the interpreter's or the program's own.
    pub const SPINNING: &'static str = "locks, spinning";

    /// The name of the lock that stands for those of all objects of a type, in an interpreter that has no lock.
    pub fn of_objects(type_name: &str) -> String {
        format!("{OBJECTS}{type_name}")
    }
}

/// How the names of the locks of objects begin.
const OBJECTS: &str = "objects of type ";

/// What a lock of a recording stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// An interpreter lock.
    #[default]
    Interpreter,
    /// Pauses, in which one thread has stopped all others of an interpreter without a lock.
    StopTheWorld,
    /// Locks that threads got after some tries, without going to sleep. It is not known what they belong to.
    Spinning,
    /// The locks of all objects of a type. Which threads have them is not known.
    Objects,
}

impl LockKind {
    /// The kind of the lock with this name, in a recording of an interpreter without a lock.
    pub(in crate::trace) fn without_lock(name: &str) -> Self {
        match name {
            Lock::STOP_THE_WORLD => Self::StopTheWorld,
            Lock::SPINNING => Self::Spinning,
            _ if name.starts_with(OBJECTS) => Self::Objects,
            _ => Self::Interpreter,
        }
    }
}

/// The type of the objects whose locks have this name.
pub(in crate::trace) fn type_of_objects(name: &str) -> &str {
    name.strip_prefix(OBJECTS).unwrap_or(name)
}

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
