//! The region: the only folder of the Ruby front end that releases the interpreter lock.
//!
//! An operation has three phases. It *borrows* its inputs while it holds the lock (`borrow/`), *works* on
//! plain Rust values inside [`Region::run`], and *builds* its Ruby result after it has re-acquired the lock:
//!
//! ```ignore
//! fn count(ruby: &Ruby, encoding: &'static Encoding, text: Value, release: Release) -> Result<usize, Error> {
//!     let text = borrowed!(Text, ruby, text);                         // borrow
//!     let utf8 = text.view();
//!     Region::new(&COUNT, text.len())
//!         .release(release)
//!         .run(ruby, |task| encoding.count(utf8.checked(task)?, task)) // work
//! }                                                                   // build: here an Integer
//! ```
//!
//! The closure is `Send`, so the compiler rejects one that captures a Ruby value. It receives a
//! [`Task`](offlock_core::Task) and passes it to the core, whose operations check it every fraction of a
//! millisecond.
//!
//! # Interrupts
//!
//! `Thread#kill`, `Thread#raise`, `Timeout` and Ctrl-C call an unblock function to wake a thread that has
//! released the lock. `Thread#wakeup` and a trap handler that returns do so, too, but raise nothing. Whether
//! an interrupt raises is known only after the thread has re-acquired the lock and handled the interrupt.
//! Hence:
//!
//! - A short run is told to stop. If the interrupt raises, the run drops everything it made, and the
//!   exception propagates. If not, the work runs once more, on a worker thread.
//! - On a worker thread, which runs over [`WORKER_BYTES`](run::WORKER_BYTES) bytes use from the start, the
//!   work continues while the Ruby thread waits for it. An interrupt then ends only the wait; the work is
//!   told to stop when an interrupt raises.
//!
//! So an interrupt that raises nothing costs a short run at most one restart, and a long run nothing. The
//! closure may therefore be called twice. The second call starts over, or continues from where the first was
//! stopped if the closure keeps its state outside.
//!
//! A run that keeps the lock lets Ruby handle interrupts and switch threads at every check.
//!
//! # Fiber schedulers
//!
//! A scheduler that implements `blocking_operation_wait` (Ruby 3.4 and later) may run the work on another
//! thread while other fibers run. Work must therefore not depend on the thread it runs on.

mod job;
mod release;
mod run;
mod scheduler;
#[cfg(test)]
mod tests;
mod wait;
mod yielder;
mod yielding;

pub(crate) use release::{drop_aside, without_the_lock};
pub(crate) use run::{Region, Release, define};
pub(crate) use wait::wait;
pub(crate) use yielder::Yielder;
pub(crate) use yielding::{yield_between_calls, yield_between_calls_or_raise};
