//! JSON lines: `offlock.jsonl`.

mod error;
mod extract;
mod paths;

use pyo3::pymodule;

/// The extension module `offlock._offlock.jsonl`.
#[pymodule]
pub(crate) mod jsonl {
    #[pymodule_export]
    use crate::jsonl::extract::extract;
}
