//! Finds equal pieces, as in the columns of a table, so that each need be stored only once.
//!
//! First, an estimate of the number of different pieces from a sample of at most 2,048 ([`estimate`]); if
//! they repeat less than 4 times on average, or are more than 2^15, nothing further is done. Then one pass
//! over the pieces with a hash table whose probe sequences have at most 8 places. A piece that is not found
//! within these counts as new: the result may contain duplicates, but no input makes the search slow. The
//! time is linear in the number of pieces.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::{Error, STRETCH, Span, Spans};
use crate::Task;
use crate::memory::{self, OutOfMemory};

/// Fewer pieces are not compared: making their strings one by one takes less than a tenth of a millisecond.
const FEWEST: usize = 4096;

/// The size of the sample.
const SAMPLE: usize = 2048;

/// The sample is at most one piece in so many, so that a useless estimate costs nearly nothing.
const SAMPLE_SHARE: usize = 16;

/// The average number of occurrences from which finding a piece is faster than making another string.
const PAYS: usize = 4;

/// The most different pieces: with more, the table leaves the caches, and finding a piece takes as long as
/// making another string.
const MOST: usize = 1 << 15;

/// Longer pieces are not compared.
const LONGEST: usize = 64;

/// The length of a probe sequence, which bounds the time for any input.
const PROBES: usize = 8;

/// Which pieces of a text are equal.
#[derive(Debug)]
pub struct Repeats {
    /// The first occurrences, in order.
    pub firsts: Vec<u32>,
    /// For each piece, the index in `firsts` of one with the same bytes. A piece with the same bytes may
    /// occur in `firsts` more than once.
    pub numbers: Vec<u32>,
}

impl Repeats {
    /// Compares the pieces of `text`. `None` if too few of them repeat to make it worthwhile.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] and [`Error::Stopped`].
    pub fn find(text: &[u8], pieces: &Spans<'_>, task: &Task<'_>) -> Result<Option<Self>, Error> {
        let Ok(count) = u32::try_from(pieces.len()) else { return Ok(None) };
        if pieces.len() < FEWEST {
            return Ok(None);
        }
        let most = MOST.min(pieces.len() / PAYS);
        let different = estimate(text, pieces, most)?;
        if different > most {
            return Ok(None);
        }
        let mut table = Table::new(text, pieces, 2 * different + PROBES)?;
        let mut numbers = memory::with_capacity(pieces.len())?;
        for index in 0..count {
            if numbers.len() % STRETCH == 0 {
                task.check()?;
            }
            numbers.push(table.number(index)?);
        }
        Ok(Some(Self { firsts: table.firsts, numbers }))
    }

    /// Applies `of` to the first occurrences only.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`].
    pub fn once<T>(&self, of: impl Fn(usize) -> T) -> Result<Vec<T>, OutOfMemory> {
        memory::collected(self.firsts.iter().map(|&first| Ok(of(first as usize))))
    }
}

/// Estimates the number of different pieces from a sample, with Chao's estimator: the number of pieces that
/// occur once and twice in the sample tells how many do not occur in it (Anne Chao, "Nonparametric estimation
/// of the number of classes in a population", 1984). Returns a larger number than `most` early if it is clear
/// that there are more.
fn estimate(text: &[u8], pieces: &Spans<'_>, most: usize) -> Result<usize, OutOfMemory> {
    let sample = SAMPLE.min(pieces.len() / SAMPLE_SHARE);
    let mut table = Table::new(text, pieces, sample)?;
    let mut occurs = vec![0; sample];
    // n pieces make n² / 2 pairs. If there were `most` different pieces, five pairs among these would be
    // equal on average; that none is has a probability of less than one in a hundred.
    let soon = (2 * 5 * most).isqrt();
    for turn in 0..sample {
        if turn == soon && table.firsts.len() == turn {
            return Ok(pieces.len());
        }
        occurs[table.number(scattered(turn, pieces.len()))? as usize] += 1;
    }
    let of_those_that_occur = |times| occurs.iter().filter(|&&found| found == times).count();
    let (once, twice) = (of_those_that_occur(1), of_those_that_occur(2));
    Ok(table.firsts.len() + once * once / (2 * twice.max(1)))
}

