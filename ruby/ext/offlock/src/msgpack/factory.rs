//! The class `Factory`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::byte_queue::io_and_options;
use super::globals::globals;
use super::registry::{Callable, PackEntry, Registry, UnpackEntry, changeable, check_changeable, ext_type};
use super::{packer, unpacker};
use crate::cruby::{
    Class, Data, DataType, Gvl, Handle, Kind, Marker, Object, classes, define_shared_constant, methods,
    ractor, raise,
};

/// The native data of the class `Factory`. A frozen factory can be shared between Ractors, and so can the
/// default factory, whose types only the main Ractor may change. Hence the mutex, which is held only briefly
/// and never while Ruby code runs.
#[derive(Default)]
pub(super) struct Factory(Mutex<Arc<Registry>>);

impl Data for Factory {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = DataType::of::<Factory>(c"Offlock::MessagePack::Factory");
        &DATA_TYPE
    };
    const IS_SHAREABLE: bool = true;

    fn mark(&self, marker: &Marker) {
        self.registry().mark(marker);
    }

    fn size(&self) -> usize {
        let registry = self.registry();
        registry.size() / Arc::strong_count(&registry)
    }
}

impl Factory {
    fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, registry: Arc<Registry>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = registry;
    }
}

/// The registered types of a factory.
fn registry_of(gvl: &Gvl, factory: Object) -> Arc<Registry> {
    Handle::<Factory>::of(factory).get(&gvl.natives).registry()
}

/// An item of the Array `[packer, unpacker]`, both of which are optional.
fn given(gvl: &Gvl, callables: Object, index: usize) -> Option<Object> {
    match gvl.objects.kind(callables) {
        Kind::Array(callables) => Some(gvl.objects.item(callables, index)).filter(|given| !given.is_nil()),
        _ => None,
    }
}

methods! {
    fn packer_method(gvl, this, ..arguments) {
        let (io, options) = io_and_options(gvl, arguments);
        let registry = registry_of(gvl, this);
        packer::make(gvl, io, options, registry).object()
    }

    fn unpacker_method(gvl, this, ..arguments) {
        let (io, options) = io_and_options(gvl, arguments);
        let registry = registry_of(gvl, this);
        unpacker::make(gvl, io, options, registry).object()
    }

    fn dup(gvl, this) {
        let copy = Handle::<Factory>::new(gvl, gvl.objects.plain_class_of(this));
        copy.get(&gvl.natives).set(registry_of(gvl, this));
        copy.object()
    }

    /// `register_type_internal(type, class, [packer, unpacker], options)`: Ruby code has processed the
    /// options.
    fn register_type_internal(gvl, this, kind, class, callables, options) {
        check_changeable(&gvl.objects, this, "Factory");
        check_ractor(gvl, this);
        let kind = ext_type(gvl, kind);
        let packer = given(gvl, callables, 0).map(|given| {
            if gvl.objects.is_symbol(given) { Callable::Own(gvl.coerce_id(given)) } else { Callable::of_proc(given) }
        });
        let unpacker = given(gvl, callables, 1).map(|given| {
            if gvl.objects.is_symbol(given) {
                Callable::of_class(gvl, class, given)
            } else {
                Callable::of_proc(given)
            }
        });
        let options = gvl.objects.hash(options);
        let is_set = |name| gvl.objects.option(options, name).is_true();
        let recursive = is_set(c"recursive");
        let (big, symbols) = (is_set(c"oversized_integer_extension"), is_set(c"optimized_symbols_parsing"));
        let is_symbol = class == classes::symbol();
        // No call from here on raises.
        let factory = Handle::<Factory>::of(this).get(&gvl.natives);
        let mut registry = factory.registry();
        let changed = changeable(&mut registry);
        changed.add_packer(PackEntry { class, kind, packer, recursive });
        changed.add_unpacker(UnpackEntry { kind, class, unpacker, recursive });
        changed.symbols |= is_symbol && packer.is_some();
        changed.big_integers |= big;
        if is_symbol && symbols {
            changed.symbol_type = Some(kind);
        }
        factory.set(registry);
        Object::NIL
    }

    /// `[{class => [type, proc, flags]}, {type => [class, proc, flags]}]`
    fn registered_types_internal(gvl, this) {
        // No registry is held while Ruby code runs.
        let entry = |gvl: &Gvl, index: usize| {
            let registry = registry_of(gvl, this);
            (registry.packers.get(index).copied(), registry.unpackers.get(index).copied())
        };
        let (packers, unpackers) = (gvl.hash_with_capacity(0), gvl.hash_with_capacity(0));
        let mut index = 0;
        loop {
            let (packer, unpacker) = entry(gvl, index);
            if packer.is_none() && unpacker.is_none() {
                return gvl.array(&[packers.into(), unpackers.into()]).into();
            }
            if let Some(known) = packer {
                let shown = known.shown(gvl);
                gvl.insert(packers, known.class, shown);
            }
            if let Some(known) = unpacker {
                let (kind, shown) = (gvl.int(known.kind.into()), known.shown(gvl));
                gvl.insert(unpackers, kind, shown);
            }
            index += 1;
        }
    }
}

/// Raises unless the caller may change the factory: all Ractors see the default factory, but it belongs to
/// the main one.
fn check_ractor(gvl: &mut Gvl, this: Object) {
    if ractor::is_main() || default_factory() != this {
        return;
    }
    let class = gvl.class_named(c"Ractor::IsolationError");
    raise(class, format_args!("only the main Ractor can register types with the default factory"));
}

/// The factory of `MessagePack.pack` and `MessagePack.unpack`: a constant, so it lives forever, in place.
static DEFAULT: OnceLock<Object> = OnceLock::new();

/// The factory of `MessagePack.pack` and `MessagePack.unpack`.
fn default_factory() -> Object {
    DEFAULT.get().copied().unwrap_or(Object::NIL)
}

/// The types that the default factory has registered.
pub(super) fn default_registry(gvl: &Gvl) -> Arc<Registry> {
    registry_of(gvl, default_factory())
}

/// Runs a query on the types that the default factory has registered.
#[inline]
pub(super) fn ask_default<T>(gvl: &Gvl, question: impl FnOnce(&Registry) -> T) -> T {
    let factory = Handle::<Factory>::of(default_factory()).get(&gvl.natives);
    question(&factory.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Defines the class, and the default factory.
pub(super) fn define(gvl: &Gvl) {
    let names = globals();
    Class::of::<Factory>(gvl, names.factory)
        .define(c"packer", &packer_method())
        .define(c"unpacker", &unpacker_method())
        .define(c"dup", &dup())
        .define(c"register_type_internal", &register_type_internal())
        .define(c"registered_types_internal", &registered_types_internal());
    let default = Handle::<Factory>::new(gvl, names.factory).object();
    define_shared_constant(gvl, names.module, c"DefaultFactory", default);
    DEFAULT.get_or_init(|| default);
}
