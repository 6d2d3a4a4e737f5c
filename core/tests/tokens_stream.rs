//! Streams against encoding the whole text, for any cut of it into pieces.

use offlock_core::Task;
use offlock_core::tokens::model::{Options, Tokenizer};
use offlock_core::tokens::{self, Encoding, Error, ErrorKind, Specials, Stream, TokenId};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

const NAMES: [&str; 6] = ["gpt2", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"];

/// The tokens of each piece and of the end.
fn fed(mut stream: Stream, pieces: &[&[u8]]) -> Vec<Vec<TokenId>> {
    let task = Task::new();
    let mut tokens: Vec<_> = pieces.iter().map(|piece| stream.feed(piece, &task).unwrap()).collect();
    tokens.push(stream.finish(&task).unwrap());
    tokens
}

/// Cuts bytes into pieces of these lengths, over and over.
fn cut<'t>(text: &'t [u8], lengths: &[usize]) -> Vec<&'t [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(rest.len().min(*length));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Checks tokens and counts after each piece.
fn check(
    streams: impl Fn() -> Stream,
    encode: impl Fn(&str) -> Vec<TokenId>,
    after: usize,
    text: &str,
    lengths: &[usize],
) {
    let (task, whole) = (Task::new(), encode(text));
    let (mut stream, mut counting, mut tokens, mut known) = (streams(), streams(), Vec::new(), 0);
    for piece in cut(text.as_bytes(), lengths) {
        known += piece.len();
        let new = stream.feed(piece, &task).unwrap();
        assert_eq!(counting.count(piece, &task).unwrap(), new.len());
        tokens.extend(new);
        assert!(whole.starts_with(&tokens), "{text:?} {known}");
        assert_eq!((stream.final_count(), stream.pending()), (tokens.len(), counting.pending()));
        let end = (0..=known).rev().find(|&at| text.is_char_boundary(at)).unwrap();
        assert_eq!(stream.total(&task).unwrap(), encode(&text[..end]).len(), "{:?}", &text[..end]);
    }
    tokens.extend(stream.finish(&task).unwrap());
    assert_eq!(tokens, whole, "{text:?} {lengths:?}");
    assert_eq!(stream.total(&task).unwrap(), whole.len());
    assert!(whole.len() >= after);
}

/// What patterns tell apart, and parts of special tokens.
fn text() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        3 => "[a-z]{1,9}",
        2 => "[A-Z日]{0,3}[a-zé]{0,5}",
        3 => "[ \t\r\n\u{a0}\u{3000}]{1,5}",
        1 => "[0-9٣]{1,7}",
        2 => "['’](?i:s|t|re|ve|m|ll|d|ſ|l|v)?",
        2 => "[!-/:-@{-~]{1,4}",
        1 => "[\u{300}-\u{303}\u{200d}]{1,3}",
        1 => "[👍🏽👨👩👧]{1,3}",
        2 => "<\\|(end|endof|endoftext\\|>|fim_prefix\\||fim_|endofprompt\\|>|<\\|start\\|>)?",
        1 => any::<char>().prop_map(String::from),
    ];
    vec(fragment, 0..16).prop_map(|fragments| fragments.concat())
}

fn lengths() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![1]), vec(1_usize..4, 1..5), vec(1_usize..40, 1..9)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_cut_gives_the_tokens_of_the_whole(text in text(), lengths in lengths()) {
        for name in NAMES {
            let encoding = tokens::get(name).unwrap();
            for allowed in [
                Specials::None,
                Specials::All,
                Specials::Only(&["<|endoftext|>", "<|fim_prefix|>"]),
                Specials::Except(&["<|endoftext|>"]),
            ] {
                let stream = || Stream::of_encoding(encoding, allowed, None).unwrap();
                check(stream, |text| encoding.encode(text, allowed, &Task::new()).unwrap(), 0, &text, &lengths);
            }
        }
    }
}

