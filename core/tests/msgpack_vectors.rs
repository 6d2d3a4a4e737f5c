//! The vectors in `vectors/msgpack`, read and written by the core.

use offlock_core::Task;
use offlock_core::msgpack::{
    Direct, ErrorKind, Indexed, Limits, Scanner, Source, Tape, Timestamp, Token, write,
};
use serde_json::{Value, json};

const LIMITS: Limits = Limits::depth(1024);

fn cases(name: &str) -> Vec<Value> {
    let path = format!("{}/../vectors/msgpack/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The slow, obvious decoder.
fn decode<'a>(source: &mut impl Source<'a>) -> Result<Value, ErrorKind> {
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "str": text }),
        Err(_) => json!({ "raw": hex(bytes) }),
    };
    let float = |value: f64| match value.is_nan() {
        true => json!({ "float": "nan" }),
        false => json!({ "float": format!("{:016x}", value.to_bits()) }),
    };
    Ok(match source.next().map_err(|error| error.kind)? {
        Token::Str(bytes) => text(bytes),
        Token::Nil => Value::Null,
        Token::Bool(value) => Value::Bool(value),
        Token::UInt(value) => json!({ "int": value.to_string() }),
        Token::Int(value) => json!({ "int": value.to_string() }),
        Token::F32(value) => float(value.into()),
        Token::F64(value) => float(value),
        Token::Bin(bytes) => json!({ "bin": hex(bytes) }),
        Token::Ext(Timestamp::TYPE, payload) => {
            let time = Timestamp::from_payload(payload, 0).map_err(|error| error.kind)?;
            json!({ "timestamp": [time.seconds, time.nanoseconds] })
        }
        Token::Ext(kind, payload) => json!({ "ext": [kind, hex(payload)] }),
        Token::Array(length) => {
            json!({ "array": (0..length).map(|_| decode(source)).collect::<Result<Vec<_>, _>>()? })
        }
        Token::Map(length) => {
            let pair = |_| Ok(json!([decode(source)?, decode(source)?]));
            json!({ "map": (0..length).map(pair).collect::<Result<Vec<_>, _>>()? })
        }
    })
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    let Some((kind, value)) = value.as_object().and_then(|object| object.iter().next()) else {
        return match value.as_bool() {
            Some(value) => write::bool(out, value),
            None => write::nil(out),
        };
    };
    match kind.as_str() {
        "int" => match value.as_str().unwrap().parse::<i128>().unwrap() {
            value if value < 0 => write::int(out, value as i64),
            value => write::uint(out, value as u64),
        },
        "float" => write::f64(out, f64::from_bits(u64::from_str_radix(value.as_str().unwrap(), 16).unwrap())),
        "str" => write::str(out, value.as_str().unwrap().as_bytes()),
        "bin" => write::bin(out, &bytes(value)),
        "ext" => write::ext(out, value[0].as_i64().unwrap() as i8, &bytes(&value[1])),
        "timestamp" => {
            let (seconds, nanoseconds) = (value[0].as_i64().unwrap(), value[1].as_u64().unwrap() as u32);
            write::timestamp(out, Timestamp { seconds, nanoseconds });
        }
        "array" => {
            let items = value.as_array().unwrap();
            write::array_header(out, items.len());
            items.iter().for_each(|item| encode(item, out));
        }
        "map" => {
            let pairs = value.as_array().unwrap();
            write::map_header(out, pairs.len());
            pairs.iter().flat_map(|pair| pair.as_array().unwrap()).for_each(|item| encode(item, out));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn values_are_read_directly_and_from_a_tape() {
    for case in cases("values.jsonl") {
        let message = bytes(&case["bytes"]);
        assert_eq!(
            decode(&mut Direct::<false>::at(&message, 0, LIMITS)),
            Ok(case["value"].clone()),
            "{case}"
        );
        let (tape, end) = Tape::index(&message, &LIMITS, &Task::new()).unwrap();
        assert_eq!(end, message.len());
        assert_eq!(decode(&mut Indexed::at(&tape, &message, 0)), Ok(case["value"].clone()), "{case}");
    }
}

#[test]
fn values_are_written_in_their_shortest_form() {
    for case in cases("values.jsonl").iter().filter(|case| case["packs"] == true) {
        let mut message = Vec::new();
        encode(&case["value"], &mut message);
        assert_eq!(hex(&message), case["bytes"].as_str().unwrap(), "{case}");
    }
}

#[test]
fn broken_messages_are_known_for_what_they_are() {
    for case in cases("broken.jsonl") {
        let message = bytes(&case["bytes"]);
        let indexed = Tape::index(&message, &LIMITS, &Task::new());
        let scanned = Scanner::default().advance(&message, &LIMITS, &Task::new());
        match case["error"].as_str().unwrap() {
            "truncated" => {
                assert_eq!(indexed.unwrap_err().kind, ErrorKind::Truncated, "{case}");
                assert_eq!(scanned, Ok(None), "{case}");
            }
            "extra" => {
                assert!(indexed.unwrap().1 < message.len(), "{case}");
                assert!(scanned.unwrap().unwrap() < message.len(), "{case}");
            }
            error => {
                let wanted = |kind: ErrorKind| match error {
                    "reserved" => kind == ErrorKind::Reserved(0xc1),
                    "deep" => kind == ErrorKind::TooDeep(1024),
                    other => panic!("{other}"),
                };
                assert!(wanted(indexed.unwrap_err().kind), "{case}");
                assert!(wanted(scanned.unwrap_err().kind), "{case}");
            }
        }
    }
}
