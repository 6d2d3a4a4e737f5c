//! The command's side: connects to a process and reads a trace from it.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::thread_dump::{LONGEST_PATIENCE, ThreadDump};
use super::{ANSWERS_WITHIN, ANY_GREETING, GREETING, folder, read_line};

/// A connection to a process that publishes. It reads the bytes of a trace, which the process records from
/// [`open`](Self::open) on.
pub struct Connection(UnixStream);

impl Connection {
    /// Connects to a process and asks it for a trace, with stacks after this much waiting, or without.
    ///
    /// # Errors
    ///
    /// `NotFound` if this user has no process of that number that publishes, `TimedOut` or `WouldBlock` if it does not
    /// answer, `InvalidData` if it speaks another version of the protocol, and other errors of the system.
    pub fn open(pid: u32, stacks: Option<Duration>) -> io::Result<Self> {
        let mut stream = greeted(pid)?;
        let stacks = stacks.map_or("off".to_owned(), |wait| wait.as_nanos().to_string());
        stream.write_all(format!("trace {stacks}\n").as_bytes())?;
        stream.set_read_timeout(None)?;
        Ok(Self(stream))
    }

    /// Another handle of the connection, for [`finish`](Self::finish) while a thread reads.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn handle(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Asks the process to end the trace; then the last bytes arrive.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn finish(&self) -> io::Result<()> {
        match self.shutdown(Shutdown::Write) {
            // The process has ended the trace by itself.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Asks a process what its threads do. Where their stacks take longer than `within`, it answers without them.
///
/// # Errors
///
/// As [`Connection::open`]; `InvalidData` if what it answers is no dump, or is too long, `UnexpectedEof` if it ends
/// before it has answered, or does not know how to.
pub fn dump(pid: u32, within: Duration) -> io::Result<ThreadDump> {
    let within = within.min(LONGEST_PATIENCE);
    let deadline = Instant::now() + within + ANSWERS_WITHIN;
    let mut stream = loop {
        match greeted(pid) {
            // As many clients as it serves are connected. The others may be dumps, which end soon.
            Err(error) if is_turned_away(&error) && Instant::now() < deadline => std::thread::sleep(AGAIN),
            greeted => break greeted?,
        }
    };
    let deadline = Instant::now() + within + ANSWERS_WITHIN;
    stream.write_all(format!("dump {}\n", within.as_nanos()).as_bytes())?;
    let answer = read_until(&mut stream, deadline)?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&answer).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => io::ErrorKind::UnexpectedEof.into(),
        _ => io::Error::new(io::ErrorKind::InvalidData, "what it answers is no dump"),
    })
}

/// The longest answer.
const LONGEST_ANSWER: usize = 64 << 20;
/// How soon a client asks again that was turned away.
const AGAIN: Duration = Duration::from_millis(30);

fn is_turned_away(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

/// Reads what arrives up to the end of the connection. `TimedOut` if that has not come at the deadline.
fn read_until(stream: &mut UnixStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let (mut all, mut some) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut some) {
            Ok(0) => return Ok(all),
            Ok(_) if all.len() > LONGEST_ANSWER => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "what it answers is too long"));
            }
            Ok(count) => all.extend_from_slice(&some[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Connects to a process and reads its greeting.
fn greeted(pid: u32) -> io::Result<UnixStream> {
    let mut stream = connect(pid)?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    let greeting = read_line(&mut stream)?;
    if !greeting.starts_with(GREETING) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, other_version(&greeting)));
    }
    Ok(stream)
}

/// Connects to the socket of a process.
fn connect(pid: u32) -> io::Result<UnixStream> {
    for path in folder::sockets_of(pid) {
        match folder::connect_to(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            connected => return connected,
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn other_version(greeting: &str) -> String {
    let ours = env!("CARGO_PKG_VERSION");
    match greeting.strip_prefix(ANY_GREETING).and_then(|rest| rest.split_once(' ')) {
        Some((_, theirs)) => format!("the process runs offlock {theirs}, this command is of offlock {ours}"),
        None => "what answers is not offlock".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_named() {
        let message = other_version("offlock-live 9 4.5.6");
        assert!(message.starts_with("the process runs offlock 4.5.6, this command is of offlock "));
        assert_eq!(other_version("HTTP/1.1 400"), "what answers is not offlock");
    }

    #[test]
    fn a_process_that_does_not_publish_is_not_found() {
        let error = Connection::open(u32::MAX, None).err().expect("no such process");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
