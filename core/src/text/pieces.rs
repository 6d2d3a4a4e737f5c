//! Pieces of text that are known to be valid UTF-8, with their measures.
//!
//! The whole text is validated at once (simdutf8), not piece by piece; then only the boundaries of the pieces
//! are checked. If the text is ASCII, as most are, nothing is stored per piece.

use std::borrow::Cow;

use super::dedup::Repeats;
use super::measure::ascii_len;
use super::{Error, Measure, STRETCH, Span, Spans, StrKind, measure, transcode};
use crate::task::Stretches;
use crate::{Stopped, Task, memory};

/// The pieces of one text: all valid UTF-8, all measured.
#[derive(Debug)]
pub struct Pieces<'a> {
    text: Cow<'a, [u8]>,
    spans: Spans<'a>,
    /// Empty when the whole text is ASCII.
    measures: Vec<Measure>,
}

impl<'a> Pieces<'a> {
    /// Checks and measures the pieces of `text` at `spans`, which ascend and do not overlap.
    ///
    /// # Errors
    ///
    /// [`Error::NotUtf8`] if a piece is not valid UTF-8, `OutOfMemory` and `Stopped`.
    pub fn new(
        text: impl Into<Cow<'a, [u8]>>,
        spans: impl Into<Spans<'a>>,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let (text, spans) = (text.into(), spans.into());
        let measures =
            if check(&text, &spans, task)? { Vec::new() } else { measure_all(&text, &spans, task)? };
        Ok(Self { text, spans, measures })
    }

    /// The pieces of `text` at each list of spans. The spans must lie between whole characters; different
    /// lists may interleave. All of the text must be valid UTF-8.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn interleaved(text: &'a [u8], all: Vec<Vec<Span>>, task: &Task<'_>) -> Result<Vec<Self>, Error> {
        let whole = Span { start: 0, end: text.len() };
        let ascii = check(text, &vec![whole].into(), task)?;
        let each = |spans: Vec<Span>| {
            let spans = spans.into();
            let measures = if ascii { Vec::new() } else { measure_all(text, &spans, task)? };
            Ok(Self { text: Cow::Borrowed(text), spans, measures })
        };
        memory::collected(all.into_iter().map(each))
    }

    /// If many pieces are equal, returns each only once, and for every one of these pieces the index of its
    /// representative. Otherwise returns all of them.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] and [`Error::Stopped`].
    pub fn without_repeats(self, task: &Task<'_>) -> Result<(Self, Option<Vec<u32>>), Error> {
        let Some(repeats) = Repeats::find(&self.text, &self.spans, task)? else { return Ok((self, None)) };
        let spans = repeats.once(|piece| self.spans.get(piece))?.into();
        let measures =
            if self.measures.is_empty() { Vec::new() } else { repeats.once(|piece| self.measures[piece])? };
        Ok((Self { text: self.text, spans, measures }, Some(repeats.numbers)))
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The memory that the text takes if it was copied; zero if it is borrowed.
    pub fn owned_bytes(&self) -> usize {
        match &self.text {
            Cow::Borrowed(_) => 0,
            Cow::Owned(text) => text.capacity(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Calls `each` with each piece in order, until it fails.
    ///
    /// # Errors
    ///
    /// The first error of `each`.
    #[inline]
    pub fn for_each<E>(&self, mut each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut measures = self.measures.iter();
        self.spans.for_each(0..self.len(), |span| {
            let utf8 = &self.text[span.start..span.end];
            each(Piece::new(utf8, measures.next().copied().unwrap_or(Measure::of_ascii(utf8.len()))))
        })
    }

    /// The piece of this number.
    ///
    /// # Panics
    ///
    /// If `index` is out of range.
    #[inline]
    pub fn piece(&self, index: usize) -> Piece<'_> {
        Piece::new(self.utf8(index), self.measure(index))
    }

    #[inline]
    pub(super) fn spans(&self) -> &Spans<'a> {
        &self.spans
    }

    #[inline]
    pub(super) fn utf8(&self, index: usize) -> &[u8] {
        let span = self.spans.get(index);
        &self.text[span.start..span.end]
    }

    #[inline]
    pub(super) fn measure(&self, index: usize) -> Measure {
        self.measures.get(index).copied().unwrap_or(Measure::of_ascii(self.spans.get(index).len()))
    }
}

/// One piece of text, and how it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// How wide its characters are.
    pub kind: StrKind,
    /// How many characters it has.
    pub chars: usize,
    source: Source<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Utf8(&'a [u8]),
    /// The stored characters.
    Stored(&'a [u8]),
}

impl<'a> Piece<'a> {
    const fn new(utf8: &'a [u8], Measure { chars, kind }: Measure) -> Self {
        Self { kind, chars, source: Source::Utf8(utf8) }
    }

    pub(super) const fn stored(kind: StrKind, chars: usize, memory: &'a [u8]) -> Self {
        Self { kind, chars, source: Source::Stored(memory) }
    }

    /// How many bytes its characters take.
    #[inline]
    pub const fn bytes(&self) -> usize {
        self.chars * self.kind.width()
    }

    /// Writes its characters to `out`, which must have exactly their size and be aligned for them.
    ///
    /// # Panics
    ///
    /// If `out` has another size, or is not aligned.
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        match self.source {
            Source::Utf8(utf8) if self.kind != StrKind::Ascii => write_wide(utf8, self.kind, out),
            Source::Utf8(memory) | Source::Stored(memory) => copy(memory, out),
        }
    }
}

fn write_wide(utf8: &[u8], kind: StrKind, out: &mut [u8]) {
    match kind {
        StrKind::Ascii | StrKind::Latin1 => transcode(utf8, out),
        StrKind::Ucs2 => transcode::<u16>(utf8, bytemuck::cast_slice_mut(out)),
        StrKind::Ucs4 => transcode::<u32>(utf8, bytemuck::cast_slice_mut(out)),
    }
}

/// Copies between slices of the same length. Most are so short that a call of `memcpy` would take longer.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    if !(copy_ends::<8>(from, to) || copy_ends::<16>(from, to) || copy_ends::<4>(from, to)) {
        to.copy_from_slice(from);
    }
}

