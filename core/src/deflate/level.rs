//! Which levels and search limits of the engines stand for a level of zlib.
//!
//! Chosen from measurements of all combinations on sixty kinds of data (prose in many scripts, code, logs,
//! records, lists, random words, encoded bytes, programs) in pieces of 1 KB to 1 MB: the fastest whose output
//! was at most 2% larger than zlib's on any kind of text. `docs/zlib.md` has the figures.

/// Settings of zlib-rs that stand for a level of zlib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Streaming {
    /// Its own level.
    pub(super) level: i32,
    /// Search limits that differ from those of the level: good, lazy, nice, chain.
    pub(super) tuned: Option<[i32; 4]>,
}

/// The level at which zlib-rs writes the header that zlib writes at `level`; `None` if it is out of range.
///
/// Not 9: at that level, the engine would index a preset dictionary for a different search than the one that
/// follows.
pub(super) const fn in_header(level: i32) -> Option<i32> {
    match level {
        9 => Some(8),
        -1..=8 => Some(level),
        _ => None,
    }
}

/// zlib-rs's settings for zlib's `level`; `None` if it is out of range. `short`: for data whose repeats are
/// three bytes long.
///
/// Level 1 of zlib-rs makes the output 20 to 40% larger, and its levels 4 to 6 miss long repeats in some
/// texts (output up to three times as large); levels 2, 3 and 7 do not. Its search hashes four bytes where
/// zlib's hashes three, so fewer candidates are false: its chains can be shorter than those of zlib's levels.
pub(super) const fn streaming(level: i32, short: bool) -> Option<Streaming> {
    if short && level != 0 {
        return for_short_matches(level);
    }
    let (level, tuned) = match level {
        1 => (2, None),
        2 => (2, Some([4, 5, 16, 6])),
        3 => (3, None),
        4 => (7, Some([4, 4, 16, 16])),
        5 => (7, Some([4, 16, 32, 24])),
        -1 | 6 => (7, Some([4, 16, 128, 80])),
        7 => (7, Some([4, 32, 128, 160])),
        8 | 9 => (8, Some([8, 128, 258, 640])),
        0 => (0, None),
        _ => return None,
    };
    Some(Streaming { level, tuned })
}

/// Level 9 of zlib-rs hashes three bytes. With zlib's search limits, it finds what zlib finds.
const fn for_short_matches(level: i32) -> Option<Streaming> {
    let tuned = match level {
        1 => Some([4, 4, 8, 4]),
        2 => Some([4, 5, 16, 8]),
        3 => Some([4, 6, 32, 32]),
        4 => Some([4, 4, 16, 16]),
        5 => Some([8, 16, 32, 32]),
        -1 | 6 => Some([8, 16, 128, 128]),
        7 => Some([8, 32, 128, 256]),
        8 => Some([32, 128, 258, 1024]),
        9 => None,
        _ => return None,
    };
    Some(Streaming { level: 9, tuned })
}

/// Settings of libdeflate that stand for a level of zlib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whole {
    /// Its own level.
    pub(super) level: i32,
    /// The level for inputs of less than 16 KB, where it finds about as much.
    pub(super) small: i32,
    /// The level for arrays of numbers, whose short repeats the usual level's search misses.
    pub(super) arrays: i32,
    /// Whether repetitive data goes to a stream, for the size of the output or for the time.
    pub(super) streams_repeats: bool,
    /// The input size up to which a call takes at most about 20 ms.
    pub(super) most: usize,
    /// Whether larger inputs are cut into pieces of that size.
    pub(super) pieces: bool,
}

/// libdeflate's settings for zlib's `level`; `None` if it is out of range.
pub(super) const fn whole(level: i32) -> Option<Whole> {
    let (level, small, arrays, streams_repeats, most, pieces) = match level {
        0 => (0, 0, 0, false, 16 << 20, false),
        1 => (1, 1, 5, false, 2 << 20, false),
        2 => (3, 3, 5, false, 1 << 20, false),
        3 => (3, 3, 3, false, 1 << 20, false),
        4 => (5, 5, 5, false, 1 << 20, true),
        5 => (6, 5, 6, false, 1 << 20, true),
        -1 | 6 => (6, 5, 6, true, 1 << 20, true),
        7 => (7, 6, 7, true, 512 << 10, true),
        8 | 9 => (level, level, level, false, 256 << 10, false),
        _ => return None,
    };
    Some(Whole { level, small, arrays, streams_repeats, most, pieces })
}
