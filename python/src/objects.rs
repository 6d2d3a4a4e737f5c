//! Small objects. PyO3's own conversions and constructors panic when there is no memory for one, and making
//! the exception for that panics again: the process would abort. The functions here raise `MemoryError`.

use pyo3::PyTypeCheck;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyString};

use crate::cpython::object;
use crate::cpython::short_sequence::{short_list, short_tuple};

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
        let made = kept(&self.made, py, || object::text(py, self.text).map(Bound::unbind))?;
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
        object::text(py, self.0.as_ref())
    }
}

/// An `int`, as an argument or a result.
pub(crate) struct Int(pub(crate) usize);

impl<'py> IntoPyObject<'py> for Int {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        object::size(py, self.0)
    }
}

/// A tuple of any objects.
pub(crate) fn tuple<'py>(
    py: Python<'py>,
    items: impl IntoIterator<Item = Bound<'py, PyAny>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyAny>> {
    short_tuple(py, items.into_iter())
}

/// A list of one object.
pub(crate) fn list_of<'py>(item: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    short_list(item.py(), std::iter::once(Ok(item))).map(Bound::into_any)
}

/// An empty dict.
pub(crate) fn dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    object::dict(py, 0)
}

/// The attribute `name` of `module`, imported at the first use.
pub(crate) fn imported<'a, 'py, T: PyTypeCheck>(
    cell: &'a PyOnceLock<Py<T>>,
    py: Python<'py>,
    module: &str,
    name: &str,
) -> PyResult<&'a Bound<'py, T>> {
    let import = || Ok(py.import(Text(module))?.getattr(Text(name))?.cast_into::<T>()?.unbind());
    kept(cell, py, import).map(|object| object.bind(py))
}

/// The value of `cell`, made by the caller if it is empty. Two threads may both make it; the first one's is
/// kept.
///
/// The cell's own method makes other threads wait, and releases the interpreter lock meanwhile: a process
/// forked at that moment would wait forever.
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

/// The name of an object's type, with its module when that is not `builtins`.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    qualified_name(object).unwrap_or_else(|_| String::from("?"))
}

/// PyO3's own function asks for the names by strings that it makes on demand, and panics when it cannot.
fn qualified_name(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = object.get_type();
    let [module, name] = [class.getattr(name!("__module__"))?, class.getattr(name!("__qualname__"))?];
    let (module, name) = (module.cast::<PyString>()?.to_str()?, name.cast::<PyString>()?.to_str()?);
    Ok(if module == "builtins" { name.to_owned() } else { format!("{module}.{name}") })
}
