//! Fields of every record, as columns.

use super::error::{Error, ErrorKind, syntax};
use super::paths::Paths;
use super::record::{Found, find};
use super::value::{OBJECT, field};
use crate::field::Field;
use crate::task::Stretches;
use crate::{Task, memory};

/// The number of bytes between two checks of the task, if the lines are short.
const STRETCH: usize = 64 << 10;

/// What a file in UTF-8 may begin with.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The wanted fields of some records.
#[derive(Debug, Default)]
pub struct Columns {
    /// The bytes of all strings: valid UTF-8, one after the other.
    pub strings: Vec<u8>,
    /// For each path the field of each record; `None` where a record has no such field, or null.
    pub columns: Vec<Vec<Option<Field>>>,
}

/// Extracts the fields under `paths` from every line of `lines`. Blank lines are skipped.
///
/// A line that is longer than `limit` bytes is an error. One line is parsed without a check of the task.
///
/// # Errors
///
/// With the place: a line that is not a JSON object or null, a value on a path that is neither that (before the
/// path's end) nor a string, a number of at most 64 bits or a boolean (at its end), and [`ErrorKind::TooLong`].
/// Also `OutOfMemory` and `Stopped`.
pub fn extract(lines: &[u8], paths: &Paths, limit: usize, task: &Task<'_>) -> Result<Columns, Error> {
    let mut extracted = Columns::default();
    extracted.columns.resize_with(paths.count(), Vec::new);
    let mut found = vec![Found::Missing; paths.count()];
    let mut stretches = Stretches::new(task, STRETCH);
    let mut start = if lines.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut number = 1;
    while start < lines.len() {
        stretches.check(start)?;
        let end = memchr::memchr(b'\n', &lines[start..]).map_or(lines.len(), |newline| start + newline);
        let line = &lines[start..end];
        if !line.iter().all(u8::is_ascii_whitespace) {
            take(line, paths, limit, &mut found, &mut extracted).map_err(|error| Error {
                line: number,
                start,
                ..error
            })?;
        }
        start = end + 1;
        number += 1;
    }
    Ok(extracted)
}

/// Appends the fields of one record.
fn take<'a>(
    line: &'a [u8],
    paths: &Paths,
    limit: usize,
    found: &mut [Found<'a>],
    extracted: &mut Columns,
) -> Result<(), Error> {
    if line.len() > limit {
        return Err(ErrorKind::TooLong(limit).nowhere());
    }
    let line = utf8(line)?;
    found.fill(Found::Missing);
    find(line, paths, found).map_err(|error| syntax(&error))?;
    for (column, found) in extracted.columns.iter_mut().zip(found) {
        let value = match *found {
            Found::Missing => None,
            Found::Value(value) => {
                let at = |error| Error { column: value.as_ptr().addr() - line.as_ptr().addr(), ..error };
                Some(field(value, &mut extracted.strings).map_err(at)?)
            }
            Found::NoObject(found) => {
                return Err(ErrorKind::Unexpected { wanted: OBJECT, found }.nowhere());
            }
        };
        memory::push(column, value)?;
    }
    Ok(())
}

