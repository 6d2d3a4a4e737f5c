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
use crate::region::Pace;

/// What is written before it becomes a String is on the stack up to this size.
const SHORT: usize = 512;

/// The longest String that the next one is expected to be as long as.
const LONG: usize = 512 << 10;

thread_local! {
    /// The length of the last String that was not short. The next one is often about as long: what need not grow need not
    /// be copied, nor have memory that the system has to clear.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that become a String: on the stack while they are few, then in a String that no program finds. It owns nothing: should
/// Ruby raise, the garbage collector finds the String.
pub(crate) struct StringWriter {
    /// What was written is from `start` to `at`, and `end` is the end of the room for it.
    start: *mut u8,
    at: *mut u8,
    end: *mut u8,
    /// The String, once there is more than `SHORT`; then the pointers point into it.
    string: Object,
}

impl StringWriter {
    /// The String of what `write` writes; `None` when it says that it could not.
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

    /// How much was written.
    pub(crate) fn length(&self) -> usize {
        self.at.addr() - self.start.addr()
    }

    /// Takes back everything behind the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        debug_assert!(length <= self.length());
        // SAFETY: so much was written since `start`, or less is kept.
        self.at = unsafe { self.start.add(length.min(self.length())) };
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if self.end.addr() - self.at.addr() < bytes.len() {
            self.grow(bytes.len());
        }
        // SAFETY: there is room for these bytes, as just made sure of; the source is another object's.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    fn finish(&self) -> Object {
        let length = self.length() as c_long;
        // SAFETY: `length` bytes were written from `start` on; the String has room for them.
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
            // SAFETY: our own String, which gives back the room that is left.
            unsafe { rb_str_resize(self.string.as_raw(), length) };
        }
        self.string
    }

    /// Makes room for `more` bytes, and for as much again as there is.
    #[cold]
    fn grow(&mut self, more: usize) {
        let length = self.length();
        let first = if self.string.is_nil() { LAST.get() * 9 / 8 } else { 0 };
        let capacity = first.max((length + more) * 2);
        // SAFETY: the String has room for `capacity` bytes after this, and keeps the `length` bytes written.
        unsafe {
            if self.string.is_nil() {
                // No program is to find it while it grows.
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

/// How many bytes are copied in one go.
const PIECE: usize = 256 << 10;

/// Bytes that are copied into a String, in pieces between which other threads may run.
pub(crate) trait Pieces {
    /// How many bytes there are.
    fn length(&self, gvl: &Gvl) -> usize;
    /// The bytes from one offset to another; `None` when they are gone.
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

/// What a String has when it is looked at.
impl Pieces for Str {
    fn length(&self, gvl: &Gvl) -> usize {
        gvl.objects.bytesize(*self)
    }

    fn piece<'a>(&'a self, gvl: &'a Gvl, from: usize, to: usize) -> Option<&'a [u8]> {
        let length = gvl.objects.bytesize(*self);
        // SAFETY: a String, which nothing changes as long as the lock is borrowed, and which the caller has on the stack.
        let bytes =
            unsafe { std::slice::from_raw_parts(RSTRING_PTR(Object::from(*self).as_raw()).cast(), length) };
        bytes.get(from..to.min(length))
    }
}

impl Gvl {
    /// A new binary String. What is raised skips destructors.
    pub(crate) fn copied(&mut self, source: &impl Pieces) -> Str {
        let length = source.length(self);
        if length <= PIECE {
            let bytes = source.piece(self, 0, length).unwrap_or_default();
            return self.binary(bytes);
        }
        // SAFETY: a new String, which no program sees while it is filled; it is on the stack.
        let string = unsafe { rb_obj_hide(rb_str_buf_new(length as c_long)) };
        let mut pace = Pace::new();
        let mut from = 0;
        while from < length {
            let to = length.min(from + PIECE);
            let Some(bytes) = source.piece(self, from, to) else { break };
            // SAFETY: as above; the bytes are copied.
            unsafe { rb_str_cat(string, bytes.as_ptr().cast(), bytes.len() as c_long) };
            from = to;
            self.keep_pace(&mut pace, Pace::copying(PIECE));
        }
        // SAFETY: as above.
        Str::raw(unsafe { rb_obj_reveal(string, rb_cString) })
    }

    /// The String, new, in the encoding with this number.
    pub(crate) fn in_encoding(&self, string: Str, encoding: c_int) -> Str {
        // SAFETY: a String, and an encoding of Ruby's own.
        Str::raw(unsafe { rb_enc_associate_index(Object::from(string).as_raw(), encoding) })
    }

    /// A frozen String with the bytes that a String has now, which shares them if that is safe.
    pub(crate) fn share(&self, string: Str) -> Share {
        // SAFETY: a String. Raises when memory runs out.
        Share(Object::raw(unsafe { in_place::frozen(Object::from(string).as_raw()) }))
    }
}

/// A frozen String. Its bytes never change, whoever runs.
#[derive(Clone, Copy)]
pub(crate) struct Share(Object);

impl Share {
    /// As one of ours holds it.
    ///
    /// # Safety
    /// A frozen String, whose bytes cannot change in place.
    pub(crate) const unsafe fn promised(string: Object) -> Self {
        Self(string)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a frozen String, which is kept in place by being on the stack, or marked.
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

/// What `read` finds in the bytes of a String. Neither it nor what it finds has a Ruby value: nothing can change the
/// bytes meanwhile.
#[inline]
pub(crate) fn with_bytes<T: Send>(string: RString, read: impl FnOnce(&[u8]) -> T + Send) -> T {
    // SAFETY: `magnus` gives Strings to threads that hold the lock. Nothing of Ruby is called before `read` is done.
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

/// A String of some bytes of another one, as far as that has them.
pub(crate) fn copied_part(
    ruby: &Ruby,
    string: RString,
    part: std::ops::Range<usize>,
    encoding: RbEncoding,
) -> RString {
    // SAFETY: the bytes are copied before anything can change them.
    let bytes = unsafe { string.as_slice() };
    let end = part.end.min(bytes.len());
    let copy = ruby.enc_str_new(bytes.get(part.start..end).unwrap_or_default(), encoding);
    std::hint::black_box(string);
    copy
}
