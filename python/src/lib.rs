//! The native half of the Python package `offlock`.

use pyo3::prelude::*;

#[allow(dead_code, reason = "what only later operations need")]
mod borrow;
mod bulk;
mod bytes;
mod command;
mod errors;
mod fastcall;
mod filling;
mod ids;
mod ints;
mod lock;
mod msgpack;
mod objects;
mod once;
mod pace;
mod packed;
mod region;
mod specials;
mod strings;
mod tiktoken;
mod utf8;
mod zlib;

/// The extension module `offlock._offlock`.
#[pymodule(gil_used = false)]
mod _offlock {
    use offlock_core::tokens::{self, models};
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::command::run_cli;
    #[pymodule_export]
    use super::lock::lock;
    #[pymodule_export]
    use super::msgpack::msgpack;
    #[pymodule_export]
    use super::packed::PackedTokens;
    #[pymodule_export]
    use super::region::{Cancel, InternalError};
    #[pymodule_export]
    use super::strings::strings;
    #[pymodule_export]
    use super::tiktoken::Tokenizer;
    #[pymodule_export]
    use super::zlib::zlib;

    #[pymodule_export]
    const __VERSION__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("ENCODING_NAMES", tokens::names())?;
        module.add("MODELS", models::MODELS)?;
        module.add("MODEL_PREFIXES", models::PREFIXES)
    }
}
