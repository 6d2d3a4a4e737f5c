//! Chunks of texts, compared with a slow way to cut them.

use fancy_regex::Regex;
use offlock_core::Task;
use offlock_core::tokens::{self, Boundary, Chunk, ChunkOptions, Encoding, ErrorKind};
use proptest::collection::vec;
use proptest::prelude::*;

const ALL: [Boundary; 5] =
    [Boundary::Token, Boundary::Word, Boundary::Sentence, Boundary::Line, Boundary::Paragraph];
const NAMES: [&str; 4] = ["gpt2", "cl100k_base", "o200k_base", "p50k_base"];

fn count(encoding: &Encoding, text: &str) -> usize {
    encoding.count_ordinary(text, &Task::new()).unwrap()
}

fn cut(encoding: &Encoding, text: &str, max_tokens: usize, overlap: usize, boundary: Boundary) -> Vec<Chunk> {
    encoding.chunks(text, ChunkOptions { max_tokens, overlap, boundary }, &Task::new()).unwrap()
}

fn texts<'a>(text: &'a str, chunks: &[Chunk]) -> Vec<&'a str> {
    chunks.iter().map(|chunk| &text[chunk.bytes.clone()]).collect()
}

/// Where chunks without an overlap end if pieces are cut by the regular expression, anew from each chunk on; `None`
/// if a piece is too long.
fn slow_ends(encoding: &Encoding, text: &str, max_tokens: usize) -> Option<Vec<usize>> {
    let pattern = Regex::new(encoding.pattern()).unwrap();
    let (mut start, mut ends) = (0, Vec::new());
    while start < text.len() {
        let pieces = pattern.find_iter(&text[start..]).map(|found| found.unwrap());
        let mut tokens = 0;
        let fits = |piece: &fancy_regex::Match<'_>| {
            let bytes = &text.as_bytes()[start + piece.start()..start + piece.end()];
            let before = tokens;
            tokens += encoding.encode_single_piece(bytes, &Task::new()).unwrap().len();
            before <= max_tokens // white space at the end of a chunk may have fewer tokens
        };
        let fitting = pieces.take_while(fits).map(|piece| start + piece.end());
        let end = fitting.filter(|&end| count(encoding, &text[start..end]) <= max_tokens).max()?;
        ends.push(end);
        start = end;
    }
    Some(ends)
}

fn check(encoding: &Encoding, text: &str, max_tokens: usize, overlap: usize, boundary: Boundary) {
    let chunks = cut(encoding, text, max_tokens, overlap, boundary);
    let context = format!("{} {text:?} {max_tokens} {overlap} {boundary:?}: {chunks:?}", encoding.name());
    let (mut start, mut end) = (0, 0);
    for (index, chunk) in chunks.iter().enumerate() {
        let bytes = chunk.bytes.clone();
        assert_eq!(chunk.tokens, count(encoding, &text[bytes.clone()]), "{context}");
        assert!(chunk.tokens <= max_tokens, "{context}");
        let characters = text[..bytes.start].chars().count()..text[..bytes.end].chars().count();
        assert_eq!(chunk.characters, characters, "{context}");
        assert!(bytes.start <= end && bytes.end > end && (index == 0 || bytes.start > start), "{context}");
        assert!(count(encoding, &text[bytes.start..end]) <= overlap, "{context}");
        (start, end) = (bytes.start, bytes.end);
    }
    assert_eq!(end, text.len(), "{context}");
}

fn any_text() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        4 => "[a-zA-Z]{1,12}",
        3 => " {1,3}",
        2 => "[.!?,;:'\"()]{1,3}",
        2 => "[\r\n\t ]{1,4}",
        2 => "[0-9]{1,7}",
        1 => "(don't|I'll|fooBar|HTTPServer|\\.\\.\\.)",
        1 => "[äöüßéàñçœ]{1,4}",
        1 => "[一-龠ぁ-ん。、！]{1,9}",
        1 => "[ก-ฮะาำ]{1,6}",
        1 => "(👩‍👩‍👧|🏳️‍🌈|e\u{301}|\u{200d})",
        1 => ".{1,4}",
    ];
    vec(parts, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn every_chunk_is_as_it_says(text in any_text(), max in 16_usize..60, overlap in 0_usize..16) {
        for name in NAMES {
            for boundary in ALL {
                check(tokens::get(name).unwrap(), &text, max, overlap, boundary);
            }
        }
    }

    /// Limits of a few tokens cut pieces, and characters of up to four tokens only just fit.
    #[test]
    fn small_limits_cut_pieces(text in any_text(), max in 10_usize..16, overlap in 0_usize..10) {
        for name in NAMES {
            check(tokens::get(name).unwrap(), &text, max, overlap, Boundary::Token);
        }
    }

    #[test]
    fn chunks_are_as_long_as_they_can_be(text in any_text(), max in 4_usize..40) {
        for name in NAMES {
            let encoding = tokens::get(name).unwrap();
            if let Some(expected) = slow_ends(encoding, &text, max) {
                let chunks = cut(encoding, &text, max, 0, Boundary::Token);
                let ends: Vec<usize> = chunks.iter().map(|chunk| chunk.bytes.end).collect();
                prop_assert_eq!(ends, expected, "{}", name);
            }
        }
    }

    /// Looks ahead and behind, and leaves gaps between pieces.
    #[test]
    fn patterns_that_are_not_matched_by_hand(text in "[ab ]{0,60}", max in 1_usize..9, pattern in 0_usize..3) {
        let patterns = [r"a+(?=b)|b+|(?<=b)a", r"\w+", r"a(?!a)|a+(?!\s)|[b ]"];
        let ranks = (0..=255).map(|byte: u8| (vec![byte], byte.into()));
        let ranks = ranks.chain([(b"aa".to_vec(), 256), (b"ab".to_vec(), 257)]);
        let encoding = Encoding::new("custom", patterns[pattern], ranks, [], &Task::new()).unwrap();
        for boundary in ALL {
            check(&encoding, &text, max, 0, boundary);
            check(&encoding, &text, max, max / 2, boundary);
        }
    }
}

