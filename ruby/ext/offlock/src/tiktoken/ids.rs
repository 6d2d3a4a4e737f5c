//! Tokens as Ruby sees them: an Array of Integers, or packed in a binary String of native 32-bit numbers.

use magnus::rb_sys::{FromRawValue, protect};
use magnus::value::ReprValue;
use magnus::{Error, ExceptionClass, Fixnum, RArray, RString, Ruby, TryConvert, Value};
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::tokens::TokenId;

use crate::borrow::Bytes;
use crate::memory::no_memory;

/// How many Integers are made before they go to the Array.
const BURST: usize = 128;

/// How many tokens go to an Array until other threads may have the lock and interrupts are handled.
const TURN: usize = BURST * 1024;

/// An Array of Integers, or a packed String.
pub(super) fn build(ids: &[TokenId], packed: bool) -> Result<Value, Error> {
    if packed { pack(ids) } else { Ok(list(ids)?.as_value()) }
}

/// An Array of Integers.
pub(super) fn list(ids: &[TokenId]) -> Result<RArray, Error> {
    let array = protect(|| {
        // SAFETY: the lock is held, and what is raised is caught above. The Array is on the stack while it is filled;
        // Integers of this size are no objects, so the burst needs no protection from the garbage collector.
        unsafe {
            let array = rb_sys::rb_ary_new_capa(ids.len() as _);
            for turn in ids.chunks(TURN) {
                turn.chunks(BURST).for_each(|ids| append(array, ids));
                if turn.len() == TURN {
                    rb_sys::rb_thread_schedule();
                }
            }
            array
        }
    })?;
    // SAFETY: Ruby just made this value, and it is an Array.
    RArray::try_convert(unsafe { Value::from_raw(array) })
}

/// Appends at most `BURST` Integers.
///
/// # Safety
///
/// `array` is an Array, the lock is held, and the caller catches what Ruby raises.
unsafe fn append(array: rb_sys::VALUE, ids: &[TokenId]) {
    let mut integers = [0; BURST];
    for (integer, &id) in integers.iter_mut().zip(ids) {
        *integer = rb_sys::VALUE::from(id) << 1 | rb_sys::FIXNUM_FLAG as rb_sys::VALUE;
    }
    // SAFETY: as promised by the caller; `integers` has at least as many elements as `ids`.
    unsafe { rb_sys::rb_ary_cat(array, integers.as_ptr(), ids.len() as _) };
}

fn pack(ids: &[TokenId]) -> Result<Value, Error> {
    // SAFETY: the lock is held, what is raised is caught, and Ruby copies the bytes.
    let packed = protect(|| unsafe { rb_sys::rb_str_new(ids.as_ptr().cast(), size_of_val(ids) as _) })?;
    // SAFETY: Ruby just made this value.
    Ok(unsafe { Value::from_raw(packed) })
}

/// The tokens in an Array of Integers or a packed String.
pub(super) fn read(ruby: &Ruby, tokens: Value) -> Result<Vec<TokenId>, Error> {
    match RString::from_value(tokens) {
        Some(packed) => unpack(ruby, packed),
        None => collect(ruby, RArray::try_convert(tokens)?),
    }
}

fn unpack(ruby: &Ruby, packed: RString) -> Result<Vec<TokenId>, Error> {
    let bytes = Bytes::borrow(packed)?;
    let (ids, rest) = bytes.view().as_chunks::<{ size_of::<TokenId>() }>();
    if !rest.is_empty() {
        let message = format!("packed tokens take 4 bytes each, got {} bytes", bytes.view().len());
        return Err(Error::new(ruby.exception_arg_error(), message));
    }
    let ids = ids.iter().map(|&id| Ok(TokenId::from_ne_bytes(id)));
    memory::collected(ids).map_err(|OutOfMemory| no_memory(ruby))
}

fn collect(ruby: &Ruby, array: RArray) -> Result<Vec<TokenId>, Error> {
    let out_of_memory = |OutOfMemory| no_memory(ruby);
    let mut ids = memory::with_room(array.len()).map_err(out_of_memory)?;
    loop {
        // SAFETY: nothing is called while the view is used that could change the Array.
        let rest = unsafe { array.as_slice() }.get(ids.len()..).unwrap_or_default();
        memory::reserve(&mut ids, rest.len()).map_err(out_of_memory)?;
        ids.extend(rest.iter().map_while(|&value| plain(value)));
        let index = ids.len();
        if index >= array.len() {
            return Ok(ids);
        }
        let odd = array.entry::<Value>(index as isize)?;
        ids.push(TokenId::try_convert(odd).map_err(|error| naming(ruby, &error, odd, index))?);
    }
}

fn plain(value: Value) -> Option<TokenId> {
    Fixnum::from_value(value)?.to_u32().ok()
}

/// The error that says which value at which place is no token.
fn naming(ruby: &Ruby, error: &Error, value: Value, index: usize) -> Error {
    let range = ruby.exception_range_error();
    let class: ExceptionClass = if error.is_kind_of(range) { range } else { ruby.exception_type_error() };
    Error::new(class, format!("not a token: {} (at index {index})", value.inspect()))
}
