//! A flight recorder: keeps the last seconds in bounded memory, writes them when asked or when a thread waits
//! for the lock or holds it for too long, and tells watches about such waits and holds.
//!
//! The recorder's own thread only copies frames into the [`Ring`]. Everything else happens on threads that are
//! there for it: one that writes dumps by itself, if there is a reason to, and those that ask a [`Watch`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::analyze::code::{Code, FrameText};
use super::files;
use super::record::lock_watch::{LockWatch, Long, Watched};
use super::record::ring::{Dump, Ring};
use super::record::session::{Options, Trace, catch_up};
use super::record::sink::Stats;
use crate::fork::lock;
use crate::os;

/// What a flight recorder keeps, and when it writes that by itself.
#[derive(Debug, Clone)]
pub struct FlightOptions {
    /// How much of the past it keeps.
    pub keep: Duration,
    /// The most bytes that it takes; it keeps less of the past if that is not enough. At least
    /// [`LEAST_MEMORY`](Self::LEAST_MEMORY). If the names of the program's threads, functions and marks take more
    /// than three quarters of it, the rest of them is in addition.
    pub memory: usize,
    /// Where it writes dumps by itself: `app.offlock`, then `app-2.offlock`, … It never replaces a file.
    pub path: Option<PathBuf>,
    /// It writes a dump when a thread has waited for the lock for so long.
    pub wait: Option<Duration>,
    /// It writes a dump when a thread has held the lock for so long while another one waited.
    pub hold: Option<Duration>,
    /// The least time between two dumps that it writes by itself.
    pub interval: Duration,
    /// The most dumps that it writes by itself.
    pub most: u32,
}

impl FlightOptions {
    /// The least [`memory`](Self::memory): a few frames have to fit.
    pub const LEAST_MEMORY: usize = 1 << 20;
}

impl Default for FlightOptions {
    /// 30 seconds in at most 64 MiB; at most 10 dumps by itself, one in a minute.
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(30),
            memory: 64 << 20,
            path: None,
            wait: None,
            hold: None,
            interval: Duration::from_secs(60),
            most: 10,
        }
    }
}

/// How often a watch looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A recording of the last seconds. Dropping it stops it.
///
/// It has no effect in the child of a fork, which starts one of its own.
pub struct FlightRecorder {
    trace: Mutex<Option<Trace>>,
    shared: Arc<Shared>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
    path: Option<PathBuf>,
}

/// What the recorder shares with its watches.
struct Shared {
    ring: Ring,
    pid: u32,
    stopped: Mutex<bool>,
    stops: Condvar,
    written: AtomicU32,
    has_failed: AtomicBool,
}

impl Shared {
    /// Sleeps until the next look; false once the recorder has stopped.
    fn sleep(&self, time: Duration) -> bool {
        let stopped = lock(&self.stopped);
        let waited = self.stops.wait_timeout_while(stopped, time, |stopped| !*stopped);
        !*waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
    }

    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }

    /// What is kept of everything recorded so far.
    fn last_seconds(&self) -> Dump {
        self.ring.dump(catch_up())
    }

    fn dump_beside(&self, path: &Path) -> io::Result<PathBuf> {
        let dump = self.last_seconds();
        let extension = path.extension().and_then(|name| name.to_str()).unwrap_or("offlock");
        files::write_beside(path, extension, |out| dump.write(out))
    }
}

