//! Defines classes and methods.

use std::ffi::{CStr, c_int};

use rb_sys::*;

use super::call::{raise, run_method};
use super::classes;
use super::data::{Data, alloc};
use super::gvl::Gvl;
use super::object::Object;

/// A function that Ruby calls, with the number of its arguments; -1 for any number.
pub(crate) struct Method {
    function: unsafe extern "C" fn() -> VALUE,
    arguments: c_int,
}

impl Method {
    /// # Safety
    /// The function takes this many objects, the receiver first; or for -1 a count, a pointer and the
    /// receiver.
    pub(crate) const unsafe fn new(function: *const (), arguments: c_int) -> Self {
        // SAFETY: Ruby casts it back to its type, which follows from the number of arguments.
        let function = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn() -> VALUE>(function) };
        Self { function, arguments }
    }
}

/// Makes the functions of methods: `methods! { fn name(gvl, this, argument) { … } }`, where the body returns
/// an [`Object`]. A method with the arguments `this, ..arguments` takes any number of them. A method that a
/// program may call in a loop is marked `small`: before its body, other threads get the lock when the time
/// slice is over.
macro_rules! methods {
    () => {};
    ($(#[$doc:meta])* small fn $name:ident($gvl:ident, $($arguments:tt)*) $body:block $($rest:tt)*) => {
        $crate::cruby::methods! {
            $(#[$doc])* fn $name($gvl, $($arguments)*) {
                $gvl.yield_between_calls();
                $body
            }
            $($rest)*
        }
    };
    ($(#[$doc:meta])* fn $name:ident($gvl:ident, $this:ident, ..$arguments:ident) $body:block $($rest:tt)*) => {
        $(#[$doc])*
        fn $name() -> $crate::cruby::Method {
            unsafe extern "C" fn $name(
                count: std::ffi::c_int,
                first: *const $crate::cruby::Object,
                $this: $crate::cruby::Object,
            ) -> $crate::cruby::Object {
                // SAFETY: Ruby made the call, with that many arguments.
                unsafe { $crate::cruby::Arguments::run(count, first, |$gvl, $arguments| {
                    let _ = $this;
                    $body
                }) }
            }
            // SAFETY: the function above takes what Ruby passes to a method with -1 arguments.
            unsafe { $crate::cruby::Method::new($name as *const (), -1) }
        }
        $crate::cruby::methods! { $($rest)* }
    };
    ($(#[$doc:meta])* fn $name:ident($gvl:ident, $this:ident $(, $argument:ident)*) $body:block $($rest:tt)*) => {
        $(#[$doc])*
        fn $name() -> $crate::cruby::Method {
            unsafe extern "C" fn $name(
                $this: $crate::cruby::Object,
                $($argument: $crate::cruby::Object,)*
            ) -> $crate::cruby::Object {
                // SAFETY: Ruby made the call.
                unsafe { $crate::cruby::Arguments::run(0, std::ptr::null(), |$gvl, _| $body) }
            }
            // SAFETY: the number is that of the arguments.
            unsafe { $crate::cruby::Method::new($name as *const (), <[&str]>::len(&[$(stringify!($argument)),*]) as _) }
        }
        $crate::cruby::methods! { $($rest)* }
    };
}
pub(crate) use methods;

/// The arguments of a method.
pub(crate) struct Arguments;

impl Arguments {
    /// Runs the body of a method; a panic becomes an exception.
    ///
    /// # Safety
    /// Ruby called the method, with these arguments.
    #[inline(always)]
    pub(crate) unsafe fn run(
        count: c_int,
        first: *const Object,
        body: impl FnOnce(&mut Gvl, &[Object]) -> Object,
    ) -> Object {
        let count = usize::try_from(count).unwrap_or_default();
        let arguments = match count {
            0 => &[],
            // SAFETY: the contract of this function; an Object is a reference as Ruby represents it.
            _ => unsafe { std::slice::from_raw_parts(first, count) },
        };
        Object::raw(run_method(|gvl| body(gvl, arguments)))
    }

    /// Raises `ArgumentError` unless the number of arguments is in range.
    pub(crate) fn check(arguments: &[Object], least: usize, most: usize) {
        let count = arguments.len();
        if count < least || count > most {
            let range = if least == most { format_args!("{least}") } else { format_args!("{least}..{most}") };
            raise(
                classes::argument_error(),
                format_args!("wrong number of arguments (given {count}, expected {range})"),
            );
        }
    }
}

/// A class that is being defined.
#[derive(Clone, Copy)]
pub(crate) struct Class(Object);

impl Class {
    /// Makes the objects of the class hold a `T`.
    pub(crate) fn of<T: Data>(_: &Gvl, class: Object) -> Self {
        // SAFETY: the function makes objects of this class.
        unsafe { rb_define_alloc_func(class.as_raw(), Some(alloc::<T>)) };
        Self(class)
    }

    /// Removes `new`: only native code makes objects of the class.
    pub(crate) fn without_new(_: &Gvl, class: Object) -> Self {
        // SAFETY: a class.
        unsafe { rb_undef_alloc_func(class.as_raw()) };
        Self(class)
    }

    /// Defines a method.
    pub(crate) fn define(self, name: &'static CStr, method: &Method) -> Self {
        // SAFETY: a function that takes this many objects.
        unsafe { rb_define_method(self.0.as_raw(), name.as_ptr(), Some(method.function), method.arguments) };
        self
    }

    /// Defines another name for a method.
    pub(crate) fn alias(self, new: &'static CStr, old: &'static CStr) -> Self {
        alias(self.0, new, old);
        self
    }
}

impl Method {
    /// Defines the method as a function of a module.
    pub(crate) fn define_in(&self, module: Object, name: &'static CStr) {
        // SAFETY: a function that takes this many objects.
        unsafe {
            rb_define_module_function(module.as_raw(), name.as_ptr(), Some(self.function), self.arguments)
        };
    }
}

fn alias(class: Object, new: &CStr, old: &CStr) {
    // SAFETY: both are C strings.
    unsafe { rb_define_alias(class.as_raw(), new.as_ptr(), old.as_ptr()) }
}

/// A class under a module, defined unless it exists. A constant keeps it alive and in place.
pub(crate) fn define_class(_: &Gvl, module: Object, name: &CStr, parent: Object) -> Object {
    // SAFETY: a module, a C string and a class.
    Object::raw(unsafe { rb_define_class_under(module.as_raw(), name.as_ptr(), parent.as_raw()) })
}

/// A module under another one, or at the top level.
pub(crate) fn define_module(_: &Gvl, outer: Option<Object>, name: &CStr) -> Object {
    // SAFETY: a module and a C string.
    Object::raw(unsafe {
        match outer {
            Some(outer) => rb_define_module_under(outer.as_raw(), name.as_ptr()),
            None => rb_define_module(name.as_ptr()),
        }
    })
}

/// Includes a module in a class.
pub(crate) fn include(_: &Gvl, class: Object, module: Object) {
    // SAFETY: a class and a module.
    unsafe { rb_include_module(class.as_raw(), module.as_raw()) };
}

/// A constant that Ractors share although it is not frozen: a mutex protects its contents.
pub(crate) fn define_shared_constant(_: &Gvl, module: Object, name: &CStr, object: Object) {
    // SAFETY: a new object of a type that declares that Ractors may share it; the constant marks it from here
    // on.
    unsafe {
        (*(object.as_raw() as *mut RBasic)).flags |= ruby_fl_type::RUBY_FL_SHAREABLE as VALUE;
        rb_gc_register_mark_object(object.as_raw());
        rb_define_const(module.as_raw(), name.as_ptr(), object.as_raw());
    }
}
