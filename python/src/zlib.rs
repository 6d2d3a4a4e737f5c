//! Python's modules `zlib` and `gzip`, off the lock.

mod checksums;
mod failure;
mod fed;
mod gzip;
mod input;
mod lend;
mod lines;
mod one_shot;
mod streams;
mod turns;

use pyo3::prelude::*;

use crate::region::Operation;

/// Compressing takes some 10 microseconds for anything, and one more for about 100 bytes.
pub(crate) static DEFLATE: Operation = Operation { name: "zlib.deflate", break_even: 512 };
/// Decompressing takes some 10 microseconds for as many bytes of input (`bench/region/break_even.py`).
pub(crate) static INFLATE: Operation = Operation { name: "zlib.inflate", break_even: 2 << 10 };
/// Checksums work through several thousand bytes in a microsecond.
pub(crate) static CHECKSUM: Operation = Operation { name: "zlib.checksum", break_even: 256 << 10 };

/// What `offlock.zlib` and `offlock.gzip` are made of.
#[pymodule(submodule)]
pub(crate) mod zlib {
    #[pymodule_export]
    use super::fed::ZlibDecompressor;
    #[pymodule_export]
    use super::gzip::{BlockCompress, GzipDecompress, gunzip, gzip, gzip_header, joined};
    #[pymodule_export]
    use super::lines::quick_readline;
    #[pymodule_export]
    use super::one_shot::{
        adler32, adler32_combine, compress, crc32, crc32_combine, decompress, deflate_all, inflate_all,
    };
    #[pymodule_export]
    use super::streams::{Compress, Decompress, compressobj, decompressobj};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::checksums::replace(module)
    }
}
