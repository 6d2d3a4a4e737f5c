//! Analysis of a recording: from its bytes to states, blame, numbers and findings.
//!
//! `recording.rs` reads the file, `holder_stacks.rs` says for which time each stack stands, `cut.rs` cuts the
//! recording and `cut_stacks.rs` its stacks; `timeline.rs` turns events into the states of each thread, `usage.rs` adds what the processors' clocks say, and `assemble.rs` puts
//! the threads together; `blame.rs` attributes waiting to threads and `marks.rs` to marks, both by the sweeps
//! in `sweep.rs`; `spans.rs` adds up operations and marks; `contention.rs` tells contended waits from others,
//! and `groups.rs` which threads belong together; `summarize.rs` computes the numbers of `summary.rs`;
//! `loss.rs` and `verdict.rs` judge them, and `findings.rs`, `causes.rs` and, for interpreters without a lock,
//! `without_lock.rs` say in words what they mean.
//! `compare.rs` puts two summaries side by side, and `compare_code.rs` the code, `change.rs` says in words
//! what became of a number; `run.rs` orders those of several processes, and `text.rs` prints them.

mod assemble;
pub(super) mod blame;
pub(super) mod blamed_code;
mod blamed_code_text;
mod causes;
pub(super) mod change;
pub(super) mod code;
pub(super) mod compare;
pub(super) mod compare_code;
mod contention;
mod cut;
mod cut_stacks;
pub(super) mod finding;
mod findings;
mod groups;
mod holder_stacks;
pub(super) mod look;
mod loss;
mod marks;
pub(super) mod readings;
pub(super) mod recording;
pub(super) mod run;
mod spans;
mod summarize;
pub(super) mod summary;
mod sweep;
pub(super) mod table;
mod text;
pub(super) mod timeline;
pub(super) mod units;
mod usage;
mod verdict;
mod verdict_text;
mod without_lock;
