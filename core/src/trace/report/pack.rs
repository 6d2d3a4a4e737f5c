//! The data of a report page: a summary as JSON, then the states of all threads as numbers, together in raw
//! deflate. `viewer/src/trace.ts` reads it.
//!
//! Numbers are LEB128. For each thread: the number of its states, then for each state `duration · 8 + state`;
//! before it, if the lock or the operation differs from that of the thread's last state of this kind,
//! `what · 8 + 6`. Then operations and marks, each as start (relative to the previous one's), duration, name, bytes.
//! For each lock: the number of its holds, and their threads in order. Then the stacks; see [`Stacks`].

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::code::{Function, Stacks};
use crate::Task;
use crate::deflate::{Output, compress};
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::summary::{LockSummary, Summary};
use crate::trace::analyze::timeline::{Life, STATES, Span, Timeline};
use crate::trace::format::wire::{put_bytes, put_number};

const NEW_WHAT: u64 = 6;
const LEVEL: i32 = 6;
const RAW: i32 = -15;

/// The most rows and holders of the blame table that go into the page.
const MOST_ROWS: usize = 200;
const MOST_HOLDERS: usize = 24;

/// Where a recording is on the page.
#[derive(Serialize)]
pub(super) struct Place<'a> {
    pub(super) title: &'a str,
    /// How long after the beginning of the page's axis of time the recording began, in nanoseconds.
    pub(super) offset: u64,
}

#[derive(Serialize)]
struct Head<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    names: Vec<(u32, String)>,
    functions: Vec<Function>,
    summary: Summary,
}

/// The data of one recording, compressed.
pub(super) fn pack(
    recording: &Recording,
    timeline: &Timeline,
    summary: &Summary,
    place: Place<'_>,
) -> io::Result<Vec<u8>> {
    let mut summary = summary.clone();
    summary.locks.iter_mut().for_each(shorten);
    let locks: Vec<u32> = summary.locks.iter().map(|lock| lock.id).collect();
    let stacks = Stacks::of(recording, timeline);
    let functions = stacks.functions();
    let head = serde_json::to_vec(&Head { place, names: names(recording, timeline), functions, summary })?;
    let mut data = Vec::new();
    put_bytes(&mut data, &head);
    for life in &timeline.threads {
        put_slices(life, &mut data);
        put_spans(&life.regions, &mut data);
        put_spans(&life.marks, &mut data);
    }
    for lock in &locks {
        put_holders(timeline, *lock, &mut data);
    }
    stacks.put(&mut data);
    let mut packed = Output::new();
    compress(&data, LEVEL, RAW, &mut packed, &Task::new()).map_err(io::Error::other)?;
    Ok(packed.into_bytes().into_vec())
}

/// Truncates the blame table to the threads that waited longest and, in each row, the worst holders. The
/// remainder is added to the others.
fn shorten(lock: &mut LockSummary) {
    let worst: BTreeSet<usize> = lock.holders.iter().take(MOST_HOLDERS).map(|(thread, _)| *thread).collect();
    lock.blame.truncate(MOST_ROWS);
    for row in &mut lock.blame {
        let (kept, rest): (Vec<_>, Vec<_>) = row.by.iter().partition(|(thread, _)| worst.contains(thread));
        row.by_others += rest.iter().map(|(_, time)| time).sum::<u64>();
        row.by = kept;
    }
}

/// The names that states, operations and marks use.
fn names(recording: &Recording, timeline: &Timeline) -> Vec<(u32, String)> {
    let spans = timeline.threads.iter().flat_map(|life| life.regions.iter().chain(&life.marks));
    let mut used: BTreeSet<u32> = spans.map(|span| span.name).collect();
    used.insert(Recording::OTHER_CODE);
    used.into_iter().map(|name| (name, recording.name(name))).collect()
}

fn put_slices(life: &Life, out: &mut Vec<u8>) {
    put_number(out, life.slices.len() as u64);
    let mut last = [0; STATES];
    for (slice, end) in life.states() {
        let what = &mut last[slice.state as usize];
        if *what != slice.what {
            put_number(out, u64::from(slice.what) << 3 | NEW_WHAT);
            *what = slice.what;
        }
        put_number(out, (end - slice.start) << 3 | slice.state as u64);
    }
}

fn put_spans(spans: &[Span], out: &mut Vec<u8>) {
    put_number(out, spans.len() as u64);
    let mut last = 0;
    for span in spans {
        let numbers = [span.start - last, span.end - span.start, u64::from(span.name), span.bytes];
        numbers.into_iter().for_each(|number| put_number(out, number));
        last = span.start;
    }
}

/// The holders of a lock, in order. A hold is a run of a thread's states that all hold it.
fn put_holders(timeline: &Timeline, lock: u32, out: &mut Vec<u8>) {
    let mut holds: Vec<(u64, usize)> = Vec::new();
    for (thread, life) in timeline.threads.iter().enumerate() {
        let mut held = false;
        for slice in &life.slices {
            let holds_it = slice.state.holds() && slice.what == lock;
            if holds_it && !held {
                holds.push((slice.start, thread));
            }
            held = holds_it;
        }
    }
    holds.sort_unstable();
    put_number(out, holds.len() as u64);
    holds.iter().for_each(|(_, thread)| put_number(out, *thread as u64));
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes in base64, padded.
pub(super) fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digit = |i: usize| ALPHABET[(bits >> (18 - 6 * i)) as usize & 63];
        let given = three.len() + 1;
        out.extend((0..4).map(|i| if i < given { digit(i) } else { b'=' }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded.as_bytes());
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), b"+//+");
    }
}
