//! From which sizes on the lock is left.

use crate::region::Operation;

/// Sizes are bytes of text, numbers of tokens when decoding. From these on two threads get more done off the lock than on it
/// (1.5 and 1.1 times for texts of 4 KB, encoded and counted; 1.2 times for 64 thousand tokens, decoded), as
/// `bench/region/break_even.py` measured.
pub(super) static ENCODE: Operation = Operation { name: "tokens.encode", break_even: 4096 };
pub(super) static ENCODE_BATCH: Operation = Operation { name: "tokens.encode_batch", break_even: 4096 };
pub(super) static COUNT: Operation = Operation { name: "tokens.count", break_even: 4096 };
pub(super) static COUNT_BATCH: Operation = Operation { name: "tokens.count_batch", break_even: 4096 };
pub(super) static TRUNCATE: Operation = Operation { name: "tokens.truncate", break_even: 4096 };
pub(super) static DECODE: Operation = Operation { name: "tokens.decode", break_even: 64 << 10 };
pub(super) static LOAD: Operation = Operation { name: "tokens.load", break_even: 0 };
