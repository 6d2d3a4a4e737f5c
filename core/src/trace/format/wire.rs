//! The bytes of a trace file: `offlock` and a version, followed by frames.
//!
//! A frame consists of its kind (1 byte), the length of its body (4, little-endian), a CRC-32 of both and the
//! body (4), and the body. A reader skips kinds that it does not know. Numbers in bodies are LEB128; texts
//! are a length and UTF-8. Every frame can be read without the earlier ones, except for the texts that
//! numbers stand for; so a file that is cut off or damaged is readable up to there. Times are nanoseconds of
//! the monotonic clock.
//!
//! | kind | body |
//! |---|---|
//! | 1 about | pairs of texts: a key, its value |
//! | 2 definitions | what numbers stand for: 1 name, 2 thread or 3 lock; number; text; a thread's relation to its lock |
//! | 3 events | a base time, then sections: native thread id, number of events, events |
//! | 4 flush | the time up to which everything has been written; for how long the machine's processors have been busy, and in all, in the system's units (absent where it does not say) |
//! | 5 end | the time at which the recording ended, the number of events, the number of lost ones |
//! | 6 code | what numbers stand for: 1 file, 2 function or 3 frame; see [`code`](super::code) |
//!
//! An event is a byte with its kind in the lower five bits; its thread, unless the flag `SAME_THREAD` says
//! that it is the one of the previous event; its argument, unless `SAME_ARGUMENT` says that it is the one of
//! the last event of this kind in the section; and the time since the previous event (for the first: since
//! the base), to be subtracted if `BEFORE` says so.

use super::definition::{Definition, Stand};
use super::event::{Event, Kind};
use crate::Task;
use crate::deflate::crc32;

pub(in crate::trace) const MAGIC: [u8; 8] = *b"offlock\x01";
pub(in crate::trace) const FRAME_HEADER: usize = 9;

pub(in crate::trace) const ABOUT: u8 = 1;
pub(in crate::trace) const DEFINITIONS: u8 = 2;
pub(in crate::trace) const EVENTS: u8 = 3;
pub(in crate::trace) const FLUSH: u8 = 4;
pub(in crate::trace) const END: u8 = 5;
pub(in crate::trace) const CODE: u8 = 6;

const NAME: u8 = 1;
const THREAD: u8 = 2;
const LOCK: u8 = 3;

const KIND: u8 = 0x1f;
const SAME_THREAD: u8 = 0x20;
const SAME_ARGUMENT: u8 = 0x40;
const BEFORE: u8 = 0x80;

/// Appends a number.
pub(in crate::trace) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number of bytes and the bytes.
pub(in crate::trace) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a text.
pub(in crate::trace) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Reads numbers and texts from the beginning of a slice; `None` if it does not hold one.
pub(in crate::trace) struct Bytes<'a>(pub(in crate::trace) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(in crate::trace) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(in crate::trace) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(in crate::trace) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    pub(in crate::trace) fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

/// The checksum in a frame's header.
fn checksum(kind_and_length: &[u8], body: &[u8]) -> u32 {
    let unstopped = Task::new();
    let head = crc32(0, kind_and_length, &unstopped);
    head.and_then(|head| crc32(head, body, &unstopped)).unwrap_or_default()
}

/// The frame of a kind with a body.
pub(in crate::trace) fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_HEADER + body.len());
    frame.push(kind);
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.extend_from_slice(&checksum(&frame, body).to_le_bytes());
    frame.extend_from_slice(body);
    frame
}

/// The header of a frame.
pub(in crate::trace) struct Header {
    pub(in crate::trace) kind: u8,
    /// The length of the body in bytes.
    pub(in crate::trace) length: usize,
    checksum: u32,
}

impl Header {
    pub(in crate::trace) fn of(bytes: [u8; FRAME_HEADER]) -> Self {
        let [kind, l0, l1, l2, l3, c0, c1, c2, c3] = bytes;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        Self { kind, length, checksum: u32::from_le_bytes([c0, c1, c2, c3]) }
    }

