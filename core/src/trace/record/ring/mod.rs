//! The last seconds of a trace in bounded memory: the output of a flight recorder.
//!
//! ```text
//!            dropped ◀── oldest                      newest ◀── written by the drain
//!   standing │ events 41 │ events 42 │ flush │ … │ events 97 │
//!     ▲                     ▲
//!     │                     └ frames of a trace, as they would stand in a file
//!     └ what each thread was doing when the first frame begins
//! ```
//!
//! A frame is dropped when all of it is too old, or when the memory is exceeded. Its events then update what
//! is known of the threads' states, so a dump begins with the right ones: a thread that has been idle for an
//! hour is idle, and a request that began before the first frame is open. What numbers stand for is kept
//! apart, because it was written once, long ago. It only grows while the program meets new code or begins
//! new threads; when it takes a quarter of the memory, it is reduced to what a frame mentions, and what the
//! recorder's tables still have, because that is not written again when an event mentions it. An event that
//! was queued when a table forgot its number arrives within a second; so numbers are dropped if they are of
//! no use at two times that are a second apart.
//!
//! A dump shares the frames with the ring, so it copies little and the recording goes on while it is written.
//!
//! A ring can also keep the last seconds of another process, whose frames arrive through a connection. The recorder's
//! tables are there, so such a ring keeps what all numbers stand for.

mod frame;
mod known;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use self::frame::{Frame, body};
use self::known::{ENTRY, Known, Numbers};
use self::standing::Standing;
use super::lock_watch::LockWatch;
use super::sink::Stats;
use crate::fork::lock;
use crate::trace::format::code;
use crate::trace::format::event::{Event, Kind};
use crate::trace::format::wire::{self, Bytes, Section};

/// The last seconds of a trace. Clones share them. It takes the frames of a trace, one in each call of
/// [`write`](Write::write), as a [`Sink`](super::sink::Sink) writes them.
#[derive(Clone)]
pub(in crate::trace) struct Ring(Arc<Mutex<Kept>>);

/// What a ring keeps.
struct Kept {
    keep: u64,
    memory: usize,
    about: Vec<(String, String)>,
    start: u64,
    known: Known,
    standing: HashMap<u32, Standing>,
    frames: VecDeque<Frame>,
    /// The size of the frames in bytes.
    size: usize,
    dropped: bool,
    /// The time up to which the last `FLUSH` frame says that everything was written.
    flushed: Option<u64>,
    /// Whether another process records the frames.
    is_remote: bool,
    /// The size of what numbers stand for after it was last reduced.
    reduced: usize,
    /// Numbers of no use, and since when.
    unused: Option<(u64, Numbers)>,
    watches: Vec<Arc<Mutex<LockWatch>>>,
}

/// An event is written at most this long after it was recorded, in nanoseconds.
const LATEST: u64 = 1_000_000_000;

impl Kept {
    fn take(&mut self, frame: &[u8]) {
        match frame.first() {
            Some(&wire::ABOUT) => self.take_about(body(frame)),
            Some(&wire::DEFINITIONS) => {
                let mut body = Bytes(body(frame));
                while let Some(definition) = wire::take_definition(&mut body) {
                    self.known.define(definition);
                }
            }
            Some(&wire::CODE) => {
                let mut body = Bytes(body(frame));
                while let Some(definition) = code::take_definition(&mut body) {
                    self.known.define_code(definition);
                }
            }
            Some(&wire::EVENTS) => {
                let mut watches: Vec<_> = self.watches.iter().map(|watch| lock(watch)).collect();
                let each = |event| watches.iter_mut().for_each(|watch| watch.put(event));
                let events = Frame::of_events(frame, each);
                drop(watches);
                self.push(events);
            }
            Some(&wire::FLUSH) => {
                let flush = Frame::of_flush(frame);
                self.flushed = Some(flush.latest);
                self.push(flush);
            }
            // The magic, and the end, which each dump has of its own.
            _ => {}
        }
        self.reduce();
    }

    fn take_about(&mut self, body: &[u8]) {
        let mut body = Bytes(body);
        while let Some((key, value)) = body.text().zip(body.text()) {
            if key == "start" {
                self.start = value.parse().unwrap_or_default();
            }
            self.about.push((key.to_owned(), value.to_owned()));
        }
    }

    fn push(&mut self, frame: Frame) {
        let newest = frame.latest;
        self.size += frame.bytes.len() + ENTRY;
        self.frames.push_back(frame);
        while self.is_full(newest) {
            let Some(frame) = self.frames.pop_front() else { return };
            self.size -= frame.bytes.len() + ENTRY;
            self.forget(&frame);
        }
    }

