//! The tokenizer against tiktoken-rs and against itself, on texts that nobody wrote.

use offlock_core::Task;
use offlock_core::tokens::{self, Encoding, Specials, TokenId};
use proptest::prelude::*;
use std::sync::LazyLock;
use tiktoken_rs::CoreBPE;

static PEERS: LazyLock<[(&str, CoreBPE); 3]> = LazyLock::new(|| {
    [
        ("r50k_base", tiktoken_rs::r50k_base().unwrap()),
        ("cl100k_base", tiktoken_rs::cl100k_base().unwrap()),
        ("o200k_base", tiktoken_rs::o200k_base().unwrap()),
    ]
});

fn encode(encoding: &Encoding, text: &str) -> Vec<TokenId> {
    encoding.encode_ordinary(text, &Task::new()).unwrap()
}

/// What patterns tell apart: words, numbers, symbols, white space, contractions with odd apostrophes, marks.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,12}",
        2 => "[A-Z]{0,3}[a-z]{0,9}",
        2 => "[ \t\r\n\u{a0}\u{2003}\u{85}]{1,6}",
        1 => "[0-9٣৪Ⅷ½]{1,7}",
        1 => "['’ʼ＇](?i:s|t|re|ve|m|ll|d|ſ|K)",
        2 => r#"[!-/:-@\[-`{-~]{1,6}"#,
        2 => "[а-яА-Яёґ]{1,14}",
        2 => "[的一是在不了有和人这中大为上个国我以要他]{1,20}",
        2 => "[ก-๛]{1,16}",
        1 => "[ಀ-ೲ]{1,12}",
        1 => "[\u{0300}-\u{036f}\u{200d}\u{fe0f}\u{180e}]{1,3}",
        1 => "[👍🏽👨👩👧🇩🇪]{1,4}",
        2 => "\\PC{1,8}",
        1 => any::<char>().prop_map(String::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 0..24).prop_map(|fragments| fragments.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_texts_get_the_tokens_that_tiktoken_gives(text in text()) {
        for (name, peer) in &*PEERS {
            let ours = tokens::get(name).unwrap();
            prop_assert_eq!(encode(ours, &text), peer.encode_ordinary(&text), "{}", name);
        }
    }

    #[test]
    fn counting_decoding_and_truncating_agree_with_encoding(text in text(), max in 0_usize..40) {
        for (name, _) in &*PEERS {
            let ours = tokens::get(name).unwrap();
            let tokens = encode(ours, &text);
            prop_assert_eq!(ours.count_ordinary(&text, &Task::new()).unwrap(), tokens.len());
            prop_assert_eq!(ours.decode_bytes(&tokens, &Task::new()).unwrap(), text.as_bytes());
            let kept = ours.truncate(&text, max, Specials::None, &Task::new()).unwrap();
            prop_assert!(kept.tokens.len() <= max && tokens.starts_with(&kept.tokens));
            prop_assert_eq!(
                ours.decode_bytes(&kept.tokens, &Task::new()).unwrap(),
                &text.as_bytes()[..kept.bytes]
            );
        }
    }
}

/// What is remembered from one text must not show in the next one.
#[test]
fn a_text_gets_the_same_tokens_however_often_and_after_whatever_else() {
    let ours = tokens::get("o200k_base").unwrap();
    let words =
        ["antidisestablishmentarianism", "неудовлетворительно", "ความสัมพันธ์", "aaaaaaaaaaaaaaa", "zxqjvkw"];
    let texts: Vec<String> =
        (0..20_000).map(|n| format!("{}{} {n}", words[n % 5], words[n / 5 % 5])).collect();
    let first: Vec<_> = texts.iter().map(|text| encode(ours, text)).collect();
    for (text, expected) in texts.iter().zip(&first).rev() {
        assert_eq!(encode(ours, text), *expected, "{text}");
        assert_eq!(ours.decode_bytes(expected, &Task::new()).unwrap(), text.as_bytes());
    }
}

