//! The tokens of words that occur often, found with one cache miss.
//!
//! The table has the tokens of the vocabulary, the pieces of text whose tokens the cache of a thread had, and new pieces
//! whose line has no other. A piece is entered once, and never changed or removed. All threads read and enter without
//! locks. An entry has the bytes of a piece of up to 16 bytes, and up to six tokens; two entries share a line of the
//! processor's caches. A piece whose line is full is entered in the line beside it; if that is full, too, it stays out.
//! Either is noted in the full line, so that for most pieces one line is read. So the memory is bounded, a text made to
//! fill the table costs only what it could have gained, and the table changes the time of an answer, never the answer.
//!
//! A thread claims an entry by exchanging the word with the end of the piece for one that no piece has, writes the
//! others, and at last that end. If a fork happens at that moment, the entry stays unused in the child.

#![allow(unsafe_code)]

use super::table::Window;
use crate::memory::{self, OutOfMemory};
use crate::pages::{Pages, prefetch};
use bytemuck::Zeroable;
use std::ops::Range;
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
const LONGEST: usize = Window::SIZE;

/// The most tokens of a piece.
const MOST: usize = 6;

/// The most tokens that lie in an entry as they are.
const PLAIN: usize = 4;

/// The bits of each of more tokens, and how many of these are in one word of an entry.
const TOKEN: u32 = 20;
const HALF: usize = 3;

/// Where the number of tokens lies, and its bits.
const COUNT: u32 = 60;
const COUNT_BITS: u64 = 7;

/// In `more` of a full line's second entry: pieces of this line were to be entered beside it.
const OVERFLOWS: u64 = 1 << 63;

/// The most pieces whose places are asked for at once.
pub(super) const MANY: usize = 64;

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
    /// The piece, as a [`WordKey`] has it. The second word is 0 if the entry is free, or [`CLAIMED`].
    first: AtomicU64,
    second: AtomicU64,
    /// The first two tokens, and in `more` two others and, above these, the number of all, and [`OVERFLOWS`]. If there
    /// are more, each word has three.
    tokens: AtomicU64,
    more: AtomicU64,
}

/// A piece, padded with [`PAD`], or [`WordKey::NONE`]. The second word differs by [`NEVER`] from the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
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

/// A byte that UTF-8 does not have.
const PAD: u8 = 0xff;

/// Bytes that no piece ends in: UTF-8 does not have the lowest. So no piece has the second word of a free entry.
const NEVER: u64 = u64::MAX - 2;

/// The second word of an entry that a thread is writing. For the same reason no piece has it.
const CLAIMED: u64 = 1;

/// For each length the padding behind so many bytes; at the end [`WordKey::NONE`], for those that are too long.
const PADS: [[u64; 2]; LONGEST + 2] = {
    let mut pads = [[u64::MAX; 2]; LONGEST + 2];
    let mut length = 1;
    while length <= LONGEST {
        pads[length] = match length {
            ..8 => [u64::MAX << (8 * length), u64::MAX],
            8 => [0, u64::MAX],
            9..LONGEST => [0, u64::MAX << (8 * (length - 8))],
            _ => [0, 0],
        };
        length += 1;
    }
    pads
};

impl WordKey {
    /// A key that is never found.
    pub(super) const NONE: Self = Self { first: u64::MAX, second: u64::MAX ^ NEVER };

    /// The key of `text[at..at + length]`; `NONE` if that is too long.
    #[inline]
    pub(super) fn new(text: &[u8], at: usize, length: usize) -> Self {
        let ([first, second], pad) = (Window::at(text, at).words(), PADS[length.min(LONGEST + 1)]);
        Self { first: first | pad[0], second: (second | pad[1]) ^ NEVER }
    }

    /// The key of a token; `NONE` if a shorter piece would have the same one.
    pub(super) fn of_token(tokens: &[u8], token: Range<usize>) -> Self {
        if tokens[token.clone()].last() == Some(&PAD) {
            return Self::NONE;
        }
        Self::new(tokens, token.start, token.len())
    }

