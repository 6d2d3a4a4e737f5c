//! `DELTA_BINARY_PACKED`: integers as packed differences.
//!
//! The header has the number of values in a block, that of a block's parts, that of all values, and the first value. A
//! block has the least difference, a byte for each of its parts with the number of bits there, and the parts: what each
//! difference has above the least one. Parts behind the last value are left out.

use super::error::Fault;
use super::hybrid::{bits, varint};
use crate::Task;

/// A reader of integers. It does not hold the bytes, so that whoever does can hold both.
#[derive(Debug, Clone)]
pub(super) struct Delta {
    at: usize,
    end: usize,
    parts: usize,
    in_part: u64,
    /// How many values are still to come.
    left: u64,
    value: i64,
    is_first: bool,
    least: i64,
    /// Where the widths of the block's parts stand, and which part is the next.
    widths: usize,
    part: usize,
    /// The current part: how many values are left, their width, and where the next one begins, in bits.
    part_left: u64,
    width: u32,
    bit: u64,
}

const ENDS: Fault = Fault::Wrong("a page has fewer values than its header says");
const INVALID: Fault = Fault::Wrong("a page's packed differences are invalid");

impl Delta {
    /// A reader of the integers that begin there, and end before `end`.
    pub(super) fn new(bytes: &[u8], mut at: usize, end: usize) -> Result<Self, Fault> {
        let bytes = bytes.get(..end).ok_or(ENDS)?;
        let mut number = || varint(bytes, &mut at).ok_or(INVALID);
        let (in_block, parts, left, value) = (number()?, number()?, number()?, zigzag(number()?));
        if parts == 0 || parts > in_block || in_block % parts != 0 || (in_block / parts) % 8 != 0 {
            return Err(INVALID);
        }
        let count =
            usize::try_from(parts).ok().filter(|&parts| left <= 1 || parts <= end - at).ok_or(INVALID)?;
        Ok(Self {
            at,
            end,
            parts: count,
            in_part: in_block / parts,
            left,
            value,
            is_first: true,
            least: 0,
            widths: at,
            part: count,
            part_left: 0,
            width: 0,
            bit: 0,
        })
    }

    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<i64, Fault> {
        self.left = self.left.checked_sub(1).ok_or(ENDS)?;
        if std::mem::take(&mut self.is_first) {
            return Ok(self.value);
        }
        let bytes = &bytes[..self.end];
        if self.part_left == 0 {
            self.begin_part(bytes)?;
        }
        self.part_left -= 1;
        let above = bits(bytes, self.bit, self.width).ok_or(ENDS)?;
        self.bit += u64::from(self.width);
        self.value = self.value.wrapping_add(self.least).wrapping_add(above.cast_signed());
        Ok(self.value)
    }

    fn begin_part(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.part == self.parts {
            self.least = zigzag(varint(bytes, &mut self.at).ok_or(INVALID)?);
            (self.widths, self.part) = (self.at, 0);
            self.at = self.at.checked_add(self.parts).filter(|&at| at <= self.end).ok_or(ENDS)?;
        }
        self.width = bytes[self.widths + self.part].into();
        if self.width > u64::BITS {
            return Err(INVALID);
        }
        self.part += 1;
        (self.part_left, self.bit) = (self.in_part, self.at as u64 * 8);
        let length = (self.in_part / 8).saturating_mul(self.width.into());
        // What is missing of the part is noticed where it is read.
        self.at =
            usize::try_from(length).map_or(self.end, |length| self.at.saturating_add(length)).min(self.end);
        Ok(())
    }

    /// Where the integers end.
    pub(super) fn ends(&self, bytes: &[u8], task: &Task<'_>) -> Result<usize, Fault> {
        const BETWEEN_CHECKS: u64 = 1 << 14;
        let mut rest = self.clone();
        while rest.left > 0 {
            if rest.left.is_multiple_of(BETWEEN_CHECKS) {
                task.check()?;
            }
            rest.next(bytes)?;
        }
        Ok(rest.at)
    }
}

fn zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_own_example_is_read() {
        // 7, 5, 3, 1, 2, 3, 4, 5: differences -2, -2, -2, 1, 1, 1, 1, above the least one 0, 0, 0, 3, 3, 3, 3.
        let mut bytes = vec![128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111];
        bytes.extend([0; 6]);
        bytes.push(99);
        let mut delta = Delta::new(&bytes, 0, bytes.len()).unwrap();
        assert_eq!(delta.ends(&bytes, &Task::new()), Ok(bytes.len() - 1));
        let values: Vec<i64> = (0..8).map(|_| delta.next(&bytes).unwrap()).collect();
        assert_eq!(values, [7, 5, 3, 1, 2, 3, 4, 5]);
        assert_eq!(delta.next(&bytes), Err(ENDS));
    }

    #[test]
    fn claims_are_checked() {
        for bytes in
            [&[0, 0, 8, 0][..], &[128, 1, 3, 8, 0], &[12, 4, 8, 0], &[8], &[128, 1, 4, 2, 0, 0, 65, 0, 0, 0]]
        {
            let read = Delta::new(bytes, 0, bytes.len()).and_then(|mut delta| {
                delta.next(bytes)?;
                delta.next(bytes)
            });
            assert!(read.is_err(), "{bytes:?}");
        }
    }
}
