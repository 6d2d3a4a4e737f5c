//! The native half of the Python package `offlock`.

use pyo3::prelude::*;

mod borrow;
mod bytes;
mod command;
mod cpython;
mod error;
mod gil_yield;
mod input;
mod int_list;
mod jsonl;
mod large;
mod lock;
mod model;
mod msgpack;
mod objects;
mod operations;
mod pending;
mod pipeline;
mod region;
mod stream_lock;
mod strings;
mod tiktoken;
mod utf8;
mod zlib;
mod zstd;

/// The extension module `offlock._offlock`.
#[pymodule(gil_used = false)]
mod _offlock {
    use offlock_core::tokens::{self, models};
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::command::run_cli;
    #[pymodule_export]
    use crate::error::InternalError;
    #[pymodule_export]
    use crate::jsonl::jsonl;
    #[pymodule_export]
    use crate::lock::lock;
    #[pymodule_export]
    use crate::model::ModelTokenizer;
    #[pymodule_export]
    use crate::msgpack::msgpack;
    #[pymodule_export]
    use crate::pipeline::pipeline;
    #[pymodule_export]
    use crate::region::Cancel;
    #[pymodule_export]
    use crate::strings::strings;
    #[pymodule_export]
    use crate::tiktoken::packed::PackedIntegers;
    #[pymodule_export]
    use crate::tiktoken::packed::PackedTokens;
    #[pymodule_export]
    use crate::tiktoken::stream::Stream;
    #[pymodule_export]
    use crate::tiktoken::tokenizer::Tokenizer;
    #[pymodule_export]
    use crate::zlib::zlib;
    #[pymodule_export]
    use crate::zstd::zstd;

    #[pymodule_export]
    const __VERSION__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::cpython::init(module.py());
        module.add("INTERNALS", crate::cpython::assumptions::names_of_held())?;
        module.add("ENCODING_NAMES", tokens::names())?;
        module.add("MODELS", models::MODELS)?;
        module.add("MODEL_PREFIXES", models::PREFIXES)
    }
}
