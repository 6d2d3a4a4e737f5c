//! Functions as CPython calls them, without the cost of a generic wrapper: for a call of a few bytes it would be a good part
//! of the whole.

use std::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// What CPython has to know of a function. Static, because CPython keeps the pointer for as long as an object of it lives.
pub(crate) struct Definition(ffi::PyMethodDef);

// SAFETY: nobody writes to it, and what it points to is static.
unsafe impl Sync for Definition {}

impl Definition {
    /// `doc` begins with the text signature.
    pub(crate) const fn new(
        name: &'static CStr,
        doc: &'static CStr,
        function: ffi::PyCFunctionFastWithKeywords,
    ) -> Self {
        Self(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr(),
        })
    }

    /// A function object of `module`.
    pub(crate) fn of<'py>(&'static self, module: &Bound<'py, PyModule>) -> PyResult<Bound<'py, PyAny>> {
        let (py, name) = (module.py(), module.name()?);
        // SAFETY: CPython only reads the definition, which is static and whose flags fit the function; no object is bound to
        // it, and it takes a reference of its own to the name. Returns a new reference, or null with an exception set.
        unsafe {
            let function = ffi::PyCFunction_NewEx(self.address(), std::ptr::null_mut(), name.as_ptr());
            Bound::from_owned_ptr_or_err(py, function)
        }
    }

    /// A method for the instances of `class`.
    pub(crate) fn of_class<'py>(&'static self, class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: as above, with a reference to the class.
        unsafe {
            let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), self.address());
            Bound::from_owned_ptr_or_err(class.py(), method)
        }
    }

    const fn address(&'static self) -> *mut ffi::PyMethodDef {
        (&raw const self.0).cast_mut()
    }
}
