//! What Snappy and LZ4 have in common: a text is made of new bytes and of repeats of what came before.

use super::error::{Fault, OTHER_SIZE};
use crate::{Task, memory};

/// The bytes between two looks at the task.
const BETWEEN_CHECKS: usize = 256 << 10;

/// A text that is being made, of at most so many bytes.
pub(super) struct Text<'a> {
    plain: &'a mut Vec<u8>,
    /// Where the text begins.
    start: usize,
    end: usize,
    next_check: usize,
}

impl<'a> Text<'a> {
    pub(super) fn new(plain: &'a mut Vec<u8>, size: usize) -> Self {
        let start = plain.len();
        Self { plain, start, end: start.saturating_add(size), next_check: start }
    }

    fn make_room(&mut self, length: usize, task: &Task<'_>) -> Result<(), Fault> {
        if length > self.end - self.plain.len() {
            return Err(OTHER_SIZE);
        }
        if self.plain.len() >= self.next_check {
            task.check()?;
            self.next_check = self.plain.len() + BETWEEN_CHECKS;
        }
        Ok(memory::reserve(self.plain, length)?)
    }

    /// Appends new bytes.
    pub(super) fn add(&mut self, bytes: &[u8], task: &Task<'_>) -> Result<(), Fault> {
        for piece in bytes.chunks(BETWEEN_CHECKS) {
            self.make_room(piece.len(), task)?;
            self.plain.extend_from_slice(piece);
        }
        Ok(())
    }

    /// Appends what came so many bytes before, which may be fewer than are to be appended.
    pub(super) fn repeat(&mut self, offset: usize, length: usize, task: &Task<'_>) -> Result<(), Fault> {
        if offset == 0 || offset > self.plain.len() - self.start {
            return Err(Fault::Wrong("a page's compressed data refers to what is before its beginning"));
        }
        // The piece that is there doubles with each copy of it.
        let from = self.plain.len() - offset;
        let mut left = length;
        while left > 0 {
            let piece = left.min(self.plain.len() - from).min(BETWEEN_CHECKS.next_multiple_of(offset));
            self.make_room(piece, task)?;
            self.plain.extend_from_within(from..from + piece);
            left -= piece;
        }
        Ok(())
    }
}
