//! Goes through containers: by recursion as long as they are not nested deep, then with a list of those that are open.

use offlock_core::msgpack::write::Sink;
use pyo3::prelude::*;

use super::frame::OpenContainer;
use super::options::PackOptions;
use crate::gil_yield::Yielder;
use crate::msgpack::options::MAX_DEPTH;
use crate::msgpack::pack_error::{PackError, PackResult, too_deep};

/// Containers that are nested deeper take no more of the machine's stack.
pub(super) const RECURSION: usize = 64;

pub(super) struct Writer<'a, 'py, S> {
    pub(super) py: Python<'py>,
    pub(super) options: &'a PackOptions,
    pub(super) out: &'a mut S,
    pub(super) yielder: Yielder,
}

impl<'py, S: Sink> Writer<'_, 'py, S> {
    #[inline]
    pub(super) fn whole(&mut self, object: &Bound<'py, PyAny>) -> PackResult<()> {
        if !self.leaf(object.as_borrowed())? {
            self.container(object, 0)?;
        }
        Ok(())
    }

    /// Others may run. To be called when nothing is borrowed, before so many values are written.
    #[inline(always)]
    pub(super) fn pause(&mut self, values: usize) -> PackResult<()> {
        self.yielder.tick_many(self.py, values).map_err(PackError::interrupt)
    }

    /// Writes all that is in `frame`, which `depth` others are around.
    #[inline(never)]
    pub(super) fn complete(&mut self, mut frame: OpenContainer<'py>, depth: usize) -> PackResult<()> {
        match self.step(&mut frame, depth) {
            Ok(None) => Ok(()),
            Ok(Some(child)) => self.finish(frame, child, depth),
            Err(trouble) => Err(trouble.within(|| frame.step())),
        }
    }

    /// As `complete`, for a frame whose next value is `child`, when what is inside it is nested deep.
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

    /// Writes what is in `frame`, and then what is left of the `open` ones around it. When something is wrong, those that are
    /// around that stay in `open`.
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

    /// Writes values of `frame` up to the first container that is nested deep, which it returns.
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

    /// Something long was done.
    #[cold]
    pub(super) fn look(&mut self) -> PackResult<()> {
        self.yielder.check_now(self.py).map_err(PackError::interrupt)
    }
}
