//! Fuzz targets: each takes any bytes, and panics where the core does not do what it should.
//!
//! `cargo fuzz` runs them guided by coverage (`fuzz_targets/`); `tests/smoke.rs` runs them on the kept inputs in `seeds/`, and
//! for a few seconds on mutations of these.

pub mod deflate;
pub mod msgpack;
pub mod text;
pub mod tokens;
pub mod trace;
pub mod vocabulary;

/// Takes one input.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("deflate", deflate::run),
    ("msgpack", msgpack::run),
    ("text", text::run),
    ("tokens", tokens::run),
    ("trace", trace::run),
    ("vocabulary", vocabulary::run),
];
