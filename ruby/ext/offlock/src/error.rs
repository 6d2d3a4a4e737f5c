//! Converts errors to Ruby's exceptions.

use magnus::error::ErrorType;
use magnus::value::ReprValue;
use magnus::{Error, ExceptionClass, Ruby};
use offlock_core::Stopped;
use offlock_core::memory::OutOfMemory;

use crate::cruby::{Object, catch};

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

/// Drops an error that is not going to be raised.
///
/// While a `NoMemoryError` propagates, Ruby handles no interrupts, and ends the process if memory is exhausted again.
/// Ruby considers the error handled when Ruby code rescues it, or when another exception is raised. So this function
/// raises the error once more and catches it.
pub(crate) fn forget(error: Error) {
    if let ErrorType::Exception(exception) = error.error_type() {
        let exception = exception.as_value();
        let raised = catch(&Ruby::get_with(exception), |gvl| gvl.raise_object(Object::of(exception)));
        drop(raised);
    }
}
