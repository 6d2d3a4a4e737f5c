//! Chunks of a text, as objects that the package makes.

use offlock_core::Task;
use offlock_core::tokens::{self, Boundary, Chunk, ChunkOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::cpython::object;
use crate::cpython::sequence::{Container, SequenceBuilder};
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::Large;
use crate::objects::tuple;
use crate::operations::TOKENS_CHUNKS;
use crate::region::{Cancel, Region, Release};
use crate::utf8::utf8;

/// What `make` returns for the text, the first character, the end and the number of tokens of each chunk that `cut` finds,
/// as a list.
pub(crate) fn cut<'py>(
    text: &Bound<'py, PyString>,
    make: &Bound<'py, PyAny>,
    release: Release,
    cancel: Option<&Bound<'py, Cancel>>,
    cut: impl FnOnce(&str, &Task<'_>) -> Result<Vec<Chunk>, tokens::Error> + Send,
) -> PyResult<Bound<'py, PyList>> {
    let (py, utf8) = (text.py(), utf8(text)?);
    let chunks = Region::new(&TOKENS_CHUNKS, utf8.len())
        .release(release)
        .cancel(cancel.map(Bound::get))
        .run(py, |task| cut(&utf8, task))?;
    let (chunks, mut yielder) = (Large::new(chunks), Yielder::of(release).cancel(cancel.map(Bound::get)));
    let mut list = SequenceBuilder::new(py, Container::List, chunks.len())?;
    for chunk in chunks.iter() {
        yielder.tick_many(py, LIKE_OBJECTS)?;
        let size = |number| Ok::<_, PyErr>(object::size(py, number)?.into_any());
        let (start, end) = (chunk.characters.start, chunk.characters.end);
        let part = object::substring(text, start, end)?.into_any();
        let arguments = tuple(py, [part, size(start)?, size(end)?, size(chunk.tokens)?])?;
        list.push(make.call1(arguments.cast_into()?)?);
    }
    Ok(list.finish().cast_into()?)
}

/// A chunk takes as long as this many small objects: `make` is a function in Python.
const LIKE_OBJECTS: usize = 32;

/// How a text is to be cut.
pub(crate) fn options(max_tokens: isize, overlap: isize, boundary: &str) -> PyResult<ChunkOptions> {
    let boundary = Boundary::named(boundary).ok_or_else(|| {
        let known = "'token', 'word', 'sentence', 'line' or 'paragraph'";
        PyValueError::with_message(format!("boundary must be {known}, it is {boundary:?}"))
    })?;
    match (usize::try_from(max_tokens), usize::try_from(overlap)) {
        (Ok(0) | Err(_), _) => {
            let message = format!("max_tokens must be at least 1, it is {max_tokens}");
            Err(PyValueError::with_message(message))
        }
        (Ok(max_tokens), Ok(overlap)) if overlap < max_tokens => {
            Ok(ChunkOptions { max_tokens, overlap, boundary })
        }
        _ => {
            let message =
                format!("overlap must be from 0 to less than max_tokens={max_tokens}, it is {overlap}");
            Err(PyValueError::with_message(message))
        }
    }
}