impl FlightRecorder {
    /// Starts recording.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the memory is less than [`FlightOptions::LEAST_MEMORY`], or if there is a reason to
    /// write dumps but no path; errors of starting a thread.
    pub fn start(options: &Options, flight: &FlightOptions) -> io::Result<Self> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        if flight.memory < FlightOptions::LEAST_MEMORY {
            let least = FlightOptions::LEAST_MEMORY;
            return Err(invalid(format!("a memory of {} bytes is less than {least}", flight.memory)));
        }
        let writes = flight.wait.or(flight.hold).is_some();
        if writes && flight.path.is_none() {
            return Err(invalid("it is to write dumps by itself, but has no path for them".into()));
        }
        let ring = Ring::new(flight.keep, flight.memory);
        let trace = Trace::start(Box::new(ring.clone()), options)?;
        let shared = Arc::new(Shared {
            ring,
            pid: std::process::id(),
            stopped: Mutex::new(false),
            stops: Condvar::new(),
            written: AtomicU32::new(0),
            has_failed: AtomicBool::new(false),
        });
        let recorder = Self {
            trace: Mutex::new(Some(trace)),
            shared,
            writer: Mutex::new(None),
            path: flight.path.clone(),
        };
        if writes {
            let (shared, flight) = (Arc::clone(&recorder.shared), flight.clone());
            let builder = std::thread::Builder::new().name("offlock-dump".into());
            *lock(&recorder.writer) = Some(builder.spawn(move || write_dumps(&shared, &flight))?);
        }
        Ok(recorder)
    }

    /// Writes the last seconds to a file that the user has named. The recording goes on.
    ///
    /// # Errors
    ///
    /// Errors of writing the file, which then stays as it was; an error if the recorder has stopped or
    /// belongs to the parent of a fork.
    pub fn dump(&self, path: &Path) -> io::Result<Stats> {
        if !self.is_running() {
            return Err(io::Error::other("the flight recorder does not run in this process"));
        }
        let dump = self.shared.last_seconds();
        files::write_named(path, |out| dump.write(out))?;
        Ok(dump.stats())
    }

    /// Writes the last seconds to the first of the files `app.offlock`, `app-2.offlock`, … that does not exist,
    /// and returns its path. The recording goes on.
    ///
    /// # Errors
    ///
    /// As [`dump`](Self::dump).
    pub fn dump_beside(&self, path: &Path) -> io::Result<PathBuf> {
        self.shared.dump_beside(path)
    }

    /// The size of the trace that [`dump`](Self::dump) would write now.
    pub fn kept(&self) -> Stats {
        self.shared.last_seconds().stats()
    }

    /// Where dumps are written that nobody names.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Watches for waits or holds of at least this time.
    pub fn watch(&self, watched: Watched, at_least: Duration) -> Watch {
        Watch::new(&self.shared, watched, at_least)
    }

    /// Whether it is recording, in this process.
    pub fn is_running(&self) -> bool {
        self.shared.is_ours() && lock(&self.trace).is_some()
    }

    /// The number of bytes that the kept events take.
    pub fn memory(&self) -> usize {
        self.shared.ring.size()
    }

    /// The number of dumps that it has written by itself.
    pub fn written(&self) -> u32 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Whether a dump could not be written by itself. The reason is on the standard error.
    pub fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Relaxed)
    }

    /// Stops recording. A second call changes nothing.
    pub fn stop(&self) {
        if !self.shared.is_ours() {
            return;
        }
        let trace = lock(&self.trace).take();
        drop(trace);
        *lock(&self.shared.stopped) = true;
        self.shared.stops.notify_all();
        if let Some(writer) = lock(&self.writer).take() {
            let _ = writer.join();
        }
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        if self.shared.is_ours() {
            self.stop();
        } else if let Ok(writer) = self.writer.get_mut() {
            // The thread does not exist in the child, where its number may be that of another thread by now, which
            // would be detached.
            std::mem::forget(writer.take());
        }
    }
}

/// Writes dumps until the recorder stops or has written the most.
fn write_dumps(shared: &Arc<Shared>, flight: &FlightOptions) {
    os::block_signals();
    let Some(path) = &flight.path else { return };
    let reasons = [(Watched::Wait, flight.wait), (Watched::Hold, flight.hold)];
    let watches: Vec<Watch> = reasons
        .into_iter()
        .filter_map(|(watched, at_least)| Some(Watch::new(shared, watched, at_least?)))
        .collect();
    while shared.written.load(Ordering::Relaxed) < flight.most && shared.sleep(LOOK_EVERY) {
        // Each watch has to look, so that it forgets what it has seen.
        let alarms: Vec<_> = watches.iter().filter_map(|watch| watch.look().pop()).collect();
        let Some(alarm) = alarms.first() else { continue };
        // The events of the cause's end belong into the dump, if it ends soon.
        let is_running = shared.sleep(LOOK_EVERY * 2);
        match shared.dump_beside(path) {
            Ok(file) => {
                shared.written.fetch_add(1, Ordering::Relaxed);
                eprintln!("offlock: {alarm}; the last seconds are in {}", file.display());
            }
            Err(error) => {
                shared.has_failed.store(true, Ordering::Relaxed);
                let path = path.display();
                eprintln!("offlock: {alarm}; the last seconds could not be written to {path}: {error}");
            }
        }
        if !is_running || !shared.sleep(flight.interval) {
            return;
        }
        watches.iter().for_each(|watch| drop(watch.look()));
    }
}

