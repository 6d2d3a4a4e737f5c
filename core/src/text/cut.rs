//! Finds the boundaries of pieces: lines, separated parts, table fields, offsets.
//!
//! Single bytes are searched 64 at a time: a comparison per register gives a bit mask, and the positions of
//! its bits are written to an array for a window of 4 KB before they are used. Separating the search from the
//! use keeps its inner loop predictable, as simdjson does in its first stage. Line ends of two or three bytes
//! are found by a mask of candidates that is checked afterwards. Separators of several bytes go to memchr's
//! substring search.

use memchr::memmem;
use wide::u8x16;

use super::{Error, STRETCH, Span};
use crate::memory::OutOfMemory;
use crate::{Task, memory};

/// The characters that end a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnds {
    /// Those of Python's `str.splitlines`: `\n`, `\r`, `\r\n`, `\v`, `\f`, U+001C to U+001E, U+0085, U+2028,
    /// U+2029.
    Any,
    /// `\n` alone.
    Newline,
    /// `\n`, and `\r\n`.
    NewlineOrCrlf,
}

/// The lines of `text`, including their ends if `keep`. A text that ends with a line end has no empty line
/// after it.
///
/// ```
/// use offlock_core::text::{LineEnds, lines};
/// use offlock_core::Task;
///
/// let text = b"one\r\ntwo\n";
/// let lines = lines(text, LineEnds::Any, false, &Task::new())?;
/// let lines: Vec<_> = lines.iter().map(|line| &text[line.start..line.end]).collect();
/// assert_eq!(lines, [b"one", b"two"]);
/// # Ok::<_, offlock_core::text::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::OutOfMemory`] and [`Error::Stopped`].
pub fn lines(text: &[u8], ends: LineEnds, keep: bool, task: &Task<'_>) -> Result<Vec<Span>, Error> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut take = |end: Option<Span>| {
        if let Some(end) = end.filter(|end| end.start >= start) {
            memory::push(&mut lines, Span { start, end: if keep { end.end } else { end.start } })?;
            start = end.end;
        }
        Ok(())
    };
    match ends {
        LineEnds::Any => for_each_marked(text, may_end_lines, task, |at| take(line_end(text, at)))?,
        LineEnds::Newline => {
            for_each_match(text, is_newline, task, |at| take(Some(Span { start: at, end: at + 1 })))?;
        }
        LineEnds::NewlineOrCrlf => {
            for_each_match(text, is_newline, task, |at| {
                let start = if text[..at].ends_with(b"\r") { at - 1 } else { at };
                take(Some(Span { start, end: at + 1 }))
            })?;
        }
    }
    if start < text.len() {
        memory::push(&mut lines, Span { start, end: text.len() })?;
    }
    Ok(lines)
}

/// The parts of `text` between the occurrences of `separator`, which is not empty: one more than there are
/// occurrences.
///
/// # Errors
///
/// [`Error::OutOfMemory`] and [`Error::Stopped`].
pub fn split(text: &[u8], separator: &[u8], task: &Task<'_>) -> Result<Vec<Span>, Error> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let take = |at| {
        memory::push(&mut pieces, Span { start, end: at })?;
        start = at + separator.len();
        Ok(())
    };
    if let [byte] = *separator {
        for_each_match(text, |bytes| bytes.simd_eq(splat(byte)), task, take)?;
    } else {
        for_each_occurrence(text, separator, task, take)?;
    }
    memory::push(&mut pieces, Span { start, end: text.len() })?;
    Ok(pieces)
}

/// Calls `found` with the offset of each occurrence of `separator` that does not overlap the one before, in
/// order. The task is checked where there are no occurrences, too.
fn for_each_occurrence(
    text: &[u8],
    separator: &[u8],
    task: &Task<'_>,
    mut found: impl FnMut(usize) -> Result<(), OutOfMemory>,
) -> Result<(), Error> {
    let finder = memmem::Finder::new(separator);
    let stretch = STRETCH.max(separator.len());
    let mut from = 0;
    while from < text.len() {
        task.check()?;
        // All that begin in the stretch.
        let part = &text[from..text.len().min(from + stretch + separator.len() - 1)];
        let mut next = from + stretch;
        for at in finder.find_iter(part) {
            found(from + at)?;
            next = next.max(from + at + separator.len());
        }
        from = next;
    }
    Ok(())
}

