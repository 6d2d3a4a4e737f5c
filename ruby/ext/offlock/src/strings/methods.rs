//! The native methods: each cuts a text in its own way.

use magnus::encoding::{self, Coderange, EncodingCapable, RbEncoding};
use magnus::{Error, Fixnum, Module, Object, RArray, RModule, RString, Ruby, TryConvert, Value, function};
use offlock_core::text::{self, LineEnds, Span};
use offlock_core::{Operation, Stopped, Task};

use super::compact;
use super::pieces::{self, Validity};
use crate::borrow::{self, Share, TextError, borrowed, numbers};
use crate::error::{IntoException, no_memory};
use crate::operations::{STRINGS_FROM_OFFSETS, STRINGS_LINES, STRINGS_SPLIT};
use crate::region::{Region, Release};

/// Defines the native methods.
pub(crate) fn define(offlock: RModule) -> Result<(), Error> {
    let strings = offlock.define_module("Strings")?;
    strings.define_singleton_method("native_lines", function!(lines, 3))?;
    strings.define_singleton_method("native_split", function!(split, 3))?;
    strings.define_singleton_method("native_from_offsets", function!(from_offsets, 3))?;
    strings.define_singleton_method("native_compact", function!(compact::compact, 1))
}

/// `nil` for an encoding whose newline is not one byte.
fn lines(ruby: &Ruby, string: RString, chomp: bool, release: Release) -> Result<Option<RArray>, Error> {
    if encoding_of(string).mbminlen() != 1 {
        return Ok(None);
    }
    let array = cut(ruby, &STRINGS_LINES, string, release, |text, task| {
        Ok(text::lines(text, LineEnds::NewlineOrCrlf, !chomp, task)?)
    })?;
    Ok(Some(array))
}

/// `nil` for an encoding in which the bytes of a separator can be a part of other characters.
fn split(
    ruby: &Ruby,
    string: RString,
    separator: RString,
    release: Release,
) -> Result<Option<RArray>, Error> {
    encoding::check(string, separator)?;
    if separator.enc_coderange_scan() == Coderange::Broken {
        let message = format!("invalid byte sequence in {}", encoding_of(separator).name());
        return Err(Error::new(ruby.exception_arg_error(), message));
    }
    if separator.is_empty() {
        return Err(Error::new(ruby.exception_arg_error(), "empty separator"));
    }
    if string.enc_get() != ruby.utf8_encindex() && encoding_of(string).mbmaxlen() != 1 {
        return Ok(None);
    }
    let separator = borrowed!(Bytes, separator);
    let separator = separator.view();
    let array = cut(ruby, &STRINGS_SPLIT, string, release, |text, task| match text {
        [] => Ok(Vec::new()), // as in Ruby
        text => Ok(text::split(text, separator, task)?),
    })?;
    Ok(Some(array))
}

fn from_offsets(ruby: &Ruby, string: RString, offsets: Value, release: Release) -> Result<RArray, Error> {
    let Some(packed) = RString::from_value(offsets) else {
        let plain = |value| Some(Fixnum::from_value(value)?.to_i64());
        let convert = |odd, _| i64::try_convert(odd);
        let offsets = numbers(RArray::try_convert(offsets)?, plain, convert)?;
        return cut(ruby, &STRINGS_FROM_OFFSETS, string, release, |text, task| {
            Ok(text::offsets(text, offsets.iter().copied(), task)?)
        });
    };
    let packed = borrowed!(Bytes, packed);
    let packed = packed.view();
    let (words, rest) = packed.as_chunks::<{ size_of::<i64>() }>();
    if !rest.is_empty() {
        let message = format!("packed offsets take 8 bytes each, got {} bytes", packed.len());
        return Err(Error::new(ruby.exception_arg_error(), message));
    }
    cut(ruby, &STRINGS_FROM_OFFSETS, string, release, |text, task| {
        let offsets = words.iter().map(|&word| i64::from_ne_bytes(word));
        Ok(text::offsets(text, offsets, task)?)
    })
}

/// Cuts the String into the pieces that `find` finds. `find` may be called twice.
fn cut(
    ruby: &Ruby,
    operation: &'static Operation,
    string: RString,
    release: Release,
    find: impl Fn(&[u8], &Task<'_>) -> Result<Vec<Span>, CutError> + Sync,
) -> Result<RArray, Error> {
    let text = borrowed!(Bytes, string);
    let (view, given) = (text.view(), Validity::of(ruby, text.share()));
    let (spans, validity) = Region::new(operation, view.len())
        .release(release)
        .run(ruby, |task| Ok::<_, CutError>((find(view, task)?, given.or_found(view, task)?)))?;
    pieces::array(ruby, text, &spans, validity)
}

fn encoding_of(string: RString) -> RbEncoding {
    string.enc_get().into()
}

impl Validity {
    /// The validity that Ruby knows.
    fn of(ruby: &Ruby, text: Share<'_>) -> Self {
        let (validity, encoding) = text.encoding();
        match validity {
            Coderange::SevenBit => Self::Ascii,
            _ if encoding != ruby.utf8_encindex() => Self::Nothing,
            Coderange::Valid => Self::Utf8,
            Coderange::Unknown => Self::PerhapsUtf8,
            Coderange::Broken => Self::Nothing,
        }
    }

    /// The same, or the result of a check where Ruby does not know.
    fn or_found(self, text: &[u8], task: &Task<'_>) -> Result<Self, CutError> {
        match self {
            Self::PerhapsUtf8 if text.is_ascii() => Ok(Self::Ascii),
            Self::PerhapsUtf8 => match borrow::check_utf8(text, task) {
                Ok(()) => Ok(Self::Utf8),
                Err(TextError::Invalid { .. }) => Ok(Self::Nothing),
                Err(TextError::Stopped) => Err(Stopped.into()),
            },
            validity => Ok(validity),
        }
    }
}

/// The reason why a text was not cut.
struct CutError(text::Error);

impl From<text::Error> for CutError {
    fn from(error: text::Error) -> Self {
        Self(error)
    }
}

impl From<Stopped> for CutError {
    fn from(stopped: Stopped) -> Self {
        Self(stopped.into())
    }
}

impl IntoException for CutError {
    fn into_exception(self, ruby: &Ruby) -> Error {
        match self.0 {
            text::Error::Stopped => Stopped.into_exception(ruby),
            text::Error::OutOfMemory => no_memory(ruby),
            error => Error::new(ruby.exception_arg_error(), error.to_string()),
        }
    }
}
