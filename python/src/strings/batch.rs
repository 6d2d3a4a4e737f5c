//! Makes a tuple or list of `str`, of the requested kind, from pieces of text.

use offlock_core::Task;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::error::StringsError;
use super::places::Places;
use super::source::StrSource;
use crate::cpython::exact_str::ExactStrBuilder;
use crate::cpython::sequence::{Container, SequenceBuilder};
use crate::cpython::str_block::{BlockBuilder, BuiltBlocks};
use crate::cpython::str_view::{BuiltViews, ViewBuilder};
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::{Large, MemorySize, Refs};

/// The kind of `str` to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StrClass {
    Exact,
    Block,
    View,
}

impl<'py> FromPyObject<'_, 'py> for StrClass {
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

/// Makes strings of one kind: the part that does not need the lock.
pub(crate) enum StrBuilder {
    Exact,
    Block(BlockBuilder),
    View(ViewBuilder),
}

impl StrBuilder {
    /// `RuntimeError` where this kind cannot be made.
    pub(crate) fn new(py: Python<'_>, kind: StrClass) -> PyResult<Self> {
        Ok(match kind {
            StrClass::Exact => Self::Exact,
            StrClass::Block => Self::Block(BlockBuilder::new(py)?),
            StrClass::View => Self::View(ViewBuilder::new(py)?),
        })
    }

    /// Does the part of the work on these pieces that does not need the lock.
    pub(crate) fn make<S: StrSource + Send>(
        &self,
        source: S,
        task: &Task<'_>,
    ) -> Result<Built<S>, StringsError> {
        task.check()?;
        let source = Large::new(Weighed(source));
        Ok(match self {
            Self::Exact => Built::Exact(source),
            Self::Block(maker) => {
                let objects = maker.make(&source.0, task)?;
                Built::Block(source, objects)
            }
            Self::View(maker) => Built::View(maker.make(&source.0, task)?),
        })
    }
}

/// A source, and the memory that it takes.
pub(crate) struct Weighed<S>(S);

impl<S: StrSource> MemorySize for Weighed<S> {
    fn memory_size(&self) -> usize {
        const BYTES_PER_PIECE: usize = 16;
        self.0.count().saturating_mul(BYTES_PER_PIECE).saturating_add(self.0.owned_bytes())
    }
}

/// Strings for which only the work with the lock held remains.
pub(crate) enum Built<S: StrSource + Send> {
    Exact(Large<Weighed<S>>),
    Block(Large<Weighed<S>>, BuiltBlocks),
    View(BuiltViews),
}

impl<S: StrSource + Send> Built<S> {
    /// The number of strings.
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
        yielder: &mut Yielder,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut filling = SequenceBuilder::new(py, into, self.len())?;
        self.publish(py, yielder, |string| {
            filling.push(string);
            Ok(())
        })?;
        Ok(filling.finish())
    }

    /// Adds them to the sequence that is being filled, each in its place.
    pub(super) fn fill<'py>(
        self,
        py: Python<'py>,
        filling: &mut SequenceBuilder<'py>,
        places: &Places,
        yielder: &mut Yielder,
    ) -> PyResult<()> {
        match places {
            Places::All => self.publish(py, yielder, |string| {
                filling.push(string);
                Ok(())
            }),
            Places::Nulls(count) => fill_nulls(py, filling, *count, yielder),
            Places::Present(present) => self.fill_present(py, filling, present, yielder),
            Places::Numbered(numbers) => self.fill_numbered(py, filling, numbers, yielder),
        }
    }

    fn fill_present<'py>(
        self,
        py: Python<'py>,
        filling: &mut SequenceBuilder<'py>,
        present: &[bool],
        yielder: &mut Yielder,
    ) -> PyResult<()> {
        let mut rest = present;
        let mut between = yielder.another();
        self.publish(py, yielder, |string| {
            // Any number of nulls may precede a string.
            loop {
                let near = &rest[..rest.len().min(NULLS)];
                let string_at = near.iter().position(|&present| present);
                fill_nulls(py, filling, string_at.unwrap_or(near.len()), &mut between)?;
                rest = &rest[string_at.map_or(near.len(), |at| at + 1)..];
                if string_at.is_some() || rest.is_empty() {
                    break;
                }
            }
            filling.push(string);
            Ok(())
        })?;
        fill_nulls(py, filling, rest.len(), yielder)
    }

    fn fill_numbered<'py>(
        self,
        py: Python<'py>,
        filling: &mut SequenceBuilder<'py>,
        numbers: &[u32],
        yielder: &mut Yielder,
    ) -> PyResult<()> {
        let mut strings = Refs::new();
        self.publish(py, yielder, |string| strings.push(string))?;
        for &number in numbers {
            yielder.tick(py)?;
            filling.push(
                strings
                    .get(number as usize)
                    .map_or_else(|| py.None().into_bound(py), |string| string.clone()),
            );
        }
        Ok(())
    }

    /// Passes all strings to `take`, in order.
    pub(crate) fn publish<'py>(
        self,
        py: Python<'py>,
        yielder: &mut Yielder,
        mut take: impl FnMut(Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        match self {
            Self::Exact(source) => {
                let mut maker = ExactStrBuilder::new(py);
                source.0.for_each(|piece| {
                    yielder.tick_bytes(py, piece.bytes())?;
                    maker.make(&piece).and_then(&mut take)
                })
            }
            Self::Block(source, made) => made.publish(py, &source.0, yielder, take),
            Self::View(made) => made.publish(py, yielder, take),
        }
    }
}

/// How many times `None` is stored between two checks of the clock.
const NULLS: usize = 4096;

fn fill_nulls<'py>(
    py: Python<'py>,
    filling: &mut SequenceBuilder<'py>,
    mut count: usize,
    yielder: &mut Yielder,
) -> PyResult<()> {
    while count > 0 {
        let some = count.min(NULLS);
        yielder.tick_many(py, some / 8)?;
        push_nulls(py, filling, some);
        count -= some;
    }
    Ok(())
}

fn push_nulls<'py>(py: Python<'py>, filling: &mut SequenceBuilder<'py>, count: usize) {
    (0..count).for_each(|_| filling.push(py.None().into_bound(py)));
}
