//! What the extension does with CRuby below magnus: the hot paths of MessagePack, and what depends on CRuby's insides.
//!
//! This folder, `region` and `borrow` are where `unsafe` lives. What they offer to the rest is checked by types:
//!
//! - [`Gvl`] proves that the thread holds the interpreter lock. What only reads borrows it, what runs Ruby code or lets other
//!   threads run borrows it mutably. So the compiler refuses to hold the bytes of a String, or the inside of a packer, while
//!   something runs that could change them.
//! - [`Object`] and the types of what it may be ([`Str`], [`Array`], [`Hash`] …): each accessor takes the type that it is for.
//! - [`Handle`] is an object of a class of ours, with a check of what it holds.
//!
//! Two rules are not checked. Like a `magnus::Value`, an [`Object`] has to be on the stack, or marked, as long as it is used.
//! And Ruby's exceptions leave by `longjmp`, which skips destructors: **no frame owns a value that needs dropping while Ruby may
//! raise.** So buffers belong to Ruby objects, and what is being built is on the machine stack, where the garbage collector
//! finds it.
//!
//! What is assumed of CRuby beyond its public interface is listed in `docs/safety.md`. All of it is verified when the
//! extension is loaded, and none of it is used with `OFFLOCK_INTERNALS=0` in the environment.

use std::sync::OnceLock;

mod call;
mod class;
pub(crate) mod classes;
mod coerce;
mod data;
pub(crate) mod encodings;
mod gvl;
mod hash;
pub(crate) mod lent_string;
mod make;
mod object;
pub(crate) mod ractor;
pub(crate) mod slices;
pub(crate) mod string;
pub(crate) mod thread;

pub(crate) use call::{adjust_memory, catch, has_keywords, line_separator, raise, raise_owned};
pub(crate) use class::{
    Arguments, Class, Method, define_class, define_module, define_shared_constant, include, methods,
};
pub(crate) use data::{Data, DataType, Handle, Marker};
pub(crate) use gvl::{Gvl, Locked, Natives, Objects};
pub(crate) use hash::{Entries, for_each_entry};
pub(crate) use object::{Array, Bignum, Hash, Id, Kind, Object, Str, Symbol};

/// Whether to use what is assumed of CRuby beyond its public interface.
pub(crate) fn uses_internals() -> bool {
    static USES: OnceLock<bool> = OnceLock::new();
    *USES.get_or_init(|| std::env::var_os("OFFLOCK_INTERNALS").is_none_or(|value| value != "0"))
}
