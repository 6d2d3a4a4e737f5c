//! JSON lines: fields of every record, without building the records.
//!
//! Each line is parsed once (by `serde_json`), and only the wanted values are kept. Of equal keys the last one
//! counts, as in the `json` modules of Python and Ruby. Numbers that are not wanted are not converted, so they
//! may have any size.
//!
//! ```
//! use offlock_core::Task;
//! use offlock_core::jsonl::{self, Paths};
//!
//! let lines = b"{\"text\": \"a\\u00e9\", \"by\": {\"id\": 1}}\n{\"text\": \"b\"}\n";
//! let paths = Paths::new(&[vec!["text".to_owned()], vec!["by".to_owned(), "id".to_owned()]]).unwrap();
//! let found = jsonl::extract(lines, &paths, 1 << 20, &Task::new())?;
//! assert_eq!(found.strings, "aéb".as_bytes());
//! assert_eq!(found.columns[1], [Some(offlock_core::Field::UInt(1)), None]);
//! # Ok::<_, jsonl::Error>(())
//! ```

mod error;
mod extract;
mod paths;
mod record;
mod value;

pub(crate) use error::syntax;
pub use error::{Error, ErrorKind};
pub(crate) use extract::BYTE_ORDER_MARK;
pub use extract::{Columns, extract};
pub use paths::{MAX_KEYS, Paths};
pub(crate) use record::{Found, find};
pub(crate) use value::{Text, text};