/// Texts on which other tokenizers take quadratic time, give up or end the process.
#[test]
fn a_million_equal_characters_are_encoded_and_decoded() {
    for name in tokens::names() {
        let ours = tokens::get(name).unwrap();
        for run in ["a", " ", "\n", "0", "!", "的", "ß", "\u{301}", "A", "ab", " \n", "👍"] {
            let text = run.repeat(1_000_000 / run.len());
            let tokens = encode(ours, &text);
            assert_eq!(ours.decode_bytes(&tokens, &Task::new()).unwrap(), text.as_bytes(), "{name} {run:?}");
        }
    }
}

/// A custom vocabulary for which pieces are joined by a heap stops within one as well.
#[test]
fn a_long_piece_of_an_unorderly_vocabulary_can_be_stopped() {
    let bytes = (0..=255).map(|byte: u8| (vec![byte], u32::from(byte) + 1));
    // "abc" is not the join of two tokens, so the vocabulary is not orderly.
    let ranks = bytes.chain([(b"abc".to_vec(), 0), (b"aa".to_vec(), 300)]);
    let ours = Encoding::new("custom", r"\w+", ranks, [], &Task::new()).unwrap();
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let poll = |_| looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 5;
    let text = "ab".repeat(500_000); // no run of one byte, which takes no time
    let stopped = ours.encode_ordinary(&text, &Task::with_poll(&poll));
    assert_eq!(stopped, Err(offlock_core::Stopped.into()));
}

/// Documents of tokens of the vocabulary and pieces of them, most of which are short words that occur again.
fn documents(encoding: &Encoding) -> Vec<String> {
    let tokens: Vec<String> =
        encoding.ranks().map(|(bytes, _)| String::from_utf8_lossy(bytes).into_owned()).collect();
    let mut state = 1_u64;
    let mut chance = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut document = || {
        let mut text = String::new();
        while text.len() < 100 {
            let token = &tokens[if chance(2) == 0 { chance(2_000) } else { chance(tokens.len()) }];
            text.push_str(if token.len() < 40 { token } else { " long" });
            if chance(3) == 0 {
                text.push_str(["x", "-", "é", "  ", "\n\n", "9"][chance(6)]);
            }
        }
        text
    };
    (0..20_000).map(|_| document()).collect()
}

/// An encoding like a public one that has not seen any text.
fn unused(public: &Encoding) -> Encoding {
    let ranks: Vec<_> = public.ranks().map(|(bytes, id)| (bytes.to_vec(), id)).collect();
    Encoding::new("unused", public.pattern(), ranks, [], &Task::new()).unwrap()
}

#[test]
fn new_words_that_come_again_soon_get_the_same_tokens() {
    for (name, _) in &*PEERS {
        let public = tokens::get(name).unwrap();
        let documents = documents(public);
        // So little text is all in all encoded without the words.
        let (cold, warm) = (unused(public), unused(public));
        for number in 0..2 {
            encode(&warm, &documents[10_000 * number..][..10_000].concat());
        }
        for number in 0..10 {
            let new: Vec<_> =
                documents[60 * number..][..60].iter().map(|text| text.replace('e', "eqz")).collect();
            let text = [&new[..], &new[30..], &new[..]].concat().concat();
            assert_eq!(encode(&warm, &text), encode(&cold, &text), "{name}: {text:?}");
        }
    }
}

#[test]
fn words_that_were_seen_change_no_answer() {
    for (name, _) in &*PEERS {
        let public = tokens::get(name).unwrap();
        let documents = documents(public);
        // Texts as short as these do not count as much text, so this encoding never looks among the words.
        let cold = unused(public);
        let wanted: Vec<_> = documents.iter().map(|text| encode(&cold, text)).collect();
        let warm = unused(public);
        // All threads begin at once, so that the vocabulary is entered while others look.
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (warm, documents, wanted) = (&warm, &documents, &wanted);
                scope.spawn(move || {
                    for number in 0..2 * documents.len() {
                        let at = (number + thread * 3_000) % documents.len();
                        assert_eq!(encode(warm, &documents[at]), wanted[at], "{name}: {:?}", documents[at]);
                        if number % 200 == 0 {
                            encode(warm, &documents[at..documents.len().min(at + 100)].concat());
                        }
                    }
                });
            }
        });
    }
}