    /// Whether no entry has the key: it is [`NONE`](Self::NONE), or that of a token that no text has.
    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.first == u64::MAX || self.second <= CLAIMED
    }

    /// The number of the line in which the key is looked for first.
    #[inline]
    pub(super) fn line(self) -> usize {
        let hash = self.first.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.second;
        let hash = hash.wrapping_mul(0xb7e1_5162_8aed_2a6b) >> 32;
        ((hash * LINES as u64) >> 32) as usize
    }
}

impl<'a> Place<'a> {
    #[inline]
    fn expect(key: WordKey, lines: &'a [Line]) -> Self {
        let line = &lines[key.line()];
        prefetch(line);
        Self { key, line }
    }
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
        key.is_none() || home.overflows() && beside.is_full()
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
        Place::expect(key, &self.lines)
    }

    /// The same for pieces, of which the first begins at `start`: no more than [`MANY`].
    #[inline(never)] // so that the loop has all registers
    pub(super) fn expect_all<'a>(
        &'a self,
        text: &[u8],
        mut start: usize,
        ends: &[usize],
        places: &mut [Place<'a>; MANY],
    ) {
        let lines = &self.lines[..]; // read from `self` once
        for (place, &end) in places.iter_mut().zip(ends) {
            *place = Place::expect(WordKey::new(text, start, end - start), lines);
            start = end;
        }
    }

    /// Appends the tokens of pieces, up to the first one that is not there. Returns how many are.
    #[inline(never)] // as above
    pub(super) fn append(&self, places: &[Place<'_>], out: &mut Vec<u32>) -> Result<usize, OutOfMemory> {
        memory::reserve(out, places.len() * MOST)?;
        let (before, spare) = (out.len(), out.spare_capacity_mut().as_mut_ptr());
        let (mut known, mut written) = (0, 0);
        for &place in places {
            let Some(entry) = self.find(place) else { break };
            // SAFETY: there is memory for MOST tokens of each piece, and those before had no more.
            written += unsafe { entry.write(spare.add(written).cast()) };
            known += 1;
        }
        // SAFETY: so many were written.
        unsafe { out.set_len(before + written) };
        Ok(known)
    }

    /// The entry of a piece; `None` if there is none.
    #[inline]
    fn find<'a>(&'a self, Place { key, line }: Place<'a>) -> Option<&'a Entry> {
        match line.find(key) {
            None if line.overflows() => self.find_beside(key),
            found => found,
        }
    }

    #[cold]
    fn find_beside(&self, key: WordKey) -> Option<&Entry> {
        self.home(key).1.find(key)
    }

    /// Whether there is room for a piece that has not been there before: its line has no other. Most pieces do not come
    /// again, so there must be room left for those that do.
    #[inline]
    pub(super) fn has_room_for_new(&self, key: WordKey) -> bool {
        !key.is_none() && self.home(key).0.is_empty()
    }

    /// Enters a piece, if there is room.
    pub(super) fn enter(&self, key: WordKey, tokens: &[u32]) {
        if key.is_none() || tokens.is_empty() || tokens.len() > MOST {
            return;
        }
        let (words, (home, beside)) = (packed(tokens), self.home(key));
        if !home.enter(key, words) {
            // Before the piece is published: a thread that finds it there must not enter it again, and must find it later.
            home.note_overflow();
            beside.enter(key, words);
        }
    }
}

impl Line {
    /// Whether both entries are free.
    #[inline]
    fn is_empty(&self) -> bool {
        self.0[0].second.load(Ordering::Relaxed) == 0
    }

    /// Whether no entry is free. None ever becomes free again.
    #[inline]
    fn is_full(&self) -> bool {
        self.0[1].second.load(Ordering::Relaxed) != 0
    }

