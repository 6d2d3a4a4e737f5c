//! Recording: from the feeds' calls to the bytes of a trace, and to live numbers.
//!
//! A call on a [`Thread`](thread::Thread) adds a record to the calling native thread's queue ([`native`], [`queue`]); a
//! writer thread takes the records out of the queues ([`drain`]) and writes them to each trace ([`sink`]).

pub(super) mod after_fork;
mod buffers;
mod counters;
mod drain;
pub(super) mod histogram;
mod list;
pub mod metrics;
pub(super) mod mode;
mod native;
mod off_lock;
mod queue;
pub(super) mod registry;
pub(super) mod session;
pub(super) mod sink;
pub(super) mod thread;
