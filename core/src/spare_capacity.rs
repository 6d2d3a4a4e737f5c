//! Whether a result keeps its spare capacity.

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
