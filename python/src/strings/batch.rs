//! From pieces of text to a tuple or list of `str`, by way of the kind that was asked for.

use std::borrow::Cow;
use std::sync::Arc;

use offlock_core::Task;
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::text::{Arena, Piece, Pieces};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::collect::{Container, Filling};
use super::failed::Failed;
use super::{block, exact, view};
use crate::errors::no_memory;
use crate::pace::Pace;

/// What kind of `str` is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Exact,
    Block,
    View,
}

impl<'py> FromPyObject<'_, 'py> for Kind {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.extract::<&str>() {
            Ok("str") => Ok(Self::Exact),
            Ok("block") => Ok(Self::Block),
            Ok("view") => Ok(Self::View),
            _ => {
                let message = format!("kind must be 'str', 'block' or 'view', not {}", value.repr()?);
                Err(PyValueError::new_err(message))
            }
        }
    }
}

/// Where the characters come from.
pub(crate) trait Source {
    /// Calls `each` with the pieces, in order, until it fails. (Iterators from different places would hand each
    /// piece over through memory, which waits for all that is being written.)
    fn for_each<E>(&self, each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E>;

    /// The piece of this number.
    fn piece(&self, number: usize) -> Piece<'_>;

    /// How many there are.
    fn count(&self) -> usize;

    /// Calls `each` with the pieces in one arena after the other, until it fails.
    fn for_each_arena(
        &self,
        task: &Task<'_>,
        each: impl FnMut(&Arena) -> Result<(), Failed>,
    ) -> Result<(), Failed>;

    /// The pieces in arenas.
    fn stored(&self, task: &Task<'_>) -> Result<Cow<'_, [Arena]>, Failed>;
}

impl Source for Pieces<'_> {
    #[inline]
    fn for_each<E>(&self, each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        Pieces::for_each(self, each)
    }

    fn piece(&self, number: usize) -> Piece<'_> {
        Pieces::piece(self, number)
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn for_each_arena(
        &self,
        task: &Task<'_>,
        mut each: impl FnMut(&Arena) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        Arena::for_each(self, task, |arena| each(&arena))
    }

    fn stored(&self, task: &Task<'_>) -> Result<Cow<'_, [Arena]>, Failed> {
        Ok(Arena::store(self, task)?.into())
    }
}

impl Source for &[Arena] {
    #[inline]
    fn for_each<E>(&self, mut each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        self.iter().try_for_each(|arena| arena.pieces().try_for_each(&mut each))
    }

    fn piece(&self, number: usize) -> Piece<'_> {
        let mut before = number;
        for arena in *self {
            match arena.stored().get(before) {
                Some(stored) => return arena.piece(*stored),
                None => before -= arena.stored().len(),
            }
        }
        unreachable!("there are fewer than {number} pieces")
    }

    fn count(&self) -> usize {
        self.iter().map(|arena| arena.stored().len()).sum()
    }

    fn for_each_arena(
        &self,
        task: &Task<'_>,
        mut each: impl FnMut(&Arena) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        self.iter().try_for_each(|arena| {
            task.check()?;
            each(arena)
        })
    }

    fn stored(&self, _: &Task<'_>) -> Result<Cow<'_, [Arena]>, Failed> {
        Ok((*self).into())
    }
}

/// What goes to each place of a tuple or list.
#[derive(Debug, Clone)]
pub(crate) enum Places {
    /// The strings one by one.
    All,
    /// The next string where true, `None` where false.
    Present(Arc<[bool]>),
    /// The string of this number; `None` for [`NONE`].
    Numbered(Arc<Vec<u32>>),
}

/// In [`Places::Numbered`], stands for `None`.
pub(crate) const NONE: u32 = u32::MAX;

impl Places {
    /// How many places there are, with `strings` to put there.
    pub(super) fn count(&self, strings: usize) -> usize {
        match self {
            Self::All => strings,
            Self::Present(present) => present.len(),
            Self::Numbered(numbers) => numbers.len(),
        }
    }

    /// For each place the one of `numbers`, of which there is one for each string, or [`NONE`].
    pub(super) fn numbered(&self, numbers: Vec<u32>) -> Result<Vec<u32>, OutOfMemory> {
        let mut next = numbers.iter().copied();
        match self {
            Self::All => Ok(numbers),
            Self::Present(present) => {
                let mut number = |present: bool| if present { next.next() } else { None };
                memory::collected(present.iter().map(|&present| Ok(number(present).unwrap_or(NONE))))
            }
            Self::Numbered(old) => {
                let of = |&old: &u32| Ok(numbers.get(old as usize).copied().unwrap_or(NONE));
                memory::collected(old.iter().map(of))
            }
        }
    }
}

/// Makes strings of one kind: the part that needs no lock.
pub(crate) enum Maker {
    Exact { gives_way: bool },
    Block(block::Maker),
    View(view::Maker),
}

impl Maker {
    /// `RuntimeError` where this kind cannot be made.
    pub(crate) fn new(py: Python<'_>, kind: Kind) -> PyResult<Self> {
        Ok(match kind {
            Kind::Exact => Self::Exact { gives_way: true },
            Kind::Block => Self::Block(block::Maker::new(py)?),
            Kind::View => Self::View(view::Maker::new(py)?),
        })
    }

    /// The same, which keeps the lock while it makes strings one by one. Else other threads have it now and then.
    pub(crate) fn keeping_the_lock(self) -> Self {
        if let Self::Exact { .. } = self { Self::Exact { gives_way: false } } else { self }
    }

    /// Does for these pieces what can be done without the lock.
    pub(crate) fn make<S: Source>(&self, source: S, task: &Task<'_>) -> Result<Made<S>, Failed> {
        task.check()?;
        Ok(match self {
            Self::Exact { gives_way } => Made::Exact(source, *gives_way),
            Self::Block(maker) => {
                let objects = maker.make(&source, task)?;
                Made::Block(source, objects)
            }
            Self::View(maker) => Made::View(maker.make(&source, task)?),
        })
    }
}

/// Strings of which only the part that needs the lock is left to do.
pub(crate) enum Made<S> {
    /// With whether other threads have the lock now and then.
    Exact(S, bool),
    Block(S, block::Made),
    View(view::Made),
}

impl<S: Source> Made<S> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Exact(source, _) | Self::Block(source, _) => source.count(),
            Self::View(made) => made.len(),
        }
    }

    /// A tuple or list of all of them.
    pub(crate) fn collect<'py>(self, py: Python<'py>, into: Container) -> PyResult<Bound<'py, PyAny>> {
        let mut filling = Filling::new(py, into, self.len())?;
        self.publish(py, |string| filling.push(string))?;
        Ok(filling.finish())
    }

    /// Adds them to what is being filled, each to its place.
    pub(super) fn fill<'py>(
        self,
        py: Python<'py>,
        filling: &mut Filling<'py>,
        places: &Places,
    ) -> PyResult<()> {
        match places {
            Places::All => self.publish(py, |string| filling.push(string)),
            Places::Present(present) => self.fill_present(py, filling, present),
            Places::Numbered(numbers) => self.fill_numbered(py, filling, numbers),
        }
    }

    fn fill_present<'py>(
        self,
        py: Python<'py>,
        filling: &mut Filling<'py>,
        present: &[bool],
    ) -> PyResult<()> {
        let mut present = present.iter();
        self.publish(py, |string| {
            present
                .by_ref()
                .take_while(|present| !**present)
                .for_each(|_| filling.push(py.None().into_bound(py)));
            filling.push(string);
        })?;
        present.for_each(|_| filling.push(py.None().into_bound(py)));
        Ok(())
    }

    fn fill_numbered<'py>(
        self,
        py: Python<'py>,
        filling: &mut Filling<'py>,
        numbers: &[u32],
    ) -> PyResult<()> {
        let mut strings = memory::with_room(self.len()).map_err(no_memory)?;
        self.publish(py, |string| strings.push(string))?;
        for &number in numbers {
            filling.push(
                strings
                    .get(number as usize)
                    .map_or_else(|| py.None().into_bound(py), |string| string.clone()),
            );
        }
        Ok(())
    }

    /// Hands all of them to `take`, in order.
    pub(crate) fn publish<'py>(
        self,
        py: Python<'py>,
        mut take: impl FnMut(Bound<'py, PyAny>),
    ) -> PyResult<()> {
        match self {
            Self::Exact(source, gives_way) => {
                let mut maker = exact::Maker::new(py);
                let mut pace = if gives_way { Pace::giving_way() } else { Pace::default() };
                source.for_each(|piece| {
                    pace.keep(py)?;
                    maker.make(&piece).map(&mut take)
                })?;
            }
            Self::Block(source, made) => made.publish(py, &source, take)?,
            Self::View(made) => made.publish(py, take),
        }
        Ok(())
    }
}
