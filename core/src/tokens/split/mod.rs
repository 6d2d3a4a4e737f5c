//! Cuts text into the pieces that are encoded one by one.
//!
//! The patterns of the public encodings and of widespread models are compiled by hand, each into a function
//! that finds the end of a piece in one pass, without backtracking: the time is linear in the length of the
//! text. A character's class is found by two table lookups (`classes.rs`); runs of ASCII letters are scanned
//! eight bytes at a time (`scan.rs`). Texts that are encoded are cut 64 bytes at a time (`bitmap/`), with the same
//! result. All other patterns are run by fancy-regex, the engine that tiktoken
//! uses. A model may also have several patterns, one after the other (`cuts.rs`).

mod bitmap;
pub(super) mod cl100k;
mod classes;
pub(super) mod cuts;
pub(super) mod deepseek;
pub(super) mod gpt2;
pub(super) mod kimi;
pub(super) mod llama3;
mod lookahead;
pub(super) mod o200k;
mod regex;
mod scan;
pub(super) mod tekken;
#[cfg(test)]
mod test_engine;

use super::Error;
use crate::Task;
use bitmap::{Cl100k, DeepSeek, Llama3, O200k, Qwen, Qwen35, Tekken};
pub(super) use bitmap::{Cut as CutMany, Ends};
use cuts::{BLANKS, Cut, Cuts, Keep, Pattern};
pub(super) use cuts::{Place, Scan};
pub(super) use lookahead::last_final;
use regex::Regex;
use std::ops::Range;

/// A pattern, and how it is matched.
pub(super) enum Splitter {
    Gpt2,
    /// That of GPT-2, behind one that cuts out each digit.
    Gpt2BetweenDigits,
    Cl100k,
    O200k,
    Llama3,
    Qwen,
    Qwen35,
    Tekken,
    Kimi,
    DeepSeek,
    Regex(Box<Regex>),
    Cuts(Cuts),
    /// No pattern: the whole text is one piece.
    Whole,
}

impl Splitter {
    pub(super) fn new(pattern: &str) -> Result<Self, Error> {
        Ok(match Self::known(pattern) {
            Some(known) => known,
            None => Self::Regex(Box::new(Regex::new(pattern)?)),
        })
    }

    /// The patterns that are matched by hand.
    fn known(pattern: &str) -> Option<Self> {
        Some(match pattern {
            gpt2::PATTERN | gpt2::PLAIN => Self::Gpt2,
            cl100k::PATTERN => Self::Cl100k,
            o200k::PATTERN => Self::O200k,
            llama3::PATTERN => Self::Llama3,
            llama3::QWEN => Self::Qwen,
            llama3::QWEN35 => Self::Qwen35,
            tekken::PATTERN => Self::Tekken,
            kimi::PATTERN => Self::Kimi,
            _ => return None,
        })
    }

    /// Patterns that are applied one after the other, and what becomes pieces.
    pub(super) fn of_cuts(patterns: Vec<(String, Keep)>) -> Result<Self, Error> {
        let only_known = match &*patterns {
            [] => Some(Self::Whole),
            [(pattern, Keep::Everything | Keep::Matches)] => Self::known(pattern),
            several => Self::known_cuts(several),
        };
        if let Some(known) = only_known {
            return Ok(known);
        }
        let cut = |(pattern, keep): (String, Keep)| {
            let pattern = match Self::known(&pattern).and_then(|known| known.scan()) {
                Some(scan) => Pattern::Scanned(scan),
                None => match BLANKS.iter().find_map(|blanks| pattern.strip_suffix(blanks)) {
                    Some(head) => Pattern::WithBlanks(Box::new(Regex::new(head)?)),
                    None => Pattern::Regex(Box::new(Regex::new(&pattern)?)),
                },
            };
            Ok(Cut { pattern, keep })
        };
        Ok(Self::Cuts(Cuts::new(patterns.into_iter().map(cut).collect::<Result<_, Error>>()?)))
    }

    /// The patterns one after the other that are matched by hand.
    fn known_cuts(patterns: &[(String, Keep)]) -> Option<Self> {
        let are = |known: &[&str]| {
            patterns.len() == known.len()
                && patterns.iter().zip(known).all(|((pattern, keep), known)| {
                    // Files have line breaks as themselves.
                    *keep == Keep::Everything && pattern.replace('\r', r"\r").replace('\n', r"\n") == *known
                })
        };
        let splitters = [
            (&deepseek::PATTERNS[..], Self::DeepSeek),
            (&[gpt2::DIGIT, gpt2::PLAIN], Self::Gpt2BetweenDigits),
        ];
        splitters.into_iter().find_map(|(known, splitter)| are(known).then_some(splitter))
    }

