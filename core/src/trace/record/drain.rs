//! Moves records from the queues to the sinks. The writer thread does this every 1 or 20 ms.
//!
//! A pass reads the queues, converts time stamps to nanoseconds, packs the events of each native thread into
//! a section of an event frame, and hands the frames to all sinks. Events of different threads are not merged
//! here: each section is in order, and sorting is left to the reader of the file.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use super::buffers::buffers;
use super::code::code_table;
use super::mode;
use super::queue::Reader;
use super::registry::registry;
use super::sample_timer;
use super::sink::{Sink, Stats};
use super::usage::Meter;
use crate::clock::{Scale, Sync};
use crate::fork::Remade;
use crate::trace::format::event::Event;
use crate::trace::format::wire::{self, Section};

/// The size at which the body of an event frame is closed.
const FRAME: usize = 1 << 18;

static DRAIN: Remade<Mutex<Drain>> = Remade::new();

/// This process's drain.
pub(super) fn drain() -> &'static Mutex<Drain> {
    DRAIN.get_or_make(|| Mutex::new(Drain::new()))
}

/// In the child of a fork: the parent's sinks do not belong to it.
pub(super) fn forget() {
    DRAIN.forget();
}

/// The reading ends of all queues, and the sinks.
pub(super) struct Drain {
    readers: Vec<Reader>,
    scale: Scale,
    section: Section,
    pub(super) meter: Meter,
    pub(super) sinks: Vec<Sink>,
    /// The traces that have ended by themselves, by number, until they are stopped.
    pub(super) ended: Vec<(u64, io::Result<Stats>)>,
    /// Whether a thread is running that calls [`Drain::pass`].
    pub(super) is_driven: bool,
}

/// The event frame that a pass is building.
struct Gathered {
    base: u64,
    body: Vec<u8>,
    events: u64,
    is_empty: bool,
}

impl Gathered {
    fn new(base: u64) -> Self {
        let mut body = Vec::new();
        wire::put_number(&mut body, base);
        Self { base, body, events: 0, is_empty: true }
    }

    /// Adds a section, in which `events` of the records are events.
    fn add(&mut self, section: &mut Section, native: u32, events: u64) {
        self.is_empty &= section.count() == 0;
        self.events += events;
        section.finish(native, &mut self.body);
    }

    fn write(&mut self, sinks: &mut [Sink]) {
        if !self.is_empty {
            let frame = wire::frame(wire::EVENTS, &self.body);
            sinks.iter_mut().for_each(|sink| sink.put_events(&frame, self.events));
            *self = Self::new(self.base);
        }
    }
}

impl Drain {
    fn new() -> Self {
        Self {
            readers: Vec::new(),
            scale: Scale::new(),
            section: Section::new(),
            meter: Meter::default(),
            sinks: Vec::new(),
            ended: Vec::new(),
            is_driven: false,
        }
    }

    /// Writes everything recorded so far to the sinks. Returns the number of events, and the time up to which
    /// the sinks are complete.
    pub(super) fn pass(&mut self) -> (u64, u64) {
        let buffers = buffers();
        let arrived = buffers.take_arrived();
        self.readers.extend(arrived.into_iter().map(|queue| Reader::new(&buffers.pool, queue)));
        let now = Sync::now();
        self.scale.learn(now);
        let flushed = self.scale.place(now.ticks);
        let events = self.pass_events(now);
        self.scale.seal();
        self.sinks.iter_mut().for_each(|sink| sink.put_flush(flushed));
        (events, flushed)
    }

    fn pass_events(&mut self, now: Sync) -> u64 {
        let base = self.scale.place(now.ticks);
        let (mut total, mut closed) = (0, Vec::new());
        let mut gathered = Gathered::new(base);
        let mut readers = std::mem::take(&mut self.readers);
        let is_metered = !self.sinks.is_empty() && self.meter.begin();
        readers.retain_mut(|reader| {
            let (native, mut events) = (reader.queue.native(), 0);
            self.section.begin(base);
            let open = reader.read(|record| {
                let Some(event) = Event::unpack(record, now.ticks) else { return };
                let counts = u64::from(event.kind.is_event());
                (events, total) = (events + counts, total + counts);
                self.section.put(Event { time: self.scale.place(event.time), ..event });
                if self.section.len() > FRAME {
                    gathered.add(&mut self.section, native, std::mem::take(&mut events));
                    self.write(&mut gathered);
                    self.section.begin(base);
                }
            });
            if is_metered && open {
                self.meter.thread(native, |event| self.section.put(event));
            }
            gathered.add(&mut self.section, native, events);
            if gathered.body.len() > FRAME {
                self.write(&mut gathered);
            }
            if !open {
                self.meter.forget(native);
                closed.push(reader.queue);
            }
            open
        });
        self.readers = readers;
        if is_metered {
            self.section.begin(base);
            self.meter.process(|event| self.section.put(event));
            gathered.add(&mut self.section, Meter::PROCESS, 0);
        }
        self.write(&mut gathered);
        buffers().give_back(closed);
        total
    }

    /// Stacks are recorded from the shortest wait on that one of the traces asks for.
    pub(super) fn set_stacks_after(&self) {
        mode::set_stacks_after(self.sinks.iter().filter_map(|sink| sink.stacks).min());
        sample_timer::start_registered();
    }

    /// Writes the definitions first: they were made before the events that use them.
    fn write(&mut self, gathered: &mut Gathered) {
        let news = registry().take_news();
        let code = code_table().take_news();
        self.sinks.iter_mut().for_each(|sink| {
            sink.define(&news);
            sink.define_code(&code);
        });
        gathered.write(&mut self.sinks);
    }

    /// Ends the traces whose time is over.
    pub(super) fn end_overdue(&mut self, time: u64) {
        let lost = buffers().lost();
        let ended = self.sinks.extract_if(.., |sink| sink.until <= time);
        self.ended.extend(ended.map(|sink| (sink.number, sink.end(time, lost))));
        self.set_stacks_after();
    }

    /// How long to sleep after a pass that found `events` events. A pass interrupts a thread of the program where all
    /// processors are busy, so there are few.
    pub(super) fn pause(events: u64) -> Duration {
        Duration::from_millis(if events < 50_000 { 20 } else { 1 })
    }
}
