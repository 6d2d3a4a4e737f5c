//! A thin layer over Ruby's C API for the hot paths of MessagePack.
//!
//! Ruby's exceptions leave by `longjmp`, which skips destructors. Hence the rule of this module: **no frame owns a
//! value that needs dropping while Ruby may raise.** Buffers belong to Ruby objects, and what is built lives on
//! the machine stack, where the garbage collector finds it.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rb_sys::*;

use crate::region;

pub(crate) const NIL: VALUE = Qnil as VALUE;
pub(crate) const TRUE: VALUE = Qtrue as VALUE;
pub(crate) const FALSE: VALUE = Qfalse as VALUE;

/// Runs the body of a method; a panic becomes an exception.
pub(crate) fn method(body: impl FnOnce() -> VALUE) -> VALUE {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(panic) => {
            drop(panic);
            // SAFETY: reads a class that lives for ever.
            raise(unsafe { rb_eFatal }, format_args!("the native code of MessagePack panicked"))
        }
    }
}

/// Runs the body of a method that a program may call in a loop: before it, other threads get the lock when it is their time.
#[inline]
pub(crate) fn small_method(body: impl FnOnce() -> VALUE) -> VALUE {
    method(|| {
        // SAFETY: Ruby calls methods with the lock held, and nothing needs dropping yet.
        unsafe { region::yield_between_calls_or_raise() };
        body()
    })
}

/// Raises an exception of `class`.
#[cold]
pub(crate) fn raise(class: VALUE, message: fmt::Arguments<'_>) -> ! {
    raise_text(class, message.to_string())
}

/// Raises an exception of `class`.
#[cold]
pub(crate) fn raise_text(class: VALUE, text: String) -> ! {
    // SAFETY: copies `len` bytes from the pointer into a new String.
    let exception = unsafe { rb_exc_new(class, text.as_ptr().cast(), text.len() as c_long) };
    drop(text);
    // SAFETY: this frame owns nothing that needs dropping, as the rule of this module demands of its callers, too.
    unsafe { rb_exc_raise(exception) }
}

/// A class of objects that hold a `T`, as Ruby has to know it.
pub(crate) struct DataType(pub(super) rb_data_type_t);

// SAFETY: written once, when the program is built; Ruby only reads it.
unsafe impl Sync for DataType {}

/// What an object of a [`DataType`] holds.
pub(crate) trait Held: Default + 'static {
    /// How Ruby knows it.
    const DATA_TYPE: &'static DataType;
    /// Marks the Ruby objects that it refers to.
    fn mark(&self);
    /// Its memory outside of the object.
    fn size(&self) -> usize;
}

/// The entry for Ruby's table of kinds.
pub(crate) const fn data_type<T: Held>(name: &'static CStr, shareable: bool) -> DataType {
    let flags = rbimpl_typeddata_flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE;
    let flags =
        if shareable { flags | rbimpl_typeddata_flags::RUBY_TYPED_FROZEN_SHAREABLE as VALUE } else { flags };
    DataType(rb_data_type_t {
        wrap_struct_name: name.as_ptr(),
        function: rb_data_type_struct__bindgen_ty_1 {
            dmark: Some(mark::<T>),
            dfree: Some(free::<T>),
            dsize: Some(size::<T>),
            dcompact: None,
            reserved: [std::ptr::null_mut(); 1],
        },
        parent: std::ptr::null(),
        data: std::ptr::null_mut(),
        flags,
    })
}

unsafe extern "C" fn mark<T: Held>(held: *mut c_void) {
    // SAFETY: Ruby passes what `alloc` stored; nobody writes to it while the garbage collector runs.
    unsafe { (*held.cast::<T>()).mark() }
}

unsafe extern "C" fn free<T: Held>(held: *mut c_void) {
    // SAFETY: Ruby passes what `alloc` stored, once.
    drop(unsafe { Box::from_raw(held.cast::<T>()) });
}

unsafe extern "C" fn size<T: Held>(held: *const c_void) -> size_t {
    // SAFETY: Ruby passes what `alloc` stored.
    (size_of::<T>() + unsafe { (*held.cast::<T>()).size() }) as size_t
}

/// Allocates an object of `class`, a class of this kind of objects.
pub(crate) unsafe extern "C" fn alloc<T: Held>(class: VALUE) -> VALUE {
    let held = Box::into_raw(Box::<T>::default());
    // SAFETY: the object takes over the box; the kind fits.
    unsafe { rb_data_typed_object_wrap(class, held.cast(), &raw const T::DATA_TYPE.0) }
}

/// What `object` holds; raises `TypeError` when it is of another kind.
///
/// A pointer, because Ruby code that runs while it is in use may reach the same object.
pub(crate) fn held<T: Held>(object: VALUE) -> *mut T {
    // SAFETY: checks the kind, or raises; what is stored in an object of the kind is a `T`.
    unsafe { rb_check_typeddata(object, &raw const T::DATA_TYPE.0).cast() }
}

/// Marks an object, and keeps it in place.
pub(crate) fn mark_object(object: VALUE) {
    // SAFETY: only called by `Held::mark`, with objects that were marked before.
    unsafe { rb_gc_mark(object) }
}

