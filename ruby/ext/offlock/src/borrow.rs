//! Borrowing: views of Ruby Strings that stay valid and unchanged while other threads run.
//!
//! A view is taken of a frozen share of the String (`rb_str_new_frozen`): the bytes are shared copy-on-write, so a
//! large String is not copied, and a thread that changes the original meanwhile gets its own copy. The share is
//! kept alive, and in place, by the value here, which therefore has to stay on the stack.

use std::cell::RefCell;
use std::hint::black_box;
use std::str;

use magnus::encoding::{Coderange, EncodingCapable, RbEncoding};
use magnus::error::ErrorType;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::typed_data::Obj;
use magnus::value::{InnerValue, Opaque, ReprValue};
use magnus::{
    DataType, DataTypeFunctions, Error, RArray, RClass, RString, Ruby, TryConvert, TypedData, Value,
};
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::{Stopped, Task};

use crate::memory::no_memory;
use crate::region::Failure;

/// How many bytes are checked for being valid UTF-8 between two looks at the stop flag.
const CHECK_EVERY: usize = 1 << 18;

/// The bytes of a String as they were when it was borrowed.
pub(crate) struct Bytes {
    share: RString,
}

impl Bytes {
    pub(crate) fn borrow(string: RString) -> Result<Self, Error> {
        Ok(Self { share: share(string)? })
    }

    pub(crate) fn view(&self) -> &[u8] {
        view(&self.share)
    }

    /// The frozen String that is viewed.
    pub(crate) fn share(&self) -> RString {
        self.share
    }
}

impl Drop for Bytes {
    /// Keeps the share on the stack, where the garbage collector finds it, until here.
    fn drop(&mut self) {
        black_box(self.share);
    }
}

/// A text as it was when it was borrowed: UTF-8, or not yet known to be.
pub(crate) struct Text {
    bytes: Bytes,
    kind: Kind,
}

impl Text {
    /// Borrows what is a String, or says with `to_str` that it is as good as one.
    ///
    /// UTF-8 and US-ASCII are taken as they are, and checked by [`TextView::checked`] off the lock. Binary Strings
    /// have to be ASCII. Other encodings are transcoded.
    pub(crate) fn borrow(ruby: &Ruby, value: Value) -> Result<Self, Error> {
        let (string, kind) = utf8(ruby, RString::try_convert(value)?)?;
        Ok(Self { bytes: Bytes::borrow(string)?, kind })
    }

    pub(crate) fn view(&self) -> TextView<'_> {
        TextView { bytes: self.bytes.view(), kind: self.kind }
    }

    /// The first `length` bytes as a String of their own.
    pub(crate) fn beginning(&self, length: usize) -> Result<RString, Error> {
        self.bytes.share.funcall("byteslice", (0, length))
    }
}

/// Many texts as they were when they were borrowed.
pub(crate) struct Texts {
    shares: Obj<Shares>,
    kinds: Vec<Kind>,
}

impl Texts {
    pub(crate) fn borrow(ruby: &Ruby, texts: RArray) -> Result<Self, Error> {
        let mut these = Self { shares: ruby.obj_wrap(Shares::default()), kinds: Vec::new() };
        // By index, because `to_str` may change the Array.
        while these.kinds.len() < texts.len() {
            let index = these.kinds.len();
            these
                .push(ruby, texts.entry(index as isize)?)
                .map_err(|error| naming(ruby, error, index, "text"))?;
        }
        Ok(these)
    }

    fn push(&mut self, ruby: &Ruby, text: Value) -> Result<(), Error> {
        let (string, kind) = utf8(ruby, RString::try_convert(text)?)?;
        let share = share(string)?;
        self.shares.push(ruby, share)?;
        memory::push(&mut self.kinds, kind).map_err(|OutOfMemory| no_memory(ruby))
    }

    pub(crate) fn views(&self, ruby: &Ruby) -> Vec<TextView<'_>> {
        let bytes = self.shares.views(ruby).into_iter();
        bytes.zip(&self.kinds).map(|(bytes, &kind)| TextView { bytes, kind }).collect()
    }
}

impl Drop for Texts {
    /// Keeps the shares reachable from the stack until here.
    fn drop(&mut self) {
        black_box(self.shares);
    }
}

/// The bytes of many Strings as they were when they were borrowed.
pub(crate) struct AllBytes {
    shares: Obj<Shares>,
}

impl AllBytes {
    pub(crate) fn borrow(ruby: &Ruby, strings: RArray) -> Result<Self, Error> {
        let these = Self { shares: ruby.obj_wrap(Shares::default()) };
        let mut index = 0;
        // By index, because `to_str` may change the Array.
        while index < strings.len() {
            let string = RString::try_convert(strings.entry(index as isize)?)
                .map_err(|error| naming(ruby, error, index, "input"))?;
            let share = share(string)?;
            these.shares.push(ruby, share)?;
            index += 1;
        }
        Ok(these)
    }

