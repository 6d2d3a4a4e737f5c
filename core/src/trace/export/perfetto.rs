//! Perfetto's native trace: <https://perfetto.dev/docs/reference/trace-packet-proto>.
//!
//! Every thread has a track with its states and, if there are any, one below it with operations and marks.
//! Every lock has a counter of the threads that wait for it. If a thread waited for the lock, a flow leads
//! from the previous holder's slice to its own, and the slice of its waiting says which thread held the lock
//! meanwhile, in which mark and in which function. Packets are compressed, as Perfetto's own service does when it is asked to:
//! they take less than a quarter of the space.

use std::collections::HashMap;
use std::io::{self, Write};

use super::holders::{Holder, Holders};
use super::perfetto_stacks::{code_name, intern_stacks, with_stack};
use super::process::{pid, process_name};
use super::proto::Message;
use crate::Task;
use crate::deflate::{Output, compress};
use crate::trace::analyze::blamed_code::{Piece, blamed_pieces, by_thread};
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::{Life, LockLife, Slice, Span, State, Timeline};

mod trace {
    pub(super) const PACKET: u32 = 1;
}
mod packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const COMPRESSED: u32 = 50;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}
mod track {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const CHILD_ORDERING: u32 = 11;
    pub(super) const RANK: u32 = 12;
    pub(super) const PROCESS_PID: u32 = 1;
    pub(super) const PROCESS_NAME: u32 = 6;
    pub(super) const COUNTER_UNIT: u32 = 3;
    pub(super) const EXPLICIT: u64 = 3;
    pub(super) const COUNT: u64 = 2;
}
mod event {
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME_IID: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const FLOWS: u32 = 47;
    pub(super) const ENDING_FLOWS: u32 = 48;
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const COUNTER: u64 = 4;
}
mod annotation {
    pub(super) const NAME_IID: u32 = 1;
    pub(super) const TEXT_IID: u32 = 17;
    pub(super) const HELD_BY: u64 = 1;
    pub(super) const DURING: u64 = 2;
    pub(super) const CODE: u64 = 3;
    pub(super) const NAMES: [(u64, &str); 3] =
        [(HELD_BY, "held meanwhile by"), (DURING, "in the mark"), (CODE, "in the function")];
}
mod interned {
    pub(super) const EVENT_NAMES: u32 = 2;
    pub(super) const ANNOTATION_NAMES: u32 = 3;
    pub(super) const ANNOTATION_TEXTS: u32 = 29;
}

const SEQUENCE: u64 = 1;
const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
const PROCESS_TRACK: u64 = 1;

/// The number of a thread's track of states.
fn states_track(thread: usize) -> u64 {
    1_000 + thread as u64 * 3
}

fn spans_track(thread: usize) -> u64 {
    states_track(thread) + 1
}

fn stacks_track(thread: usize) -> u64 {
    states_track(thread) + 2
}

fn waiters_track(lock: &LockLife) -> u64 {
    1 << 40 | u64::from(lock.id)
}

/// The flows that begin and end at a slice, by the slice's thread and start.
#[derive(Default)]
struct Flows(HashMap<(usize, u64), (Option<u64>, Option<u64>)>);

impl Flows {
    fn of(timeline: &Timeline) -> Self {
        let mut flows = Self::default();
        let mut next = 1;
        for lock in &timeline.locks {
            for pair in lock.holds.windows(2) {
                let waited = waited_until(&timeline.threads[pair[1].thread], pair[1].start);
                if pair[0].thread != pair[1].thread && waited {
                    flows.0.entry((pair[0].thread, pair[0].start)).or_default().0 = Some(next);
                    flows.0.entry((pair[1].thread, pair[1].start)).or_default().1 = Some(next);
                    next += 1;
                }
            }
        }
        flows
    }

    fn at(&self, thread: usize, time: u64) -> (Option<u64>, Option<u64>) {
        self.0.get(&(thread, time)).copied().unwrap_or_default()
    }
}

fn waited_until(life: &Life, time: u64) -> bool {
    let wait = life.waits.partition_point(|wait| wait.end < time);
    life.waits.get(wait).is_some_and(|wait| wait.end == time && wait.length() > 0)
}

struct Writer<'a> {
    recording: &'a Recording,
    out: &'a mut dyn Write,
    /// Packets that are to be compressed.
    packets: Vec<u8>,
}

