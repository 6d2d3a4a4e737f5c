//! The core of offlock: everything that happens while the interpreter lock is not held.
//!
//! Nothing in this crate knows an interpreter. Operations take plain bytes and a [`Task`], poll the
//! task for interruption, and return plain Rust values, so all of it is testable with `cargo test`.

#![deny(unsafe_code)]

mod clock;
pub mod cpu;
pub mod deflate;
mod fork;
mod hash;
pub mod memory;
pub mod msgpack;
mod os;
mod parallel;
pub mod spare_capacity;
mod spin_hint;
pub mod task;
pub mod text;
pub mod time_slice;
pub mod tokens;
pub mod trace;
#[cfg(target_arch = "x86_64")]
mod tsc;

pub use spin_hint::SpinHint;
pub use task::{Stopped, Task};
