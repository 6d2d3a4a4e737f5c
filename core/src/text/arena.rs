//! Arenas: the stored characters of many pieces, each followed by a zero.
//!
//! String objects that are views point into an arena and keep it alive. An arena is filled off the lock and
//! never changes afterwards. It holds about 1 MB of text, so that one surviving string keeps little memory
//! alive; its memory goes back to a [`Recycler`], because fresh pages cost more than filling them. Pieces of
//! ASCII are stored once, as UTF-8; others also in the array of their kind.

use std::convert::Infallible;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::recycle::Recycler;
use super::{Error, Measure, Piece, Pieces, Span, StrKind, Unit, transcode};
use crate::memory::{self, OutOfMemory};
use crate::{Stopped, Task};

/// The amount of text after which a new arena is begun; a longer piece has an arena of its own. A string that
/// survives keeps at most this much other text alive.
const FULL: usize = 1 << 20;

/// The stored characters of some pieces, and their positions.
#[derive(Debug, Clone)]
pub struct Arena {
    memory: Arc<Memory>,
    stored: Vec<Stored>,
}

/// Characters in their kinds, and their UTF-8; each piece is followed by a zero.
///
/// Nothing in it moves or changes once it is filled.
#[derive(Debug, Default)]
pub struct Memory {
    utf8: Vec<u8>,
    latin1: Vec<u8>,
    ucs2: Vec<u16>,
    ucs4: Vec<u32>,
}

impl Arena {
    /// Stores all `pieces`, in order, in as many arenas as necessary.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`] if a piece has 1 GiB or more, `OutOfMemory` and `Stopped`.
    pub fn store(pieces: &Pieces<'_>, task: &Task<'_>) -> Result<Vec<Self>, Error> {
        let mut arenas = Vec::new();
        Self::for_each(pieces, task, |arena| Ok::<_, Error>(memory::push(&mut arenas, arena)?))?;
        Ok(arenas)
    }

    /// Passes one arena after another to `each`, until it fails.
    ///
    /// # Errors
    ///
    /// As [`store`](Self::store), or the first error of `each`.
    pub fn for_each<E: From<Error> + From<Stopped>>(
        pieces: &Pieces<'_>,
        task: &Task<'_>,
        mut each: impl FnMut(Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = 0;
        while next < pieces.len() {
            task.check()?;
            let sizes = Sizes::for_pieces(pieces, next)?;
            each(Self::filled(pieces, next, &sizes).map_err(Error::from)?)?;
            next += sizes.pieces;
        }
        Ok(())
    }

    fn filled(pieces: &Pieces<'_>, first: usize, sizes: &Sizes) -> Result<Self, OutOfMemory> {
        let mut memory = Memory::with_capacity(sizes)?;
        let mut stored = memory::with_capacity(sizes.pieces)?;
        let range = first..first + sizes.pieces;
        if sizes.is_ascii() {
            memory.add_ascii(pieces, range, sizes.units[0], &mut stored);
        } else {
            stored.extend(range.map(|index| memory.add(pieces.utf8(index), pieces.measure(index))));
        }
        Ok(Self { memory: Arc::new(memory), stored })
    }

    /// The positions of its pieces.
    pub fn stored(&self) -> &[Stored] {
        &self.stored
    }

    /// The memory that they point into.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Its pieces.
    #[inline]
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = Piece<'_>> {
        let memory = StrKind::ALL.map(|kind| self.memory.of(kind));
        self.stored.iter().map(move |stored| stored.piece(memory[stored.kind() as usize]))
    }

    /// The piece at the position `stored`.
    #[inline]
    pub fn piece(&self, stored: Stored) -> Piece<'_> {
        stored.piece(self.memory.of(stored.kind()))
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.memory.bytes() + size_of::<Stored>() * self.stored.capacity()
    }
}

/// The capacity of a usual arena: full, with a last piece that is not long.
const USUAL: usize = FULL + FULL / 8;

static BYTES: Recycler<u8> = Recycler::new(USUAL);
static UCS2: Recycler<u16> = Recycler::new(USUAL);
static UCS4: Recycler<u32> = Recycler::new(USUAL);

impl Drop for Memory {
    fn drop(&mut self) {
        BYTES.give(mem::take(&mut self.utf8));
        BYTES.give(mem::take(&mut self.latin1));
        UCS2.give(mem::take(&mut self.ucs2));
        UCS4.give(mem::take(&mut self.ucs4));
    }
}

impl Memory {
    /// Reserves all memory in advance, so that nothing has to grow later.
    fn with_capacity(sizes: &Sizes) -> Result<Self, OutOfMemory> {
        let [utf8, latin1, ucs2, ucs4] = sizes.units;
        Ok(Self {
            utf8: BYTES.take(utf8)?,
            latin1: BYTES.take(latin1)?,
            ucs2: UCS2.take(ucs2)?,
            ucs4: UCS4.take(ucs4)?,
        })
    }

