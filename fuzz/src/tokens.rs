//! The ids of any text are those of tiktoken-rs, their number is the count, and they decode to the text. Chunks of it
//! have the tokens that they say, and leave nothing out.

use offlock_core::Task;
use offlock_core::tokens::{self, Boundary, ChunkOptions, Encoding};
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
    }
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
