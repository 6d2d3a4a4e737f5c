//! Forking, dying and being killed while a trace is recorded. One test: it forks.
#![cfg(unix)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use offlock_core::Task;
use offlock_core::trace::{
    Flaw, Lock, Metric, Options, Reason, Recording, Thread, Trace, is_active, is_tracing, metrics, now,
};

fn read(path: &Path) -> Recording {
    Recording::read(&std::fs::read(path).expect("written"), &Task::new()).expect("a trace")
}

/// Runs `child` in a fork, ends it with `child`'s result and returns its wait status.
fn fork(child: impl FnOnce() -> bool, parent: impl FnOnce(libc::pid_t)) -> i32 {
    // SAFETY: the child runs only code that is meant to work after a fork, and leaves with _exit.
    match unsafe { libc::fork() } {
        0 => {
            let ok = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
            // SAFETY: ends the child without running the test harness's exit handlers.
            unsafe { libc::_exit(if ok { 0 } else { 1 }) }
        }
        pid => {
            parent(pid);
            let mut status = 0;
            // SAFETY: `pid` is our child and `status` a valid place to write to.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            status
        }
    }
}

fn work(thread: &Thread, lock: Lock, times: usize) {
    for _ in 0..times {
        thread.wants(now(), lock);
        thread.acquired(now(), lock);
        thread.released(now(), lock, Reason::Blocks);
    }
}

#[test]
fn a_child_never_touches_its_parents_trace() {
    let folder = std::env::temp_dir().join(format!("offlock-fork-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let (ours, childs) = (folder.join("parent"), folder.join("child"));
    Metric::Waiting.enable();
    let trace = Trace::to_file(&ours, &Options::default()).expect("writable");
    let (main, lock) = (Thread::start(now(), "main"), Lock::new("GIL"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let thread = Thread::start(now(), "worker");
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) {
                work(thread, lock, 10);
                rounds += 10;
                std::thread::sleep(Duration::from_micros(20));
            }
            thread.wants(now(), lock);
            rounds
        });
        for _ in 0..20 {
            let status = fork(|| child_is_on_its_own(&trace, main, lock, &childs), |_| work(main, lock, 100));
            assert_eq!(status, 0, "the child's checks");
            let recording = read(&childs);
            assert_eq!((recording.damage, recording.events), (None, 30));
            assert_eq!(recording.threads[&main.id()].name, "main after fork");
            assert_eq!(recording.locks[&lock.id()], "child's GIL");
        }
        done.store(true, Ordering::Relaxed);
        let rounds = worker.join().expect("no panic");
        assert_eq!(metrics::waiting(), 1);
        let stats = trace.stop().expect("writable");
        let recording = read(&ours);
        assert_eq!((recording.damage, recording.events, stats.lost), (None, stats.events, 0));
        assert_eq!(recording.threads[&main.id()].moments.len(), 1 + 20 * 300);
        assert_eq!(stats.events, 1 + 20 * 300 + 1 + rounds * 3 + 1);
        assert_eq!(recording.about("pid"), Some(std::process::id().to_string().as_str()));
    });
    Metric::Waiting.disable();
    what_was_flushed_survives_a_kill(&folder);
    std::fs::remove_dir_all(&folder).expect("ours");
}

fn child_is_on_its_own(trace: &Trace, main: &'static Thread, lock: Lock, path: &Path) -> bool {
    let quiet = !is_tracing() && is_active() && !trace.is_ours() && metrics::waiting() == 0;
    work(main, lock, 10);
    let own = Trace::to_file(path, &Options::default()).expect("writable");
    main.rename("main after fork");
    lock.rename("child's GIL");
    work(main, lock, 10);
    quiet && own.stop().expect("writable").events == 30
}

fn what_was_flushed_survives_a_kill(folder: &Path) {
    let path = folder.join("killed");
    let endless = || {
        let _trace = Trace::to_file(&path, &Options::default()).expect("writable");
        let (thread, lock) = (Thread::start(now(), "doomed"), Lock::new("GIL"));
        loop {
            work(thread, lock, 1);
            std::thread::sleep(Duration::from_micros(200));
        }
    };
    let status = fork(endless, |pid| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20)
            && std::fs::metadata(&path).map_or(0, |m| m.len()) < 5_000
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        // SAFETY: `pid` is our child.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    });
    assert!(libc::WIFSIGNALED(status));
    let recording = read(&path);
    assert!(matches!(recording.damage.expect("no end").flaw, Flaw::NoEnd | Flaw::Cut));
    assert!(recording.events > 500 && recording.end > recording.start);
}
