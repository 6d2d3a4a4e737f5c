//! Objects of our own classes: their native data and the access to it.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;

use magnus::Ruby;
use rb_sys::*;

use super::gvl::{Gvl, Natives};
use super::object::Object;

/// The native data of the objects of a class of ours.
pub(crate) trait Data: Default + 'static {
    /// The description of the type for Ruby.
    const DATA_TYPE: &'static DataType;
    /// Whether objects of this type are only read once they are made, so that Ractors can share them.
    const IS_SHAREABLE: bool = false;
    /// Marks the Ruby objects that it refers to.
    fn mark(&self, marker: &Marker);
    /// The size of the memory that it owns outside the object, in bytes.
    fn size(&self) -> usize;
}

/// The description of a type of native data for Ruby.
pub(crate) struct DataType(rb_data_type_t);

// SAFETY: written once, at compile time; Ruby only reads it.
unsafe impl Sync for DataType {}

impl DataType {
    /// The description of the native data of a class, with a name for debuggers.
    pub(crate) const fn of<T: Data>(name: &'static CStr) -> Self {
        let flags = rbimpl_typeddata_flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE;
        let shareable = rbimpl_typeddata_flags::RUBY_TYPED_FROZEN_SHAREABLE as VALUE;
        Self(rb_data_type_t {
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
            flags: if T::IS_SHAREABLE { flags | shareable } else { flags },
        })
    }
}

/// Marks objects and pins them. Exists only while the garbage collector runs.
pub(crate) struct Marker(PhantomData<*mut ()>);

impl Marker {
    /// Marks an object.
    pub(crate) fn mark(&self, object: Object) {
        // SAFETY: the garbage collector is running, and every earlier run marked the object.
        unsafe { rb_gc_mark(object.as_raw()) };
    }
}

pub(super) unsafe extern "C" fn mark<T: Data>(data: *mut c_void) {
    // SAFETY: Ruby passes the pointer that `alloc` stored. The collector runs only when Ruby allocates, and
    // no code that has a mutable reference to the data does so.
    unsafe { (*data.cast::<T>()).mark(&Marker(PhantomData)) }
}

/// A marker for data that no object holds.
///
/// # Safety
/// The garbage collector is running.
pub(super) const unsafe fn marker() -> Marker {
    Marker(PhantomData)
}

unsafe extern "C" fn free<T: Data>(data: *mut c_void) {
    // SAFETY: Ruby passes the pointer that `alloc` stored, once.
    drop(unsafe { Box::from_raw(data.cast::<T>()) });
}

unsafe extern "C" fn size<T: Data>(data: *const c_void) -> size_t {
    // SAFETY: Ruby passes the pointer that `alloc` stored.
    (size_of::<T>() + unsafe { (*data.cast::<T>()).size() }) as size_t
}

pub(super) unsafe extern "C" fn alloc<T: Data>(class: VALUE) -> VALUE {
    let data = Box::into_raw(Box::<T>::default());
    // SAFETY: the object takes ownership of the box; the type matches.
    unsafe { rb_data_typed_object_wrap(class, data.cast(), &raw const T::DATA_TYPE.0) }
}

/// Makes an object for the data that no program can reach, and that is marked for ever.
pub(crate) fn keep_marked<T: Data>(_: &Ruby) {
    // SAFETY: an object without a class, which Ruby permits for data of its own and of extensions.
    unsafe { rb_gc_register_mark_object(alloc::<T>(0)) };
}

/// An object that holds a `T`. Like any object it must be on the stack, or marked, as long as it is used.
pub(crate) struct Handle<T> {
    object: Object,
    data: *mut T,
}

impl<T> Clone for Handle<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T: Data> Handle<T> {
    /// The object, if it holds a `T`; raises `TypeError` otherwise.
    #[inline]
    pub(crate) fn of(object: Object) -> Self {
        // SAFETY: checks the type, or raises; an object of the type holds a `T`.
        let data = unsafe { rb_check_typeddata(object.as_raw(), &raw const T::DATA_TYPE.0) };
        Self { object, data: data.cast() }
    }

    /// A new object of a class whose objects hold a `T`.
    pub(crate) fn new(_: &Gvl, class: Object) -> Self {
        // SAFETY: the class is one of ours, or inherits from one.
        Self::of(Object::raw(unsafe { alloc::<T>(class.as_raw()) }))
    }

    /// The object itself.
    #[inline(always)]
    pub(crate) fn object(self) -> Object {
        self.object
    }

    /// The native data.
    #[inline(always)]
    pub(crate) fn get(self, _: &Natives) -> &T {
        // SAFETY: an object that holds a `T`. No code can change it: a change needs `Natives` mutably, or
        // another Ractor, and that cannot reach this object or does not change it.
        unsafe { &*self.data }
    }

    /// The native data, for changes.
    #[inline(always)]
    pub(crate) fn get_mut(self, _: &mut Natives) -> &mut T {
        const { assert!(!T::IS_SHAREABLE, "what Ractors share is not changed") };
        // SAFETY: as above; there is no other reference, because each is borrowed from `Natives`.
        unsafe { &mut *self.data }
    }

    /// The native data, for as long as the object is on the stack.
    ///
    /// # Safety
    /// The object is kept as long as the reference is used, and the data never changes.
    pub(crate) unsafe fn lasting<'a>(self) -> &'a T {
        // SAFETY: the contract of this function.
        unsafe { &*self.data }
    }

    /// Stores a value in a new object.
    pub(crate) fn fill(self, _: &mut Natives, value: T) {
        // SAFETY: as above; no Ractor can share an object that was not returned yet.
        unsafe { *self.data = value };
    }

    /// Keeps the object on the stack until here.
    #[inline(always)]
    pub(crate) fn keep(self) {
        std::hint::black_box(self.object);
    }
}
