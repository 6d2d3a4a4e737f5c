//! Fields of JSON lines are those that a parse of the whole records finds.

use offlock_core::jsonl::{Paths, extract};
use offlock_core::{Field, Task};
use serde_json::Value;

const LIMIT: usize = 1 << 20;

/// Runs the target on one input.
pub fn run(bytes: &[u8]) {
    let paths: [&[&str]; 4] = [&["a"], &["b", "a"], &["b", "b", "a"], &["a", "b"]];
    for path in paths {
        let found = extract(bytes, &Paths::new(&[path]).expect("a path"), LIMIT, &Task::new());
        let Some(records) = parsed(bytes) else { continue };
        let wanted: Option<Vec<Value>> = records.iter().map(|record| slow(record, path)).collect();
        let found = found.ok().map(|found| {
            let strings = std::str::from_utf8(&found.strings).expect("UTF-8");
            found.columns[0].iter().map(|field| value(field.as_ref(), strings)).collect::<Vec<_>>()
        });
        // Only the parser of whole records makes numbers of integers with more than 64 bits.
        if found.is_some() || !has_large_integer(bytes) {
            assert_eq!(found, wanted);
        }
    }
    let all = extract(bytes, &Paths::new(&paths).expect("paths"), LIMIT, &Task::new());
    if let Ok(all) = all {
        assert!(all.columns.iter().all(|column| column.len() == all.columns[0].len()));
    }
}

/// All records. `None` if one is not JSON that the oracle reads.
fn parsed(bytes: &[u8]) -> Option<Vec<Value>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace));
    lines.map(|line| serde_json::from_slice(line).ok()).collect()
}

fn has_large_integer(bytes: &[u8]) -> bool {
    bytes.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() >= 19)
}

fn slow(record: &Value, path: &[&str]) -> Option<Value> {
    let mut value = record;
    for key in path {
        value = match value {
            Value::Null => &Value::Null,
            Value::Object(map) => map.get(*key).unwrap_or(&Value::Null),
            _ => return None,
        };
    }
    match value {
        Value::Array(_) | Value::Object(_) => None,
        // The oracle reads `-0` as a float; to `json` of Python and Ruby it is an integer.
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(0.into()),
        other => Some(other.clone()),
    }
}

fn value(field: Option<&Field>, strings: &str) -> Value {
    match field {
        None => Value::Null,
        Some(Field::Str(span)) => strings[span.start..span.end].into(),
        Some(Field::UInt(number)) => (*number).into(),
        Some(Field::Int(number)) => (*number).into(),
        Some(Field::Float(0.0)) => 0.into(),
        Some(Field::Float(number)) => (*number).into(),
        Some(Field::Bool(truth)) => (*truth).into(),
    }
}
