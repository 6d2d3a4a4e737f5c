//! The containers that are not complete.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cpython::partial_sequence::PartialSequence;

/// The containers that are not complete, while a message is built or its rest has not arrived.
#[derive(Default)]
pub(in crate::msgpack) struct Work {
    /// The number of containers around all of them.
    outer: usize,
    open: Vec<PendingContainer>,
    /// The innermost one.
    pub(super) frame: PendingContainer,
}

/// A container that is not complete.
#[derive(Default)]
pub(super) enum PendingContainer {
    /// Nothing is open: the next value is the result.
    #[default]
    Root,
    Items(PartialSequence),
    Entries {
        dict: Py<PyDict>,
        left: u32,
        key: Option<Py<PyAny>>,
    },
    Pairs {
        pairs: PartialSequence,
        key: Option<Py<PyAny>>,
    },
}

impl PendingContainer {
    /// How many values are missing.
    pub(super) fn missing(&self) -> u64 {
        match self {
            Self::Root => 1,
            Self::Items(items) => items.missing() as u64,
            Self::Entries { left, key, .. } => u64::from(*left) * 2 - u64::from(key.is_some()),
            Self::Pairs { pairs, key } => pairs.missing() as u64 * 2 - u64::from(key.is_some()),
        }
    }

    /// Keeps a key, in a map, until its value is there.
    pub(super) fn wait_for_value(&mut self, of: Py<PyAny>) {
        if let Self::Entries { key, .. } | Self::Pairs { key, .. } = self {
            *key = Some(of);
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Root => Ok(()),
            Self::Items(items) => visit.call(items.object()),
            Self::Entries { dict, key, .. } => visit.call(dict).and_then(|()| visit.call(key)),
            Self::Pairs { pairs, key } => visit.call(pairs.object()).and_then(|()| visit.call(key)),
        }
    }
}

impl Work {
    /// An empty state, inside of `outer` containers.
    pub(super) fn inside(outer: usize) -> Self {
        Self { outer, ..Self::default() }
    }

    /// How many values are missing on each level, from the outermost to the innermost.
    pub(in crate::msgpack) fn missing(&self) -> Vec<u64> {
        // Each of the outer ones has begun its next value.
        let outer = self.open.iter().map(|frame| frame.missing() - 1);
        let root = if matches!(self.frame, PendingContainer::Root) { None } else { Some(0) };
        root.into_iter().chain(outer).chain([self.frame.missing()]).collect()
    }

    /// Reports the built objects to the garbage collector.
    pub(in crate::msgpack) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.open.iter().chain([&self.frame]).try_for_each(|frame| frame.traverse(visit))
    }

    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.outer + self.open.len() + usize::from(!matches!(self.frame, PendingContainer::Root))
    }

    #[inline]
    pub(super) fn push(&mut self, new: PendingContainer) {
        let outer = std::mem::replace(&mut self.frame, new);
        if !matches!(outer, PendingContainer::Root) {
            self.open.push(outer);
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> PendingContainer {
        std::mem::replace(&mut self.frame, self.open.pop().unwrap_or_default())
    }
}

/// The header of a container.
#[derive(Clone, Copy)]
pub(super) enum ContainerHeader {
    Array(u32),
    Map(u32),
}

impl ContainerHeader {
    /// How many values follow.
    pub(super) fn values(self) -> u64 {
        match self {
            Self::Array(length) => length.into(),
            Self::Map(length) => u64::from(length) * 2,
        }
    }
}
