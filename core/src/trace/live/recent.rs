//! A viewer's side: the last seconds of a process, which a thread reads from a connection into bounded memory.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::thread::JoinHandle;
use std::time::Duration;

use super::Connection;
use crate::Task;
use crate::trace::analyze::recording::Recording;
use crate::trace::format::wire::{self, FRAME_HEADER, Header};
use crate::trace::record::ring::Ring;

/// The most bytes of a frame. Recorders write frames of some hundred kilobytes.
const LONGEST_FRAME: usize = 64 << 20;

/// The last seconds of a process that publishes itself, complete up to at most a second ago. Dropping it ends the
/// trace in that process.
pub struct Recent {
    ring: Ring,
    /// How much the ring may take, in bytes.
    memory: usize,
    connection: Connection,
    reader: Option<JoinHandle<io::Result<()>>>,
}

impl Recent {
    /// Keeps what arrives through the connection: the events of the last `keep`, as far as about `memory` bytes hold
    /// them.
    ///
    /// # Errors
    ///
    /// Errors of the system: of duplicating the connection, or of starting a thread.
    pub fn follow(connection: Connection, keep: Duration, memory: usize) -> io::Result<Self> {
        let ring = Ring::of_another_process(keep, memory);
        let (mut from, mut to) = (connection.handle()?, ring.clone());
        let builder = std::thread::Builder::new().name("offlock-recent".into());
        let reader = builder.spawn(move || copy_frames(&mut from, &mut to))?;
        Ok(Self { ring, memory, connection, reader: Some(reader) })
    }

    /// The recording of at most the last `period` before the process last wrote all its events. `None` before it did
    /// so the first time, about a second after the connection was made.
    pub fn recording(&self, period: Duration) -> Option<Recording> {
        let (end, mut trace) = (self.ring.flushed()?, Vec::new());
        self.ring.dump(end).write(&mut trace).ok()?;
        let recording = Recording::read(&trace, &Task::new()).ok()?;
        let length = end.saturating_sub(recording.start);
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        Some(recording.cut(length.saturating_sub(period)..length, |_| true))
    }

    /// Whether nothing more will arrive: the process has ended, or does not publish itself any more.
    pub fn has_ended(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether what the process has named, such as functions, takes most of the memory. A new connection begins with
    /// what is still in use.
    pub fn is_crowded(&self) -> bool {
        self.ring.size_of_definitions() > self.memory / 2
    }
}

impl Drop for Recent {
    fn drop(&mut self) {
        // If it fails, the process has closed the connection before.
        let _ = self.connection.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Passes each frame of a trace to `to` in one call, until the trace ends.
fn copy_frames(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let broken = |problem| io::Error::new(io::ErrorKind::InvalidData, problem);
    let mut magic = wire::MAGIC;
    from.read_exact(&mut magic)?;
    if magic != wire::MAGIC {
        return Err(broken("what arrives is not a trace of this version"));
    }
    loop {
        let mut head = [0; FRAME_HEADER];
        from.read_exact(&mut head)?;
        let header = Header::of(head);
        if header.length > LONGEST_FRAME {
            return Err(broken("a frame is too long"));
        }
        let mut frame = head.to_vec();
        frame.resize(FRAME_HEADER + header.length, 0);
        from.read_exact(&mut frame[FRAME_HEADER..])?;
        if !header.fits(&frame[FRAME_HEADER..]) {
            return Err(broken("a frame is damaged"));
        }
        to.write_all(&frame)?;
        if header.kind == wire::END {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps each write as it came.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frames_are_passed_on_whole_and_up_to_the_end() {
        let frames = [
            wire::frame(wire::ABOUT, b""),
            wire::frame(wire::FLUSH, &[7; 300]),
            wire::frame(wire::END, b"1"),
        ];
        let mut trace = wire::MAGIC.to_vec();
        frames.iter().for_each(|frame| trace.extend(frame));
        trace.extend(b"what follows is not read");
        let mut passed = Writes::default();
        copy_frames(&mut trace.as_slice(), &mut passed).expect("it is a trace");
        assert_eq!(passed.0, frames);
    }

    #[test]
    fn what_is_cut_damaged_or_no_trace_is_an_error() {
        let mut trace = wire::MAGIC.to_vec();
        trace.extend(wire::frame(wire::FLUSH, &[7; 300]));
        let kind =
            |bytes: &[u8]| copy_frames(&mut { bytes }, &mut Writes::default()).expect_err("it is cut").kind();
        for length in 0..trace.len() {
            assert_eq!(kind(&trace[..length]), io::ErrorKind::UnexpectedEof, "{length} bytes");
        }
        for place in [0, wire::MAGIC.len() + 20] {
            let mut other = trace.clone();
            other[place] ^= 1;
            assert_eq!(kind(&other), io::ErrorKind::InvalidData, "byte {place}");
        }
        let mut long = trace;
        long[wire::MAGIC.len() + 1..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(kind(&long), io::ErrorKind::InvalidData);
    }
}
