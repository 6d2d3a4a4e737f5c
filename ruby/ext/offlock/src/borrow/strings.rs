//! Views of one String or of many, as bytes or as text.

use std::cell::RefCell;
use std::hint::black_box;
use std::marker::PhantomData;
use std::str;

use magnus::encoding::{self, Coderange, EncodingCapable, RbEncoding};
use magnus::error::ErrorType;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::typed_data::Obj;
use magnus::value::{Opaque, ReprValue};
use magnus::{
    DataType, DataTypeFunctions, Error, RArray, RClass, RString, Ruby, TryConvert, TypedData, Value,
};
use offlock_core::{Stopped, Task};

use super::in_place;
use crate::cruby;
use crate::error::IntoException;
use crate::region::Yielder;

/// The number of bytes that are checked for valid UTF-8 between two checks of the stop flag.
const CHECK_EVERY: usize = 1 << 18;

/// The permission to borrow, which [`borrowed!`] has: a value that is borrowed with it stays on the stack.
pub(crate) struct OnStack(());

impl OnStack {
    /// # Safety
    /// A value that is borrowed with the permission lies on the machine stack of the calling thread or fiber
    /// until it is dropped.
    pub(crate) const unsafe fn promised() -> Self {
        Self(())
    }
}

/// Borrows: `let text = borrowed!(Text, ruby, value);` makes a `&Text`. Returns from the calling function
/// with the exception if there is one.
macro_rules! borrowed {
    ($kind:ident, $($argument:expr),+) => {
        // SAFETY: the borrowed value is a temporary of the calling function, which lives as long as the
        // reference to it. It has no name, so no code can move it.
        &$crate::borrow::$kind::borrow($($argument,)+ unsafe { $crate::borrow::OnStack::promised() })?
    };
}
pub(crate) use borrowed;

/// The bytes of a String as they were when it was borrowed.
pub(crate) struct Bytes {
    share: RString,
}

impl Bytes {
    pub(crate) fn borrow(string: RString, _: OnStack) -> Result<Self, Error> {
        Ok(Self { share: share(settled(string)?)? })
    }

    pub(crate) fn view(&self) -> &[u8] {
        view(&self.share)
    }

    /// The frozen String of the view.
    pub(crate) fn share(&self) -> Share<'_> {
        Share { string: self.share, borrowed: PhantomData }
    }
}

impl Drop for Bytes {
    /// Keeps the share on the stack, where the garbage collector finds it, until here.
    fn drop(&mut self) {
        black_box(self.share);
    }
}

/// The frozen String behind a view. It outlives the view only where the garbage collector finds it.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a> {
    string: RString,
    borrowed: PhantomData<&'a Bytes>,
}

impl Share<'_> {
    /// The String, for an object that keeps it and marks it.
    pub(crate) fn kept(self) -> cruby::string::Share {
        // SAFETY: a frozen String, made from one whose bytes cannot change in place.
        unsafe { cruby::string::Share::promised(cruby::Object::of(self.string)) }
    }

    /// The code range that Ruby knows of the bytes, and their encoding.
    pub(crate) fn encoding(self) -> (Coderange, encoding::Index) {
        (self.string.enc_coderange(), self.string.enc_get())
    }
}

/// The bytes of a String as they were when an object took it. The object marks it for as long as it keeps it.
pub(crate) struct Kept(Opaque<RString>);

impl Kept {
    /// A frozen share of the String, which is on the stack until the object keeps it.
    pub(crate) fn share(string: RString) -> Result<Self, Error> {
        Ok(Self(share(settled(string)?)?.into()))
    }

    pub(crate) fn mark(&self, marker: &magnus::gc::Marker) {
        marker.mark(self.0);
    }

    /// The bytes; the share must be marked for as long as they are used.
    pub(crate) fn bytes(&self, ruby: &Ruby) -> &[u8] {
        let share = ruby.get_inner_ref(&self.0);
        view(share)
    }
}

