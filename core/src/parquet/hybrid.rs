//! Parquet's hybrid of run lengths and packed bits, for levels, indices into dictionaries, and booleans.
//!
//! Runs follow each other. A run begins with a number of variable length. If it is even, half of it is how often the value
//! behind it repeats, which has as many bytes as its bits need. If it is odd, half of it is the number of groups of eight
//! values, whose bits follow, the lowest first.

use super::error::Fault;

/// A reader of values of so many bits. It does not hold the bytes, so that whoever does can hold both.
#[derive(Debug, Clone)]
pub(super) struct Hybrid {
    at: usize,
    end: usize,
    width: u32,
    /// How many values are left in the run.
    left: u64,
    run: Run,
}

#[derive(Debug, Clone, Copy)]
enum Run {
    Repeated(u32),
    /// Where the next value begins, in bits.
    Packed(u64),
}

const ENDS: Fault = Fault::Wrong("a page has fewer values than its header says");

impl Hybrid {
    /// A reader of the values between these offsets.
    pub(super) fn new(at: usize, end: usize, width: u32) -> Result<Self, Fault> {
        if width > u32::BITS {
            return Err(Fault::Wrong("a page's values have too many bits"));
        }
        Ok(Self { at, end, width, left: 0, run: Run::Repeated(0) })
    }

    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<u32, Fault> {
        while self.left == 0 {
            self.begin_run(bytes)?;
        }
        self.left -= 1;
        match &mut self.run {
            Run::Repeated(value) => Ok(*value),
            Run::Packed(bit) => {
                let value = bits(&bytes[..self.end], *bit, self.width).ok_or(ENDS)?;
                *bit += u64::from(self.width);
                Ok(value as u32)
            }
        }
    }

    fn begin_run(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let bytes = bytes.get(..self.end).ok_or(ENDS)?;
        let head = varint(bytes, &mut self.at).ok_or(ENDS)?;
        let count = head >> 1;
        if head & 1 == 0 {
            let length = self.width.div_ceil(8) as usize;
            let value = bytes.get(self.at..self.at + length).ok_or(ENDS)?;
            let value = value.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            if u64::from(value) >> self.width != 0 {
                return Err(Fault::Wrong("a page repeats a value that has too many bits"));
            }
            self.at += length;
            (self.left, self.run) = (count, Run::Repeated(value));
        } else {
            let start = self.at as u64 * 8;
            // The last run may be cut off behind the values that are needed.
            let length = usize::try_from(count.saturating_mul(self.width.into())).unwrap_or(usize::MAX);
            self.at = self.at.saturating_add(length).min(self.end);
            (self.left, self.run) = (count.saturating_mul(8), Run::Packed(start));
        }
        Ok(())
    }
}

/// A number of variable length of at most 64 bits; `None` if it is longer or ends early.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// So many bits, at most 64, from this one on; `None` if they are not all there.
#[inline]
pub(super) fn bits(bytes: &[u8], bit: u64, width: u32) -> Option<u64> {
    if width == 0 {
        return Some(0);
    }
    let (start, shift) = ((bit / 8) as usize, (bit % 8) as u32);
    let length = (shift + width).div_ceil(8) as usize;
    let from = bytes.get(start..start.checked_add(length)?)?;
    let mut word = [0; 16];
    word[..length].copy_from_slice(from);
    let value = (u128::from_le_bytes(word) >> shift) as u64;
    Some(if width == 64 { value } else { value & ((1 << width) - 1) })
}

/// Writes levels as runs of repeated values.
#[derive(Default)]
pub(super) struct Runs {
    bytes: Vec<u8>,
    value: u8,
    count: u64,
}

impl Runs {
    /// Appends a value so many times. The memory for it must have been reserved.
    pub(super) fn push(&mut self, value: u8, count: u64) {
        if self.value != value {
            self.flush();
            self.value = value;
        }
        self.count += count;
    }

    fn flush(&mut self) {
        let mut head = self.count << 1;
        if head == 0 {
            return;
        }
        while head >= 0x80 {
            self.bytes.push(head as u8 | 0x80);
            head >>= 7;
        }
        self.bytes.extend([head as u8, self.value]);
        self.count = 0;
    }

    /// The runs, with their length before them, as pages of the first version have them.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.flush();
        let bytes = std::mem::take(&mut self.bytes);
        [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
    }

    /// How many bytes there are so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_own_example_is_read() {
        // The values 0 to 7 of three bits, as the format's description packs them, after four times a 5.
        let bytes = [8, 5, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let mut hybrid = Hybrid::new(0, bytes.len(), 3).unwrap();
        let values: Vec<u32> = (0..12).map(|_| hybrid.next(&bytes).unwrap()).collect();
        assert_eq!(values, [5, 5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(hybrid.next(&bytes), Err(ENDS));
    }

    #[test]
    fn written_levels_are_read() {
        let mut runs = Runs::default();
        let counts = [1, 2, 200, 1, 70_000];
        counts.iter().zip([0, 3, 1, 0, 2]).for_each(|(&count, value)| runs.push(value, count));
        let bytes = runs.take();
        assert_eq!(u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len() - 4);
        let mut hybrid = Hybrid::new(4, bytes.len(), 2).unwrap();
        for (count, value) in counts.into_iter().zip([0, 3, 1, 0, 2]) {
            (0..count).for_each(|_| assert_eq!(hybrid.next(&bytes), Ok(value)));
        }
        assert_eq!(hybrid.next(&bytes), Err(ENDS));
    }

    #[test]
    fn runs_of_nothing_end() {
        let bytes = [0, 9, 0, 9];
        assert_eq!(Hybrid::new(0, 4, 8).unwrap().next(&bytes), Err(ENDS));
        assert!(Hybrid::new(0, 4, 33).is_err());
        let bytes = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(Hybrid::new(0, 9, 32).unwrap().next(&bytes), Err(ENDS));
    }
}
