//! The operations that can run without the lock, and the size of input from which on they release it by
//! default.
//!
//! From these sizes on, other threads gain more than releasing and re-acquiring the lock costs. The results
//! of `bench/region/break_even.py` are:
//!
//! - tokens: two threads get 1.5 times as much done with texts of 4 KB encoded, 1.1 times with such texts
//!   counted, and 1.2 times with 64 thousand tokens decoded;
//! - deflate: any input takes some 10 microseconds, and one more per 100 bytes;
//! - inflate: some 10 microseconds for 2 KB of compressed input;
//! - Zstandard: compression some 20 microseconds for 4 KB; decompression as much for 8 KB of input, and two threads get 1.5
//!   to 1.7 times as much done with 2 KB of input and 2.5 times as much output;
//! - checksums: several thousand bytes per microsecond.
//!
//! The sizes of the others follow from their speed. Copies release the lock from
//! [`LARGE`](crate::large::LARGE) bytes on.

use offlock_core::Operation;

use crate::large::LARGE;

/// The size is in bytes of text.
pub(crate) static TOKENS_ENCODE: Operation = Operation { name: "tokens.encode", break_even: 4 << 10 };
pub(crate) static TOKENS_STREAM: Operation = Operation { name: "tokens.stream", break_even: 4 << 10 };
pub(crate) static TOKENS_ENCODE_BATCH: Operation =
    Operation { name: "tokens.encode_batch", break_even: 4 << 10 };
pub(crate) static TOKENS_COUNT: Operation = Operation { name: "tokens.count", break_even: 4 << 10 };
pub(crate) static TOKENS_COUNT_BATCH: Operation =
    Operation { name: "tokens.count_batch", break_even: 4 << 10 };
pub(crate) static TOKENS_TRUNCATE: Operation = Operation { name: "tokens.truncate", break_even: 4 << 10 };
pub(crate) static TOKENS_CHUNKS: Operation = Operation { name: "tokens.chunks", break_even: 4 << 10 };
/// The size is the number of tokens.
pub(crate) static TOKENS_DECODE: Operation = Operation { name: "tokens.decode", break_even: 64 << 10 };
/// Unpacking a public vocabulary takes tens of milliseconds.
pub(crate) static TOKENS_LOAD: Operation = Operation { name: "tokens.load", break_even: 0 };
pub(crate) static TOKENS_TO_UTF8: Operation = Operation { name: "tokens.to_utf8", break_even: LARGE };

/// These read files, whatever their size.
pub(crate) static PIPELINE_FIND: Operation = Operation { name: "pipeline.find", break_even: 0 };
pub(crate) static PIPELINE_COUNT: Operation = Operation { name: "pipeline.count", break_even: 0 };
pub(crate) static PIPELINE_WRITE: Operation = Operation { name: "pipeline.write", break_even: 0 };
pub(crate) static PIPELINE_PREPARE: Operation = Operation { name: "pipeline.prepare", break_even: 0 };
/// The size is in shards: a million take a second.
pub(crate) static PIPELINE_PACK: Operation = Operation { name: "pipeline.pack", break_even: 100 };
/// These wait for other threads.
pub(crate) static PIPELINE_NEXT: Operation = Operation { name: "pipeline.next", break_even: 0 };
pub(crate) static PIPELINE_CLOSE: Operation = Operation { name: "pipeline.close", break_even: 0 };

pub(crate) static ZLIB_DEFLATE: Operation = Operation { name: "zlib.deflate", break_even: 512 };
/// The size is in bytes of compressed input.
pub(crate) static ZLIB_INFLATE: Operation = Operation { name: "zlib.inflate", break_even: 2 << 10 };
pub(crate) static ZLIB_CHECKSUM: Operation = Operation { name: "zlib.checksum", break_even: 256 << 10 };

/// The sizes are weights: bytes at a low level that take as long.
pub(crate) static ZSTD_COMPRESS: Operation = Operation { name: "zstd.compress", break_even: 4 << 10 };
pub(crate) static ZSTD_DECOMPRESS: Operation = Operation { name: "zstd.decompress", break_even: 4 << 10 };
pub(crate) static ZSTD_TRAIN: Operation = Operation { name: "zstd.train", break_even: 0 };
pub(crate) static ZSTD_FRAMES: Operation = Operation { name: "zstd.frames", break_even: 256 << 10 };

/// Shorter messages are built in one pass with the lock held. Longer ones are first indexed without it, which
/// takes about a tenth of the time, if another thread exists.
pub(crate) static MSGPACK_DECODE: Operation = Operation { name: "msgpack.decode", break_even: 256 << 10 };
pub(crate) static MSGPACK_EXTRACT: Operation = Operation { name: "msgpack.extract", break_even: 32 << 10 };
/// The size is that of the container's index, in which a value takes about 16 bytes.
pub(crate) static MSGPACK_FIND: Operation = Operation { name: "msgpack.find", break_even: 64 << 10 };
pub(crate) static MSGPACK_FEED: Operation = Operation { name: "msgpack.feed", break_even: 1 << 20 };
pub(crate) static MSGPACK_SKIP: Operation = Operation { name: "msgpack.skip", break_even: 64 << 10 };
pub(crate) static MSGPACK_COPY: Operation = Operation { name: "msgpack.copy", break_even: 1 << 20 };

pub(crate) static JSONL_EXTRACT: Operation = Operation { name: "jsonl.extract", break_even: 16 << 10 };

pub(crate) static STRINGS_LINES: Operation = Operation { name: "strings.lines", break_even: 16 << 10 };
pub(crate) static STRINGS_SPLIT: Operation = Operation { name: "strings.split", break_even: 16 << 10 };
pub(crate) static STRINGS_COLUMNS: Operation = Operation { name: "strings.columns", break_even: 16 << 10 };
pub(crate) static STRINGS_FROM_OFFSETS: Operation =
    Operation { name: "strings.from_offsets", break_even: 16 << 10 };
pub(crate) static STRINGS_FROM_ARROW: Operation =
    Operation { name: "strings.from_arrow", break_even: 16 << 10 };
pub(crate) static STRINGS_DECODE_MANY: Operation =
    Operation { name: "strings.decode_many", break_even: 16 << 10 };
pub(crate) static STRINGS_BUILD: Operation = Operation { name: "strings.build", break_even: 16 << 10 };
pub(crate) static STRINGS_LOOK: Operation = Operation { name: "strings.look", break_even: 16 << 10 };
pub(crate) static STRINGS_LONG: Operation = Operation { name: "strings.long", break_even: LARGE };

pub(crate) static BYTES_COPY: Operation = Operation { name: "bytes.copy", break_even: LARGE };