/// A wait or a hold that was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// What was too long.
    pub watched: Watched,
    /// The name of the thread that held the lock, empty if that is unknown.
    pub holder: String,
    /// The name of the thread that waited longest.
    pub waiting: String,
    /// How long so far, in nanoseconds.
    pub nanoseconds: u64,
    /// Whether it is over.
    pub is_over: bool,
    /// The holder's last known stack during the hold, innermost frame first.
    pub stack: Vec<FrameText>,
}

impl std::fmt::Display for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let milliseconds = self.nanoseconds / 1_000_000;
        let (holder, waiting) = (&self.holder, &self.waiting);
        match (self.watched, self.is_over) {
            (Watched::Wait, false) => write!(f, "{waiting:?} has waited for the lock for {milliseconds} ms")?,
            (Watched::Wait, true) => write!(f, "{waiting:?} waited for the lock for {milliseconds} ms")?,
            (Watched::Hold, is_over) => {
                let held = if is_over { "held" } else { "has held" };
                write!(f, "{holder:?} {held} the lock for {milliseconds} ms while {waiting:?} waited")?;
            }
        }
        if self.watched == Watched::Wait && !holder.is_empty() {
            write!(f, ", {holder:?} held it")?;
        }
        self.stack.first().map_or(Ok(()), |frame| write!(f, " in {frame}"))
    }
}

/// Looks for waits or holds of at least some time, in the events of a flight recorder.
pub struct Watch {
    shared: Arc<Shared>,
    watched: Watched,
    watch: Arc<Mutex<LockWatch>>,
    found: Mutex<std::collections::VecDeque<Alarm>>,
}

impl Watch {
    fn new(shared: &Arc<Shared>, watched: Watched, at_least: Duration) -> Self {
        let at_least = u64::try_from(at_least.as_nanos()).unwrap_or(u64::MAX);
        let watch = Arc::new(Mutex::new(LockWatch::new(watched, at_least)));
        shared.ring.watch(Arc::clone(&watch));
        Self { shared: Arc::clone(shared), watched, watch, found: Mutex::default() }
    }

