//! The value of a field of a record, whatever the records' format.

use crate::text::Span;

/// A string, a number or a boolean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field {
    /// A string, by its place in the bytes that hold the strings.
    Str(Span),
    /// An integer that is not negative.
    UInt(u64),
    /// An integer.
    Int(i64),
    /// A number that may have a fraction.
    Float(f64),
    /// true, false
    Bool(bool),
}

impl Field {
    /// What a field may be, for messages.
    pub(crate) const KINDS: &'static str = "a string, a number or a boolean";
}
