//! MessagePack on plain bytes: reading, validating, indexing and writing, and extracting one field of many
//! records.
//!
//! - [`Reader`] splits a message into [`Token`]s, one at a time; front ends build small messages from these.
//! - [`mod@write`] is the other direction: each function appends one token to a [`Sink`](write::Sink).
//! - [`Scanner`] finds the end of a message, and continues where it stopped when more bytes arrive.
//! - [`Tape`] is the index of one message, made off the lock. Objects are then built from it under the lock
//!   without parsing again, and single values are found without building the rest.
//! - [`extract::fields`] extracts one field of every record of a message.
//!
//! All of them take time linear in the length of the message. No memory is allocated because a header
//! *declares* a length: a container may not have more items, nor a string more bytes, than the input still
//! holds.
//!
//! ```
//! use offlock_core::msgpack::{Limits, Node, Reader, Tape, Token, write};
//! use offlock_core::Task;
//!
//! let mut message = Vec::new();
//! write::map_header(&mut message, 1);
//! write::str(&mut message, b"lock");
//! write::array_header(&mut message, 2);
//! write::bool(&mut message, true);
//! write::int(&mut message, -1);
//!
//! let mut reader = Reader::at(&message, 0);
//! assert_eq!(reader.token()?, Token::Map(1));
//! assert_eq!(reader.token()?, Token::Str(b"lock"));
//!
//! let (tape, end) = Tape::index(&message, &Limits::depth(100), &Task::new())?;
//! assert_eq!(end, message.len());
//! let array = tape.lookup(&message, 0, b"lock").unwrap();
//! let (node, first) = tape.node(&message, array);
//! assert_eq!(node, Node::Array(2));
//! assert_eq!(tape.node(&message, first).0, Node::Scalar(Token::Bool(true)));
//! # Ok::<_, offlock_core::msgpack::Error>(())
//! ```

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
