//! Output buffers.
//!
//! An operation does not know the size of its output in advance, and a result should reach the interpreter's
//! own string without a copy. So an [`Output`] fills memory that the caller lends first, such as that of a
//! new string object, and continues in memory of its own, which grows without the interpreter lock.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Deref;

use crate::memory::{self, OutOfMemory};

/// Buffers of up to this size are kept for the thread's next operation: a new buffer costs more than filling
/// it.
const KEPT: usize = 256 << 10;

/// The least amount by which an output grows.
const GROWTH: usize = 16 << 10;

/// With less spare capacity than this an output grows. A stream that has just filled its output with what a
/// flush demands has to be asked again, and then writes the marker of the flush once more.
const LITTLE: usize = 64;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The output of an operation; its memory goes back to the thread for the next one.
#[derive(Debug, Default)]
pub struct Bytes(Vec<u8>);

impl Bytes {
    /// An empty buffer, with the memory that this thread kept from its last operation.
    fn reused() -> Self {
        let mut kept = SPARE.try_with(Cell::take).unwrap_or_default();
        kept.clear();
        Self(kept)
    }

    /// The vector, for callers that keep it.
    pub fn into_vec(mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.0);
        if (1..=KEPT).contains(&memory.capacity()) {
            // This fails while the thread ends.
            let _ = SPARE.try_with(|spare| spare.set(memory));
        }
    }
}

/// Where an operation writes: first to memory that the caller lends, then to memory of its own.
#[derive(Debug)]
pub struct Output<'a> {
    lent: &'a mut [MaybeUninit<u8>],
    used: usize,
    own: Bytes,
    limit: usize,
}

impl Output<'static> {
    /// An output with no lent memory and no limit.
    pub fn new() -> Self {
        Self::lent(&mut [])
    }

    /// The bytes written, if no memory was lent.
    pub fn into_bytes(self) -> Bytes {
        self.own
    }
}

impl Default for Output<'static> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Output<'a> {
    /// An output that fills `lent` first.
    pub fn lent(lent: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { lent, used: 0, own: Bytes::reused(), limit: usize::MAX }
    }

    /// The same output, limited to `limit` bytes.
    #[must_use]
    pub fn limited(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Starts with the bytes in `made`, which are moved. Nothing may have been written yet. `made` may exceed
    /// the limit.
    pub fn resume(&mut self, made: &mut Vec<u8>) {
        debug_assert!(self.is_empty());
        if !made.is_empty() {
            self.lent = &mut [];
            self.own = Bytes(std::mem::take(made));
        }
    }

    /// Lets at most `more` further bytes be written.
    pub fn set_left(&mut self, more: usize) {
        self.limit = self.len().saturating_add(more);
    }

    /// The number of bytes written.
    pub fn len(&self) -> usize {
        self.used + self.own.0.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes may still be written.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// The number of bytes in the lent memory, and the rest.
    pub fn finish(self) -> (usize, Bytes) {
        (self.used, self.own)
    }

    /// Unwritten memory, as much as is available and allowed; at least one byte unless the limit is reached.
    pub(crate) fn spare(&mut self) -> Result<&mut [MaybeUninit<u8>], OutOfMemory> {
        let left = self.left();
        if self.used < self.lent.len() {
            let end = self.lent.len().min(self.used.saturating_add(left));
            return Ok(&mut self.lent[self.used..end]);
        }
        if self.own.0.capacity() - self.own.0.len() < LITTLE.min(left) {
            memory::reserve(&mut self.own.0, GROWTH.min(left))?;
        }
        let spare = self.own.0.spare_capacity_mut();
        let end = spare.len().min(left);
        Ok(&mut spare[..end])
    }

    /// At least `size` bytes of unwritten memory in one piece, or all that is allowed. Shorter if lent memory
    /// is in use and has less.
    pub(crate) fn spare_for(&mut self, size: usize) -> Result<&mut [MaybeUninit<u8>], OutOfMemory> {
        self.reserve(size)?;
        self.spare()
    }

    /// Reserves memory for `size` bytes or for all that is allowed, once the lent memory is full.
    pub(crate) fn reserve(&mut self, size: usize) -> Result<(), OutOfMemory> {
        if self.used < self.lent.len() {
            return Ok(());
        }
        let size = size.min(self.left());
        memory::reserve(&mut self.own.0, size)
    }

    /// Counts the first `n` bytes of [`spare`](Self::spare) as written.
    ///
    /// # Safety
    ///
    /// They are initialized.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn written(&mut self, n: usize) {
        if self.used < self.lent.len() {
            assert!(n <= self.lent.len() - self.used);
            self.used += n;
            return;
        }
        let len = self.own.0.len() + n;
        assert!(len <= self.own.0.capacity());
        // SAFETY: within the capacity, and initialized as the caller promises.
        unsafe { self.own.0.set_len(len) };
    }

    /// Forgets what was written after the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.own.0.truncate(len.saturating_sub(self.used));
        self.used = self.used.min(len);
    }

