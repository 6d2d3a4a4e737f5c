//! Shards of any bytes: an error or the same counts on any number of threads, and no document of valid JSON is
//! lost.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use offlock_core::pipeline::{self, Format, Model, OnError, Settings, Summary};
use offlock_core::{Task, tokens};
use serde_json::Value;

/// The first byte is the format and the limit of a record, the others are the file.
pub fn run(input: &[u8]) {
    let Some((&choice, content)) = input.split_first() else { return };
    let format = match choice % 5 {
        0 => None,
        1 => Some(Format::Jsonl),
        2 => Some(Format::Msgpack),
        3 => Some(Format::Lines),
        _ => Some(Format::Text),
    };
    let limit = if choice >= 128 { 100 } else { 64 << 20 };
    let one = count(content, format, limit, 1);
    assert_eq!(one, count(content, format, limit, 3));
    let is_plain = limit > content.len() && !is_compressed(content);
    if let (Some(Format::Jsonl), Ok(summary), true) = (format, one, is_plain) {
        let (documents, bytes) = in_the_obvious_way(content);
        let totals = summary.totals();
        // Numbers that the obvious way cannot hold and deep nesting are accepted.
        assert!(totals.documents >= documents && totals.bytes >= bytes);
    }
}

fn count(
    content: &[u8],
    format: Option<Format>,
    limit: usize,
    threads: usize,
) -> Result<Summary, pipeline::ErrorKind> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("offlock-fuzz-{}-{number}", std::process::id()));
    fs::write(&path, content).expect("writable");
    let model = Model::Encoding(tokens::get("gpt2").expect("public"));
    let settings =
        Settings { format, max_doc_bytes: limit, on_error: OnError::Skip, threads, ..Settings::new(model) };
    let shards = pipeline::find(std::slice::from_ref(&path)).expect("a file");
    let counted = pipeline::count(&shards, &settings, &|_| {}, &Task::new());
    fs::remove_file(&path).expect("ours");
    let without_path = |mut summary: Summary| {
        summary
            .shards
            .iter_mut()
            .for_each(|shard| (shard.path, shard.modified) = (path.with_file_name(""), 0));
        summary
    };
    counted.map(without_path).map_err(|error| error.kind)
}

fn is_compressed(content: &[u8]) -> bool {
    content.starts_with(b"\x1f\x8b")
        || content.starts_with(b"\x28\xb5\x2f\xfd")
        || content.get(1..4) == Some(b"\x2a\x4d\x18")
}

/// The number of documents and their bytes.
fn in_the_obvious_way(content: &[u8]) -> (u64, u64) {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let lines =
        content.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let texts: Vec<u64> = lines.filter_map(|value| Some(value.get("text")?.as_str()?.len() as u64)).collect();
    (texts.len() as u64, texts.iter().sum())
}
