//! The layout of this interpreter's `str` objects, derived from some that it has built.
//!
//! No layout is taken from the headers of a CPython version. Objects of known contents are built with the
//! public API, and each word of their fixed part has to be explained: the same in two objects of one kind,
//! the number of characters, or the address of the characters. The result is the template from which objects
//! are made. If one word cannot be explained, no objects are made.

use std::convert::Infallible;
use std::fmt;
use std::mem::offset_of;

use offlock_core::text::StrKind;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use super::assumptions::{Assumption, VARIABLE};
use super::object;
use crate::objects::{Text, dict, kept, name, tuple};

/// The unit of observation: a field is one word, or a part of one.
pub(crate) type Word = usize;
const WORD: usize = size_of::<Word>();

/// The fixed part of a `str` object has this many words at most.
pub(crate) const MOST_WORDS: usize = 12;

/// How many pairs of objects are compared where memory may be uninitialized.
const SAMPLES: usize = 16;

/// The index of the word with an object's type.
const TYPE_AT: usize = offset_of!(ffi::PyObject, ob_type) / WORD;

/// The words of a new object of each kind; those that depend on its contents are zero.
pub(crate) type Templates = [[Word; MOST_WORDS]; 4];

/// The layout of instances of a subclass, whose characters are elsewhere.
#[derive(Debug)]
pub(crate) struct Apart {
    /// How many words an object has.
    pub(crate) words: usize,
    pub(crate) templates: Templates,
    /// The index of the word with the number of characters.
    pub(crate) chars: usize,
    /// The index of the word with the address of the characters.
    pub(crate) data: usize,
    /// The index of the word with the length of the UTF-8.
    pub(crate) utf8_len: usize,
    /// The index of the word with the address of the UTF-8.
    pub(crate) utf8: usize,
    /// Other words that depend on the contents, in UCS-4 objects only.
    pub(crate) more: Vec<(usize, Role)>,
}

/// The layout of exact `str` objects, whose characters follow the fixed part.
#[derive(Debug)]
pub(crate) struct Compact {
    /// The bytes before the characters, for each kind.
    pub(crate) headers: [usize; 4],
    pub(crate) templates: Templates,
    /// The index of the word with the number of characters.
    pub(crate) chars: usize,
    /// Other words that depend on the contents, in UCS-4 objects only.
    pub(crate) more: Vec<(usize, Role)>,
}

/// The meaning of a word of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The same in all new objects of its kind.
    Constant(Word),
    /// The number of characters.
    Chars,
    /// The address of the characters.
    Data,
}

/// Why a layout is not understood.
#[derive(Debug, Clone)]
pub(crate) struct Unknown(String);

impl Unknown {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the layout of str is not understood: {}", self.0)
    }
}

impl From<PyErr> for Unknown {
    fn from(error: PyErr) -> Self {
        Self(error.to_string())
    }
}

/// The layout of exact `str` objects, observed once.
pub(crate) fn of_exact(py: Python<'_>) -> Result<&'static Compact, &'static Unknown> {
    static LAYOUT: PyOnceLock<Result<Compact, Unknown>> = PyOnceLock::new();
    let Ok(layout) = kept(&LAYOUT, py, || Ok::<_, Infallible>(Compact::observe(py)));
    layout.as_ref()
}

/// Returns an error if the layout of `str` may not be relied on.
fn check_allowed() -> Result<(), Unknown> {
    if Assumption::StrObjects.holds() {
        return Ok(());
    }
    unknown(format!("{VARIABLE}=0 forbids to rely on it"))
}

fn unknown<T>(what: impl Into<String>) -> Result<T, Unknown> {
    Err(Unknown::new(what))
}

impl Apart {
    /// The layout of instances of `class`, a subclass of `str` without attributes of its own.
    pub(crate) fn observe(class: &Bound<'_, PyType>) -> Result<Self, Unknown> {
        check_allowed()?;
        let sample = sample_class(class.py())?;
        let size = basic_size(class)?;
        if size != basic_size(&sample)? {
            return unknown("subclasses differ in size");
        }
        let observer = Observer { class: &sample, state: state_place(class.py())?, size: &|_, _| Ok(size) };
        let (data, utf8) = observer.addresses()?;
        let (chars, utf8_len) = observer.lengths(data, utf8)?;
        let words = size / WORD;
        let mut layout =
            Self { words, templates: [[0; MOST_WORDS]; 4], chars, data, utf8_len, utf8, more: vec![] };
        for kind in StrKind::ALL {
            let roles = observer.roles(kind, |sample| sample.words[data])?;
            let known: &[usize] =
                if kind == StrKind::Ascii { &[chars, data, utf8_len, utf8] } else { &[chars, data] };
            layout.more = others(kind, &roles, known)?;
            layout.templates[kind as usize] = template(&roles, &sample, class)?;
        }
        Ok(layout)
    }
}

