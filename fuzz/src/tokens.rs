//! The ids of any text are those of tiktoken-rs, their number is the count, and they decode to the text. Chunks of it
//! have the tokens that they say, and leave nothing out. A stream of it has the same ids, however it is cut.

use offlock_core::Task;
use offlock_core::tokens::{self, Boundary, ChunkOptions, Encoding, Specials, Stream};
use tiktoken_rs::{
    CoreBPE, cl100k_base_singleton, o200k_base_singleton, p50k_base_singleton, r50k_base_singleton,
};

fn oracles() -> [(&'static str, &'static CoreBPE); 4] {
    [
        ("cl100k_base", cl100k_base_singleton()),
        ("o200k_base", o200k_base_singleton()),
        ("p50k_base", p50k_base_singleton()),
        ("r50k_base", r50k_base_singleton()),
    ]
}

/// Runs the target on one input, with U+FFFD for invalid UTF-8.
pub fn run(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let task = Task::new();
    for (name, oracle) in oracles() {
        let encoding = tokens::get(name).expect("a built-in encoding");
        let ids = encoding.encode_ordinary(text, &task).expect("nothing stops the task");
        assert_eq!(ids, oracle.encode_ordinary(text), "{name}");
        assert_eq!(encoding.count_ordinary(text, &task), Ok(ids.len()), "{name}");
        assert_eq!(encoding.decode_bytes(&ids, &task).as_deref(), Ok(text.as_bytes()), "{name}");
        chunks(name, encoding, text, bytes.len());
        for allowed in [Specials::None, Specials::All] {
            stream(name, encoding, text, allowed);
        }
    }
}

/// Feeds the text in pieces whose lengths depend on its bytes.
fn stream(name: &str, encoding: &'static Encoding, text: &str, allowed: Specials<'_>) {
    let task = Task::new();
    let mut stream = Stream::of_encoding(encoding, allowed, None).expect("the pattern is known");
    let (mut ids, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, ..] = rest {
        let (piece, after) = rest.split_at(rest.len().min(1 + usize::from(first % 11)));
        ids.extend(stream.feed(piece, &task).expect("the text is valid"));
        let known = text.len() - after.len();
        if text.is_char_boundary(known) {
            assert_eq!(stream.total(&task), encoding.count(&text[..known], allowed, &task), "{name}");
        }
        rest = after;
    }
    ids.extend(stream.finish(&task).expect("the text is complete"));
    assert_eq!(Ok(ids), encoding.encode(text, allowed, &task), "{name} {allowed:?}");
}

/// Cuts the text with limits that depend on `seed`.
fn chunks(name: &str, encoding: &Encoding, text: &str, seed: usize) {
    let task = Task::new();
    let kinds = [Boundary::Token, Boundary::Word, Boundary::Sentence, Boundary::Line, Boundary::Paragraph];
    let max_tokens = 8 + seed % 40;
    let options =
        ChunkOptions { max_tokens, overlap: seed / 3 % max_tokens, boundary: kinds[seed % kinds.len()] };
    let mut end = 0;
    for chunk in encoding.chunks(text, options, &task).expect("no character has more than 8 tokens") {
        let count = |range| encoding.count_ordinary(&text[range], &task).expect("nothing stops the task");
        assert_eq!(chunk.tokens, count(chunk.bytes.clone()), "{name} {options:?}");
        assert!(chunk.tokens <= max_tokens, "{name} {options:?}");
        assert!(chunk.bytes.start <= end && chunk.bytes.end > end, "{name} {options:?}");
        assert!(count(chunk.bytes.start..end) <= options.overlap, "{name} {options:?}");
        end = chunk.bytes.end;
    }
    assert_eq!(end, text.len(), "{name} {options:?}");
}
