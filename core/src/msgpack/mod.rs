//! MessagePack on plain bytes: the format, a validating scanner, an index of a whole message, and the
//! extraction of one field of many records.
//!
//! - [`Reader`] splits a message into [`Token`]s, one at a time: what front ends build small messages from.
//! - [`write`] holds the other direction: each function appends one token to a [`Sink`](write::Sink).
//! - [`Scanner`] finds where a message ends without making anything, and goes on where it stopped when more
//!   bytes arrive.
//! - [`Tape`] is the index of one message, made off the lock: from it objects are built without looking at the
//!   bytes of structure again, and single values are reached without building the rest.
//! - [`extract::column`] finds one field in every record of a message.
//!
//! Nothing is allocated because a header *declares* it: a container may not have more items, nor a string more
//! bytes, than the input still holds.

mod builder;
mod error;
pub mod extract;
mod keys;
mod reader;
mod scan;
mod source;
mod tape;
mod timestamp;
pub mod write;

pub use builder::{Builder, Text, is_ascii};
pub use error::{Error, ErrorKind};
pub use keys::{Key, KeyTable, ShortKey};
pub use reader::{Reader, Token, Visitor};
pub use scan::{Limits, Scanner, end_of_message};
pub use source::{Direct, Indexed, Source};
pub use tape::{Node, Tape};
pub use timestamp::Timestamp;
