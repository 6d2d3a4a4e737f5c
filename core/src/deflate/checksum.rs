//! CRC-32 and Adler-32.

use super::libdeflate;
use crate::{Stopped, Task};

/// The number of bytes between two checks of the task: less than a tenth of a millisecond of work.
const SLICE: usize = 512 << 10;

/// CRC-32 of `data`, continued from `value` (0 at the beginning).
///
/// ```
/// use offlock_core::{Task, deflate::crc32};
///
/// assert_eq!(crc32(0, b"123456789", &Task::new()), Ok(0xcbf4_3926));
/// ```
///
/// # Errors
///
/// [`Stopped`] if the task was stopped.
pub fn crc32(value: u32, data: &[u8], task: &Task<'_>) -> Result<u32, Stopped> {
    sliced(value, data, task, libdeflate::crc32)
}

/// Adler-32 of `data`, continued from `value` (1 at the beginning).
///
/// As in zlib, any `value` is accepted: its halves are taken modulo 65521.
///
/// # Errors
///
/// [`Stopped`] if the task was stopped.
pub fn adler32(value: u32, data: &[u8], task: &Task<'_>) -> Result<u32, Stopped> {
    sliced(reduced(value), data, task, libdeflate::adler32)
}

/// [`crc32`] of data that is too small to need interruption.
pub fn crc32_of_small(value: u32, data: &[u8]) -> u32 {
    libdeflate::crc32(value, data)
}

/// [`adler32`] of data that is too small to need interruption.
pub fn adler32_of_small(value: u32, data: &[u8]) -> u32 {
    libdeflate::adler32(reduced(value), data)
}

fn reduced(value: u32) -> u32 {
    const BASE: u32 = 65521;
    (((value >> 16) % BASE) << 16) | ((value & 0xffff) % BASE)
}

fn sliced(mut value: u32, data: &[u8], task: &Task<'_>, sum: fn(u32, &[u8]) -> u32) -> Result<u32, Stopped> {
    for slice in data.chunks(SLICE) {
        task.check()?;
        value = sum(value, slice);
        task.advance(slice.len() as u64);
    }
    Ok(value)
}

/// CRC-32 of two pieces from the checksums of both and the length of the second.
pub fn crc32_combine(first: u32, second: u32, second_len: u64) -> u32 {
    libz_rs_sys::crc32_combine64(first.into(), second.into(), second_len as i64) as u32
}

/// Adler-32 of two pieces from the checksums of both and the length of the second.
pub fn adler32_combine(first: u32, second: u32, second_len: u64) -> u32 {
    libz_rs_sys::adler32_combine64(first.into(), second.into(), second_len as i64) as u32
}

/// The 256 remainders that a bytewise CRC-32 looks up.
pub fn crc_table() -> [u32; 256] {
    std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow_adler(value: u32, data: &[u8]) -> u32 {
        let (mut a, mut b) = (value & 0xffff, value >> 16);
        for &byte in data {
            a = (a + u32::from(byte)) % 65521;
            b = (b + a) % 65521;
        }
        (b << 16) | a
    }

    fn slow_crc(value: u32, data: &[u8]) -> u32 {
        let table = crc_table();
        !data.iter().fold(!value, |crc, &byte| table[((crc ^ u32::from(byte)) & 0xff) as usize] ^ (crc >> 8))
    }

    #[test]
    fn both_agree_with_the_textbook() {
        let data: Vec<u8> = (0..600_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let task = Task::new();
        for (from, to) in [(0, 0), (0, 1), (3, 70), (1, 5000), (0, data.len())] {
            let piece = &data[from..to];
            for value in [0, 1, 12345, 0xffff_ffff, (65521 << 16) | 65521] {
                assert_eq!(crc32(value, piece, &task).unwrap(), slow_crc(value, piece));
                assert_eq!(crc32_of_small(value, piece), slow_crc(value, piece));
                assert_eq!(adler32_of_small(value, piece), adler32(value, piece, &task).unwrap());
                if !piece.is_empty() {
                    assert_eq!(
                        adler32(value, piece, &task).unwrap(),
                        slow_adler(value, piece),
                        "{value:x} {to}"
                    );
                }
            }
        }
        assert_eq!(slow_crc(0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn combined_is_as_if_in_one_piece() {
        let (a, b) = (b"the interpreter ".as_slice(), b"lock".as_slice());
        let whole = [a, b].concat();
        let task = Task::new();
        let crc = |data| crc32(0, data, &task).unwrap();
        let adler = |data| adler32(1, data, &task).unwrap();
        assert_eq!(crc32_combine(crc(a), crc(b), 4), crc(&whole));
        assert_eq!(adler32_combine(adler(a), adler(b), 4), adler(&whole));
    }

    #[test]
    fn a_stop_is_seen() {
        let task = Task::new();
        task.stop();
        assert_eq!(crc32(0, b"x", &task), Err(Stopped));
    }
}
