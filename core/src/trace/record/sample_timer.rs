//! A thread that says when the stack of a lock's holder is due, for interpreters whose waiting threads cannot
//! look themselves.
//!
//! While a thread waits, it looks at the clock every millisecond. After a tenth of a second without waits it
//! sleeps until the next one.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use super::mode::stacks_after;
use super::waiters::Waiters;
use crate::clock;
use crate::fork::{Remade, lock};
use crate::os;

/// The time between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// The number of looks in a row that find no wait before the thread sleeps.
const QUIET_LOOKS: u32 = 100;
/// How long it sleeps at most, after which it looks whether stacks are still recorded.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The timer of a lock.
pub struct SampleTimer {
    waiters: &'static Waiters,
    sample: fn(),
    runs: Remade<Mutex<bool>>,
    thread: Remade<Thread>,
    sleeps: AtomicBool,
}

/// The process's timer.
static REGISTERED: OnceLock<&'static SampleTimer> = OnceLock::new();

/// How long a sample takes to be described, as a rule.
const DESCRIBED_WITHIN: Duration = Duration::from_millis(20);

/// Runs the process's timer if it has one, and if stacks are recorded.
pub(super) fn start_registered() {
    if let Some(timer) = REGISTERED.get() {
        timer.start();
    }
}

/// Lets the holder describe the functions of the last stacks, which it does with each sample.
pub(in crate::trace) fn describe_last() {
    if let Some(timer) = REGISTERED.get().filter(|_| stacks_after().is_some()) {
        (timer.sample)();
        thread::sleep(DESCRIBED_WITHIN);
    }
}

impl SampleTimer {
    /// A timer that does not run yet. Once it does, it calls `sample` on a thread of its own, again and again
    /// while the holder's stack is due.
    pub const fn new(waiters: &'static Waiters, sample: fn()) -> Self {
        let sleeps = AtomicBool::new(false);
        Self { waiters, sample, runs: Remade::new(), thread: Remade::new(), sleeps }
    }

    /// Makes this the process's timer, which runs while traces record stacks. Later calls are ignored.
    pub fn register(&'static self) {
        let _ = REGISTERED.set(self);
    }

    /// Runs the timer for as long as stacks are recorded. If the system has no thread for it, there are no
    /// samples.
    pub fn start(&'static self) {
        let mut runs = lock(self.runs.get_or_make(Mutex::default));
        if !*runs && stacks_after().is_some() {
            let builder = thread::Builder::new().name("offlock-stacks".into());
            *runs = builder.spawn(move || self.run()).is_ok();
        }
    }

    /// A thread has begun to wait, and is among the waiters.
    #[inline]
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) && self.sleeps.swap(false, Ordering::AcqRel) {
            self.thread.get().inspect(|thread| thread.unpark());
        }
    }

    /// In the child of a fork: the parent's thread does not exist.
    pub fn forget(&self) {
        self.runs.forget();
        self.thread.forget();
        self.sleeps.store(false, Ordering::Relaxed);
    }

    fn run(&self) {
        os::block_signals();
        self.thread.forget();
        self.thread.get_or_make(thread::current);
        let mut quiet = 0;
        while self.goes_on() {
            match self.waiters.oldest() {
                Some(since) => {
                    quiet = 0;
                    thread::sleep(self.look(since));
                }
                None if quiet < QUIET_LOOKS => {
                    quiet += 1;
                    thread::sleep(BETWEEN_LOOKS);
                }
                None => {
                    self.sleep();
                    quiet = 0;
                }
            }
        }
    }

    fn goes_on(&self) -> bool {
        let mut runs = lock(self.runs.get_or_make(Mutex::default));
        *runs = stacks_after().is_some();
        *runs
    }

    /// Samples if that is due for a thread that waits since `since`. Returns the time until the next look.
    fn look(&self, since: clock::Ticks) -> Duration {
        let Some(due) = self.waiters.due(since) else { return BETWEEN_LOOKS };
        let now = clock::now();
        if now >= due {
            (self.sample)();
            return BETWEEN_LOOKS;
        }
        Duration::from_nanos(clock::nanoseconds(due - now)).min(BETWEEN_LOOKS)
    }

    fn sleep(&self) {
        self.sleeps.store(true, Ordering::Relaxed);
        // Either the next thread to wait sees that this one sleeps, or this one sees that it waits.
        fence(Ordering::SeqCst);
        if self.waiters.oldest().is_none() {
            thread::park_timeout(LONGEST_SLEEP);
        }
        self.sleeps.store(false, Ordering::Relaxed);
    }
}
