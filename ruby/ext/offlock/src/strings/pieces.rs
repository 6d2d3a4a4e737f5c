//! Makes an Array of Strings that share the bytes of a String, from their positions.

use magnus::{Error, RArray, Ruby, TryConvert};
use offlock_core::text::Span;

use crate::borrow::Bytes;
use crate::cruby::slices::{CodeRange, Slices};
use crate::cruby::{Object, catch};
use crate::region::Yielder;

/// What is known about the characters of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    /// All characters are ASCII.
    Ascii,
    /// The text is valid UTF-8.
    Utf8,
    /// The text should be UTF-8, but has not been checked.
    PerhapsUtf8,
    /// Nothing is known.
    Nothing,
}

/// The number of Strings that are made before they are appended to the Array.
const CHUNK: usize = 128;

/// The pieces of `text` at `spans`, in order.
pub(super) fn array(ruby: &Ruby, text: &Bytes, spans: &[Span], validity: Validity) -> Result<RArray, Error> {
    let array = catch(ruby, |gvl| {
        let slices = Slices::of(gvl, text.share().kept());
        let array = gvl.array_with_capacity(spans.len());
        let mut yielder = Yielder::new();
        for spans in spans.chunks(CHUNK) {
            // On the stack, where the garbage collector finds its items.
            let mut pieces = [Object::NIL; CHUNK];
            for (piece, span) in pieces.iter_mut().zip(spans) {
                *piece = slices.slice(gvl, span.start, span.end, code_range(text.view(), *span, validity));
            }
            gvl.extend(array, &pieces[..spans.len()]);
            gvl.tick(&mut yielder, CHUNK);
        }
        slices.keep();
        array.into()
    })?;
    RArray::try_convert(array)
}

/// The code range of a piece, which Ruby would otherwise compute.
#[inline]
fn code_range(bytes: &[u8], span: Span, validity: Validity) -> CodeRange {
    let begins = |at: usize| bytes.get(at).is_none_or(|byte| byte & 0xC0 != 0x80);
    match validity {
        Validity::Ascii => CodeRange::Ascii,
        Validity::Utf8 if bytes[span.start..span.end].is_ascii() => CodeRange::Ascii,
        Validity::Utf8 if begins(span.start) && begins(span.end) => CodeRange::Valid,
        Validity::Utf8 | Validity::PerhapsUtf8 | Validity::Nothing => CodeRange::Unknown,
    }
}
