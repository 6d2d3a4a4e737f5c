//! Recording: from the feeds' calls to the bytes of a trace, and to live numbers.
//!
//! A call on a [`Thread`](thread::Thread) adds a record to the queue of the calling native thread
//! ([`native`], [`queue`]) and updates counters ([`counters`]). A writer thread takes the records out of the
//! queues ([`drain`]) and writes them to each trace ([`sink`]).
//!
//! The interpreter's callbacks run on every hand-over of the lock, so a call takes no lock, allocates nothing
//! and makes no system call, except at a native thread's first event and once per page of records. All of
//! this is state that the whole process shares, because the interpreter's callbacks carry no context; it
//! consists of atomics, of mutexes that the callbacks do not take in the common case, and of
//! [`Remade`](crate::fork::Remade) values that the child of a fork makes anew ([`after_fork`]).

pub(super) mod after_fork;
mod buffers;
pub(super) mod code;
mod counters;
mod drain;
pub(super) mod histogram;
mod list;
pub(super) mod lock_watch;
pub mod metrics;
pub(super) mod mode;
mod native;
mod off_lock;
mod queue;
pub(super) mod registry;
pub(super) mod ring;
pub(super) mod sample_timer;
pub(super) mod session;
pub(super) mod sink;
pub(super) mod thread;
mod usage;
pub(super) mod waiters;
