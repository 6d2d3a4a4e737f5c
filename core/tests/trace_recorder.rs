//! The recorder from the outside: what feeds put in comes out of the file.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use offlock_core::Task;
use offlock_core::trace::{
    Damage, Flaw, Frame, Function, Kind, Lock, Metric, Name, Options, Reason, Recording, Stack, Summary,
    Thread, Timeline, Trace, code_era, is_tracing, metrics, now, now_holding, stacks_after, unpack_release,
    unpack_size,
};

/// One process-wide recorder, so one test at a time.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn read(bytes: &[u8]) -> Recording {
    Recording::read(bytes, &Task::new()).expect("a trace")
}

#[test]
fn what_happens_to_a_thread_is_in_the_file() {
    let _alone = alone();
    let options = Options { about: vec![("language".into(), "test".into())], ..Options::default() };
    let (trace, memory) = Trace::to_memory(&options).expect("memory takes everything");
    let (thread, lock) = (Thread::start(now(), "worker \"1\"\n"), Lock::new("GIL"));
    thread.wants(now(), lock);
    thread.acquired(now_holding(), lock);
    thread.region_begin(now(), Name::of("deflate"));
    thread.released(now(), lock, Reason::Blocks);
    thread.wants(now(), lock);
    thread.acquired(now_holding(), lock);
    thread.region_end(now(), 1 << 20);
    thread.mark_begin(now(), Name::of("checkout"));
    thread.gc_enter(now());
    thread.gc_exit(now());
    thread.mark_end(now(), None);
    thread.released(now(), lock, Reason::Sleeps);
    thread.end(now());
    let stats = trace.stop().expect("memory takes everything");

    let recording = read(&memory.take());
    assert_eq!(recording.damage, None);
    assert_eq!((stats.events, stats.lost), (14, 0));
    assert_eq!(recording.about("language"), Some("test"));
    assert_eq!(recording.about("pid"), Some(std::process::id().to_string().as_str()));
    let (_, recorded) = recording.threads.iter().find(|(_, t)| t.name == "worker \"1\"\n").expect("named");
    let kinds: Vec<Kind> = recorded.moments.iter().map(|moment| moment.kind).collect();
    use Kind::*;
    assert_eq!(
        kinds,
        [
            ThreadStart,
            Wants,
            Acquired,
            RegionBegin,
            Released,
            Wants,
            Acquired,
            RegionEnd,
            MarkBegin,
            GcEnter,
            GcExit,
            MarkEnd,
            Released,
            ThreadEnd
        ]
    );
    let moments = &recorded.moments;
    assert!(moments.iter().all(|moment| (recording.start..=recording.end).contains(&moment.time)));
    assert!(moments.iter().all(|moment| moment.native == moments[0].native && moment.native != 0));
    assert_eq!(recording.names[&moments[3].argument], "deflate");
    assert_eq!(recording.names[&moments[8].argument], "checkout");
    assert_eq!(unpack_size(moments[7].argument), 1 << 20);
    assert_eq!(recording.locks[&lock.id()], "GIL");
    assert_eq!(unpack_release(moments[12].argument), (lock.id(), Reason::Sleeps));
    lock.remove();
}

#[test]
fn a_thread_whose_own_state_is_being_destroyed_loses_nothing() {
    struct Late(&'static Thread, Lock);

    impl Drop for Late {
        fn drop(&mut self) {
            for _ in 0..300 {
                self.0.acquired(now_holding(), self.1);
                self.0.released(now(), self.1, Reason::Blocks);
            }
        }
    }

    thread_local! {
        static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
    }

    let _alone = alone();
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory takes everything");
    let lock = Lock::new("GIL");
    let body = move || {
        // Before the thread's first event, after whose state it is destroyed.
        LATE.with(|late| *late.borrow_mut() = Some(Late(Thread::start(now(), "late"), lock)));
    };
    std::thread::spawn(body).join().expect("no panic");
    let stats = trace.stop().expect("memory takes everything");
    assert_eq!((stats.events, stats.lost), (601, 0));
    let recording = read(&memory.take());
    let recorded = recording.threads.values().find(|thread| thread.name == "late").expect("named");
    assert!(recorded.moments.is_sorted_by_key(|moment| moment.time));
    assert_eq!(recorded.moments.iter().filter(|moment| moment.kind == Kind::Acquired).count(), 300);
    lock.remove();
}

/// Runs on a processor for so many milliseconds.
#[cfg(target_os = "linux")]
fn compute(milliseconds: u64) {
    let used = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid place to write a timespec to.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000
    };
    let until = used() + milliseconds;
    while used() < until {
        std::hint::spin_loop();
    }
}

