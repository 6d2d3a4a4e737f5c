//! The operations that can run without the lock, and the input size from which on they release it, unless the
//! caller chooses otherwise.
//!
//! | operation | size is | releases the lock from |
//! |---|---|---|
//! | `tokens.encode`, `tokens.count`, `tokens.truncate`, `tokens.chunks` | bytes of text | 4 KiB |
//! | `tokens.encode_batch`, `tokens.count_batch` | bytes of all texts | 4 KiB |
//! | `tokens.decode` | bytes of packed tokens (4 each) | 64 KiB |
//! | `pipeline.find`, `pipeline.count`, `pipeline.write`, `pipeline.next`, `pipeline.close` | any | always |
//! | `zlib.deflate` | bytes of input | 2 KiB |
//! | `zlib.inflate` | bytes of compressed input | 8 KiB |
//! | `zlib.checksum` | bytes of input | 256 KiB |
//! | `zstd.compress` | bytes of input | 2 KiB |
//! | `zstd.decompress` | bytes of input, and a quarter of those of output | 4 KiB |
//! | `zstd.frames` | bytes of frames | 256 KiB |
//! | `zstd.train` | bytes of samples | always |
//! | `strings.lines`, `strings.split`, `strings.from_offsets` | bytes of text | 16 KiB |
//! | `msgpack.decode` | bytes of the message, which is otherwise built in one pass | 256 KiB |
//! | `msgpack.extract` | bytes of the message | 32 KiB |
//! | `jsonl.extract` | bytes of the lines | 16 KiB |
//!
//! From these sizes on, other threads gain more than releasing and re-acquiring the lock costs. Throughput of
//! two threads relative to one, from `bench/region/break_even.rb`:
//!
//! - tokens: 0.75 times with texts of 1 KiB, 1.2 times with 2 KiB, 1.55 with 4, 1.9 from 8 KiB on;
//! - deflate: 1.2 times from 1 to 2 KiB on, 1.5 times with 4;
//! - inflate: 0.8 times with 1.7 KiB of input, 1.3 to 1.4 times from 3.2 KiB on; but below 8 KiB four threads
//!   are sometimes slower than one;
//! - Zstandard: compression 1.3 times with 512 bytes, 1.8 times with 2 KiB; decompression 0.7 times with 1 KiB of input and 2.5
//!   of output, 1.7 times with twice as much (four threads: 1.1 times), 2.0 times with 3.4 KiB of input;
//! - checksums: 0.8 times with 128 KiB, 1.2 with 256.
//!
//! The sizes of the other operations follow from their speed: they take 10 to 50 microseconds for that much
//! input, about as long as tokenizing 4 KiB of text.

use offlock_core::Operation;

/// A vocabulary takes tenths of a second.
pub(crate) static TOKENS_LOAD: Operation = Operation { name: "tokens.load", break_even: 0 };
pub(crate) static TOKENS_ENCODE: Operation = Operation { name: "tokens.encode", break_even: 4 << 10 };
pub(crate) static TOKENS_COUNT: Operation = Operation { name: "tokens.count", break_even: 4 << 10 };
pub(crate) static TOKENS_TRUNCATE: Operation = Operation { name: "tokens.truncate", break_even: 4 << 10 };
pub(crate) static TOKENS_CHUNKS: Operation = Operation { name: "tokens.chunks", break_even: 4 << 10 };
pub(crate) static TOKENS_STREAM: Operation = Operation { name: "tokens.stream", break_even: 4 << 10 };
pub(crate) static TOKENS_ENCODE_BATCH: Operation =
    Operation { name: "tokens.encode_batch", break_even: 4 << 10 };
pub(crate) static TOKENS_COUNT_BATCH: Operation =
    Operation { name: "tokens.count_batch", break_even: 4 << 10 };
pub(crate) static TOKENS_DECODE: Operation = Operation { name: "tokens.decode", break_even: 64 << 10 };
/// These read files, whatever their size.
pub(crate) static PIPELINE_FIND: Operation = Operation { name: "pipeline.find", break_even: 0 };
pub(crate) static PIPELINE_COUNT: Operation = Operation { name: "pipeline.count", break_even: 0 };
pub(crate) static PIPELINE_WRITE: Operation = Operation { name: "pipeline.write", break_even: 0 };
/// These wait for other threads.
pub(crate) static PIPELINE_NEXT: Operation = Operation { name: "pipeline.next", break_even: 0 };
pub(crate) static PIPELINE_CLOSE: Operation = Operation { name: "pipeline.close", break_even: 0 };
pub(crate) static ZLIB_DEFLATE: Operation = Operation { name: "zlib.deflate", break_even: 2 << 10 };
pub(crate) static ZLIB_INFLATE: Operation = Operation { name: "zlib.inflate", break_even: 8 << 10 };
pub(crate) static ZLIB_CHECKSUM: Operation = Operation { name: "zlib.checksum", break_even: 256 << 10 };
pub(crate) static ZSTD_COMPRESS: Operation = Operation { name: "zstd.compress", break_even: 2 << 10 };
pub(crate) static ZSTD_DECOMPRESS: Operation = Operation { name: "zstd.decompress", break_even: 4 << 10 };
pub(crate) static ZSTD_FRAMES: Operation = Operation { name: "zstd.frames", break_even: 256 << 10 };
pub(crate) static ZSTD_TRAIN: Operation = Operation { name: "zstd.train", break_even: 0 };
pub(crate) static STRINGS_LINES: Operation = Operation { name: "strings.lines", break_even: 16 << 10 };
pub(crate) static STRINGS_SPLIT: Operation = Operation { name: "strings.split", break_even: 16 << 10 };
pub(crate) static STRINGS_FROM_OFFSETS: Operation =
    Operation { name: "strings.from_offsets", break_even: 16 << 10 };
pub(crate) static MSGPACK_DECODE: Operation = Operation { name: "msgpack.decode", break_even: 256 << 10 };
pub(crate) static MSGPACK_EXTRACT: Operation = Operation { name: "msgpack.extract", break_even: 32 << 10 };
pub(crate) static JSONL_EXTRACT: Operation = Operation { name: "jsonl.extract", break_even: 16 << 10 };
