//! The structs of the Arrow C data and stream interfaces, and the fields that are read.
//!
//! The exporter is relied on in two ways, which cannot be checked: buffers are as long as the lengths and
//! their offsets say, and they do not change.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use super::error::StringsError;
use crate::error::WithMessage;

/// `struct ArrowSchema`
#[repr(C)]
pub(super) struct Schema {
    pub(super) format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    pub(super) flags: i64,
    pub(super) n_children: i64,
    children: *mut *mut Schema,
    pub(super) dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`
#[repr(C)]
pub(super) struct Array {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *const *const c_void,
    children: *mut *mut Array,
    pub(super) dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`
#[repr(C)]
pub(super) struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

/// A struct of the interface that was moved out of its capsule, and has to be released.
pub(super) struct Owned<T: Interface>(pub(super) T);

/// The common parts of the three structs.
///
/// # Safety
///
/// All zeros is a valid value, and means that it was released.
pub(super) unsafe trait Interface: Sized {
    const CAPSULE: &CStr;
    fn is_released(&self) -> bool;
    fn release(&mut self);
}

macro_rules! interface {
    ($($name:ident in $capsule:literal),*) => {$(
        // SAFETY: pointers, numbers and optional functions; no function means released.
        unsafe impl Interface for $name {
            const CAPSULE: &CStr = $capsule;

            fn is_released(&self) -> bool {
                self.release.is_none()
            }

            fn release(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the struct is owned, and was not released yet; the callback marks it as
                    // released.
                    unsafe { release(self) }
                }
            }
        }
    )*};
}

interface!(Schema in c"arrow_schema", Array in c"arrow_array", Stream in c"arrow_array_stream");

impl<T: Interface> Owned<T> {
    fn empty() -> Self {
        // SAFETY: a valid value, see `Interface`.
        Self(unsafe { std::mem::zeroed() })
    }

    /// Moves the struct out of its capsule; `ValueError` if it was moved out before.
    pub(super) fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = capsule.cast::<PyCapsule>()?.pointer_checked(Some(T::CAPSULE))?.cast::<T>();
        // SAFETY: a capsule of this name points to such a struct; zeros mark it as moved out.
        let taken = unsafe { Self(ptr::replace(source.as_ptr(), Self::empty().into_inner())) };
        if taken.0.is_released() {
            return Err(PyValueError::with_message(format!(
                "the {} was released",
                T::CAPSULE.to_string_lossy()
            )));
        }
        Ok(taken)
    }

    fn into_inner(self) -> T {
        // SAFETY: read once, as the original is forgotten.
        unsafe { ptr::read(&raw const std::mem::ManuallyDrop::new(self).0) }
    }
}

impl<T: Interface> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Schema {
    /// The type of the elements, as a short text.
    pub(super) fn format(&self) -> PyResult<&[u8]> {
        if self.format.is_null() {
            return Err(PyValueError::with_message("the Arrow schema has no format"));
        }
        // SAFETY: the format of a schema that was not released is a string.
        Ok(unsafe { CStr::from_ptr(self.format) }.to_bytes())
    }

    /// The schema of the dictionary, if there is one.
    pub(super) fn dictionary(&self) -> PyResult<Option<&Self>> {
        // SAFETY: the dictionary of a schema is null or a schema that lives as long.
        unsafe { dictionary(self.dictionary, "schema") }
    }

    pub(super) fn has_dictionary(&self) -> bool {
        !self.dictionary.is_null()
    }
}

impl Array {
    /// The dictionary, if there is one.
    pub(super) fn dictionary(&self) -> PyResult<Option<&Self>> {
        // SAFETY: the dictionary of an array is null or an array that lives as long.
        unsafe { dictionary(self.dictionary, "array") }
    }

    pub(super) fn has_dictionary(&self) -> bool {
        !self.dictionary.is_null()
    }

    /// Whether the array has addresses of buffers.
    pub(super) fn has_buffers(&self) -> bool {
        !self.buffers.is_null()
    }

