//! Where a message is written to that becomes a String: on the stack while it is short, then into a String.

use std::cell::Cell;
use std::ffi::c_long;
use std::mem::MaybeUninit;
use std::ptr;

use offlock_core::msgpack::write::Sink;
use rb_sys::*;

use crate::cruby::raw as rb;

const SHORT: usize = 512;

/// The longest message that the next one is expected to be as long as.
const LONG: usize = 512 << 10;

thread_local! {
    /// The length of the last message that was not short. The next one is often about as long: what need not grow need not
    /// be copied, nor have memory that the system has to clear.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// A message that becomes a String. It owns nothing: should Ruby raise, the garbage collector finds the String.
pub(super) struct StringSink {
    /// The message so far is from `start` to `at`, and `end` is the end of the room for it.
    start: *mut u8,
    at: *mut u8,
    end: *mut u8,
    /// The String, once the message is longer than `SHORT`; then the pointers point into it.
    string: VALUE,
}

impl StringSink {
    /// The message that `write` writes; `None` when it says that it could not.
    pub(super) fn collect(write: impl FnOnce(&mut Self) -> bool) -> Option<VALUE> {
        let mut short = [MaybeUninit::<u8>::uninit(); SHORT];
        let room = short.as_mut_ptr_range();
        let mut sink =
            Self { start: room.start.cast(), at: room.start.cast(), end: room.end.cast(), string: rb::NIL };
        write(&mut sink).then(|| sink.finish())
    }

    fn length(&self) -> usize {
        self.at.addr() - self.start.addr()
    }

    fn finish(&self) -> VALUE {
        let length = self.length() as c_long;
        // SAFETY: `length` bytes were written from `start` on; the String has room for them.
        unsafe {
            if self.string == rb::NIL {
                return rb_str_new(self.start.cast(), length);
            }
            rb_str_set_len(self.string, length);
            rb_obj_reveal(self.string, rb_cString);
        }
        LAST.set(self.length().min(LONG));
        let room = self.end.addr() - self.start.addr();
        if room > 2 * self.length() {
            // SAFETY: our own String, which gives back the room that is left.
            unsafe { rb_str_resize(self.string, length) };
        }
        self.string
    }

    /// Makes room for `more` bytes, and for as much again as there is.
    #[cold]
    fn grow(&mut self, more: usize) {
        let length = self.length();
        let first = if self.string == rb::NIL { LAST.get() * 9 / 8 } else { 0 };
        let capacity = first.max((length + more) * 2);
        // SAFETY: the String has room for `capacity` bytes after this, and keeps the `length` bytes written.
        unsafe {
            if self.string == rb::NIL {
                // No program is to find it while it grows.
                self.string = rb_obj_hide(rb_str_buf_new(capacity as c_long));
                ptr::copy_nonoverlapping(self.start, RSTRING_PTR(self.string).cast_mut().cast(), length);
            } else {
                rb_str_set_len(self.string, length as c_long);
                rb_str_modify_expand(self.string, (capacity - length) as c_long);
            }
            self.start = RSTRING_PTR(self.string).cast_mut().cast();
            self.at = self.start.add(length);
            self.end = self.start.add(capacity);
        }
    }
}

/// A sink that can take back what was put last.
pub(super) trait Rewind: Sink {
    /// How far the message is.
    fn mark(&mut self) -> usize;
    /// Takes back everything behind `mark`.
    fn rewind(&mut self, mark: usize);
}

impl Rewind for StringSink {
    fn mark(&mut self) -> usize {
        self.length()
    }

    fn rewind(&mut self, mark: usize) {
        debug_assert!(mark <= self.length());
        // SAFETY: so much was written since `start`.
        self.at = unsafe { self.start.add(mark) };
    }
}

impl Sink for StringSink {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        if self.end.addr() - self.at.addr() < bytes.len() {
            self.grow(bytes.len());
        }
        // SAFETY: there is room for these bytes, as just made sure of; the source is another object's.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }
}
