//! Reads a trace file.
//!
//! Frames are read in order up to the first that is incomplete or damaged; everything before it is used, and
//! [`Damage`] says what is wrong. A program that was killed leaves a file without an end frame, which reads
//! as complete up to its last flush. Events arrive in sections by native thread; they are sorted per
//! interpreter thread at the end, so reading takes O(n log n) for n events.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use super::code::Code;
use super::readings::{MachineUsed, Used, complete};
use crate::Task;
use crate::task::Stopped;
use crate::trace::files;
use crate::trace::format::code;
use crate::trace::format::definition::{Definition, Stand};
use crate::trace::format::event::{Event, Kind};
use crate::trace::format::wire::{self, Bytes, Section};

/// An event of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time, in nanoseconds of the monotonic clock.
    pub time: u64,
    /// The kind of the event.
    pub kind: Kind,
    /// The argument; see [`Kind`].
    pub argument: u32,
    /// The native thread on which it was recorded.
    pub native: u32,
}

/// An interpreter thread and its events, in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedThread {
    /// Its name, empty if it has none.
    pub name: String,
    /// Its relation to its lock when the recorder first described it.
    pub stand: Stand,
    /// Its events.
    pub moments: Vec<Moment>,
}

impl RecordedThread {
    /// Its name, or a generic one with its number.
    pub fn name_or(&self, id: u32) -> String {
        if self.name.is_empty() { format!("thread {id}") } else { self.name.clone() }
    }

    /// On one native thread, events are in the order of time, even if the stamps are some nanoseconds off.
    fn add(&mut self, mut moment: Moment) {
        match self.moments.last() {
            Some(last) if last.native == moment.native => moment.time = moment.time.max(last.time),
            _ => {}
        }
        self.moments.push(moment);
    }

    fn write(&self, thread: u32, base: u64, out: &mut Vec<u8>) {
        let (mut body, mut section) = (Vec::new(), Section::new());
        wire::put_number(&mut body, base);
        for moments in self.moments.chunk_by(|a, b| a.native == b.native) {
            section.begin(base);
            for Moment { time, kind, argument, .. } in moments {
                section.put(Event { time: *time, thread, kind: *kind, argument: *argument });
            }
            section.finish(moments[0].native, &mut body);
        }
        out.extend(wire::frame(wire::EVENTS, &body));
    }
}

/// Why a file could not be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// The program is still running, was killed, or exited without stopping the trace. Everything flushed is
    /// there, and nothing is damaged.
    NoEnd,
    /// The file stops in the middle of a frame.
    Cut,
    /// A frame has a wrong checksum.
    Checksum,
    /// A frame's checksum is right, but its content is invalid.
    Body,
}

/// Where reading stopped before the end of the recording, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The offset of the first byte that was not used.
    pub offset: u64,
    /// What is wrong there.
    pub flaw: Flaw,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset;
        match self.flaw {
            Flaw::NoEnd => {
                write!(
                    f,
                    "the recording was not stopped (a signal ended the program, it exited at once, or it still runs): \
                     it is complete up to its last flush, byte {offset}"
                )
            }
            Flaw::Cut => {
                write!(f, "the file is cut off in the frame at byte {offset}: it is read up to there")
            }
            Flaw::Checksum => write!(
                f,
                "the frame at byte {offset} is damaged (wrong checksum): the file is read up to there"
            ),
            Flaw::Body => {
                write!(f, "the frame at byte {offset} makes no sense: the file is read up to there")
            }
        }
    }
}

/// The bytes are not an offlock trace that this version can read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotATrace {
    /// The file is empty.
    Empty,
    /// The file does not begin like a trace; what it looks like instead, if that is known.
    Foreign(Option<&'static str>),
    /// The file has another version of the format.
    Version(u8),
    /// The task was stopped.
    Stopped,
}

impl fmt::Display for NotATrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("not an offlock trace: the file is empty"),
            Self::Foreign(None) => {
                f.write_str("not an offlock trace: it does not begin with \"offlock\" (byte 0)")
            }
            Self::Foreign(Some(like)) => write!(f, "not an offlock trace: byte 0 looks like {like}"),
            Self::Version(version) => {
                write!(
                    f,
                    "an offlock trace of format version {version} (byte 7); this offlock reads version {}",
                    wire::MAGIC[7]
                )
            }
            Self::Stopped => Stopped.fmt(f),
        }
    }
}

impl std::error::Error for NotATrace {}

