//! The destination of a message that can be truncated.

use offlock_core::msgpack::write::Sink;

use crate::cruby::string::StringWriter;

/// A sink that can remove the bytes that were written last.
pub(super) trait Rewind: Sink {
    /// The current length of the message.
    fn mark(&mut self) -> usize;
    /// Removes everything after `mark`.
    fn rewind(&mut self, mark: usize);
}

impl Rewind for StringWriter {
    fn mark(&mut self) -> usize {
        self.length()
    }

    fn rewind(&mut self, mark: usize) {
        self.truncate(mark);
    }
}

impl Sink for StringWriter {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        Self::put(self, bytes);
    }

    fn expect(&mut self, bytes: usize) {
        Self::expect(self, bytes);
    }
}
