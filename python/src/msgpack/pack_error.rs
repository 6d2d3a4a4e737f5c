//! The place in an object where packing failed: `["users"][3]["when"]`.

use std::fmt::Write as _;

use offlock_core::msgpack::write::MAX_LENGTH;
use pyo3::exceptions::{PyException, PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::error::WithMessage;
use crate::objects::{Text, name, type_name};

/// The result of packing. The place is found while an error is returned, so that it costs nothing on success.
pub(super) type PackResult<T> = Result<T, PackError>;

/// The reason why packing failed, and the place.
pub(super) struct PackError(Box<Inner>);

struct Inner {
    cause: Cause,
    /// The innermost first.
    steps: Vec<Step>,
    /// The error concerns the innermost container as a whole.
    whole: bool,
}

enum Cause {
    /// An exception of offlock, whose message names the place.
    Ours(fn(String) -> PyErr, String),
    /// Any other exception: it gets a note.
    Raised(PyErr),
    /// The exception of a signal handler: it is not related to the place.
    Interrupt(PyErr),
}

/// A step from a container to one of its contents.
pub(super) enum Step {
    /// An item of a sequence.
    Item(usize),
    /// The value under a key.
    Value(String),
    /// A key itself.
    Key(String),
}

impl From<PyErr> for PackError {
    #[cold]
    fn from(error: PyErr) -> Self {
        Self::because(Cause::Raised(error))
    }
}

impl PackError {
    fn because(cause: Cause) -> Self {
        Self(Box::new(Inner { cause, steps: Vec::new(), whole: false }))
    }

    /// An exception that `exception` makes from a message.
    #[cold]
    pub(super) fn new(exception: fn(String) -> PyErr, message: impl Into<String>) -> Self {
        Self::because(Cause::Ours(exception, message.into()))
    }

    /// The same error, about a container rather than one of its contents.
    pub(super) fn of_whole(mut self) -> Self {
        self.0.whole = true;
        self
    }

    /// The exception that a signal handler raised.
    #[cold]
    pub(super) fn interrupt(error: PyErr) -> Self {
        Self::because(Cause::Interrupt(error))
    }

    /// The same error, as seen from the enclosing container.
    #[cold]
    pub(super) fn within(mut self, step: impl FnOnce() -> Option<Step>) -> Self {
        let whole = std::mem::take(&mut self.0.whole);
        if !whole && !matches!(self.0.cause, Cause::Interrupt(_)) {
            self.0.steps.extend(step());
        }
        self
    }

    /// The exception to be raised.
    #[cold]
    pub(super) fn into_exception(self, py: Python<'_>) -> PyErr {
        let Inner { cause, steps, .. } = *self.0;
        let place = shown(&steps);
        match cause {
            Cause::Interrupt(error) => error,
            Cause::Ours(exception, message) if steps.is_empty() => exception(message),
            Cause::Ours(exception, message) => exception(format!("{message} (at {place})")),
            Cause::Raised(error) => {
                if !steps.is_empty() && error.is_instance_of::<PyException>(py) {
                    // An exception that takes no notes is raised without one.
                    let _ = error
                        .value(py)
                        .call_method1(name!("add_note"), (Text(format!("while packing {place}")),));
                }
                error
            }
        }
    }
}

/// How many steps are shown at either end.
const SHOWN: usize = 10;

fn shown(steps: &[Step]) -> String {
    let mut place = String::new();
    let last = steps.len().saturating_sub(SHOWN);
    for (number, step) in steps.iter().rev().enumerate() {
        if number == SHOWN && number < last {
            place.push('…');
        }
        if number < SHOWN || number >= last {
            let _ = match step {
                Step::Item(index) => write!(place, "[{index}]"),
                Step::Value(key) => write!(place, "[{key}]"),
                Step::Key(key) => write!(place, "{{{key}}}"),
            };
        }
    }
    place
}

/// A key as a program would write it. Keys of other than the simple types are shown without calling their
/// methods.
pub(super) fn key_shown(key: &Bound<'_, PyAny>) -> String {
    if let Ok(text) = key.cast_exact::<PyString>().map_err(PyErr::from).and_then(|key| key.to_str()) {
        return format!("\"{}\"", shortened(text).escape_debug());
    }
    let simple = key.is_none()
        || key.is_exact_instance_of::<PyString>()
        || key.is_exact_instance_of::<PyBytes>()
        || key.is_exact_instance_of::<PyInt>()
        || key.is_exact_instance_of::<PyFloat>()
        || key.is_exact_instance_of::<PyBool>();
    match simple.then(|| key.repr()) {
        Some(Ok(text)) => shortened(&text.to_string_lossy()),
        _ => format!("<{}>", type_name(key)),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cold]
pub(super) fn changed(what: &str) -> PackError {
    PackError::new(PyRuntimeError::with_message, format!("{what} changed size during iteration")).of_whole()
}

#[cold]
pub(super) fn too_deep() -> PackError {
    PackError::new(PyValueError::with_message, "recursion limit exceeded.")
}

#[cold]
pub(super) fn out_of_range() -> PackError {
    PackError::new(PyOverflowError::with_message, "Integer value out of range")
}

/// An error when the format cannot express the length.
#[inline(always)]
pub(super) fn check_length(length: usize, what: &str) -> PyResult<()> {
    if length <= MAX_LENGTH { Ok(()) } else { Err(too_long(length, what)) }
}

#[cold]
fn too_long(length: usize, what: &str) -> PyErr {
    PyValueError::with_message(format!("{what} is too large: {length} > {MAX_LENGTH}"))
}