/// The content of a trace file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// The description of the program, in the order of the file.
    pub about: Vec<(String, String)>,
    /// When the recording began, in nanoseconds of the monotonic clock.
    pub start: u64,
    /// When it ended, or the last known time if it was not stopped.
    pub end: u64,
    /// The threads by number.
    pub threads: BTreeMap<u32, RecordedThread>,
    /// The names of locks by number.
    pub locks: BTreeMap<u32, String>,
    /// The names of operations and marks by number.
    pub names: BTreeMap<u32, String>,
    /// How long native threads have used processors, by their number; in the order of time.
    pub usage: BTreeMap<u32, Vec<Used>>,
    /// How long the machine's processors were busy; in the order of time.
    pub machine: Vec<MachineUsed>,
    /// The functions and stacks that events name.
    pub code: Code,
    /// Whether the stacks of holders are at the ends of the parts of holds that they stand for, as after a cut.
    /// Otherwise they are where they were recorded.
    pub has_settled_stacks: bool,
    /// The stacks that are looked at, if not all are.
    pub looked_at: Option<HashSet<u32>>,
    /// The number of events read.
    pub events: u64,
    /// The number of events that are missing.
    pub lost: u64,
    /// The times at which events were lost, and how many.
    pub losses: Vec<(u64, u64)>,
    /// The number of bytes read.
    pub bytes: u64,
    /// What is wrong with the end of the file.
    pub damage: Option<Damage>,
}

impl Recording {
    /// The number under which [`usage`](Self::usage) has the readings of the whole process.
    pub const PROCESS: u32 = 0;
    /// The number of the name of what threads compute without the lock if it is none of offlock's operations.
    /// The recorder's names begin at 1.
    pub const OTHER_CODE: u32 = 0;

    /// Whether the time of a stack is shown.
    pub(super) fn looks_at(&self, stack: u32) -> bool {
        self.looked_at.as_ref().is_none_or(|looked_at| looked_at.contains(&stack))
    }

    /// Reads a trace. A file that is truncated or damaged is read up to there; see [`damage`](Self::damage).
    /// The task's progress counts bytes.
    ///
    /// # Errors
    ///
    /// [`NotATrace`] if the bytes do not begin like a trace of this version, or if the task was stopped.
    pub fn read(bytes: &[u8], task: &Task<'_>) -> Result<Self, NotATrace> {
        check_magic(bytes)?;
        let mut recording = Self::default();
        let mut offset = wire::MAGIC.len();
        let flaw = loop {
            task.check().map_err(|Stopped| NotATrace::Stopped)?;
            let (kind, body) = match frame_at(bytes, offset) {
                Ok(Some(frame)) => frame,
                Ok(None) => break Some(Flaw::NoEnd),
                Err(flaw) => break Some(flaw),
            };
            if recording.take(kind, body).is_none() {
                break Some(Flaw::Body);
            }
            offset += wire::FRAME_HEADER + body.len();
            task.advance((wire::FRAME_HEADER + body.len()) as u64);
            if kind == wire::END {
                break None;
            }
        };
        recording.damage = flaw.map(|flaw| Damage { offset: offset as u64, flaw });
        recording.finish(offset);
        Ok(recording)
    }

    /// What a process writes to the file that it will replace at its end: what it is, and nothing else. If the process
    /// replaces itself (exec), then the new program recognizes the file.
    pub(in crate::trace) fn claim(pid: u32) -> Vec<u8> {
        let about = wire::about(&[("pid".to_owned(), pid.to_string())]);
        [&wire::MAGIC[..], &wire::frame(wire::ABOUT, &about)].concat()
    }

    /// Whether a process has claimed the file, but written no recording to it.
    pub fn is_claim(&self) -> bool {
        let is_of_claim = |(key, _): &(String, String)| key == "pid" || key == ENDED_BY;
        self.threads.is_empty() && !self.about.is_empty() && self.about.iter().all(is_of_claim)
    }

