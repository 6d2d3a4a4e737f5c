//! Zstandard, by the reference implementation.
//!
//! ```
//! use offlock_core::zstd::{self, Output, Settings};
//! use offlock_core::Task;
//!
//! let (plain, task) = (b"off the lock ".repeat(1000), Task::new());
//! let mut packed = Output::new();
//! zstd::compress(&plain, &Settings::of_level(3), &mut packed, &task)?;
//! let packed = packed.into_bytes();
//! assert!(packed.len() < 100);
//!
//! let mut unpacked = Output::new();
//! zstd::decompress(&packed, &Default::default(), None, &mut unpacked, &task)?;
//! assert_eq!(&unpacked.into_bytes()[..], plain);
//! # Ok::<_, zstd::Error>(())
//! ```
//!
//! The library's whole-buffer functions cannot be interrupted, so both directions work block by block
//! (`compressor.rs`, `decompressor.rs`); its contexts are kept for the thread's next stream (`encoder.rs`,
//! `decoder.rs`).

mod compressor;
mod decoder;
mod decompressor;
mod dictionary;
mod encoder;
mod error;
mod frame;
mod library;
mod parameters;
#[cfg(test)]
mod tests;
mod train;

pub use compressor::{Compressor, compress};
pub use decoder::DecoderSettings;
pub use decompressor::{Decompressor, Status, decompress, expected_size};
pub use dictionary::{Dictionary, Loading};
pub use encoder::{Mode, Settings};
pub use error::{Error, ErrorKind};
pub use frame::{Header, frame_size, is_skippable, skippable, write_skippable};
pub use library::{version, version_number};
pub use parameters::{DEFAULT_LEVEL, Parameter, WINDOW_LOG_MAX, window_log_max_bounds};
pub use train::{Samples, finalize, train};

pub use crate::output::{Bytes, Output};
