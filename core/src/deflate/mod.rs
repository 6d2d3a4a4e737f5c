//! zlib, gzip and raw deflate data.
//!
//! The engines come from elsewhere, chosen by measurement: zlib-rs for streams (`stream.rs`), libdeflate for whole
//! buffers (`whole.rs`). What is here is what makes them one: which engine a buffer goes to, the formats around
//! them, limits, interruption, and the ways to use all cores.

mod checksum;
#[cfg(test)]
mod differential_tests;
mod error;
mod frame;
mod gzip;
mod level;
mod lines;
mod members;
mod noise;
mod one_shot;
mod output;
mod parallel;
#[cfg(test)]
mod ratio_tests;
mod raw;
mod seam;
mod short_matches;
mod small;
mod state;
#[cfg(test)]
mod state_tests;
mod stream;
#[cfg(test)]
mod tests;
mod whole;

pub use checksum::{
    adler32, adler32_combine, adler32_of_small, crc_table, crc32, crc32_combine, crc32_of_small,
};
pub use error::{Error, ErrorKind};
pub use gzip::{GzipDecoder, Header, MAGIC, Members, OS_UNIX, RESERVED, first_member};
pub use lines::end_of_line;
pub use one_shot::{compress, continue_to, decompress, expected_size, worth_lending};
pub use output::{Bytes, Output};
pub use parallel::{Batch, BlockDeflater, IndexedError, deflate_all, groups, gunzip, inflate_all};
pub use raw::Config;
pub use stream::{Deflater, Flush, Inflater, Status};
