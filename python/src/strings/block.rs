//! Kind "block": exact `str` objects laid out in blocks without the lock.

use std::ptr;

use offlock_core::Task;
use offlock_core::text::{Form, Piece};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::batch::Source;
use super::exact;
use super::failed::Failed;
use super::hook;
use super::layout::{Compact, MOST_WORDS, Role, Templates, Word};
use super::pool::{self, Block};

/// What CPython's own allocator aligns objects to.
const ALIGNMENT: usize = 16;

/// Longer objects would leave too much of a block unused; they are made one by one.
const LONGEST: usize = pool::ROOM / 8;

/// Lays out exact `str` objects; needs no lock.
pub(crate) struct Maker {
    layout: &'static Compact,
    templates: Templates,
}

/// Objects that Python does not know yet: dropped like any memory, without the lock.
pub(crate) struct Made {
    blocks: Vec<(Block, u32)>,
    objects: Vec<*mut ffi::PyObject>,
    /// The numbers of the pieces that have to be made with the lock; null among the objects.
    others: Vec<usize>,
}

// SAFETY: plain memory until it is published.
unsafe impl Send for Made {}

impl Maker {
    /// `RuntimeError` unless blocks are enabled and freed strings still come back to them.
    pub(super) fn new(py: Python<'_>) -> PyResult<Self> {
        hook::check(py)?;
        let layout = exact::layout(py).map_err(|unknown| PyRuntimeError::new_err(unknown.to_string()))?;
        Ok(Self { layout, templates: layout.templates })
    }

    /// Lays out all pieces.
    pub(super) fn make(&self, source: &impl Source, task: &Task<'_>) -> Result<Made, Failed> {
        let count = source.count();
        let mut made = Made { blocks: Vec::new(), objects: Vec::with_capacity(count), others: Vec::new() };
        let mut free = 0..0;
        source.for_each(|piece| {
            let header = self.layout.headers[piece.form as usize];
            let size = (header + piece.bytes() + piece.form.width()).next_multiple_of(ALIGNMENT);
            if size > LONGEST || exact::is_shared(&piece) {
                made.leave();
                return Ok(());
            }
            if free.len() < size {
                task.check()?;
                free = made.add_block()?;
            }
            let object = ptr::with_exposed_provenance_mut(free.start);
            // SAFETY: the block is ours alone and has this much room, aligned, from here on.
            unsafe { self.lay_out(object, &piece, header) };
            made.count(object.cast());
            free.start += size;
            Ok::<_, Failed>(())
        })?;
        Ok(made)
    }

    /// # Safety
    ///
    /// `object` is aligned, with room for a header, the characters and a zero, which only the caller refers to.
    #[inline]
    unsafe fn lay_out(&self, object: *mut u8, piece: &Piece<'_>, header: usize) {
        let (template, words) = (&self.templates[piece.form as usize], object.cast::<Word>());
        // SAFETY: the header has `header` bytes, whole words; the characters follow, and a zero as wide as one.
        unsafe {
            copy_words(template, words, header / size_of::<Word>());
            words.add(self.layout.chars).write(piece.chars);
            let data = object.add(header);
            ptr::write_bytes(data.add(piece.bytes()), 0, piece.form.width());
            piece.write(std::slice::from_raw_parts_mut(data, piece.bytes()));
            if piece.form == Form::Ucs4 {
                for &(at, role) in &self.layout.more {
                    words.add(at).write(if role == Role::Chars {
                        piece.chars
                    } else {
                        data.expose_provenance()
                    });
                }
            }
        }
    }
}

/// The sizes that occur are known to the compiler, so that it need not call a function for so few words.
///
/// # Safety
///
/// `to` has room for `count` words.
#[inline]
unsafe fn copy_words(from: &[Word; MOST_WORDS], to: *mut Word, count: usize) {
    // SAFETY: as above.
    unsafe {
        match count {
            5 => ptr::copy_nonoverlapping(from.as_ptr(), to, 5),
            6 => ptr::copy_nonoverlapping(from.as_ptr(), to, 6),
            7 => ptr::copy_nonoverlapping(from.as_ptr(), to, 7),
            9 => ptr::copy_nonoverlapping(from.as_ptr(), to, 9),
            _ => ptr::copy_nonoverlapping(from.as_ptr(), to, count),
        }
    }
}

impl Made {
    /// The addresses that are free in a new block.
    fn add_block(&mut self) -> Result<std::ops::Range<usize>, Failed> {
        let block = Block::take().ok_or(Failed::NoMemory)?;
        let start = block.room().expose_provenance().get();
        self.blocks.push((block, 0));
        Ok(start..start + pool::ROOM)
    }

    #[inline]
    fn count(&mut self, object: *mut ffi::PyObject) {
        self.objects.push(object);
        if let Some((_, objects)) = self.blocks.last_mut() {
            *objects += 1;
        }
    }

    /// Leaves a piece to be made with the lock.
    #[cold]
    fn leave(&mut self) {
        self.others.push(self.objects.len());
        self.objects.push(ptr::null_mut());
    }

    /// Hands all over to Python, in order; `source` is the same as before.
    pub(super) fn publish<'py>(
        self,
        py: Python<'py>,
        source: &impl Source,
        mut take: impl FnMut(Bound<'py, PyAny>),
    ) -> PyResult<()> {
        let mut maker = exact::Maker::new(py);
        let others = self.others.iter().map(|&number| maker.make(&source.piece(number)));
        let mut others = others.collect::<PyResult<Vec<_>>>()?.into_iter();
        for (block, objects) in self.blocks {
            block.publish(objects, None);
        }
        for object in self.objects {
            // SAFETY: null, or an object of a block that was just published, with one reference, which is ours.
            match unsafe { Bound::from_owned_ptr_or_opt(py, object) } {
                Some(object) => take(object),
                None => others.by_ref().take(1).for_each(&mut take),
            }
        }
        Ok(())
    }
}
