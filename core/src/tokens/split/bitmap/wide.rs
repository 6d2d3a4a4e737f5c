//! The classes of characters that are not ASCII, by the beginnings of their UTF-8 encodings.

use super::super::classes::{Class, block};

/// More bytes must be looked at.
pub(super) const OPEN: u8 = u8::MAX;

/// The class of all characters with a first byte, by its lower six bits.
pub(super) static BY_FIRST: [u8; 64] = {
    let mut classes = [OPEN; 64];
    let mut lead = 0xc2;
    while lead < 0xf0 {
        classes[lead & 0x3f] = if lead < 0xe0 {
            the_only_one(block(lead & 0x1f), 0, 64)
        } else {
            // What would be encoded in fewer bytes, and surrogates, does not occur.
            let first = if lead == 0xe0 { 0x20 } else { 0 };
            let behind = if lead == 0xed { 0x20 } else { 64 };
            alike(&BY_SECOND[lead & 0xf], first, behind)
        };
        lead += 1;
    }
    classes
};

/// The class of all characters of three bytes with a first byte, by its lower four bits, and a second one, by its
/// lower six.
pub(super) static BY_SECOND: [[u8; 64]; 16] = {
    let mut classes = [[OPEN; 64]; 16];
    let mut number = 0;
    while number < 16 * 64 {
        classes[number >> 6][number & 0x3f] = the_only_one(block(number), 0, 64);
        number += 1;
    }
    classes
};

/// The class of all of a list.
const fn the_only_one(list: &[Class; 64], first: usize, behind: usize) -> u8 {
    let mut numbers = [0; 64];
    let mut number = 0;
    while number < 64 {
        numbers[number] = list[number] as u8;
        number += 1;
    }
    alike(&numbers, first, behind)
}

/// What all of a range are; [`OPEN`] if they differ.
const fn alike(numbers: &[u8; 64], first: usize, behind: usize) -> u8 {
    let mut number = first;
    while number < behind {
        if numbers[number] != numbers[first] {
            return OPEN;
        }
        number += 1;
    }
    numbers[first]
}
