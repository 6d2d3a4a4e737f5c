//! Tests of the region in a real Ruby, with work that counts its allocations and how often it is started.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use magnus::{Error, Module, Object, Ruby, Value, function};
use offlock_core::{Operation, Stopped, Task};

use super::{Region, Release};

static SPIN: Operation = Operation { name: "test.spin", break_even: 100 };

/// The number of live guards, and of guards ever created.
static ALIVE: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Stands for memory that work has allocated.
struct Guard;

impl Guard {
    fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        MADE.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

fn busy(task: &Task<'_>, time: Duration) -> Result<Guard, Stopped> {
    let guard = Guard::new();
    let end = Instant::now() + time;
    while Instant::now() < end {
        task.check()?;
    }
    Ok(guard)
}

/// Works for `ms` milliseconds; returns how often the work was started.
fn spin(ruby: &Ruby, ms: u64, bytes: usize, release: Release) -> Result<usize, Error> {
    let mut starts = 0;
    let _outer = Guard::new();
    let time = Duration::from_millis(ms);
    Region::new(&SPIN, bytes).release(release).run(ruby, |task| {
        starts += 1;
        busy(task, time)
    })?;
    Ok(starts)
}

fn panics(ruby: &Ruby, release: Release) -> Result<usize, Error> {
    Region::new(&SPIN, 7).release(release).run(ruby, |_| -> Result<usize, Stopped> { panic!("odd {}", 1) })
}

fn leaves(bytes: usize, release: Release) -> bool {
    Region::new(&SPIN, bytes).release(release).leaves()
}

/// A single test, because a process has one Ruby.
#[test]
fn everything_under_ruby() {
    // SAFETY: no frame above this one calls Ruby, and Ruby ends with this frame.
    let ruby = unsafe { magnus::embed::init() };
    let outcome = define(&ruby).and_then(|()| ruby.eval::<Value>(include_str!("tests.rb")));
    if let Err(error) = outcome {
        panic!("{error}\n{:?}", error.value().map(|value| value.to_string()));
    }
}

fn define(ruby: &Ruby) -> Result<(), Error> {
    let offlock = ruby.define_module("Offlock")?;
    super::define(ruby, offlock)?;
    let native = ruby.define_module("Native")?;
    native.define_singleton_method("spin", function!(spin, 3))?;
    native.define_singleton_method("panics", function!(panics, 1))?;
    native.define_singleton_method("leaves", function!(leaves, 2))?;
    native.define_singleton_method("alive", function!(|| ALIVE.load(Ordering::SeqCst), 0))?;
    native.define_singleton_method("made", function!(|| MADE.load(Ordering::SeqCst), 0))?;
    native.const_set("WORKER_BYTES", super::run::WORKER_BYTES)
}
