//! Several patterns one after the other: each cuts the pieces that the one before it left.
//!
//! To a pattern, such a piece is a text of its own: `$` and `(?!\S)` see its end. What lies between two matches
//! is a piece too, unless the cut drops it.

use super::regex::Regex;
use crate::tokens::Error;
use std::ops::Range;

/// A pattern, and what becomes of the text.
pub(in crate::tokens) struct Cut {
    pub(in crate::tokens) pattern: Pattern,
    pub(in crate::tokens) keep: Keep,
}

/// What is searched for.
pub(in crate::tokens) enum Pattern {
    /// Pieces follow each other without gaps; the function finds the end of one.
    Scanned(Scan),
    Regex(Box<Regex>),
}

/// Finds the end of the piece that begins at a place in a text.
pub(super) type Scan = fn(&[u8], usize) -> usize;

/// How far a text has been cut.
#[derive(Default)]
pub(in crate::tokens) struct Place {
    pub(in crate::tokens) at: usize,
    levels: Vec<Level>,
}

/// What becomes a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tokens) enum Keep {
    Everything,
    Matches,
    Gaps,
}

/// Patterns that are applied one after the other.
pub(in crate::tokens) struct Cuts(Vec<Cut>);

/// What a cut works on.
#[derive(Default, Clone)]
struct Level {
    /// The piece that the cut before it left.
    whole: Range<usize>,
    /// Where in it the next piece begins.
    at: usize,
    /// The next match, if the gap before it was a piece.
    next: Option<Range<usize>>,
}

impl Cuts {
    pub(in crate::tokens) fn new(cuts: Vec<Cut>) -> Self {
        Self(cuts)
    }

    /// The next piece of `text` after `place`.
    pub(super) fn next(&self, text: &str, place: &mut Place) -> Result<Option<Range<usize>>, Error> {
        if place.levels.len() != self.0.len() {
            place.levels = vec![Level::default(); self.0.len()];
            place.levels[0] = Level { whole: place.at..text.len(), at: place.at, next: None };
        }
        let piece = self.next_at(text, &mut place.levels)?;
        place.at = piece.as_ref().map_or(text.len(), |piece| piece.end);
        Ok(piece)
    }

    /// The next piece of the last of the levels.
    fn next_at(&self, text: &str, levels: &mut [Level]) -> Result<Option<Range<usize>>, Error> {
        let Some((level, above)) = levels.split_last_mut() else { return Ok(None) };
        loop {
            if let Some(piece) = self.0[above.len()].next(text, level)? {
                return Ok(Some(piece));
            }
            let Some(whole) = self.next_at(text, above)? else { return Ok(None) };
            *level = Level { at: whole.start, whole, next: None };
        }
    }
}

impl Cut {
    /// The next piece of a level that this cut makes.
    fn next(&self, text: &str, level: &mut Level) -> Result<Option<Range<usize>>, Error> {
        while level.at < level.whole.end || level.next.is_some() {
            if let Some(found) = level.next.take() {
                if self.keep != Keep::Gaps {
                    return Ok(Some(found));
                }
                continue;
            }
            let (start, end) = (level.whole.start, level.whole.end);
            let found = self.pattern.next(&text[start..end], level.at - start);
            let found = found.map_err(|error| error.in_part_at(start))?;
            let found = found.map_or(end..end, |found| start + found.start..start + found.end);
            let gap = level.at..found.start;
            level.at = found.end;
            level.next = (!found.is_empty()).then_some(found);
            if !gap.is_empty() && self.keep != Keep::Matches {
                return Ok(Some(gap));
            }
        }
        Ok(None)
    }
}

impl Pattern {
    fn next(&self, text: &str, from: usize) -> Result<Option<Range<usize>>, Error> {
        match self {
            Self::Scanned(end) => Ok((from < text.len()).then(|| from..end(text.as_bytes(), from))),
            Self::Regex(regex) => regex.next(text, from),
        }
    }
}
