//! Copies texts from many places to one.

use offlock_core::Task;
use offlock_core::memory;
use offlock_core::text::Span;

use super::error::StringsError;

/// Bytes, and texts, between two checks of the task.
const STRETCH: usize = 1 << 20;

/// Copies `count` texts, one after the other, with room for `bytes` bytes from the start. Also returns the span of each.
#[inline]
pub(super) fn adjacent<'t>(
    texts: impl Iterator<Item = Result<&'t [u8], StringsError>>,
    count: usize,
    bytes: usize,
    task: &Task<'_>,
) -> Result<(Vec<u8>, Vec<Span>), StringsError> {
    let (mut all, mut spans) = (memory::with_capacity(bytes)?, memory::with_capacity(count)?);
    let mut until_check = 0;
    for text in texts {
        let (start, mut rest) = (all.len(), text?);
        while rest.len() + size_of::<Span>() > until_check {
            task.check()?;
            let (part, after) = rest.split_at(rest.len().min(STRETCH));
            memory::append(&mut all, part)?;
            (rest, until_check) = (after, STRETCH + size_of::<Span>());
        }
        until_check -= rest.len() + size_of::<Span>();
        memory::append(&mut all, rest)?;
        spans.push(Span { start, end: all.len() });
    }
    Ok((all, spans))
}
