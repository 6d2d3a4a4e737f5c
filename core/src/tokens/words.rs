//! The tokens of words that occur often, found with one cache miss.
//!
//! The table has the tokens of the vocabulary, and the pieces of text whose tokens the cache of a thread had. A piece
//! is entered once, and never changed or removed. All threads read and enter without locks. An entry has the bytes of
//! a piece of up to 15 bytes, and up to six tokens; two entries share a line of the processor's caches. A piece whose
//! line is full is entered in the line beside it, which processors tend to fetch as well; if that is full, too, it
//! stays out. So the memory is bounded, a text made to fill the table costs only what it could have gained, and the
//! table changes the time of an answer, never the answer.
//!
//! A thread claims an entry by exchanging the word with the length, writes the others, and at last the tokens. An
//! entry without tokens is not there yet; if a fork happens at that moment, it stays unused in the child.

use super::table::Window;
use crate::pages::{Pages, prefetch};
use bytemuck::Zeroable;
use std::hint::select_unpredictable;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The lines of the table, an even number: 14 MB, which the system provides as they are written.
const LINES: usize = 7 << 15;

/// The amount of text, in bytes, after which the table is used: for less, its memory is not worth it.
const ENOUGH: usize = 256 << 10;

/// The shortest text that is counted: if they all were, the threads of a program with many short ones would all write to one
/// number.
const COUNTED: usize = 256;

/// The shortest text before which the vocabulary is entered, which takes 10 ms: shorter ones are encoded under the
/// interpreter's lock.
const FILLED: usize = 4 << 10;

/// The tokens of the vocabulary whose lines the processor fetches together.
const AT_ONCE: usize = 64;

/// The longest piece, in bytes.
const LONGEST: usize = Window::SIZE - 1;

/// The most tokens of a piece.
const MOST: usize = 6;

/// The tokens in one word of an entry, and the bits of each.
const HALF: usize = 3;
const TOKEN: u32 = 20;

/// Where the number of tokens lies.
const COUNT: u32 = 60;

/// The memory beyond its tokens that a piece needs in the output: see [`append`].
pub(super) const SURPLUS: usize = HALF;

/// Pieces and their tokens.
pub(super) struct Words {
    /// Empty if there is no memory, or if tokens have more bits than an entry has for them.
    lines: Pages<Line>,
    /// The bytes of text so far, until there are enough.
    seen: AtomicUsize,
    /// Whether a thread enters the vocabulary or has done so.
    is_filled: AtomicBool,
    /// Whether the vocabulary has been entered.
    has_vocabulary: AtomicBool,
}

/// Whether to use the table for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// There has not been enough text.
    No,
    /// The vocabulary has not been entered yet.
    Partly,
    /// The caller has to [`fill`](Words::fill) it first.
    ToFill,
    Fully,
}

#[derive(Zeroable)]
#[repr(C, align(64))]
struct Line([Entry; 2]);

#[derive(Zeroable)]
#[repr(C)]
struct Entry {
    /// The piece, padded with zeros; the last byte is its length. 0 in `second` if the entry is free.
    first: AtomicU64,
    second: AtomicU64,
    /// The first three tokens, and the number of all. 0 if the entry is not there yet.
    tokens: AtomicU64,
    /// The other three.
    more: AtomicU64,
}

/// A piece, or [`WordKey::NONE`].
#[derive(Clone, Copy)]
pub(super) struct WordKey {
    first: u64,
    second: u64,
}

/// A piece, and where it is looked for.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) key: WordKey,
    line: &'a Line,
}

impl WordKey {
    /// A key that is never found.
    pub(super) const NONE: Self = Self { first: 0, second: 0 };

    /// The key of `text[at..at + length]`; `NONE` if that is too long.
    #[inline]
    pub(super) fn new(text: &[u8], at: usize, length: usize) -> Self {
        const MASKS: [[u64; 2]; LONGEST + 1] = masks();
        if length > LONGEST {
            return Self::NONE;
        }
        let ([first, second], mask) = (Window::at(text, at).words(), MASKS[length]);
        Self { first: first & mask[0], second: second & mask[1] | (length as u64) << 56 }
    }

