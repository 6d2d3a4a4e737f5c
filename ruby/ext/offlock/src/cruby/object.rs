//! Ruby's own objects: their types, their contents, and how they are made.

use std::ffi::{CStr, c_int};
use std::ops::Deref;

use magnus::Value;
use magnus::rb_sys::{AsRawId, AsRawValue, FromRawValue};
use magnus::value::ReprValue;
use rb_sys::*;

use super::gvl::Objects;

/// Any object. Must be on the stack, or marked, as long as it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Object(VALUE);

/// A String.
#[derive(Clone, Copy)]
pub(crate) struct Str(Object);

/// An Array.
#[derive(Clone, Copy)]
pub(crate) struct Array(Object);

/// A Hash.
#[derive(Clone, Copy)]
pub(crate) struct Hash(Object);

/// A Symbol.
#[derive(Clone, Copy)]
pub(crate) struct Symbol(Object);

/// An Integer that is too large for an immediate value.
#[derive(Clone, Copy)]
pub(crate) struct Bignum(Object);

/// The name of a method or constant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(ID);

/// The type of an object.
pub(crate) enum Kind {
    Nil,
    True,
    False,
    Fixnum(i64),
    Bignum(Bignum),
    Float,
    Str(Str),
    Symbol(Symbol),
    Array(Array),
    Hash(Hash),
    Struct,
    Other,
}

impl Object {
    pub(crate) const NIL: Self = Self(Qnil as VALUE);
    pub(crate) const TRUE: Self = Self(Qtrue as VALUE);
    pub(crate) const FALSE: Self = Self(Qfalse as VALUE);

    #[inline(always)]
    pub(super) const fn raw(value: VALUE) -> Self {
        Self(value)
    }

    #[inline(always)]
    pub(super) const fn as_raw(self) -> VALUE {
        self.0
    }

    /// An object of magnus.
    pub(crate) fn of(value: impl ReprValue) -> Self {
        Self(value.as_raw())
    }

    /// The object for magnus.
    pub(crate) fn value(self) -> Value {
        // SAFETY: an object.
        unsafe { Value::from_raw(self.0) }
    }

    #[inline]
    pub(crate) const fn bool(value: bool) -> Self {
        if value { Self::TRUE } else { Self::FALSE }
    }

    /// An Integer of at most 62 bits.
    #[inline(always)]
    pub(crate) const fn fixnum(value: i64) -> Self {
        Self((value as VALUE) << 1 | ruby_special_consts::RUBY_FIXNUM_FLAG as VALUE)
    }

    /// Views values of magnus as objects.
    pub(crate) fn all(values: &[Value]) -> &[Self] {
        // SAFETY: both are a reference as Ruby represents it, and nothing else.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
    }

    #[inline(always)]
    pub(crate) fn is_nil(self) -> bool {
        self == Self::NIL
    }

    /// Returns whether it is neither nil nor false.
    #[inline]
    pub(crate) fn is_true(self) -> bool {
        TEST(self.0)
    }

    /// Returns whether it is an immediate value, which needs no memory and cannot have singleton methods.
    #[inline]
    pub(crate) fn is_immediate(self) -> bool {
        SPECIAL_CONST_P(self.0)
    }

    /// Keeps the object on the stack until here.
    #[inline(always)]
    pub(crate) fn keep(self) {
        std::hint::black_box(self);
    }
}

/// Makes the conversions of a type of object.
macro_rules! is_an_object {
    ($($kind:ident)+) => {
        $(
            impl $kind {
                #[inline(always)]
                #[allow(dead_code, reason = "of some types no objects are made")]
                pub(super) const fn raw(value: VALUE) -> Self {
                    Self(Object(value))
                }

                #[inline(always)]
                #[allow(dead_code, reason = "some types are only read")]
                pub(super) const fn as_raw(self) -> VALUE {
                    self.0.0
                }
            }

            impl From<$kind> for Object {
                #[inline(always)]
                fn from(object: $kind) -> Self {
                    object.0
                }
            }
        )+
    };
}