fn utf8(line: &[u8]) -> Result<&str, Error> {
    simdutf8::basic::from_utf8(line).map_err(|_| {
        let column = std::str::from_utf8(line).map_or_else(|error| error.valid_up_to(), str::len);
        Error { column, ..ErrorKind::NotUtf8.nowhere() }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn columns(lines: &[u8], paths: &[&[&str]]) -> Result<Vec<Vec<Value>>, Error> {
        let found = extract(lines, &Paths::new(paths).unwrap(), 1 << 20, &Task::new())?;
        let value = |field: &Option<Field>| match *field {
            None => Value::Null,
            Some(Field::Str(span)) => {
                std::str::from_utf8(&found.strings[span.start..span.end]).unwrap().into()
            }
            Some(Field::UInt(number)) => number.into(),
            Some(Field::Int(number)) => number.into(),
            Some(Field::Float(number)) => number.into(),
            Some(Field::Bool(truth)) => truth.into(),
        };
        Ok(found.columns.iter().map(|column| column.iter().map(value).collect()).collect())
    }

    fn json(value: &str) -> Value {
        serde_json::from_str(value).unwrap()
    }

    #[test]
    fn fields_are_found_wherever_they_stand_and_however_they_are_written() {
        let lines = "\u{feff}{\"text\":\"a\",\"id\":1}\r\n \n{\"x\":[{\"text\":1}],\"te\\u0078t\":\"b\\n\"}\nnull\n{\"id\":-1.5}";
        let found = columns(lines.as_bytes(), &[&["text"], &["id"]]).unwrap();
        assert_eq!(
            found,
            [json(r#"["a", "b\n", null, null]"#), json("[1, null, null, -1.5]")]
                .map(|list| { list.as_array().unwrap().clone() })
        );
        assert_eq!(columns(b"", &[&["text"]]).unwrap(), [[]; 1] as [[Value; 0]; 1]);
    }

    #[test]
    fn a_path_may_be_the_beginning_of_another() {
        let lines = br#"{"a":{"b":"deep"},"b":"flat"}"#;
        assert_eq!(columns(lines, &[&["a", "b"], &["b"], &["b"]]).unwrap(), [["deep"], ["flat"], ["flat"]]);
        let error = columns(lines, &[&["a"], &["a", "b"]]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a string, a number or a boolean, found an object: line 1 column 6 (byte 5)"
        );
    }

    #[test]
    fn of_equal_keys_the_last_one_counts_at_every_depth() {
        let lines = br#"{"a":{"b":1},"a":{"c":2},"t":"x","t":null}"#;
        let found = columns(lines, &[&["a", "b"], &["a", "c"], &["t"]]).unwrap();
        assert_eq!(found, [[Value::Null], [2.into()], [Value::Null]]);
    }

    #[test]
    fn what_is_not_wanted_may_be_anything() {
        let lines = br#"{"n":123456789012345678901234567890,"m":1e400,"s":"\ud800","t":true}"#;
        assert_eq!(columns(lines, &[&["t"]]).unwrap(), [[true]]);
    }

    #[test]
    fn errors_have_their_place() {
        for (line, message, column) in [
            (&b"{\"t\":\"x\"} y"[..], "trailing characters", 10),
            (b"{\"n\":01}", "invalid number", 6),
            (b"{\"n\":NaN}", "expected value", 5),
            (b"{\"t\":\"x\"", "EOF while parsing an object", 7),
            (b"{\"t\":\"\xff\"}", "the line is not valid UTF-8", 6),
            (b"{\"t\":\"\\ud800\"}", "a surrogate that is not one of a pair", 5),
            (b"{\"t\":[1]}", "expected a string, a number or a boolean, found an array", 5),
            (b"{\"t\":18446744073709551616}", "an integer of more than 64 bits", 5),
            (b"[1]", "expected an object, found an array", 0),
            (b"\"t\"", "expected an object, found a string", 0),
        ] {
            let mut lines = b"{}\n\n".to_vec();
            lines.extend_from_slice(line);
            let error = columns(&lines, &[&["t"]]).unwrap_err();
            let message = format!("{message}: line 3 column {} (byte {})", column + 1, column + 4);
            assert_eq!(error.to_string(), message, "{line:?}");
        }
        let error = extract(b"{\"t\":1}", &Paths::new(&[["t"]]).unwrap(), 6, &Task::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLong(6));
        assert!(Paths::new::<&str, [&str; 0]>(&[[]]).is_none());
    }

    #[test]
    fn a_stopped_task_ends_it() {
        let task = Task::new();
        task.stop();
        let lines = b"{\"t\":1}\n".repeat(STRETCH / 8 + 2);
        let error = extract(&lines, &Paths::new(&[["t"]]).unwrap(), 100, &task).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Stopped);
    }

    /// JSON values of a few keys, so that the wanted ones occur often, at each depth.
    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e300..1e300).prop_map(Value::from),
            "[a\"\\\\\n€😀]{0,4}".prop_map(Value::from),
        ];
        scalar.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::hash_map("[abt]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The slow way: parse everything, then look. `None` for what is an error.
    fn slow(record: &Value, path: &[&str]) -> Option<Value> {
        let mut value = record;
        for key in path {
            value = match value {
                Value::Null => &Value::Null,
                Value::Object(map) => map.get(*key).unwrap_or(&Value::Null),
                _ => return None,
            };
        }
        (!value.is_array() && !value.is_object()).then(|| value.clone())
    }

    proptest! {
        #[test]
        fn columns_are_what_a_whole_parse_finds(records in prop::collection::vec(values(), 0..6)) {
            let paths: [&[&str]; 4] = [&["t"], &["a", "b"], &["a", "t"], &["b", "a", "t"]];
            let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
            for path in paths {
                let wanted: Option<Vec<Value>> = records.iter().map(|record| slow(record, path)).collect();
                let found = columns(lines.as_bytes(), &[path]).ok().map(|mut columns| columns.remove(0));
                prop_assert_eq!(found, wanted);
            }
            let each: Option<Vec<Vec<Value>>> = paths
                .iter()
                .map(|path| records.iter().map(|record| slow(record, path)).collect())
                .collect();
            prop_assert_eq!(columns(lines.as_bytes(), &paths).ok(), each);
        }
    }
}