/// Writes the trace.
pub(super) fn write(recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer { recording, out, packets: Vec::new() };
    let pieces = blamed_pieces(recording, timeline);
    writer.names(timeline, &pieces)?;
    writer.process()?;
    let (flows, mut holders) = (Flows::of(timeline), Holders::new(recording, timeline, &pieces));
    for (thread, life) in timeline.threads.iter().enumerate() {
        writer.thread(thread, life, &flows, &mut holders)?;
    }
    writer.stacks(timeline, &pieces)?;
    for lock in &timeline.locks {
        writer.waiters(timeline, lock)?;
    }
    writer.compress()
}

/// So many bytes are compressed together; readers hold that much in memory.
const TOGETHER: usize = 1 << 18;
const LEVEL: i32 = 6;
const ZLIB: i32 = 15;

/// The number of a state's name in the trace; the other names follow.
fn state_name(state: State) -> u64 {
    state as u64 + 1
}

fn other_name(name: u32) -> u64 {
    u64::from(name) + 100
}

/// The number of a thread's name among the texts of annotations; other names follow.
fn thread_text(thread: usize) -> u64 {
    thread as u64 + 1
}

fn name_text(name: u32) -> u64 {
    1 << 32 | u64::from(name)
}

impl Writer<'_> {
    fn packet(&mut self, packet: Message) -> io::Result<()> {
        let packet = packet.number(packet::SEQUENCE, SEQUENCE);
        self.packets.extend(Message::default().message(trace::PACKET, packet).into_bytes());
        if self.packets.len() < TOGETHER { Ok(()) } else { self.compress() }
    }

    fn compress(&mut self) -> io::Result<()> {
        let mut compressed = Output::new();
        compress(&self.packets, LEVEL, ZLIB, &mut compressed, &Task::new()).map_err(io::Error::other)?;
        self.packets.clear();
        let packet = Message::default().bytes(packet::COMPRESSED, &compressed.into_bytes().into_vec());
        self.out.write_all(&Message::default().message(trace::PACKET, packet).into_bytes())
    }

    fn names(&mut self, timeline: &Timeline, pieces: &[Piece]) -> io::Result<()> {
        let states = State::ALL.map(|state| (state_name(state), state.name()));
        let names = || self.recording.names.iter();
        let others = names().map(|(id, name)| (other_name(*id), name.as_str()));
        let threads =
            timeline.threads.iter().enumerate().map(|(thread, life)| (thread_text(thread), &*life.name));
        let texts = threads.chain(names().map(|(id, name)| (name_text(*id), name.as_str())));
        let all = Message::default();
        let all = all.interned(interned::EVENT_NAMES, states.into_iter().chain(others));
        let all = all.interned(interned::ANNOTATION_NAMES, annotation::NAMES.into_iter());
        let all = all.interned(interned::ANNOTATION_TEXTS, texts);
        let all = intern_stacks(all, self.recording, pieces);
        let packet = Message::default().number(packet::SEQUENCE_FLAGS, CLEARED | NEEDS_STATE);
        self.packet(packet.message(packet::INTERNED, all))
    }

    fn describe(&mut self, uuid: u64, track: Message) -> io::Result<()> {
        let track = track.number(track::UUID, uuid);
        self.packet(Message::default().message(packet::TRACK_DESCRIPTOR, track))
    }

    fn process(&mut self) -> io::Result<()> {
        let process = Message::default()
            .number(track::PROCESS_PID, u64::from(pid(self.recording)))
            .text(track::PROCESS_NAME, &process_name(self.recording));
        let track = Message::default().message(track::PROCESS, process);
        self.describe(PROCESS_TRACK, track.number(track::CHILD_ORDERING, track::EXPLICIT))
    }

    fn thread(
        &mut self,
        thread: usize,
        life: &Life,
        flows: &Flows,
        holders: &mut Holders<'_>,
    ) -> io::Result<()> {
        let track = Message::default()
            .text(track::NAME, &life.name)
            .number(track::PARENT, PROCESS_TRACK)
            .number(track::RANK, thread as u64 + 1);
        self.describe(states_track(thread), track)?;
        for (slice, end) in life.states() {
            let Slice { start, state, .. } = slice;
            let (begins, ends) = if state.holds() { flows.at(thread, start) } else { (None, None) };
            let begin = begin(states_track(thread), state_name(state));
            let begin = begins.into_iter().fold(begin, |event, flow| event.fixed(event::FLOWS, flow));
            let begin = ends.into_iter().fold(begin, |event, flow| event.fixed(event::ENDING_FLOWS, flow));
            let begin = holders.of(slice, end).into_iter().fold(begin, annotate);
            self.event(start, begin)?;
            self.event(end, self::end(states_track(thread)))?;
        }
        self.spans(thread, life)
    }

    fn spans(&mut self, thread: usize, life: &Life) -> io::Result<()> {
        if life.regions.is_empty() && life.marks.is_empty() {
            return Ok(());
        }
        let track = Message::default().text(track::NAME, "operations and marks");
        self.describe(spans_track(thread), track.number(track::PARENT, states_track(thread)))?;
        let mut spans: Vec<&Span> = life.regions.iter().chain(&life.marks).collect();
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let mut open: Vec<u64> = Vec::new();
        for span in spans {
            while let Some(end) = open.pop_if(|end| *end <= span.start) {
                self.event(end, self::end(spans_track(thread)))?;
            }
            let outer = open.last().copied().unwrap_or(u64::MAX);
            self.event(span.start, begin(spans_track(thread), other_name(span.name)))?;
            open.push(span.end.min(outer));
        }
        open.into_iter().rev().try_for_each(|end| self.event(end, self::end(spans_track(thread))))
    }

    fn stacks(&mut self, timeline: &Timeline, pieces: &[Piece]) -> io::Result<()> {
        let lasting = pieces.iter().copied().filter(|piece| piece.start < piece.end);
        let of_threads = by_thread(timeline, lasting).into_iter().enumerate();
        for (thread, pieces) in of_threads.filter(|(_, pieces)| !pieces.is_empty()) {
            let track = Message::default().text(track::NAME, "code that held the lock");
            self.describe(stacks_track(thread), track.number(track::PARENT, states_track(thread)))?;
            for piece in pieces {
                let begin = begin(stacks_track(thread), code_name(piece.stack));
                self.event(piece.start, with_stack(begin, &piece))?;
                self.event(piece.end, end(stacks_track(thread)))?;
            }
        }
        Ok(())
    }

    fn waiters(&mut self, timeline: &Timeline, lock: &LockLife) -> io::Result<()> {
        let track = Message::default()
            .text(track::NAME, &format!("waiting for {}", lock.name))
            .number(track::PARENT, PROCESS_TRACK)
            .number(track::RANK, 0)
            .message(track::COUNTER, Message::default().number(track::COUNTER_UNIT, track::COUNT));
        self.describe(waiters_track(lock), track)?;
        for (time, waiting) in waiting_threads(timeline, lock) {
            let event = Message::default()
                .number(event::TYPE, event::COUNTER)
                .number(event::TRACK, waiters_track(lock))
                .number(event::COUNTER_VALUE, waiting);
            self.event(time, event)?;
        }
        Ok(())
    }

    fn event(&mut self, time: u64, event: Message) -> io::Result<()> {
        let packet = Message::default()
            .number(packet::TIMESTAMP, self.recording.start + time)
            .number(packet::SEQUENCE_FLAGS, NEEDS_STATE);
        self.packet(packet.message(packet::TRACK_EVENT, event))
    }
}