/// A text as it was when it was borrowed: valid UTF-8, or yet to be checked.
pub(crate) struct Text {
    share: RString,
    kind: TextKind,
}

impl Text {
    /// Borrows a String, or the result of `to_str`.
    ///
    /// UTF-8 and US-ASCII are borrowed as they are, and checked by [`TextView::checked`] without the lock.
    /// Binary Strings must be ASCII. Other encodings are transcoded.
    pub(crate) fn borrow(ruby: &Ruby, value: Value, _: OnStack) -> Result<Self, Error> {
        let (share, kind) = shared_text(ruby, value)?;
        Ok(Self { share, kind })
    }

    pub(crate) fn view(&self) -> TextView<'_> {
        TextView { bytes: view(&self.share), kind: self.kind }
    }

    /// Returns the first `length` bytes as a new String.
    pub(crate) fn beginning(&self, length: usize) -> Result<RString, Error> {
        self.share.funcall("byteslice", (0, length))
    }
}

impl Drop for Text {
    /// Keeps the share on the stack, where the garbage collector finds it, until here.
    fn drop(&mut self) {
        black_box(self.share);
    }
}

fn shared_text(ruby: &Ruby, value: Value) -> Result<(RString, TextKind), Error> {
    let (string, kind) = utf8(ruby, settled(RString::try_convert(value)?)?)?;
    Ok((share(string)?, kind))
}

/// Many texts as they were when they were borrowed.
pub(crate) struct Texts {
    shares: Obj<Shares>,
    /// Valid as long as the shares live.
    views: Vec<TextView<'static>>,
}

impl Texts {
    pub(crate) fn borrow(ruby: &Ruby, texts: RArray, _: OnStack) -> Result<Self, Error> {
        let shares = Shares::of(ruby, texts)?;
        let mut views = with_capacity(ruby, texts.len())?;
        shares.fill(ruby, texts, "text", |text| {
            let (share, kind) = shared_text(ruby, text)?;
            // SAFETY: the object that keeps the share keeps the bytes of the view, see `views`.
            views.push(TextView { bytes: unsafe { lasting(&share) }, kind });
            Ok(share)
        })?;
        Ok(Self { shares, views })
    }

    pub(crate) fn views(&self) -> &[TextView<'_>] {
        &self.views
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
    /// Valid as long as the shares live.
    views: Vec<&'static [u8]>,
}

impl AllBytes {
    pub(crate) fn borrow(ruby: &Ruby, strings: RArray, _: OnStack) -> Result<Self, Error> {
        let shares = Shares::of(ruby, strings)?;
        let mut views = with_capacity(ruby, strings.len())?;
        shares.fill(ruby, strings, "input", |string| {
            let share = share(settled(RString::try_convert(string)?)?)?;
            // SAFETY: as in `Texts::borrow`.
            views.push(unsafe { lasting(&share) });
            Ok(share)
        })?;
        Ok(Self { shares, views })
    }

    pub(crate) fn views(&self) -> &[&[u8]] {
        &self.views
    }
}

impl Drop for AllBytes {
    /// Keeps the shares reachable from the stack until here.
    fn drop(&mut self) {
        black_box(self.shares);
    }
}

/// The bytes of a frozen String.
///
/// # Safety
/// The view is used only while the String is kept alive and in place.
unsafe fn lasting(share: &RString) -> &'static [u8] {
    let bytes = view(share);
    // SAFETY: the contract of this function.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
}

fn with_capacity<T>(ruby: &Ruby, count: usize) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    let full = |_| Error::new(ruby.exception_no_mem_error(), "failed to allocate memory");
    list.try_reserve(count).map_err(full)?;
    Ok(list)
}

/// Keeps Strings alive and in place: an Array would let compaction move short ones, whose bytes are inside
/// the object.
#[derive(Default)]
struct Shares(RefCell<Vec<Opaque<RString>>>);

