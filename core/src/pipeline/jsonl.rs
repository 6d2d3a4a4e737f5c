//! The text and the name of a document in a line of JSON.

use std::borrow::Cow;

use super::error::ErrorKind;
use crate::jsonl::{self, Found, MAX_KEYS, Paths, Text};

/// Where a record has its text, and its name if that is wanted.
pub(super) struct Fields(Paths);

impl Fields {
    pub(super) fn new(text: &[String], name: Option<&[String]>) -> Result<Self, ErrorKind> {
        let paths: Vec<_> = [text].into_iter().chain(name).collect();
        let message = || format!("a field is named by 1 to {MAX_KEYS} keys");
        Paths::new(&paths).map(Self).ok_or_else(|| ErrorKind::Invalid { message: message() })
    }

    /// The text of the record in `line`, and its name, if that is wanted and there.
    pub(super) fn of<'a>(&self, line: &'a str) -> Result<(Cow<'a, str>, Option<String>), ErrorKind> {
        let mut found = [Found::Missing; 2];
        jsonl::find(line, &self.0, &mut found[..self.0.count()])
            .map_err(|error| malformed(jsonl::syntax(&error)))?;
        let text = match found[0] {
            Found::Value(value) => text(value)?,
            Found::Missing | Found::NoObject(_) => return Err(ErrorKind::MissingField),
        };
        let name = match found[1] {
            Found::Value(value) => Some(name(value)?),
            Found::Missing | Found::NoObject(_) => None,
        };
        Ok((text, name))
    }
}

fn text(value: &str) -> Result<Cow<'_, str>, ErrorKind> {
    match jsonl::text(value).map_err(malformed)? {
        Text::String(text) => Ok(text),
        Text::Number(_) => Err(ErrorKind::NotText { found: "a number" }),
        Text::Other(found) => Err(ErrorKind::NotText { found }),
    }
}

/// A string or a number as text.
fn name(value: &str) -> Result<String, ErrorKind> {
    match jsonl::text(value).map_err(malformed)? {
        Text::String(text) => Ok(text.into_owned()),
        Text::Number(digits) => Ok(digits.to_owned()),
        Text::Other(found) => {
            let message = format!("the document's id: {}", ErrorKind::NotText { found });
            Err(ErrorKind::Malformed { message })
        }
    }
}

fn malformed(error: jsonl::Error) -> ErrorKind {
    match error.kind {
        jsonl::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
        kind => ErrorKind::Malformed {
            message: format!("JSON: {kind}, at byte {} of the record", error.column + 1),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|&key| key.to_owned()).collect()
    }

    fn text(line: &str, keys: &[&str]) -> Result<String, ErrorKind> {
        Fields::new(&path(keys), None).unwrap().of(line).map(|(text, _)| text.into_owned())
    }

    fn name(line: &str) -> Result<Option<String>, ErrorKind> {
        Fields::new(&path(&["text"]), Some(&path(&["id"]))).unwrap().of(line).map(|(_, name)| name)
    }

    #[test]
    fn the_field_is_found_wherever_it_stands_and_however_it_is_written() {
        assert_eq!(text(r#"{"text": "plain"}"#, &["text"]).unwrap(), "plain");
        assert_eq!(
            text(r#" {"x":[{"text":1}],"te\u0078t":"a\n\ud83d\ude00"} "#, &["text"]).unwrap(),
            "a\n😀"
        );
        assert_eq!(text(r#"{"a":{"b":"deep"},"b":"flat"}"#, &["a", "b"]).unwrap(), "deep");
    }

    #[test]
    fn names_may_be_numbers() {
        assert_eq!(name(r#"{"text":"", "id": 12345678901234567}"#), Ok(Some("12345678901234567".into())));
        assert_eq!(name(r#"{"id": "x", "text":""}"#), Ok(Some("x".into())));
        assert_eq!(name(r#"{"text":"", "id": null}"#), Ok(None));
        let error = name(r#"{"text":"", "id": []}"#).unwrap_err();
        assert_eq!(error.to_string(), "the document's id: the field is not a string but an array");
    }

    #[test]
    fn what_is_not_a_string_is_named() {
        for (value, found) in [
            ("1", "a number"),
            ("-1.5", "a number"),
            ("true", "a boolean"),
            ("[]", "an array"),
            ("{}", "an object"),
        ] {
            let line = format!(r#"{{"text":{value}}}"#);
            assert_eq!(text(&line, &["text"]), Err(ErrorKind::NotText { found }), "{value}");
        }
        for line in ["{}", r#"{"text":null}"#, "[1,2]", "7", r#""text""#] {
            assert_eq!(text(line, &["text"]), Err(ErrorKind::MissingField), "{line}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused_with_the_place() {
        for line in ["", "{", r#"{"text":"t""#, r#"{"n":01,"text":"t"}"#, r#"{"text":"\ud800"}"#] {
            assert!(matches!(text(line, &["text"]), Err(ErrorKind::Malformed { .. })), "{line}");
        }
        let error = text(r#"{"text":"t"} x"#, &["text"]).unwrap_err();
        assert_eq!(error.to_string(), "JSON: trailing characters, at byte 14 of the record");
        assert!(Fields::new(&vec!["a".to_owned(); MAX_KEYS + 1], None).is_err());
    }
}
