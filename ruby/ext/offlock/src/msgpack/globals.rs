//! Classes and names that native code needs, looked up once when the extension is loaded.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::cruby::{Gvl, Id, Object, classes, define_class, define_module, encodings, include};

/// Classes and names, see the module. The classes are constants, so they live forever, in place.
pub(super) struct Globals {
    pub(super) module: Object,
    pub(super) packer: Object,
    pub(super) unpacker: Object,
    pub(super) factory: Object,
    pub(super) buffer: Object,
    pub(super) index: Object,
    pub(super) malformed: Object,
    pub(super) too_deep: Object,
    pub(super) unexpected_type: Object,
    pub(super) unknown_ext: Object,
    /// `String`.
    pub(super) string: Object,
    pub(super) to_msgpack: Id,
    pub(super) extension_value: Id,
    /// The indexes of encodings.
    pub(super) utf8: c_int,
    pub(super) us_ascii: c_int,
    pub(super) binary: c_int,
}

static GLOBALS: OnceLock<Globals> = OnceLock::new();

/// The classes and names.
#[inline]
pub(super) fn globals() -> &'static Globals {
    GLOBALS.get().expect("looked up when the extension was loaded")
}

/// Defines the classes below `Offlock::MessagePack`.
pub(super) fn define(gvl: &Gvl) {
    let offlock = define_module(gvl, None, c"Offlock");
    let module = define_module(gvl, Some(offlock), c"MessagePack");
    let unpack_error = define_class(gvl, module, c"UnpackError", classes::standard_error());
    let unexpected_type = define_class(gvl, module, c"UnexpectedTypeError", unpack_error);
    include(gvl, unexpected_type, define_module(gvl, Some(module), c"TypeError"));
    let class = |name| define_class(gvl, module, name, classes::object());
    let error = |name| define_class(gvl, module, name, unpack_error);
    GLOBALS.get_or_init(|| Globals {
        module,
        packer: class(c"Packer"),
        unpacker: class(c"Unpacker"),
        factory: class(c"Factory"),
        buffer: class(c"Buffer"),
        index: class(c"Index"),
        malformed: error(c"MalformedFormatError"),
        too_deep: error(c"StackError"),
        unexpected_type,
        unknown_ext: error(c"UnknownExtTypeError"),
        string: classes::string(),
        to_msgpack: Id::of(c"to_msgpack"),
        extension_value: Id::of(c"ExtensionValue"),
        utf8: encodings::utf8(),
        us_ascii: encodings::us_ascii(),
        binary: encodings::binary(),
    });
}
