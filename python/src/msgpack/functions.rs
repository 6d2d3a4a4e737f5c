//! `packb`, `unpackb` and related functions with CPython's own calling convention.

use std::ffi::CStr;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{key_cache, packer, unpack, view};
use crate::cpython::fastcall::{Call, Definition, Function};
use crate::error::WithMessage;
use crate::objects::name;

/// Adds the functions to the module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("packb", PACKB.of(module)?)?;
    module.add("unpackb", UNPACKB.of(module)?)?;
    module.add("unpack_all", UNPACK_ALL.of(module)?)?;
    module.add("view", VIEW.of(module)?)
}

static PACKB: Definition = Definition::new::<Packb>(c"packb", PACKB_DOC);
static UNPACKB: Definition = Definition::new::<Unpackb>(c"unpackb", UNPACKB_DOC);
static UNPACK_ALL: Definition = Definition::new::<UnpackAll>(c"unpack_all", UNPACK_ALL_DOC);
static VIEW: Definition = Definition::new::<ViewFunction>(c"view", VIEW_DOC);

const PACKB_DOC: &CStr =
    c"packb(o, /, *, default=None, use_single_float=False, autoreset=True, use_bin_type=True, \
strict_types=False, datetime=False, unicode_errors=None, buf_size=262144, dataclasses=False, numpy=False, \
uuid=False, enum=False, release='auto')
--

Packs an object, and returns the message. For the options see the class Packer.

Errors name the place in the object, as in `at [\"users\"][3][\"when\"]`: in the message, or in a note of an exception
that offlock did not raise. A large object is packed in bursts, between which other threads can hold the lock, unless
`release` is 'never'. A dict that changes its size meanwhile raises RuntimeError.";

const UNPACKB_DOC: &CStr = c"unpackb(packed, /, *, object_hook=None, list_hook=None, use_list=True, raw=False, \
timestamp=0, strict_map_key=True, unicode_errors=None, object_pairs_hook=None, ext_hook=None, max_str_len=-1, \
max_bin_len=-1, max_array_len=-1, max_map_len=-1, max_ext_len=-1, release='auto')
--

Unpacks `packed`, which is exactly one message, and returns the object. For the options see the class Unpacker.

Raises ExtraData when bytes follow, ValueError when the message is incomplete, FormatError when it is not
MessagePack, StackError when it is nested more than 1024 levels deep.";

const UNPACK_ALL_DOC: &CStr = c"unpack_all(packed, **options)
--

Unpacks every message of `packed`, a list of bytes, and returns the list of objects. Large inputs are indexed in one
release of the lock.";

const VIEW_DOC: &CStr = c"view(packed, **options)
--

Returns the value of a message: a `View` if it is an array or a map, whose values are built on request.

The message is indexed, without the lock if it is large. The options are those of `unpackb`.";

struct Packb;
struct Unpackb;
struct UnpackAll;
struct ViewFunction;

impl Function for Packb {
    #[inline(always)]
    fn call<'py>(call: Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        with_options(call, packer::packb)
    }
}

impl Function for Unpackb {
    #[inline(always)]
    fn call<'py>(call: Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        with_options(call, |packed, options| {
            key_cache::of_this_thread(packed.py(), |cache| unpack::unpackb(packed, options, cache))
        })
    }
}

impl Function for UnpackAll {
    fn call<'py>(call: Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        with_options(call, unpack::unpack_all)
    }
}

impl Function for ViewFunction {
    fn call<'py>(call: Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        with_options(call, view::view)
    }
}

/// Calls `body` with the one argument and the options.
#[inline(always)]
fn with_options<'py>(
    call: Call<'_, 'py>,
    body: impl Fn(&Bound<'py, PyAny>, Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match call.argument(0) {
        Some(argument) if call.count() == 1 && !call.has_keywords() => body(&argument, None),
        // While attached, so that references among the options are dropped at once.
        _ => Python::attach(|_| {
            let (argument, options) = collect(call)?;
            body(&argument, Some(&options))
        }),
    }
}

/// The argument, which may also be given by the keyword that the originals use for it, and the options.
#[cold]
fn collect<'py>(call: Call<'_, 'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let count = call.count();
    if count > 1 {
        return Err(PyTypeError::with_message(format!("takes 1 positional argument but {count} were given")));
    }
    let options = call.keywords()?;
    let argument = match call.argument(0) {
        Some(argument) => argument.to_owned(),
        None => named(&options)?,
    };
    Ok((argument, options))
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