    fn is_full(&self, newest: u64) -> bool {
        let is_old = |frame: &Frame| frame.latest.saturating_add(self.keep) < newest;
        // What numbers stand for may take three quarters of the memory; beyond that it is in addition.
        let for_frames = self.memory - self.known.size.min(self.memory / 4 * 3);
        self.frames.front().is_some_and(is_old) || self.size > for_frames
    }

    /// Keeps of a dropped frame what the threads were doing at its end.
    fn forget(&mut self, frame: &Frame) {
        self.dropped = true;
        if frame.bytes.first() != Some(&wire::EVENTS) {
            return;
        }
        wire::take_events(body(&frame.bytes), |native, event| match event.kind {
            Kind::Lost | Kind::Cpu | Kind::RunDelay => {}
            Kind::ThreadEnd => {
                self.standing.remove(&event.thread);
                self.known.forget_thread(event.thread);
            }
            _ => self.standing.entry(event.thread).or_default().step(native, event),
        });
    }

    /// Drops what numbers of no use stand for, if it takes much memory. Threads and locks stay: those that exist
    /// may be mentioned again.
    fn reduce(&mut self) {
        if self.is_remote {
            return;
        }
        let newest = self.frames.back().map_or(0, |frame| frame.latest);
        match &self.unused {
            None if self.known.size > self.memory / 4 && self.known.size > self.reduced * 2 => {
                self.unused = Some((newest, self.find_unused()));
            }
            Some((since, _)) if newest > since.saturating_add(LATEST) => {
                let before = self.unused.take().map(|(_, numbers)| numbers).unwrap_or_default();
                let now = self.find_unused();
                self.known.forget(&Numbers {
                    names: before.names.intersection(&now.names).copied().collect(),
                    code: before.code.intersection(&now.code).copied().collect(),
                });
                self.reduced = self.known.size;
            }
            _ => {}
        }
    }

    /// The numbers that no event mentions and that the recorder's tables do not have.
    fn find_unused(&self) -> Numbers {
        let mut used = Numbers::of_recorder();
        let mut mention = |event: Event| match event.kind {
            Kind::RegionBegin | Kind::MarkBegin | Kind::MarkEnd => drop(used.names.insert(event.argument)),
            Kind::StackHolding | Kind::StackReleasing | Kind::StackWaiting => {
                self.known.mark_stack(event.argument, &mut used.code);
            }
            _ => {}
        };
        for frame in self.frames.iter().filter(|frame| frame.bytes.first() == Some(&wire::EVENTS)) {
            wire::take_events(body(&frame.bytes), |_, event| mention(event));
        }
        self.standing.values().flat_map(|standing| &standing.open).for_each(|event| mention(*event));
        Numbers {
            names: self.known.names.keys().filter(|id| !used.names.contains(id)).copied().collect(),
            code: self.known.code.keys().filter(|key| !used.code.contains(key)).copied().collect(),
        }
    }

    fn dump(&self, time: u64) -> Dump {
        let first = self.frames.iter().map(|frame| frame.earliest).min().unwrap_or(time);
        let start = if self.dropped { first.min(time) } else { self.start };
        let mut head = wire::MAGIC.to_vec();
        head.extend(wire::frame(wire::ABOUT, &wire::about(&self.about_from(start))));
        let definitions = self.known.definitions(&self.standing);
        head.extend(wire::frame(wire::DEFINITIONS, &wire::definitions(&definitions)));
        head.extend(wire::frame(wire::CODE, &code::definitions(&self.known.code())));
        head.extend(wire::frame(wire::EVENTS, &self.open_events(start)));
        let (events, lost) =
            self.frames.iter().fold((0, 0), |sum, frame| (sum.0 + frame.events, sum.1 + frame.lost));
        let mut end = Vec::new();
        [time, events, lost].into_iter().for_each(|number| wire::put_number(&mut end, number));
        let frames = self.frames.iter().map(|frame| frame.bytes.clone()).collect();
        Dump { head, frames, tail: wire::frame(wire::END, &end), events, lost }
    }

    /// The description of the program, of a trace that begins at `start`.
    fn about_from(&self, start: u64) -> Vec<(String, String)> {
        let later = start.saturating_sub(self.start);
        let moved = |(key, value): &(String, String)| {
            let value = match (key.as_str(), value.parse::<u64>()) {
                ("start", _) => start.to_string(),
                ("started", Ok(started)) => (started + later).to_string(),
                _ => value.clone(),
            };
            (key.clone(), value)
        };
        self.about.iter().map(moved).collect()
    }