/// Adds which thread held the lock, and where.
fn annotate(event: Message, holder: Holder) -> Message {
    let mark = holder.mark.map(|mark| (annotation::DURING, name_text(mark)));
    let code = holder.stack.map(|stack| (annotation::CODE, code_name(stack)));
    let texts = [(annotation::HELD_BY, thread_text(holder.thread))].into_iter().chain(mark).chain(code);
    texts.fold(event, |event, (name, text)| {
        let annotation = Message::default().number(annotation::NAME_IID, name);
        event.message(event::ANNOTATION, annotation.number(annotation::TEXT_IID, text))
    })
}

fn begin(track: u64, name: u64) -> Message {
    let event = Message::default().number(event::TYPE, event::BEGIN);
    event.number(event::TRACK, track).number(event::NAME_IID, name)
}

fn end(track: u64) -> Message {
    Message::default().number(event::TYPE, event::END).number(event::TRACK, track)
}

/// The number of threads that wait for a lock, from each time at which it changes.
fn waiting_threads(timeline: &Timeline, lock: &LockLife) -> Vec<(u64, u64)> {
    let waits = timeline.threads.iter().flat_map(|life| &life.waits);
    let waits = waits.filter(|wait| wait.lock == lock.id && wait.length() > 0);
    let mut edges: Vec<(u64, i64)> = waits.flat_map(|wait| [(wait.start, 1), (wait.end, -1)]).collect();
    edges.sort_unstable();
    let mut counts: Vec<(u64, u64)> = vec![(0, 0)];
    let mut waiting = 0_i64;
    for (time, change) in edges {
        waiting += change;
        counts.pop_if(|(last, _)| *last == time);
        counts.push((time, waiting as u64));
    }
    counts
}