/// The parts of `text` between each offset and the next: one fewer than there are offsets.
///
/// # Errors
///
/// [`Error::OffsetOutside`], [`Error::OffsetDecreases`], `OutOfMemory` and `Stopped`.
pub fn offsets(
    text: &[u8],
    offsets: impl IntoIterator<Item = i64>,
    task: &Task<'_>,
) -> Result<Vec<Span>, Error> {
    let mut offsets = offsets.into_iter().enumerate();
    let Some((_, first)) = offsets.next() else { return Ok(Vec::new()) };
    let mut start = checked(text, 0, first)?;
    let mut pieces = memory::with_capacity(offsets.size_hint().0)?;
    for (index, offset) in offsets {
        if index % STRETCH == 0 {
            task.check()?;
        }
        let end = checked(text, index, offset)?;
        if end < start {
            return Err(Error::OffsetDecreases { index, offset, before: start });
        }
        memory::push(&mut pieces, Span { start, end })?;
        start = end;
    }
    Ok(pieces)
}

fn checked(text: &[u8], index: usize, offset: i64) -> Result<usize, Error> {
    usize::try_from(offset).ok().filter(|&offset| offset <= text.len()).ok_or(Error::OffsetOutside {
        index,
        offset,
        end: text.len(),
    })
}

/// The fields of the records of `text`, column by column. Records end with `\n` or `\r\n`, fields with the
/// byte `separator`. Every record has as many fields as the first one.
///
/// # Errors
///
/// [`Error::FieldCount`] if a record has another number of fields than the first one, `OutOfMemory` and
/// `Stopped`.
pub fn columns(text: &[u8], separator: u8, task: &Task<'_>) -> Result<Vec<Vec<Span>>, Error> {
    let mut columns: Vec<Vec<Span>> = Vec::new();
    let (mut at, mut start, mut record, mut field) = (0, 0, 0, 0);
    let mut wrong = None;
    let mut take = |end: usize, last: bool| {
        if wrong.is_some() {
            return Ok(());
        }
        if record == 0 {
            memory::push(&mut columns, Vec::new())?;
        }
        if let Some(column) = columns.get_mut(field) {
            let ends_line = last && end < text.len();
            let end = if ends_line { before_return(text, start, end) } else { end };
            memory::push(column, Span { start, end })?;
        }
        field += 1;
        start = end + 1;
        if last {
            if field != columns.len() {
                wrong = Some(Error::FieldCount { record, at, found: field, expected: columns.len() });
            }
            (at, field, record) = (start, 0, record + 1);
        }
        Ok(())
    };
    let ends = |bytes: u8x16| bytes.simd_eq(splat(b'\n')) | bytes.simd_eq(splat(separator));
    for_each_match(text, ends, task, |at| take(at, text[at] == b'\n'))?;
    if !matches!(text, [] | [.., b'\n']) {
        take(text.len(), true)?;
    }
    wrong.map_or(Ok(columns), Err)
}

/// `end`, or the offset of a `\r` right before it.
fn before_return(text: &[u8], start: usize, end: usize) -> usize {
    if text[start..end].ends_with(b"\r") { end - 1 } else { end }
}

const BLOCK: usize = u64::BITS as usize;

/// Calls `found` with the offset of each byte that `matches` marks, in order.
#[inline]
fn for_each_match(
    text: &[u8],
    matches: impl Fn(u8x16) -> u8x16,
    task: &Task<'_>,
    found: impl FnMut(usize) -> Result<(), OutOfMemory>,
) -> Result<(), Error> {
    for_each_marked(text, |block| mask(block, &matches), task, found)
}

