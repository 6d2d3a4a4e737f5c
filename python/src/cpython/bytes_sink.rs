//! A `bytes` object that grows while it is written: on the stack while it is short, then in place.

use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use offlock_core::msgpack::write::Sink;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::new_bytes;
use super::object::{copy_short, owned};
use crate::error::WithMessage;

const SHORT: usize = 1024;

/// A message that becomes a bytes object.
pub(crate) struct BytesSink<'py> {
    py: Python<'py>,
    /// The message so far is from `start` to `at`, and `end` is the end of its capacity.
    start: *mut u8,
    at: *mut u8,
    end: *mut u8,
    /// An unshared bytes object, once the message is longer than `SHORT`; then the pointers point into it.
    long: Option<NonNull<ffi::PyObject>>,
    /// Memory ran out: the message is lost, and nothing more is written.
    failed: bool,
}

impl<'py> BytesSink<'py> {
    /// The message that `write` writes.
    #[inline]
    pub(crate) fn collect(
        py: Python<'py>,
        write: impl FnOnce(&mut Self) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut short = [MaybeUninit::<u8>::uninit(); SHORT];
        let room = short.as_mut_ptr_range();
        let mut sink = Self {
            py,
            start: room.start.cast(),
            at: room.start.cast(),
            end: room.end.cast(),
            long: None,
            failed: false,
        };
        write(&mut sink)?;
        sink.finish()
    }

    #[inline]
    fn length(&self) -> usize {
        self.at.addr() - self.start.addr()
    }

    #[inline]
    fn finish(&mut self) -> PyResult<Bound<'py, PyAny>> {
        if self.failed {
            return Err(PyMemoryError::with_message("no memory for the message"));
        }
        let length = self.length();
        match self.long.take() {
            // SAFETY: an owned reference to a bytes, whose first `length` bytes were written.
            Some(object) => unsafe {
                new_bytes::finish(self.py, object.as_ptr(), length, self.end.addr() - self.start.addr())
            },
            // SAFETY: `length` bytes were written from `start` on; returns a new reference, or null with an
            // exception set.
            None => unsafe {
                let object = ffi::PyBytes_FromStringAndSize(self.start.cast(), length.cast_signed());
                owned(self.py, object)
            },
        }
    }

    /// Reserves capacity for `more` bytes, and for half as much again.
    #[cold]
    fn grow(&mut self, more: usize) {
        if self.failed {
            return;
        }
        let length = self.length();
        let capacity = length.checked_add(more).and_then(|needed| needed.checked_add(needed / 2));
        let object = capacity.and_then(|capacity| Some((self.moved(capacity)?, capacity)));
        let Some((object, capacity)) = object else { return self.fail() };
        self.long = Some(object);
        // SAFETY: the bytes is alive and has `capacity` bytes, of which `length` were written.
        unsafe {
            self.start = contents(object.as_ptr());
            self.at = self.start.add(length);
            self.end = self.start.add(capacity);
        }
    }

    /// A bytes of `capacity` bytes that begins with the message; `None` when there is no memory. The message
    /// is then lost.
    fn moved(&mut self, capacity: usize) -> Option<NonNull<ffi::PyObject>> {
        let capacity = isize::try_from(capacity).ok()?;
        // SAFETY: either resizes the existing bytes, of which this is the only reference, or makes a new one
        // and copies the written bytes into it. Both give a bytes of `capacity` bytes, or null with an
        // exception set.
        unsafe {
            if let Some(object) = self.long.take() {
                return NonNull::new(new_bytes::resize(object.as_ptr(), capacity.cast_unsigned()));
            }
            let object = NonNull::new(ffi::PyBytes_FromStringAndSize(ptr::null(), capacity))?;
            ptr::copy_nonoverlapping(self.start, contents(object.as_ptr()), self.length());
            Some(object)
        }
    }

    /// Gives up the message, whose memory may be freed already. The exception is not kept: callbacks of the
    /// program may run before the end of the message, and must not find one.
    #[cold]
    fn fail(&mut self) {
        drop(PyErr::take(self.py));
        self.failed = true;
        let nothing = ptr::dangling_mut();
        (self.start, self.at, self.end) = (nothing, nothing, nothing);
    }
}

/// The contents of a bytes object, to be written before it is shared.
///
/// # Safety
/// `object` is a live bytes.
unsafe fn contents(object: *mut ffi::PyObject) -> *mut u8 {
    // SAFETY: the contract of this function.
    unsafe { ffi::PyBytes_AS_STRING(object).cast_mut().cast() }
}

impl Sink for BytesSink<'_> {
    fn expect(&mut self, bytes: usize) {
        if self.end.addr() - self.at.addr() < bytes {
            self.grow(bytes);
        }
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        if self.end.addr() - self.at.addr() < bytes.len() {
            self.grow(bytes.len());
            if self.failed {
                return;
            }
        }
        // SAFETY: `grow` ensured spare capacity for these bytes, and the source is not part of it.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    /// For short contents: a call of `memcpy` would cost more than the copy.
    #[inline(always)]
    fn put_headed(&mut self, head: u8, body: &[u8]) {
        if self.end.addr() - self.at.addr() <= body.len() {
            self.grow(body.len() + 1);
            if self.failed {
                return;
            }
        }
        // SAFETY: `grow` ensured spare capacity for a byte and for the body, and the body is not part of it.
        unsafe {
            self.at.write(head);
            copy_short(body, self.at.add(1));
            self.at = self.at.add(1 + body.len());
        }
    }
}

impl Drop for BytesSink<'_> {
    fn drop(&mut self) {
        if let Some(object) = self.long.take() {
            // SAFETY: an owned reference, released once; `py` proves that the lock is held.
            unsafe { ffi::Py_DECREF(object.as_ptr()) };
        }
    }
}