/// An encoding whose special tokens begin and contain each other.
static NESTED: LazyLock<Encoding> = LazyLock::new(|| {
    let ranks = (0..=255).map(|byte: u8| (vec![byte], byte.into()));
    let specials = ["<a", "<a>", "a>b", "<<a>>", "é!", "bb"].map(String::from).into_iter().zip(256..);
    Encoding::new("nested", tokens::get("gpt2").unwrap().pattern(), ranks, specials, &Task::new()).unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn special_tokens_that_overlap_are_found_as_in_the_whole(text in "[<a>bé!]{0,12}", lengths in lengths()) {
        for allowed in [Specials::All, Specials::Only(&["<a>", "bb"]), Specials::Except(&["<a"])] {
            let stream = || Stream::of_encoding(&*NESTED, allowed, None).unwrap();
            check(stream, |text| NESTED.encode(text, allowed, &Task::new()).unwrap(), 0, &text, &lengths);
        }
    }
}

/// The character that stands for a byte in the vocabularies of models.
fn letter(byte: u8) -> char {
    let is_kept = |byte: &u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let shifted = (0..byte).filter(|byte| !is_kept(byte)).count();
    if is_kept(&byte) { char::from(byte) } else { char::from_u32(0x100 + shifted as u32).unwrap() }
}

/// A model of single bytes, with what `change` does to its file.
fn model(change: impl FnOnce(&mut Value)) -> Arc<Tokenizer> {
    let part =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    let vocab: HashMap<_, _> = (0..=255_u8).map(|byte| (letter(byte).to_string(), byte)).collect();
    let mut file = json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": part, "post_processor": null,
        "decoder": part, "model": {"type": "BPE", "vocab": vocab, "merges": []},
    });
    change(&mut file);
    Arc::new(Tokenizer::from_json(file.to_string().as_bytes(), &Task::new()).unwrap())
}

/// Added tokens: their texts, whether they are special, are looked for in normalized text, and take blanks.
fn added(tokens: &[(&str, bool, bool, bool)]) -> Value {
    let token = |(id, &(content, special, normalized, strips)): (u32, &(&str, bool, bool, bool))| {
        json!({"id": id, "content": content, "special": special, "normalized": normalized, "lstrip": strips,
            "rstrip": strips, "single_word": false})
    };
    (256..).zip(tokens).map(token).collect()
}

/// Models of each kind that can be streamed.
static MODELS: LazyLock<Vec<Arc<Tokenizer>>> = LazyLock::new(|| {
    let plain = [("<s>", true, false, false), ("<t", false, false, false), ("<s>>", true, false, false)];
    let normal = [("<s>", true, false, false), ("é>", false, true, false), ("e\u{301}e", false, true, false)];
    let blanks = [("<s>", true, false, true), ("<t", false, false, false), ("s>", false, false, true)];
    let template = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "<s>", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
    });
    let mut models = Vec::new();
    for tokens in [&plain, &normal, &blanks] {
        let form = |name| json!({"type": name});
        let both = json!({"type": "Sequence", "normalizers": [form("NFC"), form("NFD")]});
        for form in [Value::Null, form("NFC"), form("NFKD"), both] {
            for blank in [false, true] {
                models.push(model(|file| {
                    file["added_tokens"] = added(tokens);
                    file["normalizer"] = form.clone();
                    file["pre_tokenizer"]["add_prefix_space"] = blank.into();
                    file["post_processor"] = template.clone();
                }));
            }
        }
    }
    models
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn models_are_streamed_as_they_encode(
        text in "[a<s>t e\u{301}é\n\u{3000}\u{323}\u{1100}\u{1161}ﬁ'1]{0,14}",
        lengths in lengths(),
        add in any::<bool>(),
        split in any::<bool>(),
    ) {
        let options = Options { add_special_tokens: add, split_special_tokens: split };
        for model in &*MODELS {
            let stream = || Stream::of_model(Arc::clone(model), options, None).unwrap();
            let after = if add { 2 } else { 0 };
            check(stream, |text| model.encode(text, options, &Task::new()).unwrap(), after, &text, &lengths);
        }
    }
}

#[test]
fn tokens_come_as_soon_as_words_end() {
    let encoding = tokens::get("o200k_base").unwrap();
    let stream = Stream::of_encoding(encoding, Specials::All, None).unwrap();
    let pieces: [&[u8]; 6] = [b"off", b" the lo", b"ck", b".", b" <|endof", b"text|>"];
    let tokens = fed(stream, &pieces);
    assert_eq!(tokens, [vec![], vec![2864, 290], vec![], vec![8109], vec![13], vec![220, 199_999], vec![]]);
}

