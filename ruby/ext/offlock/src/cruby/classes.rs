//! Ruby's own classes, which live forever.

use super::object::Object;

macro_rules! classes {
    ($($name:ident = $variable:ident,)+) => {
        $(
            #[inline]
            pub(crate) fn $name() -> Object {
                // SAFETY: reads a class, which Ruby set before it loaded any extension.
                Object::raw(unsafe { rb_sys::$variable })
            }
        )+
    };
}

classes! {
    array = rb_cArray,
    hash = rb_cHash,
    module = rb_cModule,
    numeric = rb_cNumeric,
    object = rb_cObject,
    string = rb_cString,
    symbol = rb_cSymbol,
    argument_error = rb_eArgError,
    eof_error = rb_eEOFError,
    fatal = rb_eFatal,
    frozen_error = rb_eFrozenError,
    no_memory_error = rb_eNoMemError,
    range_error = rb_eRangeError,
    standard_error = rb_eStandardError,
    system_stack_error = rb_eSysStackError,
    type_error = rb_eTypeError,
}
