//! Live traces: a process publishes itself, and others take traces from it.

#![cfg(unix)]

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use offlock_core::Task;
use offlock_core::trace::{
    Capture, Connection, DumpedState, Frame, FrameText, Function, Lock, Options, Patience, Reason, Recent,
    Recording, Stack, Summary, TakeStacks, TakenStacks, Thread, ThreadStack, Timeline, Trace, code_era, dump,
    is_active, is_tracing, now, now_holding, now_releasing, published, standings,
};

/// A process is published once at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn publish() -> Capture {
    publish_with(no_stacks)
}

fn publish_with(take_stacks: TakeStacks) -> Capture {
    let options = Options { about: vec![("command".into(), "app".into())], ..Options::default() };
    Capture::publish(&options, take_stacks).expect("a socket")
}

fn no_stacks(_: &Patience<'_>) -> TakenStacks {
    TakenStacks::without_stacks("there is no interpreter".into())
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
        let second = Capture::publish(&Options::default(), no_stacks).err().expect("it is published");
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

    let _alone = alone();
    let mut capture = publish();
    let mut stream = raw();
    let _ = stream.write_all(&[b'x'; 10_000]);
    let mut greeting = Vec::new();
    // A reset, because the process has not read everything.
    let _ = stream.read_to_end(&mut greeting);
    assert!(greeting.starts_with(b"offlock-live 1 "), "{greeting:?}");
    for request in
        ["dump\n", "dump x\n", "dump -1\n", "dump 99999999999999999999999\n", "\n", "trace\n", "stop 1\n"]
    {
        let mut stream = raw();
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the process ends the connection");
        assert_eq!(answer.lines().count(), 1, "{request:?}: {answer}");
    }
    assert_eq!(finish(connect()).damage, None);
    capture.stop().expect("nothing is written");
}

/// The socket of this process.
fn socket() -> PathBuf {
    let folders = [std::env::var("XDG_RUNTIME_DIR").map(|folder| folder + "/offlock").ok()];
    // SAFETY: geteuid takes no arguments and cannot fail.
    let shared = format!("/tmp/offlock-{}", unsafe { libc::geteuid() });
    let paths = folders.into_iter().flatten().chain([shared]);
    let mut sockets = paths.map(|folder| PathBuf::from(format!("{folder}/{}.sock", std::process::id())));
    sockets.find(|path| path.exists()).expect("a socket")
}

/// A connection that says nothing yet.
fn raw() -> UnixStream {
    UnixStream::connect(socket()).expect("it listens")
}

fn two_threads(_: &Patience<'_>) -> TakenStacks {
    let frame = |function: &str| FrameText { function: function.into(), file: "app.py".into(), line: 3 };
    let standings = standings();
    let id =
        |name: &str| standings.iter().find(|standing| standing.name == name).map_or(0, |known| known.thread);
    let stacks = ["dumped holder", "unknown"].map(|name| ThreadStack {
        thread: id(name),
        native_id: Some(7),
        frames: vec![frame(name), frame("main")],
        ..ThreadStack::default()
    });
    TakenStacks { standings, stacks: stacks.into(), obstacle: None }
}

#[test]
fn a_dump_has_the_threads_their_states_and_stacks() {
    let _alone = alone();
    let mut capture = publish_with(two_threads);
    let lock = Lock::new("dumped");
    let (holder, waiting) = (Thread::present("dumped holder"), Thread::present("dumped waiting"));
    holder.acquired(now_holding(), lock);
    waiting.wants(now(), lock);
    std::thread::sleep(Duration::from_millis(20));
    let dump = dump(std::process::id(), Duration::from_secs(5)).expect("it is published");
    assert_eq!((dump.pid, dump.command.as_str(), &dump.obstacle), (std::process::id(), "app", &None));
    let named = |name: &str| dump.threads.iter().find(|thread| thread.name == name).expect("known");
    let (holds, waits) = (named("dumped holder"), named("dumped waiting"));
    assert_eq!((holds.state, holds.native_id, holds.frames.len()), (DumpedState::Running, Some(7), 2));
    assert!(holds.nanoseconds >= Some(20_000_000), "{holds:?}");
    assert_eq!((waits.state, waits.behind.as_deref()), (DumpedState::Waiting, Some("dumped holder")));
    assert!(waits.nanoseconds >= Some(20_000_000) && waits.frames.is_empty(), "{waits:?}");
    assert_eq!(named("thread 7").frames[0].function, "unknown", "a thread that the recorder does not know");
    assert!(!is_tracing(), "nothing is recorded for it");
    capture.stop().expect("nothing is written");
    holder.end(now());
    waiting.end(now());
}