    /// Encodes the recording as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = wire::MAGIC.to_vec();
        out.extend(wire::frame(wire::ABOUT, &wire::about(&self.about)));
        out.extend(wire::frame(wire::DEFINITIONS, &wire::definitions(&self.definitions())));
        let code = self.code.definitions();
        if !code.is_empty() {
            out.extend(wire::frame(wire::CODE, &code::definitions(&code)));
        }
        self.threads.iter().for_each(|(id, thread)| thread.write(*id, self.start, &mut out));
        if !self.usage.is_empty() {
            out.extend(wire::frame(wire::EVENTS, &self.usage_body()));
        }
        for MachineUsed { time, busy, total } in &self.machine {
            out.extend(wire::frame(wire::FLUSH, &wire::flush(*time, Some((*busy, *total)))));
        }
        let mut end = Vec::new();
        [self.end, self.events, self.lost].into_iter().for_each(|number| wire::put_number(&mut end, number));
        out.extend(wire::frame(wire::END, &end));
        out
    }

    fn usage_body(&self) -> Vec<u8> {
        let (mut body, mut section) = (Vec::new(), Section::new());
        wire::put_number(&mut body, self.start);
        for (native, readings) in &self.usage {
            section.begin(self.start);
            readings.iter().flat_map(Used::events).for_each(|event| section.put(event));
            section.finish(*native, &mut body);
        }
        body
    }

    fn definitions(&self) -> Vec<Definition> {
        let names = self.names.iter().map(|(id, text)| Definition::Name { id: *id, text: text.clone() });
        let locks = self.locks.iter().map(|(id, name)| Definition::Lock { id: *id, name: name.clone() });
        let thread = |(id, thread): (&u32, &RecordedThread)| Definition::Thread {
            id: *id,
            name: thread.name.clone(),
            stand: thread.stand,
        };
        names.chain(locks).chain(self.threads.iter().map(thread)).collect()
    }

    /// The description of the program under `key`.
    pub fn about(&self, key: &str) -> Option<&str> {
        self.about.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// What is wrong with the end of the file, in words; see [`damage`](Self::damage).
    pub fn damage_in_words(&self) -> Option<String> {
        let damage = self.damage?;
        if let Some(pid) = self.about(RUNNING) {
            return Some(format!("process {pid} is still recording: this is what it has written so far"));
        }
        match self.about(ENDED_BY).filter(|_| damage.flaw == Flaw::NoEnd) {
            Some(signal) => Some(format!(
                "{signal} ended the program: the recording is complete up to its last flush, some milliseconds before"
            )),
            None => Some(damage.to_string()),
        }
    }

    /// Notes here what [`note_signal`] notes in the file.
    pub fn note_signal(&mut self, signal: &str) {
        self.about.push((ENDED_BY.to_owned(), signal.to_owned()));
    }

    /// Notes that a process is still writing the file, so that its end is missing, and the last frame may be.
    pub fn note_running(&mut self) {
        let pid = self.about("pid").unwrap_or("?").to_owned();
        self.about.push((RUNNING.to_owned(), pid));
        self.damage = self.damage.map(|damage| Damage { flaw: Flaw::NoEnd, ..damage });
    }

    /// Whether the states are estimated from samples, not recorded.
    pub fn is_estimate(&self) -> bool {
        self.about("exact") == Some("false")
    }

    /// Whether the interpreter had no lock.
    pub fn has_no_lock(&self) -> bool {
        self.about("lock") == Some("none")
    }

    /// The name with this number, or a generic one.
    pub fn name(&self, number: u32) -> String {
        if number == Self::OTHER_CODE {
            return "other code".to_owned();
        }
        self.names.get(&number).cloned().unwrap_or_else(|| format!("name {number}"))
    }

    /// The name of a lock, or a generic one.
    pub fn lock_name(&self, number: u32) -> String {
        let name = self.locks.get(&number).filter(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| format!("lock {number}"))
    }

    fn take(&mut self, kind: u8, body: &[u8]) -> Option<()> {
        let mut bytes = Bytes(body);
        match kind {
            wire::ABOUT => self.take_about(&mut bytes),
            wire::DEFINITIONS => self.take_definitions(&mut bytes),
            wire::CODE => self.code.take(&mut bytes),
            wire::EVENTS => wire::take_events(body, |native, event| self.take_event(native, event)),
            wire::FLUSH => self.take_flush(&mut bytes),
            wire::END => {
                self.end = bytes.number()?;
                bytes.number()?;
                self.lost = bytes.number()?;
                Some(())
            }
            _ => Some(()),
        }
    }

    fn take_flush(&mut self, body: &mut Bytes<'_>) -> Option<()> {
        let time = body.number()?;
        self.end = self.end.max(time);
        if let Some(busy) = body.number() {
            self.machine.push(MachineUsed { time, busy, total: body.number()? });
        }
        Some(())
    }

    fn take_about(&mut self, body: &mut Bytes<'_>) -> Option<()> {
        while !body.0.is_empty() {
            let (key, value) = (body.text()?.to_owned(), body.text()?.to_owned());
            if key == "start" {
                self.start = value.parse().ok()?;
            }
            self.about.push((key, value));
        }
        Some(())
    }

    fn take_definitions(&mut self, body: &mut Bytes<'_>) -> Option<()> {
        while !body.0.is_empty() {
            match wire::take_definition(body)? {
                Definition::Name { id, text } => drop(self.names.insert(id, text)),
                Definition::Lock { id, name } => drop(self.locks.insert(id, name)),
                Definition::Thread { id, name, stand } => self.take_thread(id, name, stand),
            }
        }
        Some(())
    }

    /// Keeps the first relation to the lock, and the last name.
    fn take_thread(&mut self, id: u32, name: String, stand: Stand) {
        let thread = self.threads.entry(id).or_insert_with(|| RecordedThread { stand, ..Default::default() });
        if !name.is_empty() {
            thread.name = name;
        }
    }

    fn take_event(&mut self, native: u32, event: Event) {
        let Event { time, thread, kind, argument } = event;
        match kind {
            Kind::Lost => return self.losses.push((time, u64::from(argument))),
            Kind::Cpu => {
                let used = Used { time, cpu: u64::from(argument), run_delay: None };
                return self.usage.entry(native).or_default().push(used);
            }
            Kind::RunDelay => {
                let last = self.usage.get_mut(&native).and_then(|readings| readings.last_mut());
                return last.map_or((), |last| last.run_delay = Some(u64::from(argument)));
            }
            _ => self.events += 1,
        }
        self.threads.entry(thread).or_default().add(Moment { time, kind, argument, native });
    }

    fn finish(&mut self, offset: usize) {
        self.bytes = offset as u64;
        for thread in self.threads.values_mut() {
            thread.moments.sort_by_key(|moment| moment.time);
        }
        self.usage.values_mut().for_each(|readings| complete(readings));
        self.losses.sort_unstable();
        if self.damage.is_some() {
            let moments = self.threads.values().filter_map(|thread| thread.moments.last());
            let readings = self.usage.values().filter_map(|readings| readings.last());
            let last = moments.map(|moment| moment.time).chain(readings.map(|used| used.time));
            self.end = last.fold(self.end, u64::max);
            self.lost = self.losses.iter().map(|(_, count)| count).sum();
        }
        let longest = self.start.saturating_add(LONGEST);
        if self.end > longest {
            self.damage.get_or_insert(Damage { offset: self.bytes, flaw: Flaw::Body });
        }
        self.end = self.end.clamp(self.start, longest);
    }
}

