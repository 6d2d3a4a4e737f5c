//! Long builds, which are made with the lock and let others have it now and then.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::region::give_way;

/// Cuts a long build into bursts, between which other threads can have the lock.
pub(crate) struct Pace {
    until_look: u32,
    /// `None`: the build keeps the lock.
    burst_began: Option<Instant>,
}

const LOOK_EVERY: u32 = 512;
/// Between two bursts some 70 µs are lost.
const BURST: Duration = Duration::from_millis(2);

impl Default for Pace {
    /// The lock is kept.
    fn default() -> Self {
        Self { until_look: LOOK_EVERY, burst_began: None }
    }
}

impl Pace {
    /// The first burst begins now.
    pub(crate) fn giving_way() -> Self {
        Self { burst_began: Some(Instant::now()), ..Self::default() }
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
        if self.burst_began.is_some_and(|began| began.elapsed() >= BURST) {
            give_way(py)?;
            self.burst_began = Some(Instant::now());
        }
        Ok(())
    }
}
