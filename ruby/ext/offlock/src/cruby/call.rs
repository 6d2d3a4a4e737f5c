//! Operations that need the interpreter lock: calling methods, raising exceptions, letting other threads run.

use std::any::Any;
use std::ffi::{c_int, c_long};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use magnus::error::ErrorType;
use magnus::rb_sys::{FromRawValue, protect};
use magnus::value::ReprValue;
use magnus::{Error, Ruby, Value};
use rb_sys::*;

use super::classes;
use super::gvl::Gvl;
use super::object::{Id, Kind, Object, Str};
use crate::region::{self, Yielder};

impl Gvl {
    /// Calls a method.
    pub(crate) fn call(&mut self, object: Object, name: Id, arguments: &[Object]) -> Object {
        let (count, first) = (arguments.len() as c_int, arguments.as_ptr().cast());
        // SAFETY: live objects, and their number.
        Object::raw(unsafe { rb_funcallv(object.as_raw(), name.as_raw(), count, first) })
    }

    /// Calls a method with the arguments of the running method, keywords as keywords.
    pub(crate) fn forward(&mut self, receiver: Object, method: Id, arguments: &[Object]) -> Object {
        let (count, first) = (arguments.len() as c_int, arguments.as_ptr().cast());
        // SAFETY: live objects, and their number.
        Object::raw(unsafe {
            rb_funcallv_kw(receiver.as_raw(), method.as_raw(), count, first, has_keywords().into())
        })
    }

    /// Writes objects to an object that has `write`, as `IO#print` does.
    pub(crate) fn print_to(&mut self, writer: Object, objects: &[Object]) -> Object {
        // SAFETY: live objects, and their number.
        Object::raw(unsafe { rb_io_print(objects.len() as c_int, objects.as_ptr().cast(), writer.as_raw()) })
    }

    /// Writes objects to an object that has `write`, as `IO#puts` does.
    pub(crate) fn puts_to(&mut self, writer: Object, objects: &[Object]) -> Object {
        // SAFETY: live objects, and their number.
        Object::raw(unsafe { rb_io_puts(objects.len() as c_int, objects.as_ptr().cast(), writer.as_raw()) })
    }

    /// Sets instance variables.
    pub(crate) fn set_variables(&mut self, object: Object, variables: &[(Id, Object)]) {
        for (name, value) in variables {
            // SAFETY: live objects; raises if the object is frozen.
            unsafe { rb_ivar_set(object.as_raw(), name.as_raw(), value.as_raw()) };
        }
    }

    /// Sets the caller's `$_`.
    pub(crate) fn set_last_line(&mut self, line: Object) {
        // SAFETY: a live object.
        unsafe { rb_lastline_set(line.as_raw()) };
    }

    /// The default external encoding.
    pub(crate) fn external_encoding(&self) -> Object {
        // SAFETY: Ruby always has one.
        Object::raw(unsafe { rb_enc_default_external() })
    }

    /// A part of a String, which shares its bytes where Ruby does so.
    pub(crate) fn part(&self, string: Str, from: usize, length: usize) -> Str {
        // SAFETY: a String, for which Ruby checks that the part exists.
        Str::raw(unsafe { rb_str_subseq(Object::from(string).as_raw(), from as c_long, length as c_long) })
    }

    /// Calls a Proc.
    pub(crate) fn call_proc(&mut self, block: Object, arguments: &[Object]) -> Object {
        let (count, first) = (arguments.len() as c_int, arguments.as_ptr().cast());
        // SAFETY: a live object, for which Ruby checks that it is a Proc, live arguments, and their number.
        Object::raw(unsafe { rb_proc_call_with_block(block.as_raw(), count, first, Qnil as VALUE) })
    }

    /// Calls the block of the running method.
    pub(crate) fn yield_value(&mut self, object: Object) -> Object {
        // SAFETY: a live object; raises if there is no block.
        Object::raw(unsafe { rb_yield(object.as_raw()) })
    }

    /// The block of the running method, as a Proc.
    pub(crate) fn block(&mut self) -> Option<Object> {
        // SAFETY: reads the block of the running method, if it has one.
        unsafe { (rb_block_given_p() != 0).then(|| Object::raw(rb_block_proc())) }
    }

    /// Returns whether an object responds to a public method.
    pub(crate) fn responds_to(&mut self, object: Object, name: Id) -> bool {
        // SAFETY: a live object.
        unsafe { rb_respond_to(object.as_raw(), name.as_raw()) != 0 }
    }

    /// Returns whether an object responds to a method, including private ones.
    pub(crate) fn has_method(&mut self, object: Object, name: Id) -> bool {
        // SAFETY: a live object.
        unsafe { rb_obj_respond_to(object.as_raw(), name.as_raw(), 1) != 0 }
    }

    /// Calls `body`, then `after`, also when `body` raises.
    pub(crate) fn ensure<B: FnMut(&mut Self) -> Object>(
        &mut self,
        mut body: B,
        after: impl FnOnce(&mut Self),
    ) -> Object {
        unsafe extern "C" fn call<B: FnMut(&mut Gvl) -> Object>(body: VALUE) -> VALUE {
            // SAFETY: the address that is passed below, of a value that outlives the call; the lock is held,
            // and the caller's proof is not used in the meantime.
            unsafe { (*(body as *mut B))(&mut Gvl::held()) }.as_raw()
        }
        let mut state = 0;
        // SAFETY: `body` outlives the call. An exception propagates after `after`.
        unsafe {
            let result = rb_protect(Some(call::<B>), (&raw mut body) as VALUE, &raw mut state);
            after(self);
            if state != 0 {
                rb_jump_tag(state);
            }
            Object::raw(result)
        }
    }

