//! Models' tokenizers on small files that are written here. The real ones are compared with their originals in
//! `python/tests/test_tokenizer_models.py`.

use offlock_core::Task;
use offlock_core::tokens::model::{Layout, Options, Padded, Side, Tokenizer, Unit};
use offlock_core::tokens::{Boundary, ChunkOptions, ErrorKind, TokenId};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The character that stands for a byte in vocabularies.
fn letter(byte: u8) -> char {
    let shifted = (0..byte).filter(|byte| !matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)).count();
    match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        _ => char::from_u32(0x100 + shifted as u32).unwrap(),
    }
}

fn token(text: &str) -> String {
    text.bytes().map(letter).collect()
}

/// A file with all bytes, whose numbers are the bytes, and with these tokens and merges.
fn file(tokens: &[(&str, TokenId)], merges: &[(&str, &str)]) -> Value {
    let bytes = (0..=255_u8).map(|byte| (letter(byte).to_string(), TokenId::from(byte)));
    let tokens = tokens.iter().map(|&(text, id)| (token(text), id));
    json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true},
        "model": {
            "type": "BPE",
            "vocab": bytes.chain(tokens).collect::<HashMap<_, _>>(),
            "merges": merges.iter().map(|(left, right)| json!([token(left), token(right)])).collect::<Vec<_>>(),
        },
    })
}

fn added(text: &str, id: TokenId, special: bool) -> Value {
    json!({"id": id, "content": text, "special": special, "normalized": false, "lstrip": false, "rstrip": false,
        "single_word": false})
}