/// Both threads are off the lock, as far as events say.
#[test]
#[cfg(target_os = "linux")]
fn computing_in_other_code_is_told_from_idling() {
    let _alone = alone();
    let lock = Lock::new("GIL");
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory takes everything");
    let turn = |name: &'static str, work: fn()| {
        let (thread, started) = (Thread::start(now(), name), std::time::Instant::now());
        for _ in 0..3 {
            thread.wants(now(), lock);
            thread.acquired(now_holding(), lock);
            thread.released(now(), lock, Reason::Blocks);
            work();
        }
        thread.end(now());
        started.elapsed()
    };
    let computed = std::thread::scope(|scope| {
        let computes = scope.spawn(|| turn("computes", || compute(30)));
        scope.spawn(|| turn("sleeps", || std::thread::sleep(std::time::Duration::from_millis(30))));
        computes.join().expect("no panic")
    });
    trace.stop().expect("memory takes everything");
    let recording = read(&memory.take());
    let summary = Summary::of(&recording, &Timeline::of(&recording));
    let thread = |name: &str| summary.threads.iter().find(|thread| thread.name == name).expect("recorded");
    let computes = thread("computes").usage.expect("recorded");
    assert!(computes.others > 70_000_000 && computes.others <= computes.cpu, "{computes:?}");
    // A system that does not tell how long threads lacked a processor leaves this open if that was most of the time.
    let had_processor = computed < Duration::from_millis(150);
    assert!(
        !had_processor || thread("computes").times.off_lock > 20_000_000,
        "{:?}",
        thread("computes").times
    );
    let sleeps = thread("sleeps").usage.expect("recorded");
    assert!(sleeps.cpu < 15_000_000, "{sleeps:?}");
    assert!(thread("sleeps").times.off_lock < 15_000_000, "{:?}", thread("sleeps").times);
    assert!(summary.cpu.is_some_and(|cpu| cpu > 85_000_000), "{:?}", summary.cpu);
    let processors = summary.processors.expect("known");
    assert!(summary.useful_parallelism > 0.0 && summary.useful_parallelism <= processors + 0.1);
    assert!(summary.busy.is_some() && summary.machine_busy.is_some_and(|busy| (0.0..=1.0).contains(&busy)));
    lock.remove();
}

#[test]
fn a_release_that_turns_out_to_be_none_is_undone() {
    let _alone = alone();
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
    let (thread, lock) = (Thread::start(now(), "t"), Lock::new("L"));
    thread.holds(lock);
    thread.acquired(now_holding(), lock);
    thread.holds(lock);
    thread.released(now(), lock, Reason::Blocks);
    std::thread::sleep(std::time::Duration::from_millis(5));
    thread.holds(lock);
    thread.released(now(), lock, Reason::Blocks);
    trace.stop().expect("memory");
    thread.holds(lock);
    thread.end(now());
    let recording = read(&memory.take());
    let moments = &recording.threads[&thread.id()].moments;
    use Kind::*;
    assert_eq!(
        moments.iter().map(|moment| moment.kind).collect::<Vec<_>>(),
        [ThreadStart, Acquired, Released, Acquired, Released]
    );
    assert_eq!(moments[2].time, moments[3].time);
    assert!(moments[4].time - moments[3].time >= 5_000_000);
}

