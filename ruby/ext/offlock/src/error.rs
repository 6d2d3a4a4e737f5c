//! Converts errors to Ruby's exceptions.

use magnus::value::ReprValue;
use magnus::{Error, ExceptionClass, Ruby};
use offlock_core::Stopped;
use offlock_core::memory::OutOfMemory;

/// The reason why a run of a region ended without a result.
pub(crate) trait IntoException: Send {
    /// The exception, if the run was not interrupted.
    fn into_exception(self, ruby: &Ruby) -> Error;
}

impl IntoException for Stopped {
    fn into_exception(self, ruby: &Ruby) -> Error {
        internal_error(ruby, "the work was stopped although nothing interrupted it".into())
    }
}

impl IntoException for OutOfMemory {
    fn into_exception(self, ruby: &Ruby) -> Error {
        no_memory(ruby)
    }
}

/// `NoMemoryError`.
pub(crate) fn no_memory(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_no_mem_error(), OutOfMemory.to_string())
}

/// `Offlock::InternalError`.
pub(crate) fn internal_error(ruby: &Ruby, message: String) -> Error {
    exception(ruby, "Offlock::InternalError", message)
}

/// An exception of one of our own classes, looked up by its full name.
pub(crate) fn exception(ruby: &Ruby, class: &str, message: String) -> Error {
    let class = ruby.class_object().funcall("const_get", (class,));
    class.map_or_else(|error| error, |class: ExceptionClass| Error::new(class, message))
}