    /// Whether pieces of this line may lie beside it, or found no room there.
    #[inline]
    fn overflows(&self) -> bool {
        self.0[1].more.load(Ordering::Relaxed) & OVERFLOWS != 0
    }

    fn note_overflow(&self) {
        if !self.overflows() {
            self.0[1].more.fetch_or(OVERFLOWS, Ordering::Relaxed);
        }
    }

    /// Enters a piece, unless it is there; false if there is no room.
    fn enter(&self, key: WordKey, [tokens, more]: [u64; 2]) -> bool {
        for entry in &self.0 {
            let claim = || entry.second.compare_exchange(0, CLAIMED, Ordering::Relaxed, Ordering::Relaxed);
            if entry.second.load(Ordering::Relaxed) == 0 && claim().is_ok() {
                entry.first.store(key.first, Ordering::Relaxed);
                entry.tokens.store(tokens, Ordering::Relaxed);
                // Another thread may have noted that the line overflows.
                entry.more.fetch_or(more, Ordering::Relaxed);
                entry.second.store(key.second, Ordering::Release);
                return true;
            }
            // One that another thread is about to publish may not be there yet when the vocabulary is said to be.
            if entry.has(key) {
                return true;
            }
        }
        false
    }

    /// Looks at both entries, without a branch between them: which one has a piece cannot be predicted.
    #[inline]
    fn find(&self, key: WordKey) -> Option<&Entry> {
        let entry = &self.0[usize::from(self.0[1].has(key))];
        entry.has(key).then_some(entry)
    }
}

impl Entry {
    #[inline]
    fn has(&self, key: WordKey) -> bool {
        let (second, first) = (self.second.load(Ordering::Acquire), self.first.load(Ordering::Relaxed));
        (first ^ key.first) | (second ^ key.second) == 0
    }

    /// Writes the tokens, and returns their number.
    ///
    /// # Safety
    ///
    /// There is memory for [`MOST`] tokens at `to`.
    #[inline]
    unsafe fn write(&self, to: *mut u32) -> usize {
        let (tokens, more) = (self.tokens.load(Ordering::Relaxed), self.more.load(Ordering::Relaxed));
        let count = (more >> COUNT & COUNT_BITS) as usize;
        // SAFETY: four tokens, as the caller says.
        unsafe { to.cast::<[[u32; 2]; 2]>().write([halves(tokens), halves(more & ((1 << COUNT) - 1))]) };
        if count > PLAIN {
            let six = [unpacked(tokens), unpacked(more)];
            // SAFETY: six tokens, as the caller says.
            unsafe { to.cast::<[[u32; HALF]; 2]>().write(six) };
        }
        count
    }
}

/// The two words of an entry for tokens.
fn packed(tokens: &[u32]) -> [u64; 2] {
    let mut six = [0; MOST];
    six[..tokens.len()].copy_from_slice(tokens);
    let [a, b, c, d, e, f] = six.map(u64::from);
    let words = match tokens.len() {
        ..=PLAIN => [a | b << 32, c | d << 32],
        _ => [a | b << TOKEN | c << (2 * TOKEN), d | e << TOKEN | f << (2 * TOKEN)],
    };
    [words[0], words[1] | (tokens.len() as u64) << COUNT]
}