impl Compact {
    /// The layout of exact `str` objects.
    pub(crate) fn observe(py: Python<'_>) -> Result<Self, Unknown> {
        check_allowed()?;
        let class = py.get_type::<PyString>();
        let observer = Observer { class: &class, state: state_place(py)?, size: &header };
        let mut layout = Self { headers: [0; 4], templates: [[0; MOST_WORDS]; 4], chars: 0, more: vec![] };
        for kind in StrKind::ALL {
            let roles = observer.roles(kind, |sample| sample.address() + sample.words.len() * WORD)?;
            layout.chars = first(&roles, Role::Chars)?;
            layout.more = others(kind, &roles, &[layout.chars])?;
            layout.headers[kind as usize] = roles.len() * WORD;
            layout.templates[kind as usize] = template(&roles, &class, &class)?;
        }
        Ok(layout)
    }
}

/// A plain subclass of `str`.
fn sample_class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let bases = tuple(py, [py.get_type::<PyString>().into_any()])?;
    let no_attributes = dict(py)?;
    no_attributes.set_item(name!("__slots__"), ())?;
    Ok(py.get_type::<PyType>().call1((name!("Sample"), bases, no_attributes))?.cast_into::<PyType>()?)
}

fn basic_size(class: &Bound<'_, PyType>) -> PyResult<usize> {
    class.getattr(name!("__basicsize__"))?.extract()
}

/// The size of the fixed part of an exact `str`, according to its own size.
fn header(object: &Bound<'_, PyAny>, kind: StrKind) -> PyResult<usize> {
    let size: usize = object.call_method0(name!("__sizeof__"))?.extract()?;
    Ok(size.saturating_sub((object.len()? + 1) * kind.width()))
}

/// The index of the word with the bit fields, which may end with bytes that are never set: it follows the
/// hash.
fn state_place(py: Python<'_>) -> Result<usize, Unknown> {
    let object = object::text(py, "a sample with a hash")?.into_any();
    // SAFETY: no `str` is shorter than its reference count, type, length and hash.
    let read = || unsafe { read_words(object.as_ptr(), TYPE_AT + 3) };
    let before = read();
    let hash = object.hash()?.cast_unsigned();
    let after = read();
    match (0..before.len()).find(|&at| (before[at], after[at]) == (Word::MAX, hash)) {
        Some(at) => Ok(at + 1),
        None => unknown("the hash is not found"),
    }
}

/// # Safety
///
/// `object` has this many words.
unsafe fn read_words(object: *mut ffi::PyObject, words: usize) -> Vec<Word> {
    // SAFETY: objects are aligned to words, and any bits are a word.
    (0..words).map(|at| unsafe { object.cast::<Word>().add(at).read_volatile() }).collect()
}

/// An object that CPython has built.
struct Sample<'py> {
    object: Bound<'py, PyAny>,
    text: String,
    kind: StrKind,
    words: Vec<Word>,
}

impl Sample<'_> {
    fn address(&self) -> usize {
        self.object.as_ptr().addr()
    }

    fn chars(&self) -> usize {
        self.text.chars().count()
    }

    /// Whether the characters at `data` are the expected ones, followed by a zero.
    fn has_characters_at(&self, data: *const u8) -> bool {
        let unit = |c: char| u32::from(c).to_ne_bytes();
        let width = self.kind.width();
        let little = if cfg!(target_endian = "little") { 0..width } else { 4 - width..4 };
        let expected: Vec<u8> =
            self.text.chars().chain(['\0']).flat_map(|c| unit(c)[little.clone()].to_vec()).collect();
        // SAFETY: the caller found this address where CPython keeps that of the characters.
        let found = unsafe { std::slice::from_raw_parts(data, expected.len()) };
        found == expected
    }
}

