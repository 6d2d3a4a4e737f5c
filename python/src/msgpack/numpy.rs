//! numpy's arrays and numbers, as the option `numpy` writes them.

use offlock_core::msgpack::write::{self, Sink};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::cpython::buffer;
use crate::cpython::object::slice;
use crate::objects::{Int, list_of, name};

use super::classes;
use super::pack_error::{PackResult, Step, check_length};

/// The value to write for an object of numpy.
pub(super) enum NumpyReplacement<'py> {
    /// An array whose memory can be read directly.
    Memory(Memory<'py>),
    /// An array whose items numpy converts, some at a time.
    Pieces(Pieces<'py>),
    /// An object that is not numpy's.
    Object(Bound<'py, PyAny>),
}

/// The value to write for `object`; `None` when it is not numpy's, or when numpy itself converts it only to
/// an object of its own: a `longdouble`, for instance.
pub(super) fn replacement<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<NumpyReplacement<'py>>> {
    if !is_numpy(object) {
        return Ok(None);
    }
    if let Some(memory) = Memory::of(object) {
        return Ok(Some(NumpyReplacement::Memory(memory)));
    }
    if object.is_instance(classes::ndarray(object.py())?)?
        && object.getattr(name!("ndim"))?.extract::<usize>()? > 0
    {
        return Pieces::of(object).map(NumpyReplacement::Pieces).map(Some);
    }
    let plain = object.call_method0(name!("tolist"))?;
    Ok((!is_numpy(&plain)).then_some(NumpyReplacement::Object(plain)))
}

/// Whether the object is of one of numpy's own types, which excludes subclasses of other modules.
fn is_numpy(object: &Bound<'_, PyAny>) -> bool {
    let kind = object.get_type();
    let module = kind.getattr(name!("__module__"));
    let is_named = module.is_ok_and(|module| module.extract::<&str>().is_ok_and(|name| name == "numpy"));
    let is = |class: PyResult<&Bound<'_, PyType>>| {
        class.is_ok_and(|class| object.is_instance(class).unwrap_or(false))
    };
    is_named && (is(classes::ndarray(object.py())) || is(classes::numpy_generic(object.py())))
}

/// An array of numbers whose memory can be read directly.
pub(super) struct Memory<'py> {
    buffer: PyUntypedBuffer,
    item: Number,
    _object: Bound<'py, PyAny>,
}

/// The types of items that are read from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Bool,
    Int(usize),
    UInt(usize),
    Float(usize),
}

/// How many bytes are copied at once: other threads may write to the memory of an array.
const COPIED: usize = 1024;

impl<'py> Memory<'py> {
    fn of(object: &Bound<'py, PyAny>) -> Option<Self> {
        let buffer = PyUntypedBuffer::get(object).ok()?;
        let item = Number::of(&buffer)?;
        let is_simple = buffer.is_c_contiguous() && buffer.dimensions() > 0;
        is_simple.then(|| Self { buffer, item, _object: object.clone() })
    }

    /// Writes the array, as arrays of arrays when it has more than one dimension. `float` writes a float, and
    /// `pause` is called regularly.
    pub(super) fn write<S: Sink>(
        &self,
        out: &mut S,
        float: impl Fn(&mut S, f64) -> PackResult<()>,
        mut pause: impl FnMut() -> PackResult<()>,
    ) -> PackResult<()> {
        for &length in self.buffer.shape() {
            check_length(length, "array")?;
        }
        self.dimension(0, &mut 0, out, &float, &mut pause)
    }

