//! Pieces of a String that share its bytes.
//!
//! Ruby itself shares only the end of a String: a piece from the middle it copies, since no zero follows it there. It
//! reads such shares all the same (`rb_str_new_frozen` makes them), and what needs a zero behind a String checks for
//! one. So each piece starts as a share of all that is left of the text, and is then given its length.
//!
//! That is not in Ruby's public interface: that a String has its length in the field `len`, and that its end is shared. Whether
//! both are so is seen in each text. If not, or with `OFFLOCK_INTERNALS=0`, pieces are copied.

use std::ffi::c_long;

use rb_sys::*;

use super::gvl::Gvl;
use super::object::Object;
use super::string::Share;

/// Up to this many bytes fit into the smallest object, where nothing needs to be shared.
const EMBEDDED: usize = 15;

/// What Ruby would find out about the characters of a String when it needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeRange {
    Ascii,
    Valid,
    Unknown,
}

/// A text that is cut into pieces.
pub(crate) struct Slices {
    /// A share of it that no other code has.
    text: Object,
    share: Share,
    encoding: *mut rb_encoding,
    /// Whether this Ruby shares the end of a String, as is expected.
    shares: bool,
}

impl Slices {
    pub(crate) fn of(_: &Gvl, share: Share) -> Self {
        let (bytes, text) = (share.bytes(), share.object().as_raw());
        // SAFETY: all of the text, which is a String, is asked for; the share of it is new.
        unsafe {
            let own = rb_str_subseq(text, 0, bytes.len() as _);
            let shares = super::uses_internals()
                && RSTRING_PTR(own).cast() == bytes.as_ptr()
                && usize::try_from(*length(own)) == Ok(bytes.len());
            // Or Ruby would look for a character that is not ASCII in all that is left of the text, for each piece.
            note(own, CodeRange::Unknown);
            // A program can find it in `ObjectSpace`.
            rb_obj_freeze(own);
            Self { text: Object::raw(own), share, encoding: rb_enc_get(text), shares }
        }
    }

    /// The piece from one offset to another, about the characters of which `range` is true.
    #[inline]
    pub(crate) fn slice(&self, _: &Gvl, start: usize, end: usize, range: CodeRange) -> Object {
        let bytes = &self.share.bytes()[start..end];
        // SAFETY: the end of the text is longer than what would be embedded, so that it is shared, and a new object, of which
        // the length may be lessened.
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
        // SAFETY: the piece is a new object.
        unsafe { note(piece, range) };
        Object::raw(piece)
    }

    /// Keeps the text on the stack until here.
    pub(crate) fn keep(&self) {
        self.text.keep();
        self.share.object().keep();
    }
}

/// Where a String has its length.
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
    // SAFETY: that is what Strings look like in the header files that this was built with.
    unsafe { &raw mut (*(string as *mut RString)).len }
}

/// Leaves `range` with a String.
///
/// # Safety
///
/// `string` is a String that is new, and what is said of it is true.
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
