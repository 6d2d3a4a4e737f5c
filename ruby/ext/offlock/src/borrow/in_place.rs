//! Strings whose bytes another thread may write to although they are shared.
//!
//! While a thread reads into a String (`IO#read(length, string)`), or has an `IO::Buffer` of it
//! (`IO::Buffer.for(string)` with a block), the String is locked: a method that changes it raises. But a
//! locked String can still be shared, and the thread that locked it continues to write to the bytes, which
//! then also belong to the share. So the bytes of such Strings are copied.
//!
//! A String that was shared before it was locked is safe: locking gives it bytes of its own first. A copy
//! that Ruby itself makes of a locked String (`dup`) is not locked but has the same bytes. So while a
//! writable `IO::Buffer` of any String exists, all Strings with shared bytes are copied, too.

use std::ffi::c_long;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use magnus::rb_sys::protect;
use magnus::{Error, Module as _, Object as _, RModule, function};
use rb_sys::VALUE;

use crate::cruby;

/// The flags that Ruby's header files do not define.
#[derive(Clone, Copy)]
struct Flags {
    locked: VALUE,
    shared: VALUE,
}

/// Determined when the extension is loaded; if that fails, every String is copied.
static FLAGS: OnceLock<Flags> = OnceLock::new();

/// The number of running blocks of `IO::Buffer.for` and `IO::Buffer.string`.
static BUFFERS: AtomicUsize = AtomicUsize::new(0);

/// Returns whether another thread may write to the bytes of the String in place.
pub(crate) fn may_change(string: VALUE) -> bool {
    let Some(&Flags { locked, shared }) = FLAGS.get() else { return true };
    let flags = flags_of(string);
    flags & locked != 0 || (flags & shared != 0 && BUFFERS.load(Ordering::Acquire) > 0)
}

fn flags_of(object: VALUE) -> VALUE {
    // SAFETY: every object that is not an immediate value begins with its flags; a String is never immediate.
    unsafe { (*(object as *const rb_sys::RBasic)).flags }
}

/// Observes which flags locking and sharing set on a String.
///
/// # Safety
/// The lock is held, and the caller catches exceptions.
unsafe fn find_flags() -> Flags {
    // SAFETY: the contract of this function; a new String, which is unlocked again.
    unsafe {
        let string = rb_sys::rb_str_new([0; LONG].as_ptr(), LONG as c_long);
        let before = flags_of(string);
        rb_sys::rb_str_locktmp(string);
        let locked = flags_of(string) & !before;
        rb_sys::rb_str_unlocktmp(string);
        let share = rb_sys::rb_str_new_frozen(string);
        let shared = flags_of(string) & !before;
        std::hint::black_box(share);
        Flags { locked, shared }
    }
}

/// More bytes than Ruby embeds in an object, so that the String can be shared.
const LONG: usize = 4096;

/// Returns a copy of the String that keeps only its encoding, not its code range.
///
/// # Safety
/// `string` is a String. Raises when memory is exhausted.
pub(super) unsafe fn copy(string: VALUE) -> VALUE {
    // SAFETY: the contract of this function.
    unsafe {
        let length = rb_sys::RSTRING_LEN(string) as c_long;
        let copy = rb_sys::rb_str_new(rb_sys::RSTRING_PTR(string), length);
        rb_sys::rb_enc_associate_index(copy, rb_sys::rb_enc_get_index(string))
    }
}

/// Returns a frozen String with the bytes that `string` has now.
///
/// # Safety
/// `string` is a String. Raises when memory is exhausted.
pub(crate) unsafe fn frozen(string: VALUE) -> VALUE {
    // SAFETY: the contract of this function.
    unsafe {
        let settled = if may_change(string) { copy(string) } else { string };
        rb_sys::rb_str_new_frozen(settled)
    }
}

/// Defines the methods that `offlock/io_buffer.rb` calls.
pub(crate) fn define(offlock: RModule) -> Result<(), Error> {
    if cruby::uses_internals() {
        protect(|| {
            // SAFETY: the lock is held while the extension is loaded; exceptions are caught here.
            let flags = unsafe { find_flags() };
            if flags.locked != 0 && flags.shared != 0 {
                FLAGS.get_or_init(|| flags);
            }
            rb_sys::Qnil as VALUE
        })?;
    }
    let native = offlock.define_module("Buffers")?;
    native.define_singleton_method("enter", function!(|| BUFFERS.fetch_add(1, Ordering::AcqRel), 0))?;
    native.define_singleton_method("leave", function!(|| BUFFERS.fetch_sub(1, Ordering::AcqRel), 0))
}
