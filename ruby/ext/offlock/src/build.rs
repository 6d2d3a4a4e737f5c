//! Builds results. Large results are built in pieces, between which other threads get the lock.

use magnus::{Error, RArray, RString, Ruby, TryConvert};

use crate::cruby::{Object, catch, encodings};
use crate::region::Yielder;

/// The number of values that are appended to an Array at once.
const CHUNK: usize = 128;

/// A String with these bytes, in the encoding with this index.
fn string(ruby: &Ruby, bytes: &[u8], encoding: i32) -> Result<RString, Error> {
    let string = catch(ruby, |gvl| {
        let string = gvl.copied(&bytes);
        gvl.in_encoding(string, encoding).into()
    })?;
    RString::try_convert(string)
}

/// A String in UTF-8.
pub(crate) fn utf8(ruby: &Ruby, bytes: &[u8]) -> Result<RString, Error> {
    string(ruby, bytes, encodings::utf8())
}

/// A binary String, built in pieces. Returns the exception of an interrupt that arrives in between.
pub(crate) fn binary_in_pieces(ruby: &Ruby, bytes: &[u8]) -> Result<RString, Error> {
    string(ruby, bytes, encodings::binary())
}

/// A binary String, built at once. Returns `NoMemoryError` if memory is exhausted, so that the caller can
/// drop its values first.
pub(crate) fn binary_at_once(ruby: &Ruby, bytes: &[u8]) -> Result<RString, Error> {
    RString::try_convert(catch(ruby, |gvl| gvl.binary(bytes).into())?)
}

/// An Array of Integers that are small enough to be immediate values. Counts the work.
pub(crate) fn integers(
    ruby: &Ruby,
    numbers: impl ExactSizeIterator<Item = usize>,
    yielder: &mut Yielder,
) -> Result<RArray, Error> {
    let mut numbers = numbers;
    let array = catch(ruby, |gvl| {
        let array = gvl.array_with_capacity(numbers.len());
        while numbers.len() > 0 {
            let mut chunk = [Object::NIL; CHUNK];
            let mut count = 0;
            for (place, number) in chunk.iter_mut().zip(&mut numbers) {
                *place = Object::fixnum(number as i64);
                count += 1;
            }
            gvl.extend(array, &chunk[..count]);
            gvl.tick(yielder, CHUNK / IN_A_UNIT);
        }
        array.into()
    })?;
    RArray::try_convert(array)
}

/// An Array of Arrays of two Integers that are small enough to be immediate values. Counts the work.
pub(crate) fn pairs(ruby: &Ruby, pairs: &[(usize, usize)], yielder: &mut Yielder) -> Result<RArray, Error> {
    let array = catch(ruby, |gvl| {
        let array = gvl.array_with_capacity(pairs.len());
        for &(first, second) in pairs {
            let pair = gvl.array(&[Object::fixnum(first as i64), Object::fixnum(second as i64)]);
            gvl.extend(array, &[pair.into()]);
            gvl.tick(yielder, 1);
        }
        array.into()
    })?;
    RArray::try_convert(array)
}

/// The number of Integers that count as one unit of work.
const IN_A_UNIT: usize = 16;
