//! The values of a page, one after the other, in each of the encodings.
//!
//! Values are decoded when they are wanted. So a page of few bytes that stand for many values, such as a long prefix that
//! each value repeats, takes no memory for those that are still to come.

use super::delta::Delta;
use super::error::Fault;
use super::hybrid::Hybrid;
use super::schema::Type;
use crate::{Task, memory};

const ENDS: Fault = Fault::Wrong("a page has fewer values than its header says");

/// A reader of the values of a page. It does not hold the page.
#[derive(Debug)]
pub(super) enum Values {
    /// There are none.
    None,
    /// Each behind its length.
    Plain { at: usize, end: usize },
    /// Each of so many bytes.
    Fixed { at: usize, end: usize, length: usize },
    /// A bit each.
    Bits { bit: usize, end: usize },
    /// Runs of booleans.
    Runs(Hybrid),
    /// Indices into the dictionary.
    Indices(Hybrid),
    /// Differences between integers of so many bytes.
    Integers { delta: Delta, length: usize },
    /// First the lengths of all.
    Lengths { lengths: Delta, at: usize, end: usize },
    /// How much of the one before each begins with, and the lengths of what follows. All have one length if the column's
    /// type says so.
    Prefixes { prefixes: Delta, lengths: Delta, at: usize, end: usize, last: Vec<u8>, length: Option<usize> },
    /// First the lowest bytes of all numbers, and so on.
    Split { at: usize, start: usize, count: usize, length: usize },
}

/// The values of a dictionary, with where each of them lies.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    bytes: Vec<u8>,
    spans: Vec<(u32, u32)>,
    length: Option<usize>,
}

impl Values {
    /// A reader of the values in `page` from `at` on, in the encoding of this number.
    pub(super) fn new(
        encoding: i64,
        kind: Type,
        page: &[u8],
        at: usize,
        has_dictionary: bool,
        task: &Task<'_>,
    ) -> Result<Self, Fault> {
        let end = page.len();
        match (encoding, kind) {
            // A page without values may lack what its encoding begins with.
            _ if at == end => Ok(Self::None),
            (0, Type::Bytes) => Ok(Self::Plain { at, end }),
            (0, Type::Fixed(length)) => Ok(Self::Fixed { at, end, length }),
            (0, Type::Boolean) => Ok(Self::Bits { bit: at * 8, end }),
            (2 | 8, _) if !has_dictionary => {
                Err(Fault::Wrong("a page refers to a dictionary that is not there"))
            }
            (2 | 8, _) => Ok(Self::Indices(Hybrid::new(at + 1, end, page[at].into())?)),
            (3, Type::Boolean) => {
                let length = page.get(at..at + 4).ok_or(ENDS)?;
                let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
                let end = (at + 4).checked_add(length).filter(|&runs| runs <= end).ok_or(ENDS)?;
                Ok(Self::Runs(Hybrid::new(at + 4, end, 1)?))
            }
            (5, Type::Fixed(length @ (4 | 8))) => {
                Ok(Self::Integers { delta: Delta::new(page, at, end)?, length })
            }
            (6, Type::Bytes) => {
                let lengths = Delta::new(page, at, end)?;
                let at = lengths.ends(page, task)?;
                Ok(Self::Lengths { lengths, at, end })
            }
            (7, Type::Bytes | Type::Fixed(_)) => {
                let prefixes = Delta::new(page, at, end)?;
                let lengths = Delta::new(page, prefixes.ends(page, task)?, end)?;
                let at = lengths.ends(page, task)?;
                let length = if let Type::Fixed(length) = kind { Some(length) } else { None };
                Ok(Self::Prefixes { prefixes, lengths, at, end, last: Vec::new(), length })
            }
            (9, Type::Fixed(length)) => Ok(Self::Split { at, start: at, count: (end - at) / length, length }),
            _ => {
                let name = match encoding {
                    3 => "RLE",
                    4 => "BIT_PACKED",
                    5 => "DELTA_BINARY_PACKED",
                    6 => "DELTA_LENGTH_BYTE_ARRAY",
                    7 => "DELTA_BYTE_ARRAY",
                    9 => "BYTE_STREAM_SPLIT",
                    _ => "an unknown number",
                };
                Err(Fault::Unsupported(format!(
                    "a page's encoding, {name}, is not supported for its column's type"
                )))
            }
        }
    }

