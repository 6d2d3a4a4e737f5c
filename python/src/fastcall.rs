//! Functions as CPython calls them, without the cost of a generic wrapper: for a call of a few bytes it would be a good part
//! of the whole.

use std::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;

/// A function object of `module` that calls `function`, whose text signature begins `doc`.
pub(crate) fn new<'py>(
    module: &Bound<'py, PyModule>,
    name: &'static CStr,
    doc: &'static CStr,
    function: ffi::PyCFunctionFastWithKeywords,
) -> PyResult<Bound<'py, PyAny>> {
    // Leaked on purpose: CPython keeps the pointer for as long as the function lives, and there are few.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }));
    // SAFETY: the definition lives for ever and its flags fit the function; no object is bound to it, and it takes a
    // reference of its own to the module's name. Returns a new reference, or null with an exception set.
    unsafe {
        let function = ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), module.name()?.as_ptr());
        Bound::from_owned_ptr_or_err(module.py(), function)
    }
}
