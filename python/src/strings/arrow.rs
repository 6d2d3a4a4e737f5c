//! Arrow arrays of strings, through the Arrow PyCapsule interface.
//!
//! The structs are in `arrow_abi.rs`. The lengths of buffers are taken from the exporter. Everything else is
//! checked: missing or released structs, impossible numbers, types, the order of offsets, indices, UTF-8.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use offlock_core::Task;
use offlock_core::memory;
use offlock_core::text::{Offset, Pieces, Spans};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::adjacent::adjacent;
use super::arrow_abi::{Array, Owned, Schema, Stream, wrong};
use super::error::StringsError;
use super::places::{Batch, NONE, Places, mapped, stretches};
use crate::error::WithMessage;
use crate::large::{Large, reserve};
use crate::objects::name;

/// How the strings of an array are stored.
#[derive(Debug, Clone, Copy)]
enum StringLayout {
    /// `string`
    Offsets32,
    /// `large_string`
    Offsets64,
    /// `string_view`
    Views,
    /// `null`: an array without strings.
    Nulls,
    /// A dictionary: the strings are in an array of their own.
    Indices,
}

impl StringLayout {
    /// How many buffers an array of this kind may have.
    const fn buffers(self) -> RangeInclusive<i64> {
        match self {
            Self::Offsets32 | Self::Offsets64 => 3..=3,
            Self::Views => 3..=3 + i32::MAX as i64, // a view has this many bits for the number of its buffer
            Self::Nulls => 0..=1,
            Self::Indices => 2..=2,
        }
    }
}

/// The type of an array's elements.
#[derive(Debug, Clone, Copy)]
struct Type {
    layout: StringLayout,
    /// For a dictionary: the format of its indices.
    index: Option<u8>,
}

impl Type {
    fn of(schema: &Schema) -> PyResult<Self> {
        let (values, index) = match schema.dictionary()? {
            Some(values) => (values, Some(schema.format()?)),
            None => (schema, None),
        };
        if index.is_some() && values.has_dictionary() {
            return Err(PyValueError::with_message(
                "the dictionary of the Arrow schema has a dictionary itself",
            ));
        }
        let layout = match values.format()? {
            b"u" => StringLayout::Offsets32,
            b"U" => StringLayout::Offsets64,
            b"vu" => StringLayout::Views,
            b"n" => StringLayout::Nulls,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(PyTypeError::with_message(format!(
                    "an Arrow array of strings is needed, not of format '{other}'"
                )));
            }
        };
        match index {
            None => Ok(Self { layout, index: None }),
            Some(&[index @ (b'c' | b'C' | b's' | b'S' | b'i' | b'I' | b'l' | b'L')]) => {
                Ok(Self { layout, index: Some(index) })
            }
            Some(_) => Err(PyTypeError::with_message("the indices of an Arrow dictionary must be integers")),
        }
    }
}

/// Arrays of strings, one after the other.
pub(super) struct Chunks {
    kind: Type,
    arrays: Vec<Owned<Array>>,
}

// SAFETY: the buffers are only read, and the structs are released with the lock held again.
unsafe impl Sync for Chunks {}

impl Chunks {
    /// Takes over what `object` exports: an array, or a stream of them.
    pub(super) fn import(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.hasattr(name!("__arrow_c_array__"))? {
            let capsules = object.call_method0(name!("__arrow_c_array__"))?;
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = capsules
                .extract()
                .map_err(|_| PyTypeError::with_message("__arrow_c_array__ must return two capsules"))?;
            let kind = Type::of(&Owned::<Schema>::take(&schema)?.0)?;
            let array = Owned::<Array>::take(&array)?;
            check_array(&array.0, kind)?;
            return Ok(Self { kind, arrays: vec![array] });
        }
        if object.hasattr(name!("__arrow_c_stream__"))? {
            return Self::read(object.py(), Owned::take(&object.call_method0(name!("__arrow_c_stream__"))?)?);
        }
        let class = object.get_type();
        Err(PyTypeError::with_message(format!(
            "{} has neither __arrow_c_array__ nor __arrow_c_stream__",
            class.name()?
        )))
    }

