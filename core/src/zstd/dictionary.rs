//! Dictionaries: data that compressor and decompressor both know beforehand.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use zstd::zstd_safe::zstd_sys as z;

use super::error::{Error, ErrorKind};

/// How a dictionary is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// Prepared once for each level, with that level's parameters.
    Digested,
    /// Read again for each frame, with the compressor's own parameters.
    Undigested,
    /// As if it preceded the first frame's content.
    Prefix,
}

/// A dictionary, and its prepared forms.
pub struct Dictionary {
    content: Arc<Vec<u8>>,
    id: u32,
    prepared: Mutex<Prepared>,
}

#[derive(Default)]
struct Prepared {
    for_levels: Vec<(i32, Arc<CompressionForm>)>,
    for_decompression: Option<Arc<DecompressionForm>>,
}

impl Dictionary {
    /// A dictionary of any content.
    pub fn new(content: Vec<u8>) -> Self {
        // SAFETY: the memory is valid for its length.
        let id = unsafe { z::ZSTD_getDictID_fromDict(content.as_ptr().cast(), content.len()) };
        Self { content: Arc::new(content), id, prepared: Mutex::default() }
    }

    /// Its number; 0 if the content does not have a dictionary's format.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its content.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    pub(super) fn shared_content(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.content)
    }

    /// The form for compression at `level`.
    pub(super) fn for_level(&self, level: i32) -> Result<Arc<CompressionForm>, Error> {
        let known = |prepared: &Prepared| {
            prepared.for_levels.iter().find(|(of, _)| *of == level).map(|(_, form)| Arc::clone(form))
        };
        self.prepared(
            known,
            |prepared, form| prepared.for_levels.push((level, form)),
            || CompressionForm::new(self.shared_content(), level),
        )
    }

    pub(super) fn for_decompression(&self) -> Result<Arc<DecompressionForm>, Error> {
        self.prepared(
            |prepared| prepared.for_decompression.clone(),
            |prepared, form| prepared.for_decompression = Some(form),
            || DecompressionForm::new(self.shared_content()),
        )
    }

    /// What `known` finds, or `make` makes. The mutex is not waited for, because it may have been held at a fork: what
    /// is made meanwhile is not kept.
    fn prepared<T>(
        &self,
        known: impl Fn(&Prepared) -> Option<Arc<T>>,
        keep: impl FnOnce(&mut Prepared, Arc<T>),
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        if let Some(form) = self.prepared.try_lock().ok().and_then(|prepared| known(&prepared)) {
            return Ok(form);
        }
        let form = Arc::new(make()?);
        if let Ok(mut prepared) = self.prepared.try_lock()
            && known(&prepared).is_none()
        {
            keep(&mut prepared, Arc::clone(&form));
        }
        Ok(form)
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dictionary").field("id", &self.id).field("length", &self.content.len()).finish()
    }
}

/// A dictionary that is prepared for compression at one level.
pub(super) struct CompressionForm {
    raw: NonNull<z::ZSTD_CDict>,
    /// What `raw` refers to.
    _content: Arc<Vec<u8>>,
}

impl CompressionForm {
    fn new(content: Arc<Vec<u8>>, level: i32) -> Result<Self, Error> {
        // SAFETY: the memory is valid for its length, and lives as long as what refers to it.
        let raw = unsafe { z::ZSTD_createCDict_byReference(content.as_ptr().cast(), content.len(), level) };
        let raw = NonNull::new(raw).ok_or(Error {
            kind: ErrorKind::CompressionDictionary,
            detail: "Dictionary is corrupted",
            offset: 0,
        })?;
        Ok(Self { raw, _content: content })
    }

    pub(super) fn raw(&self) -> *const z::ZSTD_CDict {
        self.raw.as_ptr()
    }
}

// SAFETY: the library only reads it once it is made.
unsafe impl Send for CompressionForm {}
// SAFETY: as above.
unsafe impl Sync for CompressionForm {}

impl Drop for CompressionForm {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once; those who refer to it hold an `Arc`.
        unsafe { z::ZSTD_freeCDict(self.raw.as_ptr()) };
    }
}

/// A dictionary that is prepared for decompression.
pub(super) struct DecompressionForm {
    raw: NonNull<z::ZSTD_DDict>,
    /// What `raw` refers to.
    _content: Arc<Vec<u8>>,
}

impl DecompressionForm {
    fn new(content: Arc<Vec<u8>>) -> Result<Self, Error> {
        // SAFETY: the memory is valid for its length, and lives as long as what refers to it.
        let raw = unsafe { z::ZSTD_createDDict_byReference(content.as_ptr().cast(), content.len()) };
        let raw = NonNull::new(raw).ok_or(Error {
            kind: ErrorKind::DecompressionDictionary,
            detail: "Dictionary is corrupted",
            offset: 0,
        })?;
        Ok(Self { raw, _content: content })
    }

    pub(super) fn raw(&self) -> *const z::ZSTD_DDict {
        self.raw.as_ptr()
    }
}

// SAFETY: the library only reads it once it is made.
unsafe impl Send for DecompressionForm {}
// SAFETY: as above.
unsafe impl Sync for DecompressionForm {}

impl Drop for DecompressionForm {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once; those who refer to it hold an `Arc`.
        unsafe { z::ZSTD_freeDDict(self.raw.as_ptr()) };
    }
}
