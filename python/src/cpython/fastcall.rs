//! Functions with CPython's own calling convention, without the cost of a generic wrapper, which would be a
//! large part of a call for a few bytes.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::object::{dict, owned};
use crate::error::{InternalError, WithMessage};

/// A function or method.
pub(crate) trait Function {
    fn call<'py>(call: Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// A function's definition for CPython. Static, because CPython keeps the pointer for as long as an object of
/// it lives.
pub(crate) struct Definition(ffi::PyMethodDef);

// SAFETY: it is never written to, and everything it points to is static.
unsafe impl Sync for Definition {}

impl Definition {
    /// `doc` begins with the text signature.
    pub(crate) const fn new<F: Function>(name: &'static CStr, doc: &'static CStr) -> Self {
        Self(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: called_by_python::<F> },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr(),
        })
    }

    /// A function object of `module`.
    pub(crate) fn of<'py>(&'static self, module: &Bound<'py, PyModule>) -> PyResult<Bound<'py, PyAny>> {
        let (py, name) = (module.py(), module.name()?);
        // SAFETY: CPython only reads the definition, which is static and whose flags fit the function; no
        // object is bound to it, and it takes its own reference to the name. Returns a new reference, or null
        // with an exception set.
        unsafe { owned(py, ffi::PyCFunction_NewEx(self.address(), std::ptr::null_mut(), name.as_ptr())) }
    }

    /// A method for the instances of `class`.
    pub(crate) fn of_class<'py>(&'static self, class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: as above, with a reference to the class.
        unsafe { owned(class.py(), ffi::PyDescr_NewMethod(class.as_type_ptr(), self.address())) }
    }

    const fn address(&'static self) -> *mut ffi::PyMethodDef {
        (&raw const self.0).cast_mut()
    }
}

/// A call that CPython makes: its arguments, alive until it returns.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a, 'py> {
    py: Python<'py>,
    receiver: *mut ffi::PyObject,
    /// `count` positional arguments, followed by the values of the keywords.
    arguments: *const *mut ffi::PyObject,
    count: usize,
    /// A tuple, or null.
    names: *mut ffi::PyObject,
    lifetime: PhantomData<&'a ()>,
}

impl<'a, 'py> Call<'a, 'py> {
    #[inline(always)]
    pub(crate) const fn py(&self) -> Python<'py> {
        self.py
    }

    /// The object whose method is called.
    ///
    /// # Panics
    ///
    /// If it is not a method.
    #[inline(always)]
    pub(crate) fn receiver(&self) -> Borrowed<'a, 'py, PyAny> {
        assert!(!self.receiver.is_null());
        // SAFETY: alive during the call.
        unsafe { Borrowed::from_ptr(self.py, self.receiver) }
    }

    /// The number of positional arguments.
    #[inline(always)]
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub(crate) const fn has_keywords(&self) -> bool {
        !self.names.is_null()
    }

    /// A positional argument.
    #[inline(always)]
    pub(crate) fn argument(&self, number: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        // SAFETY: there are `count` of them, alive during the call.
        (number < self.count).then(|| unsafe { Borrowed::from_ptr(self.py, *self.arguments.add(number)) })
    }

    /// The keywords and their values.
    pub(crate) fn keywords(&self) -> PyResult<Bound<'py, PyDict>> {
        let keywords = dict(self.py, 0)?;
        if self.has_keywords() {
            // SAFETY: a tuple of names, and as many values after the positional arguments, all alive during
            // the call.
            unsafe {
                let names = Borrowed::from_ptr(self.py, self.names).cast_unchecked::<PyTuple>().to_owned();
                for (place, name) in names.iter().enumerate() {
                    let value = *self.arguments.add(self.count + place);
                    keywords.set_item(name, Borrowed::from_ptr(self.py, value))?;
                }
            }
        }
        Ok(keywords)
    }

    /// Calls another function with the same arguments.
    pub(crate) fn pass_to(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: CPython's own arguments; returns a new reference, or null with an exception set.
        unsafe {
            let (function, arguments) = (function.as_ptr(), self.arguments);
            owned(self.py, ffi::PyObject_Vectorcall(function, arguments, self.count, self.names))
        }
    }

    /// Calls another function with `first` before the same arguments.
    pub(crate) fn pass_behind(
        &self,
        first: &Bound<'py, PyAny>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: as above, with one more argument. `names` is null or a tuple.
        unsafe {
            if self.names.is_null() && self.count <= 1 {
                let second = if self.count == 1 { *self.arguments } else { std::ptr::null_mut() };
                let (function, arguments) = (function.as_ptr(), [first.as_ptr(), second]);
                let called =
                    ffi::PyObject_Vectorcall(function, arguments.as_ptr(), 1 + self.count, self.names);
                return owned(self.py, called);
            }
            let named = if self.names.is_null() { 0 } else { ffi::PyTuple_Size(self.names).cast_unsigned() };
            let mut arguments = vec![first.as_ptr()];
            arguments.extend((0..self.count + named).map(|number| *self.arguments.add(number)));
            let (function, count) = (function.as_ptr(), 1 + self.count);
            owned(self.py, ffi::PyObject_Vectorcall(function, arguments.as_ptr(), count, self.names))
        }
    }
}

/// The function that CPython calls for `F`.
unsafe extern "C" fn called_by_python<F: Function>(
    receiver: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the lock held, `count` positional arguments and the values of `names`
    // after them, all of them alive during the call.
    let py = unsafe { Python::assume_attached() };
    let count = count.cast_unsigned();
    let call = Call { py, receiver, arguments, count, names, lifetime: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| F::call(call)));
    match result {
        Ok(Ok(object)) => object.into_ptr(),
        Ok(Err(error)) => raise(error),
        Err(_) => raise(InternalError::with_message("the native code panicked")),
    }
}

#[cold]
fn raise(error: PyErr) -> *mut ffi::PyObject {
    Python::attach(|py| error.restore(py));
    std::ptr::null_mut()
}
