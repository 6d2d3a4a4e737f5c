//! Memory that a result was made in and does not fill.

/// Shorter results are cheap to move.
const LONG: usize = 128 << 10;

/// Whether a result of `length` bytes that was made in `room` bytes had better keep all of them: if it is long and leaves up
/// to half as much as it uses. Were the rest given back to the system, the next result of this length would have to wait
/// for fresh pages.
pub const fn is_kept(length: usize, room: usize) -> bool {
    length >= LONG && room - length <= length / 2
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