    pub(super) fn pattern(&self) -> &str {
        match self {
            Self::Gpt2 => gpt2::PATTERN,
            Self::Cl100k => cl100k::PATTERN,
            Self::O200k => o200k::PATTERN,
            Self::Llama3 => llama3::PATTERN,
            Self::Qwen => llama3::QWEN,
            Self::Qwen35 => llama3::QWEN35,
            Self::Tekken => tekken::PATTERN,
            Self::Kimi => kimi::PATTERN,
            Self::Regex(regex) => regex.pattern(),
            Self::Gpt2BetweenDigits | Self::DeepSeek | Self::Cuts(_) | Self::Whole => "",
        }
    }

    /// The function that finds the end of a piece, if the pattern is matched by hand.
    pub(super) fn scan(&self) -> Option<Scan> {
        Some(match self {
            Self::Gpt2 => gpt2::end,
            Self::Gpt2BetweenDigits => gpt2::between_digits,
            Self::Cl100k => cl100k::end,
            Self::O200k => o200k::end,
            Self::Llama3 => llama3::end,
            Self::Qwen => llama3::qwen,
            Self::Qwen35 => llama3::qwen35,
            Self::Tekken => tekken::end,
            Self::Kimi => kimi::end,
            Self::DeepSeek => deepseek::end,
            Self::Whole => |text, _| text.len(),
            Self::Regex(_) | Self::Cuts(_) => return None,
        })
    }

    /// The function that finds the ends of many pieces, if the pattern is matched by hand. It finds the same as
    /// [`scan`](Self::scan) does.
    pub(super) fn cut_many(&self) -> Option<CutMany> {
        Some(match self {
            Self::Gpt2 => |text, range, ends| ends.fill(range, |at| gpt2::end(text, at)),
            Self::Gpt2BetweenDigits => {
                |text, range, ends| ends.fill(range, |at| gpt2::between_digits(text, at))
            }
            Self::Cl100k => bitmap::cut::<Cl100k>,
            Self::O200k => bitmap::cut::<O200k>,
            Self::Llama3 => bitmap::cut::<Llama3>,
            Self::Qwen => bitmap::cut::<Qwen>,
            Self::Qwen35 => bitmap::cut::<Qwen35>,
            Self::Tekken => bitmap::cut::<Tekken>,
            Self::Kimi => |text, range, ends| ends.fill(range, |at| kimi::end(text, at)),
            Self::DeepSeek => bitmap::cut::<DeepSeek>,
            Self::Regex(_) | Self::Cuts(_) | Self::Whole => return None,
        })
    }

    /// The first piece after `place`, which moves to the end of that piece.
    pub(super) fn next(
        &self,
        text: &str,
        place: &mut Place,
        task: &Task<'_>,
    ) -> Result<Option<Range<usize>>, Error> {
        let from = place.at;
        let found = match self {
            Self::Cuts(cuts) => return cuts.next(text, place, task),
            Self::Regex(regex) => {
                place.searches.count(task)?;
                regex.next(text, from)?
            }
            _ => {
                let end = self.scan().filter(|_| from < text.len()).map(|scan| scan(text.as_bytes(), from));
                end.map(|end| from..end)
            }
        };
        place.at = found.as_ref().map_or(text.len(), |found| found.end);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters and groups of them that are repeated.
    const RUNS: [&str; 24] = [
        "a",
        "A",
        "é",
        "É",
        "ǅ",
        "日",
        "ʰ",
        "1",
        "३",
        " ",
        "\u{3000}",
        "\n",
        "!",
        "\u{301}",
        "\r\n",
        "!?",
        "日本",
        "日é",
        "AÉ",
        "日A",
        "A日Éé",
        " \n ",
        "\u{3000} \n\u{3000}\u{3000}",
        "\u{301}日AAAAAAAAAAAAAA",
    ];

    #[test]
    fn long_runs_are_cut_as_by_the_engine() {
        for pattern in [
            gpt2::PATTERN,
            cl100k::PATTERN,
            o200k::PATTERN,
            llama3::PATTERN,
            llama3::QWEN,
            llama3::QWEN35,
            tekken::PATTERN,
            kimi::PATTERN,
        ] {
            let (known, engine) = (Splitter::new(pattern).unwrap(), Regex::new(pattern).unwrap());
            let scan = known.scan().unwrap();
            let check = |text: &str| {
                let mut at = 0;
                while at < text.len() {
                    let wanted = engine.next(text, at).unwrap().unwrap();
                    assert_eq!(at..scan(text.as_bytes(), at), wanted, "{pattern} {text:?}");
                    at = wanted.end;
                }
            };
            for run in RUNS {
                for length in [31, 32, 33, 40, 41, 100] {
                    for behind in ["", "a", "é", "A", "日", "ʰ", "1", "!", " ", "\n", "'s", "\u{301}"] {
                        check(&format!("{}{behind}", run.repeat(length)));
                        check(&format!("A{}{behind}", run.repeat(length)));
                        check(&format!("日!{}{behind}", run.repeat(length)));
                    }
                }
            }
        }
    }
}
