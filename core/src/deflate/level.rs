//! Which level of an engine stands for which level of zlib.
//!
//! Chosen from a table of all of them over text, code, records, logs and programs in pieces of 1 KB to 5 MB: the
//! fastest whose output was not more than 2% larger than zlib's. `docs/zlib.md` has the figures.

/// How zlib-rs stands in for a level of zlib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Streaming {
    /// Its own level.
    pub(super) level: i32,
    /// Search limits other than those of its level: good, lazy, nice, chain.
    pub(super) tuned: Option<[i32; 4]>,
}

/// zlib-rs's settings for zlib's `level`; `None` when it is out of range.
///
/// Its level 1 makes output 20 to 40% larger, and its levels 5 and 6 miss matches of three bytes, which costs 3% on
/// tables of numbers: level 7 with zlib's own search limits does not.
pub(super) const fn streaming(level: i32) -> Option<Streaming> {
    let (level, tuned) = match level {
        1 => (2, None),
        5 => (7, Some([8, 16, 32, 32])),
        -1 | 6 => (7, Some([8, 16, 128, 128])),
        9 => (8, None),
        0..=8 => (level, None),
        _ => return None,
    };
    Some(Streaming { level, tuned })
}

/// How libdeflate stands in for a level of zlib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whole {
    /// Its own level.
    pub(super) level: i32,
    /// Up to which size a call takes at most about 20 ms.
    pub(super) most: usize,
    /// Whether larger inputs are worth cutting in pieces of that size.
    pub(super) pieces: bool,
}

/// libdeflate's settings for zlib's `level`; `None` when it is out of range.
pub(super) const fn whole(level: i32) -> Option<Whole> {
    Some(match level {
        0 => Whole { level: 0, most: 16 << 20, pieces: false },
        1 | 2 => Whole { level: 1, most: 2 << 20, pieces: false },
        3 => Whole { level: 3, most: 1 << 20, pieces: false },
        4 | 5 => Whole { level, most: 1 << 20, pieces: true },
        -1 | 6 => Whole { level: 6, most: 1 << 20, pieces: true },
        7 => Whole { level: 7, most: 512 << 10, pieces: true },
        8 | 9 => Whole { level, most: 256 << 10, pieces: false },
        _ => return None,
    })
}
