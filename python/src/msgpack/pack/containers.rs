//! Lists, tuples and dicts.

use offlock_core::msgpack::write::{self, Sink};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::frame::{OpenContainer, Pairs, Rows, entry_step, item_step};
use super::writer::{RECURSION, Writer};
use crate::cpython::items::{dict_entry, list_item, list_length, tuple_item, tuple_length};
use crate::cpython::object::tuple_of;
use crate::msgpack::numpy::Pieces;
use crate::msgpack::pack_error::{PackResult, changed, check_length};
use crate::objects::name;

/// How many values of a container are written without a pause.
const STRETCH: usize = 64;

impl<'py, S: Sink> Writer<'_, 'py, S> {
    /// Writes a container at nesting level `depth`, or a value of one of the rarer types. If the container is
    /// deeply nested, only its header is written, and it is returned.
    #[inline]
    pub(super) fn container(
        &mut self,
        object: &Bound<'py, PyAny>,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
        if depth > RECURSION {
            return self.open(object);
        }
        if object.is_exact_instance_of::<PyDict>() {
            self.whole_dict(object, depth)?;
        } else if object.is_exact_instance_of::<PyList>() && !cfg!(Py_GIL_DISABLED) {
            self.whole_list(object, depth)?;
        } else if let Some(frame) = self.open(object)? {
            self.complete(frame, depth)?;
        }
        Ok(None)
    }

    /// Writes a dict and its contents, without an `OpenContainer`, which only deeply nested contents need.
    #[inline(never)]
    pub(super) fn whole_dict(&mut self, dict: &Bound<'py, PyAny>, depth: usize) -> PackResult<()> {
        let (dict, mut left) = self.begin_dict(dict)?;
        let (mut at, mut value) = (0, None);
        match self.dict(&dict, &mut at, &mut left, &mut value, depth) {
            Ok(None) => Ok(()),
            Ok(Some(child)) => self.finish(OpenContainer::Dict { dict, at, left, value }, child, depth),
            Err(trouble) => Err(trouble.within(|| entry_step(&dict, at, value.is_some()))),
        }
    }

    /// The same for a list.
    #[inline(never)]
    pub(super) fn whole_list(&mut self, list: &Bound<'py, PyAny>, depth: usize) -> PackResult<()> {
        let (list, mut next) = (list.clone(), 0);
        let length = self.begin_list(&list)?;
        match self.list(&list, &mut next, length, depth) {
            Ok(None) => Ok(()),
            Ok(Some(child)) => self.finish(OpenContainer::List { list, next, length }, child, depth),
            Err(trouble) => Err(trouble.within(|| item_step(next))),
        }
    }

    /// Writes the items of a list up to the first container. Items that were appended meanwhile are left out.
    #[inline]
    pub(super) fn list(
        &mut self,
        list: &Bound<'py, PyAny>,
        next: &mut usize,
        length: usize,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
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
    pub(super) fn tuple(
        &mut self,
        tuple: &Bound<'py, PyAny>,
        next: &mut usize,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
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

    /// Writes the entries of a dict up to the first container. While a key that is not a leaf is written,
    /// `value` holds its value.
    #[inline]
    pub(super) fn dict(
        &mut self,
        dict: &Bound<'py, PyDict>,
        at: &mut isize,
        left: &mut usize,
        value: &mut Option<Bound<'py, PyAny>>,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
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

    /// Writes an entry whose key is not a leaf, or returns the key's error.
    #[cold]
    pub(super) fn entry(
        &mut self,
        key: Borrowed<'_, 'py, PyAny>,
        item: Borrowed<'_, 'py, PyAny>,
        is_leaf: PackResult<bool>,
        value: &mut Option<Bound<'py, PyAny>>,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
        let is_leaf = is_leaf.inspect_err(|_| {
            // Making the exception may have freed the entry; the presence of a value marks the key as the
            // cause.
            *value = Some(self.py.None().into_bound(self.py));
        })?;
        // Packing the key may run code that changes the dict: keep a reference to the value.
        *value = Some(item.to_owned());
        if !is_leaf && let Some(child) = self.container(&key.to_owned(), depth + 1)? {
            return Ok(Some(child));
        }
        value.take().map_or(Ok(None), |item| self.nested(&item, depth))
    }

    pub(super) fn pairs(
        &mut self,
        frame: &mut Pairs<'py>,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
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

    pub(super) fn rows(
        &mut self,
        frame: &mut Rows<'py>,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
        loop {
            while let Some(item) = frame.piece.as_ref().and_then(|piece| list_item(piece, frame.next)) {
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
            let piece = piece.cast_into::<PyList>().map_err(PyErr::from)?;
            (frame.piece, frame.next) = (Some(piece.into_any()), 0);
        }
        if frame.done < frame.pieces.rows() { Err(changed("array")) } else { Ok(None) }
    }

    /// Writes a value of a container at nesting level `depth`; as `container`, for a value of any kind.
    pub(super) fn nested(
        &mut self,
        object: &Bound<'py, PyAny>,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
        if self.leaf(object.as_borrowed())? { Ok(None) } else { self.container(object, depth + 1) }
    }

    /// Writes the header of a container, or a value of one of the rarer types.
    #[inline]
    pub(super) fn open(&mut self, object: &Bound<'py, PyAny>) -> PackResult<Option<OpenContainer<'py>>> {
        if object.is_exact_instance_of::<PyDict>() {
            self.open_dict(object)
        } else if object.is_exact_instance_of::<PyList>() {
            self.open_list(object)
        } else {
            self.other(object)
        }
    }

    #[inline]
    pub(super) fn open_list(&mut self, list: &Bound<'py, PyAny>) -> PackResult<Option<OpenContainer<'py>>> {
        if cfg!(Py_GIL_DISABLED) {
            // Other threads may change the list at any time: write a copy.
            return self.open_tuple(tuple_of(list)?).map(Some);
        }
        let length = self.begin_list(list)?;
        Ok(Some(OpenContainer::List { list: list.clone(), next: 0, length }))
    }

    /// Writes the header of a list, and returns its length.
    #[inline]
    pub(super) fn begin_list(&mut self, list: &Bound<'py, PyAny>) -> PackResult<usize> {
        let length = list_length(list);
        check_length(length, "list")?;
        write::array_header(self.out, length);
        Ok(length)
    }

    pub(super) fn open_tuple(&mut self, tuple: Bound<'py, PyAny>) -> PackResult<OpenContainer<'py>> {
        let length = tuple_length(&tuple);
        check_length(length, "list")?;
        write::array_header(self.out, length);
        Ok(OpenContainer::Tuple { tuple, next: 0 })
    }

    #[inline]
    pub(super) fn open_dict(&mut self, dict: &Bound<'py, PyAny>) -> PackResult<Option<OpenContainer<'py>>> {
        let (dict, left) = self.begin_dict(dict)?;
        Ok(Some(OpenContainer::Dict { dict, at: 0, left, value: None }))
    }

    /// Writes the header of a dict, and returns the dict to read the entries from, and their number.
    #[inline]
    pub(super) fn begin_dict(&mut self, dict: &Bound<'py, PyAny>) -> PackResult<(Bound<'py, PyDict>, usize)> {
        let dict = dict.cast::<PyDict>().map_err(PyErr::from)?;
        let dict = if cfg!(Py_GIL_DISABLED) { dict.copy()? } else { dict.clone() };
        let left = dict.len();
        check_length(left, "dict")?;
        write::map_header(self.out, left);
        Ok((dict, left))
    }

    pub(super) fn open_pairs(&mut self, dict: &Bound<'py, PyAny>) -> PackResult<OpenContainer<'py>> {
        let left = dict.len()?;
        check_length(left, "dict")?;
        write::map_header(self.out, left);
        let pairs = dict.call_method0(name!("items"))?.try_iter()?;
        Ok(OpenContainer::Pairs(Pairs { pairs, left, key: None, value: None }))
    }

    pub(super) fn open_pieces(&mut self, pieces: Pieces<'py>) -> PackResult<OpenContainer<'py>> {
        check_length(pieces.rows(), "array")?;
        write::array_header(self.out, pieces.rows());
        Ok(OpenContainer::Rows(Rows { pieces, piece: None, next: 0, done: 0 }))
    }
}
