//! Methods that do the frequent case, and leave the others to a method in Ruby.

use magnus::rb_sys::{AsRawId, AsRawValue, FromRawValue, protect};
use magnus::value::LazyId;
use magnus::{Error, Ruby, Value};

/// Whether the last argument of the running method is made of keywords.
pub(super) fn with_keywords() -> bool {
    // SAFETY: called with the lock held, by a method that Ruby called.
    unsafe { rb_sys::rb_keyword_given_p() != 0 }
}

/// Calls another method of `receiver` with the arguments that the present one was called with, keywords as keywords.
pub(super) fn forward(
    ruby: &Ruby,
    receiver: Value,
    method: &'static LazyId,
    arguments: &[Value],
) -> Result<Value, Error> {
    let method = LazyId::get_inner_with(method, ruby).as_raw();
    let count = arguments.len() as std::ffi::c_int;
    let keywords = with_keywords().into();
    let result = protect(|| {
        // SAFETY: called with the lock held, with the arguments of the running method, which its caller keeps alive; `Value`
        // is a reference as Ruby has it. What is raised is caught here.
        unsafe {
            rb_sys::rb_funcallv_kw(receiver.as_raw(), method, count, arguments.as_ptr().cast(), keywords)
        }
    })?;
    // SAFETY: Ruby just returned this value.
    Ok(unsafe { Value::from_raw(result) })
}
