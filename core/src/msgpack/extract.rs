//! Extracts one field of every record of a message without building the records.
//!
//! One pass over the message: at each map, keys are compared with the wanted one, and all other values are
//! skipped.
//!
//! ```
//! use offlock_core::msgpack::{extract, write};
//! use offlock_core::{Field, Task};
//!
//! let mut message = Vec::new();
//! write::array_header(&mut message, 2);
//! for name in ["a", "b"] {
//!     write::map_header(&mut message, 1);
//!     write::str(&mut message, b"name");
//!     write::str(&mut message, name.as_bytes());
//! }
//! let (names, end) = extract::fields(&message, &[b"name"], &Task::new())?;
//! assert_eq!(end, message.len());
//! assert!(matches!(names[1], Some(Field::Str(name)) if name.of(&message) == b"b"));
//! # Ok::<_, offlock_core::msgpack::Error>(())
//! ```

use super::error::{Error, ErrorKind};
use super::reader::{Reader, Token};
use super::scan::skip;
use crate::field::Field;
use crate::task::Stretches;
use crate::text::Span;
use crate::{Task, memory};

/// The number of bytes between two checks of the task, if the records are short.
const STRETCH: usize = 64 << 10;

/// The fields under `path` in every record of a message, which must be an array of maps. `path` is one key,
/// or the keys of nested maps.
///
/// The item is `None` if the record has no such field or nil there. Of equal keys in one map the last one
/// counts. Strings are positions in the message. Also returns the offset of the message's end.
///
/// # Errors
///
/// [`ErrorKind::Unexpected`] if the message is not an array of maps or the field is not a string, a number or a
/// boolean, `Truncated`, `Reserved`, `OutOfMemory` and `Stopped`.
pub fn fields(bytes: &[u8], path: &[&[u8]], task: &Task<'_>) -> Result<(Vec<Option<Field>>, usize), Error> {
    let mut reader = Reader::at(bytes, 0);
    let records = match reader.token()? {
        Token::Array(records) => records as usize,
        other => return Err(unexpected("an array of records", &other, 0)),
    };
    if records > reader.left() {
        return Err(Error::new(ErrorKind::Truncated, 0));
    }
    let mut column = memory::with_capacity(records)?;
    let mut stretches = Stretches::new(task, STRETCH);
    for _ in 0..records {
        column.push(under(&mut reader, path, task)?);
        stretches.check(reader.pos())?;
    }
    Ok((column, reader.pos()))
}

/// The field under `path` in the one record that begins at `start`, and the offset of the record's end.
///
/// # Errors
///
/// As [`fields`]; the offsets are those in `bytes`.
pub fn of_record(
    bytes: &[u8],
    start: usize,
    path: &[&[u8]],
    task: &Task<'_>,
) -> Result<(Option<Field>, usize), Error> {
    let mut reader = Reader::at(bytes, start);
    let found = under(&mut reader, path, task)?;
    Ok((found, reader.pos()))
}

/// Reads one value and finds the field under `path` in it.
fn under(reader: &mut Reader<'_>, path: &[&[u8]], task: &Task<'_>) -> Result<Option<Field>, Error> {
    let start = reader.pos();
    let token = reader.token()?;
    let Some((key, deeper)) = path.split_first() else {
        if token == Token::Nil {
            return Ok(None);
        }
        let field = field(&token, reader.pos());
        return field.map(Some).ok_or_else(|| unexpected(Field::KINDS, &token, start));
    };
    let entries = match token {
        Token::Map(entries) => entries,
        Token::Nil => return Ok(None),
        other => return Err(unexpected("a map", &other, start)),
    };
    let mut found = None;
    for _ in 0..entries {
        if is_key(reader, key, task)? {
            found = under(reader, deeper, task)?;
        } else {
            skip(reader, task)?;
        }
    }
    Ok(found)
}

/// The token that ends at `end` as a field.
#[inline(always)]
fn field(token: &Token<'_>, end: usize) -> Option<Field> {
    Some(match *token {
        Token::Str(text) => Field::Str(Span { start: end - text.len(), end }),
        Token::UInt(value) => Field::UInt(value),
        Token::Int(value) => Field::Int(value),
        Token::F32(value) => Field::Float(value.into()),
        Token::F64(value) => Field::Float(value),
        Token::Bool(value) => Field::Bool(value),
        _ => return None,
    })
}

