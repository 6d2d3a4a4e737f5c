//! Parquet: reading columns that have at most one value in a row, and writing such columns beside one of lists of numbers.
//!
//! A file's columns are read page by page, so memory is bounded by the size of a page, at most [`LARGEST_PAGE`]. No size or
//! number that a file claims is believed before that much is there; what is damaged is an error with its place.
//!
//! ```
//! use std::sync::Arc;
//!
//! use offlock_core::Task;
//! use offlock_core::parquet::{File, Named, Rows, Writer};
//!
//! let mut bytes = Vec::new();
//! let mut writer = Writer::begin(&mut bytes, &[], "input_ids")?;
//! writer.row([], &[2964, 290, 8109], &Task::new())?;
//! writer.finish()?;
//!
//! let file = File::open(Arc::new(bytes), &Task::new())?;
//! assert_eq!((file.rows(), file.schema().find(&["input_ids".to_owned()])), (1, Named::Group));
//! # Ok::<_, offlock_core::parquet::Error>(())
//! ```

mod codec;
mod column;
mod delta;
mod error;
mod file;
mod hybrid;
mod lz4;
mod page;
mod repeats;
mod schema;
mod snappy;
mod source;
mod thrift;
mod values;
mod write_column;
mod write_thrift;
mod writer;

pub use column::{Column, LARGEST_PAGE, Rows};
pub use error::Error;
pub use file::{File, Group, MAGIC};
pub use schema::{Leaf, Meaning, Named, Schema, Type};
pub use source::Source;
pub use writer::{Kept, Writer};
