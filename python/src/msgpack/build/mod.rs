//! Builds Python objects from a message, or from its tape. Needs the lock. Deeply nested or incomplete
//! containers are kept in a separate list (`Work`), and do not recurse on the machine's stack.

mod builder;
mod containers;
mod scalars;
mod visitors;
mod work;

pub(super) use builder::Builder;
pub(super) use work::Work;
