//! MessagePack: `offlock.msgpack`.
//!
//! Short messages are built in one pass over their bytes. Long ones are indexed without the lock first, and
//! built from the index (`Tape`) in bursts; both ways share one builder (`build/`).

mod buffer;
mod build;
mod classes;
pub(crate) mod column;
mod conversions;
mod error;
mod extract;
mod functions;
mod input;
mod key_cache;
mod long_strings;
mod numpy;
mod object_lock;
mod options;
mod pack;
mod pack_error;
mod packer;
pub(crate) mod prebuilt_strings;
mod unpack;
mod unpacker;
mod view;

use pyo3::pymodule;

/// The extension module `offlock._offlock.msgpack`.
#[pymodule]
pub(crate) mod msgpack {
    #[pymodule_export]
    use crate::msgpack::extract::extract;
    #[pymodule_export]
    use crate::msgpack::packer::Packer;
    #[pymodule_export]
    use crate::msgpack::unpacker::Unpacker;
    #[pymodule_export]
    use crate::msgpack::view::View;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::msgpack::functions::add_to(module)
    }
}