/// Makes samples and explains their words.
struct Observer<'a, 'py> {
    class: &'a Bound<'py, PyType>,
    state: usize,
    /// The size of the fixed part.
    size: &'a dyn Fn(&Bound<'py, PyAny>, StrKind) -> PyResult<usize>,
}

impl<'py> Observer<'_, 'py> {
    /// Two samples that differ in everything that depends on the contents.
    fn pair(&self, kind: StrKind, number: usize) -> Result<[Sample<'py>; 2], Unknown> {
        let text = |start| format!("{start}{}{}", "x".repeat(number), ['x', 'é', '—', '𐩡'][kind as usize]);
        Ok([self.sample(kind, text("one"))?, self.sample(kind, text("another"))?])
    }

    fn sample(&self, kind: StrKind, text: String) -> Result<Sample<'py>, Unknown> {
        let object = self.class.call1((Text(&text),))?;
        let size = (self.size)(&object, kind)?;
        if size % WORD != 0 || size > MOST_WORDS * WORD || size < (self.state + 1) * WORD {
            return unknown(format!("the fixed part has {size} bytes"));
        }
        let words = self.words(&object, size / WORD);
        Ok(Sample { object, text, kind, words })
    }

    fn words(&self, object: &Bound<'py, PyAny>, words: usize) -> Vec<Word> {
        // SAFETY: CPython itself reported the size to the caller.
        unsafe { read_words(object.as_ptr(), words) }
    }

    /// The bits that CPython sets in the word with the bit fields. It leaves the others uninitialized, so
    /// that they differ from sample to sample.
    fn set_bits(&self, kind: StrKind) -> Result<Word, Unknown> {
        let mut bits = Word::MAX;
        let mut samples = Vec::new();
        for number in 0..SAMPLES {
            let [a, b] = self.pair(kind, number)?;
            bits &= a.words[self.state] & b.words[self.state];
            samples.push([a, b]); // kept, so that the next ones have other addresses
        }
        Ok(bit_fields(bits))
    }

    fn roles(&self, kind: StrKind, data: impl Fn(&Sample<'_>) -> Word) -> Result<Vec<Role>, Unknown> {
        let [a, b] = self.pair(kind, 0)?;
        let state = self.set_bits(kind)?;
        let explain = |at: usize| match (a.words[at], b.words[at]) {
            _ if at == self.state => Ok(Role::Constant(state)),
            (x, y) if x == y => Ok(Role::Constant(x)),
            (x, y) if (x, y) == (a.chars(), b.chars()) => Ok(Role::Chars),
            (x, y) if (x, y) == (data(&a), data(&b)) => Ok(Role::Data),
            (x, y) => unknown(format!("word {at} is {x:#x} or {y:#x}")),
        };
        let roles = (0..a.words.len()).map(explain).collect::<Result<_, _>>()?;
        if [&a, &b]
            .iter()
            .all(|sample| sample.has_characters_at(std::ptr::with_exposed_provenance(data(sample))))
        {
            Ok(roles)
        } else {
            unknown("the characters are not where they should be")
        }
    }

    /// Where an object has the address of its characters, and that of its UTF-8. In ASCII they are the same;
    /// in other kinds there is no UTF-8 until it is requested.
    fn addresses(&self) -> Result<(usize, usize), Unknown> {
        let ascii = self.roles(StrKind::Ascii, |sample| utf8(sample).map_or(0, |(address, _)| address))?;
        let [wide, _] = self.pair(StrKind::Latin1, 0)?;
        match *places(&ascii, Role::Data) {
            [a, b] if wide.words[a] == 0 && wide.words[b] != 0 => Ok((b, a)),
            [a, b] if wide.words[a] != 0 && wide.words[b] == 0 => Ok((a, b)),
            _ => unknown("the address of the UTF-8 is not found"),
        }
    }

    /// Where an object has the number of its characters, and the length of its UTF-8.
    fn lengths(&self, data: usize, utf8_at: usize) -> Result<(usize, usize), Unknown> {
        let chars = first(&self.roles(StrKind::Latin1, |sample| sample.words[data])?, Role::Chars)?;
        let [wide, _] = self.pair(StrKind::Latin1, 0)?;
        let (address, length) = utf8(&wide)?;
        let now = self.words(&wide.object, wide.words.len());
        let changed: Vec<usize> = (0..now.len()).filter(|&at| now[at] != wide.words[at]).collect();
        match changed.iter().copied().find(|&at| at != utf8_at) {
            Some(at) if changed.len() == 2 && now[at] == length && now[utf8_at] == address => Ok((chars, at)),
            _ => unknown("the length of the UTF-8 is not found"),
        }
    }
}

