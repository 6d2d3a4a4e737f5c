//! Compares what is matched by hand with what an engine for regular expressions finds.

use super::cuts::{Cut, Cuts, Keep, Pattern, Place, Scan};
use super::regex::Regex;
use crate::Task;
use proptest::prelude::*;
use std::iter;

/// Patterns, one after the other, as the engine runs them.
pub(super) fn cuts(patterns: &[&str]) -> Cuts {
    let cut = |pattern: &&str| {
        let pattern = Pattern::Regex(Box::new(Regex::new(pattern).unwrap()));
        Cut { pattern, keep: Keep::Everything }
    };
    Cuts::new(patterns.iter().map(cut).collect())
}

/// Checks that `scan` finds the pieces of `cuts`.
pub(super) fn check(cuts: &Cuts, scan: Scan, text: &str) -> Result<(), TestCaseError> {
    let mut place = Place::default();
    let expected: Vec<_> =
        iter::from_fn(|| cuts.next(text, &mut place, &Task::new()).unwrap()).map(|piece| piece.end).collect();
    let next = |&at: &usize| (at < text.len()).then(|| scan(text.as_bytes(), at));
    let found: Vec<_> = iter::successors(next(&0), next).collect();
    let differ = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    prop_assert_eq!(differ, None, "{:?}", text.get(..60).unwrap_or(text));
    prop_assert_eq!(found.len(), expected.len(), "{:?}", text.get(..60).unwrap_or(text));
    Ok(())
}

/// Checks texts that have what `around` makes of every character.
pub(super) fn check_every_character(
    around: impl Fn(char) -> String,
    check: impl Fn(&str) -> Result<(), TestCaseError>,
) {
    // The planes between have no characters.
    let planes = [0..0x34000, 0xe0000..0xe1000, 0x10fff0..0x110000];
    let all: Vec<char> = planes.into_iter().flatten().filter_map(char::from_u32).collect();
    for some in all.chunks(997) {
        check(&some.iter().map(|&c| around(c)).collect::<String>()).unwrap();
    }
}