    pub(crate) fn views(&self, ruby: &Ruby) -> Vec<&[u8]> {
        self.shares.views(ruby)
    }
}

impl Drop for AllBytes {
    /// Keeps the shares reachable from the stack until here.
    fn drop(&mut self) {
        black_box(self.shares);
    }
}

/// Keeps Strings alive and in place: an Array would let compaction move short ones, whose bytes are inside the object.
#[derive(Default)]
struct Shares(RefCell<Vec<Opaque<RString>>>);

impl Shares {
    fn push(&self, ruby: &Ruby, share: RString) -> Result<(), Error> {
        memory::push(&mut self.0.borrow_mut(), share.into()).map_err(|OutOfMemory| no_memory(ruby))
    }

    fn views(&self, ruby: &Ruby) -> Vec<&[u8]> {
        let shares = self.0.borrow();
        let bytes = shares.iter().map(|share| {
            let share = share.get_inner_with(ruby);
            // SAFETY: the share is frozen, and kept alive and in place for as long as `self` lives.
            unsafe { std::slice::from_raw_parts(view(&share).as_ptr(), share.len()) }
        });
        bytes.collect()
    }
}

// SAFETY: the data type is this type's own. No Ruby program gets to see such an object, so any class will do.
unsafe impl TypedData for Shares {
    fn class(ruby: &Ruby) -> RClass {
        ruby.class_object()
    }

    fn data_type() -> &'static DataType {
        static TYPE: DataType =
            DataType::builder::<Shares>(c"Offlock shares").mark().free_immediately().build();
        &TYPE
    }
}

impl DataTypeFunctions for Shares {
    fn mark(&self, marker: &magnus::gc::Marker) {
        marker.mark_slice(&self.0.borrow());
    }
}

/// What is known about the bytes of a text.
#[derive(Clone, Copy)]
enum Kind {
    Valid,
    Utf8,
    Ascii,
}

/// The bytes of a [`Text`], to be checked before use. May be used off the lock.
#[derive(Clone, Copy)]
pub(crate) struct TextView<'a> {
    bytes: &'a [u8],
    kind: Kind,
}

impl<'a> TextView<'a> {
    pub(crate) fn len(self) -> usize {
        self.bytes.len()
    }

    /// The text, once its bytes were checked. Only those are that Ruby has not checked already.
    pub(crate) fn checked(self, task: &Task<'_>) -> Result<&'a str, Unreadable> {
        match self.kind {
            Kind::Valid => {}
            Kind::Utf8 => check(self.bytes, task, |bytes| match str::from_utf8(bytes) {
                Ok(_) => Ok(()),
                Err(error) => Err((error.valid_up_to(), error.error_len().is_none())),
            })?,
            Kind::Ascii => {
                check(self.bytes, task, |bytes| match bytes.iter().position(|byte| !byte.is_ascii()) {
                    None => Ok(()),
                    Some(position) => Err((position, false)),
                })?
            }
        }
        // SAFETY: Ruby or the lines above found the bytes to be valid UTF-8.
        Ok(unsafe { str::from_utf8_unchecked(self.bytes) })
    }
}

/// The texts, once their bytes were checked.
pub(crate) fn all_checked<'a>(views: &[TextView<'a>], task: &Task<'_>) -> Result<Vec<&'a str>, Unreadable> {
    let checked =
        views.iter().enumerate().map(|(index, view)| view.checked(task).map_err(|error| error.of(index)));
    checked.collect()
}

/// Finds the first byte that keeps `bytes` from being UTF-8.
pub(crate) fn check_utf8(bytes: &[u8], task: &Task<'_>) -> Result<(), Unreadable> {
    check(bytes, task, |bytes| match str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err((error.valid_up_to(), error.error_len().is_none())),
    })
}

/// Calls `valid` on one piece of `bytes` after the other; it answers with where the first invalid character starts, and
/// whether that may be one that the end of the piece cuts in two.
fn check(
    bytes: &[u8],
    task: &Task<'_>,
    valid: impl Fn(&[u8]) -> Result<(), (usize, bool)>,
) -> Result<(), Unreadable> {
    let mut start = 0;
    while start < bytes.len() {
        task.check()?;
        let end = bytes.len().min(start + CHECK_EVERY);
        start = match valid(&bytes[start..end]) {
            Ok(()) => end,
            Err((length, true)) if end < bytes.len() && length > 0 => start + length,
            Err((length, _)) => return Err(Unreadable::at(bytes, start + length)),
        };
    }
    Ok(())
}

/// Why a text could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A byte that does not belong there.
    Invalid {
        /// Which of many texts.
        index: Option<usize>,
        /// Where in it.
        offset: usize,
        byte: u8,
    },
    Stopped,
}

