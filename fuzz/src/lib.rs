//! Fuzz targets: each takes any bytes, and panics if the core behaves incorrectly.
//!
//! `cargo fuzz` runs them guided by coverage (`fuzz_targets/`); `tests/smoke.rs` runs them on the kept inputs
//! in `seeds/`, and for a few seconds on mutations of these.

pub mod deflate;
pub mod jsonl;
pub mod model;
pub mod msgpack;
pub mod parquet;
pub mod pipeline;
pub mod text;
pub mod tokens;
pub mod trace;
pub mod vocabulary;
pub mod zstd;

/// A target takes one input.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("deflate", deflate::run),
    ("jsonl", jsonl::run),
    ("model", model::run),
    ("msgpack", msgpack::run),
    ("parquet", parquet::run),
    ("pipeline", pipeline::run),
    ("text", text::run),
    ("tokens", tokens::run),
    ("trace", trace::run),
    ("vocabulary", vocabulary::run),
    ("zstd", zstd::run),
];
