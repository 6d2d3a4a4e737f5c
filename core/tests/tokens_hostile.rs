//! Files of tokenizers, and patterns, that somebody has made to do harm: to need time or memory out of proportion
//! to their size, or to end the process.

use offlock_core::Task;
use offlock_core::tokens::model::{Layout, Options, Side, Tokenizer};
use offlock_core::tokens::{Encoding, Error, ErrorKind, Specials, TokenId};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What takes linear time takes much less, what takes quadratic time much more, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);

/// The character that stands for a byte in vocabularies.
fn letter(byte: u8) -> char {
    let is_printable = |byte: &u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let others = (0..byte).filter(|byte| !is_printable(byte)).count() as u32;
    if is_printable(&byte) { char::from(byte) } else { char::from_u32(0x100 + others).unwrap() }
}

/// A `tokenizer.json` with all bytes.
fn file() -> Value {
    json!({
        "added_tokens": [],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "post_processor": null,
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": (0..=255).map(|byte| (letter(byte).to_string(), Value::from(byte))).collect::<Value>(),
            "merges": [],
        },
    })
}

fn load(file: &Value) -> Result<Tokenizer, Error> {
    Tokenizer::from_json(file.to_string().as_bytes(), &Task::new())
}

fn changed(path: &str, value: Value) -> Result<Tokenizer, Error> {
    let mut file = file();
    *file.pointer_mut(path).unwrap() = value;
    load(&file)
}

fn refused(path: &str, value: Value) -> String {
    changed(path, value).expect_err("this should be refused").to_string()
}

/// A file of ranks with all bytes and these tokens.
fn ranks(tokens: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut file = Vec::new();
    for (rank, token) in (0..=255).map(|byte: u8| vec![byte]).chain(tokens).enumerate() {
        for three in token.chunks(3) {
            let word = three
                .iter()
                .chain([&0, &0])
                .take(3)
                .fold(0_usize, |word, &byte| word << 8 | usize::from(byte));
            let digits = [18, 12, 6, 0].map(|shift| DIGITS[word >> shift & 63]);
            file.extend(&digits[..=three.len()]);
            file.extend(&b"=="[..3 - three.len()]);
        }
        file.extend(format!(" {rank}\n").bytes());
    }
    file
}

/// Different tokens of 16 bytes, for all of which `rustc-hash` has the same hash: it multiplies by the first eight
/// bytes, combined with this constant of its own.
fn of_equal_hash(count: u64) -> impl Iterator<Item = Vec<u8>> {
    let zero = 0x243f_6a88_85a3_08d3_u64.to_le_bytes();
    (0..count).map(move |number| [zero, (number | 0x1010_1010_0000_0000).to_le_bytes()].concat())
}

#[test]
fn tokens_of_equal_hash_take_linear_time() {
    let (began, task) = (Instant::now(), Task::new());
    let tokenizer = Tokenizer::from_tiktoken(&ranks(of_equal_hash(60_000)), "(?s:.{16})", [], &task).unwrap();
    let ids: Vec<TokenId> = (256..60_256).collect();
    let bytes = tokenizer.decode_bytes(&ids, true, &task).unwrap();
    assert_eq!(bytes, of_equal_hash(60_000).collect::<Vec<_>>().concat());
    let listed = (0..=255).map(|byte: u8| vec![byte]).chain(of_equal_hash(60_000)).zip(0..);
    let encoding = Encoding::new("own", ".", listed, [], &task).unwrap();
    for piece in of_equal_hash(60_000).step_by(7) {
        assert!(encoding.encode_single_token(&piece).is_some());
    }
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

#[test]
fn entries_of_equal_hash_take_linear_time() {
    let began = Instant::now();
    let mut changed = file();
    let vocabulary = changed["model"]["vocab"].as_object_mut().unwrap();
    for (token, id) in of_equal_hash(60_000).zip(256..) {
        vocabulary.insert(token.into_iter().map(letter).collect(), id.into());
    }
    changed["model"]["ignore_merges"] = true.into();
    let tokenizer = load(&changed).unwrap();
    assert_eq!(tokenizer.vocab_size(), 60_256);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

#[test]
fn lists_that_would_take_memory_or_time_for_each_text_are_refused() {
    let forms = json!({"type": "Sequence", "normalizers": vec![json!({"type": "NFC"}); 5000]});
    assert!(refused("/normalizer", forms).contains("more than 1024 normalizers"));
    // Each pattern cuts what the one before it left, one function call within the other.
    let cut = json!({"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated", "invert": false});
    let mut cuts = vec![cut; 5000];
    cuts.push(json!({"type": "ByteLevel", "add_prefix_space": false}));
    let cuts = json!({"type": "Sequence", "pretokenizers": cuts});
    assert!(refused("/pre_tokenizer", cuts).contains("more than 1024 pretokenizers"));
    let mut single = vec![json!({"SpecialToken": {"id": "s", "type_id": 0}}); 3000];
    single.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
    let template = json!({"type": "TemplateProcessing", "single": single, "pair": [],
        "special_tokens": {"s": {"id": "s", "ids": vec![1; 3000], "tokens": ["s"]}}});
    assert!(refused("/post_processor", template).contains("a template of more than 1024 tokens"));
}

#[test]
fn added_tokens_that_take_long_to_prepare_are_refused() {
    let long = json!([{"content": "x".repeat(2000)}]);
    assert!(refused("/added_tokens", long).contains("an added token of more than 1024 bytes"));
    let many: Vec<_> = (0..9000).map(|number| json!({"content": format!("{number:0>500}")})).collect();
    assert!(refused("/added_tokens", many.into()).contains("more than 4194304 bytes together"));
}

#[test]
fn what_a_message_shows_of_a_file_is_short() {
    let mut changed = file();
    changed["model"]["merges"] = json!([["é".repeat(100_000), "a"]]);
    assert!(load(&changed).unwrap_err().to_string().len() < 1000);
    assert!(refused("/normalizer", json!({"type": "x".repeat(100_000)})).len() < 1000);
}

#[test]
fn many_cuts_are_not_too_many_for_the_stack() {
    let cut =
        json!({"type": "Split", "pattern": {"Regex": "[ab]+"}, "behavior": "Isolated", "invert": false});
    let mut cuts = vec![cut; 1000];
    cuts.push(json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}));
    let tokenizer = changed("/pre_tokenizer", json!({"type": "Sequence", "pretokenizers": cuts})).unwrap();
    let encode = || tokenizer.encode("abcab", Options::default(), &Task::new()).unwrap().len();
    let small = std::thread::Builder::new().stack_size(512 << 10);
    std::thread::scope(|scope| {
        assert_eq!(small.spawn_scoped(scope, encode).unwrap().join().unwrap(), 5);
    });
}