    fn read(py: Python<'_>, mut stream: Owned<Stream>) -> PyResult<Self> {
        let kind = Type::of(&stream.schema()?.0)?;
        let (mut arrays, mut length) = (Vec::new(), 0_i64);
        loop {
            py.check_signals()?;
            let Some(array) = stream.next()? else { return Ok(Self { kind, arrays }) };
            check_array(&array.0, kind)?;
            length = length.checked_add(array.0.length).ok_or_else(|| {
                PyValueError::with_message("the Arrow stream has more elements than any memory holds")
            })?;
            reserve(&mut arrays, 1)?;
            arrays.push(array);
        }
    }

    /// An estimate of the work in bytes.
    pub(super) fn bytes(&self) -> usize {
        let work = self.arrays.iter().map(|array| work_of(&array.0, self.kind));
        work.fold(0, usize::saturating_add)
    }

    /// The strings of all arrays.
    pub(super) fn batches(&self, task: &Task<'_>) -> Result<Vec<Batch<Pieces<'_>>>, StringsError> {
        self.arrays.iter().map(|array| Elements::of(&array.0)?.batch(self.kind, task)).collect()
    }
}

/// Refuses an invalid array, as far as that can be detected: `ValueError` says what is wrong.
fn check_array(array: &Array, kind: Type) -> PyResult<()> {
    let wrong = |what: &str| Err(PyValueError::with_message(format!("the Arrow array has {what}")));
    let values = array.dictionary()?;
    match (values, kind.index) {
        (None, Some(_)) => return wrong("no dictionary"),
        (Some(_), None) => return wrong("a dictionary, and its schema has none"),
        (Some(values), Some(_)) if values.has_dictionary() => {
            return wrong("a dictionary that has one itself");
        }
        (Some(values), Some(_)) => check_fields(values, kind.layout)?,
        (None, None) => {}
    }
    check_fields(array, if kind.index.is_some() { StringLayout::Indices } else { kind.layout })
}

fn check_fields(array: &Array, layout: StringLayout) -> PyResult<()> {
    let wrong = |what: String| Err(PyValueError::with_message(format!("the Arrow array has {what}")));
    let Array { length, null_count, offset, n_buffers, n_children, .. } = *array;
    let buffers = layout.buffers();
    if length < 0 || offset < 0 {
        return wrong(format!("a length of {length} and an offset of {offset}"));
    }
    // The smallest elements that are read take a bit, the largest 16 bytes.
    if length.checked_add(offset).and_then(|end| end.checked_add(1)?.checked_mul(16)).is_none()
        && !matches!(layout, StringLayout::Nulls)
    {
        return wrong(format!("a length of {length} from {offset} on, which no memory holds"));
    }
    if null_count < -1 {
        return wrong(format!("a null count of {null_count}"));
    }
    if n_children != 0 {
        return wrong(format!("{n_children} children"));
    }
    if !buffers.contains(&n_buffers) {
        return wrong(format!("{n_buffers} buffers"));
    }
    if n_buffers > 0 && !array.has_buffers() {
        return wrong("no addresses of its buffers".to_owned());
    }
    let tells = || matches!(layout, StringLayout::Nulls) || !array.buffer(0).is_null();
    if null_count > 0 && !tells() {
        return wrong(format!("{null_count} nulls, and nothing that tells which"));
    }
    Ok(())
}

/// An estimate of the work for an array, in bytes.
fn work_of(array: &Array, kind: Type) -> usize {
    let values = array.dictionary().ok().flatten().unwrap_or(array);
    let bytes = |array| Elements::of(array).map_or(0, |elements| elements.bytes(kind.layout));
    (usize::try_from(array.length).unwrap_or(0).saturating_mul(ELEMENT)).saturating_add(bytes(values))
}

/// Making a short string, or storing a reference to one, takes about as long as copying this many bytes.
const ELEMENT: usize = 16;

/// The elements of one array.
#[derive(Clone, Copy)]
struct Elements<'a> {
    array: &'a Array,
    offset: usize,
    length: usize,
}

impl<'a> Elements<'a> {
    fn of(array: &'a Array) -> Result<Self, StringsError> {
        let number = |value: i64| usize::try_from(value).map_err(|_| wrong("a negative length"));
        Ok(Self { array, offset: number(array.offset)?, length: number(array.length)? })
    }

