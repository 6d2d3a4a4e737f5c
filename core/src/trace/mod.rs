//! Who holds the interpreter's lock, who waits for it, and behind whom.
//!
//! A *feed* in each front end tells the recorder what its interpreter's threads do, through
//! [`Thread`], [`Lock`] and [`Name`]. [`Trace`] writes that to a file, [`metrics`] keeps live
//! numbers. [`Recording`] reads the file back, [`Timeline`] and [`Blame`] say what was the case,
//! [`Summary`] what it amounts to.
//!
//! # What a feed does
//!
//! - For each interpreter thread it keeps a [`Thread`]: [`Thread::start`] when one begins,
//!   [`Thread::present`] for those that are there already when the hooks are put in place, and
//!   [`Thread::end`]. The thread that starts a trace holds the lock, without an event that would say
//!   so: `thread.assume(Stand::Holds)` before [`Trace::start`].
//! - In the interpreter's callbacks it calls [`wants`](Thread::wants), [`acquired`](Thread::acquired)
//!   and [`released`](Thread::released), stamped with [`now`], or [`now_holding`] once the lock is
//!   held, or [`now_releasing`] where it is given up for good. The release must be stamped before another thread can get the lock. It looks at
//!   [`is_active`] first: when that is false there is nothing to do.
//!   An interpreter that sometimes tells of a release which it then does not make calls
//!   [`holds`](Thread::holds) wherever it knows better.
//! - [`Lock::new`] names each interpreter lock once.
//! - [`watch_forks`] is called when the library is loaded. After a fork the child records nothing until it starts a
//!   trace of its own. Before that it calls
//!   `rename` on the thread that forked and on its lock, which makes them known to the child's
//!   recorder; the parent's other threads are gone. A feed's own tables are best [`Remade`].
//! - Where an interpreter tells nothing a feed may estimate. It says so in [`Options::about`], with `exact` set to
//!   `false` and the reason as `obstacle`; everything shown is then labelled as an estimate.

mod analyze;
mod capture;
mod environment;
mod export;
pub mod files;
mod format;
mod record;
mod report;

pub use analyze::blame::{Blame, COLUMNS, Row};
pub use analyze::compare::{Better, Comparison, Measure, ThreadChange, Unit};
pub use analyze::finding::{Finding, Weight};
pub use analyze::recording::{Damage, Flaw, Moment, NotATrace, RecordedThread, Recording, note_signal};
pub use analyze::summary::{BlameRow, LockSummary, SpanSummary, Summary, ThreadSummary, Times, WaitTimes};
pub use analyze::timeline::{Hold, Life, LockLife, Overlap, STATES, Slice, Span, State, Stretch, Timeline};
pub use capture::Capture;
pub use environment::{ARGUMENTS_VARIABLE, TRACE_VARIABLE, is_path_of_child, path_of};
pub use export::Format;
pub use format::definition::{Lock, Name, Stand};
pub use format::event::{Event, Kind, Reason, pack_size, unpack_release, unpack_size};
pub use record::after_fork::watch_forks;
pub use record::histogram::Waits;
pub use record::metrics::{self, Metric, ThreadMetrics};
pub use record::mode::{is_active, is_tracing, now_holding, now_releasing};
pub use record::session::{Memory, Options, Trace};
pub use record::sink::Stats;
pub use record::thread::Thread;
pub use report::{write_comparison, write_report};

pub use crate::clock::{Ticks, nanoseconds, now, source};
pub use crate::fork::{Remade, after_fork_in_child};
