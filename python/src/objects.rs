//! Small objects. PyO3's own conversions and constructors panic when there is no memory for one, and so would the making of
//! the exception for that: the process would end. Those here raise `MemoryError`.

use pyo3::PyTypeCheck;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PySlice, PyString};

use crate::bytes;
use crate::filling::{Container, Filling};
use crate::ints;

/// The name of an attribute, a method or a key, made once: `object.getattr(name!("size"))`.
macro_rules! name {
    ($text:literal) => {{
        static NAME: $crate::objects::Name = $crate::objects::Name::new($text);
        &NAME
    }};
}
pub(crate) use name;

/// See [`name!`].
pub(crate) struct Name {
    text: &'static str,
    made: PyOnceLock<Py<PyString>>,
}

impl Name {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self { text, made: PyOnceLock::new() }
    }
}

impl<'py> IntoPyObject<'py> for &'static Name {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let made = kept(&self.made, py, || bytes::text(py, self.text).map(Bound::unbind))?;
        Ok(made.bind(py).clone())
    }
}

/// A `str`, as an argument or a result.
pub(crate) struct Text<T>(pub(crate) T);

impl<'py, T: AsRef<str>> IntoPyObject<'py> for Text<T> {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        bytes::text(py, self.0.as_ref())
    }
}

/// An `int`, as an argument or a result.
pub(crate) struct Int(pub(crate) usize);

impl<'py> IntoPyObject<'py> for Int {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        ints::int(py, self.0)
    }
}

/// A tuple of any objects.
pub(crate) fn tuple<'py>(
    py: Python<'py>,
    items: impl IntoIterator<Item = Bound<'py, PyAny>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyAny>> {
    let items = items.into_iter();
    let mut places = Filling::new(py, Container::Tuple, items.len())?.of_any();
    items.for_each(|item| places.push(item));
    Ok(places.finish())
}

/// A list of one object.
pub(crate) fn list_of<'py>(item: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let mut places = Filling::new(item.py(), Container::List, 1)?;
    places.push(item);
    Ok(places.finish())
}

/// An empty dict.
pub(crate) fn dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: returns a new dict, or null with an exception set.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyDict_New())?.cast_into_unchecked()) }
}

/// `start:end`.
pub(crate) fn slice(py: Python<'_>, start: usize, end: usize) -> PyResult<Bound<'_, PySlice>> {
    let (start, end) = (ints::int(py, start)?, ints::int(py, end)?);
    // SAFETY: takes references of its own; returns a new slice, or null with an exception set.
    unsafe {
        let slice = ffi::PySlice_New(start.as_ptr(), end.as_ptr(), std::ptr::null_mut());
        Ok(Bound::from_owned_ptr_or_err(py, slice)?.cast_into_unchecked())
    }
}

/// What `module` has under `name`, imported at the first use.
pub(crate) fn imported<'a, 'py, T: PyTypeCheck>(
    cell: &'a PyOnceLock<Py<T>>,
    py: Python<'py>,
    module: &str,
    name: &str,
) -> PyResult<&'a Bound<'py, T>> {
    let import = || Ok(py.import(Text(module))?.getattr(Text(name))?.cast_into::<T>()?.unbind());
    kept(cell, py, import).map(|object| object.bind(py))
}

/// What `cell` has, made by the caller if it is empty. Two threads may both make it; the first one's is kept.
///
/// The cell's own way makes others wait, and lets go of the interpreter lock meanwhile: a process that is forked then would
/// wait for ever.
pub(crate) fn kept<'a, T, E>(
    cell: &'a PyOnceLock<T>,
    py: Python<'_>,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<&'a T, E> {
    if let Some(value) = cell.get(py) {
        return Ok(value);
    }
    let made = make()?;
    let _ = cell.set(py, made);
    Ok(cell.get(py).expect("set just now, or by another thread"))
}
