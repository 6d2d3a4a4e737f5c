//! Writes Python objects as a message. What is nested deep takes no more of the machine's stack.
//!
//! Packing needs the lock, and now and then lets other threads have it, or a signal's handler run. These may change whatever
//! is being packed, as a callback may: so every container that is open is held, its places are checked each time, and what
//! is borrowed from it is used up before the next pause.

use std::ffi::CString;

use offlock_core::msgpack::Timestamp;
use offlock_core::msgpack::write::{self, MAX_LENGTH, Sink};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi as c;
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyIterator, PyList, PyTzInfoAccess};

use super::classes;
use super::ffi::{self, Wide};
use super::numpy::Pieces;
use super::options::{MAX_DEPTH, callable, error_handler, unexpected_keyword};
use super::place::{Packed, Step, Trouble, key_shown};
use super::types::{self, Stand};
use crate::errors::WithMessage;
use crate::objects::{Text, name};
use crate::pace::Pace;
use crate::region::Release;
use crate::utf8;

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
    /// `Never`: other threads have to wait until all is packed.
    pub(super) release: Release,
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
            release: Release::Auto,
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

    /// Whether packing runs no code of the program, as long as it meets nothing but the commonest types.
    pub(super) const fn is_plain(&self) -> bool {
        self.default.is_none()
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "default" => self.default = callable("default", value)?,
            "use_single_float" => self.use_single_float = value.is_truthy()?,
            "use_bin_type" => self.old_raw = !value.is_truthy()?,
            "strict_types" => self.strict_types = value.is_truthy()?,
            "datetime" => self.datetime = types::Datetime::from_option(value)?,
            "unicode_errors" => self.unicode_errors = error_handler(value)?,
            "release" => self.release = value.extract()?,
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
    Pairs(Pairs<'py>),
    /// The lists that numpy makes of an array.
    Rows(Rows<'py>),
}

struct Pairs<'py> {
    pairs: Bound<'py, PyIterator>,
    left: usize,
    key: Option<Bound<'py, PyAny>>,
    value: Option<Bound<'py, PyAny>>,
}

struct Rows<'py> {
    pieces: Pieces<'py>,
    piece: Bound<'py, PyAny>,
    /// The next place of the piece.
    next: usize,
    done: usize,
}

impl Frame<'_> {
    /// Where the value stands that was written last.
    #[cold]
    fn step(&self) -> Option<Step> {
        match self {
            Self::List { next, .. } | Self::Tuple { next, .. } => item_step(*next),
            Self::Dict { dict, at, value, .. } => entry_step(dict, *at, value.is_some()),
            Self::Pairs(Pairs { key, value, .. }) => key.as_ref().map(|key| key_step(key, value.is_some())),
            Self::Rows(rows) => item_step(rows.done),
        }
    }
}

/// Appends `object` to `out`.
#[inline]
pub(super) fn pack<'py>(
    object: &Bound<'py, PyAny>,
    options: &PackOptions,
    out: &mut impl Sink,
) -> PyResult<()> {
    let py = object.py();
    let mut packer = Writer { py, options, out, pace: Pace::of(options.release) };
    packer.whole(object).map_err(|trouble| trouble.into_exception(py))
}

/// Appends a map of `length` pairs.
pub(super) fn pack_pairs(
    pairs: &Bound<'_, PyAny>,
    length: usize,
    options: &PackOptions,
    out: &mut impl Sink,
) -> PyResult<()> {
    let py = pairs.py();
    write::map_header(out, length);
    let pairs = pairs.try_iter()?;
    let pace = Pace::of(options.release);
    let mut packer = Writer { py, options, out, pace };
    let mut frame = Pairs { pairs, left: length, key: None, value: None };
    let result = match packer.pairs(&mut frame, 0) {
        Ok(None) => Ok(()),
        Ok(Some(child)) => packer.finish(Frame::Pairs(frame), child, 0),
        Err(trouble) => Err(trouble.within(|| Frame::Pairs(frame).step())),
    };
    result.map_err(|trouble| trouble.into_exception(py))
}