fn load(file: &Value) -> Result<Tokenizer, ErrorKind> {
    Tokenizer::from_json(file.to_string().as_bytes(), &Task::new()).map_err(|error| error.kind)
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<TokenId> {
    tokenizer.encode(text, Options::default(), &Task::new()).unwrap()
}

/// Joins the pair that is listed first, the leftmost of equals, as long as there is one.
fn naive(text: &str, tokens: &HashMap<Vec<u8>, TokenId>, merges: &[(Vec<u8>, Vec<u8>)]) -> Vec<TokenId> {
    let mut parts: Vec<Vec<u8>> = text.bytes().map(|byte| vec![byte]).collect();
    let rank = |left: &Vec<u8>, right: &Vec<u8>| {
        // Of equal pairs the last one counts.
        merges.iter().rposition(|(first, second)| first == left && second == right)
    };
    while let Some((_, at)) =
        (1..parts.len()).filter_map(|at| Some((rank(&parts[at - 1], &parts[at])?, at))).min()
    {
        let right = parts.remove(at);
        parts[at - 1].extend(right);
    }
    parts.iter().map(|part| tokens[part]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Lists in any order, with several ways to make a token, tokens without one, and numbers in any order.
    #[test]
    fn any_list_of_merges_is_followed(
        words in prop::collection::vec("[ab]{2,5}|[abc]{2,3}", 1..12),
        cuts in prop::collection::vec((0_usize..12, 1_usize..5), 0..24),
        numbers in Just((256..268).collect::<Vec<TokenId>>()).prop_shuffle(),
        ignore_merges: bool,
        texts in prop::collection::vec("[abc]{1,24}", 1..8),
    ) {
        let mut words = words;
        words.sort();
        words.dedup();
        let tokens: Vec<_> = words.iter().map(String::as_str).zip(numbers).collect();
        let all = (0..=255).map(|byte: u8| (vec![byte], byte.into()));
        let all: HashMap<_, _> = all.chain(tokens.iter().map(|&(text, id)| (text.into(), id))).collect();
        let halves = cuts.iter().filter_map(|&(word, cut)| words.get(word)?.split_at_checked(cut));
        let is_token = |text: &str| all.contains_key(text.as_bytes());
        let merges: Vec<_> = halves.filter(|(left, right)| is_token(left) && is_token(right)).collect();
        let mut file = file(&tokens, &merges);
        file["model"]["ignore_merges"] = ignore_merges.into();
        let tokenizer = load(&file).unwrap();
        let merges: Vec<_> = merges.iter().map(|&(left, right)| (left.into(), right.into())).collect();
        for text in texts {
            let whole = all.get(text.as_bytes()).filter(|_| ignore_merges);
            let expected = whole.map_or_else(|| naive(&text, &all, &merges), |&id| vec![id]);
            prop_assert_eq!(encode(&tokenizer, &text), expected, "{} fast: {}", text, tokenizer.is_fast());
        }
    }
}

#[test]
fn numbers_need_not_have_the_order_of_the_merges() {
    let tokens = [("ab", 300), ("bc", 299), ("abc", 298)];
    let tokenizer = load(&file(&tokens, &[("a", "b"), ("b", "c"), ("ab", "c")])).unwrap();
    assert!(tokenizer.is_fast());
    assert_eq!(encode(&tokenizer, "abc"), [298]);
    assert_eq!(tokenizer.decode_bytes(&[298, 97, 299], true, &Task::new()).unwrap(), b"abcabc");
}

#[test]
fn an_added_token_is_decoded_as_it_occurs_in_normalized_text() {
    let mut file = file(&[], &[]);
    file["normalizer"] = json!({"type": "NFKC"});
    file["added_tokens"] = json!([added("\u{fb01}n", 256, false), added("\u{fb01}t", 257, false)]);
    file["added_tokens"][0]["normalized"] = true.into();
    let tokenizer = load(&file).unwrap();
    assert_eq!(encode(&tokenizer, "\u{fb01}nfin\u{fb01}t"), [256, 256, 257]);
    assert_eq!(tokenizer.decode_bytes(&[256, 257], true, &Task::new()).unwrap(), "fin\u{fb01}t".as_bytes());
    assert_eq!(tokenizer.id_to_token(256).as_deref(), Some("fin"));
    assert_eq!((tokenizer.token_to_id("\u{fb01}n"), tokenizer.token_to_id("fin")), (Some(256), None));
}

#[test]
fn a_token_may_be_listed_before_a_part_of_it() {
    let tokens = [("ab", 256), ("abc", 257), ("bc", 258), ("xabc", 259)];
    let merges = [("x", "abc"), ("ab", "c"), ("a", "b"), ("b", "c")];
    let tokenizer = load(&file(&tokens, &merges)).unwrap();
    assert!(tokenizer.is_fast());
    assert_eq!(encode(&tokenizer, "abc"), [257]);
    assert_eq!(encode(&tokenizer, "bcabxabcab"), [258, 256, 259, 256]);
}

#[test]
fn a_list_that_no_order_of_tokens_follows_is_followed_step_by_step() {
    // `ab` is followed by what is made of it at once, which takes the beginning of the next one.
    let tokenizer = load(&file(&[("ab", 256), ("aba", 257)], &[("ab", "a"), ("a", "b")])).unwrap();
    assert!(!tokenizer.is_fast());
    assert_eq!(encode(&tokenizer, "abab"), [257, 98]);
    // Each of two neighbours wants the same `c`.
    let tokens = [("ab", 256), ("abc", 257), ("cab", 258)];
    let tokenizer = load(&file(&tokens, &[("c", "ab"), ("ab", "c"), ("a", "b")])).unwrap();
    assert!(!tokenizer.is_fast());
    assert_eq!(encode(&tokenizer, "abcab"), [257, 256]);
    // Two neighbours are joined before the next one is made.
    let tokenizer = load(&file(&[("ab", 256), ("abab", 257)], &[("ab", "ab"), ("a", "b")])).unwrap();
    assert!(!tokenizer.is_fast());
    assert_eq!(encode(&tokenizer, "ababab"), [257, 256]);
    // On the left, nothing is left to be made.
    let tokenizer = load(&file(&[("ab", 256), ("bab", 257)], &[("b", "ab"), ("a", "b")])).unwrap();
    assert!(tokenizer.is_fast());
    assert_eq!(encode(&tokenizer, "babbab"), [257, 257]);
}

#[test]
fn a_token_that_no_merge_makes_is_found_only_as_a_whole_piece() {
    let mut file = file(&[("ab", 256), ("xyz", 257)], &[("a", "b")]);
    file["model"]["ignore_merges"] = true.into();
    let tokenizer = load(&file).unwrap();
    assert_eq!(encode(&tokenizer, "xyz"), [257]);
    assert_eq!(encode(&tokenizer, "xyza"), [120, 121, 122, 97]);
    file["model"]["ignore_merges"] = false.into();
    assert_eq!(encode(&load(&file).unwrap(), "xyz"), [120, 121, 122]);
}

#[test]
fn merges_may_be_strings() {
    let mut file = file(&[(" a", 256)], &[]);
    file["model"]["merges"] = json!(["Ġ a"]);
    assert_eq!(encode(&load(&file).unwrap(), "a a"), [97, 256]);
    file["model"]["merges"] = json!(["Ġ a b"]);
    assert!(load(&file).is_err());
}

/// A change to a part of a file, and what the error says is missing.
fn missing(path: &str, value: Value) -> String {
    let mut file = file(&[], &[]);
    *file.pointer_mut(path).unwrap() = value;
    match load(&file) {
        Err(ErrorKind::Unsupported { missing }) => missing,
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn what_is_not_byte_level_is_named() {
    let unigram = json!({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5]]});
    assert_eq!(missing("/model", unigram), "the model Unigram");
    assert_eq!(missing("/model", json!({"type": "WordPiece", "vocab": {"a": 1}})), "the model WordPiece");
    let fallback = json!({"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": []});
    assert!(missing("/model", fallback).contains("byte_fallback, as SentencePiece"));
    let few = json!({"type": "BPE", "vocab": {"a": 0}, "merges": []});
    assert_eq!(missing("/model", few), "a vocabulary without the byte 0x00");
    assert_eq!(missing("/normalizer", json!({"type": "Lowercase"})), "the normalizer Lowercase");
    let sequence =
        json!({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend", "prepend": "▁"}]});
    assert_eq!(missing("/normalizer", sequence), "the normalizer Prepend");
    assert_eq!(missing("/pre_tokenizer", json!({"type": "Metaspace"})), "the pre-tokenizer Metaspace");
    assert_eq!(missing("/pre_tokenizer", Value::Null), "a vocabulary that is not byte-level");
    let split =
        json!({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "MergedWithNext", "invert": false});
    assert!(missing("/pre_tokenizer", split).contains("MergedWithNext"));
    let anchored =
        json!({"type": "Split", "pattern": {"Regex": "^a"}, "behavior": "Isolated", "invert": false});
    assert!(missing("/pre_tokenizer", anchored).contains("anchors"));
    assert_eq!(missing("/post_processor", json!({"type": "Other"})), "the post-processor Other");
    assert_eq!(missing("/decoder", json!({"type": "WordPiece"})), "the decoder WordPiece");
    assert_eq!(missing("/decoder", Value::Null), "no decoder");
}

#[test]
fn what_contradicts_itself_is_refused() {
    for bytes in [&b""[..], b"{", b"[]", b"null", b"{\"model\": 1}", b"\xff"] {
        let error = Tokenizer::from_json(bytes, &Task::new()).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::BadVocabulary { .. }), "{error}");
    }
    assert!(
        matches!(load(&file(&[("ab", 97)], &[])), Err(ErrorKind::BadVocabulary { .. })),
        "two with one number"
    );
    assert!(
        matches!(load(&file(&[], &[("a", "b")])), Err(ErrorKind::BadVocabulary { .. })),
        "a merge of nothing"
    );
}

#[test]
fn a_load_is_stopped() {
    let stop = |_| true;
    let json = file(&[], &[]).to_string();
    let error = Tokenizer::from_json(json.as_bytes(), &Task::with_poll(&stop)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Stopped);
}

/// A model with everything: added tokens, a normalizer, a template.
fn complete() -> Tokenizer {
    let mut file = file(&[("é", 256), (" b", 257)], &[("\u{c3}", "\u{a9}"), (" ", "b")]);
    file["model"]["merges"][0] = json!([letter(0xc3).to_string(), letter(0xa9).to_string()]);
    file["normalizer"] = json!({"type": "NFC"});
    file["added_tokens"] =
        json!([added("<s>", 258, true), added("</s>", 259, true), added("<tool>", 260, false)]);
    file["added_tokens"][2]["rstrip"] = true.into();
    file["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "</s>", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [258], "tokens": ["<s>"]},
            "</s>": {"id": "</s>", "ids": [259], "tokens": ["</s>"]}},
    });
    load(&file).unwrap()
}

