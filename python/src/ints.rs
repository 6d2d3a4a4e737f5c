//! Lists of `int` objects built in one go, from objects that were made before.
//!
//! To make an `int` costs more than to find a token. Where the interpreter has immortal objects (CPython 3.12 on), the
//! kept ones are immortal too and stand in one block, in order: a list is then filled by arithmetic alone, without a
//! look at the objects, and threads need not write to them. Elsewhere a list takes a reference to each.

use std::ffi::c_long;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use offlock_core::memory;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};

use crate::errors::no_memory;
use crate::filling::{Container, Filling};
use crate::pace::Pace;

/// How many are kept, from 0 on: as many as the largest public vocabularies have tokens.
const KEPT: usize = 1 << 18;
/// They are made once this many were handed out: a program that needs few does not pay for them.
const WORTH_KEEPING: usize = 1 << 15;
/// The interpreter's own ones, 0 to 256, are immortal singletons.
const SINGLETONS: usize = 257;

/// Values that are put into a list between two looks at the clock.
const STRETCH: usize = 4096;

/// `values` as a list. Others can have the lock now and then if there are many.
pub(crate) fn list<'py>(py: Python<'py>, values: &[u32], pace: &mut Pace) -> PyResult<Bound<'py, PyList>> {
    match Kept::get(py, values.len(), pace)? {
        None => filled(py, values, |_| None, pace),
        Some(Kept::Immortal(ints)) => filled(py, values, |value| ints.address(value), pace),
        Some(Kept::Counted(ints)) => {
            filled(py, values, |value| Some(ints.get(value as usize)?.clone_ref(py).into_ptr()), pace)
        }
    }
}

/// Many of them, in a list of lists.
pub(crate) fn lists<'py>(py: Python<'py>, all: &[Vec<u32>], pace: &mut Pace) -> PyResult<Bound<'py, PyList>> {
    let mut lists = Filling::new(py, Container::List, all.len())?;
    for values in all {
        pace.keep_many(py, 1 + values.len() / 8)?;
        lists.push(list(py, values, pace)?);
    }
    Ok(lists.finish().cast_into()?)
}

/// `kept` gives a new reference, or nothing if an object has to be made.
fn filled<'py>(
    py: Python<'py>,
    values: &[u32],
    kept: impl Fn(u32) -> Option<*mut ffi::PyObject>,
    pace: &mut Pace,
) -> PyResult<Bound<'py, PyList>> {
    if values.len() > STRETCH {
        return filled_in_stretches(py, values, kept, pace);
    }
    // What `PyList::new` does, in two thirds of the time.
    // SAFETY: the new list has room for as many items, all empty, and nobody else knows it until it is returned. Each
    // item gets an object together with a reference of its own.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(values.len() as ffi::Py_ssize_t))?;
        let items = (*list.as_ptr().cast::<ffi::PyListObject>()).ob_item;
        for (index, &value) in values.iter().enumerate() {
            items.add(index).write(new(py, kept(value), value)?.into_ptr());
        }
        Ok(list.cast_into_unchecked())
    }
}

fn filled_in_stretches<'py>(
    py: Python<'py>,
    values: &[u32],
    kept: impl Fn(u32) -> Option<*mut ffi::PyObject>,
    pace: &mut Pace,
) -> PyResult<Bound<'py, PyList>> {
    let mut list = Filling::new(py, Container::List, values.len())?;
    for stretch in values.chunks(STRETCH) {
        // SAFETY: what is kept comes with a new reference each.
        let items = stretch.iter().map(|&value| unsafe { new(py, kept(value), value) });
        list.try_extend(stretch.len(), items)?;
        pace.keep_many(py, stretch.len() / 8)?;
    }
    Ok(list.finish().cast_into()?)
}

