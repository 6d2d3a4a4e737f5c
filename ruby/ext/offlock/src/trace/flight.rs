//! Flight recorders: what is done without the lock, and watches for a thread that asks for them.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use magnus::rb_sys::protect;
use magnus::{DataTypeFunctions, Error, Ruby, TypedData};
use offlock_core::trace::{self, Alarm, FlightOptions};

/// How often a thread that waits for an alarm looks whether it is interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// With this flag Ruby raises nothing, and runs nothing if an interrupt is pending.
const INTERRUPT_FAILS: c_int = 0x1; // INTR_FAIL

/// The duration that an argument names in seconds.
pub(super) fn duration(ruby: &Ruby, argument: &str, seconds: f64) -> Result<Duration, Error> {
    let refused = || format!("{argument}: {seconds} is not a possible number of seconds");
    Duration::try_from_secs_f64(seconds).map_err(|_| Error::new(ruby.exception_arg_error(), refused()))
}

/// Where dumps are written by themselves, the wait and the hold in seconds after which they are, the least seconds
/// between two of them, and the most of them.
pub(super) type Dumps = (Option<PathBuf>, Option<f64>, Option<f64>, f64, u32);

/// The options of a recorder that keeps so many seconds in so many bytes.
pub(super) fn options(
    ruby: &Ruby,
    (keep, memory): (f64, usize),
    (path, wait, hold, interval, most): Dumps,
) -> Result<FlightOptions, Error> {
    Ok(FlightOptions {
        keep: duration(ruby, "seconds", keep)?,
        memory,
        path,
        wait: wait.map(|wait| duration(ruby, "dump_on_wait", wait)).transpose()?,
        hold: hold.map(|hold| duration(ruby, "dump_on_hold", hold)).transpose()?,
        interval: duration(ruby, "interval", interval)?,
        most,
    })
}

/// Calls `work` without the lock, or with it if an interrupt is pending, which stays so.
///
/// The calling thread must hold the lock.
pub(super) fn without_the_lock<R: Send, F: FnOnce() -> R + Send>(work: F) -> R {
    let mut call = Call { work: Some(work), result: None };
    // SAFETY: the lock is held, and `Call::run` gets what it expects, which outlives the call. With this flag Ruby
    // raises nothing.
    unsafe {
        let this = (&raw mut call).cast();
        rb_sys::rb_nogvl(Some(Call::<F, R>::run), this, None, ptr::null_mut(), INTERRUPT_FAILS)
    };
    call.result.unwrap_or_else(|| (call.work.take().expect("it was not called"))())
}

struct Call<F, R> {
    work: Option<F>,
    result: Option<R>,
}

impl<F: FnOnce() -> R, R> Call<F, R> {
    unsafe extern "C" fn run(this: *mut c_void) -> *mut c_void {
        // SAFETY: `without_the_lock` passes such a value, and uses it only afterwards.
        let this = unsafe { &mut *this.cast::<Self>() };
        this.result = this.work.take().map(|work| work());
        ptr::null_mut()
    }
}

/// Looks for waits or holds that are too long.
#[derive(TypedData)]
#[magnus(class = "Offlock::Lock::Native::Watch", free_immediately)]
pub(super) struct Watch(pub(super) trace::Watch);

impl DataTypeFunctions for Watch {}

/// Holder, waiting thread, nanoseconds, whether it is over, a sentence, and the stack: functions, files and lines.
type AlarmEntry = ((String, String), u64, bool, String, Vec<(String, String, u32)>);

impl Watch {
    /// Waits for the next wait or hold without the lock; nil once the recorder is stopped.
    pub(super) fn next(&self) -> Result<Option<AlarmEntry>, Error> {
        let wait = Wait { watch: &self.0, is_interrupted: AtomicBool::new(false), found: Mutex::new(None) };
        let this = ptr::from_ref(&wait).cast_mut().cast();
        while self.0.is_running() && wait.found().is_none() {
            wait.is_interrupted.store(false, Ordering::Relaxed);
            protect(|| {
                // SAFETY: the lock is held, both functions get what they expect, which outlives the call. An exception
                // of an interrupt is caught here.
                unsafe {
                    rb_sys::rb_thread_call_without_gvl(Some(Wait::run), this, Some(Wait::unblock), this)
                };
                rb_sys::Qnil as rb_sys::VALUE
            })?;
        }
        Ok(wait.found().take().map(entry))
    }
}

fn entry(alarm: Alarm) -> AlarmEntry {
    let text = alarm.to_string();
    let stack = alarm.stack.into_iter().map(|frame| (frame.function, frame.file, frame.line)).collect();
    ((alarm.holder, alarm.waiting), alarm.nanoseconds, alarm.is_over, text, stack)
}

/// A thread that waits for an alarm.
struct Wait<'a> {
    watch: &'a trace::Watch,
    is_interrupted: AtomicBool,
    found: Mutex<Option<Alarm>>,
}

impl Wait<'_> {
    fn found(&self) -> std::sync::MutexGuard<'_, Option<Alarm>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    unsafe extern "C" fn run(this: *mut c_void) -> *mut c_void {
        // SAFETY: `next` passes such a value, which outlives the call.
        let this = unsafe { &*this.cast::<Wait<'_>>() };
        while this.watch.is_running() && !this.is_interrupted.load(Ordering::Relaxed) {
            if let Some(alarm) = this.watch.next(LOOK_EVERY) {
                *this.found() = Some(alarm);
                break;
            }
        }
        ptr::null_mut()
    }

    unsafe extern "C" fn unblock(this: *mut c_void) {
        // SAFETY: `next` passes such a value. Ruby calls this only while `run` has not returned.
        let this = unsafe { &*this.cast::<Wait<'_>>() };
        this.is_interrupted.store(true, Ordering::Relaxed);
    }
}
