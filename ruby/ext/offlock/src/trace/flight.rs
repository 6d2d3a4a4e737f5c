//! Flight recorders: their options, and watches for a thread that asks for them.

use std::path::PathBuf;
use std::time::Duration;

use magnus::{DataTypeFunctions, Error, Ruby, TypedData};
use offlock_core::trace::{self, Alarm, FlightOptions};

use super::stacks::name_functions;
use crate::region::wait;

/// How often a thread that waits for an alarm looks whether it is interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

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

/// Looks for waits or holds that are too long.
#[derive(TypedData)]
#[magnus(class = "Offlock::Lock::Native::Watch", free_immediately)]
pub(super) struct Watch(pub(super) trace::Watch);

impl DataTypeFunctions for Watch {}

/// Holder, waiting thread, nanoseconds, whether it is over, a sentence, and the stack: functions, files and lines.
type AlarmEntry = ((String, String), u64, bool, String, Vec<(String, String, u32)>);

impl Watch {
    /// Waits for the next wait or hold without the lock; nil once the recorder is stopped.
    pub(super) fn next(ruby: &Ruby, this: &Self) -> Result<Option<AlarmEntry>, Error> {
        let alarm = wait(|| match this.0.next(LOOK_EVERY) {
            None if this.0.is_running() => None,
            next => Some(next),
        })?;
        // Callbacks could not name what they saw.
        name_functions(ruby);
        Ok(alarm.map(|alarm| entry(this.0.named(alarm))))
    }
}

fn entry(alarm: Alarm) -> AlarmEntry {
    let text = alarm.to_string();
    let stack = alarm.stack.into_iter().map(|frame| (frame.function, frame.file, frame.line)).collect();
    ((alarm.holder, alarm.waiting), alarm.nanoseconds, alarm.is_over, text, stack)
}
