//! Python's modules `zlib` and `gzip`, without the lock.

mod bytes_buffer;
mod checksums;
mod decompressor;
mod error;
mod gzip;
mod lines;
mod one_shot;
mod streams;

use pyo3::pymodule;

/// The native functions and classes of `offlock.zlib` and `offlock.gzip`.
#[pymodule(submodule)]
pub(crate) mod zlib {
    #[pymodule_export]
    use crate::zlib::decompressor::ZlibDecompressor;
    #[pymodule_export]
    use crate::zlib::gzip::{BlockCompress, GzipDecompress, gunzip, gzip, gzip_header, joined};
    #[pymodule_export]
    use crate::zlib::lines::quick_readline;
    #[pymodule_export]
    use crate::zlib::one_shot::{
        adler32, adler32_combine, compress, crc32, crc32_combine, decompress, deflate_all, inflate_all,
    };
    #[pymodule_export]
    use crate::zlib::streams::{Compress, Decompress, compressobj, decompressobj};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::zlib::checksums::replace(module)
    }
}