/// Never has an answer.
fn hangs(patience: &Patience<'_>) -> TakenStacks {
    while !patience.is_over() {
        std::thread::sleep(Duration::from_millis(5));
    }
    TakenStacks::without_stacks(format!("nothing within {:?}", patience.within()))
}

#[test]
fn stacks_that_cannot_be_taken_in_time_are_missing() {
    let _alone = alone();
    let mut capture = publish_with(hangs);
    let begun = Instant::now();
    let dump = dump(std::process::id(), Duration::from_millis(300)).expect("it is published");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(dump.obstacle.as_deref(), Some("nothing within 300ms"));
    capture.stop().expect("nothing is written");
}

#[test]
fn without_stacks_the_holder_has_the_last_one_that_was_recorded() {
    let _alone = alone();
    let mut capture = publish();
    let lock = Lock::new("recorded");
    let (holder, other) = (Thread::present("recorded holder"), Thread::present("recorded other"));
    let (trace, _memory) = Trace::to_memory(&Options::default()).expect("memory");
    holder.acquired(now_holding(), lock);
    let frame = |name: &str, line| {
        let function = Function::numbered();
        function.describe(name, "app.py", 1);
        Frame { function, line }
    };
    let stack = Stack::of(code_era(), [frame("main", 12), frame("compute", 41)], 5).expect("it is recorded");
    stack.holding(now(), holder.id());
    stack.releasing(now(), other.id());
    std::thread::sleep(Duration::from_millis(20));
    let dump = dump(std::process::id(), Duration::from_secs(5)).expect("it is published");
    let named = |name: &str| dump.threads.iter().find(|thread| thread.name == name).expect("known");
    let holds = named("recorded holder");
    let frames: Vec<String> = holds.frames.iter().map(FrameText::to_string).collect();
    assert_eq!(frames, ["compute (app.py:41)", "main (app.py:12)"]);
    assert_eq!(holds.left_out, 4, "rounded as in recordings");
    assert!(holds.age >= Some(20_000_000), "{holds:?}");
    assert!(named("recorded other").frames.is_empty(), "it does not hold the lock");
    trace.stop().expect("memory");
    capture.stop().expect("nothing is written");
    holder.end(now());
    other.end(now());
}

#[test]
fn the_end_of_the_program_or_of_the_client_ends_a_dump() {
    use std::io::Write;

    let _alone = alone();
    let mut capture = publish_with(hangs);
    let mut gone = raw();
    gone.write_all(b"dump 600000000000\n").expect("it listens");
    drop(gone);
    let client = std::thread::spawn(|| dump(std::process::id(), Duration::from_secs(600)));
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    capture.stop().expect("nothing is written");
    assert!(begun.elapsed() < Duration::from_secs(5), "nobody waits for the dump");
    let dump = client.join().expect("it returns").expect("an answer");
    assert_eq!(dump.obstacle.as_deref(), Some("nothing within 600s"));
}

#[test]
fn more_dumps_than_are_served_at_once_all_get_an_answer() {
    let _alone = alone();
    let mut capture = publish_with(two_threads);
    let ask = || dump(std::process::id(), Duration::from_secs(20)).expect("an answer").pid;
    let clients: Vec<_> = (0..20).map(|_| std::thread::spawn(ask)).collect();
    for client in clients {
        assert_eq!(client.join().expect("it does not panic"), std::process::id());
    }
    capture.stop().expect("nothing is written");
}

#[test]
fn what_answers_a_dump_with_something_else_is_refused() {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    let _alone = alone();
    let mut capture = publish();
    let path = socket();
    capture.stop().expect("nothing is written");
    let answers: [(&[u8], ErrorKind); 4] = [
        (b"offlock-live 1 0.0.0\n", ErrorKind::UnexpectedEof),
        (b"offlock-live 1 0.0.0\n{\"pid\": 1, \"comm", ErrorKind::UnexpectedEof),
        (b"offlock-live 1 0.0.0\n{\"pid\": -1}", ErrorKind::InvalidData),
        (b"offlock-live 2 9.9.9\n", ErrorKind::InvalidData),
    ];
    for (answer, expected) in answers {
        let listener = UnixListener::bind(&path).expect("the folder is there");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(answer).expect("it reads");
            let _ = stream.read(&mut [0; 64]);
        });
        let error = dump(std::process::id(), Duration::from_secs(1)).expect_err("no dump");
        assert_eq!(error.kind(), expected, "{error}");
        server.join().expect("it has answered");
        std::fs::remove_file(&path).expect("ours");
    }
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
