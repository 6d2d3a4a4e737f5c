//! What extension modules declare about the lock.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

/// The names of loaded extension modules that have not declared that they can run without the lock. Importing one makes
/// a free-threaded interpreter take the lock for good, unless the environment forbids it.
pub(crate) fn modules_that_need_lock(loaded: &Bound<'_, PyDict>) -> Vec<String> {
    let modules =
        loaded.iter().filter_map(|(name, module)| Some((name, module.cast_into::<PyModule>().ok()?)));
    let needing = modules.filter(|(_, module)| !declares_to_run_without(module));
    needing.filter_map(|(name, _)| name.extract().ok()).collect()
}

/// Whether a module is written in Python, or declares that it can run without the lock.
fn declares_to_run_without(module: &Bound<'_, PyModule>) -> bool {
    // SAFETY: this is a module. Its definition, if it has one, lives as long as the process, and its slots, if it has
    // any, end with one whose number is 0.
    unsafe {
        let definition = ffi::PyModule_GetDef(module.as_ptr());
        if definition.is_null() {
            ffi::PyErr_Clear();
            return true;
        }
        let mut slot = (*definition).m_slots;
        while !slot.is_null() && (*slot).slot != 0 {
            if [ffi::Py_mod_gil, BEFORE_3_15].contains(&(*slot).slot) {
                return (*slot).value.addr() == NOT_USED;
            }
            slot = slot.add(1);
        }
        false
    }
}

/// The number of `Py_mod_gil` before CPython 3.15, which accepts it, too.
const BEFORE_3_15: i32 = 4;

/// `Py_MOD_GIL_NOT_USED`, which the bindings have from CPython 3.13 on only.
const NOT_USED: usize = 1;