#[inline]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> u32::BITS) as u32]
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
        let known = words.append(&[words.expect(key)], &mut out).unwrap();
        (known > 0).then_some(out)
    }

    #[test]
    fn a_piece_has_its_tokens() {
        let words = Words::new(1 << TOKEN);
        let text: Vec<u8> = (0..0xf5).collect(); // the bytes of UTF-8, so that no piece is there twice
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
    fn several_pieces_are_appended_up_to_one_that_is_not_there() {
        let words = Words::new(1 << TOKEN);
        let text: Vec<u8> = (0..0xf5).collect();
        for length in 1..=MOST {
            let tokens: Vec<u32> = (0..length as u32).map(|number| (1 << TOKEN) - 1 - number).collect();
            words.enter(WordKey::new(&text, length, length), &tokens);
        }
        let lengths = |lengths: &[usize]| -> Vec<_> {
            lengths.iter().map(|&length| words.expect(WordKey::new(&text, length, length))).collect()
        };
        for known in [&[][..], &[1], &[6, 1, 4, 5, 2, 3], &[5; MANY]] {
            for unknown in [None, Some(7), Some(17)] {
                let places = lengths(&[known, unknown.as_slice(), unknown.as_slice(), &[1]].concat());
                let end = if unknown.is_none() { known.len() + 1 } else { known.len() };
                let mut out = vec![7];
                assert_eq!(words.append(&places, &mut out).unwrap(), end);
                assert_eq!(out.len(), 1 + known.iter().sum::<usize>() + end - known.len());
            }
        }
    }

    #[test]
    fn free_entries_and_those_that_are_written_have_no_piece() {
        let words = Words::new(1 << TOKEN);
        let zeros = |length| WordKey::new(&[0; 17], 0, length);
        for length in 1..=17 {
            assert_eq!(found(&words, zeros(length)), None);
            words.enter(zeros(length), &[length as u32]);
            assert_eq!(found(&words, zeros(length)), (length <= LONGEST).then(|| vec![length as u32]));
        }
        for last in 0xfc..=0xfe {
            let token = [b"\0\0\0\0\0\0\0\0", &[last][..]].concat();
            let key = WordKey::of_token(&token, 0..9);
            words.enter(key, &[1]);
            assert_eq!(words.may_lack(key), last != 0xfe);
            assert_eq!(words.home(key).0.is_empty(), last != 0xfe);
        }
    }

    #[test]
    fn no_token_is_taken_for_a_shorter_piece() {
        let words = Words::new(1 << TOKEN);
        let tokens = b"a\xff\xffb\xff\xc3";
        words.fill(
            [(0..2), (0..3), (1..2), (0..4), (3..6)]
                .into_iter()
                .map(|token| (WordKey::of_token(tokens, token), 1)),
        );
        for piece in ["a", "b", "a\u{ff}"] {
            assert_eq!(found(&words, WordKey::new(piece.as_bytes(), 0, piece.len())), None);
        }
        assert_eq!(found(&words, WordKey::new(tokens, 3, 3)), Some(vec![1]));
    }

    #[test]
    fn new_pieces_leave_room_for_those_that_come_again() {
        let words = Words::new(1 << TOKEN);
        let first = WordKey::new(b"0", 0, 1);
        let same_line = |number: &u32| WordKey::new(&number.to_le_bytes(), 0, 4).line() == first.line();
        let number = (0_u32..).find(same_line).unwrap();
        let second = WordKey::new(&number.to_le_bytes(), 0, 4);
        assert!(words.has_room_for_new(first) && words.has_room_for_new(second));
        words.enter(first, &[1]);
        assert!(!words.has_room_for_new(second));
        words.enter(second, &[2]);
        assert_eq!((found(&words, first), found(&words, second)), (Some(vec![1]), Some(vec![2])));
        assert!(!words.has_room_for_new(WordKey::NONE));
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

    #[test]
    fn that_holds_while_other_threads_enter_the_same() {
        let key = |number: u32| WordKey::new(&number.to_le_bytes(), 0, 4);
        for _ in 0..5 {
            let words = Words::new(1 << TOKEN);
            std::thread::scope(|scope| {
                for step in [7_919, 104_729, 199_999] {
                    let words = &words;
                    scope.spawn(move || {
                        let numbers = (0..200_000_u32).map(|number| number.wrapping_mul(step) % 500_000);
                        numbers.for_each(|number| words.enter(key(number), &[number]));
                    });
                }
                words.fill((0..400_000).map(|number| (key(number), number)));
                assert!((0..400_000).all(|number| match found(&words, key(number)) {
                    Some(tokens) => tokens == [number],
                    None => words.may_lack(key(number)),
                }));
            });
        }
    }
}