    #[inline]
    fn line(self) -> usize {
        let hash = self.first.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.second;
        let hash = hash.wrapping_mul(0xb7e1_5162_8aed_2a6b) >> 32;
        ((hash * LINES as u64) >> 32) as usize
    }
}

/// For each length the bits of so many bytes.
const fn masks() -> [[u64; 2]; LONGEST + 1] {
    let mut masks = [[0; 2]; LONGEST + 1];
    let mut length = 1;
    while length <= LONGEST {
        masks[length] = match length {
            ..8 => [(1 << (8 * length)) - 1, 0],
            8 => [u64::MAX, 0],
            _ => [u64::MAX, (1 << (8 * (length - 8))) - 1],
        };
        length += 1;
    }
    masks
}

impl Words {
    /// A table for tokens below `limit`.
    pub(super) fn new(limit: usize) -> Self {
        let fits = limit <= 1 << TOKEN;
        let lines = if fits { Pages::zeroed(LINES).unwrap_or_default() } else { Pages::default() };
        let (is_filled, has_vocabulary) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { lines, seen: AtomicUsize::new(0), is_filled, has_vocabulary }
    }

    /// Whether so much text was encoded that the table is worth its memory. `length` bytes more are counted.
    #[inline]
    pub(super) fn use_for(&self, length: usize) -> Use {
        if self.has_vocabulary.load(Ordering::Acquire) { Use::Fully } else { self.decide(length) }
    }

    #[cold]
    fn decide(&self, length: usize) -> Use {
        let mut seen = self.seen.load(Ordering::Relaxed);
        if seen < ENOUGH && length >= COUNTED && !self.lines.is_empty() {
            seen = self.seen.fetch_add(length, Ordering::Relaxed) + length;
        }
        match seen >= ENOUGH {
            true if length >= FILLED && !self.is_filled.swap(true, Ordering::Relaxed) => Use::ToFill,
            true => Use::Partly,
            false => Use::No,
        }
    }

    /// Enters the tokens of the vocabulary: pieces that are one token. Those that come first find room.
    pub(super) fn fill(&self, tokens: impl Iterator<Item = (WordKey, u32)>) {
        let mut tokens = tokens.fuse();
        let mut expected = [(WordKey::NONE, 0); AT_ONCE];
        loop {
            let mut count = 0;
            for (place, token) in expected.iter_mut().zip(&mut tokens) {
                self.expect(token.0);
                *place = token;
                count += 1;
            }
            if count == 0 {
                break;
            }
            for (key, token) in &expected[..count] {
                self.enter(*key, &[*token]);
            }
        }
        self.has_vocabulary.store(true, Ordering::Release);
    }

    /// Whether a piece that was not found may still be a token: it is too long, or there was no room. The vocabulary must
    /// have been entered before the search began: [`Use::Fully`], or [`Use::ToFill`] and [`fill`](Self::fill).
    #[inline]
    pub(super) fn may_lack(&self, key: WordKey) -> bool {
        let (home, beside) = self.home(key);
        key.second == 0 || home.is_full() && beside.is_full()
    }

    /// The line for a key, and the one that is used when that is full.
    #[inline]
    fn home(&self, key: WordKey) -> (&Line, &Line) {
        let line = key.line();
        (&self.lines[line], &self.lines[line ^ 1])
    }

