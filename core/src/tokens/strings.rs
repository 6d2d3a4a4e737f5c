//! Many strings of bytes in two pieces of memory, instead of one or more for each string.

use crate::memory::{self, OutOfMemory};

/// Strings, known by their places.
#[derive(Debug, Default)]
pub(super) struct Strings {
    /// The bytes of all, one after the other.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
}

impl Strings {
    /// Appends a copy; without room for more than 4 GB together.
    pub(super) fn push(&mut self, string: &[u8]) -> Result<(), OutOfMemory> {
        let end = self.bytes.len().checked_add(string.len()).and_then(|end| u32::try_from(end).ok());
        let end = end.ok_or(OutOfMemory)?;
        memory::append(&mut self.bytes, string)?;
        memory::push(&mut self.ends, end)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of bytes of all together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn get(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[place] as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|place| self.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_kept_as_they_are() {
        let mut strings = Strings::default();
        for string in [&b"one"[..], b"", b"\xff\0", b""] {
            strings.push(string).unwrap();
        }
        assert_eq!((strings.len(), strings.bytes()), (4, 5));
        assert_eq!(strings.iter().collect::<Vec<_>>(), [&b"one"[..], b"", b"\xff\0", b""]);
    }
}
