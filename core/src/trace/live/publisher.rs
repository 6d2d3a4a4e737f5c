//! The process's side: listens, and writes to each connection the trace or the dump that it asks for.

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::inherited::{self, Inherited};
use super::outgoing::Outgoing;
use super::thread_dump::{LONGEST_PATIENCE, Patience, TakeStacks, TakenStacks, ThreadDump};
use super::{ANSWERS_WITHIN, GREETING, folder, read_line};
use crate::os;
use crate::trace::record::mode;
use crate::trace::record::registry::switch_off;
use crate::trace::record::sample_timer::describe_last;
use crate::trace::record::session::{Options, Trace};
use crate::trace::watch_forks;

/// How often a connection sends what was recorded.
const SEND_EVERY: Duration = Duration::from_millis(20);
/// How long a client may take to accept bytes before it is left. The end of the process waits for it.
const ACCEPTS_WITHIN: Duration = Duration::from_secs(1);

/// The process that publishes: this one, or that from which it was forked.
static PUBLISHING: AtomicU32 = AtomicU32::new(0);

/// Offers live traces of this process. Dropping it stops that.
///
/// It has no effect in the child of a fork, which starts one of its own.
pub(in crate::trace) struct Publisher {
    pid: u32,
    path: PathBuf,
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Starts to listen. `options` describe the program; of each trace the client says whether it has stacks, which
    /// it only gets if `options` have them. `take_stacks` is called for each dump.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if this process publishes already; errors of making the socket, or of starting a thread.
    pub(in crate::trace) fn start(options: &Options, take_stacks: TakeStacks) -> io::Result<Self> {
        let pid = std::process::id();
        if PUBLISHING.swap(pid, Ordering::Relaxed) == pid {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this process publishes already"));
        }
        Self::listen(pid, options, take_stacks).inspect_err(|_| PUBLISHING.store(0, Ordering::Relaxed))
    }

    fn listen(pid: u32, options: &Options, take_stacks: TakeStacks) -> io::Result<Self> {
        watch_forks();
        inherited::watch_forks();
        let path = folder::own_socket()?;
        let listener = listen_at(&path)?;
        let (stop, stopped) = UnixStream::pair()?;
        let options = options.clone();
        let builder = std::thread::Builder::new().name("offlock-live".into());
        let thread = builder.spawn(move || serve(listener, &stopped, &options, take_stacks));
        let thread = thread.inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        mode::set(mode::LIVE);
        Ok(Self { pid, path, stop, thread: Some(thread) })
    }

    /// Whether it is this process that publishes, not its parent.
    pub(in crate::trace) fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if !self.is_ours() {
            // The thread does not exist in the child.
            std::mem::forget(thread);
            return;
        }
        let _ = std::fs::remove_file(&self.path);
        let _ = self.stop.write_all(b".");
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        switch_off(mode::LIVE);
        PUBLISHING.store(0, Ordering::Relaxed);
    }
}

/// Listens under another name first: a client that connects between the socket's making and its listening is refused, as by
/// a socket that a process has left that was killed, and would remove it.
fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let unready = path.with_extension("new");
    let _ = std::fs::remove_file(&unready);
    let listener = UnixListener::bind(&unready)?;
    std::fs::rename(&unready, path)?;
    Ok(listener)
}

/// Accepts connections until `stopped` can be read, and waits for the end of all.
fn serve(listener: UnixListener, stopped: &UnixStream, options: &Options, take_stacks: TakeStacks) {
    os::block_signals();
    std::thread::scope(|scope| {
        let Some(_listening) = Inherited::new(listener.as_raw_fd()) else { return };
        while let Some(0) = os::wait_readable([listener.as_raw_fd(), stopped.as_raw_fd()], None) {
            let Ok((stream, _)) = listener.accept() else {
                // Such as too many open files.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            // A client that is not served sees the end of the connection.
            let Some(inherited) = Inherited::new(stream.as_raw_fd()) else { continue };
            let builder = std::thread::Builder::new().name("offlock-live".into());
            let _ = builder.spawn_scoped(scope, move || {
                os::block_signals();
                // The client has gone, or was left: nobody is there to be told.
                let _ = answer(&stream, stopped, options, take_stacks);
                drop(inherited);
            });
        }
    });
    drop(listener);
}

/// Greets a client, and gives it what it asks for.
fn answer(
    mut stream: &UnixStream,
    stopped: &UnixStream,
    options: &Options,
    take_stacks: TakeStacks,
) -> io::Result<()> {
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    stream.set_write_timeout(Some(ACCEPTS_WITHIN))?;
    stream.write_all(format!("{GREETING}{}\n", env!("CARGO_PKG_VERSION")).as_bytes())?;
    let request = read_line(&mut stream)?;
    let unknown = || io::Error::other("an unknown request");
    match request.split_once(' ').ok_or_else(unknown)? {
        ("trace", stacks) => {
            write_trace(stream, stopped, stacks.parse().ok().map(Duration::from_nanos), options)
        }
        ("dump", within) => {
            let within = Duration::from_nanos(within.parse().map_err(|_| unknown())?).min(LONGEST_PATIENCE);
            write_dump(stream, stopped, within, options, take_stacks)
        }
        _ => Err(unknown()),
    }
}

/// Writes a trace to a client until it, or `stopped`, says that this is enough.
fn write_trace(
    mut stream: &UnixStream,
    stopped: &UnixStream,
    stacks: Option<Duration>,
    options: &Options,
) -> io::Result<()> {
    let stacks = stacks.filter(|_| options.stacks.is_some());
    let outgoing = Outgoing::default();
    let trace = Trace::start(Box::new(outgoing.clone()), &Options { stacks, ..options.clone() })?;
    while os::wait_readable([stream.as_raw_fd(), stopped.as_raw_fd()], Some(SEND_EVERY)).is_none() {
        stream.write_all(&outgoing.take()?)?;
    }
    describe_last();
    trace.stop()?;
    stream.write_all(&outgoing.take()?)
}

/// Writes to a client what the threads do, unless it, or `stopped`, says that it is not wanted any more.
fn write_dump(
    mut stream: &UnixStream,
    stopped: &UnixStream,
    within: Duration,
    options: &Options,
    take_stacks: TakeStacks,
) -> io::Result<()> {
    let ends = [stream.as_raw_fd(), stopped.as_raw_fd()];
    let is_unwanted = || os::wait_readable(ends, Some(Duration::ZERO)).is_some();
    let taken = match options.stacks {
        Some(_) => take_stacks(&Patience::new(within, &is_unwanted)),
        None => TakenStacks::without_stacks(no_stacks(options)),
    };
    stream.write_all(ThreadDump::of(&options.about, taken).to_json().as_bytes())
}

/// Why the program publishes itself without stacks.
fn no_stacks(options: &Options) -> String {
    let reasons = options.about.iter().filter(|(key, _)| key == "stacks_obstacle" || key == "obstacle");
    let reason = reasons.map(|(_, reason)| reason.clone()).next();
    reason.unwrap_or_else(|| "the program publishes itself without stacks".into())
}