/// Copies `N` to `2 * N` bytes: the first `N` and the last `N`, which may overlap.
#[inline]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    let fits = (N..=2 * N).contains(&from.len()) && from.len() == to.len();
    if let (true, Some(first), Some(last)) = (fits, from.first_chunk::<N>(), from.last_chunk::<N>()) {
        to[..N].copy_from_slice(first);
        let rest = to.len() - N;
        to[rest..].copy_from_slice(last);
    }
    fits
}

/// Checks that all pieces are valid UTF-8; returns whether all are ASCII.
fn check(text: &[u8], spans: &Spans<'_>, task: &Task<'_>) -> Result<bool, Error> {
    let Some(last) = spans.len().checked_sub(1) else { return Ok(true) };
    let around = &text[spans.get(0).start..spans.get(last).end];
    if is_ascii(around, task)? {
        return Ok(true);
    }
    if !is_utf8(around, task)? || !have_whole_characters(text, spans) {
        check_each(text, spans, task)?;
    }
    Ok(false)
}

fn is_ascii(text: &[u8], task: &Task<'_>) -> Result<bool, Stopped> {
    for stretch in text.chunks(STRETCH) {
        task.check()?;
        if !stretch.is_ascii() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_utf8(text: &[u8], task: &Task<'_>) -> Result<bool, Stopped> {
    let mut rest = text;
    while !rest.is_empty() {
        task.check()?;
        let (stretch, after) = rest.split_at(whole_characters(rest, STRETCH));
        if simdutf8::basic::from_utf8(stretch).is_err() {
            return Ok(false);
        }
        rest = after;
    }
    Ok(true)
}

/// An offset of about `length` at which `text` can be cut between characters.
fn whole_characters(text: &[u8], length: usize) -> usize {
    let begins = |at: &usize| text.get(*at).is_none_or(|byte| !is_continuation(*byte));
    let at = length.min(text.len());
    (1..=at).rev().take(4).find(begins).unwrap_or(at)
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// Whether no piece begins or ends within a character. The text is valid UTF-8.
fn have_whole_characters(text: &[u8], spans: &Spans<'_>) -> bool {
    let is_between = |at| text.get(at).is_none_or(|byte| !is_continuation(*byte));
    let is_whole = |span: Span| is_between(span.start) && is_between(span.end);
    spans.for_each(0..spans.len(), |span| if is_whole(span) { Ok(()) } else { Err(()) }).is_ok()
}

fn check_each(text: &[u8], spans: &Spans<'_>, task: &Task<'_>) -> Result<(), Error> {
    for piece in 0..spans.len() {
        if piece % STRETCH == 0 {
            task.check()?;
        }
        let Span { start, end } = spans.get(piece);
        let bytes = &text[start..end];
        std::str::from_utf8(bytes).map_err(|error| {
            let at = start + error.valid_up_to();
            let copied = memory::copied(bytes).map(Vec::into_boxed_slice);
            copied.map_or_else(Error::from, |bytes| Error::NotUtf8 { piece, start, at, bytes })
        })?;
    }
    Ok(())
}

fn measure_all(text: &[u8], spans: &Spans<'_>, task: &Task<'_>) -> Result<Vec<Measure>, Error> {
    let mut measures = memory::with_capacity(spans.len())?;
    let mut stretches = Stretches::new(task, STRETCH);
    // Most pieces of most texts are ASCII. Searching many pieces at once for the next byte that is not ASCII
    // is faster than checking each piece: the end of a short loop is unpredictable.
    let mut ascii = 0..0;
    spans.for_each(0..spans.len(), |span| {
        stretches.check(span.end)?;
        if !(ascii.start..=ascii.end).contains(&span.start) {
            ascii = span.start..span.start + ascii_len(&text[span.start..], STRETCH);
        }
        let utf8 = &text[span.start..span.end];
        measures.push(if span.end <= ascii.end { Measure::of_ascii(utf8.len()) } else { measure(utf8) });
        Ok::<_, Error>(())
    })?;
    Ok(measures)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::split;
    use super::*;

    fn cut<'a>(text: &'a str, task: &Task<'_>) -> Pieces<'a> {
        Pieces::new(text.as_bytes(), split(text.as_bytes(), b",", task).unwrap(), task).unwrap()
    }

    fn all<T>(pieces: &Pieces<'_>, of: impl Fn(Piece<'_>) -> T) -> Vec<T> {
        let mut all = Vec::new();
        let Ok(()) = pieces.for_each(|piece| {
            all.push(of(piece));
            Ok::<_, Infallible>(())
        });
        all
    }

    fn written(piece: Piece<'_>) -> String {
        let mut units = vec![0u32; piece.chars];
        let out: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut units)[..piece.bytes()];
        piece.write(out);
        let code_points: Vec<u32> = match piece.kind {
            StrKind::Ascii | StrKind::Latin1 => out.iter().copied().map(u32::from).collect(),
            StrKind::Ucs2 => bytemuck::cast_slice::<_, u16>(out).iter().copied().map(u32::from).collect(),
            StrKind::Ucs4 => units,
        };
        code_points.into_iter().map(|c| char::from_u32(c).unwrap()).collect()
    }

    #[test]
    fn pieces_are_written_in_their_form() {
        let text = "plain,,naïve,día—noche,a 𐩡 letter,ж";
        let pieces = cut(text, &Task::new());
        assert_eq!(all(&pieces, written), text.split(',').collect::<Vec<_>>());
        let kinds = all(&pieces, |piece| piece.kind);
        assert_eq!(
            kinds,
            [StrKind::Ascii, StrKind::Ascii, StrKind::Latin1, StrKind::Ucs2, StrKind::Ucs4, StrKind::Ucs2]
        );
    }

    #[test]
    fn pieces_of_every_length_are_written_whole() {
        let letters: String = (0..80).map(|number| char::from(b'0' + number)).collect();
        let text = (0..80).map(|length| &letters[..length]).collect::<Vec<_>>().join(",");
        assert_eq!(all(&cut(&text, &Task::new()), written), text.split(',').collect::<Vec<_>>());
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_where_the_standard_library_does() {
        let task = Task::new();
        let mut bad = 0;
        for length in STRETCH - 3..STRETCH + 3 {
            for tail in [
                &b"\xFFabc"[..],
                b"\xE2\x80",
                b"\xC0\x80",
                b"\xED\xA0\x80",
                b"\xF4\x90\x80\x80",
                b"\x80\x80\x80\x80\x80",
            ] {
                let text =
                    ["é".repeat(length / 2).as_bytes(), "x".repeat(length % 2).as_bytes(), tail].concat();
                let at = std::str::from_utf8(&text).unwrap_err().valid_up_to();
                let span = Span { start: 0, end: text.len() };
                let error = Pieces::new(text.as_slice(), vec![span], &task).unwrap_err();
                assert_eq!(error, Error::NotUtf8 { piece: 0, start: 0, at, bytes: text.into() });
                bad += 1;
            }
        }
        assert_eq!(bad, 36);
    }

    #[test]
    fn a_boundary_inside_a_character_is_refused() {
        let text = "aé—".as_bytes();
        let found = |offsets: &[usize]| {
            let spans: Vec<_> =
                offsets.windows(2).map(|pair| Span { start: pair[0], end: pair[1] }).collect();
            match Pieces::new(text, spans, &Task::new()) {
                Err(Error::NotUtf8 { piece, at, .. }) => Err((piece, at)),
                other => Ok(other.unwrap().len()),
            }
        };
        assert_eq!(found(&[0, 3, 6]), Ok(2));
        assert_eq!(found(&[0, 2, 6]), Err((0, 1)));
        assert_eq!(found(&[1, 3, 4, 6]), Err((1, 3)));
        assert_eq!(found(&[0, 3, 5]), Err((1, 3)));
        assert_eq!(found(&[2, 3, 6]), Err((0, 2)));
    }

    #[test]
    fn each_piece_is_measured_for_itself() {
        let long = "y".repeat(2 * STRETCH);
        for pieces in [
            vec!["a", "é", "b", "", "c—", "d", "ÿ"],
            vec!["é", &long, "a", "b", "é", &long],
            vec![&long, &long, "ж", "a"],
        ] {
            let text = pieces.join(",");
            let expected: Vec<_> = pieces.iter().map(|piece| measure(piece.as_bytes())).collect();
            let measured = |piece: Piece<'_>| Measure { chars: piece.chars, kind: piece.kind };
            assert_eq!(all(&cut(&text, &Task::new()), measured), expected);
        }
    }

    #[test]
    fn what_lies_between_the_pieces_may_be_anything() {
        let text = b"a\xFF\xC3\xA9\x80b";
        let spans = vec![Span { start: 0, end: 1 }, Span { start: 2, end: 4 }, Span { start: 5, end: 6 }];
        let pieces = Pieces::new(text.as_slice(), spans, &Task::new()).unwrap();
        assert_eq!(all(&pieces, written), ["a", "é", "b"]);
    }
}
