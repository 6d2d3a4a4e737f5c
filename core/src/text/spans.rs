//! The positions of the pieces of a text.

use std::borrow::Cow;
use std::ops::Range;

use super::{Error, STRETCH, Span, offsets};
use crate::Task;

/// Spans in ascending order without overlaps: a list, or the offsets between which they lie, which take a
/// quarter of the memory.
#[derive(Debug)]
pub struct Spans<'a>(Places<'a>);

#[derive(Debug)]
enum Places<'a> {
    Listed(Vec<Span>),
    Between32(Cow<'a, [i32]>),
    Between64(Cow<'a, [i64]>),
}

/// An integer type of offsets.
pub trait Offset: Copy + Into<i64> + PartialOrd + 'static {
    #[doc(hidden)]
    fn places(offsets: Cow<'_, [Self]>) -> Spans<'_>;
}

impl Offset for i32 {
    fn places(offsets: Cow<'_, [Self]>) -> Spans<'_> {
        Spans(Places::Between32(offsets))
    }
}

impl Offset for i64 {
    fn places(offsets: Cow<'_, [Self]>) -> Spans<'_> {
        Spans(Places::Between64(offsets))
    }
}

impl From<Vec<Span>> for Spans<'_> {
    fn from(spans: Vec<Span>) -> Self {
        Self(Places::Listed(spans))
    }
}

impl<'a> Spans<'a> {
    /// The spans from each offset to the next, as in [`offsets`].
    ///
    /// # Errors
    ///
    /// As [`offsets`].
    pub fn between<O: Offset>(
        text: &[u8],
        all: impl Into<Cow<'a, [O]>>,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let all = all.into();
        if are_inside(text, &all) && ascend(&all, task)? {
            return Ok(O::places(all));
        }
        Ok(offsets(text, all.iter().map(|&offset| offset.into()), task)?.into()) // finds the error
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Places::Listed(spans) => spans.len(),
            Places::Between32(offsets) => offsets.len().saturating_sub(1),
            Places::Between64(offsets) => offsets.len().saturating_sub(1),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The span of this number.
    ///
    /// # Panics
    ///
    /// If `index` is out of range.
    #[inline]
    pub fn get(&self, index: usize) -> Span {
        match &self.0 {
            Places::Listed(spans) => spans[index],
            Places::Between32(offsets) => between(offsets[index], offsets[index + 1]),
            Places::Between64(offsets) => between(offsets[index], offsets[index + 1]),
        }
    }

    /// Calls `each` with the spans of `range`, in order. (Branches on the representation once, not for each
    /// span.)
    ///
    /// # Panics
    ///
    /// If `range` is out of range.
    ///
    /// # Errors
    ///
    /// The first error of `each`.
    #[inline]
    pub fn for_each<E>(
        &self,
        range: Range<usize>,
        mut each: impl FnMut(Span) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.0 {
            _ if range.is_empty() => Ok(()),
            Places::Listed(spans) => spans[range].iter().try_for_each(|span| each(*span)),
            Places::Between32(offsets) => for_each_between(&offsets[range.start..=range.end], each),
            Places::Between64(offsets) => for_each_between(&offsets[range.start..=range.end], each),
        }
    }
}

#[inline]
fn for_each_between<O: Offset, E>(
    offsets: &[O],
    mut each: impl FnMut(Span) -> Result<(), E>,
) -> Result<(), E> {
    offsets.windows(2).try_for_each(|pair| each(between(pair[0], pair[1])))
}

/// The span between two checked offsets.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they are inside of a text")]
fn between<O: Offset>(start: O, end: O) -> Span {
    Span { start: start.into() as usize, end: end.into() as usize }
}

/// Whether the first and the last offset lie inside of the text.
fn are_inside<O: Offset>(text: &[u8], offsets: &[O]) -> bool {
    let is_inside = |&offset: &O| usize::try_from(offset.into()).is_ok_and(|offset| offset <= text.len());
    offsets.first().is_none_or(is_inside) && offsets.last().is_none_or(is_inside)
}

fn ascend<O: Offset>(offsets: &[O], task: &Task<'_>) -> Result<bool, Error> {
    for start in (0..offsets.len()).step_by(STRETCH) {
        task.check()?;
        let stretch = &offsets[start..offsets.len().min(start + STRETCH + 1)];
        // Without an early exit, so that the loop is vectorized.
        if !stretch.iter().zip(&stretch[1..]).fold(true, |ascend, (one, next)| ascend & (one <= next)) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn found(text: &[u8], all: &[i32]) -> Result<Vec<Span>, Error> {
        let task = Task::new();
        let wide: Vec<i64> = all.iter().copied().map(Into::into).collect();
        let each = |spans: Spans<'_>| {
            let mut found = Vec::new();
            let Ok(()) = spans.for_each(0..spans.len(), |span| {
                found.push(span);
                Ok::<_, Infallible>(())
            });
            assert!(found.iter().copied().eq((0..spans.len()).map(|index| spans.get(index))));
            found
        };
        let narrow = Spans::between::<i32>(text, all, &task).map(each);
        assert_eq!(Spans::between(text, wide.clone(), &task).map(each), narrow);
        assert_eq!(offsets(text, wide, &task), narrow);
        narrow
    }

    #[test]
    fn spans_between_offsets_are_those_that_a_list_has() {
        let text = [b'a'; 100];
        assert_eq!(found(&text, &[]), Ok(vec![]));
        assert_eq!(found(&text, &[7]), Ok(vec![]));
        assert_eq!(found(&text, &[1, 1, 6]), Ok(vec![Span { start: 1, end: 1 }, Span { start: 1, end: 6 }]));
        assert_eq!(found(&text, &(0..=100).collect::<Vec<_>>()).unwrap().len(), 100);
    }

    #[test]
    fn offsets_are_checked() {
        assert_eq!(found(b"ab", &[0, 3]), Err(Error::OffsetOutside { index: 1, offset: 3, end: 2 }));
        assert_eq!(found(b"ab", &[-1, 2]), Err(Error::OffsetOutside { index: 0, offset: -1, end: 2 }));
        assert_eq!(found(b"ab", &[0, 9, 1]), Err(Error::OffsetOutside { index: 1, offset: 9, end: 2 }));
        let mut long = vec![0; 3 * STRETCH];
        for at in [1, STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH - 2] {
            long[at] = 2;
            let decreases = Error::OffsetDecreases { index: at + 1, offset: 0, before: 2 };
            assert_eq!(found(b"ab", &long), Err(decreases));
            long[at] = 0;
        }
    }
}