    /// Appends the next value to `out`.
    pub(super) fn next(
        &mut self,
        page: &[u8],
        dictionary: &Dictionary,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        match self {
            Self::None => Err(ENDS),
            Self::Plain { at, end } => {
                let length = page[..*end].get(*at..).and_then(<[u8]>::first_chunk).ok_or(ENDS)?;
                *at += 4;
                take(page, at, *end, u32::from_le_bytes(*length).into(), out)
            }
            Self::Fixed { at, end, length } => take(page, at, *end, *length as i64, out),
            Self::Bits { bit, end } => {
                let byte = page[..*end].get(*bit / 8).ok_or(ENDS)?;
                let value = byte >> (*bit % 8) & 1;
                *bit += 1;
                Ok(memory::push(out, value)?)
            }
            Self::Runs(runs) => Ok(memory::push(out, runs.next(page)? as u8)?),
            Self::Indices(indices) => Ok(memory::append(out, dictionary.get(indices.next(page)?)?)?),
            Self::Integers { delta, length } => {
                Ok(memory::append(out, &delta.next(page)?.to_le_bytes()[..*length])?)
            }
            Self::Lengths { lengths, at, end } => take(page, at, *end, lengths.next(page)?, out),
            Self::Prefixes { prefixes, lengths, at, end, last, length } => {
                let prefix = prefixes.next(page)?;
                let prefix = usize::try_from(prefix).ok().filter(|&prefix| prefix <= last.len());
                last.truncate(
                    prefix.ok_or(Fault::Wrong("a value shares more with the one before than that has"))?,
                );
                take(page, at, *end, lengths.next(page)?, last)?;
                if length.is_some_and(|length| length != last.len()) {
                    return Err(Fault::Wrong("a value has another length than its column says"));
                }
                Ok(memory::append(out, last)?)
            }
            Self::Split { at, start, count, length } => {
                if *at - *start >= *count {
                    return Err(ENDS);
                }
                memory::reserve(out, *length)?;
                out.extend((0..*length).map(|byte| page[*at + byte * *count]));
                *at += 1;
                Ok(())
            }
        }
    }
}

/// Appends so many bytes.
fn take(page: &[u8], at: &mut usize, end: usize, length: i64, out: &mut Vec<u8>) -> Result<(), Fault> {
    let length = usize::try_from(length).map_err(|_| Fault::Wrong("a value has a negative length"))?;
    let taken = page[..end].get(*at..).and_then(|rest| rest.get(..length)).ok_or(ENDS)?;
    *at += length;
    Ok(memory::append(out, taken)?)
}

impl Dictionary {
    /// The dictionary of `count` plain values.
    pub(super) fn new(bytes: Vec<u8>, kind: Type, count: u64, task: &Task<'_>) -> Result<Self, Fault> {
        const BETWEEN_CHECKS: usize = 1 << 14;
        const TOO_SHORT: Fault = Fault::Wrong("a dictionary has fewer values than its header says");
        let mut spans = Vec::new();
        match kind {
            Type::Boolean => return Err(Fault::Wrong("booleans have a dictionary")),
            Type::Fixed(length) => return Ok(Self { bytes, spans, length: Some(length) }),
            Type::Bytes => {}
        }
        let mut at = 0_usize;
        for number in 0..count {
            if (number as usize).is_multiple_of(BETWEEN_CHECKS) {
                task.check()?;
            }
            let length = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(TOO_SHORT)?;
            let start = at + 4;
            at = start
                .checked_add(u32::from_le_bytes(*length) as usize)
                .filter(|&end| end <= bytes.len())
                .ok_or(TOO_SHORT)?;
            memory::push(&mut spans, (start as u32, at as u32))?;
        }
        Ok(Self { bytes, spans, length: None })
    }

    fn get(&self, index: u32) -> Result<&[u8], Fault> {
        let index = index as usize;
        let value = match self.length {
            Some(length) => {
                let start = index.saturating_mul(length);
                self.bytes.get(start..start.saturating_add(length))
            }
            None => self.spans.get(index).map(|&(start, end)| &self.bytes[start as usize..end as usize]),
        };
        value.ok_or(Fault::Wrong("a page refers to a value that its dictionary does not have"))
    }
}
