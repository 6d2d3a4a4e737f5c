//! zlib, gzip and raw deflate data.
//!
//! ```
//! use offlock_core::deflate::{self, Output};
//! use offlock_core::Task;
//!
//! let (plain, task) = (b"off the lock ".repeat(1000), Task::new());
//! let mut packed = Output::new();
//! deflate::compress(&plain, 6, 15, &mut packed, &task)?;
//! let packed = packed.into_bytes();
//! assert!(packed.len() < 100);
//!
//! let mut unpacked = Output::new();
//! let read = deflate::decompress(&packed, 15, &mut unpacked, &task)?;
//! assert_eq!((read, &unpacked.into_bytes()[..]), (packed.len(), &plain[..]));
//! # Ok::<_, deflate::Error>(())
//! ```
//!
//! Two engines do the compression: libdeflate for whole buffers (`libdeflate.rs`) and zlib-rs for streams
//! (`zlib_rs.rs`). libdeflate is the faster one, but it can be neither interrupted nor continued; zlib-rs can
//! be both. This module decides which engine gets which buffer and at which level (`policy.rs`, `level.rs`),
//! and adds the formats around raw deflate (`wrapper.rs`, `gzip_header.rs`), limits of the output size
//! (`output.rs`), interruption, and the use of several threads:
//!
//! - many buffers: one each (`batch.rs`);
//! - one stream: blocks with the preceding 32 KB as dictionary, as pigz does (`blocks.rs`);
//! - a gzip file of several members, such as BGZF: one member each (`members.rs`).
//!
//! Levels, `wbits` and strategies are zlib's.

mod batch;
mod blocks;
mod checksum;
mod compress;
mod decompress;
mod deflater;
#[cfg(test)]
mod differential_tests;
mod error;
mod gzip;
mod gzip_header;
mod incompressible;
mod inflater;
mod level;
mod libdeflate;
mod lines;
mod members;

mod output_size;
mod policy;
#[cfg(test)]
mod ratio_tests;
mod short_matches;
mod small;
mod state;
#[cfg(test)]
mod state_tests;
mod stitch;
mod stream;
#[cfg(test)]
mod tests;
mod threads;
mod whole_buffer;
mod wrapper;
mod zlib_rs;

pub use crate::output::{Bytes, Output};
pub use batch::{Batch, IndexedError, deflate_all, groups, inflate_all};
pub use blocks::BlockDeflater;
pub use checksum::{
    adler32, adler32_combine, adler32_of_small, crc_table, crc32, crc32_combine, crc32_of_small,
};
pub use compress::compress;
pub use decompress::{continue_to, decompress};
pub use deflater::Deflater;
pub use error::{Error, ErrorKind};
pub use gzip::{GzipDecoder, Members, first_member, gunzip};
pub use gzip_header::{Header, MAGIC, OS_UNIX, RESERVED};
pub use inflater::Inflater;
pub use lines::end_of_line;
pub use output_size::{expected_size, worth_lending};
pub use stream::{Config, Flush, Status};
