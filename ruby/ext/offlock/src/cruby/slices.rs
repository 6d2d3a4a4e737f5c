//! Slices of a String that share its bytes.
//!
//! Ruby itself shares only the end of a String. It copies a slice from the middle, because no NUL follows
//! there. But it can read shares without a NUL (`rb_str_new_frozen` makes them), and functions that need a
//! NUL after a String check for one. So each slice starts as a share of the rest of the text, and then its
//! length is set.
//!
//! Two facts are not part of Ruby's public interface: a String keeps its length in the field `len`, and its
//! end is shared. Both are verified for each text. If one does not hold, or with `OFFLOCK_INTERNALS=0`,
//! slices are copied.

use std::ffi::c_long;

use rb_sys::*;

use super::gvl::Gvl;
use super::object::Object;
use super::string::Share;

/// Up to this many bytes fit into the smallest object, so that sharing gains nothing.
const EMBEDDED: usize = 15;

/// The code range of a String, which Ruby would otherwise compute when it needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeRange {
    Ascii,
    Valid,
    Unknown,
}

/// A text that is cut into slices.
pub(crate) struct Slices {
    /// A share of the text that no other code has.
    text: Object,
    share: Share,
    encoding: *mut rb_encoding,
    /// Whether this Ruby shares the end of a String, as expected.
    shares: bool,
}

impl Slices {
    pub(crate) fn of(_: &Gvl, share: Share) -> Self {
        let (bytes, text) = (share.bytes(), share.object().as_raw());
        // SAFETY: the range is the whole text, which is a String; the share of it is new.
        unsafe {
            let own = rb_str_subseq(text, 0, bytes.len() as _);
            let shares = super::uses_internals()
                && RSTRING_PTR(own).cast() == bytes.as_ptr()
                && usize::try_from(*length(own)) == Ok(bytes.len());
            // Otherwise Ruby would search the rest of the text for a non-ASCII character, for each slice.
            note(own, CodeRange::Unknown);
            // A program can find the share in `ObjectSpace`.
            rb_obj_freeze(own);
            Self { text: Object::raw(own), share, encoding: rb_enc_get(text), shares }
        }
    }

    /// The slice from one offset to another, whose code range is `range`.
    #[inline]
    pub(crate) fn slice(&self, _: &Gvl, start: usize, end: usize, range: CodeRange) -> Object {
        let bytes = &self.share.bytes()[start..end];
        // SAFETY: the rest of the text is longer than Ruby embeds, so that it is shared, and the share is a
        // new object, whose length may be reduced.
        let piece = unsafe {
            if self.shares && bytes.len() > EMBEDDED {
                let rest = self.share.bytes().len() - start;
                let piece = rb_str_subseq(self.text.as_raw(), start as _, rest as _);
                length(piece).write(bytes.len() as _);
                piece
            } else {
                rb_enc_str_new(bytes.as_ptr().cast(), bytes.len() as _, self.encoding)
            }
        };
        // SAFETY: the slice is a new object.
        unsafe { note(piece, range) };
        Object::raw(piece)
    }

    /// Keeps the text on the stack until here.
    pub(crate) fn keep(&self) {
        self.text.keep();
        self.share.object().keep();
    }
}

/// The address of the length of a String.
///
/// # Safety
///
/// `string` is a String.
#[inline]
#[allow(
    deprecated,
    reason = "there is no other way to change a length; `Slices::of` sees whether it is there"
)]
unsafe fn length(string: VALUE) -> *mut c_long {
    // SAFETY: a String has this layout in the header files of this build.
    unsafe { &raw mut (*(string as *mut RString)).len }
}

/// Records the code range of a String.
///
/// # Safety
///
/// `string` is a new String, and `range` is its code range.
#[inline]
unsafe fn note(string: VALUE, range: CodeRange) {
    let range = match range {
        CodeRange::Ascii => ruby_coderange_type::RUBY_ENC_CODERANGE_7BIT,
        CodeRange::Valid => ruby_coderange_type::RUBY_ENC_CODERANGE_VALID,
        CodeRange::Unknown => ruby_coderange_type::RUBY_ENC_CODERANGE_UNKNOWN,
    };
    // SAFETY: every object begins with its flags.
    let flags = unsafe { &mut (*(string as *mut RBasic)).flags };
    let others = !(ruby_coderange_type::RUBY_ENC_CODERANGE_MASK as VALUE);
    *flags = *flags & others | range as VALUE;
}
