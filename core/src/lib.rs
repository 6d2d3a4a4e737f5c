//! The core of offlock: all the work that the front ends do without the interpreter lock, and the recorder of
//! traces.
//!
//! No part of this crate knows an interpreter. Operations take plain bytes and a [`Task`], check the task at
//! least once per millisecond of work, and return plain Rust values, so all of it is testable with
//! `cargo test`.
//!
//! - [`tokens`] is byte pair encoding, with tiktoken's results.
//! - [`deflate`] is zlib, gzip and raw deflate.
//! - [`msgpack`] is MessagePack.
//! - [`jsonl`] takes fields out of JSON lines.
//! - [`zstd`] is Zstandard.
//! - [`text`] cuts, validates and stores many strings.
//! - [`pipeline`] turns compressed shards of documents into counts or files of tokens.
//! - [`trace`] records and analyzes how threads use an interpreter lock.
//! - [`task`] is interruption and progress, [`memory`] allocation that can fail.
//! - [`Operation`] and [`Release`] decide whether a call releases the lock.
//! - [`time_slice`], [`SpinHint`], [`cpu`] and [`spare_capacity`] are policies that both front ends share.

#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod away;
mod clock;
pub mod cpu;
pub mod deflate;
mod field;
mod fork;
mod hash;
pub mod jsonl;
pub mod memory;
pub mod msgpack;
mod operation;
mod os;
mod output;
mod pages;
mod parallel;
pub mod parquet;
pub mod pipeline;
mod processors;
pub mod spare_capacity;
mod spin_hint;
pub mod task;
pub mod text;
pub mod time_slice;
pub mod tokens;
pub mod trace;
#[cfg(target_arch = "x86_64")]
mod tsc;
pub mod zstd;

pub use field::Field;
pub use operation::{Operation, Release};
pub use spin_hint::SpinHint;
pub use task::{Stopped, Task};