/// Calls `found` with the offset of each byte for which `mark` sets a bit in its block, in order.
#[inline]
fn for_each_marked(
    text: &[u8],
    mark: impl Fn(&[u8; BLOCK]) -> u64,
    task: &Task<'_>,
    mut found: impl FnMut(usize) -> Result<(), OutOfMemory>,
) -> Result<(), Error> {
    let mut places = [0; WINDOW + 1];
    let mut base = 0;
    for stretch in text.chunks(STRETCH) {
        task.check()?;
        for window in stretch.chunks(WINDOW) {
            for &place in marked_places(window, &mark, &mut places) {
                found(base + place as usize)?;
            }
            base += window.len();
        }
    }
    Ok(())
}

/// The number of bytes that are searched before the positions are used. The processor predicts the end of a
/// long loop over positions, but not the number of bits in one mask.
const WINDOW: usize = 4096;

/// The positions at which `mark` sets a bit, in order.
#[inline]
fn marked_places<'a>(
    window: &[u8],
    mark: impl Fn(&[u8; BLOCK]) -> u64,
    places: &'a mut [u32; WINDOW + 1],
) -> &'a [u32] {
    let (blocks, rest) = window.as_chunks::<BLOCK>();
    let mut count = 0;
    let mut base = 0;
    for block in blocks {
        count = add_bits(mark(block), base, count, places);
        base += u64::BITS;
    }
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let inside = (1 << rest.len()) - 1;
    count = add_bits(mark(&last) & inside, base, count, places);
    &places[..count]
}

/// Writes the positions of the bits of `mask` after the first `count` ones, and returns the new count.
#[inline]
fn add_bits(mut mask: u64, base: u32, mut count: usize, places: &mut [u32; WINDOW + 1]) -> usize {
    // The first position is written unconditionally, because the branch would be unpredictable.
    places[count] = base + mask.trailing_zeros();
    count += usize::from(mask != 0);
    mask &= mask.wrapping_sub(1);
    while mask != 0 {
        places[count] = base + mask.trailing_zeros();
        count += 1;
        mask &= mask - 1;
    }
    count
}

/// One bit for each byte of `block`, the first byte lowest.
#[inline]
fn mask(block: &[u8; BLOCK], matches: impl Fn(u8x16) -> u8x16) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    parts.iter().enumerate().fold(0, |mask, (number, part)| {
        mask | u64::from(matches(u8x16::new(*part)).to_bitmask()) << (16 * number)
    })
}

#[inline]
fn is_newline(bytes: u8x16) -> u8x16 {
    bytes.simd_eq(splat(b'\n'))
}

#[inline]
fn splat(byte: u8) -> u8x16 {
    u8x16::splat(byte)
}

/// Marks the last bytes of all line ends, and some other bytes, which [`line_end`] rejects.
#[inline]
fn may_end_lines(block: &[u8; BLOCK]) -> u64 {
    let controls = mask(block, is_late_control);
    if block.is_ascii() {
        return controls;
    }
    let first = mask(block, may_begin_wide);
    let begins_before = 0b11; // the bytes before the block are not known here
    controls | mask(block, may_end_wide) & (first << 1 | first << 2 | begins_before)
}

/// The ASCII controls from `\n` on.
#[inline]
fn is_late_control(bytes: u8x16) -> u8x16 {
    let distance = bytes - splat(b'\n');
    distance.min(splat(0x1F - b'\n')).simd_eq(distance)
}

/// The first bytes of line ends of two or three bytes.
#[inline]
fn may_begin_wide(bytes: u8x16) -> u8x16 {
    (bytes | splat(NEXT_LINE[0] ^ LINE_SEPARATOR[0])).simd_eq(splat(LINE_SEPARATOR[0]))
}

/// The last bytes of line ends of two or three bytes.
#[inline]
fn may_end_wide(bytes: u8x16) -> u8x16 {
    bytes.simd_eq(splat(NEXT_LINE[1])) | (bytes & splat(0xFE)).simd_eq(splat(LINE_SEPARATOR[2]))
}

/// U+0085.
const NEXT_LINE: &[u8] = b"\xC2\x85";
/// U+2028; U+2029, the paragraph separator, differs in the last bit.
const LINE_SEPARATOR: &[u8] = b"\xE2\x80\xA8";

