//! Long stays under the lock, which are cut into bursts, between which others can have it.

use pyo3::prelude::*;

use crate::region::{self, Release};

/// Cuts a long build into bursts, between which other threads can have the lock.
pub(crate) struct Pace {
    until_look: u32,
    between_bursts: Between,
}

/// What happens between two bursts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    /// Nothing: no code of others can run.
    Nothing,
    /// Signals' handlers run.
    Signals,
    /// Others can have the lock, and signals' handlers run.
    GiveWay,
}

const LOOK_EVERY: u32 = 512;

/// Copying as many bytes to new memory takes about as long as making a small object.
const BYTES_LIKE_AN_OBJECT: usize = 256;

impl Default for Pace {
    /// The lock is kept.
    fn default() -> Self {
        Self::with(Between::Nothing)
    }
}

impl Pace {
    /// The lock is yielded after each time slice.
    pub(crate) fn giving_way() -> Self {
        Self::with(Between::GiveWay)
    }

    /// As the caller of an operation wants it. If the lock is never to be released, there are only looks for signals.
    pub(crate) fn of(release: Release) -> Self {
        Self::with(if release == Release::Never { Between::Signals } else { Between::GiveWay })
    }

    const fn with(between_bursts: Between) -> Self {
        Self { until_look: LOOK_EVERY, between_bursts }
    }

    /// To be called for each object, before it is made. Raises what a signal's handler raises.
    #[inline(always)]
    pub(crate) fn keep(&mut self, py: Python<'_>) -> PyResult<()> {
        self.until_look -= 1;
        if self.until_look == 0 { self.look(py) } else { Ok(()) }
    }

    /// As [`keep`](Self::keep), for as much work as `objects` small objects are.
    #[inline]
    pub(crate) fn keep_many(&mut self, py: Python<'_>, objects: usize) -> PyResult<()> {
        if self.passes(objects) { self.look(py) } else { Ok(()) }
    }

    /// As [`keep`](Self::keep), for an object that `bytes` bytes are copied to.
    #[inline]
    pub(crate) fn keep_bytes(&mut self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        if bytes < BYTES_LIKE_AN_OBJECT {
            self.keep(py)
        } else {
            self.keep_many(py, 1 + bytes / BYTES_LIKE_AN_OBJECT)
        }
    }

    /// Counts the next object as many: it takes about the time of so many bytes' copy.
    #[inline]
    pub(crate) fn weigh(&mut self, bytes: usize) {
        let objects = u32::try_from(bytes / BYTES_LIKE_AN_OBJECT).unwrap_or(u32::MAX);
        self.until_look = self.until_look.saturating_sub(objects).max(1);
    }

    /// As [`keep`](Self::keep), where nothing can be raised: signals wait.
    #[inline]
    pub(crate) fn keep_quietly(&mut self, py: Python<'_>) {
        if self.passes(1) {
            self.until_look = LOOK_EVERY;
            if self.between_bursts == Between::GiveWay {
                region::step_aside_in_call(py);
            }
        }
    }

    #[inline]
    fn passes(&mut self, objects: usize) -> bool {
        let objects = u32::try_from(objects).unwrap_or(u32::MAX);
        self.until_look = self.until_look.saturating_sub(objects);
        self.until_look == 0
    }

    #[cold]
    pub(crate) fn look(&mut self, py: Python<'_>) -> PyResult<()> {
        self.until_look = LOOK_EVERY;
        match self.between_bursts {
            Between::Nothing => Ok(()),
            Between::Signals => py.check_signals(),
            Between::GiveWay => region::yield_in_call(py),
        }
    }
}
