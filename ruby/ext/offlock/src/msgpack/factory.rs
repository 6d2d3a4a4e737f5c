//! The class `Factory`.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rb_sys::*;

use super::buffer::io_and_options;
use super::globals::globals;
use super::packer::{self, check_changeable};
use super::registry::{Callable, PackEntry, Registry, UnpackEntry, changeable, ext_type};
use super::unpacker::{self, class_method};
use crate::cruby::ractor;
use crate::cruby::raw::{self as rb, DataType, Held, NIL};

/// What an object of the class `Factory` holds. A frozen one can be shared between Ractors, and so can the default
/// factory, whose types only the main Ractor may change: hence the lock, which is held for a moment only and never
/// while Ruby code runs.
#[derive(Default)]
pub(super) struct Factory(Mutex<Arc<Registry>>);

impl Held for Factory {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = rb::data_type::<Factory>(c"Offlock::MessagePack::Factory", true);
        &DATA_TYPE
    };

    fn mark(&self) {
        self.registry().mark();
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
pub(super) fn registry_of(factory: VALUE) -> Arc<Registry> {
    // SAFETY: what a live object holds; only behind its lock is it changed.
    unsafe { (*rb::held::<Factory>(factory)).registry() }
}

unsafe extern "C" fn packer_method(count: c_int, first: *const VALUE, this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: what Ruby passed.
        let (io, options) = io_and_options(unsafe { rb::arguments(count, first) });
        packer::make(io, options, registry_of(this))
    })
}

unsafe extern "C" fn unpacker_method(count: c_int, first: *const VALUE, this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: what Ruby passed.
        let (io, options) = io_and_options(unsafe { rb::arguments(count, first) });
        unpacker::make(io, options, registry_of(this))
    })
}

unsafe extern "C" fn dup(this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: the class is one of this kind of objects, and what is made holds one.
        unsafe {
            let copy = rb::alloc::<Factory>(rb_obj_class(this));
            (*rb::held::<Factory>(copy)).set(registry_of(this));
            copy
        }
    })
}

/// `register_type_internal(type, class, packer, unpacker, flags)`: what the options said is sorted out in Ruby.
unsafe extern "C" fn register_type_internal(
    this: VALUE,
    kind: VALUE,
    class: VALUE,
    callables: VALUE,
    flags: VALUE,
) -> VALUE {
    rb::method(|| {
        check_changeable(this, "Factory");
        check_ractor(this);
        let kind = ext_type(kind);
        let callable = |index| {
            // SAFETY: an Array.
            let given = unsafe { rb_ary_entry(callables, index) };
            if given == NIL { None } else { Some(given) }
        };
        let is_name = |given| rb::is(given, ruby_value_type::RUBY_T_SYMBOL);
        let own = |given| {
            // SAFETY: a Symbol.
            let name = || unsafe { rb_to_id(given) };
            if is_name(given) { Callable::Own(name()) } else { Callable::of_proc(given) }
        };
        let of_class =
            |given| if is_name(given) { class_method(class, given) } else { Callable::of_proc(given) };
        let (packer, unpacker) = (callable(0).map(own), callable(1).map(of_class));
        let set = |name| TEST(rb::option(flags, name));
        let recursive = set(c"recursive");
        let (big, symbols) = (set(c"oversized_integer_extension"), set(c"optimized_symbols_parsing"));
        // SAFETY: reads a class that lives for ever.
        let is_symbol = class == unsafe { rb_cSymbol };
        // SAFETY: what a live object holds. Nothing from here on raises.
        let factory = unsafe { &*rb::held::<Factory>(this) };
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
        NIL
    })
}

/// The default factory is seen by all Ractors, but belongs to the main one.
fn check_ractor(this: VALUE) {
    if ractor::is_main() || default_factory() != this {
        return;
    }
    // SAFETY: the name of a class.
    let class = unsafe { rb_path2class(c"Ractor::IsolationError".as_ptr()) };
    rb::raise(class, format_args!("only the main Ractor can register types with the default factory"));
}

/// `[{class => [type, proc, flags]}, {type => [class, proc, flags]}]`
unsafe extern "C" fn registered_types_internal(this: VALUE) -> VALUE {
    rb::method(|| {
        let entry = |index| {
            let registry = registry_of(this);
            (registry.packers.get(index).copied(), registry.unpackers.get(index).copied())
        };
        // SAFETY: Hashes and live objects. No registry is held while Ruby code runs.
        unsafe {
            let (packers, unpackers) = (rb_hash_new(), rb_hash_new());
            let mut index = 0;
            loop {
                let (packer, unpacker) = entry(index);
                if packer.is_none() && unpacker.is_none() {
                    break;
                }
                if let Some(known) = packer {
                    rb_hash_aset(packers, known.class, packer::pack_entry(known));
                }
                if let Some(known) = unpacker {
                    rb_hash_aset(unpackers, rb::int(known.kind.into()), unpacker::unpack_entry(known));
                }
                index += 1;
            }
            rb_ary_new_from_values(2, [packers, unpackers].as_ptr())
        }
    })
}

/// The factory of `MessagePack.pack` and `MessagePack.unpack`: a constant, so it lives for ever, in place.
static DEFAULT: OnceLock<VALUE> = OnceLock::new();

/// The factory of `MessagePack.pack` and `MessagePack.unpack`.
pub(super) fn default_factory() -> VALUE {
    DEFAULT.get().copied().unwrap_or(NIL)
}

/// What the default factory has registered.
pub(super) fn default_registry() -> Arc<Registry> {
    registry_of(default_factory())
}

/// Asks something about what the default factory has registered.
#[inline]
pub(super) fn ask_default<T>(question: impl FnOnce(&Registry) -> T) -> T {
    // SAFETY: what a live object holds; only behind its lock is it changed.
    let factory = unsafe { &*rb::held::<Factory>(default_factory()) };
    question(&factory.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Defines the class, and the default factory.
pub(super) fn define() {
    let names = globals();
    let class = names.factory;
    // SAFETY: the function makes objects of this class.
    unsafe { rb_define_alloc_func(class, Some(rb::alloc::<Factory>)) };
    rb::define(class, c"packer", packer_method as _, -1);
    rb::define(class, c"unpacker", unpacker_method as _, -1);
    rb::define(class, c"dup", dup as _, 0);
    rb::define(class, c"register_type_internal", register_type_internal as _, 4);
    rb::define(class, c"registered_types_internal", registered_types_internal as _, 0);
    // SAFETY: an object of the class; the flag says what `Factory` makes true: that Ractors may share it although it
    // is not frozen.
    unsafe {
        let default = rb::alloc::<Factory>(class);
        (*(default as *mut RBasic)).flags |= ruby_fl_type::RUBY_FL_SHAREABLE as VALUE;
        rb_gc_register_mark_object(default);
        rb_define_const(names.module, c"DefaultFactory".as_ptr(), default);
        DEFAULT.get_or_init(|| default);
    }
}
