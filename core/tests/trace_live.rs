//! Live traces: a process publishes itself, and others take traces from it.

#![cfg(unix)]

use std::io::{ErrorKind, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use offlock_core::Task;
use offlock_core::trace::{
    Capture, Connection, Lock, Options, Reason, Recent, Recording, Summary, Thread, Timeline, is_active,
    is_tracing, now, now_holding, now_releasing, published,
};

/// A process is published once at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn publish() -> Capture {
    Capture::publish(&Options { about: vec![("command".into(), "app".into())], ..Options::default() })
        .expect("a socket")
}

fn connect() -> Connection {
    Connection::open(std::process::id(), None).expect("it is published")
}

fn finish(mut connection: Connection) -> Recording {
    connection.finish().expect("it is open");
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).expect("the rest arrives");
    Recording::read(&bytes, &Task::new()).expect("a trace")
}

fn eventually(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "it has not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_gets_a_complete_trace_that_knows_what_was_before() {
    let _alone = alone();
    let mut capture = publish();
    assert!(capture.is_running() && is_active() && !is_tracing(), "nothing is recorded yet");
    assert!(published().contains(&std::process::id()));
    let (lock, holder, waiting) = (Lock::new("live"), Thread::present("holder"), Thread::present("waiting"));
    holder.wants(now(), lock);
    holder.acquired(now_holding(), lock);
    waiting.wants(now(), lock);

    let connection = connect();
    eventually(is_tracing);
    std::thread::sleep(Duration::from_millis(30));
    holder.released(now_releasing(), lock, Reason::Blocks);
    waiting.acquired(now_holding(), lock);
    let recording = finish(connection);
    assert_eq!((recording.damage, recording.lost), (None, 0));
    assert_eq!(recording.about("command"), Some("app"));
    let timeline = Timeline::of(&recording);
    let summary = Summary::of(&recording, &timeline);
    let named = |name: &str| summary.threads.iter().find(|thread| thread.name == name).expect("known");
    assert!(named("holder").times.running >= 30_000_000, "it held the lock from the start");
    assert!(named("waiting").times.waiting >= 30_000_000, "it waited from the start");
    assert_eq!(summary.violations, 0);

    eventually(|| !is_tracing());
    capture.stop().expect("nothing is written");
    assert!(!capture.is_running() && !is_active());
    assert!(!published().contains(&std::process::id()));
    let gone = Connection::open(std::process::id(), None).err().expect("not published any more");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    holder.end(now());
    waiting.end(now());
}

#[test]
fn a_process_is_published_once_and_again_after_the_end() {
    let _alone = alone();
    for _ in 0..3 {
        let mut capture = publish();
        let second = Capture::publish(&Options::default()).err().expect("it is published");
        assert_eq!(second.kind(), ErrorKind::AlreadyExists);
        capture.stop().expect("nothing is written");
    }
}

#[test]
fn the_end_of_the_program_completes_the_clients_traces() {
    let _alone = alone();
    let mut capture = publish();
    let mut clients = [connect(), connect()];
    eventually(is_tracing);
    // The second client may not have been served yet.
    std::thread::sleep(Duration::from_millis(100));
    capture.stop().expect("nothing is written");
    for client in &mut clients {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).expect("the process ends the connection");
        assert_eq!(Recording::read(&bytes, &Task::new()).expect("a trace").damage, None);
    }
    assert!(!is_active());
}

#[test]
fn clients_beyond_the_most_are_turned_away_and_then_served() {
    let _alone = alone();
    let mut capture = publish();
    let mut clients: Vec<_> = (0..8).map(|_| connect()).collect();
    let refused = Connection::open(std::process::id(), None).err().expect("too many");
    assert!([ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset].contains(&refused.kind()), "{refused}");
    assert_eq!(finish(clients.remove(0)).damage, None);
    eventually(|| Connection::open(std::process::id(), None).is_ok());
    capture.stop().expect("nothing is written");
}

#[test]
fn a_client_that_talks_nonsense_disturbs_nobody() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    let _alone = alone();
    let mut capture = publish();
    let folders = [std::env::var("XDG_RUNTIME_DIR").map(|folder| folder + "/offlock").ok()];
    // SAFETY: geteuid takes no arguments and cannot fail.
    let shared = format!("/tmp/offlock-{}", unsafe { libc::geteuid() });
    let paths = folders.into_iter().flatten().chain([shared]);
    let mut sockets = paths.map(|folder| format!("{folder}/{}.sock", std::process::id()));
    let mut stream = sockets.find_map(|path| UnixStream::connect(path).ok()).expect("a socket");
    let _ = stream.write_all(&[b'x'; 10_000]);
    let mut greeting = Vec::new();
    // A reset, because the process has not read everything.
    let _ = stream.read_to_end(&mut greeting);
    assert!(greeting.starts_with(b"offlock-live 1 "), "{greeting:?}");
    assert_eq!(finish(connect()).damage, None);
    capture.stop().expect("nothing is written");
}

#[test]
fn a_viewer_keeps_the_last_seconds_only() {
    let _alone = alone();
    let mut capture = publish();
    let (lock, thread) = (Lock::new("recent"), Thread::present("recent thread"));
    let (window, memory) = (Duration::from_millis(700), 8 << 20);
    let recent = Recent::follow(connect(), window + Duration::from_secs(1), memory).expect("a thread");
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(3_500) {
        thread.wants(now(), lock);
        thread.acquired(now_holding(), lock);
        thread.released(now_releasing(), lock, Reason::Blocks);
        std::thread::sleep(Duration::from_millis(5));
    }
    let recording = recent.recording(window).expect("it has been flushed three times");
    let length = Duration::from_nanos(recording.end - recording.start);
    assert_eq!(length, window, "as long as asked for");
    assert_eq!((recording.damage, recording.lost), (None, 0));
    let summary = Summary::of(&recording, &Timeline::of(&recording));
    let seen = summary.threads.iter().find(|thread| thread.name == "recent thread").expect("known by name");
    assert!((50..=140).contains(&seen.acquisitions), "in 700 ms, not in all: {}", seen.acquisitions);
    assert_eq!((summary.violations, summary.locks[0].name.as_str()), (0, "recent"));

    assert!(!recent.has_ended() && !recent.is_crowded());
    thread.end(now());
    capture.stop().expect("nothing is written");
    eventually(|| recent.has_ended());
    assert!(recent.recording(window).is_some(), "what arrived is still there");
}

#[test]
fn a_viewer_that_goes_ends_the_trace() {
    let _alone = alone();
    let mut capture = publish();
    let recent = Recent::follow(connect(), Duration::from_secs(1), 1 << 20).expect("a thread");
    eventually(is_tracing);
    drop(recent);
    eventually(|| !is_tracing());
    capture.stop().expect("nothing is written");
}
