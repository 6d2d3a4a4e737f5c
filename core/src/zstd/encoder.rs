//! The library's compression context, behind safe methods.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use z::ZSTD_EndDirective as Directive;
use zstd::zstd_safe::zstd_sys as z;

use super::dictionary::{CompressionForm, Dictionary, Loading};
use super::error::{Error, ErrorKind};
use super::library::{Failure, size};
use super::parameters::{DEFAULT_LEVEL, Parameter};

/// A context that takes more memory than this is not kept for the thread's next stream.
const KEPT: usize = 4 << 20;

thread_local! {
    static SPARE: Cell<Option<Encoder>> = const { Cell::new(None) };
}

/// How much of its input a compressor has to write out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Mode {
    /// Nothing in particular.
    Continue = 0,
    /// All of it.
    FlushBlock = 1,
    /// All of it, and the end of the frame.
    FlushFrame = 2,
}

impl Mode {
    /// The mode with the library's number `code`.
    pub const fn of(code: i32) -> Option<Self> {
        Some(match code {
            0 => Self::Continue,
            1 => Self::FlushBlock,
            2 => Self::FlushFrame,
            _ => return None,
        })
    }

    const fn raw(self) -> Directive {
        match self {
            Self::Continue => Directive::ZSTD_e_continue,
            Self::FlushBlock => Directive::ZSTD_e_flush,
            Self::FlushFrame => Directive::ZSTD_e_end,
        }
    }
}

/// What a compressor is made with.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The parameters; values out of bounds are errors.
    pub parameters: Vec<(Parameter, i32)>,
    /// The dictionary.
    pub dictionary: Option<(Arc<Dictionary>, Loading)>,
}

impl Settings {
    /// The settings of a level.
    pub fn of_level(level: i32) -> Self {
        Self { parameters: vec![(Parameter::LEVEL, level)], dictionary: None }
    }

    /// The value of a parameter that is set.
    pub fn value(&self, wanted: Parameter) -> Option<i32> {
        self.parameters.iter().rev().find(|(parameter, _)| *parameter == wanted).map(|&(_, value)| value)
    }

    /// The level.
    pub fn level(&self) -> i32 {
        self.value(Parameter::LEVEL).unwrap_or(DEFAULT_LEVEL)
    }
}

/// What one step has done.
pub(super) struct Step {
    pub(super) read: usize,
    pub(super) written: usize,
    /// How much output the library has left, at least.
    pub(super) left: usize,
}

/// A context, and what it refers to.
pub(super) struct Encoder {
    raw: NonNull<z::ZSTD_CCtx>,
    /// The process in which it has started threads of its own.
    workers: Option<u32>,
    _dictionary: Option<Held>,
}

/// A dictionary that a context refers to.
enum Held {
    Content { _content: Arc<Vec<u8>> },
    Form { _form: Arc<CompressionForm> },
}

// SAFETY: the library's contexts may move between threads; the dictionaries are immutable.
unsafe impl Send for Encoder {}

