//! The output of one trace: its size limit, its counts, and its first error.

use std::io::{self, Write};
use std::time::Duration;

use crate::processors;
use crate::trace::format::code::{self, CodeDefinition};
use crate::trace::format::definition::Definition;
use crate::trace::format::wire;

/// The longest time between two flush frames, in nanoseconds.
const FLUSH_EVERY: u64 = 1_000_000_000;

/// The output of one trace.
pub(super) struct Sink {
    pub(super) number: u64,
    out: Box<dyn Write + Send>,
    room: u64,
    /// When the trace ends by itself, in nanoseconds of the monotonic clock.
    pub(super) until: u64,
    written: u64,
    events: u64,
    left_out: u64,
    lost_before: u64,
    flushed: u64,
    failure: Option<io::Error>,
    /// See [`Options::stacks`](super::session::Options::stacks).
    pub(super) stacks: Option<Duration>,
}

/// The figures of a completed trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// The number of events written.
    pub events: u64,
    /// The number of missing events: either the buffers overflowed because the threads were faster than the
    /// writer, or the trace reached its size limit.
    pub lost: u64,
    /// The number of bytes written.
    pub bytes: u64,
}

impl Sink {
    pub(super) fn new(number: u64, out: Box<dyn Write + Send>, room: u64, stacks: Option<Duration>) -> Self {
        Self {
            number,
            out,
            room,
            until: u64::MAX,
            written: 0,
            events: 0,
            left_out: 0,
            lost_before: 0,
            flushed: 0,
            failure: None,
            stacks,
        }
    }

    /// Writes the beginning of the file. Its errors are returned; later ones are kept until the end.
    pub(super) fn begin(
        &mut self,
        lost: u64,
        about: &[(String, String)],
        definitions: &[Definition],
        code: &[CodeDefinition],
    ) -> io::Result<()> {
        self.lost_before = lost;
        self.put(&wire::MAGIC);
        self.put(&wire::frame(wire::ABOUT, &wire::about(about)));
        self.define(definitions);
        self.define_code(code);
        self.failure.take().map_or(Ok(()), Err)
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        self.written += bytes.len() as u64;
        self.failure = self.out.write_all(bytes).err();
    }

    pub(super) fn define(&mut self, definitions: &[Definition]) {
        if !definitions.is_empty() && self.written < self.room {
            self.put(&wire::frame(wire::DEFINITIONS, &wire::definitions(definitions)));
        }
    }

    pub(super) fn define_code(&mut self, definitions: &[CodeDefinition]) {
        if !definitions.is_empty() && self.written < self.room {
            self.put(&wire::frame(wire::CODE, &code::definitions(definitions)));
        }
    }

    pub(super) fn put_events(&mut self, frame: &[u8], events: u64) {
        if self.written + frame.len() as u64 > self.room {
            self.left_out += events;
            self.room = self.room.min(self.written);
            return;
        }
        self.put(frame);
        self.events += events;
    }

    pub(super) fn put_flush(&mut self, time: u64) {
        if time - self.flushed >= FLUSH_EVERY && self.written < self.room {
            self.flush(time);
        }
    }

    fn flush(&mut self, time: u64) {
        self.flushed = time;
        self.put(&wire::frame(wire::FLUSH, &wire::flush(time, processors::machine_times())));
    }

    /// Writes the end of the file.
    pub(super) fn end(mut self, time: u64, lost: u64) -> io::Result<Stats> {
        self.flush(time);
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
