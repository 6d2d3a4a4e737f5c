//! Long builds, which are made with the lock and let others have it now and then.

use pyo3::prelude::*;

use crate::region::yield_in_call;

/// Cuts a long build into bursts, between which other threads can have the lock.
pub(crate) struct Pace {
    until_look: u32,
    /// Otherwise the build keeps the lock.
    yields: bool,
}

const LOOK_EVERY: u32 = 256;

impl Default for Pace {
    /// The lock is kept.
    fn default() -> Self {
        Self { until_look: LOOK_EVERY, yields: false }
    }
}

impl Pace {
    /// The lock is yielded after each time slice.
    pub(crate) fn giving_way() -> Self {
        Self { yields: true, ..Self::default() }
    }

    /// To be called for each object, before it is made. Raises what a signal's handler raises.
    #[inline(always)]
    pub(crate) fn keep(&mut self, py: Python<'_>) -> PyResult<()> {
        self.until_look -= 1;
        if self.until_look == 0 { self.look(py) } else { Ok(()) }
    }

    #[cold]
    fn look(&mut self, py: Python<'_>) -> PyResult<()> {
        self.until_look = LOOK_EVERY;
        if self.yields { yield_in_call(py) } else { Ok(()) }
    }
}
