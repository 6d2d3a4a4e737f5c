//! `packb` and `unpackb` as CPython calls them.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{key_cache, packer, unpack};
use crate::errors::WithMessage;
use crate::fastcall::Definition;
use crate::objects::{dict, name};
use crate::region::InternalError;

/// Adds the functions to the module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("packb", PACKB.of(module)?)?;
    module.add("unpackb", UNPACKB.of(module)?)
}

static PACKB: Definition = Definition::new(c"packb", PACKB_DOC, packb);
static UNPACKB: Definition = Definition::new(c"unpackb", UNPACKB_DOC, unpackb);

const PACKB_DOC: &CStr =
    c"packb(o, /, *, default=None, use_single_float=False, autoreset=True, use_bin_type=True, \
strict_types=False, datetime=False, unicode_errors=None, buf_size=262144, dataclasses=False, numpy=False, \
uuid=False, enum=False, release='auto')
--

Packs an object, and returns the message. For the options see the class Packer.

What cannot be packed is named with its place in the object, as in `at [\"users\"][3][\"when\"]`: in the message, or in a
note of an exception that somebody else raised. A large object is packed in bursts, between which other threads can have
the lock, unless `release` is 'never'. A dict that changes its size meanwhile raises RuntimeError.";

const UNPACKB_DOC: &CStr = c"unpackb(packed, /, *, object_hook=None, list_hook=None, use_list=True, raw=False, \
timestamp=0, strict_map_key=True, unicode_errors=None, object_pairs_hook=None, ext_hook=None, max_str_len=-1, \
max_bin_len=-1, max_array_len=-1, max_map_len=-1, max_ext_len=-1, release='auto')
--

Unpacks the one message that makes up the whole of `packed`. For the options see the class Unpacker.

Raises ExtraData when bytes follow, ValueError when the message is incomplete, FormatError when it is not
MessagePack, StackError when it is nested more than 1024 levels deep.";

unsafe extern "C" fn packb(
    _module: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the lock held, `count` positional arguments and the values of `names` behind
    // them, all of them alive during the call.
    unsafe { call(arguments, count, names, |_, object, keywords| packer::packb(object, keywords)) }
}

unsafe extern "C" fn unpackb(
    _module: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as in `packb`.
    unsafe {
        call(arguments, count, names, |py, packed, keywords| {
            key_cache::of_this_thread(py, |cache| unpack::unpackb(packed, keywords, cache))
        })
    }
}

/// Calls `body` with the one positional argument and the keywords, and hands its result to CPython.
///
/// # Safety
/// The lock is held; `count` arguments and the values of the tuple `names`, unless that is null, are at
/// `arguments`, alive during the call.
#[inline(always)]
unsafe fn call(
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    body: impl for<'py> Fn(
        Python<'py>,
        &Bound<'py, PyAny>,
        Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>>,
) -> *mut ffi::PyObject {
    let guarded = AssertUnwindSafe(|| {
        if count == 1 && names.is_null() {
            // SAFETY: the contract of this function: the lock is held, and there is one argument, alive.
            return unsafe {
                let py = Python::assume_attached();
                let argument = Borrowed::from_ptr(py, *arguments);
                body(py, &argument, None).map(Bound::into_ptr)
            };
        }
        Python::attach(|py| {
            // SAFETY: the contract of this function.
            let (argument, keywords) = unsafe { collect(py, arguments, count, names)? };
            body(py, &argument, keywords.as_ref()).map(Bound::into_ptr)
        })
    });
    let result = catch_unwind(guarded)
        .unwrap_or_else(|_| Err(InternalError::with_message("the native code of msgpack panicked")));
    result.unwrap_or_else(|error| {
        Python::attach(|py| error.restore(py));
        std::ptr::null_mut()
    })
}

type Arguments<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyDict>>);

/// The arguments as objects. The positional one may also be given by the name that the originals have for it.
///
/// # Safety
/// As for `call`.
#[cold]
unsafe fn collect<'py>(
    py: Python<'py>,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<Arguments<'py>> {
    let count = count.cast_unsigned();
    if count > 1 {
        return Err(PyTypeError::with_message(format!("takes 1 positional argument but {count} were given")));
    }
    let keywords = dict(py)?;
    if !names.is_null() {
        // SAFETY: the contract of this function: a tuple of names, and as many values behind the positional arguments.
        unsafe {
            let names = Borrowed::from_ptr(py, names).cast_unchecked::<PyTuple>().to_owned();
            for (place, name) in names.iter().enumerate() {
                keywords.set_item(name, Bound::from_borrowed_ptr(py, *arguments.add(count + place)))?;
            }
        }
    }
    // SAFETY: the contract of this function: the argument is there.
    let first = (count == 1).then(|| unsafe { Bound::from_borrowed_ptr(py, *arguments) });
    let first = match first {
        Some(first) => first,
        None => named(&keywords)?,
    };
    Ok((first, Some(keywords)))
}

fn named<'py>(keywords: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    for name in [name!("o"), name!("packed")] {
        if let Some(value) = keywords.get_item(name)? {
            keywords.del_item(name)?;
            return Ok(value);
        }
    }
    Err(PyTypeError::with_message("missing 1 required positional argument"))
}