/// The line end whose last byte, or whose `\r`, is at `at`, if there is one.
#[inline]
fn line_end(text: &[u8], at: usize) -> Option<Span> {
    let end = at + 1;
    match text[at] {
        b'\r' if text.get(end) == Some(&b'\n') => Some(Span { start: at, end: end + 1 }),
        0x85 => text[..end].ends_with(NEXT_LINE).then(|| Span { start: at - 1, end }),
        0xA8 | 0xA9 => text[..at].ends_with(&LINE_SEPARATOR[..2]).then(|| Span { start: at - 2, end }),
        b'\n'..=b'\r' | 0x1C..=0x1E => Some(Span { start: at, end }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut<'a>(text: &'a str, spans: &[Span]) -> Vec<&'a str> {
        spans.iter().map(|span| &text[span.start..span.end]).collect()
    }

    /// `str.splitlines`, one character at a time.
    fn naive_lines(text: &str, keep: bool) -> Vec<&str> {
        let (mut lines, mut start) = (Vec::new(), 0);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if !matches!(c, '\n'..='\r' | '\x1C'..='\x1E' | '\u{85}' | '\u{2028}' | '\u{2029}') {
                continue;
            }
            let mut end = at + c.len_utf8();
            if c == '\r' && chars.next_if(|&(_, next)| next == '\n').is_some() {
                end += 1;
            }
            lines.push(&text[start..if keep { end } else { at }]);
            start = end;
        }
        if start < text.len() {
            lines.push(&text[start..]);
        }
        lines
    }

    /// Texts in which every sequence of `alphabet` of up to three meets every place in a block.
    fn texts(alphabet: &[&str]) -> Vec<String> {
        let mut sequences = vec![String::new()];
        for _ in 0..3 {
            let longer = |s: &String| alphabet.iter().map(|c| format!("{s}{c}")).collect::<Vec<_>>();
            let more: Vec<_> = sequences.iter().flat_map(longer).collect();
            sequences.extend(more);
        }
        let padded = |s: &String| (0..3).map(|n| format!("{}{s}é", "x".repeat(62 + n))).collect::<Vec<_>>();
        let wrapped: Vec<_> = sequences.iter().flat_map(padded).collect();
        sequences.into_iter().chain(wrapped).collect()
    }

    #[test]
    fn any_line_end_is_found_as_by_splitlines() {
        let alphabet =
            ["a", "\n", "\r", "\x0B", "\x0C", "\x1D", "\u{85}", "\u{2028}", "\u{2029}", "\u{2027}", "\u{A8}"];
        for text in texts(&alphabet) {
            for keep in [false, true] {
                let spans = lines(text.as_bytes(), LineEnds::Any, keep, &Task::new()).unwrap();
                assert_eq!(cut(&text, &spans), naive_lines(&text, keep), "{text:?}");
            }
        }
    }

    #[test]
    fn separators_are_found_across_the_ends_of_stretches() {
        for separator in ["ab", "aab", "aa", "aaa"] {
            for before in STRETCH - 4..STRETCH + 4 {
                let text = format!("{}{}", "c".repeat(before), "aaabaab".repeat(3));
                let spans = split(text.as_bytes(), separator.as_bytes(), &Task::new()).unwrap();
                assert_eq!(cut(&text, &spans), text.split(separator).collect::<Vec<_>>(), "{before}");
            }
        }
        let (long, short) = ("d".repeat(2 * STRETCH), "d".repeat(2 * STRETCH - 1));
        let text = format!("a{long}{short}b{long}c");
        let spans = split(text.as_bytes(), long.as_bytes(), &Task::new()).unwrap();
        assert_eq!(cut(&text, &spans), text.split(&long).collect::<Vec<_>>());
    }

    #[test]
    fn a_search_that_finds_no_separator_is_stopped() {
        let task = Task::new();
        task.stop();
        assert!(matches!(split(b"text without a separator", b"ab", &task), Err(Error::Stopped)));
        let checks = std::sync::atomic::AtomicUsize::new(0);
        let poll = |_| checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 3;
        let stopped = split(&vec![b'a'; 10 * STRETCH], b"ab", &Task::with_poll(&poll));
        assert!(matches!(stopped, Err(Error::Stopped)));
    }

    #[test]
    fn newline_alone_is_found() {
        for text in texts(&["a", "\n", "\r"]) {
            let spans = lines(text.as_bytes(), LineEnds::Newline, true, &Task::new()).unwrap();
            assert_eq!(cut(&text, &spans), text.split_inclusive('\n').collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn newline_and_crlf_are_found() {
        for text in texts(&["a", "\n", "\r"]) {
            let found = |keep| lines(text.as_bytes(), LineEnds::NewlineOrCrlf, keep, &Task::new()).unwrap();
            assert_eq!(cut(&text, &found(false)), text.lines().collect::<Vec<_>>(), "{text:?}");
            assert_eq!(cut(&text, &found(true)), text.split_inclusive('\n').collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn pieces_between_separators_are_found() {
        for text in texts(&["a", ",", ";", "é"]) {
            for separator in [",", ",,", ";,", "é"] {
                let spans = split(text.as_bytes(), separator.as_bytes(), &Task::new()).unwrap();
                assert_eq!(cut(&text, &spans), text.split(separator).collect::<Vec<_>>(), "{text:?}");
            }
        }
    }

    #[test]
    fn long_texts_are_looked_at_in_stretches() {
        let text = "some words\n".repeat(3 * STRETCH / 11 + 1);
        let spans = lines(text.as_bytes(), LineEnds::Any, false, &Task::new()).unwrap();
        assert!(spans.iter().all(|span| span.len() == 10));
        assert_eq!(spans.len(), 3 * STRETCH / 11 + 1);
    }

    #[test]
    fn a_stopped_task_stops_the_search() {
        let task = Task::new();
        task.stop();
        assert_eq!(lines(b"a", LineEnds::Any, false, &task), Err(Error::Stopped));
        assert_eq!(split(b"a", b",", &task), Err(Error::Stopped));
    }

    #[test]
    fn offsets_are_checked() {
        let find = |values: &[i64]| offsets(b"abcdef", values.iter().copied(), &Task::new());
        assert_eq!(find(&[]), Ok(vec![]));
        assert_eq!(find(&[3]), Ok(vec![]));
        assert_eq!(find(&[1, 1, 6]), Ok(vec![Span { start: 1, end: 1 }, Span { start: 1, end: 6 }]));
        assert_eq!(find(&[1, 7]), Err(Error::OffsetOutside { index: 1, offset: 7, end: 6 }));
        assert_eq!(find(&[-1]), Err(Error::OffsetOutside { index: 0, offset: -1, end: 6 }));
        assert_eq!(find(&[2, 4, 3]), Err(Error::OffsetDecreases { index: 2, offset: 3, before: 4 }));
    }

    #[test]
    fn columns_are_found() {
        let find = |text: &'static str| {
            let columns = columns(text.as_bytes(), b'\t', &Task::new())?;
            Ok(columns.iter().map(|spans| cut(text, spans)).collect::<Vec<_>>())
        };
        assert_eq!(find(""), Ok(vec![]));
        assert_eq!(find("a\tb\nc\td"), Ok(vec![vec!["a", "c"], vec!["b", "d"]]));
        assert_eq!(find("a\t\r\n\té\r\n"), Ok(vec![vec!["a", ""], vec!["", "é"]]));
        assert_eq!(find("a\n\nb\n"), Ok(vec![vec!["a", "", "b"]]));
        assert_eq!(find("\t"), Ok(vec![vec![""], vec![""]]));
        assert_eq!(find("a\r\nb\r"), Ok(vec![vec!["a", "b\r"]]));
        let wrong = |record, at, found, expected| Err(Error::FieldCount { record, at, found, expected });
        assert_eq!(find("a\tb\nc\n"), wrong(1, 4, 1, 2));
        assert_eq!(find("a\nb\nc\td"), wrong(2, 4, 2, 1));
        assert_eq!(find("a\nb\tc\td\n\te"), wrong(1, 2, 3, 1));
    }
}
