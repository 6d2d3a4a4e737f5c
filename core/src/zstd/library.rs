//! The results of the library's functions: sizes, or codes of errors.

#![allow(unsafe_code)]

use std::ffi::CStr;

use zstd::zstd_safe::zstd_sys as z;

use super::error::{Error, ErrorKind};

/// What the library says went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    words: &'static str,
    code: z::ZSTD_ErrorCode,
}

impl Failure {
    /// For `map_err`: the error of a `kind`, after `offset` bytes of input.
    pub(super) fn into_error(self, kind: ErrorKind, offset: u64) -> Error {
        if self.code == z::ZSTD_ErrorCode::ZSTD_error_memory_allocation {
            return Error::new(ErrorKind::OutOfMemory, offset);
        }
        Error { kind, detail: self.words, offset }
    }

    /// Whether the library does not say what went wrong.
    pub(super) fn is_generic(self) -> bool {
        self.code == z::ZSTD_ErrorCode::ZSTD_error_GENERIC
    }
}

/// The size that a function returned.
pub(super) fn size(result: usize) -> Result<usize, Failure> {
    // SAFETY: the functions take any number; the name is a constant of the library.
    unsafe {
        if z::ZSTD_isError(result) == 0 {
            return Ok(result);
        }
        let words = CStr::from_ptr(z::ZSTD_getErrorName(result));
        Err(Failure { words: words.to_str().unwrap_or_default(), code: z::ZSTD_getErrorCode(result) })
    }
}

/// The library's version, as in "1.5.7".
pub fn version() -> &'static str {
    zstd::zstd_safe::version_string()
}

/// The library's version as a number, of which the last two decimal digits are the release, the two before them the
/// minor version.
pub fn version_number() -> u32 {
    zstd::zstd_safe::version_number()
}