    /// What had begun before `start` and had not ended, as if it began then.
    fn open_events(&self, start: u64) -> Vec<u8> {
        let (mut body, mut section) = (Vec::new(), Section::new());
        wire::put_number(&mut body, start);
        for standing in self.standing.values() {
            section.begin(start);
            standing.open.iter().for_each(|event| section.put(Event { time: start, ..*event }));
            section.finish(standing.native, &mut body);
        }
        body
    }
}

impl Ring {
    /// An empty ring for the events of the last `keep`, as far as `memory` bytes hold them.
    pub(in crate::trace) fn new(keep: Duration, memory: usize) -> Self {
        Self::start(keep, memory, false)
    }

    /// Like [`new`](Self::new), for frames that another process records.
    pub(in crate::trace) fn of_another_process(keep: Duration, memory: usize) -> Self {
        Self::start(keep, memory, true)
    }

    fn start(keep: Duration, memory: usize, is_remote: bool) -> Self {
        let keep = u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX);
        Self(Arc::new(Mutex::new(Kept {
            keep,
            memory,
            about: Vec::new(),
            start: 0,
            known: Known::default(),
            standing: HashMap::new(),
            frames: VecDeque::new(),
            size: 0,
            dropped: false,
            flushed: None,
            is_remote,
            reduced: 0,
            unused: None,
            watches: Vec::new(),
        })))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.0)
    }

    /// The trace of what the ring holds, which is complete up to `time`.
    pub(in crate::trace) fn dump(&self, time: u64) -> Dump {
        self.kept().dump(time)
    }

    /// The time up to which the ring holds all events, in nanoseconds of the monotonic clock. `None` until the first
    /// `FLUSH` frame.
    pub(in crate::trace) fn flushed(&self) -> Option<u64> {
        self.kept().flushed
    }

    /// The size of what numbers stand for, in bytes, roughly.
    pub(in crate::trace) fn size_of_definitions(&self) -> usize {
        self.kept().known.size
    }

    /// Passes the events from now on to a watch as well.
    pub(in crate::trace) fn watch(&self, watch: Arc<Mutex<LockWatch>>) {
        self.kept().watches.push(watch);
    }

    /// Ends what [`watch`](Self::watch) began.
    pub(in crate::trace) fn unwatch(&self, watch: &Arc<Mutex<LockWatch>>) {
        self.kept().watches.retain(|other| !Arc::ptr_eq(other, watch));
    }

    /// The name of a thread.
    pub(in crate::trace) fn thread_name(&self, thread: u32) -> String {
        let kept = self.kept();
        let name = kept.known.threads.get(&thread).map(|(name, _)| name.clone());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("thread {thread}"))
    }

    /// The threads with one of these names.
    pub(in crate::trace) fn threads_named(&self, names: &[&str]) -> HashSet<u32> {
        let kept = self.kept();
        let named = kept.known.threads.iter().filter(|(_, (name, _))| names.contains(&name.as_str()));
        named.map(|(id, _)| *id).collect()
    }

    /// What a stack consists of, as a `CODE` frame's body.
    pub(in crate::trace) fn code_of(&self, stack: u32) -> Vec<u8> {
        let (kept, mut needed) = (self.kept(), HashSet::new());
        kept.known.mark_stack(stack, &mut needed);
        let code: Vec<_> = needed.iter().filter_map(|key| kept.known.code.get(key)).cloned().collect();
        code::definitions(&code)
    }

    /// The number of bytes that it takes.
    pub(in crate::trace) fn size(&self) -> usize {
        let kept = self.kept();
        kept.size + kept.known.size
    }
}

impl Write for Ring {
    fn write(&mut self, frame: &[u8]) -> io::Result<usize> {
        self.kept().take(frame);
        Ok(frame.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A trace of the last seconds, ready to be written.
pub(in crate::trace) struct Dump {
    head: Vec<u8>,
    frames: Vec<Arc<[u8]>>,
    tail: Vec<u8>,
    events: u64,
    lost: u64,
}

impl Dump {
    pub(in crate::trace) fn stats(&self) -> Stats {
        let frames: usize = self.frames.iter().map(|frame| frame.len()).sum();
        let bytes = (self.head.len() + frames + self.tail.len()) as u64;
        Stats { events: self.events, lost: self.lost, bytes }
    }

    pub(in crate::trace) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        self.frames.iter().try_for_each(|frame| out.write_all(frame))?;
        out.write_all(&self.tail)
    }
}
