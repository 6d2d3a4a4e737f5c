//! Looking for waits and holds that are too long, in the events of a flight recorder.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::shared::Shared;
use crate::fork::lock;
use crate::trace::OWN_THREADS;
use crate::trace::analyze::code::{Code, FrameText};
use crate::trace::record::lock_watch::{LockWatch, Long, Watched};
use crate::trace::record::session::catch_up;

/// How often a watch looks.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(10);

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
    /// The holder's stack during the hold, innermost frame first: its last sample or, without samples, that at the end.
    pub stack: Vec<FrameText>,
    /// Its number.
    number: Option<u32>,
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
    /// Whether the waits of offlock's own threads count.
    counts_own: bool,
    watch: Arc<Mutex<LockWatch>>,
    found: Mutex<std::collections::VecDeque<Alarm>>,
}

impl Watch {
    pub(super) fn new(shared: &Arc<Shared>, watched: Watched, at_least: Duration, counts_own: bool) -> Self {
        let at_least = u64::try_from(at_least.as_nanos()).unwrap_or(u64::MAX);
        let watch = Arc::new(Mutex::new(LockWatch::new(watched, at_least)));
        shared.ring.watch(Arc::clone(&watch));
        Self { shared: Arc::clone(shared), watched, counts_own, watch, found: Mutex::default() }
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
        self.shared.is_ours() && !self.shared.has_stopped()
    }

    pub(super) fn look(&self) -> Vec<Alarm> {
        let time = catch_up();
        // The ring is locked while it calls the watch, so never the other way round.
        let ignored =
            if self.counts_own { HashSet::new() } else { self.shared.ring.threads_named(&OWN_THREADS) };
        let mut watch = lock(&self.watch);
        watch.ignore(ignored);
        let found = watch.settle(time);
        drop(watch);
        found.into_iter().map(|long| self.alarm(&long)).collect()
    }

    /// The same alarm with the names of functions that were described since.
    #[must_use]
    pub fn named(&self, alarm: Alarm) -> Alarm {
        catch_up();
        // The recorder may have forgotten the stack meanwhile.
        let stack = self.texts(alarm.number);
        if stack.is_empty() { alarm } else { Alarm { stack, ..alarm } }
    }

    fn texts(&self, stack: Option<u32>) -> Vec<FrameText> {
        let Some(stack) = stack else { return Vec::new() };
        let code = Code::of_body(&self.shared.ring.code_of(stack));
        code.stack(stack).map(|frame| code.text(frame)).collect()
    }

    fn alarm(&self, long: &Long) -> Alarm {
        let ring = &self.shared.ring;
        Alarm {
            watched: self.watched,
            holder: long.holder.map(|holder| ring.thread_name(holder)).unwrap_or_default(),
            waiting: ring.thread_name(long.waiting),
            nanoseconds: long.time,
            is_over: long.is_over,
            stack: self.texts(long.stack),
            number: long.stack,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.ring.unwatch(&self.watch);
    }
}
