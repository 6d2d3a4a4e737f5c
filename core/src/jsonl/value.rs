//! Converts values that a parser has accepted already.

use std::borrow::Cow;

use super::error::{Error, ErrorKind};
use crate::field::Field;
use crate::memory;
use crate::text::Span;

pub(super) const STRING: &str = "a string";
pub(super) const NUMBER: &str = "a number";
pub(super) const BOOLEAN: &str = "a boolean";
pub(super) const ARRAY: &str = "an array";
pub(super) const OBJECT: &str = "an object";
pub(super) const NULL: &str = "null";

/// What kind of value JSON is.
pub(crate) fn kind(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'"') => STRING,
        Some(b't' | b'f') => BOOLEAN,
        Some(b'[') => ARRAY,
        Some(b'{') => OBJECT,
        Some(b'n') => NULL,
        _ => NUMBER,
    }
}

/// A scalar value, which is not null; the bytes of a string are appended to `strings`.
pub(super) fn field(value: &str, strings: &mut Vec<u8>) -> Result<Field, Error> {
    match kind(value) {
        STRING => {
            let start = strings.len();
            append_string(inside(value), strings)?;
            Ok(Field::Str(Span { start, end: strings.len() }))
        }
        BOOLEAN => Ok(Field::Bool(value == "true")),
        NUMBER => number(value).ok_or(ErrorKind::IntegerTooLarge.nowhere()),
        found => Err(ErrorKind::Unexpected { wanted: Field::KINDS, found }.nowhere()),
    }
}

/// The number that JSON denotes. `None` if it is an integer of more than 64 bits.
fn number(value: &str) -> Option<Field> {
    if value.contains(['.', 'e', 'E']) {
        // Too large a number is infinite, as in the `json` modules of Python and Ruby.
        return value.parse().ok().map(Field::Float);
    }
    if value.starts_with('-') {
        value.parse().ok().map(Field::Int)
    } else {
        value.parse().ok().map(Field::UInt)
    }
}

/// What is between the quotes of a string.
fn inside(string: &str) -> &str {
    &string[1..string.len() - 1]
}

/// A value as text.
pub(crate) enum Text<'a> {
    /// The content of a string.
    String(Cow<'a, str>),
    /// The digits of a number.
    Number(&'a str),
    /// Another kind of value.
    Other(&'static str),
}

/// The text of a value.
pub(crate) fn text(value: &str) -> Result<Text<'_>, Error> {
    match kind(value) {
        STRING if !value.contains('\\') => Ok(Text::String(inside(value).into())),
        STRING => {
            let mut text = Vec::new();
            append_string(inside(value), &mut text)?;
            let text = String::from_utf8(text).map_err(|_| ErrorKind::NotUtf8.nowhere())?;
            Ok(Text::String(text.into()))
        }
        NUMBER => Ok(Text::Number(value)),
        other => Ok(Text::Other(other)),
    }
}

/// Appends what a string means: its text with escapes undone.
fn append_string(string: &str, to: &mut Vec<u8>) -> Result<(), Error> {
    // No escape is shorter than what it means.
    memory::reserve(to, string.len())?;
    let mut rest = string.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        to.extend_from_slice(&rest[..at]);
        let (character, length) = escape(&rest[at + 1..]).ok_or(ErrorKind::LoneSurrogate.nowhere())?;
        to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[at + 1 + length..];
    }
    to.extend_from_slice(rest);
    Ok(())
}

/// The character that an escape denotes, and its length without the backslash. `None` for half a pair.
fn escape(rest: &[u8]) -> Option<(char, usize)> {
    let single = match rest.first()? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return code_point(&rest[1..]).map(|(character, length)| (character, length + 1)),
        // A quotation mark, a slash or a backslash: others do not pass the parser.
        &other => other.into(),
    };
    Some((single, 1))
}

/// The character of `XXXX` or of `XXXX\uXXXX`, and the length of these.
fn code_point(rest: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u16> {
        let digits = std::str::from_utf8(rest.get(at..at + 4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(0)?;
    let is_pair = (0xd800..0xdc00).contains(&first) && rest.get(4..6) == Some(br"\u");
    let second = if is_pair { unit(6) } else { None };
    let character = char::decode_utf16([first].into_iter().chain(second)).next()?.ok()?;
    Some((character, if character.len_utf16() == 2 { 10 } else { 4 }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn meant(json: &str) -> Result<String, ErrorKind> {
        match text(json).map_err(|error| error.kind)? {
            Text::String(text) => Ok(text.into_owned()),
            _ => panic!("{json} is not a string"),
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(meant(r#""\"\\\/\b\f\n\r\t\u00e9\u20AC""#).unwrap(), "\"\\/\u{8}\u{c}\n\r\té€");
        assert_eq!(meant(r#""a\ud83d\ude00b""#).unwrap(), "a😀b");
        assert_eq!(meant(r#""\u0000""#).unwrap(), "\0");
        for half in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\n""#, r#""\ud800\ud800""#, r#""\ude00\ud83d""#]
        {
            assert_eq!(meant(half), Err(ErrorKind::LoneSurrogate), "{half}");
        }
    }

    #[test]
    fn numbers_keep_their_value() {
        let of = |value: &str| field(value, &mut Vec::new()).map_err(|error| error.kind);
        assert_eq!(of("18446744073709551615"), Ok(Field::UInt(u64::MAX)));
        assert_eq!(of("-9223372036854775808"), Ok(Field::Int(i64::MIN)));
        assert_eq!(of("18446744073709551616"), Err(ErrorKind::IntegerTooLarge));
        assert_eq!(of("-9223372036854775809"), Err(ErrorKind::IntegerTooLarge));
        assert_eq!((of("-0"), of("1e2")), (Ok(Field::Int(0)), Ok(Field::Float(100.0))));
        assert_eq!(of("0.1"), Ok(Field::Float(0.1)));
        assert_eq!(of("-1e400"), Ok(Field::Float(f64::NEG_INFINITY)));
        assert_eq!(of("true"), Ok(Field::Bool(true)));
    }

    proptest! {
        #[test]
        fn strings_mean_what_the_parser_says(
            json in r#""([a-z€😀]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-f]{2}\\u[dD][c-fC-F][0-9a-f]{2}){0,8}""#
        ) {
            prop_assert_eq!(meant(&json).ok(), serde_json::from_str::<String>(&json).ok());
        }
    }
}