impl Unreadable {
    fn at(bytes: &[u8], offset: usize) -> Self {
        Self::Invalid { index: None, offset, byte: bytes[offset] }
    }

    fn of(self, text: usize) -> Self {
        match self {
            Self::Invalid { offset, byte, .. } => Self::Invalid { index: Some(text), offset, byte },
            Self::Stopped => self,
        }
    }
}

impl From<Stopped> for Unreadable {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Failure for Unreadable {
    fn into_exception(self, ruby: &Ruby) -> Error {
        match self {
            Self::Stopped => Stopped.into_exception(ruby),
            Self::Invalid { index, offset, byte } => {
                let which = index.map(|index| format!("text {index}: ")).unwrap_or_default();
                let message = format!("{which}invalid byte sequence in UTF-8: 0x{byte:02X} at byte {offset}");
                Error::new(ruby.exception_encoding_error(), message)
            }
        }
    }
}

fn share(string: RString) -> Result<RString, Error> {
    // SAFETY: `string` is a String. What running out of memory raises is caught here.
    let share = protect(|| unsafe { rb_sys::rb_str_new_frozen(string.as_raw()) })?;
    // SAFETY: Ruby just made this value, and it is a String.
    RString::try_convert(unsafe { Value::from_raw(share) })
}

/// The bytes of a frozen String, which the caller keeps alive and in place for as long as the view is used.
fn view(share: &RString) -> &[u8] {
    // SAFETY: nobody can change a frozen String.
    unsafe { share.as_slice() }
}

/// The String in UTF-8, and what is known about it.
fn utf8(ruby: &Ruby, string: RString) -> Result<(RString, Kind), Error> {
    let encoding = string.enc_get();
    let known = matches!(string.enc_coderange(), Coderange::SevenBit | Coderange::Valid);
    if encoding == ruby.utf8_encindex() {
        Ok((string, if known { Kind::Valid } else { Kind::Utf8 }))
    } else if encoding == ruby.usascii_encindex() {
        Ok((string, if known { Kind::Valid } else { Kind::Ascii }))
    } else if string.enc_coderange_scan() == Coderange::SevenBit {
        Ok((string, Kind::Valid))
    } else {
        Ok((transcoded(ruby, string)?, Kind::Utf8))
    }
}

fn transcoded(ruby: &Ruby, string: RString) -> Result<RString, Error> {
    let text = string.conv_enc(ruby.utf8_encoding())?;
    if text.enc_get() == ruby.utf8_encindex() { Ok(text) } else { Err(refusal(ruby, string)) }
}

/// Says which encoding is refused, and the first bytes that have no equal in UTF-8.
fn refusal(ruby: &Ruby, string: RString) -> Error {
    let name = RbEncoding::from(string.enc_get()).name().to_owned();
    let message = match first_bad_bytes(ruby, string, &name) {
        Ok((offset, bytes)) => format!("expected utf-8, got {name} with {bytes} at byte {offset}"),
        Err(_) => format!("expected utf-8, got {name}"),
    };
    Error::new(ruby.exception_encoding_error(), message)
}

/// Where the first bytes are that cannot be transcoded, and which.
fn first_bad_bytes(ruby: &Ruby, string: RString, encoding: &str) -> Result<(usize, String), Error> {
    if string.enc_get() == ruby.ascii8bit_encindex() {
        let bytes = Bytes::borrow(string)?;
        let offset = bytes.view().iter().position(|byte| !byte.is_ascii()).unwrap_or_default();
        return Ok((offset, hex(&bytes.view()[offset..=offset])));
    }
    let class: Value = ruby.class_object().funcall("const_get", ("Encoding::Converter",))?;
    let converter: Value = class.funcall("new", (encoding, "UTF-8"))?;
    let rest: RString = string.funcall("dup", ())?;
    converter.funcall::<_, _, Value>("primitive_convert", (rest, ruby.str_new("")))?;
    let (_, _, _, bad, unread): (Value, Value, Value, RString, RString) =
        converter.funcall("primitive_errinfo", ())?;
    let bytes = Bytes::borrow(bad)?;
    Ok((string.len() - rest.len() - unread.len() - bad.len(), hex(bytes.view())))
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("0x{byte:02X}")).collect();
    bytes.join(" ")
}

/// The error, saying which of many texts it is about.
fn naming(ruby: &Ruby, error: Error, index: usize, what: &str) -> Error {
    let (class, message) = match error.error_type() {
        ErrorType::Error(class, message) => (*class, message.to_string()),
        ErrorType::Exception(raised) if raised.is_kind_of(ruby.exception_type_error()) => {
            (ruby.exception_type_error(), raised.to_string())
        }
        _ => return error,
    };
    Error::new(class, format!("{what} {index}: {message}"))
}