    /// # Safety
    ///
    /// The buffer holds at least `skip + length` values of this type.
    pub(super) unsafe fn memory<T>(
        &self,
        number: usize,
        skip: usize,
        length: usize,
    ) -> Result<&[T], StringsError> {
        if length == 0 {
            return Ok(&[]);
        }
        let start = self.buffer(number).cast::<T>();
        if start.is_null() || !start.is_aligned() {
            return Err(wrong("a buffer that is missing or not aligned"));
        }
        let bytes = skip.checked_add(length).and_then(|values| values.checked_mul(size_of::<T>()));
        let end = bytes.and_then(|bytes| start.addr().checked_add(bytes));
        if end.is_none_or(|end| isize::try_from(end).is_err()) {
            return Err(wrong("a buffer that no memory holds"));
        }
        // SAFETY: the contract of this function; the memory lives as long as the array.
        Ok(unsafe { std::slice::from_raw_parts(start.add(skip), length) })
    }

    /// The address of a buffer; null when the array has none with this number.
    pub(super) fn buffer(&self, number: usize) -> *const c_void {
        if usize::try_from(self.n_buffers).is_ok_and(|count| number < count) {
            // SAFETY: the array has this many addresses of buffers.
            unsafe { self.buffers.add(number).read() }
        } else {
            ptr::null()
        }
    }
}

/// A dictionary, if there is one; `ValueError` for one that was released.
///
/// # Safety
///
/// The pointer is null or points to a struct that lives as long as the result.
unsafe fn dictionary<'a, T: Interface>(dictionary: *const T, of: &str) -> PyResult<Option<&'a T>> {
    // SAFETY: the caller guarantees that it is null or lives as long as the result.
    match unsafe { dictionary.as_ref() } {
        Some(released) if released.is_released() => {
            Err(PyValueError::with_message(format!("the dictionary of the Arrow {of} was released")))
        }
        dictionary => Ok(dictionary),
    }
}

impl Owned<Stream> {
    /// The schema of all arrays.
    pub(super) fn schema(&mut self) -> PyResult<Owned<Schema>> {
        let mut schema = Owned::<Schema>::empty();
        let get = self.0.get_schema;
        // SAFETY: the callback fills the struct or fails.
        check(&mut self.0, |stream| get.map(|get| unsafe { get(stream, &raw mut schema.0) }))?;
        if schema.0.is_released() {
            return Err(PyValueError::with_message("the Arrow stream gave a schema that was released"));
        }
        Ok(schema)
    }

    /// The next array; `None` at the end.
    pub(super) fn next(&mut self) -> PyResult<Option<Owned<Array>>> {
        let mut array = Owned::<Array>::empty();
        let get = self.0.get_next;
        // SAFETY: the callback fills the struct, leaves it released at the end, or fails.
        check(&mut self.0, |stream| get.map(|get| unsafe { get(stream, &raw mut array.0) }))?;
        Ok(if array.0.is_released() { None } else { Some(array) })
    }
}

/// Calls a stream's function; `OSError` with the stream's own message when it fails.
fn check(stream: &mut Stream, call: impl FnOnce(*mut Stream) -> Option<c_int>) -> PyResult<()> {
    match call(stream) {
        Some(0) => Ok(()),
        None => Err(PyValueError::with_message("the Arrow stream was released")),
        Some(code) => {
            // SAFETY: the callback returns null or a string that is valid until the stream's next call.
            let message =
                stream.get_last_error.map(|get| unsafe { get(stream) }).filter(|text| !text.is_null());
            // SAFETY: not null, and the stream is not called before the text is copied.
            let message = message.map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
            Err(PyOSError::new_err((code, message.unwrap_or_default())))
        }
    }
}

/// The error for an invalid array.
pub(super) fn wrong(what: &str) -> StringsError {
    StringsError::Value(format!("the Arrow array has {what}"))
}
