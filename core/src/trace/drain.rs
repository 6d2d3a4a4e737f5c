//! From the queues to the sinks: what the writer thread does every few milliseconds.

use std::io::{self, Write};
use std::time::Duration;

use super::clock::{Scale, Sync};
use super::event::{Event, Kind};
use super::queue::Reader;
use super::recorder::{Definition, State};
use super::wire::{self, Section};

/// Bodies of event frames are closed when they have grown to this size.
const FRAME: usize = 1 << 18;
/// A flush is noted at least this often, in nanoseconds, even if nothing happens.
const FLUSH_EVERY: u64 = 1_000_000_000;

/// Where one trace goes.
pub(super) struct Sink {
    pub(super) number: u64,
    out: Box<dyn Write + Send>,
    room: u64,
    written: u64,
    events: u64,
    left_out: u64,
    lost_before: u64,
    flushed: u64,
    failure: Option<io::Error>,
}

/// How a trace went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// The number of events written.
    pub events: u64,
    /// The number of events that are missing: the threads were faster than the writer for longer
    /// than the buffers last, or the trace reached its size limit.
    pub lost: u64,
    /// The number of bytes written.
    pub bytes: u64,
}

impl Sink {
    pub(super) fn new(number: u64, out: Box<dyn Write + Send>, room: u64) -> Self {
        Self {
            number,
            out,
            room,
            written: 0,
            events: 0,
            left_out: 0,
            lost_before: 0,
            flushed: 0,
            failure: None,
        }
    }

    /// Writes the beginning of the file; its errors are the caller's to report.
    pub(super) fn begin(
        &mut self,
        lost: u64,
        about: &[(String, String)],
        definitions: &[Definition],
    ) -> io::Result<()> {
        self.lost_before = lost;
        self.put(&wire::MAGIC);
        self.put(&wire::frame(wire::ABOUT, &wire::about(about)));
        self.define(definitions);
        self.failure.take().map_or(Ok(()), Err)
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        self.written += bytes.len() as u64;
        self.failure = self.out.write_all(bytes).err();
    }

    fn define(&mut self, definitions: &[Definition]) {
        if !definitions.is_empty() && self.written < self.room {
            self.put(&wire::frame(wire::DEFINITIONS, &wire::definitions(definitions)));
        }
    }

    fn put_events(&mut self, frame: &[u8], events: u64) {
        if self.written + frame.len() as u64 > self.room {
            self.left_out += events;
            self.room = self.room.min(self.written);
            return;
        }
        self.put(frame);
        self.events += events;
    }

    fn put_flush(&mut self, time: u64) {
        if time - self.flushed >= FLUSH_EVERY && self.written < self.room {
            self.flushed = time;
            let mut body = Vec::new();
            wire::put_number(&mut body, time);
            self.put(&wire::frame(wire::FLUSH, &body));
        }
    }

    /// Writes the end of the file.
    pub(super) fn end(mut self, time: u64, lost: u64) -> io::Result<Stats> {
        let lost = lost - self.lost_before + self.left_out;
        let mut body = Vec::new();
        [time, self.events, lost].into_iter().for_each(|number| wire::put_number(&mut body, number));
        self.put(&wire::frame(wire::END, &body));
        match self.failure.map_or_else(|| self.out.flush(), Err) {
            Ok(()) => Ok(Stats { events: self.events, lost, bytes: self.written }),
            Err(failure) => Err(failure),
        }
    }
}

/// The reading ends of all queues and the sinks they are drained into.
pub(super) struct Drain {
    readers: Vec<Reader>,
    scale: Scale,
    section: Section,
    pub(super) sinks: Vec<Sink>,
    /// Whether a thread is at work that calls [`Drain::pass`].
    pub(super) is_driven: bool,
}

/// What one pass over the queues has gathered for its next frame.
struct Gathered {
    base: u64,
    body: Vec<u8>,
    events: u64,
}

impl Gathered {
    fn new(base: u64) -> Self {
        let mut body = Vec::new();
        wire::put_number(&mut body, base);
        Self { base, body, events: 0 }
    }

    fn write(&mut self, sinks: &mut [Sink]) {
        if self.events > 0 {
            let frame = wire::frame(wire::EVENTS, &self.body);
            sinks.iter_mut().for_each(|sink| sink.put_events(&frame, self.events));
            *self = Self::new(self.base);
        }
    }
}

impl Drain {
    pub(super) fn new() -> Self {
        Self {
            readers: Vec::new(),
            scale: Scale::new(),
            section: Section::new(),
            sinks: Vec::new(),
            is_driven: false,
        }
    }

    /// Brings everything recorded so far into the sinks. Returns the number of events and the time
    /// up to which the sinks are complete.
    pub(super) fn pass(&mut self, state: &'static State) -> (u64, u64) {
        let arrived = state.take_arrived();
        self.readers.extend(arrived.into_iter().map(|queue| Reader::new(&state.pool, queue)));
        let now = Sync::now();
        self.scale.learn(now);
        let flushed = self.scale.place(now.ticks);
        let events = self.pass_events(state, now);
        self.scale.seal();
        self.sinks.iter_mut().for_each(|sink| sink.put_flush(flushed));
        (events, flushed)
    }

    fn pass_events(&mut self, state: &'static State, now: Sync) -> u64 {
        let base = self.scale.place(now.ticks);
        let (mut total, mut closed) = (0, Vec::new());
        let mut gathered = Gathered::new(base);
        let mut readers = std::mem::take(&mut self.readers);
        readers.retain_mut(|reader| {
            let (native, mut losses) = (reader.queue.native(), 0);
            self.section.begin(base);
            let open = reader.read(|record| {
                let Some(event) = Event::unpack(record, now.ticks) else { return };
                losses += u64::from(event.kind == Kind::Lost);
                self.section.put(Event { time: self.scale.place(event.time), ..event });
            });
            total += self.section.count();
            gathered.events += self.section.count() - losses;
            self.section.finish(native, &mut gathered.body);
            if gathered.body.len() > FRAME {
                self.write(state, &mut gathered);
            }
            if !open {
                closed.push(reader.queue);
            }
            open
        });
        self.readers = readers;
        self.write(state, &mut gathered);
        state.give_back(closed);
        total
    }

    /// Definitions go first: they were made before the events that use them.
    fn write(&mut self, state: &State, gathered: &mut Gathered) {
        let news = state.take_news();
        self.sinks.iter_mut().for_each(|sink| sink.define(&news));
        gathered.write(&mut self.sinks);
    }

    /// How long the queues may be left alone after a pass that found so many events.
    pub(super) fn pause(events: u64) -> Duration {
        Duration::from_millis(match events {
            0 => 20,
            1..50_000 => 10,
            _ => 1,
        })
    }
}
