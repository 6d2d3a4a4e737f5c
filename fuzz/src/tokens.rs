//! The ids of any text are those of tiktoken-rs, their number is the count, and they decode to the text.

use offlock_core::Task;
use offlock_core::tokens;
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
    }
}
