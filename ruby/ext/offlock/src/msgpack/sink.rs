//! Where a message is written to.

use offlock_core::msgpack::write::Sink;

use crate::cruby::string::StringWriter;

/// A sink that can take back what was put last.
pub(super) trait Rewind: Sink {
    /// How far the message is.
    fn mark(&mut self) -> usize;
    /// Takes back everything behind `mark`.
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
}
