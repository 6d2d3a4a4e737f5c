//! Builds Python objects from a message, or from its tape. Needs the lock. What is nested deep, or has not arrived as a
//! whole, is kept in a list of its own (`Work`), and takes no more of the machine's stack.

mod builder;
mod containers;
mod scalars;
mod visitors;
mod work;

pub(super) use builder::Builder;
pub(super) use work::Work;