#[test]
fn nothing_is_recorded_unless_asked() {
    let _alone = alone();
    assert!(!is_tracing());
    let (thread, lock) = (Thread::present("idle"), Lock::new("L"));
    thread.wants(now(), lock);
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
    assert!(is_tracing());
    assert_eq!(trace.stop().expect("memory").events, 0);
    assert!(!is_tracing());
    let recording = read(&memory.take());
    assert!(
        recording.threads.values().any(|thread| thread.name == "idle"),
        "threads without events are listed"
    );
    thread.end(now());
}

#[test]
fn traces_may_overlap() {
    let _alone = alone();
    let (thread, lock) = (Thread::present("t"), Lock::new("L"));
    let (outer, outer_memory) = Trace::to_memory(&Options::default()).expect("memory");
    thread.wants(now(), lock);
    let (inner, inner_memory) = Trace::to_memory(&Options::default()).expect("memory");
    thread.acquired(now_holding(), lock);
    assert_eq!(outer.stop().expect("memory").events, 2);
    assert!(is_tracing());
    thread.released(now(), lock, Reason::Blocks);
    assert_eq!(inner.stop().expect("memory").events, 2);
    assert!(!is_tracing());
    for memory in [outer_memory, inner_memory] {
        let recording = read(&memory.take());
        assert_eq!(recording.damage, None);
        assert_eq!(recording.threads[&thread.id()].moments.len(), 2);
    }
    thread.end(now());
}

#[test]
fn a_busy_trace_loses_nothing_and_is_small() {
    let _alone = alone();
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
    let lock = Lock::new("L");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                let thread = Thread::start(now(), "busy");
                for _ in 0..30_000 {
                    thread.wants(now(), lock);
                    thread.acquired(now_holding(), lock);
                    thread.released(now(), lock, Reason::Blocks);
                    (0..100).for_each(|i| _ = std::hint::black_box(i));
                }
                thread.end(now());
            });
        }
    });
    let stats = trace.stop().expect("memory");
    assert_eq!((stats.events, stats.lost), (4 * 90_002, 0));
    assert!(stats.bytes < 4 * stats.events, "{} bytes", stats.bytes);
    let recording = read(&memory.take());
    assert_eq!(recording.events, stats.events);
    assert!(recording.threads.values().all(|t| t.moments.is_sorted_by_key(|m| m.time)));
}

#[test]
fn ten_thousand_threads_come_and_go() {
    let _alone = alone();
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
    let lock = Lock::new("L");
    for _ in 0..100 {
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    let thread = Thread::start(now(), "brief");
                    thread.wants(now(), lock);
                    thread.end(now());
                });
            }
        });
    }
    let stats = trace.stop().expect("memory");
    assert_eq!((stats.events, stats.lost), (30_000, 0));
    let recording = read(&memory.take());
    assert_eq!(recording.threads.values().filter(|t| t.moments.len() == 3).count(), 10_000);
}

#[test]
fn start_and_stop_may_be_called_by_anyone_at_any_time() {
    let _alone = alone();
    let done = AtomicBool::new(false);
    let barrier = Barrier::new(5);
    std::thread::scope(|scope| {
        let feeder = scope.spawn(|| {
            let (thread, lock) = (Thread::start(now(), "feeder"), Lock::new("L"));
            barrier.wait();
            while !done.load(Ordering::Relaxed) {
                thread.acquired(now_holding(), lock);
                thread.released(now(), lock, Reason::Blocks);
            }
            thread.end(now());
        });
        let tracers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..50 {
                        let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
                        let stats = trace.stop().expect("memory");
                        let recording = read(&memory.take());
                        assert_eq!((recording.damage, recording.events), (None, stats.events));
                    }
                })
            })
            .collect();
        tracers.into_iter().for_each(|tracer| tracer.join().expect("no panic"));
        done.store(true, Ordering::Relaxed);
        feeder.join().expect("no panic");
    });
    assert!(!is_tracing());
}

