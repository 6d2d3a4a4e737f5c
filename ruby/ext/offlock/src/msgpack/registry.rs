//! Extension types: how a class is packed, and how a type is unpacked.

use std::sync::Arc;

use crate::cruby::{Gvl, Id, Marker, Object, Objects, classes, ractor, raise};

/// A callable that packs or unpacks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Callable {
    /// A Proc, and whether the main Ractor registered it.
    Proc(Object, bool),
    /// A method of the object that is packed.
    Own(Id),
    /// A method of a class, which gets the payload.
    Of(Object, Id),
}

impl Callable {
    /// A Proc that the calling Ractor registers.
    pub(super) fn of_proc(block: Object) -> Self {
        Self::Proc(block, ractor::is_main())
    }

    /// A method of a class, by name; raises `NameError` if it does not exist.
    pub(super) fn of_class(gvl: &mut Gvl, class: Object, name: Object) -> Self {
        let id = gvl.coerce_id(name);
        if !gvl.has_method(class, id) {
            gvl.call(class, Id::of(c"method"), &[name]);
        }
        Self::Of(class, id)
    }

    /// Calls it with `subject` and, if given, one more argument.
    pub(super) fn call(self, gvl: &mut Gvl, subject: Object, more: Option<Object>) -> Object {
        let arguments = [subject, more.unwrap_or(Object::NIL)];
        let count = 1 + usize::from(more.is_some());
        match self {
            Self::Proc(block, from_main) => {
                if from_main {
                    check_shareable(gvl, block);
                }
                gvl.call_proc(block, &arguments[..count])
            }
            Self::Own(name) => gvl.call(subject, name, &arguments[1..count]),
            Self::Of(class, name) => gvl.call(class, name, &arguments[..count]),
        }
    }

    /// The callable as a Proc, for programs that inspect the registered types.
    pub(super) fn to_proc(self, gvl: &mut Gvl) -> Object {
        let callable = match self {
            Self::Proc(block, _) => return block,
            Self::Own(name) => name.symbol(),
            Self::Of(class, name) => gvl.call(class, Id::of(c"method"), &[name.symbol()]),
        };
        gvl.call(callable, Id::of(c"to_proc"), &[])
    }

    fn mark(self, marker: &Marker) {
        match self {
            Self::Proc(object, _) | Self::Of(object, _) => marker.mark(object),
            Self::Own(_) => {}
        }
    }
}

/// Raises if the Proc may not be called here: other Ractors can call a Proc of the main Ractor only if it is
/// shareable.
fn check_shareable(gvl: &mut Gvl, block: Object) {
    if ractor::is_main() {
        return;
    }
    let ractor = gvl.class_named(c"Ractor");
    if gvl.call(ractor, Id::of(c"shareable?"), &[block]) != Object::TRUE {
        let class = gvl.class_named(c"Ractor::IsolationError");
        let advice = "make it with Ractor.make_shareable, or register the name of a method";
        raise(class, format_args!("a Proc of the main Ractor cannot be called in this one: {advice}"));
    }
}

/// How a class is packed.
#[derive(Clone, Copy)]
pub(super) struct PackEntry {
    pub(super) class: Object,
    pub(super) kind: i8,
    /// `None`: registered for unpacking only.
    pub(super) packer: Option<Callable>,
    pub(super) recursive: bool,
}

/// How a type is unpacked.
#[derive(Clone, Copy)]
pub(super) struct UnpackEntry {
    pub(super) kind: i8,
    pub(super) class: Object,
    /// `None`: registered for packing only.
    pub(super) unpacker: Option<Callable>,
    pub(super) recursive: bool,
}

impl PackEntry {
    /// `[type, proc, flags]`
    pub(super) fn shown(self, gvl: &mut Gvl) -> Object {
        let packer = self.packer.map_or(Object::NIL, |packer| packer.to_proc(gvl));
        let parts = [gvl.int(self.kind.into()), packer, gvl.int(self.recursive.into())];
        gvl.array(&parts).into()
    }
}

impl UnpackEntry {
    /// `[class, proc, flags]`
    pub(super) fn shown(self, gvl: &mut Gvl) -> Object {
        let unpacker = self.unpacker.map_or(Object::NIL, |unpacker| unpacker.to_proc(gvl));
        let parts = [self.class, unpacker, gvl.int(self.recursive.into())];
        gvl.array(&parts).into()
    }
}

/// The registered types. A factory shares them with its packers and unpackers until one of these registers
/// another type.
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
    pub(super) fn mark(&self, marker: &Marker) {
        for entry in &self.packers {
            marker.mark(entry.class);
            entry.packer.into_iter().for_each(|packer| packer.mark(marker));
        }
        for entry in &self.unpackers {
            marker.mark(entry.class);
            entry.unpacker.into_iter().for_each(|unpacker| unpacker.mark(marker));
        }
    }

    pub(super) fn size(&self) -> usize {
        self.packers.capacity() * size_of::<PackEntry>()
            + self.unpackers.capacity() * size_of::<UnpackEntry>()
    }

    /// Registers a packer; a class that is registered already keeps its position.
    pub(super) fn add_packer(&mut self, entry: PackEntry) {
        match self.packers.iter_mut().find(|known| known.class == entry.class) {
            Some(known) => *known = entry,
            None => self.packers.push(entry),
        }
    }

    /// Registers an unpacker.
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
    pub(super) fn packer(&self, objects: &Objects, object: Object) -> Option<PackEntry> {
        if self.packers.is_empty() {
            return None;
        }
        let (singleton, class) = (objects.class_of(object), objects.plain_class_of(object));
        let exactly = |wanted| self.packers.iter().find(|entry| entry.class == wanted);
        let found = exactly(singleton)
            .or_else(|| exactly(class))
            .or_else(|| self.packers.iter().find(|entry| objects.inherits(singleton, entry.class)));
        found.copied().filter(|entry| entry.packer.is_some())
    }
}

/// A registry that may be changed: a copy, if it is shared.
pub(super) fn changeable(registry: &mut Arc<Registry>) -> &mut Registry {
    Arc::make_mut(registry)
}

/// Checks the number of an extension type.
pub(super) fn ext_type(gvl: &mut Gvl, number: Object) -> i8 {
    let number = gvl.coerce_i64(number);
    i8::try_from(number).unwrap_or_else(|_| {
        raise(classes::range_error(), format_args!("integer {number} too big to convert to `signed char'"))
    })
}

/// Raises `FrozenError` for a frozen object.
pub(super) fn check_changeable(objects: &Objects, this: Object, class: &str) {
    if objects.is_frozen(this) {
        raise(classes::frozen_error(), format_args!("can't modify frozen MessagePack::{class}"));
    }
}
