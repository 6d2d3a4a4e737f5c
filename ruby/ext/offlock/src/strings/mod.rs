//! `Offlock::Strings`: finds the pieces of a String without the lock; the pieces share its bytes.
//!
//! The methods here are private in Ruby and take positional arguments; `lib/offlock/strings.rb` adds names,
//! keywords and documentation.

mod compact;
mod methods;
mod pieces;

pub(crate) use methods::define;