/// Frames are closed while a queue is read, not after it.
#[test]
fn a_long_backlog_of_one_thread_becomes_several_frames() {
    let _alone = alone();
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
    let (thread, lock) = (Thread::start(now(), "feeder"), Lock::new("L"));
    for _ in 0..1_000_000 {
        thread.acquired(now_holding(), lock);
        thread.released(now(), lock, Reason::Blocks);
    }
    thread.end(now());
    let stats = trace.stop().expect("memory");
    assert_eq!((stats.events, stats.lost), (2_000_002, 0));
    let bytes = memory.take();
    let recording = read(&bytes);
    assert_eq!((recording.damage, recording.events), (None, 2_000_002));
    let moments = &recording.threads[&thread.id()].moments;
    assert!(moments.is_sorted_by_key(|moment| moment.time));
}

#[test]
fn a_dropped_trace_is_stopped() {
    let _alone = alone();
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
    drop(trace);
    assert!(!is_tracing());
    assert_eq!(read(&memory.take()).damage, None);
}

#[test]
fn what_exceeds_the_limit_is_counted_as_lost() {
    let _alone = alone();
    let options = Options { limit: Some(5_000), ..Options::default() };
    let (trace, memory) = Trace::to_memory(&options).expect("memory");
    let (thread, lock) = (Thread::start(now(), "t"), Lock::new("L"));
    let mut recorded = 1;
    while recorded < 10_000 {
        (0..200).for_each(|_| thread.wants(now(), lock));
        recorded += 200;
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let stats = trace.stop().expect("memory");
    assert_eq!(stats.events + stats.lost, recorded);
    assert!(stats.lost > 0 && stats.bytes < 5_100, "{stats:?}");
    let recording = read(&memory.take());
    assert_eq!((recording.damage, recording.lost), (None, stats.lost));
    thread.end(now());
}

#[test]
fn a_file_is_readable_up_to_any_byte() {
    let _alone = alone();
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
    let (thread, lock) = (Thread::start(now(), "t"), Lock::new("L"));
    for _ in 0..5 {
        (0..10).for_each(|_| thread.wants(now(), lock));
        let before = memory.len();
        while memory.len() == before {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    trace.stop().expect("memory");
    thread.end(now());
    let bytes = memory.take();
    let mut seen = 0;
    for cut in 8..bytes.len() {
        let recording = read(&bytes[..cut]);
        let Damage { offset, flaw } = recording.damage.expect("the end is missing");
        assert!(matches!(flaw, Flaw::Cut | Flaw::NoEnd));
        assert_eq!(flaw == Flaw::NoEnd, offset == cut as u64);
        let summary = Summary::of(&recording, &Timeline::of(&recording)).to_text();
        let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(flaw == Flaw::Cut, summary.contains("Incomplete"), "{summary}");
        assert_eq!(flaw == Flaw::NoEnd, summary.contains("complete up to its last flush"), "{summary}");
        assert!(recording.events >= seen, "never less than from a shorter piece");
        seen = recording.events;
    }
    assert_eq!(seen, 51, "all of them before the end frame");
    for wrong in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[wrong] ^= 0x55;
        match Recording::read(&bytes, &Task::new()) {
            Ok(recording) => assert!(recording.damage.is_some(), "byte {wrong}"),
            Err(_) => assert!(wrong < 8),
        }
    }
}

#[test]
fn errors_of_the_output_are_reported() {
    let _alone = alone();
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let at_once = Trace::start(Box::new(Full(3)), &Options::default());
    assert_eq!(at_once.err().map(|e| e.kind()), Some(std::io::ErrorKind::StorageFull));
    assert!(!is_tracing());
    let trace = Trace::start(Box::new(Full(20_000)), &Options::default()).expect("room for the beginning");
    let (thread, lock) = (Thread::start(now(), "t"), Lock::new("L"));
    (0..20_000).for_each(|_| thread.wants(now(), lock));
    assert_eq!(trace.stop().err().map(|e| e.kind()), Some(std::io::ErrorKind::StorageFull));
    assert!(!is_tracing());
    thread.end(now());
}

#[test]
fn metrics_count_what_they_should() {
    let _alone = alone();
    let lock = Lock::new("L");
    let (a, b) = (Thread::present("a"), Thread::present("b"));
    b.wants(now(), lock);
    for metric in [Metric::Global, Metric::Local, Metric::Waiting] {
        metric.enable();
        assert!(metric.is_enabled());
    }
    metrics::reset();
    let began = now();
    a.wants(now(), lock);
    assert_eq!(metrics::waiting(), 1, "b's wish came before counting began");
    std::thread::sleep(std::time::Duration::from_millis(5));
    a.acquired(now_holding(), lock);
    b.acquired(now_holding(), lock);
    assert_eq!(metrics::waiting(), 0);
    let most = offlock_core::trace::nanoseconds(now() - began);
    let waited = metrics::waited();
    assert!((5_000_000..=most).contains(&waited), "{waited} of {most}");
    assert_eq!(a.metrics().waited / 1_000, waited / 1_000);
    assert_eq!((a.metrics().acquisitions, b.metrics().acquisitions, metrics::acquisitions()), (1, 1, 2));
    assert_eq!(b.metrics().waited, 0);
    assert_eq!((a.waits().count(), b.waits().count(), metrics::waits().count()), (1, 0, 1));
    assert!(metrics::waits().quantile(0.5).abs_diff(waited) < waited / 16);

    a.released(now(), lock, Reason::Yields);
    assert_eq!((metrics::waiting(), a.metrics().releases), (1, 1), "who yields waits");
    Metric::Waiting.disable();
    b.wants(now(), lock);
    b.acquired(now_holding(), lock);
    assert_eq!(metrics::waiting(), 1, "as it was at the end");
    metrics::reset_waiting();
    assert_eq!(metrics::waiting(), 0);
    Metric::Waiting.enable();
    b.wants(now(), lock);
    a.acquired(now_holding(), lock);
    assert_eq!(metrics::waiting(), 1, "a was counted before, and is not subtracted now");
    b.end(now());
    assert_eq!(metrics::waiting(), 0, "who ends waits no more");
    a.reset_metrics();
    assert_eq!(a.metrics(), Default::default());
    a.end(now());
    for metric in [Metric::Global, Metric::Local, Metric::Waiting] {
        metric.disable();
        assert!(!metric.is_enabled());
    }
}

#[test]
fn stacks_are_in_every_trace_that_runs() {
    let _alone = alone();
    let functions = ["main", "serve", "parse"].map(|name| (Function::numbered(), name));
    let frame = |index: usize, line| Frame { function: functions[index].0, line };
    assert_eq!(Stack::of(code_era(), [frame(0, 1)], 0), None, "no trace is recorded");

    let (first, first_memory) = Trace::to_memory(&Options::default()).expect("memory takes everything");
    let thread = Thread::start(now(), "holder");
    let era = code_era();
    let early = Stack::of(era, [frame(0, 3), frame(1, 10)], 0).expect("room");
    early.holding(now(), thread.id());
    functions.iter().for_each(|(function, name)| function.describe(name, "/srv/app.py", 2));
    let (second, second_memory) = Trace::to_memory(&Options::default()).expect("memory takes everything");
    let late = Stack::of(era, [frame(1, 10), frame(2, 41)], 7).expect("room");
    assert_eq!(Stack::of(era, [frame(0, 3), frame(1, 10)], 0), Some(early), "as before");
    late.releasing(now(), thread.id());
    early.waiting(now(), thread.id());
    first.stop().expect("memory takes everything");
    assert_eq!(code_era(), era);
    second.stop().expect("memory takes everything");
    assert_ne!(code_era(), era, "the last trace");
    thread.end(now());

    let shown = |recording: &Recording, kind: Kind| -> Vec<String> {
        let thread = recording.threads.values().find(|thread| thread.name == "holder").expect("named");
        let moment = thread.moments.iter().find(|moment| moment.kind == kind).expect("recorded");
        let texts = recording.code.stack(moment.argument).map(|frame| recording.code.text(frame));
        texts.map(|text| format!("{} {}:{}", text.function, text.file, text.line)).collect()
    };
    let [outer, inner] = ["main /srv/app.py:3", "serve /srv/app.py:10"].map(str::to_owned);
    let cut = ["parse /srv/app.py:41".to_owned(), inner.clone(), "… 4 frames left out :0".to_owned()];
    let (first, second) = (read(&first_memory.take()), read(&second_memory.take()));
    assert_eq!(shown(&first, Kind::StackHolding), [inner.clone(), outer.clone()]);
    for recording in [first, second] {
        assert_eq!(shown(&recording, Kind::StackReleasing), cut);
        assert_eq!(shown(&recording, Kind::StackWaiting), [inner.clone(), outer.clone()]);
        assert_eq!(Recording { bytes: recording.bytes, ..read(&recording.to_bytes()) }, recording);
    }
}

/// A feed may look at a stack just as a trace ends, when the recorder takes no descriptions any more.
#[test]
fn every_function_of_a_stack_is_described_however_traces_begin_and_end() {
    let _alone = alone();
    let (done, thread) = (&AtomicBool::new(false), Thread::present("holder"));
    let feed = || {
        let (mut era, mut known) = (code_era(), None);
        while !done.load(Ordering::Relaxed) {
            if era != code_era() {
                (era, known) = (code_era(), None);
            }
            let function = *known.get_or_insert_with(|| {
                let function = Function::numbered();
                function.describe("compute", "app.py", 1);
                function
            });
            if let Some(stack) = Stack::of(era, [Frame { function, line: 2 }], 0) {
                stack.holding(now(), thread.id());
            }
            std::thread::yield_now();
        }
    };
    let options = Options::default();
    let mut traces = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(feed);
        for _ in 0..100 {
            let (trace, memory) = Trace::to_memory(&options).expect("memory takes everything");
            std::thread::sleep(Duration::from_micros(300));
            trace.stop().expect("memory takes everything");
            traces.push(memory.take());
            std::thread::sleep(Duration::from_micros(300));
        }
        done.store(true, Ordering::Relaxed);
    });
    thread.end(now());
    let mut names: Vec<String> = Vec::new();
    for trace in &traces {
        let recording = read(trace);
        let moments = recording.threads.values().flat_map(|thread| &thread.moments);
        let stacks = moments.filter(|moment| moment.kind == Kind::StackHolding);
        let frames = stacks.flat_map(|moment| recording.code.stack(moment.argument));
        names.extend(frames.map(|frame| recording.code.text(frame).to_string()));
    }
    assert!(names.len() > traces.len(), "{} stacks", names.len());
    names.dedup();
    assert_eq!(names, ["compute (app.py:2)"]);
}

#[test]
fn the_shortest_wait_that_a_trace_asks_for_counts() {
    let _alone = alone();
    let start = |wait| {
        let options = Options { stacks: Duration::from_millis(wait).into(), ..Options::default() };
        Trace::to_memory(&options).expect("memory takes everything").0
    };
    let (off, memory) = Trace::to_memory(&Options { stacks: None, ..Options::default() }).expect("memory");
    assert_eq!(stacks_after(), None);
    let long = start(8);
    let eight = stacks_after().expect("asked for");
    let short = start(1);
    assert!(stacks_after().is_some_and(|one| one.abs_diff(eight / 8) < 8));
    short.stop().expect("memory takes everything");
    assert_eq!(stacks_after(), Some(eight));
    long.stop().expect("memory takes everything");
    assert_eq!(stacks_after(), None);
    off.stop().expect("memory takes everything");
    assert_eq!(read(&memory.take()).about("stacks"), None);
}

#[test]
fn a_trace_says_after_how_long_it_records_stacks() {
    let _alone = alone();
    let (trace, memory) = Trace::to_memory(&Options::default()).expect("memory");
    trace.stop().expect("memory takes everything");
    assert_eq!(read(&memory.take()).about("stacks"), Some("1000000"));
}