    /// Whether there is lent memory left.
    pub(crate) fn has_lent(&self) -> bool {
        self.used < self.lent.len()
    }

    /// How much lent memory is left, if there is any.
    pub(crate) fn lent_left(&self) -> Option<usize> {
        self.has_lent().then(|| self.lent.len() - self.used)
    }

    /// Continues in memory of its own, although some of the lent memory is left.
    pub(crate) fn decline_lent(&mut self) {
        let lent = std::mem::take(&mut self.lent);
        self.lent = &mut lent[..self.used];
    }

    /// Appends `bytes`, or as many of them as the limit allows; true if that was all of them.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], after as many as there was memory for.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<bool, OutOfMemory> {
        while !bytes.is_empty() {
            let spare = self.spare_for(bytes.len())?;
            let n = spare.len().min(bytes.len());
            if n == 0 {
                return Ok(false);
            }
            // SAFETY: both are valid for `n` bytes, and apart because the spare memory is borrowed mutably;
            // afterwards the first `n` bytes of the spare memory are initialized.
            #[allow(unsafe_code)]
            unsafe {
                spare.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), n);
                self.written(n);
            }
            bytes = &bytes[n..];
        }
        Ok(true)
    }

    /// Calls `look` with the bytes written after the first `start`, in one or two pieces.
    #[allow(unsafe_code)]
    pub(crate) fn since(&self, start: usize, mut look: impl FnMut(&[u8])) {
        if start < self.used {
            let piece = &self.lent[start..self.used];
            // SAFETY: the first `used` bytes of the lent memory are initialized.
            look(unsafe { std::slice::from_raw_parts(piece.as_ptr().cast(), piece.len()) });
        }
        let from = start.saturating_sub(self.used);
        if from < self.own.0.len() {
            look(&self.own.0[from..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lent_memory_is_filled_before_own_memory() {
        let mut lent = [MaybeUninit::uninit(); 3];
        let mut out = Output::lent(&mut lent);
        assert_eq!(out.push(b"abcde"), Ok(true));
        let mut pieces = Vec::new();
        out.since(1, |piece| pieces.push(piece.to_vec()));
        assert_eq!(pieces, [b"bc".to_vec(), b"de".to_vec()]);
        let (used, rest) = out.finish();
        assert_eq!((used, &*rest), (3, &b"de"[..]));
    }

    #[test]
    fn a_limit_holds_across_both_memories() {
        let mut lent = [MaybeUninit::uninit(); 3];
        let mut out = Output::lent(&mut lent).limited(4);
        assert_eq!(out.push(b"abcde"), Ok(false));
        assert_eq!((out.len(), out.left()), (4, 0));
        assert!(out.spare().unwrap().is_empty());
    }

    #[test]
    fn a_thread_reuses_small_buffers_and_drops_large_ones() {
        let mut out = Output::new();
        out.push(&[1; 1000]).unwrap();
        let memory = out.into_bytes();
        let address = memory.as_ptr();
        drop(memory);
        let again = Bytes::reused();
        assert_eq!((again.0.as_ptr(), again.len()), (address, 0));
        drop(again);
        drop(Bytes(Vec::with_capacity(KEPT + 1)));
        assert!(SPARE.take().capacity() <= KEPT);
    }
}
