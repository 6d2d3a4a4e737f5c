//! An estimate of which thread holds the lock, where that cannot be watched.
//!
//! A Python thread, the sampler, sleeps for some milliseconds, then acquires the lock as any other thread
//! would: the time that it waits is known exactly. The activity of the others since its last round is derived
//! from their processor times: each thread that used a processor is shown as holding the lock for that long, one
//! thread after the other. Where the threads used more than one processor, the surplus was work without the
//! lock. Where the system reports no processor times, it is only known that some thread held the lock while the
//! sampler waited.

use std::collections::HashMap;
use std::time::Duration;

use offlock_core::trace::{self, Lock, Name, Reason, Thread, Ticks};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::objects::{Int, dict};

use super::{feed, without_lock};

/// The name of the work of threads beyond the one that holds the lock.
const OFF_LOCK: &str = "native code";
/// The name of the work of threads in an interpreter without a lock.
const NO_LOCK: &str = "Python without a lock";

/// Estimates while a trace runs. Belongs to the sampler's thread.
#[pyclass(module = "offlock._offlock.lock")]
pub(super) struct Sampler {
    /// The interpreter's lock, if it has one.
    lock: Option<Lock>,
    /// The threads when the last round ended.
    before: HashMap<u32, KnownThread>,
    /// Represents the unknown holder of the lock, where the system does not report processor times.
    somebody: Option<&'static Thread>,
}

/// The state of a thread when a round ended.
#[derive(Clone, Copy, Default)]
struct KnownThread {
    /// Nanoseconds on a processor.
    worked: u64,
    /// Time in operations without the lock.
    off_lock: Ticks,
    /// Time in recorded waits.
    waited: Ticks,
}

/// The activity of a thread that a round found.
struct Seen {
    native_id: u32,
    thread: &'static Thread,
    /// Nanoseconds on a processor since the last round, outside of operations.
    time: u64,
    /// Ticks in recorded waits since the last round.
    waited: Ticks,
    /// Whether it has ended.
    gone: bool,
}

#[pymethods]
impl Sampler {
    /// Begins; the calling thread is the sampler. `has_lock`: whether the interpreter has a lock at present.
    #[new]
    fn new(py: Python<'_>, has_lock: bool) -> PyResult<Self> {
        let lock = has_lock.then(feed::main_lock);
        let own = feed::current();
        without_lock::ignore_own_waits();
        if let Some(lock) = lock {
            own.acquired(trace::now_holding(), lock);
        }
        let somebody = (lock.is_some() && !TELLS_TIMES).then(|| Thread::present("(some thread)"));
        let mut sampler = Self { lock, before: HashMap::new(), somebody };
        sampler.look(&dict(py)?)?;
        Ok(sampler)
    }

    /// Sleeps for `seconds` seconds, acquires the lock, and records the activity meanwhile.
    ///
    /// `ended`: the processor times, in ns, of threads that end, by native id; the entries of ended threads are
    /// removed.
    fn round(&mut self, py: Python<'_>, seconds: f64, ended: &Bound<'_, PyDict>) -> PyResult<()> {
        let own = feed::current();
        let from = trace::now();
        if let Some(lock) = self.lock {
            own.released(from, lock, Reason::Sleeps);
        }
        let wanted = py.detach(|| {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            trace::now()
        });
        let got = trace::now_holding();
        match self.somebody {
            Some(somebody) => self.blame_somebody(somebody, wanted, got),
            None => self.share_out(from, got, ended)?,
        }
        if let Some(lock) = self.lock {
            own.wants(wanted, lock);
            own.acquired(got, lock);
        }
        Ok(())
    }
}

/// Whether the system reports a thread's processor time by its native id.
const TELLS_TIMES: bool = cfg!(target_os = "linux");

/// Waits shorter than this, in ns, are no sign that the lock was held.
const AT_ONCE: u64 = 50_000;