impl Shares {
    /// An object with capacity for a share of each of the Strings.
    fn of(ruby: &Ruby, strings: RArray) -> Result<Obj<Self>, Error> {
        Ok(ruby.obj_wrap(Self(RefCell::new(with_capacity(ruby, strings.len())?))))
    }

    /// Keeps the share that `share` makes of each of the Strings. Other threads get the lock from time to
    /// time.
    fn fill(
        &self,
        ruby: &Ruby,
        strings: RArray,
        what: &str,
        mut share: impl FnMut(Value) -> Result<RString, Error>,
    ) -> Result<(), Error> {
        let mut yielder = Yielder::new();
        let mut index = 0;
        // By index, because `to_str` and other threads may change the Array.
        while index < strings.len() {
            let string = strings.entry(index as isize)?;
            let share = share(string).map_err(|error| naming(ruby, error, index, what))?;
            self.0.borrow_mut().push(share.into());
            index += 1;
            yielder.tick(1)?;
        }
        Ok(())
    }
}

// SAFETY: the data type belongs to this type alone. No Ruby program sees such an object, so any class will
// do.
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

/// The checks that the bytes of a text have passed, or still have to pass.
#[derive(Clone, Copy)]
enum TextKind {
    Valid,
    Utf8,
    Ascii,
}

/// The bytes of a [`Text`], to be checked before use. May be used without the lock.
#[derive(Clone, Copy)]
pub(crate) struct TextView<'a> {
    bytes: &'a [u8],
    kind: TextKind,
}

impl<'a> TextView<'a> {
    pub(crate) fn len(self) -> usize {
        self.bytes.len()
    }

