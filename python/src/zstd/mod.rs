//! Python's module `compression.zstd`, without the lock.

mod arguments;
mod compressor;
mod decompressor;
mod dictionary;
mod error;
mod frames;
mod one_shot;

use pyo3::pymodule;

/// The native functions and classes of `offlock.zstd`.
#[pymodule(submodule)]
pub(crate) mod zstd {
    #[pymodule_export]
    use crate::zstd::compressor::ZstdCompressor;
    #[pymodule_export]
    use crate::zstd::decompressor::ZstdDecompressor;
    #[pymodule_export]
    use crate::zstd::dictionary::{ZstdDict, finalize_dict, train_dict};
    #[pymodule_export]
    use crate::zstd::frames::{bounds, frame_info, get_frame_size};
    #[pymodule_export]
    use crate::zstd::one_shot::{compress, decompress};
    use offlock_core::zstd;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("zstd_version", zstd::version())?;
        module.add("zstd_version_number", zstd::version_number())
    }
}