/// The bytes of a String.
///
/// # Safety
/// `string` is a String that is neither changed nor freed nor moved while the slice is in use.
pub(crate) unsafe fn bytes<'a>(string: VALUE) -> &'a [u8] {
    // SAFETY: the contract of this function.
    unsafe { std::slice::from_raw_parts(RSTRING_PTR(string).cast(), RSTRING_LEN(string) as usize) }
}

/// A String, or what `to_str` makes of the object; raises `TypeError` for others.
pub(crate) fn string(mut object: VALUE) -> VALUE {
    // SAFETY: takes any object.
    unsafe { rb_string_value(&raw mut object) }
}

/// A new binary String.
pub(crate) fn binary(bytes: &[u8]) -> VALUE {
    // SAFETY: copies `len` bytes from the pointer.
    unsafe { rb_str_new(bytes.as_ptr().cast(), bytes.len() as c_long) }
}

/// An Integer.
#[inline]
pub(crate) fn int(value: i64) -> VALUE {
    // SAFETY: makes an Integer of any value.
    unsafe { rb_ll2inum(value) }
}

/// Whether the object is of that built-in type.
#[inline]
pub(crate) fn is(object: VALUE, kind: ruby_value_type) -> bool {
    // SAFETY: reads the header of a live object.
    unsafe { RB_TYPE_P(object, kind) }
}

/// The class of an object, or its singleton class if it has one.
#[inline]
pub(crate) fn class_of(object: VALUE) -> VALUE {
    if SPECIAL_CONST_P(object) {
        // SAFETY: takes any object.
        return unsafe { rb_obj_class(object) };
    }
    // SAFETY: every object that is not in the reference itself begins with this header.
    unsafe { (*(object as *const RBasic)).klass }
}

/// Raises `TypeError` unless the object is of that built-in type.
pub(crate) fn check(object: VALUE, kind: ruby_value_type) {
    // SAFETY: takes any object.
    unsafe { rb_check_type(object, kind as c_int) }
}

/// The Symbol or method name of these characters.
pub(crate) fn id(name: &CStr) -> ID {
    // SAFETY: a C string.
    unsafe { rb_intern(name.as_ptr()) }
}

/// The Symbol of these characters.
pub(crate) fn symbol(name: &CStr) -> VALUE {
    // SAFETY: an existing name.
    unsafe { rb_id2sym(id(name)) }
}

/// Calls a method.
pub(crate) fn call(object: VALUE, name: ID, arguments: &[VALUE]) -> VALUE {
    // SAFETY: live objects, as many as said.
    unsafe { rb_funcallv(object, name, arguments.len() as c_int, arguments.as_ptr()) }
}

/// An entry of an options Hash; nil when it is not there.
pub(crate) fn option(options: VALUE, name: &CStr) -> VALUE {
    if options == NIL {
        return NIL;
    }
    // SAFETY: a Hash, as the caller checked.
    unsafe { rb_hash_lookup(options, symbol(name)) }
}

/// The arguments of a method that takes any number.
///
/// # Safety
/// What Ruby passed to the method.
pub(crate) unsafe fn arguments<'a>(count: c_int, first: *const VALUE) -> &'a [VALUE] {
    if count <= 0 {
        return &[];
    }
    // SAFETY: the contract of this function.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

/// Raises `ArgumentError` unless there are so many arguments.
pub(crate) fn check_count(count: usize, least: usize, most: usize) {
    if count < least || count > most {
        // SAFETY: reads a class that lives for ever.
        let class = unsafe { rb_eArgError };
        let range = if least == most { format_args!("{least}") } else { format_args!("{least}..{most}") };
        raise(class, format_args!("wrong number of arguments (given {count}, expected {range})"));
    }
}

/// Defines a method. The number of arguments has to fit the function; -1 is any.
pub(crate) fn define(class: VALUE, name: &'static CStr, function: *const c_void, arguments: c_int) {
    // SAFETY: a function that Ruby calls with that many objects, see `method!`.
    unsafe { rb_define_method(class, name.as_ptr(), Some(callable(function)), arguments) }
}

/// Defines a function of a module.
pub(crate) fn define_function(module: VALUE, name: &'static CStr, function: *const c_void, arguments: c_int) {
    // SAFETY: a function that Ruby calls with that many objects, see `method!`.
    unsafe { rb_define_module_function(module, name.as_ptr(), Some(callable(function)), arguments) }
}

unsafe fn callable(function: *const c_void) -> unsafe extern "C" fn() -> VALUE {
    // SAFETY: Ruby casts it back to what it is, by the number of arguments.
    unsafe { std::mem::transmute(function) }
}

/// A class under a module.
pub(crate) fn class(module: VALUE, name: &CStr, parent: VALUE) -> VALUE {
    // SAFETY: defines, or finds, a class; constants keep it alive.
    unsafe { rb_define_class_under(module, name.as_ptr(), parent) }
}

/// An alias of a method.
pub(crate) fn alias(class: VALUE, new: &CStr, old: &CStr) {
    // SAFETY: both are C strings.
    unsafe { rb_define_alias(class, new.as_ptr(), old.as_ptr()) }
}

/// `true` or `false`.
pub(crate) const fn bool(value: bool) -> VALUE {
    if value { TRUE } else { FALSE }
}
