//! Live traces: a process publishes a socket, and the command takes a trace from it while it runs.
//!
//! ```text
//!  the program's process                                     offlock record
//!  Publisher ── listens on ── folder/4711.sock ◀── Connection::open(4711)
//!      └ for each connection a Trace, written to the socket ──▶ a trace file
//! ```
//!
//! While nobody is connected nothing is recorded: the feed only keeps up to date which thread holds the lock and which
//! ones wait, as it does for live numbers.
//!
//! When a connection is made, the process sends a line, `offlock-live 1 0.1.0`: the version of this protocol and that
//! of offlock. The command answers with `trace 1000000` (stacks are recorded after so many nanoseconds of waiting) or
//! `trace off`. Then the process sends a trace, as it would stand in a file, until the command shuts down its side of
//! the connection; the end of the trace follows. To `dump 5000000000` (nanoseconds of patience) it answers with what
//! its threads do, as JSON, and ends the connection.

mod connection;
mod folder;
mod inherited;
mod outgoing;
mod publisher;
mod recent;
mod thread_dump;

pub use connection::{Connection, dump};
pub use folder::{published, publishes};
pub(super) use publisher::Publisher;
pub use recent::Recent;
pub use thread_dump::{
    DumpedState, DumpedThread, Patience, TakeStacks, TakenStacks, ThreadDump, ThreadStack,
};

/// The beginning of the first line of a process, with the version of the protocol.
const GREETING: &str = "offlock-live 1 ";
/// The beginning of that line in any version.
const ANY_GREETING: &str = "offlock-live ";
/// The longest line of the protocol.
const LONGEST_LINE: usize = 256;
/// How long one side waits for a line of the other.
const ANSWERS_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

/// Reads a line without its end, one byte at a time: what follows is not ours to read.
fn read_line(from: &mut impl std::io::Read) -> std::io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        from.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => break,
            byte if line.len() < LONGEST_LINE => line.push(byte),
            _ => return Err(std::io::Error::other("the line is too long")),
        }
    }
    String::from_utf8(line).map_err(std::io::Error::other)
}