/// The address and the length of the UTF-8 that CPython keeps for an object.
fn utf8(sample: &Sample<'_>) -> PyResult<(usize, usize)> {
    let text = sample.object.cast::<PyString>()?.to_str()?;
    Ok((text.as_ptr().addr(), text.len()))
}

/// The part of a word that its bit fields take: four bytes.
fn bit_fields(word: Word) -> Word {
    let mut bytes = word.to_ne_bytes();
    bytes[4..].fill(0);
    Word::from_ne_bytes(bytes)
}

fn places(roles: &[Role], role: Role) -> Vec<usize> {
    (0..roles.len()).filter(|&at| roles[at] == role).collect()
}

fn first(roles: &[Role], role: Role) -> Result<usize, Unknown> {
    places(roles, role).first().copied().ok_or_else(|| Unknown(format!("no word is {role:?}")))
}

/// Words other than the `known` ones that depend on the contents; only UCS-4 objects may have such words.
fn others(kind: StrKind, roles: &[Role], known: &[usize]) -> Result<Vec<(usize, Role)>, Unknown> {
    let constant = |at: usize| matches!(roles[at], Role::Constant(_));
    if known.iter().any(|&at| constant(at)) {
        return unknown(format!("a word of {kind:?} does not depend on the contents"));
    }
    let others: Vec<_> = (0..roles.len())
        .filter(|at| !constant(*at) && !known.contains(at))
        .map(|at| (at, roles[at]))
        .collect();
    if others.is_empty() || kind == StrKind::Ucs4 {
        Ok(others)
    } else {
        unknown(format!("{kind:?} has more words that depend on the contents"))
    }
}

/// The words of a new object of `class`, as CPython made one of `sample`.
fn template(
    roles: &[Role],
    sample: &Bound<'_, PyType>,
    class: &Bound<'_, PyType>,
) -> Result<[Word; MOST_WORDS], Unknown> {
    if roles[TYPE_AT] != Role::Constant(sample.as_ptr().addr()) {
        return unknown("the type is not found");
    }
    let mut words = [0; MOST_WORDS];
    for (word, role) in words.iter_mut().zip(roles) {
        if let Role::Constant(value) = role {
            *word = *value;
        }
    }
    words[TYPE_AT] = class.as_ptr().expose_provenance();
    #[cfg(Py_GIL_DISABLED)]
    untrack(&mut words);
    Ok(words)
}

/// Without the GIL an object itself records whether the collector tracks it, which it does for instances of
/// the sample class, as for those of any class made by `type`. Views cannot be traversed.
#[cfg(Py_GIL_DISABLED)]
fn untrack(words: &mut [Word; MOST_WORDS]) {
    const GC_BITS_AT: usize = offset_of!(ffi::PyObject, ob_gc_bits);
    let mut bytes = words[GC_BITS_AT / WORD].to_ne_bytes();
    bytes[GC_BITS_AT % WORD] = 0;
    words[GC_BITS_AT / WORD] = Word::from_ne_bytes(bytes);
}

/// The templates for objects that the calling thread makes.
#[cfg(not(Py_GIL_DISABLED))]
pub(crate) fn owned(_: Python<'_>, templates: &Templates) -> Templates {
    *templates
}

/// The templates for objects that the calling thread makes: without the GIL an object records its thread.
#[cfg(Py_GIL_DISABLED)]
pub(crate) fn owned(py: Python<'_>, templates: &Templates) -> Templates {
    const THREAD_AT: usize = offset_of!(ffi::PyObject, ob_tid) / WORD;
    let fresh = pyo3::types::PyList::empty(py);
    // SAFETY: a new object, whose thread is the one that made it; it does not change while the reference is
    // held.
    let thread = unsafe { (*fresh.as_ptr()).ob_tid };
    templates.map(|mut words| {
        words[THREAD_AT] = thread;
        words
    })
}
