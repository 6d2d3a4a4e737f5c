//! Records and analyzes which threads hold an interpreter's lock, which wait for it, and behind which.
//!
//! A *feed* in each front end tells the recorder what its interpreter's threads do, through [`Thread`],
//! [`Lock`] and [`Name`]. [`Trace`] writes that to a file, [`metrics`] keeps live numbers. [`Recording`]
//! reads the file back, [`Timeline`] turns events into states, [`Blame`] attributes waiting to holders, and
//! [`Summary`] draws conclusions.
//!
//! ```text
//! feed ──▶ record/ ──▶ format/ ──▶ file ──▶ analyze/ ──▶ export/, report/, text
//!  callbacks  queues     bytes              states, blame, findings
//! ```
//!
//! ```
//! use offlock_core::trace::{Lock, Options, Reason, Recording, Summary, Thread, Timeline, Trace};
//! use offlock_core::trace::{now_holding, now_releasing, now};
//! use offlock_core::Task;
//!
//! let (lock, thread) = (Lock::new("GIL"), Thread::present("main"));
//! let (trace, memory) = Trace::to_memory(&Options::default())?;
//! thread.wants(now(), lock);
//! thread.acquired(now_holding(), lock);
//! thread.released(now_releasing(), lock, Reason::Blocks);
//! assert_eq!(trace.stop()?.events, 3);
//!
//! let recording = Recording::read(&memory.take(), &Task::new()).unwrap();
//! let timeline = Timeline::of(&recording);
//! let summary = Summary::of(&recording, &timeline);
//! assert_eq!(summary.threads[0].acquisitions, 1);
//! assert_eq!(summary.locks[0].name, "GIL");
//! # Ok::<_, std::io::Error>(())
//! ```
//!
//! # What a feed does
//!
//! - It keeps a [`Thread`] for each interpreter thread: it calls [`Thread::start`] when a thread begins,
//!   [`Thread::present`] for threads that exist when the hooks are installed, and [`Thread::end`]. The thread
//!   that starts a trace holds the lock, and no event says so: call `thread.assume(Stand::Holds)` before
//!   [`Trace::start`].
//! - In the interpreter's callbacks it calls [`wants`](Thread::wants), [`acquired`](Thread::acquired) and
//!   [`released`](Thread::released). The time stamps are [`now`], [`now_holding`] once the lock is held, and
//!   [`now_releasing`] if the thread releases the lock and does not want it back. The stamp of a release must
//!   be taken before another thread can get the lock. The feed checks [`is_active`] first and does nothing if
//!   that is false. If the interpreter sometimes reports a release that it then does not make, the feed calls
//!   [`holds`](Thread::holds) wherever it knows better.
//! - It calls [`Lock::new`] once for each interpreter lock.
//! - Once a thread has waited for [`stacks_after`], it records stacks: of the holder, about every two milliseconds
//!   for as long as a thread waits ([`Stack::holding`]) and as it releases the lock ([`Stack::releasing`]), and
//!   of the thread that waits ([`Stack::waiting`]). [`Waiters`] says when, and [`SampleTimer`] if the threads
//!   that wait cannot look at the holder themselves. The feed numbers functions with [`Function::numbered`],
//!   describes each once, in its own time, and forgets the numbers when [`code_era`] changes.
//! - It calls [`watch_forks`] when the library is loaded. After a fork the child records nothing until it
//!   starts a trace of its own. Before that, the feed calls `rename` on the thread that forked and on its
//!   lock, which makes them known to the child's recorder; the parent's other threads do not exist in the
//!   child. The feed's own tables are best kept in a [`Remade`].
//! - Where an interpreter reports nothing, a feed may estimate. It then sets `exact` to `false` and
//!   `obstacle` to the reason in [`Options::about`], and everything shown is labelled as an estimate.

/// The names of offlock's own threads in Ruby and Python. That they wait for the lock is no loss to the program; that they
/// hold it may be.
const OWN_THREADS: [&str; 2] = ["offlock watch", "offlock loop watch"];

mod analyze;
mod capture;
mod environment;
mod export;
pub mod files;
mod flight_recorder;
mod format;
#[cfg(unix)]
mod live;
mod record;
mod report;

pub use analyze::blame::{Blame, COLUMNS, Row};
pub use analyze::blamed_code::{Piece, blamed_pieces};
pub use analyze::change::Better;
pub use analyze::code::{Code, FrameText, RecordedFrame, RecordedFunction};
pub use analyze::compare::{Comparison, Measure, ThreadChange, Unit};
pub use analyze::compare_code::{CodeChanges, FunctionChange};
pub use analyze::finding::{Finding, FindingKind, Strength, Weight};
pub use analyze::look::Look;
pub use analyze::readings::{MachineUsed, Used};
pub use analyze::recording::{Damage, Flaw, Moment, NotATrace, RecordedThread, Recording, note_signal};
pub use analyze::run::{Process, Run};
pub use analyze::summary::{
    Behind, BlameRow, BlamedCode, BlamedLine, GroupSummary, LockSummary, MarkBlame, MarkSummary, SpanSummary,
    Summary, ThreadSummary, Times, WaitTimes,
};
pub use analyze::table::printable_line;
pub use analyze::timeline::{
    Hold, Life, LockLife, Overlap, STATES, Slice, Span, State, Stretch, Timeline, Usage,
};
pub use analyze::units::{duration as duration_text, percent as percent_text, size as size_text};
pub use capture::Capture;
pub use environment::{
    ARGUMENTS_VARIABLE, DUMP_HOLD_VARIABLE, DUMP_WAIT_VARIABLE, KEEP_VARIABLE, LIVE_VARIABLE, LOCK_VARIABLE,
    STACKS_VARIABLE, TRACE_VARIABLE, UNTIL_VARIABLE, is_live_requested, is_path_of_child, is_requested,
    path_of, stacks_from, switched_off, until,
};
pub use export::Format;
pub use flight_recorder::{Alarm, FlightOptions, FlightRecorder, Watch};
pub use format::code::{Function, Stack};
pub use format::definition::{Lock, LockKind, Name, Stand};
pub use format::event::{Event, Kind, Reason, pack_release, pack_size, unpack_release, unpack_size};
#[cfg(unix)]
pub use live::{
    Connection, DumpedState, DumpedThread, Patience, Recent, TakeStacks, TakenStacks, ThreadDump,
    ThreadStack, dump, published, publishes,
};
pub use record::after_fork::watch_forks;
pub use record::code::{Frame, code_era};
pub use record::histogram::Waits;
pub use record::lock_watch::Watched;
pub use record::metrics::{self, Metric, ThreadMetrics};
pub use record::mode::{is_active, is_tracing, now_holding, now_releasing, stacks_after};
pub use record::registry::{Standing, nameless_thread, standings};
pub use record::sample_timer::SampleTimer;
pub use record::session::{Memory, Options, Trace};
pub use record::sink::Stats;
pub use record::thread::Thread;
pub use record::waiters::Waiters;
pub use report::{write_comparison, write_report};

pub use crate::clock::{Ticks, nanoseconds, now, source, ticks};
pub use crate::fork::{Remade, after_fork_in_child, around_forks};
pub use crate::processors::run_delay;