    /// Adds the pieces of `range`, which are ASCII and take `bytes` including their zeros. `stored` has
    /// capacity for all.
    fn add_ascii(
        &mut self,
        pieces: &Pieces<'_>,
        range: Range<usize>,
        bytes: usize,
        stored: &mut Vec<Stored>,
    ) {
        self.utf8.resize(bytes, 0);
        let mut next = 0;
        let text = pieces.text();
        let Ok(()) = pieces.spans().for_each(range, |span| {
            let (at, length) = (next, span.len());
            copy_piece(text, span, &mut self.utf8[at..]);
            next += length + 1;
            stored.push(Stored::new(at, length, at, length, StrKind::Ascii));
            Ok::<_, Infallible>(())
        });
    }

    #[inline]
    fn add(&mut self, utf8: &[u8], Measure { chars, kind }: Measure) -> Stored {
        let start = self.utf8.len();
        self.utf8.extend_from_slice(utf8);
        self.utf8.push(0);
        let at = match kind {
            StrKind::Ascii => start,
            StrKind::Latin1 => append(&mut self.latin1, utf8, chars),
            StrKind::Ucs2 => append(&mut self.ucs2, utf8, chars),
            StrKind::Ucs4 => append(&mut self.ucs4, utf8, chars),
        };
        Stored::new(start, utf8.len(), at, chars, kind)
    }

    /// The array that [`Stored::at`] points into; for ASCII, the one of [`Stored::utf8`].
    #[inline]
    pub fn of(&self, kind: StrKind) -> &[u8] {
        match kind {
            StrKind::Ascii => &self.utf8,
            StrKind::Latin1 => &self.latin1,
            StrKind::Ucs2 => bytemuck::cast_slice(&self.ucs2),
            StrKind::Ucs4 => bytemuck::cast_slice(&self.ucs4),
        }
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.utf8.capacity()
            + self.latin1.capacity()
            + size_of::<u16>() * self.ucs2.capacity()
            + size_of::<u32>() * self.ucs4.capacity()
    }
}

/// Most pieces of tables are at most this long.
const SHORT: usize = 16;

/// Writes a piece and a zero to the beginning of `out`. A short piece is copied as a constant number of
/// bytes; the surplus is overwritten by the next piece.
#[inline]
fn copy_piece(text: &[u8], span: Span, out: &mut [u8]) {
    let length = span.len();
    match (text[span.start..].first_chunk::<SHORT>(), out.first_chunk_mut::<SHORT>()) {
        (Some(from), Some(to)) if length <= SHORT => *to = *from,
        _ => out[..length].copy_from_slice(&text[span.start..span.end]),
    }
    out[length] = 0;
}

/// Appends the characters and a zero to `memory`; returns their offset in bytes.
fn append<T: Unit + Default>(memory: &mut Vec<T>, utf8: &[u8], chars: usize) -> usize {
    let start = memory.len();
    memory.resize(start + chars + 1, T::default());
    transcode(utf8, &mut memory[start..start + chars]);
    start * size_of::<T>()
}

/// The number of pieces that go to one arena, and the memory they need with their zeros: bytes of UTF-8, and
/// characters of each wider kind.
struct Sizes {
    pieces: usize,
    units: [usize; 4],
}

impl Sizes {
    fn is_ascii(&self) -> bool {
        self.units[1..] == [0; 3]
    }

    fn for_pieces(pieces: &Pieces<'_>, first: usize) -> Result<Self, Error> {
        let mut sizes = Self { pieces: 0, units: [0; 4] };
        for index in first..pieces.len() {
            let bytes = pieces.utf8(index).len();
            if sizes.units[0] >= FULL || sizes.pieces > 0 && bytes >= FULL {
                break;
            }
            if bytes > Stored::LONGEST {
                return Err(Error::TooLong { piece: index, bytes });
            }
            sizes.pieces += 1;
            sizes.units[0] += bytes + 1;
            let Measure { chars, kind } = pieces.measure(index);
            if kind != StrKind::Ascii {
                sizes.units[kind as usize] += chars + 1;
            }
        }
        Ok(sizes)
    }
}

/// The position of a piece in the memory of its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    utf8: u32,
    utf8_len: u32,
    at: u32,
    /// The number of characters, and the kind in the upper two bits.
    chars: u32,
}

const CHARS_BITS: u32 = 30;

impl Stored {
    const LONGEST: usize = (1 << CHARS_BITS) - 1;

