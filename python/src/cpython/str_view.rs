//! Kind "view": instances of a subclass of `str` whose characters are in the memory of an arena.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use offlock_core::Task;
use offlock_core::text::{Memory, Stored, StrKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::block_pool::{self, Block};
use super::pages;
use super::str_layout::{Apart, Role, Templates, Unknown, Word, owned};
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::objects::kept;
use crate::strings::error::StringsError;
use crate::strings::source::StrSource;

const NAME: &CStr = c"offlock.strings.View";
const DOC: &CStr = c"A str whose characters are in memory that it shares with others.

Made by the functions of offlock.strings, never by calling the class; str(view) is a plain str.";

/// The class of views, and how its instances are laid out.
struct Views {
    class: Py<PyType>,
    layout: Result<Apart, Unknown>,
}

impl Views {
    /// Determined once.
    fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static VIEWS: PyOnceLock<Views> = PyOnceLock::new();
        kept(&VIEWS, py, || {
            let class = make_class(py)?;
            let layout = Apart::observe(&class).and_then(usable);
            Ok(Self { class: class.unbind(), layout })
        })
    }
}

fn usable(layout: Apart) -> Result<Apart, Unknown> {
    if [8, 10].contains(&layout.words) {
        Ok(layout)
    } else {
        Err(Unknown::new(format!("a view would have {} words", layout.words)))
    }
}

/// The class `View`.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(Views::get(py)?.class.bind(py))
}

/// Why views cannot be made.
pub(crate) fn unavailable(py: Python<'_>) -> PyResult<Option<String>> {
    Ok(Views::get(py)?.layout.as_ref().err().map(ToString::to_string))
}

/// Makes views in blocks; needs no lock.
pub(crate) struct ViewBuilder {
    layout: &'static Apart,
    templates: Templates,
}

/// The views of one block, not yet published to Python.
struct Filled {
    block: Block,
    views: u32,
    characters: Arc<Memory>,
}

/// Views that are not published to Python yet: dropped like other memory, without the lock.
pub(crate) struct BuiltViews {
    filled: Vec<Filled>,
    size: usize,
}

impl ViewBuilder {
    /// `RuntimeError` where views cannot be made.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        block_pool::prepare(py);
        match &Views::get(py)?.layout {
            Ok(layout) => Ok(Self { layout, templates: owned(py, &layout.templates) }),
            Err(unknown) => Err(PyRuntimeError::with_message(unknown.to_string())),
        }
    }

    /// Views of all pieces.
    pub(crate) fn make(&self, source: &impl StrSource, task: &Task<'_>) -> Result<BuiltViews, StringsError> {
        let size = self.layout.words * size_of::<Word>();
        let mut filled = Vec::new();
        source.for_each_arena(task, |arena| {
            for stored in arena.stored().chunks(block_pool::ROOM / size) {
                let block = Block::take().ok_or(StringsError::NoMemory)?;
                self.fill(&block, arena.memory(), stored);
                let views = u32::try_from(stored.len()).expect("a block is small");
                let characters = Arc::clone(arena.memory());
                offlock_core::memory::push(&mut filled, Filled { block, views, characters })?;
            }
            Ok(())
        })?;
        Ok(BuiltViews { filled, size })
    }

    fn fill(&self, block: &Block, memory: &Memory, stored: &[Stored]) {
        match self.layout.words {
            8 => self.fill_sized::<8>(block, memory, stored),
            words => {
                assert_eq!(words, 10, "checked when the layout was observed");
                self.fill_sized::<10>(block, memory, stored);
            }
        }
    }

    /// Copies with a size that the compiler knows, which matters here.
    fn fill_sized<const WORDS: usize>(&self, block: &Block, memory: &Memory, stored: &[Stored]) {
        let templates =
            self.templates.each_ref().map(|words| *words.first_chunk::<WORDS>().expect("fewer words"));
        let memory = StrKind::ALL.map(|kind| memory.of(kind).as_ptr().expose_provenance());
        let Apart { chars, data, utf8_len, utf8, .. } = *self.layout;
        let views = block.objects().cast::<[Word; WORDS]>();
        assert!(size_of_val(&templates[0]) * stored.len() <= block_pool::ROOM);
        for (number, stored) in stored.iter().enumerate() {
            let kind = stored.kind();
            // SAFETY: the block, which has no other reference, has capacity for all of them (checked above).
            let view = unsafe { views.add(number).as_mut() };
            pages::expect_use(ptr::from_ref(view).wrapping_byte_add(pages::AHEAD));
            *view = templates[kind as usize];
            view[chars] = stored.chars();
            view[data] = memory[kind as usize] + stored.at();
            view[utf8_len] = stored.utf8_len();
            view[utf8] = memory[StrKind::Ascii as usize] + stored.utf8();
            if kind == StrKind::Ucs4 {
                self.fill_more(view);
            }
        }
    }

    #[cold]
    fn fill_more(&self, view: &mut [Word]) {
        for &(at, role) in &self.layout.more {
            view[at] = if role == Role::Chars { view[self.layout.chars] } else { view[self.layout.data] };
        }
    }
}