/// A pseudorandom number below `end` for each turn: with a fixed step, the sample could coincide with a
/// period in the data.
#[allow(clippy::cast_possible_truncation, reason = "less than `end`, which fits")]
fn scattered(turn: usize, end: usize) -> u32 {
    ((u128::from(hash(&turn.to_le_bytes())) * end as u128) >> u64::BITS) as u32
}

/// A hash table of pieces.
struct Table<'a> {
    text: &'a [u8],
    pieces: &'a Spans<'a>,
    firsts: Vec<u32>,
    /// The key of each of `firsts`.
    keys: Vec<Key>,
    /// Indices into `firsts`, each near the place that its hash determines: twice the expected number,
    /// rounded up to a power of two.
    places: Vec<u32>,
    most: usize,
}

const EMPTY: u32 = u32::MAX;

impl<'a> Table<'a> {
    fn new(text: &'a [u8], pieces: &'a Spans<'a>, most: usize) -> Result<Self, OutOfMemory> {
        let places = memory::filled(EMPTY, (2 * most).next_power_of_two().max(PROBES))?;
        let (firsts, keys) = (memory::with_capacity(most)?, memory::with_capacity(most)?);
        Ok(Self { text, pieces, firsts, keys, places, most })
    }

    /// The index in `firsts` of a piece equal to this one; a new one if none was found.
    #[inline]
    fn number(&mut self, index: u32) -> Result<u32, OutOfMemory> {
        let piece = self.pieces.get(index as usize);
        if piece.len() > LONGEST {
            return self.add(index, Key(0));
        }
        let key = Key::of(self.text, piece);
        let hash = key.hash();
        for probe in 0..PROBES {
            let at = (hash + probe) & (self.places.len() - 1);
            let number = self.places[at];
            if number == EMPTY {
                let number = self.add(index, key)?;
                if (number as usize) < self.most {
                    self.places[at] = number;
                }
                return Ok(number);
            }
            if self.keys[number as usize] == key
                && (key.is_whole() || *self.bytes(number) == self.text[piece.start..piece.end])
            {
                return Ok(number);
            }
        }
        self.add(index, key)
    }

    fn add(&mut self, index: u32, key: Key) -> Result<u32, OutOfMemory> {
        memory::push(&mut self.firsts, index)?;
        memory::push(&mut self.keys, key)?;
        Ok((self.firsts.len() - 1) as u32)
    }

    fn bytes(&self, number: u32) -> &'a [u8] {
        let Span { start, end } = self.pieces.get(self.firsts[number as usize] as usize);
        &self.text[start..end]
    }
}

/// What is compared first: all bytes of a short piece and their number, or a hash of a longer one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(u128);

impl Key {
    const BYTES: usize = size_of::<Self>();
    /// Above the bytes.
    const LEN_SHIFT: u32 = u128::BITS - u8::BITS;

    #[inline]
    fn of(text: &[u8], piece: Span) -> Self {
        let len = piece.len();
        if len >= Self::BYTES {
            return Self(u128::from(hash(&text[piece.start..piece.end])) | u128::MAX << Self::LEN_SHIFT);
        }
        let bytes = text[piece.start..].first_chunk().copied().unwrap_or_else(|| {
            let mut bytes = [0; Self::BYTES];
            bytes[..len].copy_from_slice(&text[piece.start..piece.end]);
            bytes
        });
        let beyond = u128::MAX << (u8::BITS as usize * len);
        Self(u128::from_le_bytes(bytes) & !beyond | (len as u128) << Self::LEN_SHIFT)
    }