    /// Returns the text after a check of its bytes, unless Ruby has checked them already.
    pub(crate) fn checked(self, task: &Task<'_>) -> Result<&'a str, TextError> {
        match self.kind {
            TextKind::Valid => {}
            TextKind::Utf8 => check(self.bytes, task, |bytes| match str::from_utf8(bytes) {
                Ok(_) => Ok(()),
                Err(error) => Err((error.valid_up_to(), error.error_len().is_none())),
            })?,
            TextKind::Ascii => {
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

/// Returns the texts after a check of their bytes.
pub(crate) fn all_checked<'a>(views: &[TextView<'a>], task: &Task<'_>) -> Result<Vec<&'a str>, TextError> {
    let checked =
        views.iter().enumerate().map(|(index, view)| view.checked(task).map_err(|error| error.of(index)));
    checked.collect()
}

/// Checks that `bytes` are UTF-8; the error has the first byte that is not.
pub(crate) fn check_utf8(bytes: &[u8], task: &Task<'_>) -> Result<(), TextError> {
    check(bytes, task, |bytes| match str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err((error.valid_up_to(), error.error_len().is_none())),
    })
}

/// Calls `valid` on one piece of `bytes` after the other. Its error is the offset of the first invalid
/// character, and whether that may be a character that the end of the piece cuts in two.
fn check(
    bytes: &[u8],
    task: &Task<'_>,
    valid: impl Fn(&[u8]) -> Result<(), (usize, bool)>,
) -> Result<(), TextError> {
    let mut start = 0;
    while start < bytes.len() {
        task.check()?;
        let end = bytes.len().min(start + CHECK_EVERY);
        start = match valid(&bytes[start..end]) {
            Ok(()) => end,
            Err((length, true)) if end < bytes.len() && length > 0 => start + length,
            Err((length, _)) => return Err(TextError::at(bytes, start + length)),
        };
    }
    Ok(())
}

/// The reason why a text could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextError {
    /// An invalid byte.
    Invalid {
        /// The index of the text, if there are many.
        index: Option<usize>,
        /// The offset of the byte.
        offset: usize,
        byte: u8,
    },
    Stopped,
}

impl TextError {
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

impl From<Stopped> for TextError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl IntoException for TextError {
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
    // SAFETY: `string` is a String. The exception for exhausted memory is caught here.
    let share = protect(|| unsafe { rb_sys::rb_str_new_frozen(string.as_raw()) })?;
    // SAFETY: Ruby just made this value, and it is a String.
    RString::try_convert(unsafe { Value::from_raw(share) })
}

/// Returns the String itself, or a copy if its bytes may change in place.
fn settled(string: RString) -> Result<RString, Error> {
    if !in_place::may_change(string.as_raw()) {
        return Ok(string);
    }
    // SAFETY: `string` is a String. The exception for exhausted memory is caught here.
    let copy = protect(|| unsafe { in_place::copy(string.as_raw()) })?;
    // SAFETY: Ruby just made this value, and it is a String.
    RString::try_convert(unsafe { Value::from_raw(copy) })
}

/// Returns the bytes of a frozen String, which the caller keeps alive and in place for as long as it uses the
/// view.
fn view(share: &RString) -> &[u8] {
    // SAFETY: a frozen String does not change.
    unsafe { share.as_slice() }
}

/// Returns the String in UTF-8, and the check that its bytes need.
fn utf8(ruby: &Ruby, string: RString) -> Result<(RString, TextKind), Error> {
    let encoding = string.enc_get();
    let known = matches!(string.enc_coderange(), Coderange::SevenBit | Coderange::Valid);
    if encoding == ruby.utf8_encindex() {
        Ok((string, if known { TextKind::Valid } else { TextKind::Utf8 }))
    } else if encoding == ruby.usascii_encindex() {
        Ok((string, if known { TextKind::Valid } else { TextKind::Ascii }))
    } else if string.enc_coderange_scan() == Coderange::SevenBit {
        Ok((string, TextKind::Valid))
    } else {
        Ok((transcoded(ruby, string)?, TextKind::Utf8))
    }
}

fn transcoded(ruby: &Ruby, string: RString) -> Result<RString, Error> {
    let text = string.conv_enc(ruby.utf8_encoding())?;
    if text.enc_get() == ruby.utf8_encindex() { Ok(text) } else { Err(refusal(ruby, string)) }
}

/// Makes the error that names the rejected encoding and the first bytes that cannot be transcoded.
fn refusal(ruby: &Ruby, string: RString) -> Error {
    let name = RbEncoding::from(string.enc_get()).name().to_owned();
    let message = match first_bad_bytes(ruby, string, &name) {
        Ok((offset, bytes)) => format!("expected utf-8, got {name} with {bytes} at byte {offset}"),
        Err(_) => format!("expected utf-8, got {name}"),
    };
    Error::new(ruby.exception_encoding_error(), message)
}

/// Returns the offset of the first bytes that cannot be transcoded, and these bytes.
fn first_bad_bytes(ruby: &Ruby, string: RString, encoding: &str) -> Result<(usize, String), Error> {
    if string.enc_get() == ruby.ascii8bit_encindex() {
        let bytes = borrowed!(Bytes, string);
        let offset = bytes.view().iter().position(|byte| !byte.is_ascii()).unwrap_or_default();
        return Ok((offset, hex(&bytes.view()[offset..=offset])));
    }
    let class: Value = ruby.class_object().funcall("const_get", ("Encoding::Converter",))?;
    let converter: Value = class.funcall("new", (encoding, "UTF-8"))?;
    let rest: RString = string.funcall("dup", ())?;
    converter.funcall::<_, _, Value>("primitive_convert", (rest, ruby.str_new("")))?;
    let (_, _, _, bad, unread): (Value, Value, Value, RString, RString) =
        converter.funcall("primitive_errinfo", ())?;
    let bytes = borrowed!(Bytes, bad);
    Ok((string.len() - rest.len() - unread.len() - bad.len(), hex(bytes.view())))
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("0x{byte:02X}")).collect();
    bytes.join(" ")
}

/// Adds to the error which of many texts it is about.
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
