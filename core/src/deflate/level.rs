//! Which level of an engine stands for which level of zlib.
//!
//! Chosen from a table of all of them over sixty kinds of data (prose in many scripts, code, logs, records, lists, random
//! words, encoded bytes, programs) in pieces of 1 KB to 1 MB: the fastest whose output was not more than 2% larger than
//! zlib's on any kind of text. `docs/zlib.md` has the figures.

/// How zlib-rs stands in for a level of zlib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Streaming {
    /// Its own level.
    pub(super) level: i32,
    /// Search limits other than those of its level: good, lazy, nice, chain.
    pub(super) tuned: Option<[i32; 4]>,
}

/// The level at which zlib-rs makes the header that zlib makes at `level`; `None` when it is out of range.
///
/// Not 9, which would take in a preset dictionary for another search than the one that follows.
pub(super) const fn in_header(level: i32) -> Option<i32> {
    match level {
        9 => Some(8),
        -1..=8 => Some(level),
        _ => None,
    }
}

/// zlib-rs's settings for zlib's `level`; `None` when it is out of range. `short`: for data whose repeats are three bytes
/// long.
///
/// Its level 1 makes output 20 to 40% larger, its levels 4 to 6 overlook long repeats in some texts (up to three times
/// as large): levels 2, 3 and 7 do not. It looks for four bytes where zlib looks for three, so fewer of the places that it
/// is sent to are in vain: it need not try as many of them as zlib's levels do, nor all that many once it has four.
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

/// Its level 9 looks for three bytes; with zlib's own search limits it is zlib.
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

/// How libdeflate stands in for a level of zlib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whole {
    /// Its own level.
    pub(super) level: i32,
    /// The one for inputs of less than 16 KB, where it finds about as much.
    pub(super) small: i32,
    /// The one for arrays of numbers, whose short repeats its own search is no good at.
    pub(super) arrays: i32,
    /// Whether repetitive data is better left to a stream, for its size or for the time it takes.
    pub(super) streams_repeats: bool,
    /// Up to which size a call takes at most about 20 ms.
    pub(super) most: usize,
    /// Whether larger inputs are worth cutting in pieces of that size.
    pub(super) pieces: bool,
}

/// libdeflate's settings for zlib's `level`; `None` when it is out of range.
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
