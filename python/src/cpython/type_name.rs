//! The name of an object's type, told from the address of the mutex in the object's header.

use std::mem::offset_of;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::memory::{Foreign, Memory};

/// A type: its address, and that of its name. Types that are freed may have their address taken, but seldom both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Type {
    at: usize,
    name_at: usize,
}

const MUTEX: usize = offset_of!(ffi::PyObject, ob_mutex);
const TYPE: usize = offset_of!(ffi::PyObject, ob_type);
const FLAGS: usize = offset_of!(ffi::PyTypeObject, tp_flags);
const NAME: usize = offset_of!(ffi::PyTypeObject, tp_name);

/// The longest name that is read.
const LONGEST: usize = 80;

/// The type of the object whose header has its mutex at this address. `None` if what lies there is no object: its type would
/// have to be one, too.
///
/// The system reads the memory, for which a wrong address is an error and not a crash. A thread that waits for the mutex of an
/// object keeps that alive.
pub(super) fn of_locked(mutex: usize) -> Option<Type> {
    let object = mutex.checked_sub(MUTEX).filter(|object| object.is_multiple_of(align_of::<usize>()))?;
    let mut memory = Foreign::new();
    let at = memory.word(object + TYPE)?;
    let metatype = memory.word(at.checked_add(TYPE)?)?;
    let flags = memory.word(metatype.checked_add(FLAGS)?)?;
    let is_type = metatype == (&raw const ffi::PyType_Type).addr() || flags & IS_TYPE != 0;
    if !is_type {
        return None;
    }
    Some(Type { at, name_at: memory.word(at + NAME)? })
}

/// The flag of classes whose instances are types.
const IS_TYPE: usize = ffi::Py_TPFLAGS_TYPE_SUBCLASS as usize;

impl Type {
    /// Its name, without the module in which it is defined.
    pub(crate) fn name(self) -> Option<String> {
        let (mut memory, mut name) = (Foreign::new(), Vec::new());
        for address in self.name_at..self.name_at.checked_add(LONGEST)? {
            let mut byte = [0];
            memory.read(address, &mut byte)?;
            if byte[0] == 0 {
                break;
            }
            name.push(byte[0]);
        }
        let name = String::from_utf8_lossy(&name);
        Some(name.rsplit('.').next().unwrap_or(&name).to_owned()).filter(|name| !name.is_empty())
    }
}

/// Makes sure that names are found, with objects whose types are known.
///
/// # Errors
/// A sentence that says what is not as expected.
pub(super) fn probe(py: Python<'_>) -> Result<(), String> {
    for (object, expected) in [(PyDict::new(py).into_any(), "dict"), (PyList::empty(py).into_any(), "list")] {
        let found = of_locked(object.as_ptr() as usize + MUTEX).and_then(Type::name);
        if found.as_deref() != Some(expected) {
            return Err(format!("the type of a {expected} cannot be read from the mutex in its header"));
        }
    }
    Ok(())
}
