//! Kind "block": exact `str` objects laid out in blocks without the lock.

use std::ops::Range;
use std::ptr;

use offlock_core::Task;
use offlock_core::text::{Piece, StrKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::allocator_hook;
use super::block_pool::{self, Block};
use super::exact_str::{self, ExactStrBuilder};
use super::pages;
use super::str_layout::{self, Compact, MOST_WORDS, Role, Templates, Word};
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::Large;
use crate::strings::error::StringsError;
use crate::strings::source::StrSource;

/// The alignment of objects in CPython's own allocator.
const ALIGNMENT: usize = 16;

/// Longer objects would leave too much of a block unused; they are made one by one.
const LONGEST: usize = block_pool::ROOM / 8;

/// Objects that fit in one cache line.
const SMALL: usize = 64;

/// How many blocks are filled between two checks of the task.
const STRETCH: usize = 8;

/// Lays out exact `str` objects; needs no lock.
pub(crate) struct BlockBuilder {
    layout: &'static Compact,
    templates: Templates,
}

/// Objects that are not published to Python yet: dropped like other memory, without the lock.
pub(crate) struct BuiltBlocks {
    /// With the number of the first piece in each.
    blocks: Vec<(Block, usize)>,
    /// For each piece the offset of its object in the block, in units of [`ALIGNMENT`]; or [`OTHER`].
    places: Vec<u16>,
    /// The numbers of the pieces that have to be made with the lock held.
    others: Vec<usize>,
}

/// No object begins where its block does.
const OTHER: u16 = 0;

impl BlockBuilder {
    /// `RuntimeError` unless blocks are enabled and the hook still receives freed strings.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        allocator_hook::check(py)?;
        let layout =
            str_layout::of_exact(py).map_err(|unknown| PyRuntimeError::with_message(unknown.to_string()))?;
        Ok(Self { layout, templates: layout.templates })
    }

    /// Lays out all pieces.
    pub(crate) fn make(&self, source: &impl StrSource, task: &Task<'_>) -> Result<BuiltBlocks, StringsError> {
        let made = BuiltBlocks {
            blocks: Vec::new(),
            places: offlock_core::memory::with_capacity(source.count())?,
            others: Vec::new(),
        };
        let mut filling = Filling { maker: self, task, made, free: 0..0 };
        source.for_each(|piece| filling.add(&piece))?;
        Ok(filling.made)
    }

    /// # Safety
    ///
    /// `object` is aligned, has capacity for a header, the characters and a zero, and has no other reference.
    #[inline]
    unsafe fn lay_out(&self, object: *mut u8, piece: &Piece<'_>, header: usize) {
        let (template, words) = (&self.templates[piece.kind as usize], object.cast::<Word>());
        // SAFETY: the header has `header` bytes, whole words; the characters follow, and a zero as wide as
        // one.
        unsafe {
            copy_words(template, words, header / size_of::<Word>());
            words.add(self.layout.chars).write(piece.chars);
            let data = object.add(header);
            let end = data.add(piece.bytes());
            match piece.kind.width() {
                1 => end.write(0),
                2 => end.cast::<u16>().write(0),
                _ => end.cast::<u32>().write(0),
            }
            piece.write(std::slice::from_raw_parts_mut(data, piece.bytes()));
            if piece.kind == StrKind::Ucs4 {
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

/// Copies in steps whose sizes the compiler knows, so that it need not call a function for so few words. The
/// last step may go beyond the header, but not beyond the characters and the zero that follow it.
///
/// # Safety
///
/// `to` has capacity for `count` words and one more byte, rounded up to [`ALIGNMENT`].
#[inline]
unsafe fn copy_words(from: &[Word; MOST_WORDS], to: *mut Word, count: usize) {
    // SAFETY: the caller guarantees the capacity, which is rounded up to two words, as the steps are.
    unsafe {
        to.cast::<[Word; 4]>().write(*from.first_chunk().expect("there are more"));
        for step in (4..count).step_by(2) {
            to.add(step).cast::<[Word; 2]>().write([from[step], from[step + 1]]);
        }
    }
}

/// Blocks that are being filled.
struct Filling<'a> {
    maker: &'a BlockBuilder,
    task: &'a Task<'a>,
    made: BuiltBlocks,
    /// The free addresses in the last block.
    free: Range<usize>,
}

impl Filling<'_> {
    /// Lays out one piece.
    #[inline]
    fn add(&mut self, piece: &Piece<'_>) -> Result<(), StringsError> {
        let header = self.maker.layout.headers[piece.kind as usize];
        let size = (header + piece.bytes() + piece.kind.width()).next_multiple_of(ALIGNMENT);
        if size > LONGEST || exact_str::is_shared(piece) {
            self.leave();
            return Ok(());
        }
        if self.free.len() < size {
            self.add_block()?;
        }
        let object = ptr::with_exposed_provenance_mut::<u8>(self.free.start);
        if size <= SMALL {
            pages::expect_use(object.wrapping_byte_add(pages::AHEAD));
        }
        // SAFETY: the block has no other reference and this much spare capacity, aligned, from here on.
        unsafe { self.maker.lay_out(object, piece, header) };
        let place = self.free.start % block_pool::BLOCK / ALIGNMENT;
        self.made.places.push(u16::try_from(place).expect("a block is small"));
        self.free.start += size;
        Ok(())
    }

    fn add_block(&mut self) -> Result<(), StringsError> {
        if self.made.blocks.len().is_multiple_of(STRETCH) {
            self.task.check()?;
        }
        let block = Block::take().ok_or(StringsError::NoMemory)?;
        let start = block.objects().expose_provenance().get();
        self.free = start..start + block_pool::ROOM;
        offlock_core::memory::push(&mut self.made.blocks, (block, self.made.places.len()))?;
        Ok(())
    }

    /// Defers a piece, which has to be made with the lock held.
    #[cold]
    fn leave(&mut self) {
        self.made.others.push(self.made.places.len());
        self.made.places.push(OTHER);
    }
}

impl BuiltBlocks {
    /// Publishes all objects to Python, in order; `source` is the same as before.
    pub(crate) fn publish<'py>(
        self,
        py: Python<'py>,
        source: &impl StrSource,
        yielder: &mut Yielder,
        mut take: impl FnMut(Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        let Self { blocks, places, others } = self;
        let (places, others) = (Large::new(places), Large::new(others));
        let mut maker = ExactStrBuilder::new(py);
        let mut others = others.iter();
        let mut other = |yielder: &mut Yielder| {
            let piece = source.piece(*others.next().expect("one for each such place"));
            yielder.tick_bytes(py, piece.bytes())?;
            maker.make(&piece)
        };
        let mut blocks = blocks.into_iter();
        let first_of_next = |blocks: &[(Block, usize)]| blocks.first().map_or(places.len(), |next| next.1);
        for _ in 0..first_of_next(blocks.as_slice()) {
            take(other(yielder)?)?;
        }
        while let Some((block, first)) = blocks.next() {
            let places = &places[first..first_of_next(blocks.as_slice())];
            yielder.tick_many(py, places.len())?;
            let mut published = PublishedBlock::of(block, places);
            while let Some(&place) = published.places.next() {
                take(if place == OTHER { other(yielder)? } else { published.object(py, place) })?;
            }
        }
        Ok(())
    }
}

/// A block that is published to Python, and those of its objects that were not taken yet.
struct PublishedBlock<'a> {
    start: *mut u8,
    places: std::slice::Iter<'a, u16>,
}

impl<'a> PublishedBlock<'a> {
    fn of(block: Block, places: &'a [u16]) -> Self {
        let objects = places.iter().filter(|place| **place != OTHER).count();
        let start = block.start().as_ptr();
        block.publish(u32::try_from(objects).expect("a block is small"), None);
        Self { start, places: places.iter() }
    }

    /// The object at this place.
    #[inline]
    fn object<'py>(&self, py: Python<'py>, place: u16) -> Bound<'py, PyAny> {
        // SAFETY: an object of the block that was published, with one reference, which is taken once.
        unsafe { Bound::from_owned_ptr(py, self.start.add(usize::from(place) * ALIGNMENT).cast()) }
    }
}

impl Drop for PublishedBlock<'_> {
    /// Releases the objects that were not taken because an exception was raised.
    fn drop(&mut self) {
        if self.places.as_slice().is_empty() {
            return;
        }
        Python::attach(|py| {
            while let Some(&place) = self.places.next() {
                if place != OTHER {
                    drop(self.object(py, place));
                }
            }
        });
    }
}
