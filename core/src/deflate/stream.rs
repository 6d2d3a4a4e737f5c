//! The parameters of streams, and the results of calls on them, in zlib's terms.

/// The parameters of a compressor, in zlib's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// -1 (which means 6) to 9.
    pub level: i32,
    /// 9 to 15 for zlib's format, negative for raw data, plus 16 for gzip.
    pub wbits: i32,
    /// 1 to 9.
    pub mem_level: i32,
    /// 0 to 4.
    pub strategy: i32,
}

impl Default for Config {
    fn default() -> Self {
        Self { level: -1, wbits: 15, mem_level: 8, strategy: 0 }
    }
}

/// How much of its input a compressor has to write out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Flush {
    /// Nothing in particular.
    None = 0,
    /// All of it, not aligned to a byte.
    Partial = 1,
    /// All of it, aligned to a byte.
    Sync = 2,
    /// All of it, and what follows can be read without it.
    Full = 3,
    /// All of it, and the end of the stream.
    Finish = 4,
    /// The current block, up to seven bits short.
    Block = 5,
}

impl Flush {
    /// The mode with zlib's number `code`.
    pub const fn of(code: i32) -> Option<Self> {
        Some(match code {
            0 => Self::None,
            1 => Self::Partial,
            2 => Self::Sync,
            3 => Self::Full,
            4 => Self::Finish,
            5 => Self::Block,
            _ => return None,
        })
    }
}

/// Why a call on a stream returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The input is used up, and all output that is due was written.
    More,
    /// The output reached its limit; there may be more to come.
    Full,
    /// The stream is complete.
    End,
    /// A preset dictionary is needed to go on.
    NeedDict,
}