    /// All values fit: an arena holds less than `FULL` plus the longest piece.
    #[allow(clippy::cast_possible_truncation, reason = "see above")]
    const fn new(utf8: usize, utf8_len: usize, at: usize, chars: usize, kind: StrKind) -> Self {
        let chars = chars as u32 | (kind as u32) << CHARS_BITS;
        Self { utf8: utf8 as u32, utf8_len: utf8_len as u32, at: at as u32, chars }
    }

    /// The offset of its UTF-8 in the memory of ASCII.
    #[inline]
    pub const fn utf8(self) -> usize {
        self.utf8 as usize
    }

    /// The length of its UTF-8.
    #[inline]
    pub const fn utf8_len(self) -> usize {
        self.utf8_len as usize
    }

    /// The offset of its characters in the memory of their kind, in bytes.
    #[inline]
    pub const fn at(self) -> usize {
        self.at as usize
    }

    /// How many characters it has.
    #[inline]
    pub const fn chars(self) -> usize {
        self.chars as usize & Self::LONGEST
    }

    /// How wide they are.
    #[inline]
    pub const fn kind(self) -> StrKind {
        StrKind::ALL[(self.chars >> CHARS_BITS) as usize]
    }

    /// The piece, in the memory of its kind.
    #[inline]
    fn piece(self, memory: &[u8]) -> Piece<'_> {
        let (kind, chars, at) = (self.kind(), self.chars(), self.at());
        Piece::stored(kind, chars, &memory[at..at + chars * kind.width()])
    }
}

#[cfg(test)]
mod tests {
    use super::super::split;
    use super::*;

    fn stored(text: &str) -> Vec<Arena> {
        let task = Task::new();
        let spans = split(text.as_bytes(), b",", &task).unwrap();
        Arena::store(&Pieces::new(text.as_bytes(), spans, &task).unwrap(), &task).unwrap()
    }

    fn characters(arena: &Arena, stored: Stored) -> String {
        let width = stored.kind().width();
        let memory = &arena.memory.of(stored.kind())[stored.at()..];
        let unit =
            |n: usize| memory[n * width..][..width].iter().rev().fold(0, |c, &byte| c << 8 | u32::from(byte));
        assert_eq!(unit(stored.chars()), 0, "a zero follows");
        (0..stored.chars()).map(|n| char::from_u32(unit(n)).unwrap()).collect()
    }

    fn utf8(arena: &Arena, stored: Stored) -> &str {
        let memory = &arena.memory.of(StrKind::Ascii)[stored.utf8()..];
        assert_eq!(memory[stored.utf8_len()], 0, "a zero follows");
        std::str::from_utf8(&memory[..stored.utf8_len()]).unwrap()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn characters_and_utf8_of_every_piece_are_kept() {
        let text = "plain,,naïve,día—noche,a 𐩡 letter,ж,ÿ,more";
        let arenas = stored(text);
        let [arena] = arenas.as_slice() else { panic!("one arena") };
        let expected: Vec<_> = text.split(',').collect();
        assert_eq!(arena.stored().iter().map(|s| characters(arena, *s)).collect::<Vec<_>>(), expected);
        assert_eq!(arena.stored().iter().map(|s| utf8(arena, *s)).collect::<Vec<_>>(), expected);
        let written: Vec<_> = arena.pieces().map(|piece| piece.chars).collect();
        assert_eq!(written, expected.iter().map(|piece| piece.chars().count()).collect::<Vec<_>>());
    }

    #[test]
    fn short_and_long_pieces_of_ascii_are_kept() {
        for first in 0..20 {
            for second in 0..40 {
                let text = ["a".repeat(first), "b".repeat(second), "c".repeat(second % 7)].join(",");
                for text in [&text, &format!("{text},{text},1")] {
                    let arenas = stored(text);
                    let kept: Vec<_> =
                        arenas[0].stored().iter().map(|stored| utf8(&arenas[0], *stored)).collect();
                    assert_eq!(kept, text.split(',').collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn long_texts_go_to_several_arenas() {
        let long = "y".repeat(3 * FULL);
        let text = [vec!["x"; FULL], vec![&long], vec!["z"; 9]].concat().join(",");
        let arenas = stored(&text);
        let pieces: Vec<_> = arenas.iter().map(|arena| arena.stored().len()).collect();
        assert_eq!(pieces, [FULL / 2, FULL / 2, 1, 9]);
        let lengths = arenas.iter().flat_map(|arena| arena.stored()).map(|stored| stored.utf8_len());
        assert!(lengths.eq(text.split(',').map(str::len)));
        let held: usize = arenas.iter().map(Arena::bytes).sum();
        let needed = text.len() + 1 + size_of::<Stored>() * (FULL + 10);
        assert!((needed..=needed + arenas.len() * (USUAL - FULL)).contains(&held), "{held} for {needed}");
    }
}
