//! Classes and names that native code needs, looked up once when the extension is loaded.

use std::sync::OnceLock;

use rb_sys::*;

use crate::cruby::raw as rb;

/// See the module. The classes are constants, so they are alive, and in place, for ever.
pub(super) struct Globals {
    pub(super) module: VALUE,
    pub(super) packer: VALUE,
    pub(super) unpacker: VALUE,
    pub(super) factory: VALUE,
    pub(super) buffer: VALUE,
    pub(super) malformed: VALUE,
    pub(super) too_deep: VALUE,
    pub(super) unexpected_type: VALUE,
    pub(super) unknown_ext: VALUE,
    /// `String`.
    pub(super) string: VALUE,
    pub(super) to_msgpack: ID,
    pub(super) extension_value: ID,
    pub(super) utf8: *mut rb_encoding,
    pub(super) utf8_index: i32,
    pub(super) us_ascii_index: i32,
    pub(super) binary_index: i32,
}

// SAFETY: written once; the encoding lives for ever and is never changed.
unsafe impl Send for Globals {}
// SAFETY: as above.
unsafe impl Sync for Globals {}

static GLOBALS: OnceLock<Globals> = OnceLock::new();

/// The classes and names.
#[inline]
pub(super) fn globals() -> &'static Globals {
    GLOBALS.get_or_init(look_up)
}

/// Defines the classes below `Offlock::MessagePack`.
fn look_up() -> Globals {
    // SAFETY: called while the extension is loaded, with the lock held; defines classes, names and modules.
    unsafe {
        let offlock = rb_define_module(c"Offlock".as_ptr());
        let module = rb_define_module_under(offlock, c"MessagePack".as_ptr());
        let unpack_error = rb::class(module, c"UnpackError", rb_eStandardError);
        let unexpected_type = rb::class(module, c"UnexpectedTypeError", unpack_error);
        rb_include_module(unexpected_type, rb_define_module_under(module, c"TypeError".as_ptr()));
        Globals {
            module,
            packer: rb::class(module, c"Packer", rb_cObject),
            unpacker: rb::class(module, c"Unpacker", rb_cObject),
            factory: rb::class(module, c"Factory", rb_cObject),
            buffer: rb::class(module, c"Buffer", rb_cObject),
            malformed: rb::class(module, c"MalformedFormatError", unpack_error),
            too_deep: rb::class(module, c"StackError", unpack_error),
            unexpected_type,
            unknown_ext: rb::class(module, c"UnknownExtTypeError", unpack_error),
            string: rb_cString,
            to_msgpack: rb::id(c"to_msgpack"),
            extension_value: rb::id(c"ExtensionValue"),
            utf8: rb_utf8_encoding(),
            utf8_index: rb_utf8_encindex(),
            us_ascii_index: rb_usascii_encindex(),
            binary_index: rb_ascii8bit_encindex(),
        }
    }
}