    /// Returns the next alarm, which is not older than a look every 10 ms allows; `None` after `timeout`, or
    /// once the recorder has stopped.
    pub fn next(&self, timeout: Duration) -> Option<Alarm> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let mut found = lock(&self.found);
            if found.is_empty() && self.is_running() {
                found.extend(self.look());
            }
            let next = found.pop_front();
            drop(found);
            let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if next.is_some() || is_over || !self.shared.sleep(LOOK_EVERY) {
                return next;
            }
        }
    }

    /// Whether the recorder runs, in this process.
    pub fn is_running(&self) -> bool {
        self.shared.is_ours() && !*lock(&self.shared.stopped)
    }

    fn look(&self) -> Vec<Alarm> {
        let time = catch_up();
        let found = lock(&self.watch).settle(time);
        found.into_iter().map(|long| self.alarm(&long)).collect()
    }

    fn alarm(&self, long: &Long) -> Alarm {
        let ring = &self.shared.ring;
        let code = long.stack.map(|stack| (Code::of_body(&ring.code_of(stack)), stack));
        let texts = |(code, stack): (Code, u32)| code.stack(stack).map(|frame| code.text(frame)).collect();
        Alarm {
            watched: self.watched,
            holder: long.holder.map(|holder| ring.thread_name(holder)).unwrap_or_default(),
            waiting: ring.thread_name(long.waiting),
            nanoseconds: long.time,
            is_over: long.is_over,
            stack: code.map(texts).unwrap_or_default(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.ring.unwatch(&self.watch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::clock::now;
    use crate::trace::analyze::recording::Recording;
    use crate::trace::format::definition::{Lock, Name};
    use crate::trace::format::event::{Kind, Reason};
    use crate::trace::record::mode::{now_holding, now_releasing};
    use crate::trace::record::thread::Thread;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("offlock-flight-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("writable");
            Self(path)
        }

        fn dumps(&self) -> Vec<PathBuf> {
            let entries = std::fs::read_dir(&self.0).expect("there").flatten();
            let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
            paths.sort();
            paths
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Two threads of a program, of which the first one holds the lock while the second one waits.
    struct Pair {
        lock: Lock,
        holder: &'static Thread,
        waiting: &'static Thread,
    }

    impl Pair {
        fn new(name: &str) -> Self {
            let thread = |number| Thread::present(&format!("{name} {number}"));
            Self { lock: Lock::new(name), holder: thread(1), waiting: thread(2) }
        }

        fn begin(&self) {
            self.holder.wants(now(), self.lock);
            self.holder.acquired(now_holding(), self.lock);
            self.waiting.wants(now(), self.lock);
        }

        fn end(&self) {
            self.holder.released(now_releasing(), self.lock, Reason::Blocks);
            self.waiting.acquired(now_holding(), self.lock);
            self.waiting.released(now_releasing(), self.lock, Reason::Blocks);
        }
    }

    fn read(path: &Path) -> Recording {
        let bytes = files::read(path).expect("there");
        Recording::read(&bytes, &Task::new()).expect("a trace")
    }

    fn names(recording: &Recording) -> Vec<&str> {
        recording.threads.values().map(|thread| thread.name.as_str()).collect()
    }

    #[test]
    fn a_dump_is_a_complete_trace_and_the_recording_goes_on() {
        let folder = Folder::new("dump");
        let pair = Pair::new("dumped");
        let recorder =
            FlightRecorder::start(&Options::default(), &FlightOptions::default()).expect("a thread");
        for round in 1..=3 {
            pair.begin();
            pair.end();
            let path = folder.0.join("last.offlock");
            let stats = recorder.dump(&path).expect("writable");
            let recording = read(&path);
            assert_eq!((recording.damage, recording.lost), (None, 0));
            assert_eq!((recording.events, recording.bytes), (stats.events, stats.bytes));
            let of_pair = recording.threads.values().filter(|thread| thread.name == "dumped 2");
            assert_eq!(of_pair.map(|thread| thread.moments.len()).sum::<usize>(), round * 3);
        }
        assert!(recorder.memory() > 0);
        recorder.stop();
        assert!(!recorder.is_running());
        assert!(recorder.dump(&folder.0.join("later.offlock")).is_err());
        recorder.stop();
    }

    #[test]
    fn a_full_disk_leaves_the_file_as_it_was() {
        let recorder =
            FlightRecorder::start(&Options::default(), &FlightOptions::default()).expect("a thread");
        let folder = Folder::new("full");
        let path = folder.0.join("there").join("last.offlock");
        assert_eq!(recorder.dump(&path).expect_err("no folder").kind(), io::ErrorKind::NotFound);
        #[cfg(target_os = "linux")]
        assert_eq!(
            recorder.dump(Path::new("/dev/full")).expect_err("full").kind(),
            io::ErrorKind::StorageFull
        );
        assert_eq!(folder.dumps(), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_long_wait_writes_a_dump_but_not_every_long_wait() {
        let folder = Folder::new("by-itself");
        let pair = Pair::new("by itself");
        let flight = FlightOptions {
            path: Some(folder.0.join("last.offlock")),
            wait: Some(Duration::from_millis(30)),
            interval: Duration::ZERO,
            most: 2,
            ..FlightOptions::default()
        };
        let recorder = FlightRecorder::start(&Options::default(), &flight).expect("a thread");
        for round in 0..4 {
            pair.begin();
            let deadline = Instant::now() + Duration::from_secs(20);
            while recorder.written() < (round + 1).min(2) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(50));
            pair.end();
        }
        recorder.stop();
        assert_eq!((recorder.written(), recorder.has_failed()), (2, false));
        let dumps = folder.dumps();
        assert_eq!(dumps, ["last-2.offlock", "last.offlock"].map(|name| folder.0.join(name)));
        for dump in dumps {
            let recording = read(&dump);
            assert_eq!(recording.damage, None);
            assert!(names(&recording).contains(&"by itself 1"), "{:?}", names(&recording));
        }
    }

    #[test]
    fn a_watch_tells_while_the_hold_goes_on() {
        let pair = Pair::new("watched");
        let recorder =
            FlightRecorder::start(&Options::default(), &FlightOptions::default()).expect("a thread");
        let watch = recorder.watch(Watched::Hold, Duration::from_millis(30));
        let of_pair = |watch: &Watch| {
            let deadline = Instant::now() + Duration::from_secs(20);
            let next = || watch.next(Duration::from_secs(1));
            std::iter::from_fn(|| (Instant::now() < deadline).then(next))
                .flatten()
                .find(|alarm| alarm.holder == "watched 1")
        };
        pair.begin();
        let alarm = of_pair(&watch).expect("a hold");
        assert_eq!((alarm.watched, alarm.is_over), (Watched::Hold, false));
        assert_eq!(alarm.waiting, "watched 2");
        assert!(alarm.nanoseconds >= 30_000_000, "{alarm:?}");
        let text = alarm.to_string();
        assert!(text.starts_with("\"watched 1\" has held the lock for "), "{text}");
        assert!(text.ends_with(" ms while \"watched 2\" waited"), "{text}");
        pair.end();
        recorder.stop();
        let asked = Instant::now();
        // What it had found before comes first.
        while watch.next(Duration::from_secs(100)).is_some() {}
        assert!(asked.elapsed() < Duration::from_secs(50), "it waits for no recorder that has stopped");
    }

    #[test]
    fn names_stay_known_however_much_else_is_named() {
        let folder = Folder::new("names");
        let flight = FlightOptions { memory: FlightOptions::LEAST_MEMORY, ..FlightOptions::default() };
        let recorder = FlightRecorder::start(&Options::default(), &flight).expect("a thread");
        let thread = Thread::present("marking");
        let mark = |name: &str| {
            thread.mark_begin(now(), Name::of(name));
            thread.mark_end(now(), None);
        };
        let path = folder.0.join("names.offlock");
        mark("rare");
        let mut events = 0;
        for round in 0..8 {
            // The table of names has room for some of them only.
            (0..5_000).for_each(|number| mark(&format!("a name of round {round}: {number}")));
            // What was named is found to be of no use, and again a second later.
            (0..60_000).for_each(|_| mark("often"));
            std::thread::sleep(Duration::from_millis(600));
            mark("rare");
            recorder.dump(&path).expect("writable");
            let recording = read(&path);
            let moments = recording.threads.values().filter(|thread| thread.name == "marking");
            let marks =
                moments.flat_map(|thread| &thread.moments).filter(|moment| moment.kind == Kind::MarkBegin);
            let names: Vec<_> = marks.map(|moment| recording.name(moment.argument)).collect();
            assert!(names.iter().all(|name| !name.starts_with("name ")), "each number has a name");
            assert_eq!(names.last().map(String::as_str), Some("rare"));
            events += 130_000;
            assert!(round < 7 || recording.events < events, "not all fit");
            // All names of all rounds would take 5 MB besides the events. On a busy machine those of two rounds may be
            // there that have not yet been found to be of no use twice.
            assert!(recorder.memory() <= 4 << 20, "{}", recorder.memory());
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let start = |flight| FlightRecorder::start(&Options::default(), &flight).err().map(|e| e.to_string());
        let tiny = FlightOptions { memory: 10, ..FlightOptions::default() };
        assert_eq!(start(tiny).as_deref(), Some("a memory of 10 bytes is less than 1048576"));
        let nowhere = FlightOptions { hold: Some(Duration::ZERO), ..FlightOptions::default() };
        assert!(start(nowhere).is_some_and(|error| error.contains("no path")));
    }
}
