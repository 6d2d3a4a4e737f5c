//! MessagePack: `offlock.msgpack`.
//!
//! Short messages are built in one pass over their bytes. Long ones are indexed without the lock first, and built
//! from the index (`Tape`) in bursts; both ways share one builder (`build.rs`).

mod build;
mod classes;
mod errors;
mod extract;
mod ffi;
mod functions;
mod input;
mod key_cache;
mod long;
mod numpy;
mod options;
mod pack;
mod packer;
mod place;
mod sink;
mod texts;
mod turn;
mod types;
mod unpack;
mod unpacker;
mod view;

use pyo3::pymodule;

/// The extension module `offlock._offlock.msgpack`.
#[pymodule]
pub(crate) mod msgpack {
    #[pymodule_export]
    use super::extract::extract;
    #[pymodule_export]
    use super::packer::Packer;
    #[pymodule_export]
    use super::unpack::unpack_all;
    #[pymodule_export]
    use super::unpacker::Unpacker;
    #[pymodule_export]
    use super::view::{View, view};

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        super::functions::add_to(module)
    }
}