    /// The place of a piece. Has the processor fetch what [`find`](Self::find) reads.
    #[inline]
    pub(super) fn expect(&self, key: WordKey) -> Place<'_> {
        let line = &self.lines[key.line()];
        prefetch(line);
        Place { key, line }
    }

    /// The tokens of a piece; `None` if it is not there.
    #[inline]
    pub(super) fn find<'a>(&'a self, Place { key, line }: Place<'a>) -> Option<Found<'a>> {
        match line.find(key) {
            None if line.is_full() => self.home(key).1.find(key),
            found => found,
        }
    }

    /// Enters a piece, if there is room.
    pub(super) fn enter(&self, key: WordKey, tokens: &[u32]) {
        if key.second == 0 || tokens.is_empty() || tokens.len() > MOST {
            return;
        }
        let packed =
            |tokens: &[u32]| tokens.iter().rev().fold(0, |packed, &token| packed << TOKEN | u64::from(token));
        let (tokens, more) = (tokens.len(), tokens.split_at(tokens.len().min(HALF)));
        let (home, beside) = self.home(key);
        for entry in home.0.iter().chain(&beside.0) {
            let claimed = entry.second.compare_exchange(0, key.second, Ordering::Relaxed, Ordering::Relaxed);
            match claimed {
                Ok(_) => {
                    entry.first.store(key.first, Ordering::Relaxed);
                    entry.more.store(packed(more.1), Ordering::Relaxed);
                    entry.tokens.store(packed(more.0) | (tokens as u64) << COUNT, Ordering::Release);
                    return;
                }
                // One that another thread is about to publish may not be there yet when the vocabulary is said to be.
                Err(_) if entry.has(key) && entry.tokens.load(Ordering::Acquire) != 0 => return,
                Err(_) => {}
            }
        }
    }
}

impl Line {
    /// Whether no entry is free. None ever becomes free again.
    #[inline]
    fn is_full(&self) -> bool {
        self.0[1].second.load(Ordering::Relaxed) != 0
    }

    /// Looks at both entries, without a branch between them: which one has a piece cannot be predicted.
    #[inline]
    fn find(&self, key: WordKey) -> Option<Found<'_>> {
        let [first, second] = &self.0;
        let tokens = [first.tokens.load(Ordering::Acquire), second.tokens.load(Ordering::Acquire)];
        let found = [
            select_unpredictable(first.has(key), tokens[0], 0),
            select_unpredictable(second.has(key), tokens[1], 0),
        ];
        // Two threads may have entered a piece twice, and one of them may not have written all of it yet.
        let more = &self.0[usize::from(found[0] == 0)].more;
        let tokens = found[0] | found[1];
        (tokens != 0).then_some(Found { tokens, more })
    }
}

impl Entry {
    #[inline]
    fn has(&self, key: WordKey) -> bool {
        let (first, second) = (self.first.load(Ordering::Relaxed), self.second.load(Ordering::Relaxed));
        (first ^ key.first) | (second ^ key.second) == 0
    }
}

/// The tokens of a piece that was found.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    tokens: u64,
    more: &'a AtomicU64,
}

impl Found<'_> {
    /// Appends the tokens. There must be capacity for [`SURPLUS`] more, because three are always written.
    #[inline]
    pub(super) fn append(self, out: &mut Vec<u32>) {
        let (before, count) = (out.len(), (self.tokens >> COUNT) as usize);
        out.extend_from_slice(&unpacked(self.tokens));
        if count > HALF {
            out.extend_from_slice(&unpacked(self.more.load(Ordering::Relaxed)));
        }
        out.truncate(before + count);
    }
}

