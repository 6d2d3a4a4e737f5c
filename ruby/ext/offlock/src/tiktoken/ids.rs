//! Tokens in Ruby: an Array of Integers, or packed in a binary String of native 32-bit numbers.

use magnus::value::ReprValue;
use magnus::{Error, ExceptionClass, Fixnum, RArray, Ruby, TryConvert, Value};
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::tokens::TokenId;

use crate::borrow::numbers;
use crate::build;
use crate::region::Yielder;

/// An Array of Integers, or a packed String. Counts the work.
pub(crate) fn build(
    ruby: &Ruby,
    ids: &[TokenId],
    packed: bool,
    yielder: &mut Yielder,
) -> Result<Value, Error> {
    if packed {
        Ok(pack(ruby, ids)?.as_value())
    } else {
        Ok(build::integers(ruby, ids.iter().map(|&id| id as usize), yielder)?.as_value())
    }
}

fn pack(ruby: &Ruby, ids: &[TokenId]) -> Result<magnus::RString, Error> {
    // SAFETY: the memory of the numbers is initialized, and any byte is a valid `u8`.
    let bytes = unsafe { std::slice::from_raw_parts(ids.as_ptr().cast::<u8>(), size_of_val(ids)) };
    build::binary_in_pieces(ruby, bytes)
}

/// Checks that a String is packed tokens.
pub(crate) fn check_packed(ruby: &Ruby, bytes: &[u8]) -> Result<(), Error> {
    if bytes.len().is_multiple_of(size_of::<TokenId>()) {
        return Ok(());
    }
    let message = format!("packed tokens take 4 bytes each, got {} bytes", bytes.len());
    Err(Error::new(ruby.exception_arg_error(), message))
}

/// The tokens in the bytes of a packed String.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<TokenId>, OutOfMemory> {
    memory::collected(bytes.as_chunks().0.iter().map(|&id| Ok(TokenId::from_ne_bytes(id))))
}

/// The tokens in an Array of Integers.
pub(crate) fn collect(ruby: &Ruby, tokens: RArray) -> Result<Vec<TokenId>, Error> {
    let plain = |value| Fixnum::from_value(value)?.to_u32().ok();
    numbers(tokens, plain, |odd, index| {
        TokenId::try_convert(odd).map_err(|error| naming(ruby, &error, odd, index))
    })
}

/// The error that names the value that is not a token, and its index.
fn naming(ruby: &Ruby, error: &Error, value: Value, index: usize) -> Error {
    let range = ruby.exception_range_error();
    let class: ExceptionClass = if error.is_kind_of(range) { range } else { ruby.exception_type_error() };
    Error::new(class, format!("not a token: {} (at index {index})", value.inspect()))
}
