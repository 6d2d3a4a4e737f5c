//! Traverses containers: by recursion up to a depth, then with a list of the open ones.

use offlock_core::msgpack::write::Sink;
use pyo3::prelude::*;

use super::frame::OpenContainer;
use super::options::PackOptions;
use crate::gil_yield::Yielder;
use crate::msgpack::options::MAX_DEPTH;
use crate::msgpack::pack_error::{PackError, PackResult, too_deep};

/// Containers that are nested deeper do not recurse on the machine's stack.
pub(super) const RECURSION: usize = 64;

pub(super) struct Writer<'a, 'py, S> {
    pub(super) py: Python<'py>,
    pub(super) options: &'a PackOptions,
    pub(super) out: &'a mut S,
    pub(super) yielder: Yielder<'static>,
}

impl<'py, S: Sink> Writer<'_, 'py, S> {
    #[inline]
    pub(super) fn whole(&mut self, object: &Bound<'py, PyAny>) -> PackResult<()> {
        if !self.leaf(object.as_borrowed())? {
            self.container(object, 0)?;
        }
        Ok(())
    }

    /// Lets other threads run. Called when no reference is borrowed, before `values` values are written.
    #[inline(always)]
    pub(super) fn pause(&mut self, values: usize) -> PackResult<()> {
        self.yielder.tick_many(self.py, values).map_err(PackError::interrupt)
    }

    /// Writes the contents of `frame` at nesting level `depth`.
    #[inline(never)]
    pub(super) fn complete(&mut self, mut frame: OpenContainer<'py>, depth: usize) -> PackResult<()> {
        match self.step(&mut frame, depth) {
            Ok(None) => Ok(()),
            Ok(Some(child)) => self.finish(frame, child, depth),
            Err(trouble) => Err(trouble.within(|| frame.step())),
        }
    }

    /// As `complete`, for a frame whose next value is the deeply nested `child`.
    #[cold]
    pub(super) fn finish(
        &mut self,
        frame: OpenContainer<'py>,
        child: OpenContainer<'py>,
        depth: usize,
    ) -> PackResult<()> {
        let mut open = vec![frame];
        let result = self.deep(&mut open, child, depth);
        result.map_err(|trouble| {
            open.iter().rev().fold(trouble, |trouble, frame| trouble.within(|| frame.step()))
        })
    }

    /// Writes the contents of `frame`, and then the rest of the `open` containers around it. After an error,
    /// the containers around its place stay in `open`.
    pub(super) fn deep(
        &mut self,
        open: &mut Vec<OpenContainer<'py>>,
        mut frame: OpenContainer<'py>,
        depth: usize,
    ) -> PackResult<()> {
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

    /// Writes values of `frame` up to the first deeply nested container, which it returns.
    #[inline]
    pub(super) fn step(
        &mut self,
        frame: &mut OpenContainer<'py>,
        depth: usize,
    ) -> PackResult<Option<OpenContainer<'py>>> {
        match frame {
            OpenContainer::List { list, next, length } => self.list(list, next, *length, depth),
            OpenContainer::Tuple { tuple, next } => self.tuple(tuple, next, depth),
            OpenContainer::Dict { dict, at, left, value } => self.dict(dict, at, left, value, depth),
            OpenContainer::Pairs(pairs) => self.pairs(pairs, depth),
            OpenContainer::Rows(rows) => self.rows(rows, depth),
        }
    }

    /// Checks the clock after a long piece of work.
    #[cold]
    pub(super) fn look(&mut self) -> PackResult<()> {
        self.yielder.check_now(self.py).map_err(PackError::interrupt)
    }
}
