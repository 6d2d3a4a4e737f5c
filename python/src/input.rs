//! Unread input, kept without a copy: copying the rest of a gigabyte would delay an interrupt.

use std::collections::VecDeque;

use offlock_core::memory::{self, OutOfMemory};

use crate::borrow::Bytes;

/// The inputs of several calls, one after the other, of which the first is partly read.
#[derive(Default)]
pub(crate) struct Inputs {
    all: VecDeque<Bytes>,
    /// How much of the first was read.
    read: usize,
}

impl Inputs {
    /// Appends `bytes`.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.as_slice().is_empty() {
            self.all.push_back(bytes);
        }
    }

    /// The number of unread bytes.
    pub(crate) fn len(&self) -> usize {
        self.parts().map(<[u8]>::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The unread bytes, piece by piece.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let read = |number| if number == 0 { self.read } else { 0 };
        self.all.iter().enumerate().map(move |(number, bytes)| &bytes.as_slice()[read(number)..])
    }

    /// The unread bytes, in one piece.
    pub(crate) fn joined(&self) -> Result<Vec<u8>, OutOfMemory> {
        let mut joined = memory::with_capacity(self.len())?;
        self.parts().for_each(|part| joined.extend_from_slice(part));
        Ok(joined)
    }

    /// Passes one piece after the other to `read`, with whether it is the last (an empty one if there is
    /// none), until it fails or leaves bytes unread. Returns its last result, and the number of unread bytes.
    ///
    /// Needs no lock: [`forget`](Self::forget) drops the read pieces later.
    pub(crate) fn read<T, E>(
        &self,
        mut read: impl FnMut(&mut &[u8], bool) -> Result<T, E>,
    ) -> (Result<T, E>, usize) {
        let mut left = self.len();
        let mut parts = self.parts().peekable();
        loop {
            let mut rest = parts.next().unwrap_or_default();
            let last = parts.peek().is_none();
            let before = rest.len();
            let result = read(&mut rest, last);
            left -= before - rest.len();
            if last || result.is_err() || !rest.is_empty() {
                return (result, left);
            }
        }
    }

    /// Drops all but the last `left` bytes.
    pub(crate) fn forget(&mut self, left: usize) {
        let mut done = self.len() - left;
        while let Some(first) = self.all.front() {
            let unread = first.as_slice().len() - self.read;
            if done < unread {
                self.read += done;
                return;
            }
            done -= unread;
            self.read = 0;
            self.all.pop_front();
        }
    }
}