#[test]
fn a_template_and_added_tokens_go_around_and_into_a_text() {
    let (tokenizer, task) = (complete(), Task::new());
    let text = "e\u{301} b<tool>  a</s>";
    let tokens = [258, 256, 257, 260, 97, 259, 259];
    assert_eq!(encode(&tokenizer, text), tokens);
    assert_eq!(tokenizer.count(text, Options::default(), &task).unwrap(), 7);
    let bare = Options { add_special_tokens: false, split_special_tokens: true };
    let plain = tokenizer.encode(text, bare, &task).unwrap();
    assert_eq!(plain, [256, 257, 260, 97, 60, 47, 115, 62]);
    let decoded = |skip| String::from_utf8(tokenizer.decode_bytes(&tokens, skip, &task).unwrap()).unwrap();
    assert_eq!((&*decoded(true), &*decoded(false)), ("é b<tool>a", "<s>é b<tool>a</s></s>"));
    assert_eq!(tokenizer.decode_bytes(&[97, 9999], true, &task).unwrap(), b"a", "9999 is no token");
}

#[test]
fn the_templates_of_bert_and_roberta_have_one_token_at_each_end() {
    for (kind, offsets) in [("BertProcessing", [(0, 1), (1, 3)]), ("RobertaProcessing", [(0, 1), (2, 3)])] {
        let mut file = file(&[(" b", 256)], &[(" ", "b")]);
        file["post_processor"] = json!({"type": kind, "cls": ["<s>", 300], "sep": ["</s>", 301], "trim_offsets": true,
            "add_prefix_space": false});
        let tokenizer = load(&file).unwrap();
        assert_eq!(encode(&tokenizer, "a b"), [300, 97, 256, 301], "{kind}");
        let bare = Options { add_special_tokens: false, ..Options::default() };
        let encoded = tokenizer.encode_with_offsets("a b", Unit::Bytes, bare, &Task::new()).unwrap();
        assert_eq!((encoded.tokens, encoded.offsets), (vec![97, 256], offsets.to_vec()), "{kind}");
    }
}