impl BuiltViews {
    /// The number of views.
    pub(crate) fn len(&self) -> usize {
        self.filled.iter().map(|filled| filled.views as usize).sum()
    }

    /// Publishes the views to Python.
    pub(crate) fn publish<'py>(
        self,
        py: Python<'py>,
        yielder: &mut Yielder,
        mut take: impl FnMut(Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        for Filled { block, views, characters } in self.filled {
            yielder.tick_many(py, views as usize)?;
            let mut published = PublishedViews { next: block.objects(), left: views, size: self.size };
            block.publish(views, Some(characters));
            while let Some(view) = published.next(py) {
                take(view)?;
            }
        }
        Ok(())
    }
}

/// The views of a published block that were not taken yet.
struct PublishedViews {
    next: NonNull<u8>,
    left: u32,
    size: usize,
}

impl PublishedViews {
    #[inline]
    fn next<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.left = self.left.checked_sub(1)?;
        let view = self.next;
        // SAFETY: the block holds this many views, each with one reference, owned here; the block ends after
        // the last one.
        unsafe {
            self.next = view.add(self.size);
            Some(Bound::from_owned_ptr(py, view.as_ptr().cast()))
        }
    }
}

impl Drop for PublishedViews {
    /// Releases the views that were not taken because an exception was raised.
    fn drop(&mut self) {
        if self.left > 0 {
            Python::attach(|py| while self.next(py).is_some() {});
        }
    }
}

fn make_class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let mut slots = [
        slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_dealloc, deallocate as *mut c_void),
        slot(ffi::Py_tp_alloc, refuse_to_allocate as *mut c_void),
        slot(ffi::Py_tp_methods, (&raw mut METHODS).cast()),
        slot(0, ptr::null_mut()),
    ];
    let flags =
        ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_IMMUTABLETYPE | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
    let mut spec = ffi::PyType_Spec {
        name: NAME.as_ptr(),
        basicsize: 0, // that of str
        itemsize: 0,
        flags: c_uint::try_from(flags).expect("flags of 32 bits"),
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the name, the texts and the methods are static; `spec` and `slots` are only read during the
    // call.
    unsafe {
        let class = ffi::PyType_FromSpecWithBases(&raw mut spec, (&raw mut ffi::PyUnicode_Type).cast());
        Ok(Bound::from_owned_ptr_or_err(py, class)?.cast_into_unchecked())
    }
}

fn slot(slot: c_int, value: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc: value }
}

static mut METHODS: [ffi::PyMethodDef; 2] = [
    ffi::PyMethodDef {
        ml_name: c"__reduce__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: reduce },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"Used by copy and pickle: returns a plain str.".as_ptr(),
    },
    ffi::PyMethodDef::zeroed(),
];

/// `(str, (str(view),))`
unsafe extern "C" fn reduce(view: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called by Python, with the lock held, on a view; "O" and "N" take a valid object each, and "N"
    // also NULL.
    unsafe {
        let plain = ffi::PyUnicode_FromObject(view);
        ffi::Py_BuildValue(c"(O(N))".as_ptr(), &raw mut ffi::PyUnicode_Type, plain)
    }
}

unsafe extern "C" fn refuse_to_allocate(_: *mut ffi::PyTypeObject, _: ffi::Py_ssize_t) -> *mut ffi::PyObject {
    // SAFETY: called by Python, with the lock held.
    unsafe {
        ffi::PyErr_SetString(ffi::PyExc_TypeError, c"cannot create 'offlock.strings.View' instances".as_ptr())
    };
    ptr::null_mut()
}

/// A view owns only its place in a block: its type is in effect static, and its UTF-8 is in the arena.
unsafe extern "C" fn deallocate(view: *mut ffi::PyObject) {
    // SAFETY: called by Python for the last reference to a view, with the lock held.
    unsafe {
        release_extra(view);
        block_pool::release_object(view);
    }
}

/// Frees the copy in wide characters that deprecated functions attach to an object.
///
/// # Safety
///
/// `view` is a view, and the lock is held.
#[cfg(not(Py_3_12))]
#[inline]
unsafe fn release_extra(view: *mut ffi::PyObject) {
    // SAFETY: as above; CPython allocated the copy with this allocator. UCS-4 characters can be the copy
    // themselves.
    unsafe {
        let copy = (*view.cast::<ffi::PyASCIIObject>()).wstr;
        if !copy.is_null() && copy.cast() != (*view.cast::<ffi::PyUnicodeObject>()).data.any {
            ffi::PyObject_Free(copy.cast());
        }
    }
}

/// # Safety
///
/// None; the function does nothing.
#[cfg(Py_3_12)]
#[inline]
unsafe fn release_extra(_: *mut ffi::PyObject) {}