/// Reads a map's key; returns whether it is the string `key`.
#[inline(always)]
fn is_key(reader: &mut Reader<'_>, key: &[u8], task: &Task<'_>) -> Result<bool, Error> {
    let before = reader.clone();
    match reader.token()? {
        Token::Str(text) => Ok(text == key),
        Token::Array(_) | Token::Map(_) => {
            *reader = before;
            skip(reader, task)?;
            Ok(false)
        }
        _ => Ok(false),
    }
}

fn unexpected(wanted: &'static str, found: &Token<'_>, offset: usize) -> Error {
    Error::new(ErrorKind::Unexpected { wanted, found: found.family() }, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings<'a>(bytes: &'a [u8], path: &[&str]) -> Result<Vec<Option<&'a str>>, Error> {
        let path: Vec<&[u8]> = path.iter().map(|key| key.as_bytes()).collect();
        let (column, end) = fields(bytes, &path, &Task::new())?;
        assert_eq!(end, bytes.len());
        let string = |field| match field {
            Field::Str(span) => std::str::from_utf8(span.of(bytes)).unwrap(),
            other => panic!("{other:?}"),
        };
        Ok(column.into_iter().map(|field| field.map(string)).collect())
    }

    #[test]
    fn finds_a_field_wherever_it_stands() {
        let records = b"\x95\x82\xa1x\x01\xa1t\xa3one\x82\xa1t\xa3two\xa1x\x93\x01\x80\xa1t\x81\xa1x\xc0\x81\xa1t\xc0\xc0";
        assert_eq!(strings(records, &["t"]).unwrap(), [Some("one"), Some("two"), None, None, None]);
    }

    #[test]
    fn a_path_reaches_into_maps() {
        let records = b"\x92\x81\xa1a\x81\xa1b\xa1z\x81\xa1b\xa1q";
        assert_eq!(strings(records, &["a", "b"]).unwrap(), [Some("z"), None]);
    }

    #[test]
    fn the_last_of_equal_keys_counts_and_keys_of_any_kind_are_passed() {
        let records = b"\x91\x84\xa1t\xa1a\x92\x01\x02\xa1t\xa1t\xa1b\x81\x01\xa1t\x05";
        assert_eq!(strings(records, &["t"]).unwrap(), [Some("b")]);
    }

    #[test]
    fn fields_are_strings_numbers_and_booleans() {
        let records =
            b"\x97\x81\xa1t\x05\x81\xa1t\xff\x81\xa1t\xca\x3f\x80\0\0\x81\xa1t\xc3\x81\xa1t\xa1z\x80\xc0";
        let (found, end) = fields(records, &[b"t"], &Task::new()).unwrap();
        let text = Field::Str(Span { start: records.len() - 3, end: records.len() - 2 });
        let wanted = [Field::UInt(5), Field::Int(-1), Field::Float(1.0), Field::Bool(true), text];
        assert_eq!(found[..5], wanted.map(Some));
        assert_eq!((&found[5..], end), (&[None, None][..], records.len()));
        let error = fields(b"\x91\x81\xa1t\x90", &[b"t"], &Task::new()).unwrap_err();
        assert_eq!(error.to_string(), "expected a string, a number or a boolean at offset 4, found array");
    }

    #[test]
    fn one_record_after_another() {
        let records = b"\x81\xa1t\xa3one\x81\xa1x\xa1t\x81\xa1t\x05";
        let (found, end) = of_record(records, 0, &[b"t"], &Task::new()).unwrap();
        assert_eq!((found, end), (Some(Field::Str(Span { start: 4, end: 7 })), 7));
        assert_eq!(of_record(records, end, &[b"t"], &Task::new()).unwrap(), (None, 12));
        assert_eq!(of_record(records, 12, &[b"t"], &Task::new()).unwrap(), (Some(Field::UInt(5)), 16));
    }

    #[test]
    fn what_is_no_field_is_named() {
        let error = strings(b"\x91\x81\xa1t\x90", &["t"]).unwrap_err();
        assert_eq!(error.to_string(), "expected a string, a number or a boolean at offset 4, found array");
        let error = strings(b"\x91\xa1t", &["t"]).unwrap_err();
        assert_eq!(error.to_string(), "expected a map at offset 1, found str");
        let error = strings(b"\x80", &["t"]).unwrap_err();
        assert_eq!(error.to_string(), "expected an array of records at offset 0, found map");
    }

    #[test]
    fn every_cut_is_truncated() {
        let records = b"\x92\x82\xa1x\x01\xa1t\xa3one\x82\xa1t\xa3two\xa1x\x93\x01\x80\xa1t";
        for end in 0..records.len() {
            assert_eq!(strings(&records[..end], &["t"]).unwrap_err().kind, ErrorKind::Truncated, "{end}");
        }
    }
}
