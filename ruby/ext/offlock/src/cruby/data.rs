//! Objects of our own classes: what they hold, and how it is reached.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;

use rb_sys::*;

use super::gvl::{Gvl, Natives};
use super::object::Object;

/// What objects of a class of ours hold.
pub(crate) trait Data: Default + 'static {
    /// How Ruby knows it.
    const DATA_TYPE: &'static DataType;
    /// Whether objects of this type, once made, are only read, so that Ractors can share them.
    const IS_SHAREABLE: bool = false;
    /// Marks the Ruby objects that it refers to.
    fn mark(&self, marker: &Marker);
    /// Its memory outside of the object.
    fn size(&self) -> usize;
}

/// A type of data, as Ruby has to know it.
pub(crate) struct DataType(rb_data_type_t);

// SAFETY: written once, when the program is built; Ruby only reads it.
unsafe impl Sync for DataType {}

impl DataType {
    /// The type of what objects of a class hold, with a name for debuggers.
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

/// Marks objects, and keeps them in place. The garbage collector runs.
pub(crate) struct Marker(PhantomData<*mut ()>);

impl Marker {
    /// Marks an object.
    pub(crate) fn mark(&self, object: Object) {
        // SAFETY: the garbage collector runs, and the object was marked by each earlier run.
        unsafe { rb_gc_mark(object.as_raw()) };
    }
}

pub(super) unsafe extern "C" fn mark<T: Data>(data: *mut c_void) {
    // SAFETY: Ruby passes what `alloc` stored. The collector runs only where Ruby allocates, which nothing does that
    // has a mutable reference to it.
    unsafe { (*data.cast::<T>()).mark(&Marker(PhantomData)) }
}

/// For data that is not held by an object.
///
/// # Safety
/// The garbage collector runs.
pub(super) const unsafe fn marker() -> Marker {
    Marker(PhantomData)
}

unsafe extern "C" fn free<T: Data>(data: *mut c_void) {
    // SAFETY: Ruby passes what `alloc` stored, once.
    drop(unsafe { Box::from_raw(data.cast::<T>()) });
}

unsafe extern "C" fn size<T: Data>(data: *const c_void) -> size_t {
    // SAFETY: Ruby passes what `alloc` stored.
    (size_of::<T>() + unsafe { (*data.cast::<T>()).size() }) as size_t
}

pub(super) unsafe extern "C" fn alloc<T: Data>(class: VALUE) -> VALUE {
    let data = Box::into_raw(Box::<T>::default());
    // SAFETY: the object takes over the box; the type fits.
    unsafe { rb_data_typed_object_wrap(class, data.cast(), &raw const T::DATA_TYPE.0) }
}

/// An object that holds a `T`. Like any object it has to be on the stack, or marked, as long as it is used.
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
    /// The object, if it holds a `T`; raises `TypeError` for others.
    #[inline]
    pub(crate) fn of(object: Object) -> Self {
        // SAFETY: checks the type, or raises; what is stored in an object of the type is a `T`.
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

    /// What it holds.
    #[inline(always)]
    pub(crate) fn get(self, _: &Natives) -> &T {
        // SAFETY: an object that holds a `T`. Nobody can change it: that takes `Natives` mutably, or another Ractor, in which
        // this object is not, or is not changed.
        unsafe { &*self.data }
    }

    /// What it holds, to be changed.
    #[inline(always)]
    pub(crate) fn get_mut(self, _: &mut Natives) -> &mut T {
        const { assert!(!T::IS_SHAREABLE, "what Ractors share is not changed") };
        // SAFETY: as above; there is no other reference, as each is borrowed from `Natives`.
        unsafe { &mut *self.data }
    }

    /// What it holds, for as long as the object is on the stack.
    ///
    /// # Safety
    /// The object is kept as long as the reference is used, and what it holds is never changed.
    pub(crate) unsafe fn lasting<'a>(self) -> &'a T {
        // SAFETY: the contract of this function.
        unsafe { &*self.data }
    }

    /// Puts a value into a new object.
    pub(crate) fn fill(self, _: &mut Natives, value: T) {
        // SAFETY: as above; no Ractor can share an object that was not handed out.
        unsafe { *self.data = value };
    }

    /// Keeps the object on the stack until here.
    #[inline(always)]
    pub(crate) fn keep(self) {
        std::hint::black_box(self.object);
    }
}
