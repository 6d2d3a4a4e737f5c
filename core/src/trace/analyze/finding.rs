//! A finding: a conclusion about a recording, for people (its text) and for programs (its kind).

use serde::Serialize;

/// How to take a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Do not trust the numbers without reading this.
    Caveat,
    /// The lock, or too few processors, cost time here.
    Problem,
    /// Good to know.
    Note,
}

/// What a finding says. The names, which the JSON has in snake case, do not change between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// The numbers are estimated from samples.
    Estimate,
    /// Events are missing.
    EventsLost,
    /// Events contradict each other.
    Contradictions,
    /// A part of the file is missing or wrong.
    Damaged,
    /// An interpreter that was built to run without a lock has one.
    LockEnabled,
    /// The verdict: no thread used a lock.
    Unused,
    /// The verdict: too little was recorded to tell.
    TooShort,
    /// The verdict: waiting for the lock is not what slows the program down.
    NotTheLock,
    /// The verdict: waiting for the lock slows the program down.
    Lock,
    /// The verdict on an interpreter without a lock: waiting in it slows the program down.
    Waits,
    /// A cause in an interpreter without a lock: one thread stopped all others.
    StopTheWorld,
    /// A cause in an interpreter without a lock: threads used the same objects.
    SharedObjects,
    /// Threads of an interpreter without a lock tried again and again to get locks that others had.
    Spinning,
    /// A cause: most of the waiting was behind one thread or pool.
    MainHolder,
    /// A cause: threads that need the lock briefly wait long for it.
    BriefUsers,
    /// A cause: the lock is always held, and threads queue for it.
    Saturated,
    /// A cause: the lock changes hands so often that this takes much of the time.
    HandOver,
    /// The verdict, or beside another one: threads that were ready to run had no processor.
    MachineFull,
    /// Garbage collection takes much of the time with the lock.
    Garbage,
    /// Operations ran off the lock.
    OffLock,
}

impl FindingKind {
    /// Whether this is an answer to the question whether the lock is the problem. The first in a summary is the
    /// verdict; that the machine is full may come in addition.
    pub fn is_verdict(self) -> bool {
        matches!(
            self,
            Self::Unused | Self::TooShort | Self::NotTheLock | Self::MachineFull | Self::Lock | Self::Waits
        )
    }

    /// How to take a finding of this kind.
    pub fn weight(self) -> Weight {
        match self {
            Self::Estimate | Self::EventsLost | Self::Contradictions | Self::Damaged => Weight::Caveat,
            Self::Lock
            | Self::Waits
            | Self::StopTheWorld
            | Self::SharedObjects
            | Self::LockEnabled
            | Self::MainHolder
            | Self::BriefUsers
            | Self::Saturated
            | Self::HandOver
            | Self::MachineFull => Weight::Problem,
            Self::Unused
            | Self::TooShort
            | Self::NotTheLock
            | Self::Spinning
            | Self::Garbage
            | Self::OffLock => Weight::Note,
        }
    }
}

/// How much is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// 5 % to 15 %, or more of what is little in all.
    Weak,
    /// 15 % to 50 %.
    Clear,
    /// 50 % and more.
    Strong,
}

/// A conclusion about a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it says.
    pub kind: FindingKind,
    /// How to take it.
    pub weight: Weight,
    /// How much is lost, of a verdict.
    pub strength: Option<Strength>,
    /// The name of the group of threads that it is about: the one that waits, of a verdict; the one that makes
    /// others wait, of a cause.
    pub group: Option<String>,
    /// The name of the mark that it is about.
    pub mark: Option<String>,
    /// The conclusion.
    pub text: String,
    /// What to do about it, if anything.
    pub advice: Option<String>,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, text: String) -> Self {
        Self { kind, weight: kind.weight(), strength: None, group: None, mark: None, text, advice: None }
    }

    pub(super) fn about(self, group: &str) -> Self {
        Self { group: Some(group.to_owned()), ..self }
    }

    pub(super) fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}
