//! From pieces of text to a tuple or list of `str`, by way of the kind that was asked for.

use std::borrow::Cow;
use std::sync::Arc;

use offlock_core::Task;
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::text::{Arena, Piece, Pieces};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::failed::Failed;
use super::{block, exact, view};
use crate::bulk::{Bulk, Held, Weigh};
use crate::errors::WithMessage;
use crate::filling::{Container, Filling};
use crate::pace::Pace;
use crate::region::Release;

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
                Err(PyValueError::with_message(message))
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
    /// So many times `None`.
    Nulls(usize),
    /// The next string where true, `None` where false.
    Present(Arc<Bulk<Vec<bool>>>),
    /// The string of this number; `None` for [`NONE`].
    Numbered(Arc<Bulk<Vec<u32>>>),
}

/// In [`Places::Numbered`], stands for `None`.
pub(crate) const NONE: u32 = u32::MAX;

impl Places {
    /// How many places there are, with `strings` to put there.
    pub(super) fn count(&self, strings: usize) -> usize {
        match self {
            Self::All => strings,
            Self::Nulls(count) => *count,
            Self::Present(present) => present.len(),
            Self::Numbered(numbers) => numbers.len(),
        }
    }

    /// For each place the one of `numbers`, of which there is one for each string, or [`NONE`].
    pub(super) fn numbered(&self, numbers: Vec<u32>) -> Result<Vec<u32>, OutOfMemory> {
        if let Self::All = self {
            return Ok(numbers);
        }
        let mut placed = memory::with_room(self.count(numbers.len()))?;
        let mut next = numbers.iter().copied();
        match self {
            Self::All => {}
            Self::Nulls(count) => placed.resize(*count, NONE),
            Self::Present(present) => {
                let mut number = |present: bool| if present { next.next() } else { None };
                placed.extend(present.iter().map(|&present| number(present).unwrap_or(NONE)));
            }
            Self::Numbered(old) => {
                placed.extend(old.iter().map(|&old| numbers.get(old as usize).copied().unwrap_or(NONE)));
            }
        }
        Ok(placed)
    }
}

/// Makes strings of one kind: the part that needs no lock.
pub(crate) enum Maker {
    Exact,
    Block(block::Maker),
    View(view::Maker),
}

impl Maker {
    /// `RuntimeError` where this kind cannot be made.
    pub(crate) fn new(py: Python<'_>, kind: Kind) -> PyResult<Self> {
        Ok(match kind {
            Kind::Exact => Self::Exact,
            Kind::Block => Self::Block(block::Maker::new(py)?),
            Kind::View => Self::View(view::Maker::new(py)?),
        })
    }

    /// Does for these pieces what can be done without the lock.
    pub(crate) fn make<S: Source + Send>(&self, source: S, task: &Task<'_>) -> Result<Made<S>, Failed> {
        task.check()?;
        let source = Bulk::new(Weighed(source));
        Ok(match self {
            Self::Exact => Made::Exact(source),
            Self::Block(maker) => {
                let objects = maker.make(&source.0, task)?;
                Made::Block(source, objects)
            }
            Self::View(maker) => Made::View(maker.make(&source.0, task)?),
        })
    }
}

/// A source, which takes as much memory as its pieces say.
pub(crate) struct Weighed<S>(S);

impl<S: Source> Weigh for Weighed<S> {
    fn weight(&self) -> usize {
        const BYTES_PER_PIECE: usize = 16;
        self.0.count().saturating_mul(BYTES_PER_PIECE)
    }
}

/// Strings of which only the part that needs the lock is left to do.
pub(crate) enum Made<S: Source + Send> {
    Exact(Bulk<Weighed<S>>),
    Block(Bulk<Weighed<S>>, block::Made),
    View(view::Made),
}

impl<S: Source + Send> Made<S> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Exact(source) | Self::Block(source, _) => source.0.count(),
            Self::View(made) => made.len(),
        }
    }

    /// A tuple or list of all of them.
    pub(crate) fn collect<'py>(
        self,
        py: Python<'py>,
        into: Container,
        release: Release,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut filling = Filling::new(py, into, self.len())?;
        self.publish(py, &mut Pace::of(release), |string| {
            filling.push(string);
            Ok(())
        })?;
        Ok(filling.finish())
    }

    /// Adds them to what is being filled, each to its place.
    pub(super) fn fill<'py>(
        self,
        py: Python<'py>,
        filling: &mut Filling<'py>,
        places: &Places,
        pace: &mut Pace,
    ) -> PyResult<()> {
        match places {
            Places::All => self.publish(py, pace, |string| {
                filling.push(string);
                Ok(())
            }),
            Places::Nulls(count) => fill_nulls(py, filling, *count, pace),
            Places::Present(present) => self.fill_present(py, filling, present, pace),
            Places::Numbered(numbers) => self.fill_numbered(py, filling, numbers, pace),
        }
    }

    fn fill_present<'py>(
        self,
        py: Python<'py>,
        filling: &mut Filling<'py>,
        present: &[bool],
        pace: &mut Pace,
    ) -> PyResult<()> {
        let mut rest = present;
        self.publish(py, pace, |string| {
            let nulls = rest.iter().position(|&present| present).unwrap_or(rest.len());
            push_nulls(py, filling, nulls);
            filling.push(string);
            rest = rest.get(nulls + 1..).unwrap_or_default();
            Ok(())
        })?;
        fill_nulls(py, filling, rest.len(), pace)
    }

    fn fill_numbered<'py>(
        self,
        py: Python<'py>,
        filling: &mut Filling<'py>,
        numbers: &[u32],
        pace: &mut Pace,
    ) -> PyResult<()> {
        let mut strings = Held::new();
        self.publish(py, pace, |string| strings.push(string))?;
        for &number in numbers {
            pace.keep(py)?;
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
        pace: &mut Pace,
        mut take: impl FnMut(Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        match self {
            Self::Exact(source) => {
                let mut maker = exact::Maker::new(py);
                source.0.for_each(|piece| {
                    pace.keep_bytes(py, piece.bytes())?;
                    maker.make(&piece).and_then(&mut take)
                })
            }
            Self::Block(source, made) => made.publish(py, &source.0, pace, take),
            Self::View(made) => made.publish(py, pace, take),
        }
    }
}

/// How many times `None` is put into places between two looks at the clock.
const NULLS: usize = 4096;

fn fill_nulls<'py>(
    py: Python<'py>,
    filling: &mut Filling<'py>,
    mut count: usize,
    pace: &mut Pace,
) -> PyResult<()> {
    while count > 0 {
        let some = count.min(NULLS);
        pace.keep_many(py, some / 8)?;
        push_nulls(py, filling, some);
        count -= some;
    }
    Ok(())
}

fn push_nulls<'py>(py: Python<'py>, filling: &mut Filling<'py>, count: usize) {
    (0..count).for_each(|_| filling.push(py.None().into_bound(py)));
}
