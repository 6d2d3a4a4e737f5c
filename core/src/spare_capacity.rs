//! Whether a result keeps its spare capacity.
//!
//! The size of a result is estimated, so its memory is mostly larger than needed. Returning the unused part
//! to the system means a copy, or fresh pages for the next result, which the system has to clear; keeping it
//! costs memory for as long as the result lives. Long results keep it, as long as it is at most a third of
//! the whole.

/// Shorter results are cheap to copy into an exact allocation.
const LONG: usize = 128 << 10;

/// Whether a result of `length` bytes keeps all of its `capacity`: yes if it is long and at most half as many
/// bytes are unused as used. If the unused part went back to the system, the next result of this length would
/// have to wait for fresh pages.
pub const fn is_kept(length: usize, capacity: usize) -> bool {
    length >= LONG && capacity - length <= length / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_results_keep_little_more_than_they_use() {
        assert!(is_kept(LONG, LONG) && is_kept(LONG, LONG + LONG / 2));
        assert!(!is_kept(LONG, LONG + LONG / 2 + 1), "too much is left");
        assert!(!is_kept(LONG - 1, LONG), "short");
    }
}
