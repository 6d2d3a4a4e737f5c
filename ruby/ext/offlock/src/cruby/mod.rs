//! The use of CRuby below magnus: the hot paths of MessagePack, and the code that depends on CRuby's
//! internals.
//!
//! This folder, `region` and `borrow` contain the `unsafe` code. Types check their use by the rest of the
//! extension:
//!
//! - [`Gvl`] proves that the thread holds the interpreter lock. A function that only reads borrows it; a
//!   function that runs Ruby code or lets other threads run borrows it mutably. So the compiler rejects code
//!   that holds the bytes of a String, or the inside of a packer, across a call that could change them.
//! - [`Object`] and its subtypes ([`Str`], [`Array`], [`Hash`] …): each accessor takes the type that it
//!   applies to.
//! - [`Handle`] is an object of a class of ours, whose native data was checked.
//!
//! Two rules are not checked. Like a `magnus::Value`, an [`Object`] must be on the stack, or marked, as long
//! as it is used. And Ruby's exceptions leave by `longjmp`, which skips destructors: **no frame owns a value
//! that needs dropping while Ruby may raise.** So buffers belong to Ruby objects, and objects under
//! construction are on the machine stack, where the garbage collector finds them.
//!
//! `docs/safety.md` lists the assumptions about CRuby beyond its public interface. Each is verified
//! before it is used, and none is used with `OFFLOCK_INTERNALS=0` in the environment.

use std::sync::OnceLock;

mod call;
mod class;
pub(crate) mod classes;
mod coerce;
mod data;
pub(crate) mod encodings;
pub(crate) mod frames;
mod gvl;
mod hash;
pub(crate) mod lent_string;
mod make;
mod object;
pub(crate) mod ractor;
pub(crate) mod slices;
pub(crate) mod string;
pub(crate) mod thread;
pub(crate) mod wake;

pub(crate) use call::{adjust_memory, catch, forget, has_keywords, line_separator, raise, raise_owned};
pub(crate) use class::{
    Arguments, Class, Method, define_class, define_module, define_shared_constant, include, methods,
};
pub(crate) use data::{Data, DataType, Handle, Marker, keep_marked};
pub(crate) use gvl::{Gvl, Locked, Natives, Objects};
pub(crate) use hash::{Entries, for_each_entry};
pub(crate) use object::{Array, Bignum, Hash, Id, Kind, Object, Str, Symbol};

/// Returns whether to use the assumptions about CRuby beyond its public interface.
pub(crate) fn uses_internals() -> bool {
    static USES: OnceLock<bool> = OnceLock::new();
    *USES.get_or_init(|| std::env::var_os("OFFLOCK_INTERNALS").is_none_or(|value| value != "0"))
}
