//! Watches of a flight recorder: long waits and long holds, for a thread that asks for them.

use std::time::Duration;

use offlock_core::trace;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::cpython::object;
use crate::objects::tuple;

/// Looks for waits or holds that are too long.
#[pyclass(module = "offlock._offlock.lock", frozen)]
pub(super) struct Watch(trace::Watch);

impl Watch {
    pub(super) fn new(watch: trace::Watch) -> Self {
        Self(watch)
    }
}

#[pymethods]
impl Watch {
    /// Waits for the next wait or hold without the interpreter's lock.
    ///
    /// Returns the names of the holder and of the waiting thread, the nanoseconds, whether it is over, a sentence, and
    /// the stack as triples of function, file and line; None once the recorder is stopped.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(alarm) = py.detach(|| self.0.next(Duration::MAX)) else { return Ok(None) };
        let text = |text: &str| object::text(py, text).map(Bound::into_any);
        let frame = |frame: &trace::FrameText| {
            let line = object::size(py, frame.line as usize)?.into_any();
            tuple(py, [text(&frame.function)?, text(&frame.file)?, line])
        };
        let stack = alarm.stack.iter().map(frame).collect::<PyResult<Vec<_>>>()?;
        let nanoseconds = object::size(py, alarm.nanoseconds as usize)?.into_any();
        let is_over = PyBool::new(py, alarm.is_over).to_owned().into_any();
        let sentence = text(&alarm.to_string())?;
        let all =
            [text(&alarm.holder)?, text(&alarm.waiting)?, nanoseconds, is_over, sentence, tuple(py, stack)?];
        tuple(py, all).map(Some)
    }
}
