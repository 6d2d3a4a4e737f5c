//! Copies texts from many places to one, one after the other.

use offlock_core::Task;
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::text::Span;

use super::error::StringsError;

/// Bytes, and texts, between two checks of the task.
const STRETCH: usize = 1 << 20;

/// Texts that have been copied, and the span of each.
pub(super) struct Adjacent<'a> {
    text: Vec<u8>,
    spans: Vec<Span>,
    until_check: usize,
    task: &'a Task<'a>,
}

impl<'a> Adjacent<'a> {
    /// Room for this many texts, which together have at least this many bytes.
    pub(super) fn with_capacity(texts: usize, bytes: usize, task: &'a Task<'a>) -> Result<Self, OutOfMemory> {
        let (text, spans) = (memory::with_capacity(bytes)?, memory::with_capacity(texts)?);
        Ok(Self { text, spans, until_check: 0, task })
    }

    /// Copies a text behind the others.
    #[inline]
    pub(super) fn push(&mut self, text: &[u8]) -> Result<(), StringsError> {
        let (start, mut rest) = (self.text.len(), text);
        while rest.len() + size_of::<Span>() > self.until_check {
            self.task.check()?;
            let (part, after) = rest.split_at(rest.len().min(STRETCH));
            memory::append(&mut self.text, part)?;
            (rest, self.until_check) = (after, STRETCH + size_of::<Span>());
        }
        self.until_check -= rest.len() + size_of::<Span>();
        memory::append(&mut self.text, rest)?;
        memory::push(&mut self.spans, Span { start, end: self.text.len() })?;
        Ok(())
    }

    pub(super) fn finish(self) -> (Vec<u8>, Vec<Span>) {
        (self.text, self.spans)
    }
}
