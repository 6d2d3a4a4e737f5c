//! The strings of a large message, laid out without the lock, if the program has enabled blocks
//! (`offlock.strings`).

use offlock_core::Task;
use offlock_core::memory;
use offlock_core::text::{Pieces, Span};
use pyo3::prelude::*;

use crate::cpython::allocator_hook;
use crate::error::no_memory;
use crate::gil_yield::Yielder;
use crate::large::LARGE;
use crate::strings::batch::{Built, StrBuilder, StrClass};

/// The builder that lays out strings, if there is one.
pub(crate) struct PrebuiltStrings(Option<StrBuilder>);

impl PrebuiltStrings {
    pub(crate) fn new(py: Python<'_>) -> Self {
        Self(if allocator_hook::is_ready() { StrBuilder::new(py, StrClass::Block).ok() } else { None })
    }

    /// Whether there is no builder.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Lays out the strings at these places, which ascend. `None` when that is not possible: the strings have
    /// to be made one by one then, which also raises their errors. So do messages with a huge string, because
    /// the work on a string is not interrupted here.
    pub(super) fn lay_out<'a>(
        &self,
        bytes: &'a [u8],
        spans: impl FnOnce() -> Option<Vec<Span>>,
        task: &Task<'_>,
    ) -> Option<Built<Pieces<'a>>> {
        let maker = self.0.as_ref()?;
        let spans = spans()?;
        if spans.iter().any(|span| span.end - span.start >= LARGE) {
            return None;
        }
        maker.make(Pieces::new(bytes, spans, task).ok()?, task).ok()
    }
}

/// The strings, one after the other.
pub(super) fn publish<'py>(
    py: Python<'py>,
    made: Option<Built<Pieces<'_>>>,
    yielder: &mut Yielder,
) -> PyResult<std::vec::IntoIter<Bound<'py, PyAny>>> {
    let mut strings = Vec::new();
    if let Some(made) = made {
        strings = memory::with_capacity(made.len()).map_err(no_memory)?;
        made.publish(py, yielder, |string| {
            strings.push(string);
            Ok(())
        })?;
    }
    Ok(strings.into_iter())
}