#[test]
fn a_setting_takes_no_more_memory_than_its_length_allows() {
    let objects = vec![json!({"": 0}); 200_000];
    assert!(refused("/normalizer", objects.into()).contains("longer than 1 MB"));
    let nested = "[".repeat(300_000) + &"]".repeat(300_000);
    let deep = file().to_string().replace("\"post_processor\":null", &format!("\"post_processor\":{nested}"));
    let error = Tokenizer::from_json(deep.as_bytes(), &Task::new()).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::BadVocabulary { .. }), "{error}");
}

#[test]
fn special_tokens_that_are_not_listed_are_bounded() {
    let file = json!({
        "config": {"pattern": ".", "default_vocab_size": u32::MAX, "default_num_special_tokens": u32::MAX},
        "vocab": [{"rank": 0, "token_bytes": "YQ=="}],
        "special_tokens": [],
    });
    assert!(load(&file).unwrap_err().to_string().contains("4294967295 special tokens, more than 65536"));
}

#[test]
fn numbers_may_be_as_large_as_they_fit() {
    let mut changed = file();
    changed["model"]["vocab"]["ab"] = u32::MAX.into();
    changed["model"]["merges"] = json!([["a", "b"]]);
    let tokenizer = load(&changed).unwrap();
    assert_eq!(tokenizer.encode("ab", Options::default(), &Task::new()), Ok(vec![u32::MAX]));
    assert_eq!(tokenizer.decode_bytes(&[u32::MAX, u32::MAX - 1], true, &Task::new()), Ok(b"ab".to_vec()));
    for wrong in [json!(1_u64 << 32), json!(-1), json!(1.5), json!("1"), json!(null)] {
        changed["model"]["vocab"]["ab"] = wrong.clone();
        assert!(load(&changed).is_err(), "{wrong}");
    }
}

#[test]
fn rows_that_no_memory_has_room_for_are_an_error() {
    let tokenizer = load(&file()).unwrap();
    let layout = |length, multiple_of| Layout {
        max_length: None,
        truncation_side: Side::Right,
        length: Some(length),
        multiple_of,
        pad_token: 0,
        padding_side: Side::Left,
    };
    for (length, multiple_of) in
        [(usize::MAX, 2), (1, usize::MAX), (usize::MAX, 1), (1 << 62, 1), (3, 1 << 63)]
    {
        let layout = layout(length, multiple_of);
        let rows = tokenizer.encode_padded(&["a", "b"], &layout, Options::default(), 1, &Task::new());
        assert_eq!(rows.unwrap_err().kind, ErrorKind::OutOfMemory, "{length} {multiple_of}");
    }
}

/// The number of checks of the task until a text is encoded, or the pattern gives up.
fn checks(pattern: &str, text: &str) -> usize {
    let checks = AtomicUsize::new(0);
    let poll = |_| {
        checks.fetch_add(1, Ordering::Relaxed);
        false
    };
    let bytes = (0..=255).map(|byte: u8| vec![byte]).zip(0..);
    let encoding = Encoding::new("own", pattern, bytes, [], &Task::new()).unwrap();
    _ = encoding.encode(text, Specials::None, &Task::with_poll(&poll));
    checks.into_inner()
}

#[test]
fn a_slow_pattern_is_looked_after_between_pieces() {
    // Each piece takes thousands of steps back.
    let text = "a".repeat(400);
    assert!(checks(r"(?=(?:a|a){0,9}b)a|(?!b)a", &text) > 40);
}