    /// The bytes of all strings. Those of many views are not counted: their number alone is work enough.
    fn bytes(self, layout: StringLayout) -> usize {
        const MANY: usize = 1 << 12;
        match layout {
            StringLayout::Offsets32 => self.bytes_between::<i32>(),
            StringLayout::Offsets64 => self.bytes_between::<i64>(),
            StringLayout::Views if self.length < MANY => self
                .values_and::<[u32; 4]>(1, 0)
                .map_or(0, |views| views.iter().map(|view| view[0] as usize).fold(0, usize::saturating_add)),
            StringLayout::Views | StringLayout::Nulls | StringLayout::Indices => 0,
        }
    }

    fn bytes_between<O: Offset>(self) -> usize {
        let ends =
            self.values_and::<O>(1, 1).ok().and_then(|offsets| Some((*offsets.first()?, *offsets.last()?)));
        let bytes = ends.and_then(|(first, last)| last.into().checked_sub(first.into()));
        bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
    }

    /// The strings of the array and their places in it.
    fn batch(self, kind: Type, task: &Task<'_>) -> Result<Batch<Pieces<'a>>, StringsError> {
        match kind.index {
            None => self.strings(kind.layout, task)?.without_repeats(task),
            Some(index) => self.through_dictionary(kind.layout, index, task),
        }
    }

    fn strings(self, layout: StringLayout, task: &Task<'_>) -> Result<Batch<Pieces<'a>>, StringsError> {
        match layout {
            StringLayout::Offsets32 => self.between_offsets::<i32>(task),
            StringLayout::Offsets64 => self.between_offsets::<i64>(task),
            StringLayout::Views => self.viewed(task),
            StringLayout::Nulls | StringLayout::Indices => {
                let source = Pieces::new(Vec::new(), Vec::new(), task)?;
                Ok(Batch { source, places: Places::Nulls(self.length) })
            }
        }
    }

    fn between_offsets<O: Offset>(self, task: &Task<'_>) -> Result<Batch<Pieces<'a>>, StringsError> {
        let offsets = self.values_and::<O>(1, 1)?;
        let end = offsets.last().map_or(0, |&end| end.into());
        let end = usize::try_from(end).map_err(|_| wrong("a negative offset"))?;
        // SAFETY: the exporter guarantees as many bytes as the last offset.
        let text = unsafe { self.array.memory::<u8>(2, 0, end) }?;
        self.placed(text, Spans::between::<O>(text, offsets, task)?, task)
    }

    /// The views refer to several buffers, so that their strings are copied to one.
    fn viewed(self, task: &Task<'_>) -> Result<Batch<Pieces<'a>>, StringsError> {
        let views = self.values_and::<[u32; 4]>(1, 0)?;
        let buffers = self.variadic()?;
        let present = self.present(task)?;
        let string = |(index, view): (usize, &'a [u32; 4])| match &present {
            Some(present) if !present[index] => Ok(&b""[..]),
            _ => viewed(view, &buffers).ok_or_else(|| wrong("a view outside of its buffer")),
        };
        let (text, spans) = adjacent(views.iter().enumerate().map(string), views.len(), 0, task)?;
        self.placed(text, spans.into(), task)
    }

    /// The data buffers of an array of views: all but the first two, and the last, which has their lengths.
    fn variadic(self) -> Result<Vec<&'a [u8]>, StringsError> {
        let count = self.array.n_buffers.checked_sub(3).and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or_else(|| wrong("too few buffers"))?;
        // SAFETY: the exporter guarantees that the last buffer has one length for each.
        let lengths = unsafe { self.array.memory::<i64>(count + 2, 0, count) }?;
        let length = |&length| usize::try_from(length).map_err(|_| wrong("a negative length"));
        // SAFETY: the exporter guarantees that the buffer has this length.
        lengths
            .iter()
            .zip(2..)
            .map(|(len, number)| unsafe { self.array.memory(number, 0, length(len)?) })
            .collect()
    }

    /// The pieces of all strings that are not null.
    fn placed(
        self,
        text: impl Into<Cow<'a, [u8]>>,
        spans: Spans<'a>,
        task: &Task<'_>,
    ) -> Result<Batch<Pieces<'a>>, StringsError> {
        let Some(present) = self.present(task)? else {
            let pieces = Pieces::new(text, spans, task);
            return Ok(Batch::all(
                pieces.map_err(|error| StringsError::piece(error, |piece, _| in_element(piece)))?,
            ));
        };
        let mut there = memory::with_capacity(present.iter().filter(|&&present| present).count())?;
        for stretch in stretches(0..present.len()) {
            task.check()?;
            there.extend(stretch.filter(|&index| present[index]).map(|index| spans.get(index)));
        }
        let element = |piece| (0..present.len()).filter(|&index| present[index]).nth(piece).unwrap_or(piece);
        let source = Pieces::new(text, there, task)
            .map_err(|error| StringsError::piece(error, |piece, _| in_element(element(piece))))?;
        Ok(Batch { source, places: Places::Present(Large::new(present).into()) })
    }

    /// The strings of the dictionary, once each, and the index of the string of each element.
    fn through_dictionary(
        self,
        layout: StringLayout,
        index: u8,
        task: &Task<'_>,
    ) -> Result<Batch<Pieces<'a>>, StringsError> {
        let dictionary = self.array.dictionary().ok().flatten().ok_or_else(|| wrong("no dictionary"))?;
        let values = Self::of(dictionary)?.strings(layout, task)?;
        let numbers = numbers(&values, task)?;
        let present = self.present(task)?;
        let present = present.as_deref();
        let lookup = |index: usize, value: i64| match present {
            Some(present) if !present[index] => Ok(NONE),
            _ => usize::try_from(value).ok().and_then(|value| numbers.get(value).copied()).ok_or_else(|| {
                let known = numbers.len();
                StringsError::Value(format!(
                    "index {index} is {value}, but the Arrow dictionary has {known} values"
                ))
            }),
        };
        let indices = self.indices(index, task)?;
        let mut places = memory::with_capacity(self.length)?;
        for stretch in stretches(0..indices.len()) {
            task.check()?;
            for index in stretch {
                places.push(lookup(index, indices[index])?);
            }
        }
        Ok(Batch { source: values.source, places: Places::Numbered(Large::new(places).into()) })
    }

    /// Indices of any integer type.
    fn indices(self, format: u8, task: &Task<'_>) -> Result<Vec<i64>, StringsError> {
        match format {
            b'c' => self.widened::<i8>(task),
            b'C' => self.widened::<u8>(task),
            b's' => self.widened::<i16>(task),
            b'S' => self.widened::<u16>(task),
            b'i' => self.widened::<i32>(task),
            b'I' => self.widened::<u32>(task),
            _ => self.widened::<i64>(task), // an unsigned index that is negative here is out of range in any case
        }
    }

    fn widened<I: Copy + Into<i64>>(self, task: &Task<'_>) -> Result<Vec<i64>, StringsError> {
        let values = self.values_and::<I>(1, 0)?;
        mapped(0..values.len(), task, |index| values[index].into())
    }

    /// Whether each element is valid; `None` when all are.
    fn present(self, task: &Task<'_>) -> Result<Option<Vec<bool>>, StringsError> {
        if self.array.null_count == 0 || self.array.buffer(0).is_null() {
            return Ok(None);
        }
        let end = self.offset + self.length;
        // SAFETY: the exporter guarantees a bit for each element.
        let bits = unsafe { self.array.memory::<u8>(0, 0, end.div_ceil(8)) }?;
        mapped(self.offset..end, task, |bit| bits[bit / 8] >> (bit % 8) & 1 == 1).map(Some)
    }

    /// One value for each element, and `more`.
    fn values_and<T>(self, number: usize, more: usize) -> Result<&'a [T], StringsError> {
        if self.length == 0 {
            return Ok(&[]); // the buffer itself may be missing
        }
        // SAFETY: the exporter guarantees this many.
        unsafe { self.array.memory(number, self.offset, self.length + more) }
    }
}

/// The string of a view: in the view itself up to 12 bytes, in a buffer otherwise.
fn viewed<'a>(view: &'a [u32; 4], buffers: &[&'a [u8]]) -> Option<&'a [u8]> {
    let [length, _, buffer, offset] = view.map(|word| word as usize);
    if length <= 12 {
        return bytemuck::cast_slice(view).get(4..4 + length);
    }
    buffers.get(buffer)?.get(offset..)?.get(..length)
}

/// The number of the string of each value of a dictionary.
fn numbers(values: &Batch<Pieces<'_>>, task: &Task<'_>) -> Result<Vec<u32>, StringsError> {
    let count = u32::try_from(values.source.len()).map_err(|_| wrong("a dictionary of 2**32 strings"))?;
    let numbers = mapped(0..count as usize, task, |number| number as u32)?;
    values.places.numbered(numbers, task)
}

fn in_element(index: usize) -> String {
    format!("in element {index} of the Arrow array")
}
