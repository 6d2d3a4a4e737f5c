//! Strings whose memory is filled before any program sees them.

use std::cell::Cell;
use std::ffi::{c_int, c_long};
use std::mem::MaybeUninit;
use std::ptr;

use magnus::encoding::RbEncoding;
use magnus::{RString, Ruby};
use rb_sys::*;

use super::gvl::Gvl;
use super::object::{Object, Str};
use crate::borrow::in_place;
use crate::region::Yielder;

/// Up to this many bytes are collected on the stack before they become a String.
const SHORT: usize = 512;

/// The longest String whose length is the estimate for the next one.
const LONG: usize = 512 << 10;

thread_local! {
    /// The length of the last String that was not short. The next one is often about as long, and a String
    /// that need not grow is not copied and needs no further memory that the system has to clear.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that become a String: on the stack while they are few, then in a String that no program finds. The
/// writer owns no memory: if Ruby raises, the garbage collector frees the String.
pub(crate) struct StringWriter {
    /// The bytes from `start` to `at` are written; `end` is the end of the capacity.
    start: *mut u8,
    at: *mut u8,
    end: *mut u8,
    /// The String, once there are more than `SHORT` bytes; then the pointers point into it.
    string: Object,
}

impl StringWriter {
    /// The String that `write` writes; `None` if `write` returns false.
    pub(crate) fn collect(gvl: &mut Gvl, write: impl FnOnce(&mut Gvl, &mut Self) -> bool) -> Option<Object> {
        let mut short = [MaybeUninit::<u8>::uninit(); SHORT];
        let room = short.as_mut_ptr_range();
        let mut writer = Self {
            start: room.start.cast(),
            at: room.start.cast(),
            end: room.end.cast(),
            string: Object::NIL,
        };
        write(gvl, &mut writer).then(|| writer.finish())
    }

    /// The number of written bytes.
    pub(crate) fn length(&self) -> usize {
        self.at.addr() - self.start.addr()
    }

    /// Removes everything after the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        debug_assert!(length <= self.length());
        // SAFETY: the offset is at most the number of bytes written since `start`.
        self.at = unsafe { self.start.add(length.min(self.length())) };
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if self.end.addr() - self.at.addr() < bytes.len() {
            self.grow(bytes.len());
        }
        // SAFETY: there is capacity for these bytes, as checked above; the source belongs to another object.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    fn finish(&self) -> Object {
        let length = self.length() as c_long;
        // SAFETY: `length` bytes were written from `start` on; the String has capacity for them.
        unsafe {
            if self.string.is_nil() {
                return Object::raw(rb_str_new(self.start.cast(), length));
            }
            rb_str_set_len(self.string.as_raw(), length);
            rb_obj_reveal(self.string.as_raw(), rb_cString);
        }
        LAST.set(self.length().min(LONG));
        let room = self.end.addr() - self.start.addr();
        if room > 2 * self.length() {
            // SAFETY: our own String, which frees its spare capacity.
            unsafe { rb_str_resize(self.string.as_raw(), length) };
        }
        self.string
    }

    /// Adds capacity for `more` bytes, unless there is as much.
    pub(crate) fn expect(&mut self, more: usize) {
        if self.end.addr() - self.at.addr() < more {
            self.set_capacity(self.length() + more);
        }
    }

    /// Adds capacity for `more` bytes, and at least doubles the capacity.
    #[cold]
    fn grow(&mut self, more: usize) {
        let first = if self.string.is_nil() { LAST.get() * 9 / 8 } else { 0 };
        self.set_capacity(first.max((self.length() + more) * 2));
    }

    fn set_capacity(&mut self, capacity: usize) {
        let length = self.length();
        debug_assert!(capacity >= length);
        // SAFETY: the String has a capacity of `capacity` bytes after this, and keeps the `length` bytes
        // written.
        unsafe {
            if self.string.is_nil() {
                // No program may find it while it grows.
                self.string = Object::raw(rb_obj_hide(rb_str_buf_new(capacity as c_long)));
                let room = RSTRING_PTR(self.string.as_raw()).cast_mut().cast();
                ptr::copy_nonoverlapping(self.start, room, length);
            } else {
                rb_str_set_len(self.string.as_raw(), length as c_long);
                rb_str_modify_expand(self.string.as_raw(), (capacity - length) as c_long);
            }
            self.start = RSTRING_PTR(self.string.as_raw()).cast_mut().cast();
            self.at = self.start.add(length);
            self.end = self.start.add(capacity);
        }
    }
}

/// The number of bytes that are copied at once.
pub(crate) const PIECE: usize = 256 << 10;

/// Bytes that are copied into a String in pieces, between which other threads may run.
pub(crate) trait Pieces {
    /// The number of bytes.
    fn length(&self, gvl: &Gvl) -> usize;
    /// The bytes from one offset to another; `None` if they no longer exist.
    fn piece<'a>(&'a self, gvl: &'a Gvl, from: usize, to: usize) -> Option<&'a [u8]>;
}

