//! From places in a String to an Array of Strings that share its bytes.
//!
//! Ruby itself shares only the end of a String: a piece from the middle it copies, since no zero follows it there. It
//! reads such shares all the same (`rb_str_new_frozen` makes them), and what needs a zero behind a String checks for
//! one. So each piece starts as a share of all that is left of the text, and is then given its length.

use magnus::rb_sys::{FromRawValue, protect};
use magnus::{Error, RArray, TryConvert, Value};
use offlock_core::text::Span;
use rb_sys::{VALUE, ruby_coderange_type};

use crate::borrow::Bytes;
use crate::region::Pace;

/// What is validity about the characters of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    /// All are ASCII.
    Ascii,
    /// They are valid UTF-8.
    Utf8,
    /// They are meant to be UTF-8; whether they are has not been looked at.
    PerhapsUtf8,
    /// Nothing.
    Nothing,
}

/// Up to this many bytes fit into the smallest object, where nothing needs to be shared.
const EMBEDDED: usize = 15;

/// How many Strings are made before they go to the Array.
const CHUNK: usize = 128;

/// The pieces of `text` at `spans`, in order.
pub(super) fn array(text: &Bytes, spans: &[Span], validity: Validity) -> Result<RArray, Error> {
    let array = protect(|| {
        // SAFETY: the lock is held, and what is raised is caught above; nothing here needs to be dropped.
        // The Array is on the stack while it is filled.
        unsafe {
            let cutter = Cutter::new(text, validity);
            let array = rb_sys::rb_ary_new_capa(spans.len() as _);
            let mut pace = Pace::new();
            for spans in spans.chunks(CHUNK) {
                cutter.append(array, spans);
                if pace.is_due(CHUNK) {
                    pace.yield_or_raise();
                }
            }
            array
        }
    })?;
    // SAFETY: Ruby just made this value, and it is an Array.
    RArray::try_convert(unsafe { Value::from_raw(array) })
}

/// Makes pieces of one text.
struct Cutter<'a> {
    /// A share of it that nobody else has.
    text: VALUE,
    bytes: &'a [u8],
    encoding: *mut rb_sys::rb_encoding,
    /// Whether this Ruby shares the end of a String, as is expected.
    shares: bool,
    validity: Validity,
}

impl<'a> Cutter<'a> {
    /// # Safety
    ///
    /// The lock is held, and the caller catches what Ruby raises.
    unsafe fn new(text: &'a Bytes, validity: Validity) -> Self {
        let (bytes, text) = (text.view(), text.share().as_raw());
        // SAFETY: as promised by the caller; all of the text, which is a String, is asked for.
        unsafe {
            let share = rb_sys::rb_str_subseq(text, 0, bytes.len() as _);
            let shares = rb_sys::RSTRING_PTR(share).cast() == bytes.as_ptr()
                && usize::try_from(*length(share)) == Ok(bytes.len());
            // Or Ruby would look for a character that is not ASCII in all that is left of the text, for each piece.
            note(share, ruby_coderange_type::RUBY_ENC_CODERANGE_UNKNOWN);
            // A program can find it in `ObjectSpace`.
            rb_sys::rb_obj_freeze(share);
            Self { text: share, bytes, encoding: rb_sys::rb_enc_get(text), shares, validity }
        }
    }

    /// Appends at most `CHUNK` pieces.
    ///
    /// # Safety
    ///
    /// `array` is an Array, the lock is held, and the caller catches what Ruby raises.
    unsafe fn append(&self, array: VALUE, spans: &[Span]) {
        // On the stack, where the garbage collector finds what is in it.
        let mut pieces = [rb_sys::Qnil as VALUE; CHUNK];
        for (piece, span) in pieces.iter_mut().zip(spans) {
            // SAFETY: as promised by the caller.
            *piece = unsafe { self.piece(*span) };
        }
        // SAFETY: as promised by the caller; `pieces` has at least as many elements as `spans`.
        unsafe { rb_sys::rb_ary_cat(array, pieces.as_ptr(), spans.len() as _) };
    }

    /// # Safety
    ///
    /// As for `append`.
    #[inline]
    unsafe fn piece(&self, span: Span) -> VALUE {
        let bytes = &self.bytes[span.start..span.end];
        // SAFETY: as promised by the caller. The end of the text is longer than what would be embedded, so that it is
        // shared, and a new object, of which the length may be lessened.
        let piece = unsafe {
            if self.shares && bytes.len() > EMBEDDED {
                let rest = self.bytes.len() - span.start;
                let piece = rb_sys::rb_str_subseq(self.text, span.start as _, rest as _);
                length(piece).write(bytes.len() as _);
                piece
            } else {
                rb_sys::rb_enc_str_new(bytes.as_ptr().cast(), bytes.len() as _, self.encoding)
            }
        };
        // SAFETY: the piece is a new object.
        unsafe { note(piece, self.range_of(span)) };
        piece
    }

    /// What Ruby would find out about the piece when it needs to know.
    #[inline]
    fn range_of(&self, span: Span) -> ruby_coderange_type {
        let begins = |at: usize| self.bytes.get(at).is_none_or(|byte| byte & 0xC0 != 0x80);
        match self.validity {
            Validity::Ascii => ruby_coderange_type::RUBY_ENC_CODERANGE_7BIT,
            Validity::Utf8 if self.bytes[span.start..span.end].is_ascii() => {
                ruby_coderange_type::RUBY_ENC_CODERANGE_7BIT
            }
            Validity::Utf8 if begins(span.start) && begins(span.end) => {
                ruby_coderange_type::RUBY_ENC_CODERANGE_VALID
            }
            Validity::Utf8 | Validity::PerhapsUtf8 | Validity::Nothing => {
                ruby_coderange_type::RUBY_ENC_CODERANGE_UNKNOWN
            }
        }
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
    reason = "there is no other way to change a length; `Cutter::new` sees whether it is there"
)]
unsafe fn length(string: VALUE) -> *mut std::ffi::c_long {
    // SAFETY: that is what Strings look like in the header files that this was built with.
    unsafe { &raw mut (*(string as *mut rb_sys::RString)).len }
}

/// Leaves `range` with a String.
///
/// # Safety
///
/// `string` is a String that is new, and what is said of it is true.
#[inline]
unsafe fn note(string: VALUE, range: ruby_coderange_type) {
    // SAFETY: every object begins with its flags.
    let flags = unsafe { &mut (*(string as *mut rb_sys::RBasic)).flags };
    let others = !(ruby_coderange_type::RUBY_ENC_CODERANGE_MASK as VALUE);
    *flags = *flags & others | range as VALUE;
}