#[test]
fn offsets_are_those_of_the_text_that_was_given() {
    let tokenizer = complete();
    let offsets = |unit| {
        let text = "e\u{301} b<tool>  aé";
        tokenizer.encode_with_offsets(text, unit, Options::default(), &Task::new()).unwrap().offsets
    };
    let bytes = [(0, 0), (0, 1), (3, 5), (5, 13), (13, 14), (14, 16), (0, 0)];
    let characters = [(0, 0), (0, 1), (2, 4), (4, 12), (12, 13), (13, 14), (0, 0)];
    assert_eq!((offsets(Unit::Bytes), offsets(Unit::Characters)), (bytes.into(), characters.into()));
}

#[test]
fn blanks_that_offsets_leave_out_are_characters_of_the_text() {
    let mut file = file(&[], &[]);
    file["normalizer"] = json!({"type": "NFKC"});
    file["post_processor"] = json!({"type": "ByteLevel", "trim_offsets": true, "add_prefix_space": false});
    let tokenizer = load(&file).unwrap();
    let offsets = |text, unit| {
        tokenizer.encode_with_offsets(text, unit, Options::default(), &Task::new()).unwrap().offsets
    };
    assert_eq!(offsets("a\u{3000}b", Unit::Characters), [(0, 1), (2, 2), (2, 3)]);
    assert_eq!(offsets("a\u{3000}b", Unit::Bytes), [(0, 1), (4, 4), (4, 5)]);
    assert_eq!(offsets("\u{a0}é", Unit::Bytes)[0], (2, 2));
}

