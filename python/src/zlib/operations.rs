//! From which sizes on the lock is left.

use crate::region::Operation;

/// Compressing takes some 10 microseconds for anything, and one more for about 100 bytes.
pub(crate) static DEFLATE: Operation = Operation { name: "zlib.deflate", break_even: 512 };
/// Decompressing takes some 10 microseconds for as many bytes of input (`bench/region/break_even.py`).
pub(crate) static INFLATE: Operation = Operation { name: "zlib.inflate", break_even: 2 << 10 };
/// Checksums work through several thousand bytes in a microsecond.
pub(crate) static CHECKSUM: Operation = Operation { name: "zlib.checksum", break_even: 256 << 10 };