    /// A member of a Struct; raises if the Struct has no such index.
    pub(crate) fn member(&mut self, structure: Object, index: i64) -> Object {
        let index = self.int(index);
        if !matches!(self.objects.kind(structure), Kind::Struct) {
            raise(classes::type_error(), format_args!("not a Struct"));
        }
        // SAFETY: a Struct.
        Object::raw(unsafe { rb_struct_aref(structure.as_raw(), index.as_raw()) })
    }

    /// Raises an exception.
    pub(crate) fn raise_object(&mut self, exception: Object) -> ! {
        // SAFETY: raises `TypeError` if it is not an exception. This module's rule is that no frame owns a
        // value that needs dropping.
        unsafe { rb_exc_raise(exception.as_raw()) }
    }

    /// Lets other threads run between two calls if the time slice is over, and handles interrupts, which may
    /// raise.
    #[inline]
    pub(crate) fn yield_between_calls(&mut self) {
        // SAFETY: the lock is held. This module's rule is that no frame owns a value that needs dropping.
        unsafe { region::yield_between_calls_or_raise() };
    }

    /// Lets other threads run in the middle of a call if the time slice is over, and handles interrupts,
    /// which may raise.
    #[cold]
    pub(crate) fn yield_in_call(&mut self, yielder: &mut Yielder) {
        // SAFETY: as in `yield_between_calls`.
        unsafe { yielder.yield_or_raise() };
    }

    /// Counts work, and lets other threads run when it is time.
    #[inline]
    pub(crate) fn tick(&mut self, yielder: &mut Yielder, work: usize) {
        if yielder.is_due(work) {
            self.yield_in_call(yielder);
        }
    }

    /// Raises `SystemStackError` before the stack overflows.
    #[inline]
    pub(crate) fn check_stack(&self) {
        // SAFETY: compares the stack pointer with the end of this thread's or fiber's stack.
        if unsafe { ruby_stack_check() } != 0 {
            raise(classes::system_stack_error(), format_args!("stack level too deep"));
        }
    }
}

/// Returns whether the last argument of the running method consists of keywords.
pub(crate) fn has_keywords() -> bool {
    // SAFETY: reads the frame of the running method, if there is one.
    unsafe { rb_keyword_given_p() != 0 }
}

/// The line separator, `$/`, which Ruby programs can read only in the main Ractor.
#[allow(deprecated, reason = "what is deprecated is to change it; the original reads it here, too")]
pub(crate) fn line_separator(_ruby: &Ruby) -> Object {
    // SAFETY: a thread that has a `Ruby` holds the lock; the variable always holds a value.
    Object::raw(unsafe { rb_rs })
}

/// Reports to the garbage collector that memory outside of objects was allocated or freed. The lock is held.
pub(crate) fn adjust_memory(difference: isize) {
    // SAFETY: adds to a counter, which is allowed while the collector frees objects, too.
    unsafe { rb_gc_adjust_memory_usage(difference as ssize_t) };
}

/// Raises an exception of `class`.
#[cold]
pub(crate) fn raise(class: Object, message: fmt::Arguments<'_>) -> ! {
    raise_owned(class, message.to_string())
}

/// Raises an exception of `class` with a message, which is dropped first.
#[cold]
pub(crate) fn raise_owned(class: Object, text: String) -> ! {
    // SAFETY: copies `len` bytes from the pointer into a new String.
    let exception = unsafe { rb_exc_new(class.as_raw(), text.as_ptr().cast(), text.len() as _) };
    drop(text);
    // SAFETY: this frame owns no value that needs dropping, and this module's rule demands the same of its
    // callers.
    unsafe { rb_exc_raise(exception) }
}

/// Runs `body`, and returns its exception as an error.
pub(crate) fn catch(_ruby: &Ruby, body: impl FnOnce(&mut Gvl) -> Object) -> Result<Value, Error> {
    // SAFETY: a thread that has a `Ruby` holds the lock; only the body uses this proof.
    let object = protect(|| body(&mut unsafe { Gvl::held() }).as_raw())?;
    // SAFETY: Ruby just returned this value.
    Ok(unsafe { Value::from_raw(object) })
}

/// Drops an error that is not going to be raised.
///
/// While a `NoMemoryError` propagates, Ruby handles no interrupts, and ends the process if memory is
/// exhausted again. Ruby considers the error handled when Ruby code rescues it, or when another exception is
/// raised. So this function raises the error once more and catches it.
pub(crate) fn forget(error: Error) {
    if let ErrorType::Exception(exception) = error.error_type() {
        let exception = exception.as_value();
        let raised = catch(&Ruby::get_with(exception), |gvl| gvl.raise_object(Object::of(exception)));
        drop(raised);
    }
}

/// Runs the body of a method that Ruby called; a panic becomes an exception.
#[inline(always)]
pub(super) fn run_method(body: impl FnOnce(&mut Gvl) -> Object) -> VALUE {
    // SAFETY: Ruby calls methods with the lock held, and each call gets its own proof.
    match catch_unwind(AssertUnwindSafe(|| body(&mut unsafe { Gvl::held() }))) {
        Ok(object) => object.as_raw(),
        Err(panic) => panicked(panic),
    }
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> ! {
    drop(panic);
    raise(classes::fatal(), format_args!("the native code panicked"))
}
