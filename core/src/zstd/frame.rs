//! The frames of which data consists: what their headers say, and where they end.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use zstd::zstd_safe::zstd_sys as z;

use super::error::{Error, ErrorKind};
use crate::task::Stretches;
use crate::{Task, memory};

/// What a frame's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The length of the content, if the header has it.
    pub content: Option<u64>,
    /// The size of the window.
    pub window: u64,
    /// The number of the dictionary; 0 for none.
    pub dictionary: u32,
    /// Whether the frame has no content, but data of a program's own.
    pub is_skippable: bool,
    has_checksum: bool,
    length: usize,
}

/// The number in the header of a frame without a known length.
const UNKNOWN: u64 = u64::MAX;

/// The first bytes of a skippable frame: its number is in the lowest four bits.
const SKIPPABLE: u32 = 0x184d_2a50;

/// The length of a skippable frame's header.
const SKIPPABLE_HEADER: usize = 8;

/// The number of bytes that are copied between two checks of the task.
const PIECE: usize = 1 << 20;

impl Header {
    /// The header at the beginning of `input`; `None` if it is invalid or incomplete.
    pub fn read(input: &[u8]) -> Option<Self> {
        let mut header = MaybeUninit::<z::ZSTD_FrameHeader>::zeroed();
        // SAFETY: the memory is valid for its length; all of a header's fields may be zero.
        let (result, header) = unsafe {
            let result = z::ZSTD_getFrameHeader(header.as_mut_ptr(), input.as_ptr().cast(), input.len());
            (result, header.assume_init())
        };
        if result != 0 {
            return None;
        }
        let is_skippable = header.frameType == z::ZSTD_FrameType_e::ZSTD_skippableFrame;
        Some(Self {
            content: Some(header.frameContentSize).filter(|&length| length != UNKNOWN && !is_skippable),
            window: header.windowSize,
            dictionary: if is_skippable { 0 } else { header.dictID },
            is_skippable,
            has_checksum: header.checksumFlag != 0,
            length: header.headerSize as usize,
        })
    }
}

/// The length of the frame at the beginning of `input`.
///
/// # Errors
///
/// [`ErrorKind::Frame`] if there is no whole frame, and `Stopped`.
pub fn frame_size(input: &[u8], task: &Task<'_>) -> Result<usize, Error> {
    let bad = |at: usize| Error::new(ErrorKind::Frame, at as u64);
    let header = Header::read(input).ok_or(bad(0))?;
    if header.is_skippable {
        return skippable(input).map(|(_, content)| SKIPPABLE_HEADER + content.len());
    }
    let mut at = header.length;
    let mut stretches = Stretches::of_items(task);
    for blocks in 0.. {
        stretches.check(blocks)?;
        let block = input.get(at..at + 3).ok_or(bad(input.len()))?;
        let block = u32::from_le_bytes([block[0], block[1], block[2], 0]);
        let length = (block >> 3) as usize;
        at += 3 + match (block >> 1) & 3 {
            // One byte, repeated.
            1 => 1,
            3 => return Err(bad(at)),
            _ => length,
        };
        if at > input.len() {
            return Err(bad(input.len()));
        }
        if block & 1 == 1 {
            break;
        }
    }
    at += if header.has_checksum { 4 } else { 0 };
    if at > input.len() { Err(bad(input.len())) } else { Ok(at) }
}

/// Whether `input` begins with a skippable frame.
pub fn is_skippable(input: &[u8]) -> bool {
    input.first_chunk().is_some_and(|magic| u32::from_le_bytes(*magic) & !0xf == SKIPPABLE)
}

/// The number (0 to 15) and the content of the skippable frame at the beginning of `input`.
///
/// # Errors
///
/// [`ErrorKind::Frame`] if there is none, or not all of it.
pub fn skippable(input: &[u8]) -> Result<(u32, &[u8]), Error> {
    let bad = |at: usize| Error::new(ErrorKind::Frame, at as u64);
    let header = input.first_chunk::<SKIPPABLE_HEADER>().filter(|_| is_skippable(input)).ok_or(bad(0))?;
    let [a, b, c, d, lengths @ ..] = *header;
    let length = u32::from_le_bytes(lengths) as usize;
    let content = input[SKIPPABLE_HEADER..].get(..length).ok_or(bad(input.len()))?;
    Ok((u32::from_le_bytes([a, b, c, d]) & 0xf, content))
}

/// A skippable frame of a number (0 to 15) with `content`, and `data` behind it.
///
/// # Errors
///
/// [`ErrorKind::Frame`] if the content is longer than 4 GB or the number larger than 15, `OutOfMemory`, and
/// [`ErrorKind::Stopped`] if the task was stopped.
pub fn write_skippable(number: u32, content: &[u8], data: &[u8], task: &Task<'_>) -> Result<Vec<u8>, Error> {
    let length = u32::try_from(content.len()).ok().filter(|_| number <= 0xf);
    let length = length.ok_or(Error::new(ErrorKind::Frame, 0))?;
    let magic = SKIPPABLE | number;
    let mut whole = memory::with_capacity(SKIPPABLE_HEADER + content.len() + data.len())?;
    whole.extend_from_slice(&magic.to_le_bytes());
    whole.extend_from_slice(&length.to_le_bytes());
    for piece in content.chunks(PIECE).chain(data.chunks(PIECE)) {
        task.check()?;
        whole.extend_from_slice(piece);
    }
    Ok(whole)
}
