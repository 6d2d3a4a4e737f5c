//! Ruby's own objects: what they are, what is in them, and how they are made.

use std::ffi::{CStr, c_int, c_long};
use std::ops::Deref;

use magnus::Value;
use magnus::rb_sys::{AsRawId, AsRawValue, FromRawValue};
use magnus::value::ReprValue;
use rb_sys::*;

use super::gvl::{Gvl, Objects};

/// Any object. Has to be on the stack, or marked, as long as it is used.
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

/// An Integer that is too large for its reference.
#[derive(Clone, Copy)]
pub(crate) struct Bignum(Object);

/// The name of a method or constant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(ID);

/// What an object is.
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

    /// As magnus has objects.
    pub(crate) fn all(values: &[Value]) -> &[Self] {
        // SAFETY: both are a reference as Ruby has it, and nothing else.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
    }

    #[inline(always)]
    pub(crate) fn is_nil(self) -> bool {
        self == Self::NIL
    }

    /// Whether it is neither nil nor false.
    #[inline]
    pub(crate) fn is_true(self) -> bool {
        TEST(self.0)
    }

    /// Whether it is in the reference itself, so that there is nothing to be freed, and no method can be defined on it alone.
    #[inline]
    pub(crate) fn is_immediate(self) -> bool {
        SPECIAL_CONST_P(self.0)
    }

    /// Keeps it on the stack until here.
    #[inline(always)]
    pub(crate) fn keep(self) {
        std::hint::black_box(self);
    }
}

