//! One field of a line of JSON.
//!
//! The line is parsed once, and nothing but the field is kept of it. Of equal keys the last one counts, as in the
//! `json` modules of Python and Ruby. Numbers that are not wanted are not converted, so they may have any size.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use serde_json::Value;

use super::error::ErrorKind;

const NUMBER: &str = "a number";

/// The string under `path` in the object that `line` holds.
pub(super) fn field<'a>(line: &'a str, path: &[String]) -> Result<Cow<'a, str>, ErrorKind> {
    let mut parser = serde_json::Deserializer::from_str(line);
    let found = Under(path).deserialize(&mut parser).and_then(|found| parser.end().map(|()| found));
    match found.map_err(malformed)? {
        Found::Text(text) => Ok(text),
        Found::Missing => Err(ErrorKind::MissingField),
        Found::Other(found) => Err(ErrorKind::NotText { found }),
    }
}

/// The string or number under `path`, as text.
pub(super) fn name(line: &str, path: &[String]) -> Result<String, ErrorKind> {
    match field(line, path) {
        Err(ErrorKind::NotText { found: NUMBER }) => {
            let value: Value = serde_json::from_str(line).map_err(malformed)?;
            let found = path.iter().try_fold(&value, |value, key| value.get(key));
            found.map(Value::to_string).ok_or(ErrorKind::MissingField)
        }
        found => found.map(Cow::into_owned),
    }
}

/// The parser counts lines, of which there is one.
fn malformed(error: serde_json::Error) -> ErrorKind {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    ErrorKind::Malformed { message: format!("JSON: {message}, at byte {} of the record", error.column()) }
}

/// What is at the end of a path.
enum Found<'a> {
    Text(Cow<'a, str>),
    Missing,
    Other(&'static str),
}

/// Finds the value under a path, which is empty if it is this value.
#[derive(Clone, Copy)]
struct Under<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Under<'_> {
    type Value = Found<'de>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Found<'de>, D::Error> {
        value.deserialize_any(self)
    }
}

impl Under<'_> {
    /// A value that is not an object.
    fn scalar<'de>(self, name: &'static str) -> Found<'de> {
        if self.0.is_empty() { Found::Other(name) } else { Found::Missing }
    }
}

impl<'de> Visitor<'de> for Under<'_> {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Found<'de>, E> {
        Ok(if self.0.is_empty() { Found::Text(text.into()) } else { Found::Missing })
    }

    fn visit_str<E>(self, text: &str) -> Result<Found<'de>, E> {
        Ok(if self.0.is_empty() { Found::Text(text.to_owned().into()) } else { Found::Missing })
    }

    fn visit_unit<E>(self) -> Result<Found<'de>, E> {
        Ok(Found::Missing)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found<'de>, E> {
        Ok(self.scalar("a boolean"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found<'de>, E> {
        Ok(self.scalar(NUMBER))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found<'de>, E> {
        Ok(self.scalar(NUMBER))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found<'de>, E> {
        Ok(self.scalar(NUMBER))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Found<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.scalar("an array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Found<'de>, A::Error> {
        let Some((key, deeper)) = self.0.split_first() else {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Found::Other("an object"));
        };
        let mut found = Found::Missing;
        while let Some(is_wanted) = entries.next_key_seed(Is(key))? {
            if is_wanted {
                found = entries.next_value_seed(Under(deeper))?;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key is the wanted one.
struct Is<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<bool, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str, path: &[&str]) -> Result<String, ErrorKind> {
        let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
        field(line, &path).map(Cow::into_owned)
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
        let path = ["id".to_owned()];
        assert_eq!(name(r#"{"id": 12345678901234567}"#, &path).unwrap(), "12345678901234567");
        assert_eq!(name(r#"{"id": "x"}"#, &path).unwrap(), "x");
        assert_eq!(name(r#"{"id": null}"#, &path), Err(ErrorKind::MissingField));
        assert_eq!(name(r#"{"id": []}"#, &path), Err(ErrorKind::NotText { found: "an array" }));
    }

    #[test]
    fn of_equal_keys_the_last_one_counts() {
        assert_eq!(text(r#"{"text":"one","text":"two"}"#, &["text"]).unwrap(), "two");
        assert_eq!(text(r#"{"text":"one","text":null}"#, &["text"]), Err(ErrorKind::MissingField));
    }

    #[test]
    fn numbers_that_are_not_wanted_may_have_any_size() {
        let line = r#"{"n":123456789012345678901234567890,"m":1e400,"text":"t"}"#;
        assert_eq!(text(line, &["text"]).unwrap(), "t");
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
        for line in [
            "",
            "{",
            r#"{"text":"t""#,
            r#"{"text":"t"}x"#,
            r#"{"n":01,"text":"t"}"#,
            r#"{"n":NaN}"#,
            r#"{"text":"\ud800"}"#,
        ] {
            assert!(matches!(text(line, &["text"]), Err(ErrorKind::Malformed { .. })), "{line}");
        }
        let error = text(r#"{"text":"t"} x"#, &["text"]).unwrap_err();
        assert_eq!(error.to_string(), "JSON: trailing characters, at byte 14 of the record");
    }
}
