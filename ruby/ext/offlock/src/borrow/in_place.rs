//! Strings whose bytes somebody may write to although they are shared.
//!
//! While a thread reads into a String (`IO#read(length, string)`), or has an `IO::Buffer` of it (`IO::Buffer.for(string)`
//! with a block), the String is locked: a method that changes it raises. But it can be shared, and whoever locked
//! it goes on to write to the bytes, which are then those of the share as well. So they are copied.
//!
//! A String that was shared before it was locked is no concern: it gets bytes of its own first. One that Ruby itself
//! made of a locked String (`dup`) is not locked and has the same bytes; so while there is a writable `IO::Buffer` of any
//! String, those that share bytes are copied, too.

use std::ffi::c_long;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use magnus::rb_sys::protect;
use magnus::{Error, Module as _, Object as _, RModule, function};
use rb_sys::VALUE;

use crate::cruby;

/// The flags that Ruby's header files do not tell.
#[derive(Clone, Copy)]
struct Flags {
    locked: VALUE,
    shared: VALUE,
}

/// Found out when the extension is loaded; if that fails, each String is copied.
static FLAGS: OnceLock<Flags> = OnceLock::new();

/// How many blocks of `IO::Buffer.for` and `IO::Buffer.string` run.
static BUFFERS: AtomicUsize = AtomicUsize::new(0);

/// Whether somebody may write to the bytes of the String in place.
pub(crate) fn may_change(string: VALUE) -> bool {
    let Some(&Flags { locked, shared }) = FLAGS.get() else { return true };
    let flags = flags_of(string);
    flags & locked != 0 || (flags & shared != 0 && BUFFERS.load(Ordering::Acquire) > 0)
}

fn flags_of(object: VALUE) -> VALUE {
    // SAFETY: every object that is not in the reference itself begins with its flags; a String is none of those.
    unsafe { (*(object as *const rb_sys::RBasic)).flags }
}

/// Looks at what locking and sharing do to a String.
///
/// # Safety
/// The lock is held, and the caller catches what is raised.
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

/// Longer than what lies in the object itself and is never shared.
const LONG: usize = 4096;

/// A copy of the String, of which nothing is known but its encoding.
///
/// # Safety
/// `string` is a String. Raises when memory runs out.
pub(super) unsafe fn copy(string: VALUE) -> VALUE {
    // SAFETY: the contract of this function.
    unsafe {
        let length = rb_sys::RSTRING_LEN(string) as c_long;
        let copy = rb_sys::rb_str_new(rb_sys::RSTRING_PTR(string), length);
        rb_sys::rb_enc_associate_index(copy, rb_sys::rb_enc_get_index(string))
    }
}

/// A frozen String with the bytes that `string` has now.
///
/// # Safety
/// `string` is a String. Raises when memory runs out.
pub(crate) unsafe fn frozen(string: VALUE) -> VALUE {
    // SAFETY: the contract of this function.
    unsafe {
        let settled = if may_change(string) { copy(string) } else { string };
        rb_sys::rb_str_new_frozen(settled)
    }
}

/// Defines what `offlock/io_buffer.rb` tells of.
pub(crate) fn define(offlock: RModule) -> Result<(), Error> {
    if cruby::uses_internals() {
        protect(|| {
            // SAFETY: the lock is held while the extension is loaded; what is raised is caught here.
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
