//! Extension types: which class is packed as what, and what a type is unpacked with.

use std::sync::Arc;

use rb_sys::*;

use crate::cruby::ractor;
use crate::cruby::raw::{self as rb, NIL};

/// Something that packs or unpacks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Callable {
    /// A Proc, and whether the main Ractor registered it.
    Proc(VALUE, bool),
    /// A method of the object that is packed.
    Own(ID),
    /// A method of a class, which gets the payload.
    Of(VALUE, ID),
}

impl Callable {
    /// A Proc that the calling Ractor registers.
    pub(super) fn of_proc(block: VALUE) -> Self {
        Self::Proc(block, ractor::is_main())
    }

    /// Calls it with `subject` and, if any, one more argument.
    pub(super) fn call(self, subject: VALUE, more: Option<VALUE>) -> VALUE {
        let arguments = [subject, more.unwrap_or(NIL)];
        let count = 1 + usize::from(more.is_some());
        match self {
            Self::Proc(block, from_main) => {
                if from_main {
                    check_shareable(block);
                }
                // SAFETY: a Proc, and as many live objects as said.
                unsafe { rb_proc_call_with_block(block, count as i32, arguments.as_ptr(), NIL) }
            }
            Self::Own(name) => rb::call(subject, name, &arguments[1..count]),
            Self::Of(class, name) => rb::call(class, name, &arguments[..count]),
        }
    }

    /// As a Proc, for programs that look at what is registered.
    pub(super) fn to_proc(self) -> VALUE {
        match self {
            Self::Proc(block, _) => block,
            // SAFETY: the name of a method.
            Self::Own(name) => rb::call(unsafe { rb_id2sym(name) }, rb::id(c"to_proc"), &[]),
            Self::Of(class, name) => {
                // SAFETY: the name of a method.
                let method = rb::call(class, rb::id(c"method"), &[unsafe { rb_id2sym(name) }]);
                rb::call(method, rb::id(c"to_proc"), &[])
            }
        }
    }

    fn mark(self) {
        match self {
            Self::Proc(object, _) | Self::Of(object, _) => rb::mark_object(object),
            Self::Own(_) => {}
        }
    }
}

/// A Proc of the main Ractor can be called in others only if it is shareable: raises when it may not be called here.
fn check_shareable(block: VALUE) {
    if ractor::is_main() {
        return;
    }
    // SAFETY: reads constants, and asks about a live object.
    let (shareable, class) = unsafe {
        let ractor = rb_path2class(c"Ractor".as_ptr());
        let shareable = rb::call(ractor, rb::id(c"shareable?"), &[block]) == rb::TRUE;
        (shareable, rb_path2class(c"Ractor::IsolationError".as_ptr()))
    };
    if !shareable {
        let advice = "make it with Ractor.make_shareable, or register the name of a method";
        rb::raise(class, format_args!("a Proc of the main Ractor cannot be called in this one: {advice}"));
    }
}

/// How a class is packed.
#[derive(Clone, Copy)]
pub(super) struct PackEntry {
    pub(super) class: VALUE,
    pub(super) kind: i8,
    /// `None`: registered for unpacking only.
    pub(super) packer: Option<Callable>,
    pub(super) recursive: bool,
}

/// How a type is unpacked.
#[derive(Clone, Copy)]
pub(super) struct UnpackEntry {
    pub(super) kind: i8,
    pub(super) class: VALUE,
    /// `None`: registered for packing only.
    pub(super) unpacker: Option<Callable>,
    pub(super) recursive: bool,
}

/// The registered types. Shared between a factory and what it makes, until one of them registers another.
#[derive(Clone, Default)]
pub(super) struct Registry {
    pub(super) packers: Vec<PackEntry>,
    pub(super) unpackers: Vec<UnpackEntry>,
    /// Symbols are packed as an extension.
    pub(super) symbols: bool,
    /// Integers of more than 64 bits are packed as an extension.
    pub(super) big_integers: bool,
    /// The type whose payload is the name of a Symbol.
    pub(super) symbol_type: Option<i8>,
}

impl Registry {
    pub(super) fn mark(&self) {
        for entry in &self.packers {
            rb::mark_object(entry.class);
            entry.packer.into_iter().for_each(Callable::mark);
        }
        for entry in &self.unpackers {
            rb::mark_object(entry.class);
            entry.unpacker.into_iter().for_each(Callable::mark);
        }
    }

    pub(super) fn size(&self) -> usize {
        self.packers.capacity() * size_of::<PackEntry>()
            + self.unpackers.capacity() * size_of::<UnpackEntry>()
    }

    /// Registers for packing; a class that is registered already keeps its place.
    pub(super) fn add_packer(&mut self, entry: PackEntry) {
        match self.packers.iter_mut().find(|known| known.class == entry.class) {
            Some(known) => *known = entry,
            None => self.packers.push(entry),
        }
    }

    /// Registers for unpacking.
    pub(super) fn add_unpacker(&mut self, entry: UnpackEntry) {
        match self.unpackers.iter_mut().find(|known| known.kind == entry.kind) {
            Some(known) => *known = entry,
            None => self.unpackers.push(entry),
        }
    }

    #[inline]
    pub(super) fn unpacker(&self, kind: i8) -> Option<&UnpackEntry> {
        self.unpackers.iter().find(|entry| entry.kind == kind && entry.unpacker.is_some())
    }

    /// The entry for an object: for its singleton class, its class, or the first registered ancestor.
    pub(super) fn packer(&self, object: VALUE) -> Option<PackEntry> {
        if self.packers.is_empty() {
            return None;
        }
        // SAFETY: live objects; the classes are marked by the owner of the registry.
        let found = unsafe {
            let (singleton, class) = (rb::class_of(object), rb_obj_class(object));
            let exactly = |wanted| self.packers.iter().find(|entry| entry.class == wanted);
            exactly(singleton).or_else(|| exactly(class)).or_else(|| {
                self.packers.iter().find(|entry| rb_class_inherited_p(singleton, entry.class) == rb::TRUE)
            })
        };
        found.copied().filter(|entry| entry.packer.is_some())
    }
}

/// A registry to change: a copy, unless nobody else has it.
pub(super) fn changeable(registry: &mut Arc<Registry>) -> &mut Registry {
    Arc::make_mut(registry)
}

/// Checks the number of an extension type.
pub(super) fn ext_type(number: VALUE) -> i8 {
    // SAFETY: converts any object, or raises.
    let number = unsafe { rb_num2long(number) };
    i8::try_from(number).unwrap_or_else(|_| {
        // SAFETY: reads a class that lives for ever.
        let class = unsafe { rb_eRangeError };
        rb::raise(class, format_args!("integer {number} too big to convert to `signed char'"))
    })
}