impl Pieces for &[u8] {
    fn length(&self, _: &Gvl) -> usize {
        self.len()
    }

    fn piece<'a>(&'a self, _: &'a Gvl, from: usize, to: usize) -> Option<&'a [u8]> {
        self.get(from..to)
    }
}

/// The bytes that a String has at the time of each piece.
impl Pieces for Str {
    fn length(&self, gvl: &Gvl) -> usize {
        gvl.objects.bytesize(*self)
    }

    fn piece<'a>(&'a self, gvl: &'a Gvl, from: usize, to: usize) -> Option<&'a [u8]> {
        let length = gvl.objects.bytesize(*self);
        // SAFETY: a String, which cannot change as long as the lock is borrowed, and which the caller has on
        // the stack.
        let bytes =
            unsafe { std::slice::from_raw_parts(RSTRING_PTR(Object::from(*self).as_raw()).cast(), length) };
        bytes.get(from..to.min(length))
    }
}

impl Gvl {
    /// A new binary String. Exceptions skip destructors.
    pub(crate) fn copied(&mut self, source: &impl Pieces) -> Str {
        let length = source.length(self);
        if length <= PIECE {
            let bytes = source.piece(self, 0, length).unwrap_or_default();
            return self.binary(bytes);
        }
        // SAFETY: a new String, which no program sees while it is filled; it is on the stack.
        let string = unsafe { rb_obj_hide(rb_str_buf_new(length as c_long)) };
        let mut yielder = Yielder::new();
        let mut from = 0;
        while from < length {
            let to = length.min(from + PIECE);
            let Some(bytes) = source.piece(self, from, to) else { break };
            // SAFETY: no program finds the String; the bytes are copied.
            unsafe { rb_str_cat(string, bytes.as_ptr().cast(), bytes.len() as c_long) };
            from = to;
            self.tick(&mut yielder, Yielder::copying(PIECE));
        }
        // SAFETY: the String that was hidden above, and the class that it had.
        Str::raw(unsafe { rb_obj_reveal(string, rb_cString) })
    }

    /// Sets the encoding of a new String to the one with this index, and returns the String.
    pub(crate) fn in_encoding(&self, string: Str, encoding: c_int) -> Str {
        // SAFETY: a String, and an encoding of Ruby's own.
        Str::raw(unsafe { rb_enc_associate_index(Object::from(string).as_raw(), encoding) })
    }

    /// A frozen String with the bytes that a String has now; shares them if that is safe.
    pub(crate) fn share(&self, string: Str) -> Share {
        // SAFETY: a String. Raises when memory is exhausted.
        Share(Object::raw(unsafe { in_place::frozen(Object::from(string).as_raw()) }))
    }
}

/// A frozen String. Its bytes never change, even while other threads run.
#[derive(Clone, Copy)]
pub(crate) struct Share(Object);

impl Share {
    /// Wraps a String that one of our objects holds.
    ///
    /// # Safety
    /// A frozen String, whose bytes cannot change in place.
    pub(crate) const unsafe fn promised(string: Object) -> Self {
        Self(string)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a frozen String, which is on the stack or marked, and thus stays in place.
        unsafe {
            std::slice::from_raw_parts(
                RSTRING_PTR(self.0.as_raw()).cast(),
                RSTRING_LEN(self.0.as_raw()) as usize,
            )
        }
    }

    pub(crate) fn object(self) -> Object {
        self.0
    }
}

/// Returns the result of `read` for the bytes of a String. Neither the closure nor its result has a Ruby
/// value, so the bytes cannot change in the meantime.
#[inline]
pub(crate) fn with_bytes<T: Send>(string: RString, read: impl FnOnce(&[u8]) -> T + Send) -> T {
    // SAFETY: `magnus` gives Strings to threads that hold the lock. No function of Ruby's is called before
    // `read` returns.
    let found = read(unsafe { string.as_slice() });
    std::hint::black_box(string);
    found
}

/// The same for two Strings.
#[inline]
pub(crate) fn with_bytes_of_both<T: Send>(
    first: RString,
    second: RString,
    read: impl FnOnce(&[u8], &[u8]) -> T + Send,
) -> T {
    // SAFETY: as in `with_bytes`.
    let found = read(unsafe { first.as_slice() }, unsafe { second.as_slice() });
    std::hint::black_box((first, second));
    found
}

/// A new String with bytes of another one, as far as it has them.
pub(crate) fn copied_part(
    ruby: &Ruby,
    string: RString,
    part: std::ops::Range<usize>,
    encoding: RbEncoding,
) -> RString {
    // SAFETY: the bytes are copied before any code can change them.
    let bytes = unsafe { string.as_slice() };
    let end = part.end.min(bytes.len());
    let copy = ruby.enc_str_new(bytes.get(part.start..end).unwrap_or_default(), encoding);
    std::hint::black_box(string);
    copy
}
