//! Many strings of bytes in two pieces of memory, instead of one or more for each string.

use crate::memory::{self, OutOfMemory};
use std::ops::Range;

/// Strings, known by their places.
#[derive(Debug)]
pub(super) struct Strings {
    /// The bytes of all, one after the other.
    bytes: Vec<u8>,
    /// Where each begins, and the end of the last one.
    starts: Vec<u32>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { bytes: Vec::new(), starts: vec![0] }
    }
}

impl Strings {
    /// No strings, with room for `count` of `bytes` bytes together.
    pub(super) fn with_capacity(count: usize, bytes: usize) -> Result<Self, OutOfMemory> {
        let mut starts = memory::with_capacity(count.saturating_add(1))?;
        starts.push(0);
        Ok(Self { bytes: memory::with_capacity(bytes)?, starts })
    }

    /// The strings of which `bytes` has all, one after the other. `starts` are where they begin, and the end of the
    /// last one.
    pub(super) fn of(bytes: Vec<u8>, starts: Vec<u32>) -> Self {
        Self { bytes, starts }
    }

    /// Appends a copy; without room for more than 4 GB together.
    pub(super) fn push(&mut self, string: &[u8]) -> Result<(), OutOfMemory> {
        let end = self.bytes.len().checked_add(string.len()).and_then(|end| u32::try_from(end).ok());
        let end = end.ok_or(OutOfMemory)?;
        memory::append(&mut self.bytes, string)?;
        memory::push(&mut self.starts, end)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The bytes of all together.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where a string lies among the bytes of all.
    #[inline]
    pub(super) fn span(&self, place: usize) -> Range<usize> {
        self.starts[place] as usize..self.starts[place + 1] as usize
    }

    /// Where each string lies among the bytes of all.
    #[inline]
    pub(super) fn spans(&self) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
        self.starts.windows(2).map(|span| span[0] as usize..span[1] as usize)
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> &[u8] {
        &self.bytes[self.span(place)]
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.spans().map(|span| &self.bytes[span])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_kept_as_they_are() {
        let all = [&b"one"[..], b"", b"\xff\0", b""];
        for mut strings in [Strings::default(), Strings::with_capacity(4, 5).unwrap()] {
            all.iter().for_each(|string| strings.push(string).unwrap());
            assert_eq!((strings.len(), strings.bytes()), (4, &b"one\xff\0"[..]));
            assert_eq!(strings.iter().collect::<Vec<_>>(), all);
            assert_eq!((strings.get(2), strings.span(2)), (all[2], 3..5));
        }
    }
}