#[inline]
fn unpacked(packed: u64) -> [u32; HALF] {
    let token = |at: u32| (packed >> (at * TOKEN)) as u32 & ((1 << TOKEN) - 1);
    [token(0), token(1), token(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &Words, key: WordKey) -> Option<Vec<u32>> {
        let mut out = Vec::new();
        words.find(words.expect(key))?.append(&mut out);
        Some(out)
    }

    #[test]
    fn a_piece_has_its_tokens() {
        let words = Words::new(1 << TOKEN);
        let text: Vec<u8> = (0..=255).collect(); // so that no piece is there twice
        let tokens = |at: usize, length: usize| -> Vec<u32> {
            (0..=(at + length) % MOST).map(|number| (number * 170_000 + at) as u32).collect()
        };
        for length in 1..=LONGEST {
            for at in 0..text.len() - length {
                let key = WordKey::new(&text, at, length);
                assert_eq!(found(&words, key), None);
                words.enter(key, &tokens(at, length));
                words.enter(key, &[1]);
            }
        }
        for length in 1..=LONGEST {
            for at in 0..text.len() - length {
                assert_eq!(found(&words, WordKey::new(&text, at, length)), Some(tokens(at, length)));
            }
        }
    }

    #[test]
    fn what_does_not_fit_stays_out() {
        let words = Words::new(10);
        assert!(found(&words, WordKey::new(&[7; 16], 0, 16)).is_none());
        for (key, tokens) in
            [(WordKey::NONE, &[1][..]), (WordKey::new(b"a", 0, 1), &[0; 7]), (WordKey::new(b"b", 0, 1), &[])]
        {
            words.enter(key, tokens);
            assert!(found(&words, key).is_none());
        }
        assert!(Words::new((1 << TOKEN) + 1).lines.is_empty());
    }

    #[test]
    fn keys_are_the_same_at_the_end_of_a_text_and_differ_in_length() {
        let parts = |key: WordKey| (key.first, key.second);
        let long = [b'x'; 64];
        for length in 1..=LONGEST {
            let short = WordKey::new(&long[..length], 0, length);
            assert_eq!(parts(WordKey::new(&long, 7, length)), parts(short));
        }
        assert_ne!(parts(WordKey::new(b"a\0", 0, 1)), parts(WordKey::new(b"a\0", 0, 2)));
    }

    #[test]
    fn full_lines_keep_what_they_have() {
        let words = Words::new(1 << TOKEN);
        let line = WordKey::new(b"0", 0, 1).line();
        let keys: Vec<WordKey> = (0_u32..)
            .map(|number| WordKey::new(&number.to_le_bytes(), 0, 4))
            .filter(|key| key.line() == line)
            .take(6)
            .collect();
        for (number, &key) in (1..).zip(&keys) {
            words.enter(key, &[number]);
        }
        let kept: Vec<_> = keys.iter().map(|&key| found(&words, key)).collect();
        let wanted = [1, 2, 3, 4].map(|number| Some(vec![number]));
        assert_eq!((&kept[..4], &kept[4..]), (&wanted[..], &[None, None][..]));
        assert!(words.may_lack(keys[5]));
    }

    #[test]
    fn threads_that_enter_at_once_find_right_tokens_or_none() {
        let words = Words::new(1 << TOKEN);
        let key = |number: u32| WordKey::new(&number.to_le_bytes(), 0, 4);
        let tokens = |number: u32| vec![number & 0xf_ffff; 1 + number as usize % MOST];
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let words = &words;
                scope.spawn(move || {
                    for round in 0..200_000_u32 {
                        let number = (round + thread * 7) % 50_000 * 31;
                        match found(words, key(number)) {
                            Some(known) => assert_eq!(known, tokens(number)),
                            None => words.enter(key(number), &tokens(number)),
                        }
                    }
                });
            }
        });
        let known = (0..50_000).filter(|number| found(&words, key(number * 31)).is_some()).count();
        assert!(known > 49_900, "{known}");
    }

    #[test]
    fn it_is_used_after_enough_text() {
        let words = Words::new(10);
        assert_eq!(words.use_for(ENOUGH - COUNTED), Use::No);
        assert_eq!(words.use_for(COUNTED), Use::Partly);
        assert_eq!(words.use_for(1), Use::Partly);
        assert_eq!(words.use_for(FILLED), Use::ToFill);
        assert_eq!(words.use_for(FILLED), Use::Partly);
        words.fill([(WordKey::new(b"one", 0, 3), 1)].into_iter());
        assert_eq!(words.use_for(1), Use::Fully);
        let words = Words::new(10);
        assert!((0..2 * ENOUGH / COUNTED).all(|_| words.use_for(COUNTED - 1) == Use::No));
        assert_eq!(Words::new(usize::MAX).use_for(2 * ENOUGH), Use::No);
    }

    #[test]
    fn with_the_vocabulary_what_is_not_found_is_no_token() {
        let words = Words::new(1 << TOKEN);
        let key = |number: u32| WordKey::new(&number.to_le_bytes(), 0, 4);
        words.fill((0..200_000).map(|number| (key(number), number)));
        assert!((0..200_000).all(|number| match found(&words, key(number)) {
            Some(tokens) => tokens == [number],
            None => words.may_lack(key(number)),
        }));
        assert!((200_000..300_000).filter(|&number| words.may_lack(key(number))).count() < 2_000);
        assert!(words.may_lack(WordKey::NONE));
    }
}
