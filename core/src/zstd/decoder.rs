//! The library's decompression context, behind safe methods.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use zstd::zstd_safe::zstd_sys as z;

use super::dictionary::{DecompressionForm, Dictionary, Loading};
use super::error::{Error, ErrorKind};
use super::library::{Failure, size};

/// A context that takes more memory than this is not kept for the thread's next stream.
const KEPT: usize = 4 << 20;

thread_local! {
    static SPARE: Cell<Option<Decoder>> = const { Cell::new(None) };
}

/// What a decompressor is made with.
#[derive(Debug, Clone, Default)]
pub struct DecoderSettings {
    /// The largest window that is accepted, as a power of two; the library's own limit, 27 (128 MB), if it is `None`. A
    /// decompressor needs as much memory as the window.
    pub window_log_max: Option<i32>,
    /// The dictionary.
    pub dictionary: Option<(Arc<Dictionary>, Loading)>,
}

/// What one step has done.
pub(super) struct Step {
    pub(super) read: usize,
    pub(super) written: usize,
    /// Whether the frame is complete.
    pub(super) ended: bool,
}

/// A context, and what it refers to.
pub(super) struct Decoder {
    raw: NonNull<z::ZSTD_DCtx>,
    _dictionary: Option<Held>,
}

/// A dictionary that a context refers to.
enum Held {
    Content { _content: Arc<Vec<u8>> },
    Form { _form: Arc<DecompressionForm> },
}

// SAFETY: the library's contexts may move between threads; the dictionaries are immutable.
unsafe impl Send for Decoder {}

impl Decoder {
    /// A new context.
    pub(super) fn new(settings: &DecoderSettings) -> Result<Self, Error> {
        let mut decoder = match SPARE.try_with(Cell::take).ok().flatten() {
            Some(kept) => kept,
            None => Self::made()?,
        };
        if let Some(log) = settings.window_log_max {
            let window = z::ZSTD_dParameter::ZSTD_d_windowLogMax;
            // SAFETY: the context is valid.
            let result = unsafe { z::ZSTD_DCtx_setParameter(decoder.raw.as_ptr(), window, log) };
            size(result).map_err(|failure| failure.into_error(ErrorKind::Decompress, 0))?;
        }
        if let Some((dictionary, loading)) = &settings.dictionary {
            decoder.load(dictionary, *loading)?;
        }
        Ok(decoder)
    }

    fn made() -> Result<Self, Error> {
        // SAFETY: makes an independent context.
        let raw =
            NonNull::new(unsafe { z::ZSTD_createDCtx() }).ok_or(Error::new(ErrorKind::OutOfMemory, 0))?;
        Ok(Self { raw, _dictionary: None })
    }

    fn load(&mut self, dictionary: &Dictionary, loading: Loading) -> Result<(), Error> {
        let content = dictionary.shared_content();
        let (from, length, context) = (content.as_ptr().cast(), content.len(), self.raw.as_ptr());
        let (result, held) = match loading {
            Loading::Digested => {
                let form = dictionary.for_decompression()?;
                // SAFETY: the context is valid, and keeps the form.
                (unsafe { z::ZSTD_DCtx_refDDict(context, form.raw()) }, Held::Form { _form: form })
            }
            Loading::Undigested => {
                // SAFETY: the context is valid, and keeps the content.
                let result = unsafe { z::ZSTD_DCtx_loadDictionary_byReference(context, from, length) };
                (result, Held::Content { _content: content })
            }
            Loading::Prefix => {
                // SAFETY: the context is valid, and keeps the content.
                let result = unsafe { z::ZSTD_DCtx_refPrefix(context, from, length) };
                (result, Held::Content { _content: content })
            }
        };
        size(result).map_err(|failure| failure.into_error(ErrorKind::DecompressionDictionary, 0))?;
        self._dictionary = Some(held);
        Ok(())
    }

    /// Forgets the frame that was begun.
    pub(super) fn reset(&mut self) {
        // SAFETY: the context is valid.
        unsafe { z::ZSTD_DCtx_reset(self.raw.as_ptr(), z::ZSTD_ResetDirective::ZSTD_reset_session_only) };
    }

    /// Decompresses `input` to `out`, at most to the end of the frame.
    pub(super) fn step(&mut self, input: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<Step, Failure> {
        let mut from = z::ZSTD_inBuffer { src: input.as_ptr().cast(), size: input.len(), pos: 0 };
        let mut to = z::ZSTD_outBuffer { dst: out.as_mut_ptr().cast(), size: out.len(), pos: 0 };
        // SAFETY: the context is valid, and so is the memory for its length; the library writes its own only.
        let hint = size(unsafe { z::ZSTD_decompressStream(self.raw.as_ptr(), &mut to, &mut from) })?;
        Ok(Step { read: from.pos, written: to.pos, ended: hint == 0 })
    }

    /// How much memory it takes.
    pub(super) fn memory(&self) -> usize {
        // SAFETY: the context is valid.
        unsafe { z::ZSTD_sizeof_DCtx(self.raw.as_ptr()) }
    }

    /// Keeps the context for the thread's next stream.
    pub(super) fn keep(mut self) {
        if self.memory() > KEPT {
            return;
        }
        let all = z::ZSTD_ResetDirective::ZSTD_reset_session_and_parameters;
        // SAFETY: the context is valid. This makes it forget its dictionary.
        unsafe { z::ZSTD_DCtx_reset(self.raw.as_ptr(), all) };
        self._dictionary = None;
        // This fails while the thread ends.
        let _ = SPARE.try_with(|spare| spare.set(Some(self)));
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once; its dictionary is dropped after it.
        unsafe { z::ZSTD_freeDCtx(self.raw.as_ptr()) };
    }
}