#[test]
fn a_token_of_a_part_of_a_character_has_the_whole_as_its_place() {
    let tokenizer = load(&file(&[], &[])).unwrap();
    let encoded = tokenizer.encode_with_offsets("aé", Unit::Characters, Options::default(), &Task::new());
    assert_eq!(encoded.unwrap().offsets, [(0, 1), (1, 2), (1, 2)]);
}

#[test]
fn a_prefix_has_as_many_tokens_as_are_allowed() {
    let (tokenizer, task) = (complete(), Task::new());
    let text = "e\u{301} b<tool>  a";
    let kept = |max| {
        let kept = tokenizer.truncate(text, max, Options::default(), &task).unwrap();
        (&text[..kept.bytes], kept.tokens)
    };
    assert_eq!(kept(1), ("", vec![]));
    assert_eq!(kept(2), ("", vec![258, 259]));
    assert_eq!(kept(3), ("e\u{301}", vec![258, 256, 259]));
    assert_eq!(kept(5), ("e\u{301} b<tool>  ", vec![258, 256, 257, 260, 259]));
    assert_eq!(kept(9), (text, vec![258, 256, 257, 260, 97, 259]));
}

/// `complete`, a model whose added token has to be a word, one that puts a blank before a text, and one whose added tokens
/// depend on nothing.
fn models() -> [Tokenizer; 4] {
    let mut words = file(&[(" b", 257)], &[(" ", "b")]);
    words["added_tokens"] = json!([added("ing", 258, false)]);
    words["added_tokens"][0]["single_word"] = true.into();
    let mut blank = file(&[(" b", 257)], &[(" ", "b")]);
    blank["pre_tokenizer"]["add_prefix_space"] = true.into();
    let mut plain = file(&[(" b", 257)], &[(" ", "b")]);
    plain["added_tokens"] = json!([
        added("<s>", 258, true),
        added("</s>", 259, true),
        added("<tool>", 260, false),
        added("  ", 261, false)
    ]);
    [complete(), load(&words).unwrap(), load(&blank).unwrap(), load(&plain).unwrap()]
}

const BOUNDARIES: [Boundary; 5] =
    [Boundary::Token, Boundary::Word, Boundary::Sentence, Boundary::Line, Boundary::Paragraph];

proptest! {
    #[test]
    fn chunks_have_the_tokens_of_their_texts(
        parts in prop::collection::vec(prop::sample::select(&[
            "a", " b", "e\u{301}", "é", "\u{301}", "<s>", "</s>", "<tool>", "  ", ". ", "。", "\n\n", "ing",
        ]), 0..40),
        max_tokens in 5_usize..12,
        overlap in 0_usize..5,
    ) {
        let (text, task) = (parts.concat(), Task::new());
        let plain = Options { add_special_tokens: false, ..Options::default() };
        for (model, tokenizer) in models().iter().enumerate() {
            let count = |part: &str| tokenizer.count(part, plain, &task).unwrap();
            for boundary in BOUNDARIES {
                let options = ChunkOptions { max_tokens, overlap, boundary };
                let chunks = tokenizer.chunks(&text, options, &task).unwrap();
                let context = format!("{model} {text:?} {options:?}: {chunks:?}");
                let mut end = 0;
                for chunk in &chunks {
                    let bytes = chunk.bytes.clone();
                    prop_assert_eq!(chunk.tokens, count(&text[bytes.clone()]), "{}", context);
                    prop_assert!(chunk.tokens <= max_tokens, "{}", context);
                    prop_assert!(bytes.start <= end && bytes.end > end, "{}", context);
                    prop_assert!(count(&text[bytes.start..end]) <= overlap, "{}", context);
                    let characters = text[..bytes.start].chars().count()..text[..bytes.end].chars().count();
                    prop_assert_eq!(&chunk.characters, &characters, "{}", context);
                    end = bytes.end;
                }
                prop_assert_eq!(end, text.len(), "{}", context);
            }
        }
    }
}

