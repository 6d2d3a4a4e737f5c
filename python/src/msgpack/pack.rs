//! Writes Python objects as a message. What is nested deep takes no more of the machine's stack.

use std::ffi::CString;

use offlock_core::msgpack::Timestamp;
use offlock_core::msgpack::write::{self, MAX_LENGTH, Sink};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi as c;
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyIterator, PyTzInfoAccess};

use super::classes;
use super::ffi::{self, Wide};
use super::options::{MAX_DEPTH, callable, error_handler, unexpected_keyword};
use super::types::{self, Stand};

/// What `packb` and `Packer` can be told about encoding.
pub(super) struct PackOptions {
    pub(super) default: Option<Py<PyAny>>,
    /// Nothing is said about str.
    plain_str: bool,
    pub(super) use_single_float: bool,
    /// The format's first version: neither bin nor str 8.
    pub(super) old_raw: bool,
    pub(super) strict_types: bool,
    pub(super) datetime: types::Datetime,
    pub(super) unicode_errors: Option<CString>,
    pub(super) extra: types::Extra,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self {
            default: None,
            plain_str: true,
            use_single_float: false,
            old_raw: false,
            strict_types: false,
            datetime: types::Datetime::default(),
            unicode_errors: None,
            extra: types::Extra::default(),
        }
    }
}

impl PackOptions {
    /// Reads keyword arguments; those that it does not know go to `other`, which says whether it does.
    pub(super) fn from_keywords(
        keywords: &Bound<'_, PyDict>,
        mut other: impl FnMut(&str, &Bound<'_, PyAny>) -> PyResult<bool>,
    ) -> PyResult<Self> {
        let mut options = Self::default();
        for (name, value) in keywords {
            let name = name.extract::<&str>()?;
            if !options.set(name, &value)? && !other(name, &value)? {
                return Err(unexpected_keyword(name));
            }
        }
        options.plain_str = !options.old_raw && options.unicode_errors.is_none();
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "default" => self.default = callable("default", value)?,
            "use_single_float" => self.use_single_float = value.is_truthy()?,
            "use_bin_type" => self.old_raw = !value.is_truthy()?,
            "strict_types" => self.strict_types = value.is_truthy()?,
            "datetime" => self.datetime = types::Datetime::from_option(value)?,
            "unicode_errors" => self.unicode_errors = error_handler(value)?,
            name => return self.extra.set(name, value),
        }
        Ok(true)
    }
}

/// A container whose values are being written.
enum Frame<'py> {
    List {
        list: Bound<'py, PyAny>,
        next: usize,
        length: usize,
    },
    Tuple {
        tuple: Bound<'py, PyAny>,
        next: usize,
    },
    Dict {
        dict: Bound<'py, PyDict>,
        at: c::Py_ssize_t,
        left: usize,
        value: Option<Bound<'py, PyAny>>,
    },
    /// The pairs of a subclass of dict, which may have its own order.
    Pairs {
        pairs: Bound<'py, PyIterator>,
        left: usize,
        value: Option<Bound<'py, PyAny>>,
    },
}

/// Appends `object` to `out`.
#[inline]
pub(super) fn pack<'py>(
    object: &Bound<'py, PyAny>,
    options: &PackOptions,
    out: &mut impl Sink,
) -> PyResult<()> {
    let mut packer = Writer { py: object.py(), options, out };
    if !packer.leaf(object.as_borrowed())? {
        packer.container(object, 0)?;
    }
    Ok(())
}

/// Containers that are nested deeper take no more of the machine's stack.
const RECURSION: usize = 64;

struct Writer<'a, 'py, S> {
    py: Python<'py>,
    options: &'a PackOptions,
    out: &'a mut S,
}

