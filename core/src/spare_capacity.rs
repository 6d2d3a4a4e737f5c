//! Whether to keep a result's spare capacity.

/// Shorter results are cheap to move.
const LONG: usize = 128 << 10;

/// Whether a result of `length` bytes keeps all of its `capacity`: if it is long, and leaves up to half as much unused as it
/// uses. If the rest were returned to the system, the next result of this length would have to wait for fresh pages.
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
