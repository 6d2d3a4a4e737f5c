//! Splitting any bytes in every way finds the pieces that a simple implementation finds, and stores them
//! unchanged.

use std::convert::Infallible;

use offlock_core::Task;
use offlock_core::text::{self, Arena, Error, LineEnds, Piece, Pieces, Span, Spans, StrKind};

/// Runs the target on one input: a byte for the length of the separator, the separator, the text.
pub fn run(bytes: &[u8]) {
    let [first, rest @ ..] = bytes else { return };
    let length = (1 + usize::from(first % 3)).min(rest.len());
    let (separator, text) = rest.split_at(length);
    if separator.is_empty() {
        return;
    }
    cut_lines(text);
    cut_at(text, separator);
    // Other bytes could be a part of a character.
    if separator[0].is_ascii() {
        cut_columns(text, separator[0]);
    }
    cut_at_offsets(text, *first);
}

fn task() -> Task<'static> {
    Task::new()
}

fn bytes_of<'a>(text: &'a [u8], spans: &[Span]) -> Vec<&'a [u8]> {
    spans.iter().map(|span| &text[span.start..span.end]).collect()
}

fn cut_lines(text: &[u8]) {
    for ends in [LineEnds::Any, LineEnds::Newline, LineEnds::NewlineOrCrlf] {
        let [without, with] = [false, true].map(|keep| text::lines(text, ends, keep, &task()).unwrap());
        assert_eq!(bytes_of(text, &with).concat(), text, "{ends:?}");
        assert!(with.iter().zip(&without).all(|(with, without)| with.start == without.start));
        if let Ok(text) = std::str::from_utf8(text) {
            let expected: Vec<&[u8]> = match ends {
                LineEnds::Any => any_lines(text),
                LineEnds::Newline => text.split_terminator('\n').map(str::as_bytes).collect(),
                LineEnds::NewlineOrCrlf => text.lines().map(str::as_bytes).collect(),
            };
            assert_eq!(bytes_of(text.as_bytes(), &without), expected, "{ends:?}");
        }
        measure_and_store(text, without);
    }
}

/// Splits like Python's `str.splitlines`, one character at a time.
fn any_lines(text: &str) -> Vec<&[u8]> {
    let (mut lines, mut start) = (Vec::new(), 0);
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if matches!(character, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}') {
            let mut end = at + character.len_utf8();
            if character == '\r' && characters.next_if(|&(_, next)| next == '\n').is_some() {
                end += 1;
            }
            lines.push(&text.as_bytes()[start..at]);
            start = end;
        }
    }
    lines.extend((start < text.len()).then(|| &text.as_bytes()[start..]));
    lines
}

fn cut_at(text: &[u8], separator: &[u8]) {
    let spans = text::split(text, separator, &task()).unwrap();
    let pieces = bytes_of(text, &spans);
    assert_eq!(pieces.join(separator), text);
    let holds = |piece: &&[u8]| piece.windows(separator.len()).any(|window| window == separator);
    assert!(!pieces.iter().any(holds));
    measure_and_store(text, spans);
}

fn cut_columns(text: &[u8], separator: u8) {
    if let Ok(columns) = text::columns(text, separator, &task()) {
        let rows = columns.first().map_or(0, Vec::len);
        assert!(columns.iter().all(|column| column.len() == rows));
        if let Ok(all) = Pieces::interleaved(text, columns, &task()) {
            assert!(std::str::from_utf8(text).is_ok());
            all.iter().for_each(stored);
        }
    }
}

/// Splits at mostly ascending offsets, which are derived from the text.
fn cut_at_offsets(text: &[u8], step: u8) {
    let mut at = 0_i64;
    let mut next = |byte: &u8| {
        at += i64::from(byte % (step % 16 + 1)) - i64::from(*byte == 255);
        at
    };
    let offsets: Vec<i64> = text.iter().take(200).map(&mut next).collect();
    let listed = text::offsets(text, offsets.iter().copied(), &task());
    let between = Spans::between(text, &offsets[..], &task());
    let between = between.map(|spans| (0..spans.len()).map(|index| spans.get(index)).collect::<Vec<_>>());
    assert_eq!(listed, between);
    if let Ok(spans) = listed {
        measure_and_store(text, spans);
    }
}

fn measure_and_store(text: &[u8], spans: Vec<Span>) {
    let wrong = spans.iter().position(|span| std::str::from_utf8(&text[span.start..span.end]).is_err());
    let plain = bytes_of(text, &spans).into_iter();
    match Pieces::new(text, spans, &task()) {
        Ok(pieces) => {
            assert_eq!(wrong, None);
            stored(&pieces);
            let all = all_characters(&pieces);
            assert!(all.iter().map(String::as_bytes).eq(plain));
            let (once, numbers) = pieces.without_repeats(&task()).unwrap();
            if let Some(numbers) = numbers {
                let once = all_characters(&once);
                assert!(numbers.iter().map(|&number| &once[number as usize]).eq(&all));
            }
        }
        Err(Error::NotUtf8 { piece, .. }) => assert_eq!(Some(piece), wrong),
        Err(error) => panic!("{error}"),
    }
}

/// Checks that an arena stores each piece unchanged.
fn stored(pieces: &Pieces<'_>) {
    let all = all_characters(pieces);
    let arenas = Arena::store(pieces, &task()).unwrap();
    let stored = arenas.iter().flat_map(Arena::pieces).map(characters);
    assert!(stored.eq(all.iter().cloned()));
}

fn all_characters(pieces: &Pieces<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let Ok(()) = pieces.for_each(|piece| {
        all.push(characters(piece));
        Ok::<_, Infallible>(())
    });
    all
}

/// Writes the piece and reads it back.
fn characters(piece: Piece<'_>) -> String {
    let width = piece.kind.width();
    // Aligned for every width of characters.
    let mut words = vec![0_u32; piece.bytes().div_ceil(4)];
    let out = &mut bytemuck::cast_slice_mut::<_, u8>(&mut words)[..piece.bytes()];
    piece.write(out);
    let number = |unit: &[u8]| match *unit {
        [one] => u32::from(one),
        [one, two] => u32::from(u16::from_ne_bytes([one, two])),
        [one, two, three, four] => u32::from_ne_bytes([one, two, three, four]),
        _ => unreachable!("no form is as wide"),
    };
    let text: String = out.chunks(width).map(|unit| char::from_u32(number(unit)).unwrap()).collect();
    assert_eq!(text.chars().count(), piece.chars);
    let widest = text.chars().max().map_or(0, u32::from);
    assert_eq!(
        piece.kind,
        match widest {
            ..0x80 => StrKind::Ascii,
            0x80..0x100 => StrKind::Latin1,
            0x100..0x1_0000 => StrKind::Ucs2,
            _ => StrKind::Ucs4,
        }
    );
    text
}