#[test]
fn chunks_are_long_and_keep_added_tokens_whole() {
    let tokenizer = complete();
    let chunks = |text: &str, max_tokens, overlap| {
        let options = ChunkOptions { max_tokens, overlap, boundary: Boundary::Token };
        let chunks = tokenizer.chunks(text, options, &Task::new()).unwrap();
        chunks.iter().map(|chunk| text[chunk.bytes.clone()].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(chunks("a b<tool>  a</s>a b", 3, 0), ["a b<tool>  ", "a</s>a", " b"]);
    assert_eq!(chunks("a b<tool>  a</s>a b", 3, 1), ["a b<tool>  ", "<tool>  a</s>", "</s>a b"]);
    assert_eq!(chunks("a b a b a b", 2, 0), ["a b", " a", " b", " a", " b"]);
    assert_eq!(chunks("e\u{301}e\u{301}e\u{301}", 2, 0).concat(), "e\u{301}e\u{301}e\u{301}");
    assert!(chunks("", 1, 0).is_empty());
    let options = ChunkOptions { max_tokens: 2, overlap: 0, boundary: Boundary::Token };
    let error = tokenizer.chunks("a\u{20ac}", options, &Task::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitTooSmall { needed: 3, offset: 1 });
}

#[test]
fn rows_are_cut_and_filled_up() {
    let (tokenizer, task) = (complete(), Task::new());
    let layout = |truncation_side, padding_side| Layout {
        max_length: Some(4),
        truncation_side,
        length: None,
        multiple_of: 5,
        pad_token: 7,
        padding_side,
    };
    let rows = |truncation, padding| {
        let layout = layout(truncation, padding);
        tokenizer.encode_padded(&["abc", "a"], &layout, Options::default(), 1, &task).unwrap()
    };
    let right = Padded {
        tokens: vec![258, 97, 98, 259, 7, 258, 97, 259, 7, 7],
        mask: vec![1, 1, 1, 1, 0, 1, 1, 1, 0, 0],
        rows: 2,
        columns: 5,
    };
    assert_eq!(rows(Side::Right, Side::Right), right);
    let left = rows(Side::Left, Side::Left);
    assert_eq!(
        (left.tokens, left.mask),
        (vec![7, 258, 98, 99, 259, 7, 7, 258, 97, 259], vec![0, 1, 1, 1, 1, 0, 0, 1, 1, 1])
    );
}

#[test]
fn several_patterns_cut_one_after_the_other() {
    let mut file = file(&[("12", 256), ("ab", 257), (" 1", 258)], &[("1", "2"), ("a", "b"), (" ", "1")]);
    let split = |pattern: &str, behavior: &str, invert: bool| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert});
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false});
    let cuts = |cuts: Vec<Value>| {
        let parts = [cuts, vec![byte_level.clone()]].concat();
        json!({"type": "Sequence", "pretokenizers": parts})
    };
    file["pre_tokenizer"] = cuts(vec![split(r"\p{N}", "Isolated", false), split("a", "Isolated", false)]);
    assert_eq!(encode(&load(&file).unwrap(), "ab12 1"), [97, 98, 49, 50, 32, 49]);
    file["pre_tokenizer"] = cuts(vec![split("[a-z]+", "Removed", true)]);
    assert_eq!(encode(&load(&file).unwrap(), "12ab 1"), [257], "matches alone");
    file["pre_tokenizer"] = cuts(vec![split("[a-z]+", "Removed", false)]);
    assert_eq!(encode(&load(&file).unwrap(), "12ab 1"), [256, 258], "gaps alone");
    let encoded = load(&file).unwrap();
    let encoded = encoded.encode_with_offsets("12ab 1", Unit::Bytes, Options::default(), &Task::new());
    assert_eq!(encoded.unwrap().offsets, [(0, 2), (4, 6)]);
    let prefix =
        |text, max| load(&file).unwrap().truncate(text, max, Options::default(), &Task::new()).unwrap().bytes;
    assert_eq!(
        (prefix("12ab 1ab", 2), prefix("12ab 1ab", 1), prefix("ab", 0)),
        (8, 2, 2),
        "what is removed has no tokens"
    );
    file["pre_tokenizer"] = cuts(Vec::new());
    assert_eq!(encode(&load(&file).unwrap(), "12 1ab"), [256, 258, 257], "one piece");
}

