//! zlib, gzip and raw deflate data.
//!
//! The engines come from elsewhere, chosen by measurement: zlib-rs for streams (`zlib_rs.rs`), libdeflate for whole
//! buffers (`libdeflate.rs`). What is here is what makes them one: which engine a buffer goes to (`policy.rs`), the formats
//! around them, limits, interruption, and the ways to use all cores.

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
mod output;
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
pub use output::{Bytes, Output};
pub use output_size::{expected_size, worth_lending};
pub use stream::{Config, Flush, Status};
