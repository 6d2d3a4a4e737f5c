//! Large memory, and many references to objects: both take long to free. Memory is freed without the lock,
//! references a few at a time.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use offlock_core::memory::{self, OutOfMemory};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::cpython::items;
use crate::error::no_memory;
use crate::gil_yield::Yielder;
use crate::region::aside;

/// From this many bytes on, memory is filled, copied and freed without the lock. One byte less takes up to a
/// millisecond, new pages included; an additional release of the lock costs up to a time slice while another
/// thread computes.
pub(crate) const LARGE: usize = 2 << 20;

/// About how much memory a value takes.
pub(crate) trait MemorySize {
    fn memory_size(&self) -> usize;
}

impl<T> MemorySize for Vec<T> {
    fn memory_size(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl MemorySize for offlock_core::deflate::Bytes {
    fn memory_size(&self) -> usize {
        self.len()
    }
}

impl MemorySize for String {
    fn memory_size(&self) -> usize {
        self.capacity()
    }
}

/// A value whose memory is freed without the lock if it is large. Nearly always dropped with the lock held.
#[derive(Debug)]
pub(crate) struct Large<T: MemorySize + Send>(ManuallyDrop<T>);

impl<T: MemorySize + Send> Large<T> {
    pub(crate) const fn new(content: T) -> Self {
        Self(ManuallyDrop::new(content))
    }

    /// Returns the value; the caller frees it.
    pub(crate) fn into_inner(mut self) -> T {
        // SAFETY: `self` is not used after this, not even by `drop`.
        let content = unsafe { ManuallyDrop::take(&mut self.0) };
        std::mem::forget(self);
        content
    }
}

impl<T: MemorySize + Send> Deref for Large<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: MemorySize + Send> DerefMut for Large<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: MemorySize + Send> Drop for Large<T> {
    fn drop(&mut self) {
        // SAFETY: `self` is not used after this.
        let content = unsafe { ManuallyDrop::take(&mut self.0) };
        if content.memory_size() < LARGE {
            drop(content);
        } else {
            Python::attach(|py| aside(py, || drop(content)));
        }
    }
}

/// Values that refer to Python objects, dropped a few at a time. Dropped with the lock held.
pub(crate) struct Refs<T>(Vec<T>);

/// How many values are dropped at once.
const FEW: usize = 1 << 10;

impl<T> Refs<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Collects the results of `take` for each item of an iterable and its index. Other threads can hold the
    /// lock between items, and change the iterable.
    pub(crate) fn collect<'py>(
        items: &Bound<'py, PyAny>,
        yielder: &mut Yielder,
        mut take: impl FnMut(usize, Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<Self> {
        let (py, mut all) = (items.py(), Self::new());
        // Iterators over these types do the same, and take longer.
        if let Ok(list) = items.cast_exact::<PyList>() {
            reserve(&mut all.0, list.len())?;
            // The length is read again each time: other threads may change the list.
            while let Some(item) = list_item(list, all.0.len()) {
                all.take(py, item, yielder, &mut take)?;
            }
        } else if let Ok(tuple) = items.cast_exact::<PyTuple>() {
            reserve(&mut all.0, tuple.len())?;
            tuple.iter().try_for_each(|item| all.take(py, item, yielder, &mut take))?;
        } else {
            items.try_iter()?.try_for_each(|item| all.take(py, item?, yielder, &mut take))?;
        }
        Ok(all)
    }

    /// Adds the result of `take` for the next item.
    #[inline(always)]
    fn take<'py>(
        &mut self,
        py: Python<'py>,
        item: Bound<'py, PyAny>,
        yielder: &mut Yielder,
        take: &mut impl FnMut(usize, Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<()> {
        yielder.tick(py)?;
        let next = take(self.0.len(), item)?;
        self.push(next)
    }

    /// The bytes of each item, and their total length. Other threads can hold the lock between items.
    pub(crate) fn slices<'a>(
        &'a self,
        py: Python<'_>,
        yielder: &mut Yielder,
        bytes: impl Fn(&'a T) -> &'a [u8],
    ) -> PyResult<(Large<Vec<&'a [u8]>>, usize)> {
        let (mut slices, mut total) = (Large::new(Vec::new()), 0_usize);
        reserve(&mut slices, self.0.len())?;
        for item in &self.0 {
            yielder.tick(py)?;
            let slice = bytes(item);
            slices.push(slice);
            total = total.saturating_add(slice.len());
        }
        Ok((slices, total))
    }

    /// The same as a vector, for values that refer to no objects.
    pub(crate) fn into_values(mut self) -> Vec<T>
    where
        T: Copy,
    {
        std::mem::take(&mut self.0)
    }

    /// `MemoryError` when there is no memory for one more.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) -> PyResult<()> {
        reserve(&mut self.0, 1)?;
        self.0.push(item);
        Ok(())
    }
}

/// The item at `index`, or `None` past the end of the list.
#[inline]
fn list_item<'py>(list: &Bound<'py, PyList>, index: usize) -> Option<Bound<'py, PyAny>> {
    if cfg!(Py_GIL_DISABLED) {
        list.get_item(index).ok()
    } else {
        items::list_item(list, index).map(Borrowed::to_owned)
    }
}

/// Reserves capacity for `more` items; `MemoryError` when there is no memory.
#[inline]
pub(crate) fn reserve<T>(items: &mut Vec<T>, more: usize) -> PyResult<()> {
    if items.capacity() - items.len() >= more { Ok(()) } else { grow(items, more) }
}

#[cold]
fn grow<T>(items: &mut Vec<T>, more: usize) -> PyResult<()> {
    let items = Moving(items);
    let grown = if size_of_val(&**items.0) < LARGE {
        items.reserve(more)
    } else {
        // Moving the existing items takes milliseconds, too.
        Python::attach(|py| aside(py, || items.reserve(more)))
    };
    grown.map_err(no_memory)
}

/// Items that are moved but never read.
struct Moving<'a, T>(&'a mut Vec<T>);

// SAFETY: only their memory is moved or freed: the objects they refer to are neither read nor dropped.
unsafe impl<T> Send for Moving<'_, T> {}

impl<T> Moving<'_, T> {
    /// Frees the memory of a vector without items.
    fn free(self) {
        assert!(self.0.is_empty());
        *self.0 = Vec::new();
    }

    fn reserve(self, more: usize) -> Result<(), OutOfMemory> {
        memory::reserve(self.0, more)
    }
}

impl<T> Deref for Refs<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> Drop for Refs<T> {
    fn drop(&mut self) {
        if self.0.len() < FEW {
            return;
        }
        Python::attach(|py| {
            let mut yielder = Yielder::yielding();
            while self.0.pop().is_some() {
                yielder.tick_quietly(py);
            }
            if self.0.memory_size() >= LARGE {
                let memory = Moving(&mut self.0);
                aside(py, || memory.free());
            }
        });
    }
}