is_an_object!(Str Array Hash Symbol Bignum);

impl From<magnus::value::Id> for Id {
    fn from(id: magnus::value::Id) -> Self {
        Self(id.as_raw())
    }
}

impl Id {
    pub(super) const fn raw(id: ID) -> Self {
        Self(id)
    }

    pub(super) const fn as_raw(self) -> ID {
        self.0
    }

    /// The name with these characters.
    pub(crate) fn of(name: &CStr) -> Self {
        // SAFETY: a C string.
        Self(unsafe { rb_intern(name.as_ptr()) })
    }

    /// The name as a Symbol.
    pub(crate) fn symbol(self) -> Object {
        // SAFETY: an existing name.
        Object(unsafe { rb_id2sym(self.0) })
    }
}

/// The bytes of a String, which is on the stack until they are dropped.
pub(crate) struct Bytes<'a> {
    bytes: &'a [u8],
    string: Object,
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Bytes<'_> {
    /// The garbage collector must neither free nor move the String before this point.
    #[inline(always)]
    fn drop(&mut self) {
        self.string.keep();
    }
}

impl Objects {
    /// The type of an object.
    #[inline(always)]
    pub(crate) fn kind(&self, object: Object) -> Kind {
        // SAFETY: reads the tag, or the header, of a live object.
        match unsafe { RB_TYPE(object.0) } {
            ruby_value_type::RUBY_T_STRING => Kind::Str(Str(object)),
            // SAFETY: a Fixnum.
            ruby_value_type::RUBY_T_FIXNUM => Kind::Fixnum(unsafe { FIX2LONG(object.0) }),
            ruby_value_type::RUBY_T_HASH => Kind::Hash(Hash(object)),
            ruby_value_type::RUBY_T_ARRAY => Kind::Array(Array(object)),
            ruby_value_type::RUBY_T_SYMBOL => Kind::Symbol(Symbol(object)),
            ruby_value_type::RUBY_T_FLOAT => Kind::Float,
            ruby_value_type::RUBY_T_NIL => Kind::Nil,
            ruby_value_type::RUBY_T_TRUE => Kind::True,
            ruby_value_type::RUBY_T_FALSE => Kind::False,
            ruby_value_type::RUBY_T_BIGNUM => Kind::Bignum(Bignum(object)),
            ruby_value_type::RUBY_T_STRUCT => Kind::Struct,
            _ => Kind::Other,
        }
    }

    /// The object, if it is a String.
    #[inline]
    pub(crate) fn str(&self, object: Object) -> Option<Str> {
        match self.kind(object) {
            Kind::Str(string) => Some(string),
            _ => None,
        }
    }

    /// The object, if it is a Hash.
    pub(crate) fn hash(&self, object: Object) -> Option<Hash> {
        match self.kind(object) {
            Kind::Hash(hash) => Some(hash),
            _ => None,
        }
    }

    /// Whether the object is a Symbol.
    pub(crate) fn is_symbol(&self, object: Object) -> bool {
        matches!(self.kind(object), Kind::Symbol(_))
    }

    /// The class of an object, or its singleton class if it has one.
    #[inline(always)]
    pub(crate) fn class_of(&self, object: Object) -> Object {
        if object.is_immediate() {
            return self.plain_class_of(object);
        }
        // SAFETY: every object that is not an immediate value begins with this header.
        Object(unsafe { (*(object.0 as *const RBasic)).klass })
    }

    /// The class of an object.
    pub(crate) fn plain_class_of(&self, object: Object) -> Object {
        // SAFETY: takes any object.
        Object(unsafe { rb_obj_class(object.0) })
    }

    /// Returns whether a class is a module, or inherits from it.
    pub(crate) fn inherits(&self, class: Object, module: Object) -> bool {
        // SAFETY: raises if it is no class; otherwise reads its ancestors.
        unsafe { rb_class_inherited_p(class.0, module.0) == Qtrue as VALUE }
    }

    /// Returns whether an object is an instance of a class or module.
    pub(crate) fn is_a(&self, object: Object, module: Object) -> bool {
        // SAFETY: live objects.
        unsafe { rb_obj_is_kind_of(object.0, module.0) == Qtrue as VALUE }
    }