impl<'py, S: Sink> Writer<'_, 'py, S> {
    /// Writes all that is in `frame`, which `depth` others are around.
    #[inline(never)]
    fn complete(&mut self, mut frame: Frame<'py>, depth: usize) -> PyResult<()> {
        match self.step(&mut frame, depth)? {
            None => Ok(()),
            Some(child) => self.finish(frame, child, depth),
        }
    }

    /// As `complete`, for a frame whose next value is `child`, when what is inside it is nested deep.
    #[cold]
    fn finish(&mut self, frame: Frame<'py>, child: Frame<'py>, depth: usize) -> PyResult<()> {
        let mut open = vec![frame];
        let mut frame = child;
        loop {
            if depth + open.len() > MAX_DEPTH {
                return Err(PyValueError::new_err("recursion limit exceeded."));
            }
            match (self.step(&mut frame, RECURSION)?, open.pop()) {
                (Some(child), outer) => {
                    open.extend(outer);
                    open.push(std::mem::replace(&mut frame, child));
                }
                (None, Some(outer)) => frame = outer,
                (None, None) => return Ok(()),
            }
        }
    }

    /// Writes values of `frame` up to the first container that is nested deep, which it returns.
    #[inline]
    fn step(&mut self, frame: &mut Frame<'py>, depth: usize) -> PyResult<Option<Frame<'py>>> {
        match frame {
            Frame::List { list, next, length } => self.list(list, next, *length, depth),
            Frame::Tuple { tuple, next } => self.tuple(tuple, next, depth),
            Frame::Dict { dict, at, left, value } => self.dict(dict, at, left, value, depth),
            Frame::Pairs { pairs, left, value } => self.pairs(pairs, left, value, depth),
        }
    }

    /// Writes a container that `depth` others are around, or a value of one of the rarer types. Of a container that is
    /// nested deep only the header is written, and it is returned.
    #[inline]
    fn container(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<Frame<'py>>> {
        if depth > RECURSION {
            return self.open(object);
        }
        if ffi::is_exactly(object, &raw mut c::PyDict_Type) {
            self.whole_dict(object, depth)?;
        } else if ffi::is_exactly(object, &raw mut c::PyList_Type) && !cfg!(Py_GIL_DISABLED) {
            self.whole_list(object, depth)?;
        } else if let Some(frame) = self.open(object)? {
            self.complete(frame, depth)?;
        }
        Ok(None)
    }

    /// Writes a dict and all that is in it, with no `Frame`: that is for what is nested deep.
    #[inline(never)]
    fn whole_dict(&mut self, dict: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        let (dict, mut left) = self.begin_dict(dict)?;
        let (mut at, mut value) = (0, None);
        match self.dict(&dict, &mut at, &mut left, &mut value, depth)? {
            None => Ok(()),
            Some(child) => self.finish(Frame::Dict { dict, at, left, value }, child, depth),
        }
    }

    /// The same for a list.
    #[inline(never)]
    fn whole_list(&mut self, list: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        let (list, mut next) = (list.clone(), 0);
        let length = self.begin_list(&list)?;
        match self.list(&list, &mut next, length, depth)? {
            None => Ok(()),
            Some(child) => self.finish(Frame::List { list, next, length }, child, depth),
        }
    }

    /// Writes the items of a list up to the first container.
    #[inline]
    fn list(
        &mut self,
        list: &Bound<'py, PyAny>,
        next: &mut usize,
        length: usize,
        depth: usize,
    ) -> PyResult<Option<Frame<'py>>> {
        while *next < length {
            let item = list_item(list, *next).ok_or_else(|| changed("list"))?;
            *next += 1;
            if !self.leaf(item)?
                && let Some(child) = self.container(&item.to_owned(), depth + 1)?
            {
                return Ok(Some(child));
            }
        }
        if list_item(list, length).is_some() { Err(changed("list")) } else { Ok(None) }
    }

    #[inline]
    fn tuple(
        &mut self,
        tuple: &Bound<'py, PyAny>,
        next: &mut usize,
        depth: usize,
    ) -> PyResult<Option<Frame<'py>>> {
        while let Some(item) = tuple_item(tuple, *next) {
            *next += 1;
            if !self.leaf(item)?
                && let Some(child) = self.container(&item.to_owned(), depth + 1)?
            {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    #[inline]
    fn dict(
        &mut self,
        dict: &Bound<'py, PyDict>,
        at: &mut c::Py_ssize_t,
        left: &mut usize,
        value: &mut Option<Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<Option<Frame<'py>>> {
        if let Some(value) = value.take()
            && let Some(child) = self.nested(&value, depth)?
        {
            return Ok(Some(child));
        }
        while let Some((key, item)) = dict_entry(dict, at) {
            *left = left.checked_sub(1).ok_or_else(|| changed("dict"))?;
            let held;
            let item = if self.leaf(key)? {
                item
            } else {
                // Packing the key may run code that changes the dict: hold on to the value.
                *value = Some(item.to_owned());
                if let Some(child) = self.container(&key.to_owned(), depth + 1)? {
                    return Ok(Some(child));
                }
                held = value.take();
                held.as_ref().map_or(item, Bound::as_borrowed)
            };
            if !self.leaf(item)?
                && let Some(child) = self.container(&item.to_owned(), depth + 1)?
            {
                return Ok(Some(child));
            }
        }
        if *left > 0 { Err(changed("dict")) } else { Ok(None) }
    }

    fn pairs(
        &mut self,
        pairs: &mut Bound<'py, PyIterator>,
        left: &mut usize,
        value: &mut Option<Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<Option<Frame<'py>>> {
        loop {
            if let Some(value) = value.take()
                && let Some(child) = self.nested(&value, depth)?
            {
                return Ok(Some(child));
            }
            let Some(pair) = pairs.next() else { break };
            let (key, item) = pair?.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
            *left = left.checked_sub(1).ok_or_else(|| changed("dict"))?;
            *value = Some(item);
            if let Some(child) = self.nested(&key, depth)? {
                return Ok(Some(child));
            }
        }
        if *left > 0 { Err(changed("dict")) } else { Ok(None) }
    }

    /// Writes a value in a container that `depth` others are around; as `container`, for a value of any kind.
    fn nested(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<Frame<'py>>> {
        if self.leaf(object.as_borrowed())? { Ok(None) } else { self.container(object, depth + 1) }
    }

    /// Writes a value, or the header of a container whose values are then to be written.
    fn write(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<Frame<'py>>> {
        if self.leaf(object.as_borrowed())? { Ok(None) } else { self.open(object) }
    }

    /// Writes a value of one of the commonest types, which takes no Python code; whether it was one.
    #[inline(always)]
    fn leaf(&mut self, object: Borrowed<'_, 'py, PyAny>) -> PyResult<bool> {
        if ffi::is_exactly(&object, &raw mut c::PyUnicode_Type) {
            // SAFETY: exactly a str, as just checked, and alive: somebody lent it to us.
            match unsafe { ffi::ascii_of(object.as_ptr()) } {
                _ if !self.options.plain_str => return Ok(false),
                Some(text) => write::str(self.out, text),
                None => self.text(ffi::utf8_of(&object)?)?,
            }
        } else if ffi::is_exactly(&object, &raw mut c::PyLong_Type) {
            match ffi::int_value(&object)? {
                Wide::Signed(value) => write::int(self.out, value),
                Wide::Unsigned(value) => write::uint(self.out, value),
                Wide::Neither => return Ok(false),
            }
        } else if ffi::is_exactly(&object, &raw mut c::PyFloat_Type) {
            self.float(ffi::float_value(&object));
        } else if object.is_none() {
            write::nil(self.out);
        } else if ffi::is_exactly(&object, &raw mut c::PyBool_Type) {
            write::bool(self.out, ffi::is_true(&object));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Writes the header of a container, or a value of one of the rarer types.
    #[inline]
    fn open(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<Frame<'py>>> {
        if ffi::is_exactly(object, &raw mut c::PyDict_Type) {
            self.open_dict(object)
        } else if ffi::is_exactly(object, &raw mut c::PyList_Type) {
            self.open_list(object)
        } else {
            self.other(object)
        }
    }

    #[cold]
    fn str(&mut self, object: &Bound<'py, PyAny>) -> PyResult<()> {
        match &self.options.unicode_errors {
            None => self.text(ffi::utf8_of(object)?),
            Some(errors) => {
                let encoded = object.call_method1("encode", ("utf-8", errors.to_string_lossy()))?;
                self.text(encoded.cast::<pyo3::types::PyBytes>()?.as_bytes())
            }
        }
    }

    #[inline]
    fn text(&mut self, bytes: &[u8]) -> PyResult<()> {
        check_length(bytes.len(), "unicode string")?;
        if self.options.old_raw {
            write::raw(self.out, bytes)
        } else {
            write::str(self.out, bytes)
        }
        Ok(())
    }

    fn bin(&mut self, bytes: &[u8], what: &str) -> PyResult<()> {
        check_length(bytes.len(), what)?;
        if self.options.old_raw {
            write::raw(self.out, bytes)
        } else {
            write::bin(self.out, bytes)
        }
        Ok(())
    }

    fn int(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<Frame<'py>>> {
        match ffi::int_value(object)? {
            Wide::Signed(value) => write::int(self.out, value),
            Wide::Unsigned(value) => write::uint(self.out, value),
            Wide::Neither => return self.default_or(object, |_, _| out_of_range()),
        }
        Ok(None)
    }

    #[inline]
    fn float(&mut self, value: f64) {
        if self.options.use_single_float {
            write::f32(self.out, value as f32);
        } else {
            write::f64(self.out, value);
        }
    }

    #[inline]
    fn open_list(&mut self, list: &Bound<'py, PyAny>) -> PyResult<Option<Frame<'py>>> {
        if cfg!(Py_GIL_DISABLED) {
            // Other threads may change the list at any time: write a copy.
            return self.open_tuple(snapshot(list)?);
        }
        let length = self.begin_list(list)?;
        Ok(Some(Frame::List { list: list.clone(), next: 0, length }))
    }

    /// Writes the header of a list, and returns its length.
    #[inline]
    fn begin_list(&mut self, list: &Bound<'py, PyAny>) -> PyResult<usize> {
        let length = ffi::list_length(list);
        check_length(length, "list")?;
        write::array_header(self.out, length);
        Ok(length)
    }

    fn open_tuple(&mut self, tuple: Bound<'py, PyAny>) -> PyResult<Option<Frame<'py>>> {
        let length = tuple.len()?;
        check_length(length, "list")?;
        write::array_header(self.out, length);
        Ok(Some(Frame::Tuple { tuple, next: 0 }))
    }

    #[inline]
    fn open_dict(&mut self, dict: &Bound<'py, PyAny>) -> PyResult<Option<Frame<'py>>> {
        let (dict, left) = self.begin_dict(dict)?;
        Ok(Some(Frame::Dict { dict, at: 0, left, value: None }))
    }

    /// Writes the header of a dict, and returns what its entries are to be written from, and how many there are.
    #[inline]
    fn begin_dict(&mut self, dict: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyDict>, usize)> {
        let dict = dict.cast::<PyDict>()?;
        let dict = if cfg!(Py_GIL_DISABLED) { dict.copy()? } else { dict.clone() };
        let left = dict.len();
        check_length(left, "dict")?;
        write::map_header(self.out, left);
        Ok((dict, left))
    }

    fn open_pairs(&mut self, dict: &Bound<'py, PyAny>) -> PyResult<Option<Frame<'py>>> {
        let left = dict.len()?;
        check_length(left, "dict")?;
        write::map_header(self.out, left);
        let pairs = dict.call_method0("items")?.try_iter()?;
        Ok(Some(Frame::Pairs { pairs, left, value: None }))
    }

    /// Writes an object that is not exactly of one of the commonest types.
    #[cold]
    #[inline(never)]
    fn other(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<Frame<'py>>> {
        match self.try_other(object)? {
            Outcome::Written => Ok(None),
            Outcome::Open(frame) => Ok(frame),
            Outcome::Unknown => self.default_or(object, unsupported),
        }
    }

    fn try_other(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Outcome<'py>> {
        match types::family(object, self.options.strict_types)? {
            types::Family::Int => return self.int(object).map(Outcome::Open),
            types::Family::Float => self.float(object.extract()?),
            types::Family::Str => self.str(object)?,
            types::Family::Bytes => self.bin(types::bytes_of(object)?.as_slice(), "bytes")?,
            types::Family::Dict => return self.open_pairs(object).map(Outcome::Open),
            types::Family::Ext => self.ext(object)?,
            types::Family::Timestamp => self.timestamp(object)?,
            types::Family::List => return self.open_tuple(snapshot(object)?).map(Outcome::Open),
            types::Family::Tuple => return self.open_tuple(object.clone()).map(Outcome::Open),
            types::Family::Other => return self.extra(object),
        }
        Ok(Outcome::Written)
    }

    /// What msgpack itself does not write, as far as the options say so.
    fn extra(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Outcome<'py>> {
        if let Some(stand) = self.options.datetime.stand(object)? {
            return self.stand(stand);
        }
        match self.options.extra.stand(object)? {
            Some(stand) => self.stand(stand),
            None => Ok(Outcome::Unknown),
        }
    }

    fn stand(&mut self, stand: Stand<'py>) -> PyResult<Outcome<'py>> {
        match stand {
            Stand::Object(object) => return self.write(&object).map(Outcome::Open),
            Stand::Timestamp(timestamp) => write::timestamp(self.out, timestamp),
            Stand::Array(array) => array.write(self.out)?,
        }
        Ok(Outcome::Written)
    }

    fn ext(&mut self, object: &Bound<'py, PyAny>) -> PyResult<()> {
        let kind: u8 = object.getattr("code")?.extract()?;
        let data = object.getattr("data")?;
        let payload = types::bytes_of(&data)?;
        check_length(payload.as_slice().len(), "EXT data")?;
        write::ext(self.out, kind.cast_signed(), payload.as_slice());
        Ok(())
    }

    fn timestamp(&mut self, object: &Bound<'py, PyAny>) -> PyResult<()> {
        let seconds = object.getattr("seconds")?.extract()?;
        let nanoseconds = object.getattr("nanoseconds")?.extract()?;
        write::timestamp(self.out, Timestamp { seconds, nanoseconds });
        Ok(())
    }

    /// Writes what `default` makes of the object, once, or raises what `refuse` returns.
    fn default_or(
        &mut self,
        object: &Bound<'py, PyAny>,
        refuse: fn(&PackOptions, &Bound<'py, PyAny>) -> PyErr,
    ) -> PyResult<Option<Frame<'py>>> {
        let Some(default) = &self.options.default else { return Err(refuse(self.options, object)) };
        let made = default.bind(self.py).call1((object,))?;
        if ffi::is_exactly(&made, &raw mut c::PyLong_Type) && matches!(ffi::int_value(&made)?, Wide::Neither)
        {
            return Err(out_of_range());
        }
        if types::is_common(&made) {
            return self.write(&made);
        }
        match self.try_other(&made)? {
            Outcome::Written => Ok(None),
            Outcome::Open(frame) => Ok(frame),
            Outcome::Unknown => Err(unsupported(self.options, &made)),
        }
    }
}

enum Outcome<'py> {
    Written,
    Open(Option<Frame<'py>>),
    Unknown,
}

/// A tuple of the items that the object has now.
fn snapshot<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: takes any object; returns a new reference, or null with an exception set.
    unsafe { ffi::owned(object.py(), c::PySequence_Tuple(object.as_ptr())) }
}

#[inline]
fn list_item<'a, 'py>(list: &'a Bound<'py, PyAny>, place: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
    // SAFETY: only called with lists, on builds with the lock; the place is checked against the length of now.
    unsafe {
        if place >= c::PyList_GET_SIZE(list.as_ptr()).cast_unsigned() {
            return None;
        }
        let item = c::PyList_GET_ITEM(list.as_ptr(), place.cast_signed());
        Some(Borrowed::from_ptr(list.py(), item))
    }
}

#[inline]
fn tuple_item<'a, 'py>(tuple: &'a Bound<'py, PyAny>, place: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
    // SAFETY: only called with tuples, whose length never changes; the place is checked against it.
    unsafe {
        if place >= c::PyTuple_GET_SIZE(tuple.as_ptr()).cast_unsigned() {
            return None;
        }
        let item = c::PyTuple_GET_ITEM(tuple.as_ptr(), place.cast_signed());
        Some(Borrowed::from_ptr(tuple.py(), item))
    }
}

/// The next entry of a dict. When the dict was changed meanwhile it may be any entry, or none.
#[inline]
fn dict_entry<'a, 'py>(
    dict: &'a Bound<'py, PyDict>,
    at: &mut c::Py_ssize_t,
) -> Option<(Borrowed<'a, 'py, PyAny>, Borrowed<'a, 'py, PyAny>)> {
    let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: a dict, and places for what is borrowed from it; on builds without the lock the dict is our own
    // copy. References are taken before anything else can run.
    unsafe {
        if ffi::dict_next(dict.as_ptr(), at, &raw mut key, &raw mut value) == 0 {
            return None;
        }
        Some((Borrowed::from_ptr(dict.py(), key), Borrowed::from_ptr(dict.py(), value)))
    }
}

/// An error when the format cannot express the length.
pub(super) fn check_length(length: usize, what: &str) -> PyResult<()> {
    if length <= MAX_LENGTH {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{what} is too large: {length} > {MAX_LENGTH}")))
}

#[cold]
fn unsupported(options: &PackOptions, object: &Bound<'_, PyAny>) -> PyErr {
    let kind = types::name_of(object);
    if options.datetime == types::Datetime::Timestamp && object.is_exact_instance_of::<PyDateTime>() {
        return PyValueError::new_err(format!("can not serialize '{kind}' object where tzinfo=None"));
    }
    PyTypeError::new_err(format!("can not serialize '{kind}' object"))
}

#[cold]
fn changed(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what} changed size while it was packed"))
}

#[cold]
fn out_of_range() -> PyErr {
    PyOverflowError::new_err("Integer value out of range")
}

/// The time since the epoch of a datetime with a time zone.
pub(super) fn timestamp_of(datetime: &Bound<'_, PyDateTime>) -> PyResult<Option<Timestamp>> {
    if datetime.get_tzinfo().is_none() {
        return Ok(None);
    }
    let delta = datetime.sub(classes::epoch(datetime.py())?)?.cast_into::<PyDelta>()?;
    Ok(Some(Timestamp {
        seconds: i64::from(delta.get_days()) * 86400 + i64::from(delta.get_seconds()),
        nanoseconds: delta.get_microseconds().cast_unsigned() * 1000,
    }))
}
