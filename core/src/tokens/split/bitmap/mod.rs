//! Cuts many pieces at a time, by bitmaps of the classes of characters.
//!
//! A pattern's own function (`o200k.rs` and its like) decides character by character, and the processor
//! cannot predict where a word ends. Here, 64 bytes are compared with each class at once, one bit a byte
//! (`masks.rs`), and where pieces begin is computed for all of them with some hundred operations on 64-bit words,
//! almost without branches (`bounds.rs`):
//!
//! ```text
//! text            I t ' s   1 2 3 4   ( y e s )
//! word            1 1 . 1 . . . . . . . 1 1 1 .
//! behind a word   . 1 1 . 1 . . . . . . . 1 1 1      the same, shifted
//! begins          1 . . . 1 1 . . 1 1 . 1 . . 1      It's|␣|123|4|␣(|yes|)
//! ```
//!
//! What a block cannot decide by itself and the one behind it goes to the pattern's own function, and so do long
//! pieces, for which that function has faster ways. Those are, besides numbers that are not ASCII: a mark behind a
//! symbol, where a mark may be a letter or a symbol; a line break before 64 blanks; 64 capitals behind a letter
//! without case. The time is linear in the length of the text.
//!
//! simdjson finds the structure of JSON texts so, by bitmaps of 64 bytes with carries between them; the crate
//! fastokens cuts texts by such bitmaps, too.

mod bounds;
mod ends;
mod lanes;
mod masks;
mod ones;
mod rules;
#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::pages::prefetch;
use bounds::{Before, bounds};
pub(in crate::tokens) use ends::Ends;
use lanes::{BLOCK, Lanes, Sixteens};
use masks::Masks;
use rules::Rules;
pub(super) use rules::{Cl100k, DeepSeek, Llama3, O200k, Qwen, Qwen35, Tekken};
use std::ops::Range;

/// Fills a list with the ends of the pieces that begin in a range of a text, as far as there is room. A piece
/// begins where the range does.
pub(in crate::tokens) type Cut = fn(&[u8], Range<usize>, &mut Ends);

/// Texts that are shorter are cut piece by piece: a block takes as long as some six pieces.
const SHORT: usize = 40;

/// Pieces that are longer than this many bytes are left to the pattern's own function.
const LONG: usize = 1 << 10;

/// How far ahead of a block the processor fetches the text: between two calls other memory is read, so that it does not
/// notice by itself that all of the text will be.
const AHEAD: usize = 1 << 10;

/// Cuts with the best instructions that this processor has.
#[allow(unsafe_code)]
pub(super) fn cut<R: Rules>(text: &[u8], range: Range<usize>, ends: &mut Ends) {
    if text.len() - range.start < SHORT {
        return ends.fill(range, |at| R::end(text, at));
    }
    #[cfg(target_arch = "x86_64")]
    if avx512::is_there() {
        // SAFETY: the processor has what it needs.
        return unsafe { with_avx512::<R>(text, range, ends) };
    }
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: the processor has what it needs.
        return unsafe { with_avx2::<R>(text, range, ends) };
    }
    // SAFETY: every processor has what this needs.
    unsafe { cut_with::<R, Sixteens>(text, range, ends) }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn with_avx512<R: Rules>(text: &[u8], range: Range<usize>, ends: &mut Ends) {
    // SAFETY: the processor has AVX512BW.
    unsafe { cut_with::<R, avx512::Avx512>(text, range, ends) }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn with_avx2<R: Rules>(text: &[u8], range: Range<usize>, ends: &mut Ends) {
    // SAFETY: the processor has AVX2.
    unsafe { cut_with::<R, avx2::Avx2>(text, range, ends) }
}

/// See [`cut`].
///
/// # Safety
///
/// The processor has the instructions of `L`.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn cut_with<R: Rules, L: Lanes>(text: &[u8], range: Range<usize>, ends: &mut Ends) {
    ends.clear();
    let mut last = range.start;
    while last < range.end && ends.has_room() {
        // SAFETY: as the caller says.
        let known = unsafe { run::<R, L>(text, last, range.end, ends) };
        last = ends.last().unwrap_or(last);
        while last < known.min(text.len()) && last < range.end && ends.has_room() {
            last = R::end(text, last);
            ends.push(last);
        }
    }
    ends.leave_what_begins_behind(range.end);
}

/// Cuts from `start`, where a piece begins, until there are enough ends, or to what is to be cut piece by piece:
/// returns up to where that is.
///
/// # Safety
///
/// The processor has the instructions of `L`.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn run<R: Rules, L: Lanes>(text: &[u8], start: usize, limit: usize, ends: &mut Ends) -> usize {
    let read = |at: usize| match at < text.len() {
        // SAFETY: as the caller says.
        true => unsafe { Masks::read::<R, L>(text, at) },
        false => Masks::default(),
    };
    let mut before = Before::default();
    let mut now = read(start);
    let (mut at, mut last) = (start, start);
    // No piece ends where the first one begins.
    let mut wanted = !1;
    loop {
        let next = read(at + BLOCK);
        if let Some(byte) = text.get(at + AHEAD) {
            prefetch(byte);
        }
        let found = bounds::<R>(text, at, &now, &next, &mut before);
        if found.unknown != 0 {
            let known = (found.unknown & found.unknown.wrapping_neg()) - 1;
            // SAFETY: as the caller says.
            unsafe { ends.add::<L>(at, found.begins & wanted & known) };
            return at + BLOCK;
        }
        // SAFETY: as the caller says.
        unsafe { ends.add::<L>(at, found.begins & wanted) };
        wanted = !0;
        at += BLOCK;
        if at >= text.len() {
            ends.push(text.len());
            return at;
        }
        last = ends.last().unwrap_or(last);
        if last >= limit || !ends.has_room() {
            return start;
        }
        if at - last > LONG {
            return at;
        }
        now = next;
    }
}
