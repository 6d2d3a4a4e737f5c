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

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::code::code_table;
use super::lock_watch::LockWatch;
use super::registry::registry;
use super::sink::Stats;
use crate::fork::lock;
use crate::trace::format::code::{self, CodeDefinition};
use crate::trace::format::definition::{Definition, Stand};
use crate::trace::format::event::{Event, Kind, Reason, unpack_release};
use crate::trace::format::wire::{self, Bytes, FRAME_HEADER, Section};

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

/// A frame with events, or one that says that all events were written.
struct Frame {
    bytes: Arc<[u8]>,
    earliest: u64,
    latest: u64,
    events: u64,
    lost: u64,
}

/// What numbers stand for.
#[derive(Default)]
struct Known {
    names: HashMap<u32, String>,
    locks: HashMap<u32, String>,
    threads: HashMap<u32, (String, Stand)>,
    code: HashMap<(CodeKind, u32), CodeDefinition>,
    /// Their size in bytes, roughly.
    size: usize,
}

/// Numbers of names and of code.
#[derive(Default)]
struct Numbers {
    names: HashSet<u32>,
    code: HashSet<(CodeKind, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CodeKind {
    File,
    Function,
    Frame,
}

/// What a thread was doing when the first frame begins.
#[derive(Default)]
struct Standing {
    native: u32,
    stand: Stand,
    /// The beginnings of collections, operations and marks that had not ended.
    open: Vec<Event>,
}

/// An event is written at most this long after it was recorded, in nanoseconds.
const LATEST: u64 = 1_000_000_000;

/// The size of an entry of the tables apart from its text, in bytes, roughly.
const ENTRY: usize = 96;

impl Known {
    fn define(&mut self, definition: Definition) {
        let text = match &definition {
            Definition::Name { text: name, .. }
            | Definition::Thread { name, .. }
            | Definition::Lock { name, .. } => name.len(),
        };
        self.size += ENTRY + text;
        match definition {
            Definition::Name { id, text } => drop(self.names.insert(id, text)),
            Definition::Lock { id, name } => drop(self.locks.insert(id, name)),
            // As in a file, the first relation to the lock counts, and the last name.
            Definition::Thread { id, name, stand } => {
                let thread = self.threads.entry(id).or_insert_with(|| (String::new(), stand));
                if !name.is_empty() {
                    thread.0 = name;
                }
            }
        }
    }

    fn define_code(&mut self, definition: CodeDefinition) {
        let text = match &definition {
            CodeDefinition::File { path: text, .. } | CodeDefinition::Function { name: text, .. } => {
                text.len()
            }
            CodeDefinition::Frame { .. } => 0,
        };
        self.size += ENTRY + text;
        self.code.insert(key_of(&definition), definition);
    }

    /// Adds the numbers that a stack needs, up to its outermost frame.
    fn mark_stack(&self, stack: u32, needed: &mut HashSet<(CodeKind, u32)>) {
        let mut inner = stack;
        while needed.insert((CodeKind::Frame, inner)) {
            let Some(CodeDefinition::Frame { caller, function, .. }) =
                self.code.get(&(CodeKind::Frame, inner))
            else {
                return;
            };
            needed.insert((CodeKind::Function, *function));
            let of_function = self.code.get(&(CodeKind::Function, *function));
            if let Some(CodeDefinition::Function { file, .. }) = of_function {
                needed.insert((CodeKind::File, *file));
            }
            inner = *caller;
        }
    }

    fn definitions(&self, standing: &HashMap<u32, Standing>) -> Vec<Definition> {
        let names = self.names.iter().map(|(id, text)| Definition::Name { id: *id, text: text.clone() });
        let locks = self.locks.iter().map(|(id, name)| Definition::Lock { id: *id, name: name.clone() });
        let threads = self.threads.iter().map(|(id, (name, first))| {
            let stand = standing.get(id).map_or(*first, |standing| standing.stand);
            Definition::Thread { id: *id, name: name.clone(), stand }
        });
        names.chain(locks).chain(threads).collect()
    }

    fn code(&self) -> Vec<CodeDefinition> {
        self.code.values().cloned().collect()
    }
}

impl Standing {
    fn step(&mut self, native: u32, event: Event) {
        self.native = native;
        match event.kind {
            Kind::Wants => self.stand = Stand::Wants,
            Kind::Acquired => self.stand = Stand::Holds,
            Kind::Released if unpack_release(event.argument).1 == Reason::Yields => {
                self.stand = Stand::Wants;
            }
            Kind::Released | Kind::ThreadStart => self.stand = Stand::Off,
            Kind::GcEnter | Kind::RegionBegin | Kind::MarkBegin => self.open.push(event),
            Kind::GcExit => self.close(Kind::GcEnter),
            Kind::RegionEnd => self.close(Kind::RegionBegin),
            Kind::MarkEnd => self.close(Kind::MarkBegin),
            _ => {}
        }
    }

    fn close(&mut self, begin: Kind) {
        if let Some(innermost) = self.open.iter().rposition(|event| event.kind == begin) {
            self.open.remove(innermost);
        }
    }
}

fn key_of(definition: &CodeDefinition) -> (CodeKind, u32) {
    match definition {
        CodeDefinition::File { id, .. } => (CodeKind::File, *id),
        CodeDefinition::Function { id, .. } => (CodeKind::Function, *id),
        CodeDefinition::Frame { id, .. } => (CodeKind::Frame, *id),
    }
}

impl Numbers {
    /// Those that the recorder's tables have, so that events may mention them again.
    fn of_recorder() -> Self {
        let names = registry().definitions().into_iter().filter_map(|definition| match definition {
            Definition::Name { id, .. } => Some(id),
            _ => None,
        });
        Self { names: names.collect(), code: code_table().definitions().iter().map(key_of).collect() }
    }
}

/// The body of a frame, without its header.
fn body(frame: &[u8]) -> &[u8] {
    frame.get(FRAME_HEADER..).unwrap_or_default()
}

impl Frame {
    fn of_events(bytes: &[u8], mut each: impl FnMut(Event)) -> Self {
        let (mut earliest, mut latest, mut events, mut lost) = (u64::MAX, 0, 0, 0);
        wire::take_events(body(bytes), |_, event| {
            earliest = earliest.min(event.time);
            latest = latest.max(event.time);
            events += u64::from(event.kind.is_event());
            if event.kind == Kind::Lost {
                lost += u64::from(event.argument);
            }
            each(event);
        });
        Self { bytes: bytes.into(), earliest, latest, events, lost }
    }

    fn of_flush(bytes: &[u8]) -> Self {
        let time = Bytes(body(bytes)).number().unwrap_or_default();
        Self { bytes: bytes.into(), earliest: time, latest: time, events: 0, lost: 0 }
    }
}

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
                if let Some((name, _)) = self.known.threads.remove(&event.thread) {
                    self.known.size = self.known.size.saturating_sub(ENTRY + name.len());
                }
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
                self.drop_all(&Numbers {
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

    fn drop_all(&mut self, numbers: &Numbers) {
        let known = std::mem::take(&mut self.known);
        let threads = known.threads.into_iter();
        threads.for_each(|(id, (name, stand))| self.known.define(Definition::Thread { id, name, stand }));
        known.locks.into_iter().for_each(|(id, name)| self.known.define(Definition::Lock { id, name }));
        for (id, text) in known.names.into_iter().filter(|(id, _)| !numbers.names.contains(id)) {
            self.known.define(Definition::Name { id, text });
        }
        let code = known.code.into_iter().filter(|(key, _)| !numbers.code.contains(key));
        code.for_each(|(_, definition)| self.known.define_code(definition));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::trace::analyze::recording::Recording;
    use crate::trace::analyze::timeline::{Life, State, Timeline};
    use crate::trace::format::event::pack_release;

    const THREADS: u32 = 5;
    const LOCK: u32 = 1;
    const PASS: u64 = 1_000_000;

    /// A program whose threads do what they may do, at random: as frames of a trace.
    struct Program {
        random: u64,
        time: u64,
        holder: Option<u32>,
        wants: Vec<u32>,
        marks: [u32; THREADS as usize + 1],
        code: u32,
    }

    impl Program {
        fn new(seed: u64) -> Self {
            let marks = [0; THREADS as usize + 1];
            Self { random: seed, time: 1_000, holder: None, wants: Vec::new(), marks, code: 0 }
        }

        fn below(&mut self, bound: u64) -> u64 {
            self.random =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.random >> 33) % bound
        }

        fn begin(&self) -> Vec<Vec<u8>> {
            let about = [("start", self.time), ("started", 5_000_000)];
            let about = about.map(|(key, value)| (key.to_owned(), value.to_string()));
            let thread = |id| Definition::Thread { id, name: format!("thread {id}"), stand: Stand::Off };
            let all = (1..=THREADS).map(thread).chain([
                Definition::Lock { id: LOCK, name: "lock".into() },
                Definition::Name { id: 1, text: "request".into() },
            ]);
            let definitions = wire::definitions(&all.collect::<Vec<_>>());
            vec![
                wire::MAGIC.to_vec(),
                wire::frame(wire::ABOUT, &wire::about(&about)),
                wire::frame(wire::DEFINITIONS, &definitions),
            ]
        }

        fn step(&mut self) -> Event {
            self.time += 1 + self.below(20_000);
            let thread = 1 + self.below(u64::from(THREADS)) as u32;
            let (dice, holder) = (self.below(6), self.holder);
            let (kind, argument) = match holder {
                None if self.wants.contains(&thread) => {
                    self.wants.retain(|other| *other != thread);
                    self.holder = Some(thread);
                    (Kind::Acquired, LOCK)
                }
                Some(holder) if holder == thread && dice < 3 => {
                    self.holder = None;
                    (Kind::Released, pack_release(LOCK, Reason::Blocks))
                }
                holder if holder != Some(thread) && !self.wants.contains(&thread) && dice > 1 => {
                    self.wants.push(thread);
                    (Kind::Wants, LOCK)
                }
                _ if self.marks[thread as usize] > 0 && dice % 2 == 0 => {
                    self.marks[thread as usize] -= 1;
                    (Kind::MarkEnd, 0)
                }
                _ => {
                    self.marks[thread as usize] += 1;
                    (Kind::MarkBegin, 1)
                }
            };
            Event { time: self.time, thread, kind, argument }
        }

        /// The frames of one pass of the drain: new code now and then, and the events.
        fn pass(&mut self) -> Vec<Vec<u8>> {
            let (base, mut events) = (self.time + PASS, Vec::new());
            while self.time < base {
                events.push(self.step());
            }
            self.code += 3;
            let (file, function, frame) = (self.code, self.code + 1, self.code + 2);
            events.push(Event { time: self.time, thread: 1, kind: Kind::StackHolding, argument: frame });
            let code = [
                CodeDefinition::File { id: file, path: format!("file {file}") },
                CodeDefinition::Function {
                    id: function,
                    file,
                    line: 1,
                    name: format!("function {function}"),
                },
                CodeDefinition::Frame { id: frame, caller: 0, function, line: 2 },
            ];
            let (mut body, mut section) = (Vec::new(), Section::new());
            wire::put_number(&mut body, self.time);
            for thread in 1..=THREADS {
                section.begin(self.time);
                events.iter().filter(|event| event.thread == thread).for_each(|event| section.put(*event));
                section.finish(100 + thread, &mut body);
            }
            vec![
                wire::frame(wire::CODE, &code::definitions(&code)),
                wire::frame(wire::EVENTS, &body),
                wire::frame(wire::FLUSH, &wire::flush(self.time, None)),
            ]
        }
    }

    fn run(seed: u64, passes: u32, keep: Duration, memory: usize) -> (Recording, Recording, Ring) {
        let (mut program, mut all) = (Program::new(seed), Vec::new());
        let mut ring = Ring::new(keep, memory);
        let mut put = |frames: Vec<Vec<u8>>| {
            for frame in frames {
                ring.write_all(&frame).expect("memory");
                all.extend(frame);
            }
        };
        put(program.begin());
        (0..passes).for_each(|_| put(program.pass()));
        let mut end = Vec::new();
        [program.time, 0, 0].into_iter().for_each(|number| wire::put_number(&mut end, number));
        all.extend(wire::frame(wire::END, &end));
        let (mut kept, dump) = (Vec::new(), ring.dump(program.time));
        dump.write(&mut kept).expect("memory");
        assert_eq!(kept.len() as u64, dump.stats().bytes);
        let read = |bytes: &[u8]| Recording::read(bytes, &Task::new()).expect("a trace");
        let (all, kept) = (read(&all), read(&kept));
        assert_eq!((all.damage, kept.damage), (None, None));
        let open: usize = ring.kept().standing.values().map(|standing| standing.open.len()).sum();
        assert_eq!(kept.events, dump.events + open as u64);
        (all, kept, ring)
    }

    fn state(life: &Life, time: u64) -> (State, u32) {
        let slice = life.slices.iter().rfind(|slice| slice.start <= time).expect("the first is at 0");
        (slice.state, slice.what)
    }

    #[test]
    fn what_fits_is_the_whole_trace() {
        let (all, kept, _) = run(1, 50, Duration::from_secs(3_600), 64 << 20);
        assert_eq!(kept.about, all.about);
        assert_eq!(kept.threads, all.threads);
        assert_eq!(kept.code, all.code);
        assert_eq!(Timeline::of(&kept), Timeline::of(&all));
    }

    #[test]
    fn threads_are_at_any_time_in_the_state_of_the_whole_trace() {
        for seed in 0..20 {
            let (all, kept, _) = run(seed, 60, Duration::from_millis(20), 64 << 20);
            let later = kept.start - all.start;
            assert!(kept.end - kept.start >= 20 * PASS, "at least as long as asked for");
            assert!(kept.end - kept.start <= 23 * PASS, "and the rest of a pass");
            assert_eq!(kept.about("started"), Some((5_000_000 + later).to_string().as_str()));
            let (whole, part) = (Timeline::of(&all), Timeline::of(&kept));
            assert_eq!(part.threads.len(), THREADS as usize);
            for (whole, part) in whole.threads.iter().zip(&part.threads) {
                assert_eq!((&whole.name, part.oddities), (&part.name, 0));
                for time in (0..kept.end - kept.start).step_by(7_919) {
                    assert_eq!(
                        state(part, time),
                        state(whole, later + time),
                        "seed {seed}: {} at {time}",
                        part.name
                    );
                }
                let open = |life: &Life, time| {
                    life.marks.iter().filter(|mark| mark.start <= time && time < mark.end).count()
                };
                for time in (1..kept.end - kept.start).step_by(99_991) {
                    assert_eq!(open(part, time), open(whole, later + time), "seed {seed}: marks at {time}");
                }
            }
            let moments = kept.threads.values().flat_map(|thread| &thread.moments);
            for stack in moments.filter(|moment| moment.kind == Kind::StackHolding) {
                let frame = kept.code.stack(stack.argument).next().expect("it is defined");
                assert_eq!(kept.code.text(frame), all.code.text(frame));
            }
        }
    }

    #[test]
    fn memory_is_bounded_by_what_was_asked_for() {
        let memory = 1 << 20;
        for passes in [500, 5_000] {
            let (all, kept, ring) = run(3, passes, Duration::from_secs(3_600), memory);
            assert!(ring.size() <= memory, "{}", ring.size());
            assert!(passes < 1_000 || kept.events < all.events);
            assert!(passes < 1_000 || kept.code.frames.len() < all.code.frames.len());
        }
    }

    #[test]
    fn threads_that_ended_long_ago_are_forgotten() {
        let mut ring = Ring::new(Duration::from_millis(1), 1 << 20);
        let mut body = Vec::new();
        wire::put_number(&mut body, 0);
        let mut section = Section::new();
        for thread in 1..=100 {
            let define = [Definition::Thread { id: thread, name: "short".into(), stand: Stand::Off }];
            ring.write_all(&wire::frame(wire::DEFINITIONS, &wire::definitions(&define))).expect("memory");
            section.begin(0);
            section.put(Event { time: u64::from(thread), thread, kind: Kind::ThreadStart, argument: 0 });
            section.put(Event { time: u64::from(thread) + 1, thread, kind: Kind::ThreadEnd, argument: 0 });
            section.finish(thread, &mut body);
        }
        ring.write_all(&wire::frame(wire::EVENTS, &body)).expect("memory");
        assert_eq!(ring.kept().known.threads.len(), 100);
        ring.write_all(&wire::frame(wire::FLUSH, &wire::flush(1 << 30, None))).expect("memory");
        let kept = ring.kept();
        assert_eq!((kept.known.threads.len(), kept.standing.len()), (0, 0));
    }
}
