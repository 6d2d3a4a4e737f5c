//! Lines from a code object's table (`co_linetable`, the same from CPython 3.11 on).
//!
//! The table describes the instructions in order, each entry a run of up to 8 of them. An entry begins with a
//! byte whose highest bit is set; four bits say what follows, three how many instructions there are, minus
//! one. The line is relative to that of the entry before, at first to the function's first line; columns are
//! skipped here. CPython's `Objects/locations.md` describes it.

/// The line of the instruction with this index; `None` if it has none.
pub(super) fn line_of(table: &[u8], first_line: u32, instruction: usize) -> Option<u32> {
    let (mut line, mut end) = (i64::from(first_line), 0);
    let mut entries = table.chunk_by(|_, next| next & 0x80 == 0);
    entries
        .find_map(|entry| {
            let (head, rest) = entry.split_first()?;
            let kind = head >> 3 & 0xf;
            line += delta(kind, rest);
            end += usize::from(head & 7) + 1;
            (instruction < end).then_some((kind, line))
        })
        .and_then(|(kind, line)| if kind == NOWHERE { None } else { u32::try_from(line).ok() })
}

/// The kind of instructions without a line.
const NOWHERE: u8 = 15;

/// How many lines an entry of this kind is below the one before.
fn delta(kind: u8, rest: &[u8]) -> i64 {
    match kind {
        10..=12 => i64::from(kind - 10),
        13 | 14 => signed(rest),
        _ => 0,
    }
}

/// A number of six bits per byte, the lowest first; its lowest bit is the sign.
fn signed(bytes: &[u8]) -> i64 {
    let mut number: u64 = 0;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x3f) << (6 * index);
        if byte & 0x40 == 0 {
            break;
        }
    }
    let size = (number >> 1) as i64;
    if number & 1 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_entry_moves_the_line() {
        let table = [
            0x80 | 10 << 3, // one instruction, the same line
            0,
            0,
            0x80 | 12 << 3 | 1, // two, two lines below
            0,
            0,
            0x80 | 13 << 3, // one, three lines above
            7,
            0x80 | 15 << 3, // one without a line
            0x80 | 14 << 3, // one, 100 lines below: 200 = 0b11_001000
            0x40 | 0b00_1000,
            0b11,
            0,
            1,
            1,
            0x80 | 3 << 3 | 7, // eight on the same line
            0x45,
        ];
        let lines: Vec<_> = (0..15).map(|instruction| line_of(&table, 40, instruction)).collect();
        let expected =
            [40, 42, 42, 39].map(Some).into_iter().chain([None]).chain([Some(139); 9]).chain([None]);
        assert_eq!(lines, expected.collect::<Vec<_>>());
    }

    #[test]
    fn nonsense_has_no_line() {
        assert_eq!(line_of(&[], 1, 0), None);
        assert_eq!(line_of(&[0x80 | 13 << 3, 0x7f, 0x7f], 1, 0), None);
        assert_eq!(line_of(&[0, 0], 1, 9), None);
    }
}