    /// The name of an object's class.
    pub(crate) fn class_name(&self, object: Object) -> String {
        // SAFETY: the name is a C string that lives as long as the class.
        unsafe { CStr::from_ptr(rb_obj_classname(object.0)) }.to_string_lossy().into_owned()
    }

    pub(crate) fn is_frozen(&self, object: Object) -> bool {
        // SAFETY: reads the header of a live object.
        unsafe { rb_obj_frozen_p(object.0) == Qtrue as VALUE }
    }

    /// The bytes of a String.
    #[inline(always)]
    pub(crate) fn bytes(&self, string: Str) -> Bytes<'_> {
        // SAFETY: a String, which cannot change as long as `self` is borrowed, and which `Bytes` keeps alive.
        let bytes = unsafe {
            std::slice::from_raw_parts(RSTRING_PTR(string.0.0).cast(), RSTRING_LEN(string.0.0) as usize)
        };
        Bytes { bytes, string: string.0 }
    }

    /// The length of a String in bytes.
    #[inline]
    pub(crate) fn bytesize(&self, string: Str) -> usize {
        // SAFETY: a String.
        unsafe { RSTRING_LEN(string.0.0) as usize }
    }

    /// The index of a String's encoding.
    #[inline(always)]
    pub(crate) fn encoding(&self, string: Str) -> c_int {
        // SAFETY: a String.
        unsafe { ENCODING_GET(string.0.0) }
    }

    /// The name of a Symbol.
    #[inline]
    pub(crate) fn name(&self, symbol: Symbol) -> Str {
        // SAFETY: a Symbol.
        Str(Object(unsafe { rb_sym2str(symbol.0.0) }))
    }

    #[inline(always)]
    pub(crate) fn array_len(&self, array: Array) -> usize {
        // SAFETY: an Array.
        unsafe { RARRAY_LEN(array.0.0) as usize }
    }

    /// An item of an Array; nil past its end.
    #[inline(always)]
    pub(crate) fn item(&self, array: Array, index: usize) -> Object {
        // SAFETY: an Array, and an index inside of it.
        unsafe {
            if index < RARRAY_LEN(array.0.0) as usize {
                Object(*RARRAY_CONST_PTR(array.0.0).add(index))
            } else {
                Object::NIL
            }
        }
    }

    #[inline]
    pub(crate) fn hash_len(&self, hash: Hash) -> usize {
        // SAFETY: a Hash.
        unsafe { RHASH_SIZE(hash.0.0) as usize }
    }

    /// A value of a Hash of options; nil when the key is missing.
    pub(crate) fn option(&self, options: Option<Hash>, name: &CStr) -> Object {
        match options {
            // SAFETY: a Hash. A Symbol is hashed without calling a method.
            Some(options) => Object(unsafe { rb_hash_lookup(options.0.0, Id::of(name).symbol().0) }),
            None => Object::NIL,
        }
    }

    /// The number of bytes that the absolute value of an Integer needs, whether the Integer is negative, and
    /// whether it is a power of two that fills its bytes.
    pub(crate) fn bignum_size(&self, number: Bignum) -> (usize, bool, bool) {
        let mut zeros: c_int = 0;
        // SAFETY: an Integer.
        unsafe {
            let bytes = rb_absint_size(number.0.0, &raw mut zeros) as usize;
            (bytes, RBIGNUM_NEGATIVE_P(number.0.0), zeros == 0)
        }
    }

    /// The value of an Integer; raises `RangeError` if it is too large.
    pub(crate) fn bignum_signed(&self, number: Bignum) -> i64 {
        // SAFETY: an Integer.
        unsafe { rb_big2ll(number.0.0) }
    }

    /// The value of an Integer; raises `RangeError` if it is too large or negative.
    pub(crate) fn bignum_unsigned(&self, number: Bignum) -> u64 {
        // SAFETY: an Integer.
        unsafe { rb_big2ull(number.0.0) }
    }
}