impl Sampler {
    /// Records the activity of the threads so far; returns those that have worked outside of operations since
    /// the last time, and those that have ended, longest first.
    fn look(&mut self, ended: &Bound<'_, PyDict>) -> PyResult<Vec<Seen>> {
        let own = feed::current().id();
        let mut seen = Vec::new();
        for (native_id, thread) in
            feed::all().into_iter().filter(|(_, thread)| TELLS_TIMES && thread.id() != own)
        {
            let before = self.before.get(&native_id).copied().unwrap_or_default();
            let (worked, gone) = match processor_time(native_id) {
                Some(time) => (time, false),
                None => (last_time(native_id, ended)?.unwrap_or(before.worked), true),
            };
            let (off_lock, waited) = (thread.off_lock(trace::now()), thread.waited());
            let present = KnownThread { worked, off_lock, waited };
            self.before.insert(native_id, present);
            let off_lock = trace::nanoseconds(present.off_lock.saturating_sub(before.off_lock));
            let time = worked.saturating_sub(before.worked).saturating_sub(off_lock);
            if time > 0 || gone {
                let waited = waited.saturating_sub(before.waited);
                seen.push(Seen { native_id, thread, time, waited, gone });
            }
        }
        seen.sort_by_key(|seen| std::cmp::Reverse(seen.time));
        Ok(seen)
    }

    /// Distributes the time of a round among the threads that worked in it.
    fn share_out(&mut self, from: Ticks, to: Ticks, ended: &Bound<'_, PyDict>) -> PyResult<()> {
        let length = trace::nanoseconds(to - from).max(1);
        let mut at = from;
        for Seen { native_id, thread, time, waited, gone } in self.look(ended)? {
            let worked = ((to - from) as f64 * (time.min(length) as f64 / length as f64)) as Ticks;
            // Clocks read one after the other never add up to the round's length: only the surplus was without
            // the lock.
            let held = if self.lock.is_some() { worked.min(to - at) } else { 0 };
            let off_lock = worked - held;
            if off_lock > 0 {
                // Recorded waits interrupt it.
                let off_lock = off_lock.saturating_add(waited).min(to - from);
                thread.region_begin(from, Name::of(if self.lock.is_some() { OFF_LOCK } else { NO_LOCK }));
                thread.region_end(from + off_lock, 0);
                self.before.entry(native_id).and_modify(|known| known.off_lock += off_lock);
            }
            if let Some(lock) = self.lock
                && held > 0
            {
                thread.acquired(at, lock);
                at += held;
                thread.released(at, lock, Reason::Blocks);
            }
            if gone {
                self.before.remove(&native_id);
                feed::lose(native_id);
            }
        }
        Ok(())
    }

    fn blame_somebody(&self, somebody: &Thread, wanted: Ticks, got: Ticks) {
        if let Some(lock) = self.lock
            && trace::nanoseconds(got - wanted) > AT_ONCE
        {
            somebody.acquired(wanted, lock);
            somebody.released(got, lock, Reason::Blocks);
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Some(somebody) = self.somebody {
            somebody.end(trace::now());
        }
    }
}

/// The last processor time of a thread that has ended, removed from the table.
fn last_time(native_id: u32, ended: &Bound<'_, PyDict>) -> PyResult<Option<u64>> {
    let Some(time) = ended.get_item(Int(native_id as usize))? else { return Ok(None) };
    ended.del_item(Int(native_id as usize))?;
    time.extract().map(Some)
}

/// Nanoseconds that a thread of this process has spent on a processor; `None` when it has ended or the time is
/// not known.
fn processor_time(native_id: u32) -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        // The clock of a thread, as pthread_getcpuclockid makes it for a living thread: here the thread may
        // have ended.
        const OF_THREAD: libc::clockid_t = 6;
        let clock = !(native_id as libc::clockid_t) << 3 | OF_THREAD;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid place to write to; a clock of a thread outside this process is an error.
        let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
        (read == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = native_id;
        None
    }
}