impl Encoder {
    /// A new context.
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let mut encoder = match SPARE.try_with(Cell::take).ok().flatten() {
            Some(kept) => kept,
            None => Self::made()?,
        };
        for &(parameter, value) in &settings.parameters {
            encoder.set(parameter.raw(), value).map_err(compress_error)?;
        }
        if settings.value(Parameter::WORKERS).is_some_and(|workers| workers > 0) {
            encoder.workers = Some(std::process::id());
        }
        if let Some((dictionary, loading)) = &settings.dictionary {
            encoder.load(dictionary, *loading, settings.level())?;
        }
        Ok(encoder)
    }

    fn made() -> Result<Self, Error> {
        // SAFETY: makes an independent context.
        let raw =
            NonNull::new(unsafe { z::ZSTD_createCCtx() }).ok_or(Error::new(ErrorKind::OutOfMemory, 0))?;
        Ok(Self { raw, workers: None, _dictionary: None })
    }

    fn set(&mut self, parameter: z::ZSTD_cParameter, value: i32) -> Result<(), Failure> {
        // SAFETY: the context is valid.
        size(unsafe { z::ZSTD_CCtx_setParameter(self.raw.as_ptr(), parameter, value) }).map(|_| ())
    }

    fn load(&mut self, dictionary: &Dictionary, loading: Loading, level: i32) -> Result<(), Error> {
        let content = dictionary.shared_content();
        let (from, length, context) = (content.as_ptr().cast(), content.len(), self.raw.as_ptr());
        // SAFETY (of each arm): the context is valid, and keeps what it refers to: it is dropped first.
        let (result, held) = match loading {
            Loading::Digested => {
                let form = dictionary.for_level(level)?;
                // SAFETY: as above.
                (unsafe { z::ZSTD_CCtx_refCDict(context, form.raw()) }, Held::Form { _form: form })
            }
            Loading::Undigested => {
                // SAFETY: as above.
                let result = unsafe { z::ZSTD_CCtx_loadDictionary_byReference(context, from, length) };
                (result, Held::Content { _content: content })
            }
            Loading::Prefix => {
                // SAFETY: as above.
                let result = unsafe { z::ZSTD_CCtx_refPrefix(context, from, length) };
                (result, Held::Content { _content: content })
            }
        };
        size(result).map_err(|failure| failure.into_error(ErrorKind::CompressionDictionary, 0))?;
        self._dictionary = Some(held);
        Ok(())
    }

    /// Declares the size of the next frame's content; `None` if it is not known.
    pub(super) fn pledge(&mut self, length: Option<u64>) -> Result<(), Error> {
        // The library's number for an unknown size.
        let length = length.unwrap_or(u64::MAX);
        // SAFETY: the context is valid.
        let result = unsafe { z::ZSTD_CCtx_setPledgedSrcSize(self.raw.as_ptr(), length) };
        size(result).map(|_| ()).map_err(|failure| failure.into_error(ErrorKind::Pledge, 0))
    }

    /// Lets the library read input in place, which the caller must then not move during a frame.
    pub(super) fn keep_input_in_place(&mut self) -> Result<(), Error> {
        // `ZSTD_c_stableInBuffer`
        self.set(z::ZSTD_cParameter::ZSTD_c_experimentalParam9, 1).map_err(compress_error)
    }

    /// Forgets the frame that was begun, and keeps the parameters.
    pub(super) fn reset(&mut self) {
        // SAFETY: the context is valid.
        unsafe { z::ZSTD_CCtx_reset(self.raw.as_ptr(), z::ZSTD_ResetDirective::ZSTD_reset_session_only) };
    }

    /// Compresses `input` from `at` on to `out`.
    pub(super) fn step(
        &mut self,
        input: &[u8],
        at: usize,
        mode: Mode,
        out: &mut [MaybeUninit<u8>],
    ) -> Result<Step, Failure> {
        let mut from = z::ZSTD_inBuffer { src: input.as_ptr().cast(), size: input.len(), pos: at };
        let mut to = z::ZSTD_outBuffer { dst: out.as_mut_ptr().cast(), size: out.len(), pos: 0 };
        // SAFETY: the context is valid, and so is the memory for its length; the library writes its own only.
        let left = unsafe { z::ZSTD_compressStream2(self.raw.as_ptr(), &mut to, &mut from, mode.raw()) };
        Ok(Step { left: size(left)?, read: from.pos - at, written: to.pos })
    }

    /// Whether its own threads exist in the parent of this process only.
    pub(super) fn is_forked(&self) -> bool {
        self.workers.is_some_and(|process| process != std::process::id())
    }

    /// How much memory it takes.
    pub(super) fn memory(&self) -> usize {
        // SAFETY: the context is valid.
        unsafe { z::ZSTD_sizeof_CCtx(self.raw.as_ptr()) }
    }

    /// Keeps the context for the thread's next stream.
    pub(super) fn keep(mut self) {
        if self.workers.is_some() || self.memory() > KEPT {
            return;
        }
        let all = z::ZSTD_ResetDirective::ZSTD_reset_session_and_parameters;
        // SAFETY: the context is valid. This makes it forget its dictionary.
        unsafe { z::ZSTD_CCtx_reset(self.raw.as_ptr(), all) };
        self._dictionary = None;
        // This fails while the thread ends.
        let _ = SPARE.try_with(|spare| spare.set(Some(self)));
    }
}

pub(super) fn compress_error(failure: Failure) -> Error {
    failure.into_error(ErrorKind::Compress, 0)
}

impl Drop for Encoder {
    fn drop(&mut self) {
        if self.is_forked() {
            // The library would wait for threads that do not exist.
            return;
        }
        // SAFETY: made by the library, freed once; its dictionary is dropped after it.
        unsafe { z::ZSTD_freeCCtx(self.raw.as_ptr()) };
    }
}
