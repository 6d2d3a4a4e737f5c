//! Running out of memory, as Ruby has to see it.

use magnus::error::ErrorType;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, Ruby, TryConvert, Value};
use offlock_core::memory::OutOfMemory;

use crate::region::Failure;

impl Failure for OutOfMemory {
    fn into_exception(self, ruby: &Ruby) -> Error {
        no_memory(ruby)
    }
}

/// `NoMemoryError`.
pub(crate) fn no_memory(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_no_mem_error(), OutOfMemory.to_string())
}

/// A new binary String. `NoMemoryError` when there is no memory for it, raised when what the caller has is dropped.
pub(crate) fn string(content: &[u8]) -> Result<RString, Error> {
    let (start, length) = (content.as_ptr().cast(), content.len() as std::ffi::c_long);
    // SAFETY: the lock is held, and Ruby copies that many bytes. What it raises is caught here.
    let string = protect(|| unsafe { rb_sys::rb_str_new(start, length) })?;
    // SAFETY: Ruby just made this value, and it is a String.
    RString::try_convert(unsafe { Value::from_raw(string) })
}

/// Lets go of an error that is not going to be raised.
///
/// While a `NoMemoryError` is on its way Ruby handles no interrupt, and ends the process should memory run out again. That
/// it has arrived Ruby sees where code of its own rescues it, and where another exception sets out: so this one does once
/// more.
pub(crate) fn forget(error: Error) {
    if let ErrorType::Exception(exception) = error.error_type() {
        let exception = exception.as_raw();
        // SAFETY: the lock is held, and what is raised is caught here.
        let raised = protect(|| unsafe { rb_sys::rb_exc_raise(exception) });
        drop(raised);
    }
}
