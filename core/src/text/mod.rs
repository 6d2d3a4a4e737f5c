//! Text in bulk: where its pieces are, whether they are UTF-8, and how their characters are stored.
//!
//! The work has three steps, each over one whole text:
//!
//! 1. *Cut*: [`lines`], [`split`], [`columns`] or [`offsets`] find the pieces, as [`Span`]s; or [`Spans`] takes the
//!    offsets as they are.
//! 2. *Measure*: [`Pieces`] checks that every piece is UTF-8, and finds for each how many characters it has
//!    and the narrowest fixed width that holds them all ([`StrKind`]).
//! 3. *Store*: [`transcode`] writes the characters of one piece in its kind; an [`Arena`] keeps those of many,
//!    each followed by a zero.

mod arena;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod cut;
mod dedup;
mod error;
mod kind;
mod measure;
mod pieces;
mod recycle;
mod spans;
mod transcode;

pub use arena::{Arena, Memory, Stored};
pub use cut::{LineEnds, columns, lines, offsets, split};
pub use dedup::Repeats;
pub use error::Error;
pub use kind::{Measure, StrKind};
pub use measure::measure;
pub use pieces::{Piece, Pieces};
pub use spans::{Offset, Span, Spans};
pub use transcode::{Unit, transcode};

/// How many bytes of text are worked on between two looks at the task.
const STRETCH: usize = 64 << 10;