/// Makes the conversions of a type of object.
macro_rules! is_an_object {
    ($($kind:ident)+) => {
        $(
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

impl Str {
    #[inline(always)]
    pub(super) const fn raw(value: VALUE) -> Self {
        Self(Object(value))
    }
}

impl From<magnus::value::Id> for Id {
    fn from(id: magnus::value::Id) -> Self {
        Self(id.as_raw())
    }
}

impl Id {
    pub(super) const fn as_raw(self) -> ID {
        self.0
    }

    /// The name of these characters.
    pub(crate) fn of(name: &CStr) -> Self {
        // SAFETY: a C string.
        Self(unsafe { rb_intern(name.as_ptr()) })
    }

    /// As a Symbol.
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
    /// Until here the garbage collector must neither free nor move the String.
    #[inline(always)]
    fn drop(&mut self) {
        self.string.keep();
    }
}

impl Objects {
    /// What an object is.
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
        // SAFETY: every object that is not in the reference itself begins with this header.
        Object(unsafe { (*(object.0 as *const RBasic)).klass })
    }

    /// The class of an object.
    pub(crate) fn plain_class_of(&self, object: Object) -> Object {
        // SAFETY: takes any object.
        Object(unsafe { rb_obj_class(object.0) })
    }

    /// Whether a class is a module, or inherits from it.
    pub(crate) fn inherits(&self, class: Object, module: Object) -> bool {
        // SAFETY: raises for what is no class; else looks at its ancestors.
        unsafe { rb_class_inherited_p(class.0, module.0) == Qtrue as VALUE }
    }

    /// Whether an object is of a class or module.
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
        // SAFETY: a String, which nothing changes as long as `self` is borrowed, and which `Bytes` keeps.
        let bytes = unsafe {
            std::slice::from_raw_parts(RSTRING_PTR(string.0.0).cast(), RSTRING_LEN(string.0.0) as usize)
        };
        Bytes { bytes, string: string.0 }
    }

    /// How many bytes a String has.
    #[inline]
    pub(crate) fn bytesize(&self, string: Str) -> usize {
        // SAFETY: a String.
        unsafe { RSTRING_LEN(string.0.0) as usize }
    }

    /// The number of a String's encoding.
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

    /// An item of an Array; nil behind its end.
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

    /// An entry of an options Hash; nil when it is not there.
    pub(crate) fn option(&self, options: Option<Hash>, name: &CStr) -> Object {
        match options {
            // SAFETY: a Hash. A Symbol is hashed without calling a method.
            Some(options) => Object(unsafe { rb_hash_lookup(options.0.0, Id::of(name).symbol().0) }),
            None => Object::NIL,
        }
    }

    /// How many bytes the absolute value of an Integer takes, whether it is negative, and whether it is a power of two that
    /// fills its bytes.
    pub(crate) fn bignum_size(&self, number: Bignum) -> (usize, bool, bool) {
        let mut zeros: c_int = 0;
        // SAFETY: an Integer.
        unsafe {
            let bytes = rb_absint_size(number.0.0, &raw mut zeros) as usize;
            (bytes, RBIGNUM_NEGATIVE_P(number.0.0), zeros == 0)
        }
    }

    /// The value of an Integer; raises `RangeError` when it is too large.
    pub(crate) fn bignum_signed(&self, number: Bignum) -> i64 {
        // SAFETY: an Integer.
        unsafe { rb_big2ll(number.0.0) }
    }

    /// The value of an Integer; raises `RangeError` when it is too large, or negative.
    pub(crate) fn bignum_unsigned(&self, number: Bignum) -> u64 {
        // SAFETY: an Integer.
        unsafe { rb_big2ull(number.0.0) }
    }
}

/// What makes objects, which may collect garbage but runs no Ruby code.
impl Gvl {
    /// An Integer.
    #[inline]
    pub(crate) fn int(&self, value: i64) -> Object {
        // SAFETY: makes an Integer of any value.
        Object(unsafe { rb_ll2inum(value) })
    }

    /// An Integer.
    #[inline]
    pub(crate) fn uint(&self, value: u64) -> Object {
        // SAFETY: makes an Integer of any value.
        Object(unsafe { rb_ull2inum(value) })
    }

    /// A Float.
    #[inline]
    pub(crate) fn float(&self, value: f64) -> Object {
        // SAFETY: makes a Float of any value.
        Object(unsafe { rb_float_new(value) })
    }

    /// A binary String.
    #[inline]
    pub(crate) fn binary(&self, bytes: &[u8]) -> Str {
        // SAFETY: copies `len` bytes from the pointer.
        Str(Object(unsafe { rb_str_new(bytes.as_ptr().cast(), bytes.len() as c_long) }))
    }

    /// A String in UTF-8, valid or not.
    #[inline]
    pub(crate) fn utf8(&self, bytes: &[u8]) -> Str {
        // SAFETY: copies `len` bytes from the pointer.
        Str(Object(unsafe { rb_utf8_str_new(bytes.as_ptr().cast(), bytes.len() as c_long) }))
    }

    /// The one frozen String of these characters, in UTF-8.
    #[inline]
    pub(crate) fn interned(&self, bytes: &[u8]) -> Str {
        // SAFETY: copies `len` bytes from the pointer; the encoding lives for ever.
        Str(Object(unsafe {
            rb_enc_interned_str(bytes.as_ptr().cast(), bytes.len() as c_long, rb_utf8_encoding())
        }))
    }

    /// The Symbol of these characters; raises `EncodingError` when they are not valid UTF-8.
    pub(crate) fn symbol(&self, bytes: &[u8]) -> Object {
        let length = bytes.len() as c_long;
        // SAFETY: copies `len` bytes from the pointer; the encoding lives for ever.
        let known = unsafe { rb_check_symbol_cstr(bytes.as_ptr().cast(), length, rb_utf8_encoding()) };
        if known == Qnil as VALUE { self.symbol_of(self.utf8(bytes)) } else { Object(known) }
    }

    /// The Symbol of a String; raises `EncodingError` when it is not valid.
    pub(crate) fn symbol_of(&self, string: Str) -> Object {
        // SAFETY: a String.
        Object(unsafe { rb_str_intern(string.0.0) })
    }

    /// An empty Array with room for so many items.
    #[inline]
    pub(crate) fn array_with_room(&self, items: usize) -> Array {
        // SAFETY: makes an Array, or raises.
        Array(Object(unsafe { rb_ary_new_capa(items as c_long) }))
    }

    /// An Array.
    pub(crate) fn array(&self, items: &[Object]) -> Array {
        // SAFETY: live objects, as many as said.
        Array(Object(unsafe { rb_ary_new_from_values(items.len() as c_long, items.as_ptr().cast()) }))
    }

    /// Appends to an Array; raises when that is frozen.
    #[inline]
    pub(crate) fn extend(&self, array: Array, items: &[Object]) {
        // SAFETY: an Array, and as many live objects as said.
        unsafe { rb_ary_cat(array.0.0, items.as_ptr().cast(), items.len() as c_long) };
    }

    /// Appends an item to an Array, of which that is checked; raises when it is frozen.
    pub(crate) fn push(&self, array: Object, item: Object) {
        if let Kind::Array(array) = self.objects.kind(array) {
            self.extend(array, &[item]);
        }
    }

    /// An empty Hash with room for so many entries.
    #[inline]
    pub(crate) fn hash_with_room(&self, entries: usize) -> Hash {
        // SAFETY: makes a Hash, or raises.
        Hash(Object(unsafe { rb_hash_new_capa(entries as c_long) }))
    }

    /// A copy of a Hash.
    pub(crate) fn hash_dup(&self, hash: Hash) -> Hash {
        // SAFETY: a Hash.
        Hash(Object(unsafe { rb_hash_dup(hash.0.0) }))
    }

    /// The object, frozen.
    #[inline]
    pub(crate) fn frozen(&self, object: Object) -> Object {
        // SAFETY: a live object.
        unsafe { rb_obj_freeze(object.0) };
        object
    }
}

/// What may run Ruby code.
impl Gvl {
    /// A String, or what `to_str` makes of the object; raises `TypeError` for others.
    pub(crate) fn coerce_str(&mut self, object: Object) -> Str {
        let mut value = object.0;
        // SAFETY: takes any object.
        Str(Object(unsafe { rb_string_value(&raw mut value) }))
    }

    /// What `to_s` makes of the object.
    pub(crate) fn display(&mut self, object: Object) -> Str {
        // SAFETY: takes any object.
        Str(Object(unsafe { rb_obj_as_string(object.0) }))
    }

    /// The String in another encoding, the one with this number; raises where that cannot be.
    pub(crate) fn encode(&mut self, string: Str, encoding: c_int) -> Str {
        // SAFETY: a String, and an encoding of Ruby's own.
        Str(Object(unsafe {
            let encoding = rb_enc_from_encoding(rb_enc_from_index(encoding));
            rb_str_encode(string.0.0, encoding, 0, Qnil as VALUE)
        }))
    }

    /// A number as a Float; raises for what is none.
    pub(crate) fn coerce_f64(&mut self, object: Object) -> f64 {
        // SAFETY: takes any object.
        unsafe { rb_num2dbl(object.0) }
    }

    /// A number; raises for what is none, or too large.
    pub(crate) fn coerce_i64(&mut self, object: Object) -> i64 {
        // SAFETY: takes any object.
        unsafe { rb_num2long(object.0) }
    }

    /// A number; raises for what is none, or too large.
    pub(crate) fn coerce_usize(&mut self, object: Object) -> usize {
        // SAFETY: takes any object.
        unsafe { rb_num2ulong(object.0) as usize }
    }

    /// A C `int`; raises for what is none, or too large.
    #[allow(clippy::cast_possible_truncation, reason = "the function has checked that it is an `int`")]
    pub(crate) fn coerce_i32(&mut self, object: Object) -> i32 {
        // SAFETY: takes any object.
        unsafe { rb_num2int(object.0) as i32 }
    }

    /// A number of 32 bits; raises for what is none, or too large.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the function has checked that it is an `unsigned int`"
    )]
    pub(crate) fn coerce_u32(&mut self, object: Object) -> u32 {
        // SAFETY: takes any object.
        unsafe { rb_num2uint(object.0) as u32 }
    }

    /// The name that a Symbol or String is; raises for others.
    pub(crate) fn coerce_id(&mut self, object: Object) -> Id {
        // SAFETY: takes any object.
        Id(unsafe { rb_to_id(object.0) })
    }

    /// Puts an entry into a Hash, which may call the key's `hash` and `eql?`.
    pub(crate) fn insert(&mut self, hash: Hash, key: Object, value: Object) {
        // SAFETY: a Hash and live objects.
        unsafe { rb_hash_aset(hash.0.0, key.0, value.0) };
    }

    /// Puts keys and values, which follow each other, into a Hash.
    #[inline]
    pub(crate) fn insert_all(&mut self, hash: Hash, objects: &[Object]) {
        // SAFETY: a Hash, and as many live objects as said.
        unsafe { rb_hash_bulk_insert(objects.len() as c_long, objects.as_ptr().cast(), hash.0.0) };
    }

    /// A constant of a module.
    pub(crate) fn constant(&mut self, module: Object, name: Id) -> Object {
        // SAFETY: a live module, or it raises.
        Object(unsafe { rb_const_get(module.0, name.0) })
    }

    /// The class of this full name.
    pub(crate) fn class_named(&mut self, name: &CStr) -> Object {
        // SAFETY: a C string.
        Object(unsafe { rb_path2class(name.as_ptr()) })
    }
}

/// Classes of Ruby's, which live for ever.
pub(crate) mod classes {
    use super::Object;

    macro_rules! classes {
        ($($name:ident = $variable:ident,)+) => {
            $(
                #[inline]
                pub(crate) fn $name() -> Object {
                    // SAFETY: reads a class, which Ruby set before it loaded any extension.
                    Object(unsafe { rb_sys::$variable })
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
}

/// The numbers of Ruby's own encodings.
pub(crate) mod encodings {
    use std::ffi::c_int;

    pub(crate) fn utf8() -> c_int {
        // SAFETY: asks for a number.
        unsafe { rb_sys::rb_utf8_encindex() }
    }

    pub(crate) fn us_ascii() -> c_int {
        // SAFETY: asks for a number.
        unsafe { rb_sys::rb_usascii_encindex() }
    }

    pub(crate) fn binary() -> c_int {
        // SAFETY: asks for a number.
        unsafe { rb_sys::rb_ascii8bit_encindex() }
    }
}
