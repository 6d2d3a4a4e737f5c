//! `Offlock::Tiktoken::Encoding`: the core's encodings as a Ruby class.
//!
//! The methods here are private in Ruby and take positional arguments; `lib/offlock/tiktoken/encoding.rb`
//! adds names, keywords and documentation.

pub(crate) mod chunks;
pub(crate) mod errors;
pub(crate) mod ids;
pub(crate) mod methods;
pub(crate) mod stream;

pub(crate) use methods::define;