const PROSE: &str = "First. Here is a second sentence! Is this the third?\nA line.\n\nA paragraph that isn't short, \
                     e.g. by 12345 words.\n \nThe end of this text is here.";

#[test]
fn each_kind_of_boundary() {
    let encoding = tokens::get("cl100k_base").unwrap();
    let ends = |max, boundary| {
        let chunks = cut(encoding, PROSE, max, 0, boundary);
        assert_eq!(texts(PROSE, &chunks).concat(), PROSE);
        texts(PROSE, &chunks).into_iter().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(
        ends(19, Boundary::Paragraph),
        [
            "First. Here is a second sentence! Is this the third?\nA line.\n\n",
            "A paragraph that isn't short, e.g. by 12345 words.\n \n",
            "The end of this text is here.",
        ]
    );
    assert_eq!(ends(15, Boundary::Line)[0], "First. Here is a second sentence! Is this the third?\n");
    assert_eq!(
        ends(10, Boundary::Sentence)[..2],
        ["First. Here is a second sentence!", " Is this the third?\nA line.\n\n"]
    );
    assert_eq!(ends(3, Boundary::Word)[..3], ["First. Here", " is a second", " sentence! Is"]);
    // `isn't` and `12345` are two pieces each.
    let words = ends(4, Boundary::Word).join("|");
    assert!(words.contains("isn't") && words.contains("12345"), "{words}");
    let tokens = ends(4, Boundary::Token).join("|");
    assert!(tokens.contains("123|45") || tokens.contains("isn|'t"), "{tokens}");
}

#[test]
fn chinese_is_cut_at_its_own_marks() {
    let text = "今天天气很好。我们去公园散步吧！你觉得怎么样？好的";
    let encoding = tokens::get("o200k_base").unwrap();
    let chunks = cut(encoding, text, 10, 0, Boundary::Sentence);
    assert_eq!(texts(text, &chunks), ["今天天气很好。", "我们去公园散步吧！", "你觉得怎么样？好的"]);
}

#[test]
fn chunks_overlap_by_whole_sentences() {
    let text = "One two. Three four. Five six. Seven eight. Nine ten.";
    let encoding = tokens::get("o200k_base").unwrap();
    let chunks = cut(encoding, text, 7, 4, Boundary::Sentence);
    assert_eq!(
        texts(text, &chunks),
        [
            "One two. Three four.",
            " Three four. Five six.",
            " Five six. Seven eight.",
            " Seven eight. Nine ten.",
        ]
    );
}

#[test]
fn a_piece_that_is_too_long_is_cut_between_its_tokens() {
    let encoding = tokens::get("o200k_base").unwrap();
    let text = "ab".repeat(50_000);
    for overlap in [0, 1, 9] {
        check(encoding, &text, 10, overlap, Boundary::Word);
    }
    let chunks = cut(encoding, &text, 10, 0, Boundary::Word);
    assert!(chunks[..chunks.len() - 1].iter().all(|chunk| chunk.tokens >= 9));
}

#[test]
fn a_character_that_is_too_long_is_named() {
    let encoding = tokens::get("gpt2").unwrap();
    let options = ChunkOptions { max_tokens: 2, overlap: 0, boundary: Boundary::Token };
    let error = encoding.chunks("a b 🫠", options, &Task::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitTooSmall { needed: 3, offset: 4 });
}

#[test]
fn nothing_and_little_text() {
    let encoding = tokens::get("gpt2").unwrap();
    for boundary in ALL {
        assert_eq!(cut(encoding, "", 1, 0, boundary), []);
        let chunk = Chunk { bytes: 0..1, characters: 0..1, tokens: 1 };
        assert_eq!(cut(encoding, "a", 1, 0, boundary), [chunk]);
    }
}

#[test]
fn a_stopped_task_ends_it() {
    let task = Task::new();
    task.stop();
    let options = ChunkOptions { max_tokens: 10, overlap: 0, boundary: Boundary::Word };
    let error = tokens::get("gpt2").unwrap().chunks("a b c", options, &task).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Stopped);
}
