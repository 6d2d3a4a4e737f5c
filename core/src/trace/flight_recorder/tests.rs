//! Dumps, watches, and what a recorder refuses.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{FlightOptions, FlightRecorder, Watch};
use crate::Task;
use crate::clock::now;
use crate::trace::analyze::recording::Recording;
use crate::trace::files;
use crate::trace::format::definition::{Lock, Name};
use crate::trace::format::event::{Kind, Reason};
use crate::trace::record::lock_watch::Watched;
use crate::trace::record::mode::{now_holding, now_releasing};
use crate::trace::record::session::Options;
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
    let recorder = FlightRecorder::start(&Options::default(), &FlightOptions::default()).expect("a thread");
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
    let recorder = FlightRecorder::start(&Options::default(), &FlightOptions::default()).expect("a thread");
    let folder = Folder::new("full");
    let path = folder.0.join("there").join("last.offlock");
    assert_eq!(recorder.dump(&path).expect_err("no folder").kind(), io::ErrorKind::NotFound);
    #[cfg(target_os = "linux")]
    assert_eq!(recorder.dump(Path::new("/dev/full")).expect_err("full").kind(), io::ErrorKind::StorageFull);
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
    let recorder = FlightRecorder::start(&Options::default(), &FlightOptions::default()).expect("a thread");
    let watch = recorder.watch(Watched::Hold, Duration::from_millis(30), false);
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
