//! From compressed shards to counts or files of tokens, in one pass and in bounded memory.
//!
//! ```no_run
//! use offlock_core::Task;
//! use offlock_core::pipeline::{self, Model, Settings};
//! use offlock_core::tokens;
//!
//! let settings = Settings::new(Model::Encoding(tokens::get("o200k_base").unwrap()));
//! let shards = pipeline::find(&["corpus".into()])?;
//! let summary = pipeline::count(&shards, &settings, &|_| {}, &Task::new())?;
//! println!("{} tokens", summary.totals().tokens);
//! # Ok::<_, pipeline::Error>(())
//! ```
//!
//! # How a shard is read
//!
//! 1. `decompress.rs` reads the file and decompresses gzip and Zstandard data.
//! 2. `stream.rs` cuts what comes out into batches of about 1 MB of whole records. Of Parquet, `rows.rs` reads rows of the
//!    wanted columns instead of both.
//! 3. `documents.rs` takes the text out of each record (`jsonl.rs`, [`msgpack::extract`](crate::msgpack::extract))
//!    and encodes it.
//! 4. `output/` writes the tokens in the format of a training program, or they are only counted.
//!
//! `run.rs` does this on several threads, and `batches.rs` on threads that work ahead of a reader; the results do not
//! depend on their number. `folder.rs` keeps the folder of results, in which a run that was killed can be resumed, and
//! to which several processes can write a part of a run each (`part.rs`).

mod batch;
mod batches;
mod count;
mod decompress;
mod documents;
mod error;
mod folder;
mod hex;
mod jsonl;
mod model;
mod output;
mod part;
mod records;
mod reports;
mod rows;
mod run;
mod settings;
mod shard;
mod stream;
mod summary;
mod texts;
mod write;

pub use batches::{Batch, Batches};
pub use count::count;
pub use documents::OnError;
pub use error::{Error, ErrorKind, Place};
pub use model::{Model, TokenizerSource};
pub use output::{Eos, Output};
pub use part::Part;
pub use reports::Reports;
pub use settings::Settings;
pub use shard::{Format, Shard, find, pack, unpack};
pub use summary::{Done, Lengths, Summary, Totals, Written};
pub use write::{Destination, prepare, write};