/// The key under which the signal that ended the program is noted.
const ENDED_BY: &str = "ended_by";
/// The key under which a process that is still writing the file is noted.
const RUNNING: &str = "running";

/// Appends to a trace without an end that `signal` ended the program.
///
/// # Errors
///
/// Errors of opening and writing the file.
pub fn note_signal(path: &Path, signal: &str) -> io::Result<()> {
    let about = wire::about(&[(ENDED_BY.to_owned(), signal.to_owned())]);
    files::append(path)?.write_all(&wire::frame(wire::ABOUT, &about))
}

/// The longest recording, in nanoseconds: 26 days. So the times of thousands of threads can be added up.
const LONGEST: u64 = 1 << 51;

fn check_magic(bytes: &[u8]) -> Result<(), NotATrace> {
    let (name, version) = wire::MAGIC.split_at(wire::MAGIC.len() - 1);
    match bytes.strip_prefix(name) {
        None if bytes.is_empty() => Err(NotATrace::Empty),
        None => Err(NotATrace::Foreign(looks_like(bytes))),
        Some(rest) if rest.starts_with(version) => Ok(()),
        Some([]) => Err(NotATrace::Foreign(None)),
        Some([other, ..]) => Err(NotATrace::Version(*other)),
    }
}

fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'{' | b'[', ..] => Some("JSON"),
        [0x1f, 0x8b, ..] => Some("gzip"),
        [b'<', ..] => Some("HTML or XML"),
        [0x0a, ..] => Some("a Perfetto trace (export goes that way only)"),
        _ => None,
    }
}

/// Kind and body of the frame at an offset; `None` at the end of the file.
fn frame_at(bytes: &[u8], offset: usize) -> Result<Option<(u8, &[u8])>, Flaw> {
    let rest = &bytes[offset..];
    if rest.is_empty() {
        return Ok(None);
    }
    let (header, rest) = rest.split_first_chunk::<{ wire::FRAME_HEADER }>().ok_or(Flaw::Cut)?;
    let header = wire::Header::of(*header);
    let body = rest.get(..header.length).ok_or(Flaw::Cut)?;
    if header.fits(body) { Ok(Some((header.kind, body))) } else { Err(Flaw::Checksum) }
}
