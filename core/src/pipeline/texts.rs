//! What values of records are as texts and names.

use super::error::ErrorKind;
use crate::Field;
use crate::parquet::Meaning;
use crate::text::Span;

/// The name of a document in a table: a text, or a number in the order of bytes that tables have.
pub(super) fn name_of_row(meaning: Meaning, value: &[u8]) -> Result<String, ErrorKind> {
    let mut bytes = [0; 8];
    match (meaning, value.len()) {
        (Meaning::Signed | Meaning::Unsigned, length @ (4 | 8)) => bytes[..length].copy_from_slice(value),
        _ => return Ok(utf8(value)?.to_owned()),
    }
    let number = u64::from_le_bytes(bytes);
    Ok(match (meaning, value.len()) {
        (Meaning::Signed, 4) => (number as i32).to_string(),
        (Meaning::Signed, _) => number.cast_signed().to_string(),
        _ => number.to_string(),
    })
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, ErrorKind> {
    simdutf8::basic::from_utf8(bytes).map_err(|_| ErrorKind::NotUtf8)
}

/// The field as a string.
pub(super) fn text_of(field: Field) -> Result<Span, ErrorKind> {
    match field {
        Field::Str(span) => Ok(span),
        Field::Bool(_) => Err(ErrorKind::NotText { found: "a boolean" }),
        Field::UInt(_) | Field::Int(_) | Field::Float(_) => Err(ErrorKind::NotText { found: "a number" }),
    }
}

/// The field that names the document, which may be missing.
pub(super) fn about_id<T>(found: Result<T, ErrorKind>) -> Result<Option<T>, ErrorKind> {
    match found {
        Ok(id) => Ok(Some(id)),
        Err(ErrorKind::MissingField) => Ok(None),
        Err(kind @ ErrorKind::NotText { .. }) => {
            Err(ErrorKind::Malformed { message: format!("the document's id: {kind}") })
        }
        Err(kind) => Err(kind),
    }
}