    /// Whether the checksum is that of this kind, this length and this body.
    pub(in crate::trace) fn fits(&self, body: &[u8]) -> bool {
        let mut kind_and_length = [self.kind, 0, 0, 0, 0];
        kind_and_length[1..].copy_from_slice(&(self.length as u32).to_le_bytes());
        checksum(&kind_and_length, body) == self.checksum
    }
}

/// The body of an `ABOUT` frame.
pub(in crate::trace) fn about(pairs: &[(String, String)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (key, value) in pairs {
        put_text(&mut body, key);
        put_text(&mut body, value);
    }
    body
}

/// The body of a `FLUSH` frame: a time, and for how long the machine's processors have been busy, and in all.
pub(in crate::trace) fn flush(time: u64, machine: Option<(u64, u64)>) -> Vec<u8> {
    let mut body = Vec::new();
    put_number(&mut body, time);
    for number in machine.into_iter().flat_map(<[u64; 2]>::from) {
        put_number(&mut body, number);
    }
    body
}

/// The body of a `DEFINITIONS` frame.
pub(in crate::trace) fn definitions(all: &[Definition]) -> Vec<u8> {
    let mut body = Vec::new();
    for definition in all {
        let (tag, id, text) = match definition {
            Definition::Name { id, text } => (NAME, id, text),
            Definition::Thread { id, name, .. } => (THREAD, id, name),
            Definition::Lock { id, name } => (LOCK, id, name),
        };
        body.push(tag);
        put_number(&mut body, u64::from(*id));
        put_text(&mut body, text);
        if let Definition::Thread { stand, .. } = definition {
            body.push(*stand as u8);
        }
    }
    body
}

/// Reads one definition from a `DEFINITIONS` body.
pub(in crate::trace) fn take_definition(body: &mut Bytes<'_>) -> Option<Definition> {
    let (tag, id, text) = (body.byte()?, body.small()?, body.text()?.to_owned());
    Some(match tag {
        NAME => Definition::Name { id, text },
        THREAD => Definition::Thread { id, name: text, stand: Stand::from_u8(body.byte()?) },
        LOCK => Definition::Lock { id, name: text },
        _ => return None,
    })
}

/// The state relative to which an event is encoded, on both sides.
struct Before {
    time: u64,
    thread: u32,
    arguments: [u32; KIND as usize + 1],
}

impl Before {
    fn new(base: u64) -> Self {
        Self { time: base, thread: 0, arguments: [0; KIND as usize + 1] }
    }
}

/// Writes one section of an `EVENTS` body.
pub(in crate::trace) struct Section {
    before: Before,
    count: u64,
    bytes: Vec<u8>,
}

impl Section {
    pub(in crate::trace) fn new() -> Self {
        Self { before: Before::new(0), count: 0, bytes: Vec::new() }
    }

    /// Begins a section of a body with this base.
    pub(in crate::trace) fn begin(&mut self, base: u64) {
        self.before = Before::new(base);
        self.count = 0;
        self.bytes.clear();
    }

    pub(in crate::trace) fn put(&mut self, event: Event) {
        let before = &mut self.before;
        let argument = &mut before.arguments[event.kind as usize];
        let same_thread = if before.thread == event.thread { SAME_THREAD } else { 0 };
        let same_argument = if *argument == event.argument { SAME_ARGUMENT } else { 0 };
        let backwards = if event.time < before.time { BEFORE } else { 0 };
        self.bytes.push(event.kind as u8 | same_thread | same_argument | backwards);
        if same_thread == 0 {
            put_number(&mut self.bytes, u64::from(event.thread));
        }
        if same_argument == 0 {
            put_number(&mut self.bytes, u64::from(event.argument));
        }
        put_number(&mut self.bytes, event.time.abs_diff(before.time));
        (before.time, before.thread, *argument) = (event.time, event.thread, event.argument);
        self.count += 1;
    }

    pub(in crate::trace) fn count(&self) -> u64 {
        self.count
    }

    /// The size in bytes.
    pub(in crate::trace) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the section to a body, unless it is empty.
    pub(in crate::trace) fn finish(&mut self, native: u32, body: &mut Vec<u8>) {
        if self.count > 0 {
            put_number(body, u64::from(native));
            put_number(body, self.count);
            body.append(&mut self.bytes);
        }
    }
}

/// Reads one event. Kinds that a later version may have added are skipped: `Some(None)`.
fn take_event(body: &mut Bytes<'_>, before: &mut Before) -> Option<Option<Event>> {
    let head = body.byte()?;
    let slot = &mut before.arguments[usize::from(head & KIND)];
    let thread = if head & SAME_THREAD == 0 { body.small()? } else { before.thread };
    let argument = if head & SAME_ARGUMENT == 0 { body.small()? } else { *slot };
    let step = body.number()?;
    let time =
        if head & BEFORE == 0 { before.time.checked_add(step)? } else { before.time.checked_sub(step)? };
    (before.time, before.thread, *slot) = (time, thread, argument);
    Some(Kind::from_u8(head & KIND).map(|kind| Event { time, thread, kind, argument }))
}

/// Passes each event of an `EVENTS` body, with its native thread, to `each`; `None` if the body is invalid.
pub(in crate::trace) fn take_events(body: &[u8], mut each: impl FnMut(u32, Event)) -> Option<()> {
    let mut body = Bytes(body);
    let base = body.number()?;
    while !body.0.is_empty() {
        let (native, count) = (body.small()?, body.number()?);
        let mut before = Before::new(base);
        for _ in 0..count {
            if let Some(event) = take_event(&mut body, &mut before)? {
                each(native, event);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits]).chain([u64::MAX]) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            let mut bytes = Bytes(&out);
            assert_eq!((bytes.number(), bytes.0.len()), (Some(number), 0));
            assert_eq!(Bytes(&out[..out.len() - 1]).number(), None);
        }
        assert_eq!(Bytes(&[0x80; 11]).number(), None, "endless");
    }

    #[test]
    fn definitions_come_back() {
        let all = [
            Definition::Name { id: 7, text: "deflate".into() },
            Definition::Thread { id: 300, name: "wörker \"1\"".into(), stand: Stand::Holds },
            Definition::Lock { id: 1, name: String::new() },
        ];
        let body = definitions(&all);
        let mut bytes = Bytes(&body);
        let back: Vec<_> = std::iter::from_fn(|| take_definition(&mut bytes)).collect();
        assert_eq!(back, all);
        assert!(bytes.0.is_empty());
    }

    fn event(time: u64, thread: u32, kind: Kind, argument: u32) -> Event {
        Event { time, thread, kind, argument }
    }

    #[test]
    fn events_come_back() {
        let events = [
            event(1_000, 1, Kind::Wants, 1),
            event(1_050, 1, Kind::Acquired, 1),
            event(1_040, 2, Kind::Released, 1 << 24 | 1),
            event(u64::MAX, u32::MAX, Kind::RegionEnd, u32::MAX),
        ];
        let mut body = Vec::new();
        put_number(&mut body, 900);
        let mut section = Section::new();
        for native in [41, 42] {
            section.begin(900);
            events.iter().for_each(|event| section.put(*event));
            assert_eq!(section.count(), 4);
            section.finish(native, &mut body);
        }
        let mut back = Vec::new();
        take_events(&body, |native, event| back.push((native, event))).expect("whole");
        assert_eq!(back, [41, 42].into_iter().flat_map(|n| events.map(|e| (n, e))).collect::<Vec<_>>());
        for cut in 1..body.len() {
            let _ = take_events(&body[..cut], |_, _| {});
        }
    }

    #[test]
    fn a_hand_over_takes_three_bytes_an_event() {
        let mut section = Section::new();
        section.begin(0);
        for i in 0..1_000 {
            section.put(event(i * 3_000 + 100, 5, Kind::Wants, 1));
            section.put(event(i * 3_000 + 1_100, 5, Kind::Acquired, 1));
            section.put(event(i * 3_000 + 2_900, 5, Kind::Released, 1));
        }
        let mut body = Vec::new();
        section.finish(70_000, &mut body);
        assert!(body.len() < 3 * 3_000 + 20, "{}", body.len());
    }
}