/// Appends an extension, whose payload is the owner's, or nobody's but the caller's.
pub(super) fn pack_ext(
    owner: &Bound<'_, PyAny>,
    kind: i8,
    payload: &[u8],
    options: &PackOptions,
    out: &mut impl Sink,
) -> PyResult<()> {
    let py = owner.py();
    write::ext_header(out, kind, payload.len());
    let mut packer = Writer { py, options, out, pace: Pace::of(options.release) };
    packer.content(owner, payload).map_err(|trouble| trouble.into_exception(py))
}

/// Containers that are nested deeper take no more of the machine's stack.
const RECURSION: usize = 64;

/// So many values of a container are written without a pause.
const STRETCH: usize = 64;

/// Longer strings and the like count as more than one value in the time they take.
const LONG: usize = 8 << 10;

/// Of long ones so many bytes are copied at once.
const PIECE: usize = 256 << 10;

struct Writer<'a, 'py, S> {
    py: Python<'py>,
    options: &'a PackOptions,
    out: &'a mut S,
    pace: Pace,
}

impl<'py, S: Sink> Writer<'_, 'py, S> {
    #[inline]
    fn whole(&mut self, object: &Bound<'py, PyAny>) -> Packed<()> {
        if !self.leaf(object.as_borrowed())? {
            self.container(object, 0)?;
        }
        Ok(())
    }

    /// Others may run. To be called when nothing is borrowed, before so many values are written.
    #[inline(always)]
    fn pause(&mut self, values: usize) -> Packed<()> {
        self.pace.keep_many(self.py, values).map_err(Trouble::interrupt)
    }

    /// Writes all that is in `frame`, which `depth` others are around.
    #[inline(never)]
    fn complete(&mut self, mut frame: Frame<'py>, depth: usize) -> Packed<()> {
        match self.step(&mut frame, depth) {
            Ok(None) => Ok(()),
            Ok(Some(child)) => self.finish(frame, child, depth),
            Err(trouble) => Err(trouble.within(|| frame.step())),
        }
    }

    /// As `complete`, for a frame whose next value is `child`, when what is inside it is nested deep.
    #[cold]
    fn finish(&mut self, frame: Frame<'py>, child: Frame<'py>, depth: usize) -> Packed<()> {
        let mut open = vec![frame];
        let result = self.deep(&mut open, child, depth);
        result.map_err(|trouble| {
            open.iter().rev().fold(trouble, |trouble, frame| trouble.within(|| frame.step()))
        })
    }

    /// Writes what is in `frame`, and then what is left of the `open` ones around it. When something is wrong, those that are
    /// around that stay in `open`.
    fn deep(&mut self, open: &mut Vec<Frame<'py>>, mut frame: Frame<'py>, depth: usize) -> Packed<()> {
        loop {
            if depth + open.len() > MAX_DEPTH {
                return Err(too_deep());
            }
            match self.step(&mut frame, RECURSION) {
                Ok(Some(child)) => open.push(std::mem::replace(&mut frame, child)),
                Ok(None) => match open.pop() {
                    Some(outer) => frame = outer,
                    None => return Ok(()),
                },
                Err(trouble) => {
                    open.push(frame);
                    return Err(trouble);
                }
            }
        }
    }

    /// Writes values of `frame` up to the first container that is nested deep, which it returns.
    #[inline]
    fn step(&mut self, frame: &mut Frame<'py>, depth: usize) -> Packed<Option<Frame<'py>>> {
        match frame {
            Frame::List { list, next, length } => self.list(list, next, *length, depth),
            Frame::Tuple { tuple, next } => self.tuple(tuple, next, depth),
            Frame::Dict { dict, at, left, value } => self.dict(dict, at, left, value, depth),
            Frame::Pairs(pairs) => self.pairs(pairs, depth),
            Frame::Rows(rows) => self.rows(rows, depth),
        }
    }

    /// Writes a container that `depth` others are around, or a value of one of the rarer types. Of a container that is
    /// nested deep only the header is written, and it is returned.
    #[inline]
    fn container(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> Packed<Option<Frame<'py>>> {
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
    fn whole_dict(&mut self, dict: &Bound<'py, PyAny>, depth: usize) -> Packed<()> {
        let (dict, mut left) = self.begin_dict(dict)?;
        let (mut at, mut value) = (0, None);
        match self.dict(&dict, &mut at, &mut left, &mut value, depth) {
            Ok(None) => Ok(()),
            Ok(Some(child)) => self.finish(Frame::Dict { dict, at, left, value }, child, depth),
            Err(trouble) => Err(trouble.within(|| entry_step(&dict, at, value.is_some()))),
        }
    }

    /// The same for a list.
    #[inline(never)]
    fn whole_list(&mut self, list: &Bound<'py, PyAny>, depth: usize) -> Packed<()> {
        let (list, mut next) = (list.clone(), 0);
        let length = self.begin_list(&list)?;
        match self.list(&list, &mut next, length, depth) {
            Ok(None) => Ok(()),
            Ok(Some(child)) => self.finish(Frame::List { list, next, length }, child, depth),
            Err(trouble) => Err(trouble.within(|| item_step(next))),
        }
    }

    /// Writes the items of a list up to the first container. Items that were appended meanwhile are left out.
    #[inline]
    fn list(
        &mut self,
        list: &Bound<'py, PyAny>,
        next: &mut usize,
        length: usize,
        depth: usize,
    ) -> Packed<Option<Frame<'py>>> {
        while *next < length {
            let end = length.min(*next + STRETCH);
            self.pause(end - *next)?;
            while *next < end {
                let Some(item) = list_item(list, *next) else { return Err(changed("list")) };
                *next += 1;
                if !self.leaf(item)?
                    && let Some(child) = self.container(&item.to_owned(), depth + 1)?
                {
                    return Ok(Some(child));
                }
            }
        }
        Ok(None)
    }

    #[inline]
    fn tuple(
        &mut self,
        tuple: &Bound<'py, PyAny>,
        next: &mut usize,
        depth: usize,
    ) -> Packed<Option<Frame<'py>>> {
        while let Some(item) = tuple_item(tuple, *next) {
            if (*next).is_multiple_of(STRETCH) {
                self.pause(STRETCH)?;
            }
            *next += 1;
            if !self.leaf(item)?
                && let Some(child) = self.container(&item.to_owned(), depth + 1)?
            {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// Writes the entries of a dict up to the first container. While a key is written that is no leaf, its value is `value`.
    #[inline]
    fn dict(
        &mut self,
        dict: &Bound<'py, PyDict>,
        at: &mut c::Py_ssize_t,
        left: &mut usize,
        value: &mut Option<Bound<'py, PyAny>>,
        depth: usize,
    ) -> Packed<Option<Frame<'py>>> {
        if let Some(value) = value.take()
            && let Some(child) = self.nested(&value, depth)?
        {
            return Ok(Some(child));
        }
        loop {
            let stretch = left.saturating_add(1).min(STRETCH);
            self.pause(stretch)?;
            for _ in 0..stretch {
                let Some((key, item)) = dict_entry(dict, at) else {
                    return if *left > 0 { Err(changed("dictionary")) } else { Ok(None) };
                };
                let Some(rest) = left.checked_sub(1) else { return Err(changed("dictionary")) };
                *left = rest;
                match self.leaf(key) {
                    Ok(true) => {}
                    other => {
                        if let Some(child) = self.entry(key, item, other, value, depth)? {
                            return Ok(Some(child));
                        }
                        continue;
                    }
                }
                if !self.leaf(item)?
                    && let Some(child) = self.container(&item.to_owned(), depth + 1)?
                {
                    return Ok(Some(child));
                }
            }
        }
    }

    /// Writes an entry whose key is no leaf, or what is wrong with it.
    #[cold]
    fn entry(
        &mut self,
        key: Borrowed<'_, 'py, PyAny>,
        item: Borrowed<'_, 'py, PyAny>,
        is_leaf: Packed<bool>,
        value: &mut Option<Bound<'py, PyAny>>,
        depth: usize,
    ) -> Packed<Option<Frame<'py>>> {
        let is_leaf = is_leaf.inspect_err(|_| {
            // Making the exception may have freed the entry; that there is a value says that the key is what is wrong.
            *value = Some(self.py.None().into_bound(self.py));
        })?;
        // Packing the key may run code that changes the dict: hold on to the value.
        *value = Some(item.to_owned());
        if !is_leaf && let Some(child) = self.container(&key.to_owned(), depth + 1)? {
            return Ok(Some(child));
        }
        value.take().map_or(Ok(None), |item| self.nested(&item, depth))
    }

    fn pairs(&mut self, frame: &mut Pairs<'py>, depth: usize) -> Packed<Option<Frame<'py>>> {
        loop {
            if let Some(value) = frame.value.take()
                && let Some(child) = self.nested(&value, depth)?
            {
                return Ok(Some(child));
            }
            self.pause(1)?;
            frame.key = None;
            let Some(pair) = frame.pairs.next() else { break };
            let (key, item) = pair?.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
            let Some(rest) = frame.left.checked_sub(1) else { return Err(changed("dictionary")) };
            frame.left = rest;
            frame.value = Some(item);
            frame.key = Some(key.clone());
            if let Some(child) = self.nested(&key, depth)? {
                return Ok(Some(child));
            }
        }
        if frame.left > 0 { Err(changed("dictionary")) } else { Ok(None) }
    }

    fn rows(&mut self, frame: &mut Rows<'py>, depth: usize) -> Packed<Option<Frame<'py>>> {
        loop {
            while let Some(item) = list_item(&frame.piece, frame.next) {
                let item = item.to_owned();
                (frame.next, frame.done) = (frame.next + 1, frame.done + 1);
                if frame.done > frame.pieces.rows() {
                    return Err(changed("array"));
                }
                if let Some(child) = self.nested(&item, depth)? {
                    return Ok(Some(child));
                }
                self.pause(1)?;
            }
            self.look()?;
            let Some(piece) = frame.pieces.next()? else { break };
            (frame.piece, frame.next) = (piece.cast_into::<PyList>().map_err(PyErr::from)?.into_any(), 0);
        }
        if frame.done < frame.pieces.rows() { Err(changed("array")) } else { Ok(None) }
    }

    /// Writes a value in a container that `depth` others are around; as `container`, for a value of any kind.
    fn nested(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> Packed<Option<Frame<'py>>> {
        if self.leaf(object.as_borrowed())? { Ok(None) } else { self.container(object, depth + 1) }
    }

    /// Writes a value of one of the commonest types, which takes neither Python code nor long; whether it was one.
    #[inline(always)]
    fn leaf(&mut self, object: Borrowed<'_, 'py, PyAny>) -> Packed<bool> {
        if ffi::is_exactly(&object, &raw mut c::PyUnicode_Type) {
            // SAFETY: exactly a str, as just checked, and alive: somebody lent it to us.
            match unsafe { ffi::ascii_of(object.as_ptr()) } {
                _ if !self.options.plain_str => return Ok(false),
                Some(text) if text.len() < LONG => write::str(self.out, text),
                None if ffi::characters(&object) < LONG / 4 => write::str(self.out, ffi::utf8_of(&object)?),
                // Others run while it is written, and what is next to it in a dict may go.
                _ => return Ok(false),
            }
        } else if ffi::is_exactly(&object, &raw mut c::PyLong_Type) {
            match ffi::int_value(&object)? {
                Wide::Signed(value) => write::int(self.out, value),
                Wide::Unsigned(value) => write::uint(self.out, value),
                Wide::Neither => return Ok(false),
            }
        } else if ffi::is_exactly(&object, &raw mut c::PyFloat_Type) {
            float(self.out, self.options, ffi::float_value(&object))?;
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
    fn open(&mut self, object: &Bound<'py, PyAny>) -> Packed<Option<Frame<'py>>> {
        if ffi::is_exactly(object, &raw mut c::PyDict_Type) {
            self.open_dict(object)
        } else if ffi::is_exactly(object, &raw mut c::PyList_Type) {
            self.open_list(object)
        } else {
            self.other(object)
        }
    }

    #[cold]
    fn str(&mut self, object: &Bound<'py, PyAny>) -> Packed<()> {
        match &self.options.unicode_errors {
            None => self.text(object),
            Some(errors) => {
                let encoded =
                    object.call_method1(name!("encode"), (name!("utf-8"), Text(errors.to_string_lossy())))?;
                let bytes = encoded.cast::<pyo3::types::PyBytes>().map_err(PyErr::from)?.as_bytes();
                self.text_of(&encoded, bytes)
            }
        }
    }

    #[inline]
    fn text(&mut self, object: &Bound<'py, PyAny>) -> Packed<()> {
        let long = utf8::of_long(object.cast().map_err(PyErr::from)?, self.options.release);
        if let Some(text) = long.map_err(Trouble::interrupt)? {
            return self.text_of(object, text.as_bytes());
        }
        let bytes = ffi::utf8_of(object)?;
        if bytes.len() >= LONG || self.options.old_raw {
            return self.text_of(object, bytes);
        }
        write::str(self.out, bytes);
        Ok(())
    }

    #[cold]
    fn text_of(&mut self, owner: &Bound<'py, PyAny>, bytes: &[u8]) -> Packed<()> {
        check_length(bytes.len(), "unicode string")?;
        if self.options.old_raw || bytes.len() >= LONG {
            write::raw_header(self.out, bytes.len());
            return self.content(owner, bytes);
        }
        write::str(self.out, bytes);
        Ok(())
    }

    fn bin(&mut self, owner: &Bound<'py, PyAny>, bytes: &[u8], what: &str) -> Packed<()> {
        check_length(bytes.len(), what)?;
        if self.options.old_raw {
            write::raw_header(self.out, bytes.len());
        } else {
            write::bin_header(self.out, bytes.len());
        }
        self.content(owner, bytes)
    }

    /// Writes bytes that are the owner's, or nobody's but ours.
    #[inline]
    fn content(&mut self, owner: &Bound<'py, PyAny>, bytes: &[u8]) -> Packed<()> {
        if bytes.len() >= LONG {
            return self.long(&owner.clone(), bytes);
        }
        self.out.put(bytes);
        Ok(())
    }

    /// The owner is held: others may run between two pieces.
    #[cold]
    fn long(&mut self, _owner: &Bound<'py, PyAny>, bytes: &[u8]) -> Packed<()> {
        self.out.expect(bytes.len());
        for piece in bytes.chunks(PIECE) {
            self.out.put(piece);
            self.look()?;
        }
        Ok(())
    }

    /// Something long was done.
    #[cold]
    fn look(&mut self) -> Packed<()> {
        self.pace.look(self.py).map_err(Trouble::interrupt)
    }

    fn int(&mut self, object: &Bound<'py, PyAny>) -> Packed<Outcome<'py>> {
        match ffi::int_value(object)? {
            Wide::Signed(value) => write::int(self.out, value),
            Wide::Unsigned(value) => write::uint(self.out, value),
            Wide::Neither => return Ok(Outcome::TooWide),
        }
        Ok(Outcome::Written)
    }

    #[inline]
    fn open_list(&mut self, list: &Bound<'py, PyAny>) -> Packed<Option<Frame<'py>>> {
        if cfg!(Py_GIL_DISABLED) {
            // Other threads may change the list at any time: write a copy.
            return self.open_tuple(snapshot(list)?).map(Some);
        }
        let length = self.begin_list(list)?;
        Ok(Some(Frame::List { list: list.clone(), next: 0, length }))
    }

    /// Writes the header of a list, and returns its length.
    #[inline]
    fn begin_list(&mut self, list: &Bound<'py, PyAny>) -> Packed<usize> {
        let length = ffi::list_length(list);
        check_length(length, "list")?;
        write::array_header(self.out, length);
        Ok(length)
    }

    fn open_tuple(&mut self, tuple: Bound<'py, PyAny>) -> Packed<Frame<'py>> {
        let length = tuple_length(&tuple);
        check_length(length, "list")?;
        write::array_header(self.out, length);
        Ok(Frame::Tuple { tuple, next: 0 })
    }

    #[inline]
    fn open_dict(&mut self, dict: &Bound<'py, PyAny>) -> Packed<Option<Frame<'py>>> {
        let (dict, left) = self.begin_dict(dict)?;
        Ok(Some(Frame::Dict { dict, at: 0, left, value: None }))
    }

    /// Writes the header of a dict, and returns what its entries are to be written from, and how many there are.
    #[inline]
    fn begin_dict(&mut self, dict: &Bound<'py, PyAny>) -> Packed<(Bound<'py, PyDict>, usize)> {
        let dict = dict.cast::<PyDict>().map_err(PyErr::from)?;
        let dict = if cfg!(Py_GIL_DISABLED) { dict.copy()? } else { dict.clone() };
        let left = dict.len();
        check_length(left, "dict")?;
        write::map_header(self.out, left);
        Ok((dict, left))
    }

    fn open_pairs(&mut self, dict: &Bound<'py, PyAny>) -> Packed<Frame<'py>> {
        let left = dict.len()?;
        check_length(left, "dict")?;
        write::map_header(self.out, left);
        let pairs = dict.call_method0(name!("items"))?.try_iter()?;
        Ok(Frame::Pairs(Pairs { pairs, left, key: None, value: None }))
    }

    fn open_pieces(&mut self, pieces: Pieces<'py>) -> Packed<Frame<'py>> {
        check_length(pieces.rows(), "array")?;
        write::array_header(self.out, pieces.rows());
        Ok(Frame::Rows(Rows { pieces, piece: self.py.None().into_bound(self.py), next: 0, done: 0 }))
    }

    /// Writes an object that is not exactly of one of the commonest types: it, or what stands for it, or what stands for
    /// that. `default` is asked once for each of them.
    #[cold]
    #[inline(never)]
    fn other(&mut self, object: &Bound<'py, PyAny>) -> Packed<Option<Frame<'py>>> {
        let mut object = object.clone();
        let mut default = self.options.default.as_ref();
        for _ in 0..MAX_DEPTH {
            let outcome = self.try_other(&object)?;
            object = match (outcome, default) {
                (Outcome::Written, _) => return Ok(None),
                (Outcome::Open(frame), _) => return Ok(Some(frame)),
                (Outcome::Replaced(stand), _) => {
                    default = self.options.default.as_ref();
                    stand
                }
                (Outcome::Unknown | Outcome::TooWide, Some(function)) => {
                    default = None;
                    function.bind(self.py).call1((object,))?
                }
                (Outcome::Unknown, None) => return Err(unsupported(self.options, &object)),
                (Outcome::TooWide, None) => return Err(out_of_range()),
            };
            if self.leaf(object.as_borrowed())? {
                return Ok(None);
            }
            if ffi::is_exactly(&object, &raw mut c::PyDict_Type) {
                return self.open_dict(&object);
            }
            if ffi::is_exactly(&object, &raw mut c::PyList_Type) {
                return self.open_list(&object);
            }
        }
        Err(too_deep())
    }

    fn try_other(&mut self, object: &Bound<'py, PyAny>) -> Packed<Outcome<'py>> {
        match types::family(object, self.options.strict_types)? {
            types::Family::Int => return self.int(object),
            types::Family::Float => float(self.out, self.options, ffi::float_value(object))?,
            types::Family::Str => self.str(object)?,
            types::Family::Bytes => self.bin(object, types::bytes_of(object)?.as_slice(), "bytes")?,
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
    fn extra(&mut self, object: &Bound<'py, PyAny>) -> Packed<Outcome<'py>> {
        if let Some(stand) = self.options.datetime.stand(object)? {
            return self.stand(stand);
        }
        match self.options.extra.stand(object)? {
            Some(stand) => self.stand(stand),
            None => Ok(Outcome::Unknown),
        }
    }

    fn stand(&mut self, stand: Stand<'py>) -> Packed<Outcome<'py>> {
        match stand {
            Stand::Object(object) => return Ok(Outcome::Replaced(object)),
            Stand::Timestamp(timestamp) => write::timestamp(self.out, timestamp),
            Stand::Pieces(pieces) => return self.open_pieces(pieces).map(Outcome::Open),
            Stand::Memory(memory) => {
                let Self { py, options, out, pace } = self;
                memory.write(
                    *out,
                    |out, value| float(out, options, value),
                    || pace.look(*py).map_err(Trouble::interrupt),
                )?;
            }
        }
        Ok(Outcome::Written)
    }

    fn ext(&mut self, object: &Bound<'py, PyAny>) -> Packed<()> {
        let kind: u8 = object.getattr(name!("code"))?.extract()?;
        let data = object.getattr(name!("data"))?;
        let payload = types::bytes_of(&data)?;
        check_length(payload.as_slice().len(), "EXT data")?;
        write::ext_header(self.out, kind.cast_signed(), payload.as_slice().len());
        self.content(&data, payload.as_slice())
    }

    fn timestamp(&mut self, object: &Bound<'py, PyAny>) -> Packed<()> {
        let seconds = object.getattr(name!("seconds"))?.extract()?;
        let nanoseconds = object.getattr(name!("nanoseconds"))?.extract()?;
        write::timestamp(self.out, Timestamp { seconds, nanoseconds });
        Ok(())
    }
}

/// What became of an object of one of the rarer types.
enum Outcome<'py> {
    Written,
    /// Its header is written.
    Open(Frame<'py>),
    /// This is to be written in its place.
    Replaced(Bound<'py, PyAny>),
    Unknown,
    /// An int that the format cannot express.
    TooWide,
}

#[inline(always)]
fn float(out: &mut impl Sink, options: &PackOptions, value: f64) -> Packed<()> {
    if options.use_single_float {
        return single_float(out, value);
    }
    write::f64(out, value);
    Ok(())
}

#[cold]
fn single_float(out: &mut impl Sink, value: f64) -> Packed<()> {
    let single = value as f32;
    if single.is_infinite() && value.is_finite() {
        return Err(Trouble::new(PyOverflowError::with_message, "float too large to pack with f format"));
    }
    write::f32(out, single);
    Ok(())
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

/// The length of a tuple, or of an object of a subclass, whatever its own `__len__` says.
fn tuple_length(tuple: &Bound<'_, PyAny>) -> usize {
    // SAFETY: only called with tuples.
    unsafe { c::PyTuple_GET_SIZE(tuple.as_ptr()).cast_unsigned() }
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
#[inline(always)]
pub(super) fn check_length(length: usize, what: &str) -> PyResult<()> {
    if length <= MAX_LENGTH { Ok(()) } else { Err(too_long(length, what)) }
}

#[cold]
fn too_long(length: usize, what: &str) -> PyErr {
    PyValueError::with_message(format!("{what} is too large: {length} > {MAX_LENGTH}"))
}

/// The item before `next`.
fn item_step(next: usize) -> Option<Step> {
    next.checked_sub(1).map(Step::Item)
}

/// The entry before `at`: its key if that was written last, else its value.
fn entry_step(dict: &Bound<'_, PyDict>, at: c::Py_ssize_t, is_key: bool) -> Option<Step> {
    let mut before = at.checked_sub(1).filter(|&before| before >= 0)?;
    let (key, _) = dict_entry(dict, &mut before)?;
    Some(key_step(&key.to_owned(), is_key))
}

fn key_step(key: &Bound<'_, PyAny>, is_key: bool) -> Step {
    let shown = key_shown(key);
    if is_key { Step::Key(shown) } else { Step::Value(shown) }
}

#[cold]
fn unsupported(options: &PackOptions, object: &Bound<'_, PyAny>) -> Trouble {
    let kind = types::name_of(object);
    if options.datetime == types::Datetime::Timestamp && object.is_exact_instance_of::<PyDateTime>() {
        let message = format!("can not serialize '{kind}' object where tzinfo=None");
        return Trouble::new(PyValueError::with_message, message);
    }
    Trouble::new(PyTypeError::with_message, format!("can not serialize '{kind}' object"))
}

#[cold]
fn changed(what: &str) -> Trouble {
    Trouble::new(PyRuntimeError::with_message, format!("{what} changed size during iteration")).of_whole()
}

#[cold]
fn too_deep() -> Trouble {
    Trouble::new(PyValueError::with_message, "recursion limit exceeded.")
}

#[cold]
fn out_of_range() -> Trouble {
    Trouble::new(PyOverflowError::with_message, "Integer value out of range")
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