    /// Whether the key determines the piece.
    #[inline]
    fn is_whole(self) -> bool {
        self.0 >> Self::LEN_SHIFT < Self::BYTES as u128
    }

    #[inline]
    fn hash(self) -> usize {
        hash(&self.0.to_le_bytes()) as usize
    }
}

#[inline]
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pieces: &[String]) -> Option<Repeats> {
        let mut end = 0;
        let span = |piece: &String| {
            let start = end;
            end += piece.len();
            Span { start, end }
        };
        let spans = pieces.iter().map(span).collect::<Vec<_>>().into();
        let found = Repeats::find(pieces.concat().as_bytes(), &spans, &Task::new()).unwrap();
        if let Some(Repeats { firsts, numbers }) = &found {
            let kept = numbers.iter().map(|&number| &pieces[firsts[number as usize] as usize]);
            assert!(kept.eq(pieces.iter()));
            assert!(firsts.is_sorted());
        }
        found
    }

    /// `count` pieces, each one of `different`, in random order.
    fn pieces(count: usize, different: usize, make: impl Fn(usize) -> String) -> Vec<String> {
        (0..count).map(|index| make(scattered(index, different) as usize)).collect()
    }

    #[test]
    fn each_piece_is_kept_once() {
        for length in [0, 1, 2, 7, 12, 13, 14, 15, 16, 30, 61] {
            let found = find(&pieces(20_000, 700, |n| format!("{n:03}{}", "x".repeat(length)))).unwrap();
            assert_eq!(found.firsts.len(), 700, "{length}");
        }
    }

    #[test]
    fn pieces_that_differ_in_length_alone_are_different() {
        let found = find(&pieces(FEWEST, 40, |n| "\0".repeat(n))).unwrap();
        assert_eq!(found.firsts.len(), 40);
    }

    #[test]
    fn a_step_in_the_data_is_no_matter() {
        for different in [1, 2, 64, 1000, 4999] {
            let found = find(&(0..100_000).map(|n| (n % different).to_string()).collect::<Vec<_>>()).unwrap();
            assert_eq!(found.firsts.len(), different);
        }
    }

    #[test]
    fn what_seldom_repeats_is_left_alone() {
        assert!(find(&(0..100_000).map(|n| n.to_string()).collect::<Vec<_>>()).is_none());
        assert!(find(&pieces(100_000, 60_000, |n| n.to_string())).is_none());
        assert!(find(&pieces(400_000, 2 * MOST, |n| n.to_string())).is_none());
        assert!(find(&pieces(FEWEST - 1, 1, |n| n.to_string())).is_none());
        let some_empty = |n: usize| if n.is_multiple_of(10) { String::new() } else { n.to_string() };
        assert!(find(&(0..100_000).map(some_empty).collect::<Vec<_>>()).is_none());
    }

    #[test]
    fn long_ones_are_kept_each() {
        assert!(find(&pieces(10_000, 10, |n| n.to_string().repeat(LONGEST + 1))).is_none());
        let one_long = |n: usize| n.to_string().repeat(if n == 49 { LONGEST } else { 1 });
        let pieces = pieces(10_000, 50, one_long);
        let long = pieces.iter().filter(|piece| piece.len() > LONGEST).count();
        assert!(long > 100);
        assert_eq!(find(&pieces).unwrap().firsts.len(), 49 + long);
    }

    #[test]
    fn more_than_expected_may_be_kept_twice() {
        let late = (0..9000).map(|n| format!("late {n}"));
        let early = pieces(100_000, 10, |n| n.to_string());
        let found = find(&early.into_iter().chain(late.clone()).chain(late).collect::<Vec<_>>()).unwrap();
        assert!((9010..=18_010).contains(&found.firsts.len()));
    }

    #[test]
    fn a_stopped_task_stops_the_search() {
        let task = Task::new();
        task.stop();
        let spans = vec![Span { start: 0, end: 1 }; FEWEST].into();
        assert!(Repeats::find(b"a", &spans, &task).is_err());
    }
}