#[test]
fn mistrals_files_have_more_ranks_than_count_and_special_tokens_in_front() {
    let base64 = |bytes: &[u8]| {
        let word = bytes.iter().chain(&[0, 0]).take(3).fold(0, |word, &byte| word << 8 | u32::from(byte));
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digit = |place: usize| char::from(digits[(word >> (18 - 6 * place) & 63) as usize]);
        (0..4).map(|place| if place <= bytes.len() { digit(place) } else { '=' }).collect::<String>()
    };
    let bytes = (0..=255).map(|byte: u8| vec![byte]);
    let ranks = bytes.chain([b"ab".to_vec(), b"cd".to_vec()]).enumerate();
    let vocab: Vec<_> = ranks
        .map(|(rank, bytes)| json!({"rank": rank, "token_bytes": base64(&bytes), "token_str": null}))
        .collect();
    let config = json!({"pattern": r"\p{L}+|\P{L}+", "default_vocab_size": 287, "default_num_special_tokens": 30,
        "num_vocab_tokens": 258, "version": "v3"});
    let tokenizer = load(&json!({"config": config, "vocab": vocab})).unwrap();
    assert_eq!(encode(&tokenizer, "ab cd</s>"), [1, 286, 62, 129, 130, 90, 77, 145, 92], "cd does not count");
    assert_eq!(tokenizer.id_to_token(2).as_deref(), Some("</s>"));
    assert_eq!(tokenizer.id_to_token(9).as_deref(), Some("[TOOL_CALLS]"));
    assert_eq!(tokenizer.id_to_token(29).as_deref(), Some("<SPECIAL_29>"));
    assert_eq!(tokenizer.vocab_size(), 287);
    assert_eq!(tokenizer.decode_bytes(&[1, 286, 2], true, &Task::new()).unwrap(), b"ab");
}

#[test]
fn files_of_ranks_need_a_pattern() {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut file = String::new();
    for byte in 0..=255_u8 {
        let digit = |number: u8| char::from(digits[usize::from(number)]);
        file += &format!("{}{}== {byte}\n", digit(byte >> 2), digit((byte & 3) << 4));
    }
    file += "YWI= 256\r\n\n";
    let with = |file: &str, specials: &[(&str, u32)]| {
        let specials = specials.iter().map(|&(text, id)| (text.to_owned(), id));
        Tokenizer::from_tiktoken(file.as_bytes(), r"\p{L}+|\P{L}+", specials, &Task::new())
    };
    let load = |file: &str| with(file, &[("<end>", 257), ("é<", 258), ("\u{120}", 259)]);
    let tokenizer = load(&file).unwrap();
    assert_eq!(encode(&tokenizer, "ab<end>a"), [256, 257, 97]);
    let texts = tokenizer.decode_bytes(&[258, 259], false, &Task::new()).unwrap();
    assert_eq!(texts, "é<\u{120}".as_bytes(), "special tokens are not in the byte-level alphabet");
    let refused = |specials| with(&file, specials).unwrap_err().to_string();
    assert!(
        refused(&[("<a>", 257), ("<b>", 257)])
            .contains(r#"the special tokens "<a>" and "<b>" have the number 257"#)
    );
    assert!(refused(&[("<a>", 256)]).contains(r#"the special token "<a>" has the number of the rank 256"#));
    assert!(load("YWI=").is_err() && load("YW 1").is_err() && load("YWI= x").is_err());
}