    /// Writes the rest of a dimension, from the byte `at` on.
    fn dimension<S: Sink>(
        &self,
        dimension: usize,
        at: &mut usize,
        out: &mut S,
        float: &impl Fn(&mut S, f64) -> PackResult<()>,
        pause: &mut impl FnMut() -> PackResult<()>,
    ) -> PackResult<()> {
        let length = self.buffer.shape()[dimension];
        write::array_header(out, length);
        if dimension + 1 < self.buffer.dimensions() {
            for row in 0..length {
                let result = self.dimension(dimension + 1, at, out, float, pause);
                result.map_err(|trouble| trouble.within(|| Some(Step::Item(row))))?;
            }
            return pause();
        }
        let size = self.buffer.item_size();
        let (start, end) = (*at, *at + length * size);
        let mut copy = [0; COPIED];
        while *at < end {
            let items = &mut copy[..(end - *at).min(COPIED / size * size)];
            self.copy(*at, items);
            for (number, item) in items.chunks_exact(size).enumerate() {
                let place = || Some(Step::Item((*at - start) / size + number));
                self.item.write(item, out, float).map_err(|trouble| trouble.within(place))?;
            }
            *at += items.len();
            pause()?;
        }
        Ok(())
    }

    /// Copies the bytes from `at` on.
    fn copy(&self, at: usize, to: &mut [u8]) {
        buffer::copy(self._object.py(), &self.buffer, at, to);
    }
}

impl Number {
    fn of(buffer: &PyUntypedBuffer) -> Option<Self> {
        let format = buffer.format().to_bytes();
        let code = match format {
            [code] | [b'@' | b'=', code] => *code,
            [b'<', code] if cfg!(target_endian = "little") => *code,
            [b'>', code] if cfg!(target_endian = "big") => *code,
            _ => return None,
        };
        match (code, buffer.item_size()) {
            (b'?', 1) => Some(Self::Bool),
            (b'b' | b'h' | b'i' | b'l' | b'q', size @ 1..=8) => Some(Self::Int(size)),
            (b'B' | b'H' | b'I' | b'L' | b'Q', size @ 1..=8) => Some(Self::UInt(size)),
            (b'f' | b'd', size @ (4 | 8)) => Some(Self::Float(size)),
            _ => None,
        }
    }

    #[inline]
    fn write<S: Sink>(
        self,
        item: &[u8],
        out: &mut S,
        float: &impl Fn(&mut S, f64) -> PackResult<()>,
    ) -> PackResult<()> {
        let mut wide = [0; 8];
        wide[..item.len()].copy_from_slice(item);
        let bits = u64::from_le_bytes(wide);
        match self {
            Self::Bool => write::bool(out, bits != 0),
            Self::UInt(_) => write::uint(out, bits),
            Self::Int(size) => {
                let unused = 64 - 8 * size as u32;
                write::int(out, (bits << unused).cast_signed() >> unused);
            }
            Self::Float(4) => write::f32(out, f32::from_bits(bits as u32)),
            Self::Float(_) => return float(out, f64::from_bits(bits)),
        }
        Ok(())
    }
}

/// How many numbers numpy converts at once, with the lock held.
const PIECE: usize = 4096;

/// Any other array. Numpy makes lists of its items, a piece at a time.
pub(super) struct Pieces<'py> {
    array: Bound<'py, PyAny>,
    rows: usize,
    /// How many rows are converted at once; `None` when a single row is too long, and has to be cut itself.
    step: Option<usize>,
    next: usize,
}

impl<'py> Pieces<'py> {
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        // The rows of a matrix are matrices again: the plain array of the same memory is needed.
        let array = object.call_method1(name!("view"), (classes::ndarray(object.py())?,))?;
        let rows = array.len()?;
        let items: usize = array.getattr(name!("size"))?.extract()?;
        let row = items.checked_div(rows).unwrap_or(0).max(1);
        let step = (row <= PIECE).then_some(PIECE / row);
        Ok(Self { array, rows, step, next: 0 })
    }

    /// The number of items of the outermost dimension.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// The next rows, in a new list; `None` after the last one.
    pub(super) fn next(&mut self) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.next >= self.rows {
            return Ok(None);
        }
        let py = self.array.py();
        let Some(step) = self.step else {
            let row = self.array.get_item(Int(self.next))?;
            self.next += 1;
            return list_of(row).map(Some);
        };
        let end = (self.next + step).min(self.rows);
        let slice = slice(py, self.next, end)?;
        self.next = end;
        self.array.get_item(slice)?.call_method0(name!("tolist")).map(Some)
    }
}
