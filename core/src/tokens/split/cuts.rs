//! Several patterns one after the other: each cuts the pieces that the one before it left.
//!
//! To a pattern, such a piece is a text of its own: `$` and `(?!\S)` see its end. What lies between two matches
//! is a piece too, unless the cut drops it.

use super::classes::class_at;
use super::o200k::white;
use super::regex::Regex;
use crate::tokens::Error;
use crate::{Stopped, Task};
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
    /// The same with one of [`BLANKS`] behind it. That part is matched by hand: the engine would step back
    /// through a run of blanks, for which it has a limit.
    WithBlanks(Box<Regex>),
}

/// How many patterns end.
pub(super) const BLANKS: [&str; 2] = [r"|\s*[\r\n]+|\s+(?!\S)|\s+", "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"];

/// Finds the end of the piece that begins at a place in a text.
pub(in crate::tokens) type Scan = fn(&[u8], usize) -> usize;

/// How far a text has been cut.
#[derive(Default)]
pub(in crate::tokens) struct Place {
    pub(in crate::tokens) at: usize,
    pub(super) searches: Searches,
    levels: Vec<Level>,
}

/// Counts searches by the engine: a pattern may be such that each takes a million steps back.
#[derive(Default, Clone, Copy)]
pub(super) struct Searches(u32);

impl Searches {
    /// The number of searches between two checks of the task.
    const STRETCH: u32 = 8;

    pub(super) fn count(&mut self, task: &Task<'_>) -> Result<(), Stopped> {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(Self::STRETCH) { task.check() } else { Ok(()) }
    }
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
    /// The last match of the pattern before blanks, or the end of the piece, if it has been searched for.
    found: Option<Range<usize>>,
}

impl Cuts {
    pub(in crate::tokens) fn new(cuts: Vec<Cut>) -> Self {
        Self(cuts)
    }

    /// The next piece of `text` after `place`.
    pub(super) fn next(
        &self,
        text: &str,
        place: &mut Place,
        task: &Task<'_>,
    ) -> Result<Option<Range<usize>>, Error> {
        if place.levels.len() != self.0.len() {
            place.levels = vec![Level::default(); self.0.len()];
            place.levels[0] = Level { whole: place.at..text.len(), at: place.at, ..Level::default() };
        }
        let piece = self.next_at(text, &mut place.levels, &mut place.searches, task)?;
        place.at = piece.as_ref().map_or(text.len(), |piece| piece.end);
        Ok(piece)
    }

    /// The next piece of the last of the levels.
    fn next_at(
        &self,
        text: &str,
        levels: &mut [Level],
        searches: &mut Searches,
        task: &Task<'_>,
    ) -> Result<Option<Range<usize>>, Error> {
        let Some((level, above)) = levels.split_last_mut() else { return Ok(None) };
        loop {
            if let Some(piece) = self.0[above.len()].next(text, level, searches, task)? {
                return Ok(Some(piece));
            }
            let Some(whole) = self.next_at(text, above, searches, task)? else { return Ok(None) };
            *level = Level { at: whole.start, whole, ..Level::default() };
        }
    }
}

impl Cut {
    /// The next piece of a level that this cut makes.
    fn next(
        &self,
        text: &str,
        level: &mut Level,
        searches: &mut Searches,
        task: &Task<'_>,
    ) -> Result<Option<Range<usize>>, Error> {
        while level.at < level.whole.end || level.next.is_some() {
            if let Some(found) = level.next.take() {
                if self.keep != Keep::Gaps {
                    return Ok(Some(found));
                }
                continue;
            }
            searches.count(task)?;
            let (start, end) = (level.whole.start, level.whole.end);
            let found = self.pattern.next(&text[start..end], level.at - start, &mut level.found);
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
    /// The first match at or after `from`. `known` is for this method to keep between calls.
    fn next(
        &self,
        text: &str,
        from: usize,
        known: &mut Option<Range<usize>>,
    ) -> Result<Option<Range<usize>>, Error> {
        match self {
            Self::Scanned(end) => Ok((from < text.len()).then(|| from..end(text.as_bytes(), from))),
            Self::Regex(regex) => regex.next(text, from),
            Self::WithBlanks(regex) => {
                let found = match known.take().filter(|found| found.start >= from) {
                    Some(found) => found,
                    None => regex.next(text, from)?.unwrap_or(text.len()..text.len()),
                };
                // At the same place the alternatives before the blanks come first.
                let blank = first_blank(text.as_bytes(), from..found.start);
                *known = Some(found.clone());
                let blank = blank.map(|start| start..white(text.as_bytes(), start));
                Ok(blank.or_else(|| (!found.is_empty()).then_some(found)))
            }
        }
    }
}

/// Where the first blank in `range` begins.
fn first_blank(text: &[u8], range: Range<usize>) -> Option<usize> {
    let mut at = range.start;
    while at < range.end {
        let (class, next) = class_at(text, at);
        if class.is_space() {
            return Some(at);
        }
        at = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The last of DeepSeek's patterns before its blanks.
    const HEAD: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"##;

    fn pieces(pattern: Pattern, text: &str) -> Vec<Range<usize>> {
        let cuts = Cuts::new(vec![Cut { pattern, keep: Keep::Everything }]);
        let mut place = Place::default();
        std::iter::from_fn(|| cuts.next(text, &mut place, &Task::new()).unwrap()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn blanks_are_matched_by_hand_as_by_the_engine(text in "[ \n\r\t\u{a0}\u{3000}a1é!\u{301}\u{1}\u{200b}]{0,24}") {
            let whole = Pattern::Regex(Box::new(Regex::new(&(HEAD.to_owned() + BLANKS[0])).unwrap()));
            let split = Pattern::WithBlanks(Box::new(Regex::new(HEAD).unwrap()));
            prop_assert_eq!(pieces(split, &text), pieces(whole, &text));
        }
    }

    #[test]
    fn a_million_blanks_are_two_pieces() {
        let split = Pattern::WithBlanks(Box::new(Regex::new(HEAD).unwrap()));
        let text = " ".repeat(1_000_000) + "x";
        assert_eq!(pieces(split, &text), [0..999_999, 999_999..1_000_001]);
    }
}
