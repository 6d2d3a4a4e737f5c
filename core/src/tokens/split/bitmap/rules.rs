//! In what the patterns differ.

use super::super::{cl100k, deepseek, llama3, o200k, tekken};

/// What `\p{M}` is to a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Marks {
    /// A symbol like any other.
    Symbols,
    /// A letter.
    Letters,
    /// A letter in a word, and a symbol among symbols.
    Both,
}

/// Where `'s` and the like are cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Contractions {
    /// They are pieces of their own.
    Apart,
    /// They belong to the word before them.
    Attached,
    /// They are not known.
    Unknown,
}

/// A pattern.
pub(in super::super) trait Rules {
    const MARKS: Marks;
    const CONTRACTIONS: Contractions;
    /// A word ends where an upper case letter follows one that is not.
    const CASES: bool;
    /// Numbers are cut into three digits each, not one.
    const THREE_NUMBERS: bool;
    /// Slashes, too, belong to the symbols before them if line breaks are in between.
    const SLASHES: bool;
    /// White space at the end of the text is one piece even if it has line breaks.
    const BLANK_END: bool;
    /// Numbers and runs of `deepseek.rs`'s ideographs are cut out first, and what lies between is a text of its own.
    /// Symbols are told apart from characters of no class, which are pieces of their own.
    const CUT_OUT: bool = false;

    /// The same pattern, piece by piece.
    fn end(text: &[u8], at: usize) -> usize;
}

pub(in super::super) struct Cl100k;
pub(in super::super) struct O200k;
pub(in super::super) struct Llama3;
pub(in super::super) struct Qwen;
pub(in super::super) struct Qwen35;
pub(in super::super) struct Tekken;
pub(in super::super) struct DeepSeek;

impl Rules for Cl100k {
    const MARKS: Marks = Marks::Symbols;
    const CONTRACTIONS: Contractions = Contractions::Apart;
    const CASES: bool = false;
    const THREE_NUMBERS: bool = true;
    const SLASHES: bool = false;
    const BLANK_END: bool = true;

    #[inline(always)]
    fn end(text: &[u8], at: usize) -> usize {
        cl100k::end(text, at)
    }
}

impl Rules for Llama3 {
    const MARKS: Marks = Marks::Symbols;
    const CONTRACTIONS: Contractions = Contractions::Apart;
    const CASES: bool = false;
    const THREE_NUMBERS: bool = true;
    const SLASHES: bool = false;
    const BLANK_END: bool = false;

    #[inline(always)]
    fn end(text: &[u8], at: usize) -> usize {
        llama3::end(text, at)
    }
}

impl Rules for Qwen {
    const MARKS: Marks = Marks::Symbols;
    const CONTRACTIONS: Contractions = Contractions::Apart;
    const CASES: bool = false;
    const THREE_NUMBERS: bool = false;
    const SLASHES: bool = false;
    const BLANK_END: bool = false;

    #[inline(always)]
    fn end(text: &[u8], at: usize) -> usize {
        llama3::qwen(text, at)
    }
}

impl Rules for Qwen35 {
    const MARKS: Marks = Marks::Letters;
    const CONTRACTIONS: Contractions = Contractions::Apart;
    const CASES: bool = false;
    const THREE_NUMBERS: bool = false;
    const SLASHES: bool = false;
    const BLANK_END: bool = false;

    #[inline(always)]
    fn end(text: &[u8], at: usize) -> usize {
        llama3::qwen35(text, at)
    }
}

impl Rules for O200k {
    const MARKS: Marks = Marks::Both;
    const CONTRACTIONS: Contractions = Contractions::Attached;
    const CASES: bool = true;
    const THREE_NUMBERS: bool = true;
    const SLASHES: bool = true;
    const BLANK_END: bool = false;

    #[inline(always)]
    fn end(text: &[u8], at: usize) -> usize {
        o200k::end(text, at)
    }
}

impl Rules for Tekken {
    const MARKS: Marks = Marks::Both;
    const CONTRACTIONS: Contractions = Contractions::Unknown;
    const CASES: bool = true;
    const THREE_NUMBERS: bool = false;
    const SLASHES: bool = true;
    const BLANK_END: bool = false;

    #[inline(always)]
    fn end(text: &[u8], at: usize) -> usize {
        tekken::end(text, at)
    }
}

impl Rules for DeepSeek {
    const MARKS: Marks = Marks::Letters;
    const CONTRACTIONS: Contractions = Contractions::Unknown;
    const CASES: bool = false;
    const THREE_NUMBERS: bool = true;
    const SLASHES: bool = false;
    const BLANK_END: bool = false;
    const CUT_OUT: bool = true;

    #[inline(always)]
    fn end(text: &[u8], at: usize) -> usize {
        deepseek::end(text, at)
    }
}
