//! Text in bulk: cutting it into pieces, validating UTF-8, and storing characters.
//!
//! The work has three steps, each over one whole text:
//!
//! 1. *Cut*: [`lines`], [`split`], [`columns`] or [`offsets`] find the pieces as [`Span`]s; or [`Spans`]
//!    takes offsets as they are.
//! 2. *Measure*: [`Pieces`] checks that every piece is valid UTF-8, and finds for each the number of
//!    characters and the narrowest fixed width that holds them all ([`StrKind`]).
//! 3. *Store*: [`transcode()`] writes the characters of one piece in its kind; an [`Arena`] stores those of
//!    many, each followed by a zero.
//!
//! [`to_utf8()`] is the way back, from characters of a fixed width.
//!
//! All of it takes time linear in the length of the text, most of it 16 or more bytes at a time.
//!
//! ```
//! use offlock_core::text::{LineEnds, Pieces, StrKind, lines};
//! use offlock_core::Task;
//!
//! let text = "off the lock\nfür alle\nдля всех".as_bytes();
//! let task = Task::new();
//! let spans = lines(text, LineEnds::Newline, false, &task)?;
//! let pieces = Pieces::new(text, spans, &task)?;
//! let kinds: Vec<_> = (0..pieces.len()).map(|index| pieces.piece(index).kind).collect();
//! assert_eq!(kinds, [StrKind::Ascii, StrKind::Latin1, StrKind::Ucs2]);
//! assert_eq!(pieces.piece(1).chars, 8);
//! # Ok::<_, offlock_core::text::Error>(())
//! ```

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
mod span;
mod spans;
mod to_utf8;
mod transcode;

pub use arena::{Arena, Memory, Stored};
pub use cut::{LineEnds, columns, lines, offsets, split};
pub use dedup::Repeats;
pub use error::Error;
pub use kind::{Measure, StrKind};
pub use measure::measure;
pub use pieces::{Piece, Pieces};
pub use span::Span;
pub use spans::{Offset, Spans};
pub use to_utf8::{Converted, to_utf8};
pub use transcode::{Unit, transcode};

/// The number of bytes between two checks of the task.
const STRETCH: usize = 64 << 10;
