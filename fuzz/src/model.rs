//! Any file of a model is read or refused, and what a tokenizer says of a text in different ways agrees.

use offlock_core::Task;
use offlock_core::tokens::ErrorKind;
use offlock_core::tokens::model::{Layout, Options, Side, Tokenizer, Unit};

/// Runs the target on one input: a byte for the kind of file, a file up to two zero bytes, a text. The vocabulary of
/// a file has all bytes besides what is written there.
pub fn run(bytes: &[u8]) {
    let [kind, rest @ ..] = bytes else { return };
    let end = rest.windows(2).position(|pair| pair == [0, 0]).unwrap_or(rest.len());
    let (file, text) = (&rest[..end], String::from_utf8_lossy(&rest[rest.len().min(end + 2)..]));
    let task = Task::new();
    let tokenizer = match kind % 3 {
        0 => Tokenizer::from_json(&with_bytes(file, "\"vocab\":{", json_entry), &task),
        1 => Tokenizer::from_json(&with_bytes(file, "\"vocab\":[", tekken_entry), &task),
        _ => {
            let pattern =
                [r"\w+|\W+", r"(?s:.)+?(?=b|$)|b", r"\p{L}+|\s+(?!\S)|."][usize::from(kind / 3 % 3)];
            let specials = [("<s>".to_owned(), 1 << 20), ("<s".to_owned(), 1 << 21)];
            Tokenizer::from_tiktoken(file, pattern, specials, &task)
        }
    };
    match tokenizer {
        Ok(tokenizer) => compare(&tokenizer, &text),
        Err(error) => assert!(
            matches!(
                error.kind,
                ErrorKind::BadVocabulary { .. }
                    | ErrorKind::Unsupported { .. }
                    | ErrorKind::BadPattern { .. }
            ),
            "{error}"
        ),
    }
}

/// The file with the entries of all bytes in front of those that its vocabulary has.
fn with_bytes(file: &[u8], before: &str, entry: fn(u8) -> String) -> Vec<u8> {
    let Some(place) = file.windows(before.len()).position(|part| part == before.as_bytes()) else {
        return file.to_vec();
    };
    let (start, end) = file.split_at(place + before.len());
    let entries = (0..=255).map(entry).collect::<Vec<_>>().join(",");
    let comma: &[u8] = if matches!(end.first(), Some(b'}' | b']')) { b"" } else { b"," };
    [start, entries.as_bytes(), comma, end].concat()
}

fn json_entry(byte: u8) -> String {
    let is_printable = |byte: &u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let others = (0..byte).filter(|byte| !is_printable(byte)).count() as u32;
    let number = if is_printable(&byte) { byte.into() } else { 0x100 + others };
    format!("\"\\u{number:04x}\":{byte}")
}

fn tekken_entry(byte: u8) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |number: u8| char::from(DIGITS[usize::from(number)]);
    format!(r#"{{"rank":{byte},"token_bytes":"{}{}=="}}"#, digit(byte >> 2), digit((byte & 3) << 4))
}

fn compare(tokenizer: &Tokenizer, text: &str) {
    let task = Task::new();
    for (add_special_tokens, split_special_tokens) in [(true, false), (false, true)] {
        let options = Options { add_special_tokens, split_special_tokens };
        let tokens = match tokenizer.encode(text, options, &task) {
            Ok(tokens) => tokens,
            Err(error) => {
                let is_known =
                    matches!(error.kind, ErrorKind::PatternFailed { .. } | ErrorKind::UnknownByte { .. });
                assert!(is_known, "{error}");
                continue;
            }
        };
        assert_eq!(tokenizer.count(text, options, &task), Ok(tokens.len()));
        assert_eq!(tokenizer.encode_batch(&[text, text], options, 2, &task).unwrap(), [&*tokens, &*tokens]);
        for unit in [Unit::Bytes, Unit::Characters] {
            let placed = tokenizer.encode_with_offsets(text, unit, options, &task).unwrap();
            assert_eq!(placed.tokens, tokens);
            let length = if unit == Unit::Bytes { text.len() } else { text.chars().count() };
            for (start, end) in placed.offsets {
                assert!(start <= end && end <= length, "{start}..{end} of {length}");
            }
        }
        for most in 0..4 {
            let kept = tokenizer.truncate(text, most, options, &task).unwrap();
            assert!(text.is_char_boundary(kept.bytes) && kept.tokens.len() <= most, "{most} {kept:?}");
        }
        let layout = Layout {
            max_length: Some(5),
            truncation_side: Side::Left,
            length: None,
            multiple_of: 4,
            pad_token: 0,
            padding_side: Side::Right,
        };
        let rows = tokenizer.encode_padded(&[text, ""], &layout, options, 1, &task).unwrap();
        assert_eq!(rows.tokens.len(), 2 * rows.columns);
        for skip in [false, true] {
            tokenizer.decode_bytes(&tokens, skip, &task).unwrap();
        }
        for &token in tokens.iter().take(20) {
            assert!(tokenizer.id_to_token(token).is_none_or(|name| tokenizer.token_to_id(&name).is_some()));
        }
    }
    tokenizer.decode_bytes(&[0, u32::MAX, 1 << 31], false, &task).unwrap();
    assert!(tokenizer.vocab_size() > 0);
}
