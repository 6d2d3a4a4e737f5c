//! How much text is encoded between two checks of the task, and the memory that its tokens need.

use super::simd_merge;

/// The amount of text between two checks of the task, in bytes.
pub(super) const STRETCH: usize = 16 << 10;

/// The capacity that the output needs before a stretch of pieces, if `left` bytes of text are left: a piece has at most
/// as many tokens as bytes. The last piece may extend beyond the stretch; longer pieces reserve capacity
/// themselves.
pub(super) fn most_tokens(left: usize) -> usize {
    left.min(STRETCH + simd_merge::MOST)
}

/// The capacity with which the output of a text of `length` bytes begins: most texts need no more.
pub(super) fn usual_tokens(length: usize) -> usize {
    length / 4 + most_tokens(length.min(1 << 10))
}