/// The object that is kept for `value`, or a new one.
///
/// # Safety
///
/// `kept` is a reference of the caller's own, which goes to the result.
#[inline]
unsafe fn new(py: Python<'_>, kept: Option<*mut ffi::PyObject>, value: u32) -> PyResult<Bound<'_, PyAny>> {
    match kept {
        // SAFETY: the contract of this function.
        Some(kept) => Ok(unsafe { Bound::from_owned_ptr(py, kept) }),
        None => int(py, value as usize).map(Bound::into_any),
    }
}

/// An `int`. `MemoryError` when there is no memory for it, where pyo3's own conversion panics.
#[inline]
pub(crate) fn int(py: Python<'_>, value: usize) -> PyResult<Bound<'_, PyInt>> {
    // SAFETY: both return a new `int`, or null with an exception set. (The first takes half of the other's time.)
    unsafe {
        let object = match c_long::try_from(value) {
            Ok(value) => ffi::PyLong_FromLong(value),
            Err(_) => ffi::PyLong_FromSize_t(value),
        };
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

static KEPT_INTS: OnceLock<Kept> = OnceLock::new();

enum Kept {
    Immortal(Immortal),
    /// The table owns a reference to each.
    Counted(Box<[Py<PyInt>]>),
}

impl Kept {
    /// The kept objects, if there are any or they are worth making for `more` values.
    #[inline]
    fn get(py: Python<'_>, more: usize, pace: &mut Pace) -> PyResult<Option<&'static Self>> {
        // Without a GIL, threads would wait for each other at the reference counts of shared objects.
        if cfg!(Py_GIL_DISABLED) {
            return Ok(None);
        }
        match KEPT_INTS.get() {
            None => Self::get_or_make(py, more, pace),
            kept => Ok(kept),
        }
    }

    #[cold]
    fn get_or_make(py: Python<'_>, more: usize, pace: &mut Pace) -> PyResult<Option<&'static Self>> {
        static HANDED_OUT: AtomicUsize = AtomicUsize::new(0);
        let before = HANDED_OUT.fetch_add(more, Ordering::Relaxed);
        if before + more < WORTH_KEEPING {
            return Ok(None);
        }
        // Others can have the lock meanwhile, and make them, too: nobody waits. Those that come second are let go of.
        let _ = KEPT_INTS.set(Self::make(py, pace)?);
        Ok(KEPT_INTS.get())
    }

    fn make(py: Python<'_>, pace: &mut Pace) -> PyResult<Self> {
        if let Some(ints) = Immortal::make(py, pace)? {
            return Ok(Self::Immortal(ints));
        }
        let mut ints = memory::with_room(KEPT).map_err(no_memory)?;
        for value in 0..KEPT {
            pace.keep(py)?;
            ints.push(int(py, value)?.unbind());
        }
        Ok(Self::Counted(ints.into_boxed_slice()))
    }
}

/// Room for an `int` of one digit, as large and as aligned as what the interpreter's allocator gives.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Room([MaybeUninit<u8>; 32]);

/// Objects that are never freed, whatever their references are counted to.
struct Immortal {
    singletons: *const Room,
    /// From 0 on, like the values; those of the singletons are not handed out.
    others: Box<[Room]>,
}

// SAFETY: nobody writes to the objects, not even to their reference counts.
unsafe impl Send for Immortal {}
// SAFETY: as above.
unsafe impl Sync for Immortal {}

impl Immortal {
    /// Copies of genuine objects, under the header of one that the interpreter made immortal. `None` where it has no
    /// such objects, or where an `int` looks other than it does in CPython 3.12 to 3.14.
    fn make(py: Python<'_>, pace: &mut Pace) -> PyResult<Option<Self>> {
        let Some(singletons) = singletons(py)? else { return Ok(None) };
        let rooms = size_of::<ffi::PyObject>()..=size_of::<Room>();
        let Some(size) = one_digit_size().filter(|size| rooms.contains(size)) else { return Ok(None) };
        let mut others = memory::with_room(KEPT).map_err(no_memory)?;
        for value in 0..KEPT {
            pace.keep(py)?;
            let genuine = int(py, value)?;
            let mut room = Room([MaybeUninit::zeroed(); 32]);
            let to = ptr::from_mut(&mut room).cast::<u8>();
            // SAFETY: `genuine` has one digit, so it has `size` bytes, of which the first are the header, and so has the
            // singleton; both fit into the room.
            unsafe {
                genuine.as_ptr().cast::<u8>().copy_to_nonoverlapping(to, size);
                singletons.cast::<u8>().copy_to_nonoverlapping(to, size_of::<ffi::PyObject>());
            }
            others.push(room);
        }
        let ints = Self { singletons, others: others.into_boxed_slice() };
        Ok(ints.are_ints(py).then_some(ints))
    }

    /// Where the object is; `None` for a value for which there is none.
    #[inline]
    fn address(&self, value: u32) -> Option<*mut ffi::PyObject> {
        let value = value as usize;
        let first = if value < SINGLETONS { self.singletons } else { self.others.as_ptr() };
        (value < KEPT).then(|| first.wrapping_add(value).cast_mut().cast())
    }

    fn are_ints(&self, py: Python<'_>) -> bool {
        [0, 1, 256, 257, 65_535, 65_536, KEPT as u32 - 1].iter().all(|&value| {
            // SAFETY: the objects are immortal, so that a borrowed reference is as good as an owned one.
            let kept = self.address(value).map(|int| unsafe { Bound::from_borrowed_ptr(py, int) });
            kept.is_some_and(|kept| {
                kept.is_exact_instance_of::<PyInt>() && kept.eq(value).unwrap_or(false) && is_immortal(&kept)
            })
        })
    }
}

/// Where the interpreter's own small ints stand, if they are immortal and stand in order, a [`Room`] each.
fn singletons(py: Python<'_>) -> PyResult<Option<*const Room>> {
    let first = int(py, 0)?.as_ptr().cast::<Room>().cast_const();
    for value in 0..SINGLETONS {
        let int = int(py, value)?;
        if !is_immortal(&int) || int.as_ptr().cast::<Room>().cast_const() != first.wrapping_add(value) {
            return Ok(None);
        }
    }
    Ok(Some(first))
}

/// Whether a new reference changes nothing.
fn is_immortal(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: only looks at the reference count of a live object.
    let count = || unsafe { ffi::Py_REFCNT(object.as_ptr()) };
    let before = count();
    let _another = object.clone();
    count() == before
}

/// The bytes of an `int` of one digit, as its type tells them.
fn one_digit_size() -> Option<usize> {
    // SAFETY: the type is static and never changes.
    let (basic, item) = unsafe { (ffi::PyLong_Type.tp_basicsize, ffi::PyLong_Type.tp_itemsize) };
    usize::try_from(basic + item).ok()
}