#[test]
fn invalid_text_is_refused_where_it_begins_and_changes_nothing() {
    let (encoding, task) = (tokens::get("gpt2").unwrap(), Task::new());
    let mut stream = Stream::of_encoding(encoding, Specials::None, None).unwrap();
    let invalid = |stream: &mut Stream, piece: &[u8]| match stream.feed(piece, &task).unwrap_err().kind {
        ErrorKind::InvalidUtf8 { offset } => offset,
        other => panic!("{other:?}"),
    };
    let mut tokens = stream.feed(b"one \xe6\x97", &task).unwrap();
    assert_eq!(invalid(&mut stream, b"a"), 4);
    assert_eq!(invalid(&mut stream, b"\xa5 two \xff"), 12);
    assert_eq!(invalid(&mut stream, b"\xa5 two \xe6\x97 "), 12);
    assert_eq!(stream.finish(&task).unwrap_err().kind, ErrorKind::InvalidUtf8 { offset: 4 });
    assert_eq!(stream.total(&task).unwrap(), encoding.count_ordinary("one ", &task).unwrap());
    tokens.extend(stream.feed(b"\xa5 two", &task).unwrap());
    tokens.extend(stream.finish(&task).unwrap());
    assert_eq!(tokens, encoding.encode_ordinary("one 日 two", &task).unwrap());
    let mut long = Stream::of_encoding(encoding, Specials::None, None).unwrap();
    let text = [&b"a"[..], &"日".repeat(200_000).into_bytes(), b"\xff"].concat();
    assert_eq!(invalid(&mut long, &text), 600_001);
}

#[test]
fn a_stopped_call_can_be_repeated() {
    let encoding = tokens::get("cl100k_base").unwrap();
    let text = "the lock of the interpreter 123 ".repeat(20_000);
    let mut stream = Stream::of_encoding(encoding, Specials::All, None).unwrap();
    let mut tokens = stream.feed(b"before ", &Task::new()).unwrap();
    for checks in [0, 1, 2, 5, 40] {
        let left = AtomicUsize::new(checks);
        let stop =
            |_| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err();
        let stopped = stream.feed(text.as_bytes(), &Task::with_poll(&stop));
        assert_eq!(stopped.unwrap_err().kind, ErrorKind::Stopped, "after {checks} checks");
    }
    tokens.extend(stream.feed(text.as_bytes(), &Task::new()).unwrap());
    tokens.extend(stream.finish(&Task::new()).unwrap());
    assert_eq!(tokens, encoding.encode_ordinary(&format!("before {text}"), &Task::new()).unwrap());
}

#[test]
fn a_stream_stays_as_it_is_until_it_accepts_what_it_was_fed() {
    let (encoding, task) = (tokens::get("cl100k_base").unwrap(), Task::new());
    let mut stream = Stream::of_encoding(encoding, Specials::All, None).unwrap();
    let mut tokens = stream.feed("the l\u{e9}\u{65e5}".as_bytes().split_last().unwrap().1, &task).unwrap();
    let before = (stream.pending(), stream.final_count());
    for piece in ["\u{65e5}<|endoftext|> and more ".as_bytes(), b"", b"\xff"] {
        _ = stream.try_feed(&piece[piece.len().min(2)..], &task);
        _ = stream.try_count(piece, &task);
        assert_eq!((stream.pending(), stream.final_count()), before);
        assert_eq!(stream.total(&task), encoding.count_ordinary("the l\u{e9}", &task));
    }
    let mut fed = stream.try_feed(b"\xa5 ock <|endoftext|>", &task).unwrap();
    assert_eq!(fed.count(), fed.tokens().len());
    tokens.extend(fed.tokens());
    stream.accept(&mut fed);
    tokens.extend(stream.finish(&task).unwrap());
    let text = "the l\u{e9}\u{65e5} ock <|endoftext|>";
    assert_eq!(tokens, encoding.encode(text, Specials::All, &task).unwrap());
}

