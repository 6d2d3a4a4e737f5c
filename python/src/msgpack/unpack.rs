//! `unpackb`, `unpack_all`: whole messages.

use offlock_core::msgpack::{Indexed, Tape};
use offlock_core::{Task, memory};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::build::Builder;
use super::classes;
use super::error::DecodeError;
use super::input::Input;
use super::key_cache::KeyCache;
use super::long_strings;
use super::options::UnpackOptions;
use super::prebuilt_strings::{self, PrebuiltStrings};
use crate::cpython::partial_sequence::PartialSequence;
use crate::cpython::threads;
use crate::gil_yield::Yielder;
use crate::large::{Large, MemorySize, Refs};
use crate::operations::MSGPACK_DECODE;
use crate::region::{self, Region, Release};

/// Decodes `packed`, with or without keywords.
#[inline(always)]
pub(super) fn unpackb<'py>(
    packed: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
    cache: Option<&mut KeyCache>,
) -> PyResult<Bound<'py, PyAny>> {
    static DEFAULT: UnpackOptions = UnpackOptions::DEFAULT;
    let py = packed.py();
    let other;
    let bytes = match packed.cast_exact::<PyBytes>() {
        Ok(bytes) => bytes.as_bytes(), // the caller holds it: the cost of an `Input` is significant for a short message
        Err(_) => {
            other = Input::borrow(packed)?;
            other.as_slice()
        }
    };
    match options {
        None => decode(py, bytes, &DEFAULT, cache),
        Some(options) => decode_as(bytes, options, cache),
    }
}

#[inline(never)]
fn decode_as<'py>(
    bytes: &[u8],
    options: &Bound<'py, PyDict>,
    cache: Option<&mut KeyCache>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = options.py();
    let options = UnpackOptions::from_keywords(options, |_, _| Ok(false))?;
    decode(py, bytes, &options, cache)
}

/// `unpack_all`: unpacks every message of a list, with the options in the keywords.
pub(super) fn unpack_all<'py>(
    packed: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = packed.py();
    let options = options_from(options)?;
    let mut yielder = Yielder::of(options.release);
    let inputs = Refs::collect(packed, &mut yielder, |_, item| Input::borrow(&item))?;
    let (messages, size) = inputs.slices(py, &mut yielder, Input::as_slice)?;
    let mut objects = PartialSequence::new(py, messages.len(), messages.len(), true)?;
    if !options.release.leaves(&MSGPACK_DECODE, size) {
        region::yield_between_calls(py, size)?;
        let mut cache = KeyCache::default();
        for &message in messages.iter() {
            yielder.tick(py)?;
            objects.push(decode_directly(py, message, &options, Some(&mut cache))?)?;
        }
    } else {
        let tapes = Large::new(Tapes(index_all(py, &messages, size, &options)?));
        let mut builder = Builder::new(py, &options, None);
        for (message, (tape, end)) in messages.iter().zip(&tapes.0) {
            yielder.tick(py)?;
            let object = builder.build(&mut Indexed::at(tape, message, 0))?;
            objects.push(whole(object, message, *end)?)?;
        }
    }
    objects.finish(py)
}

/// The index of each message, and where the message ends. Each is a separate allocation, which takes time to
/// free.
struct Tapes(Vec<(Tape, usize)>);

impl MemorySize for Tapes {
    fn memory_size(&self) -> usize {
        const BYTES_PER_TAPE: usize = 256;
        self.0.len() * BYTES_PER_TAPE
    }
}

impl MemorySize for Tape {
    fn memory_size(&self) -> usize {
        const BYTES_PER_WORD: usize = 4;
        const BYTES_PER_KEY: usize = 32;
        self.after(0) * BYTES_PER_WORD + self.keys().len() * BYTES_PER_KEY
    }
}

fn index_all(
    py: Python<'_>,
    messages: &[&[u8]],
    size: usize,
    options: &UnpackOptions,
) -> PyResult<Vec<(Tape, usize)>> {
    Region::new(&MSGPACK_DECODE, size)
        .release(options.release)
        .run(py, |task| memory::collected(messages.iter().map(|message| index(message, options, task))))
}

/// The options in the keywords, if there are any.
pub(super) fn options_from(options: Option<&Bound<'_, PyDict>>) -> PyResult<UnpackOptions> {
    match options {
        None => Ok(UnpackOptions::default()),
        Some(options) => UnpackOptions::from_keywords(options, |_, _| Ok(false)),
    }
}

#[inline(always)]
fn decode<'py>(
    py: Python<'py>,
    bytes: &[u8],
    options: &UnpackOptions,
    cache: Option<&mut KeyCache>,
) -> PyResult<Bound<'py, PyAny>> {
    if !options.release.leaves(&MSGPACK_DECODE, bytes.len()) || u32::try_from(bytes.len()).is_err() {
        region::yield_between_calls(py, bytes.len())?;
        return decode_directly(py, bytes, options, cache);
    }
    decode_long(py, bytes, options, cache)
}

#[inline(never)]
fn decode_long<'py>(
    py: Python<'py>,
    bytes: &[u8],
    options: &UnpackOptions,
    cache: Option<&mut KeyCache>,
) -> PyResult<Bound<'py, PyAny>> {
    let texts = PrebuiltStrings::new(py);
    if options.release == Release::AUTO && texts.is_empty() && threads::is_only_thread(py) {
        let (object, end) = Builder::new(py, options, cache).message(bytes)?;
        return whole(object, bytes, end);
    }
    let (tape, end, strings) =
        Region::new(&MSGPACK_DECODE, bytes.len()).release(options.release).run(py, |task| {
            let (tape, end) = index(bytes, options, task)?;
            let strings = if options.raw { None } else { texts.lay_out(bytes, || tape.texts().ok(), task) };
            Ok::<_, DecodeError>((tape, end, strings))
        })?;
    let tape = Large::new(tape);
    let strings = prebuilt_strings::publish(py, strings, &mut Yielder::of(options.release))?;
    let mut builder = Builder::new(py, options, None).with(strings);
    let object = builder.build(&mut Indexed::at(&tape, bytes, 0))?;
    whole(object, bytes, end)
}

/// Indexes a message; also returns where it ends.
pub(super) fn index(
    bytes: &[u8],
    options: &UnpackOptions,
    task: &Task<'_>,
) -> Result<(Tape, usize), DecodeError> {
    Ok(Tape::index(bytes, &options.limits(bytes.len()), task)?)
}

/// The only path for short messages.
#[inline(always)]
fn decode_directly<'py>(
    py: Python<'py>,
    bytes: &[u8],
    options: &UnpackOptions,
    cache: Option<&mut KeyCache>,
) -> PyResult<Bound<'py, PyAny>> {
    let (object, end) = Builder::new(py, options, cache).message(bytes)?;
    whole(object, bytes, end)
}

/// The object, unless bytes follow the message.
#[inline(always)]
pub(super) fn whole<'py>(object: Bound<'py, PyAny>, bytes: &[u8], end: usize) -> PyResult<Bound<'py, PyAny>> {
    if end == bytes.len() { Ok(object) } else { extra(&object, bytes, end) }
}

#[cold]
fn extra<'py>(object: &Bound<'py, PyAny>, bytes: &[u8], end: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let extra = long_strings::bytes(py, &bytes[end..], Release::NEVER)?;
    Err(PyErr::from_value(classes::extra_data(py)?.call1((object, extra))?))
}
