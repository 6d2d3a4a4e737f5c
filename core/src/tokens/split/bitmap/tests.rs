//! The bitmaps against the patterns' own functions, with each set of instructions that this processor has.

use super::*;
use proptest::prelude::*;

/// Each way to cut by the rules `R`.
fn ways<R: Rules>() -> Vec<(&'static str, Cut)> {
    let mut ways: Vec<(&str, Cut)> = vec![("best", cut::<R>)];
    #[allow(unsafe_code)]
    // SAFETY: every processor has what this needs.
    ways.push(("portable", |text, range, ends| unsafe { cut_with::<R, Sixteens>(text, range, ends) }));
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    if avx2::is_there() {
        // SAFETY: the processor has what it needs.
        ways.push(("AVX2", |text, range, ends| unsafe { with_avx2::<R>(text, range, ends) }));
    }
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    if avx512::is_there() {
        // SAFETY: the processor has what it needs.
        ways.push(("AVX-512", |text, range, ends| unsafe { with_avx512::<R>(text, range, ends) }));
    }
    ways
}

/// The ends of all pieces of `text` from `from` on that begin before `limit`.
fn all_ends(cut: Cut, text: &str, from: usize, limit: usize) -> Vec<usize> {
    let (mut found, mut at, mut ends) = (Vec::new(), from, Ends::new());
    while at < limit {
        cut(text.as_bytes(), at..limit, &mut ends);
        found.extend_from_slice(ends.as_slice());
        at = *found.last().unwrap();
    }
    found
}

fn check_rules<R: Rules>(name: &str, text: &str) {
    let next = |&at: &usize| (at < text.len()).then(|| R::end(text.as_bytes(), at));
    let expected: Vec<_> = std::iter::successors(next(&0), next).collect();
    for (way, cut) in ways::<R>() {
        assert_eq!(all_ends(cut, text, 0, text.len()), expected, "{name} {way} {text:?}");
        // From a piece in the middle on, and only some of what follows.
        let some = &expected[expected.len() / 3..];
        if let [from, rest @ ..] = some
            && let [limit, ..] = &rest[rest.len() / 2..]
        {
            let behind = rest.iter().position(|end| end >= limit).unwrap();
            assert_eq!(all_ends(cut, text, *from, *limit), rest[..=behind], "{name} {way} {text:?}");
        }
    }
}

fn check(text: &str) {
    check_rules::<Cl100k>("cl100k", text);
    check_rules::<O200k>("o200k", text);
    check_rules::<Llama3>("llama3", text);
    check_rules::<Qwen>("qwen", text);
    check_rules::<Qwen35>("qwen35", text);
    check_rules::<Tekken>("tekken", text);
    check_rules::<DeepSeek>("deepseek", text);
}

/// Of each class and length, and all that the patterns name.
const CHARACTERS: [&str; 48] = [
    "A",
    "É",
    "Ａ",
    "𝐀",
    "a",
    "b",
    "é",
    "ａ",
    "𝐚",
    "ʰ",
    "日",
    "ก",
    "𠀀",
    "\u{301}",
    "\u{e31}",
    "\u{e0100}",
    "1",
    "2",
    "½",
    "३",
    "𝟏",
    " ",
    "\t",
    "\u{a0}",
    "\u{2003}",
    "\u{3000}",
    "\n",
    "\r",
    "'",
    "'s",
    "'Ll",
    "'ſ",
    "!",
    "/",
    "¿",
    "。",
    "😀",
    "\0",
    "’",
    "ſ",
    "!a",
    "ー",
    "龥",
    "龦",
    "\u{3099}",
    "\u{1}",
    "\u{200b}",
    "\u{e0001}",
];

/// Texts of a few kinds of characters each, so that there are runs.
fn mixes() -> impl Strategy<Value = String> {
    let some = prop::collection::vec(prop::sample::select(&CHARACTERS[..]), 1..9);
    some.prop_flat_map(|some| prop::collection::vec((prop::sample::select(some), 1..4_usize), 0..80))
        .prop_map(|parts| parts.into_iter().map(|(part, times)| part.repeat(times)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn mixes_of_all_classes_are_cut_as_piece_by_piece(text in mixes()) {
        check(&text);
    }

    #[test]
    fn words_and_symbols_are_cut_as_piece_by_piece(
        text in "([A-Z]?[a-z]{0,6}('(s|T|ll|VE|rE|x))?[ ,./!]{0,2}(\n[ ]{0,9}|[0-9]{0,7})?){0,40}",
    ) {
        check(&text);
    }

    #[test]
    fn seams_of_blocks_make_no_difference(
        before in prop::sample::select(&["x", " ", "\n", "!", "1", "A", "日", "é", "\u{301}", " a"][..]),
        times in 15..135_usize,
        parts in prop::collection::vec(prop::sample::select(&CHARACTERS[..]), 1..12),
        behind in prop::sample::select(&["", "x", " ", "\n", "!", "1", "A", "日"][..]),
        more in 0..70_usize,
    ) {
        check(&format!("{}{}{}", before.repeat(times), parts.concat(), behind.repeat(more)));
    }
}

#[test]
fn every_character_is_cut_as_by_itself() {
    let all: Vec<char> = (0..=u32::from(char::MAX)).filter_map(char::from_u32).collect();
    for some in all.chunks(997) {
        let around = |c: &char| format!("a{c}b{c}{c}B {c} {c}a!{c}1{c}\n{c}\n/{c}/日{c}'{c}'s{c}   {c}");
        check(&some.iter().map(around).collect::<String>());
    }
}

#[test]
fn every_offset_in_a_block_is_cut_alike() {
    for middle in [
        "it's 1234567 (IT'S) ",
        "日本Abc 日本ABC。日A日B ",
        "x\n \n  \n   y",
        "(a日é\u{1}a!bé \u{200b}\u{200b}c  1  日\u{e0001}x!!y",
        "};\n\n//\n/! x",
        " \u{3000}é\u{a0}!?'ſs",
    ] {
        for before in 0..130 {
            for fill in ["x", " ", "日", "!", "\n", "1", "A"] {
                check(&format!("{}{middle}{middle}{fill}", fill.repeat(before)));
            }
        }
    }
}

#[test]
fn long_runs_are_cut_as_piece_by_piece() {
    for run in ["a", "A", "日", "é", " ", "\n", "1", "३", "!", "/", "\u{301}", "日A", "a'", "\n ", "\u{3000}"]
    {
        for length in [60, 64, 65, 127, 128, 129, 1000, 1100, 5000] {
            for (before, behind) in
                [("", ""), ("日", "a"), ("\n", "\n"), ("!\n", "x"), ("x\n", " !"), (" ", "日")]
            {
                check(&format!("{before}{}{behind}", run.repeat(length)));
            }
        }
    }
}

#[test]
fn text_behind_the_range_is_seen_but_not_cut() {
    let text = "one two ".repeat(100);
    for (name, cut) in ways::<O200k>() {
        let mut ends = Ends::new();
        cut(text.as_bytes(), 0..5, &mut ends);
        assert_eq!(ends.as_slice(), [3, 7], "{name}");
    }
}