#[test]
fn little_of_prose_is_kept_and_a_long_piece_as_a_whole() -> Result<(), Error> {
    let task = Task::new();
    for name in NAMES {
        let encoding = tokens::get(name).unwrap();
        let mut stream = Stream::of_encoding(encoding, Specials::All, Some(64))?;
        for word in
            ["Threads", " wait", ", ", "don't", " they?\n", "\n", "x = 42;", "日本語です。"].repeat(2_000)
        {
            stream.count(word.as_bytes(), &task)?;
            assert!(stream.pending() <= 32, "{name} {word}");
        }
        stream.finish(&task)?;
    }
    let encoding = tokens::get("o200k_base").unwrap();
    let mut stream = Stream::of_encoding(encoding, Specials::None, Some(100))?;
    assert_eq!(stream.feed("a".repeat(100).as_bytes(), &task)?, [0; 0]);
    assert_eq!(stream.feed(b"a", &task).unwrap_err().kind, ErrorKind::KeptTooMuch { limit: 100 });
    assert_eq!(stream.pending(), 100);
    assert!(stream.feed(b"!", &task)?.len() > 1);
    Ok(())
}

#[test]
fn a_long_piece_that_comes_byte_by_byte_takes_linear_time() {
    let began = std::time::Instant::now();
    for (name, text) in [
        ("o200k_base", "日a".repeat(200_000)),
        ("o200k_base", "Ab".repeat(400_000)),
        ("cl100k_base", " ".repeat(800_000)),
        ("cl100k_base", "!\u{301}".repeat(200_000)),
        ("gpt2", "1".repeat(800_000)),
        ("o200k_base", "<|endoftext".repeat(70_000)),
    ] {
        let (encoding, task) = (tokens::get(name).unwrap(), Task::new());
        let mut stream = Stream::of_encoding(encoding, Specials::All, None).unwrap();
        for byte in text.as_bytes().chunks(3) {
            stream.count(byte, &task).unwrap();
        }
        stream.finish(&task).unwrap();
        assert_eq!(stream.final_count(), encoding.count_ordinary(&text, &task).unwrap(), "{name}");
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn a_stream_ends_once() {
    let task = Task::new();
    let mut stream = Stream::of_encoding(tokens::get("gpt2").unwrap(), Specials::None, None).unwrap();
    assert_eq!(stream.finish(&task).unwrap(), [0; 0]);
    assert_eq!(stream.feed(b"a", &task).unwrap_err().kind, ErrorKind::StreamEnded);
    assert_eq!(stream.finish(&task).unwrap_err().kind, ErrorKind::StreamEnded);
    assert_eq!((stream.total(&task), stream.pending()), (Ok(0), 0));
}

#[test]
fn what_cannot_be_streamed_is_named() {
    let ranks = (0..=255).map(|byte: u8| (vec![byte], byte.into()));
    let encoding = Arc::new(Encoding::new("own", r"\w+|\W", ranks, [], &Task::new()).unwrap());
    let named = |made: Result<Stream, Error>, what: &str| {
        let message = made.unwrap_err().to_string();
        assert!(message.contains("cannot be encoded as it arrives") && message.contains(what), "{message}");
    };
    named(Stream::of_encoding(encoding, Specials::None, None), "pattern");
    let word = model(|file| {
        file["added_tokens"] = added(&[("<s>", true, false, false)]);
        file["added_tokens"][0]["single_word"] = true.into();
    });
    let split = Options { split_special_tokens: true, ..Options::default() };
    named(Stream::of_model(word, Options::default(), None), "a word of its own");
    let blanks = model(|file| {
        file["added_tokens"] = added(&[("<s>", true, false, true), ("  ", false, false, false)]);
    });
    named(Stream::of_model(blanks, Options::default(), None), "blanks");
    let special = model(|file| file["added_tokens"] = added(&[("<s>", true, true, false)]));
    named(Stream::of_model(special.clone(), split, None), "normalized");
    assert!(Stream::of_model(special, Options::default(), None).is_ok());
    let whole = model(|file| file["pre_tokenizer"]["use_regex"] = false.into());
    assert!(Stream::of_model(whole, Options::default(), None).is_ok(), "one piece, which ends with the text");
}
