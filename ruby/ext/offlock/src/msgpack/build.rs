//! Makes Ruby objects from a message, or from its tape.
//!
//! Containers nest at most 128 levels deep, as in msgpack, so this may recurse: what is being made is then on the
//! machine stack, where the garbage collector finds it.

use std::ffi::c_long;
use std::sync::Arc;

use offlock_core::msgpack::{Error, ErrorKind, Limits, ShortKey, Token};
use rb_sys::*;

use super::globals::globals;
use super::input::Input;
use super::key_cache::{self, KeyCache};
use super::registry::{Callable, UnpackEntry};
use super::unpacker::Unpacker;
use crate::cruby::raw::{self as rb, NIL};
use crate::region::Pace;

/// The depth of nesting that msgpack allows.
pub(super) const MAX_DEPTH: usize = 128;

/// The limits of a message: those of the format, apart from the depth.
pub(super) const LIMITS: Limits = Limits::depth(MAX_DEPTH);

/// How objects are made.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) symbolize_keys: bool,
    pub(super) freeze: bool,
    pub(super) allow_unknown_ext: bool,
    pub(super) key_cache: bool,
}

/// Makes objects from `source`.
pub(super) struct Builder<S> {
    pub(super) source: S,
    options: Options,
    /// The unpacker whose types are known, or null. They are asked for anew each time: Ruby code may register others.
    types: *mut Unpacker,
    /// Keys that were made already: null until the first key.
    keys: *mut KeyCache,
    pace: Pace,
    /// What was copied and not yet counted as work.
    copied: usize,
}

impl<'s, S: Input<'s>> Builder<S> {
    /// A builder with the types of an unpacker, or with none if that is null.
    ///
    /// # Safety
    /// `types` is null or what a live object holds, for as long as the builder lives, which is on the stack.
    pub(super) unsafe fn new(source: S, options: Options, types: *mut Unpacker) -> Self {
        Self { source, options, types, keys: std::ptr::null_mut(), pace: Pace::new(), copied: 0 }
    }

    /// Runs what may do anything to what the message is in: Ruby code, and other threads.
    #[inline]
    fn outside<T>(&mut self, run: impl FnOnce(&mut Pace) -> T) -> T {
        self.source.suspend();
        let result = run(&mut self.pace);
        self.source.resume();
        result
    }

    /// Makes the next object. `depth` is the number of containers around it.
    #[inline]
    pub(super) fn value(&mut self, depth: usize) -> VALUE {
        match self.source.next() {
            Ok(token) => self.token(token, depth),
            Err(error) => self.fail(error),
        }
    }

    #[inline]
    fn token(&mut self, token: Token<'_>, depth: usize) -> VALUE {
        match token {
            Token::Nil => NIL,
            Token::Bool(true) => rb::TRUE,
            Token::Bool(false) => rb::FALSE,
            Token::Int(value) => rb::int(value),
            // SAFETY: makes an Integer of any value.
            Token::UInt(value) => unsafe { rb_ull2inum(value) },
            // SAFETY: makes a Float of any value.
            Token::F32(value) => unsafe { rb_float_new(value.into()) },
            // SAFETY: makes a Float of any value.
            Token::F64(value) => unsafe { rb_float_new(value) },
            Token::Str(bytes) => self.string(bytes),
            Token::Bin(bytes) => self.binary(bytes),
            Token::Ext(kind, payload) => self.extension(kind, payload, depth),
            Token::Array(length) => self.array(length as usize, depth),
            Token::Map(length) => self.hash(length as usize, depth),
        }
    }

    #[inline]
    fn string(&mut self, bytes: &[u8]) -> VALUE {
        self.copied += bytes.len();
        if self.options.freeze {
            return interned(bytes);
        }
        // SAFETY: copies `len` bytes from the pointer.
        unsafe { rb_utf8_str_new(bytes.as_ptr().cast(), bytes.len() as c_long) }
    }

    fn binary(&mut self, bytes: &[u8]) -> VALUE {
        self.copied += bytes.len();
        self.frozen(rb::binary(bytes))
    }

    /// The object, frozen if the options say so.
    #[inline]
    fn frozen(&self, object: VALUE) -> VALUE {
        if self.options.freeze {
            // SAFETY: a live object.
            unsafe { rb_obj_freeze(object) };
        }
        object
    }

    fn array(&mut self, length: usize, depth: usize) -> VALUE {
        self.check_container(length as u64, depth);
        // SAFETY: the length is that of what is there.
        let array = unsafe { rb_ary_new_capa(length.min(self.source.share(depth)) as c_long) };
        let mut chunk = [NIL; CHUNK];
        let mut left = length;
        while left > 0 {
            let items = left.min(CHUNK);
            for place in &mut chunk[..items] {
                *place = self.value(depth + 1);
            }
            // SAFETY: an Array, and as many live objects as said.
            unsafe { rb_ary_cat(array, chunk.as_ptr(), items as c_long) };
            self.pause(items);
            left -= items;
        }
        self.frozen(array)
    }

    fn hash(&mut self, length: usize, depth: usize) -> VALUE {
        self.check_container(length as u64 * 2, depth);
        // SAFETY: the length is that of what is there.
        let hash = unsafe { rb_hash_new_capa(length.min(self.source.share(depth) / 2) as c_long) };
        let mut chunk = [NIL; CHUNK];
        let mut types_of_keys = KeyTypes::default();
        let mut left = length;
        while left > 0 {
            let entries = left.min(CHUNK / 2);
            for place in chunk[..entries * 2].chunks_exact_mut(2) {
                place[0] = self.key(depth + 1, &mut types_of_keys);
                place[1] = self.value(depth + 1);
            }
            let insert = || insert(hash, &chunk[..entries * 2], left == length);
            if types_of_keys.compare_natively() {
                insert()
            } else {
                self.outside(|_| insert())
            }
            self.pause(entries * 2);
            left -= entries;
        }
        self.frozen(hash)
    }

    #[inline]
    fn check_container(&mut self, values: u64, depth: usize) {
        if values > self.source.room() as u64 {
            self.fail(Error { kind: ErrorKind::Truncated, offset: self.source.offset() });
        }
        if values > 0 && depth >= MAX_DEPTH {
            self.fail(Error { kind: ErrorKind::TooDeep(MAX_DEPTH), offset: self.source.offset() });
        }
    }

    /// Counts what was made; now and then other threads get the lock, and interrupts are handled.
    #[inline]
    fn pause(&mut self, values: usize) {
        let work = values + Pace::copying(std::mem::take(&mut self.copied));
        if self.pace.is_due(work) {
            // SAFETY: nothing here needs dropping, and what other threads do to the message is looked for afterwards.
            self.outside(|pace| unsafe { pace.yield_or_raise() });
        }
    }

    /// Makes a key of a Hash, and notes of what kind it is.
    #[inline]
    fn key(&mut self, depth: usize, types_of_keys: &mut KeyTypes) -> VALUE {
        match self.source.next() {
            Ok(Token::Str(bytes)) => {
                let key = self.string_key(bytes);
                if self.options.symbolize_keys {
                    types_of_keys.add(key)
                } else {
                    types_of_keys.strings = true
                }
                key
            }
            Ok(token) => {
                let key = self.token(token, depth);
                let key = self.symbolized(key);
                types_of_keys.add(key);
                key
            }
            Err(error) => self.fail(error),
        }
    }

    /// The key, as a Symbol if it is a String and the options say so.
    fn symbolized(&self, key: VALUE) -> VALUE {
        if self.options.symbolize_keys && rb::is(key, ruby_value_type::RUBY_T_STRING) {
            // SAFETY: a String.
            return unsafe { rb_str_intern(key) };
        }
        key
    }

    #[inline]
    fn string_key(&mut self, bytes: &[u8]) -> VALUE {
        let Some(key) = ShortKey::of(bytes) else { return self.make_key(bytes) };
        if self.keys.is_null() {
            self.keys = self.find_keys();
        }
        // SAFETY: the unpacker, or the Ractor, that has the cache lives longer than the builder; no reference to it is held
        // while anything else can run.
        if let Some(known) = unsafe { (*self.keys).get(&key) } {
            return known;
        }
        let made = self.make_key(bytes);
        // SAFETY: as above.
        unsafe { (*self.keys).add(key, made) };
        made
    }

    #[cold]
    fn find_keys(&self) -> *mut KeyCache {
        let unpacker = self.source.unpacker();
        if self.options.key_cache && !unpacker.is_null() {
            // SAFETY: what a live object holds.
            return unsafe { &raw mut (*unpacker).keys };
        }
        key_cache::of_this_ractor(self.options.symbolize_keys)
    }

    #[inline]
    fn make_key(&self, bytes: &[u8]) -> VALUE {
        if self.options.symbolize_keys { symbol(bytes) } else { interned(bytes) }
    }

    #[cold]
    #[inline(never)]
    fn extension(&mut self, kind: i8, payload: &[u8], depth: usize) -> VALUE {
        let (is_symbol, entry) = self.type_of(kind);
        if is_symbol {
            return symbol(payload);
        }
        self.copied += payload.len();
        let object = match entry {
            Some(UnpackEntry { unpacker: Some(callable), recursive: true, .. }) => {
                self.recursive(callable, payload, depth)
            }
            Some(UnpackEntry { unpacker: Some(callable), .. }) => self.call(callable, rb::binary(payload)),
            _ if self.options.allow_unknown_ext => {
                let payload = rb::binary(payload);
                self.outside(|_| extension_value(kind, payload))
            }
            _ => {
                let offset = self.source.offset();
                rb::raise(
                    globals().unknown_ext,
                    format_args!("unexpected extension type {kind} at offset {offset}"),
                )
            }
        };
        self.frozen(object)
    }

    /// Whether a type is that of Symbols, and what it is unpacked with, as a copy: Ruby code may register another.
    fn type_of(&self, kind: i8) -> (bool, Option<UnpackEntry>) {
        if self.types.is_null() {
            return (false, None);
        }
        // SAFETY: what a live object holds; no Ruby code runs meanwhile.
        let registry = unsafe { &(*self.types).registry };
        (registry.symbol_type == Some(kind), registry.unpacker(kind).copied())
    }

    /// Calls what unpacks an extension, which may use the same unpacker.
    fn call(&mut self, callable: Callable, payload: VALUE) -> VALUE {
        let unpacker = self.source.unpacker();
        if unpacker.is_null() {
            return self.outside(|_| callable.call(payload, None));
        }
        // SAFETY: what a live object holds.
        unsafe {
            (*unpacker).bytes.readers += 1;
            self.source.leave();
            let object = call_from(unpacker, (*unpacker).depth, callable, payload);
            self.source.reload();
            object
        }
    }

    /// Lets the code of a recursive extension read its payload: from the unpacker, or else from one of its own.
    fn recursive(&mut self, callable: Callable, payload: &[u8], depth: usize) -> VALUE {
        if depth >= MAX_DEPTH {
            self.fail(Error { kind: ErrorKind::TooDeep(MAX_DEPTH), offset: self.source.offset() });
        }
        let unpacker = self.source.unpacker();
        if unpacker.is_null() {
            return self.recursive_apart(callable, payload, depth);
        }
        // SAFETY: what a live object holds. The payload was just read, so it ends where the source is.
        unsafe {
            (*unpacker).bytes.readers += 1;
            self.source.leave();
            (*unpacker).bytes.rewind(payload.len());
            let object = call_from(unpacker, depth + 1, callable, self.source.object());
            self.source.reload();
            object
        }
    }

    fn recursive_apart(&mut self, callable: Callable, payload: &[u8], depth: usize) -> VALUE {
        // SAFETY: what live objects hold, of which the new one is on the stack.
        unsafe {
            let registry = Arc::clone(&(*self.types).registry);
            let apart = super::unpacker::make(NIL, NIL, registry);
            let unpacker = rb::held::<Unpacker>(apart);
            ((*unpacker).options, (*unpacker).depth) = (self.options, depth + 1);
            super::unpacker::feed(apart, rb::binary(payload));
            self.outside(|_| callable.call(apart, None))
        }
    }

    /// Raises the exception for an error in the message.
    #[cold]
    #[inline(never)]
    fn fail(&self, error: Error) -> ! {
        let unpacker = self.source.unpacker();
        if !unpacker.is_null() && error.kind != ErrorKind::Truncated {
            // SAFETY: what a live object holds.
            unsafe { (*unpacker).bytes.take_to(error.offset) };
        }
        raise(error)
    }
}

/// Calls what unpacks an extension, for which one more reader of the unpacker was counted; also when it raises, the
/// unpacker is then as before.
///
/// # Safety
/// `unpacker` is what a live object holds.
unsafe fn call_from(unpacker: *mut Unpacker, depth: usize, callable: Callable, subject: VALUE) -> VALUE {
    unsafe extern "C" fn call(arguments: VALUE) -> VALUE {
        // SAFETY: the address that is passed below.
        let &(callable, subject) = unsafe { &*(arguments as *const (Callable, VALUE)) };
        callable.call(subject, None)
    }
    let arguments = (callable, subject);
    let mut state = 0;
    // SAFETY: the contract of this function; the arguments outlive the call, and nothing here needs dropping.
    unsafe {
        let depth_before = std::mem::replace(&mut (*unpacker).depth, depth);
        let object = rb_protect(Some(call), (&raw const arguments) as VALUE, &raw mut state);
        (*unpacker).depth = depth_before;
        (*unpacker).bytes.readers -= 1;
        if state != 0 {
            rb_jump_tag(state);
        }
        object
    }
}

/// Puts keys and values into a Hash. All at once that costs less for the first ones, and as much as the whole Hash has
/// grown to for each of the others.
#[inline]
fn insert(hash: VALUE, objects: &[VALUE], first: bool) {
    if first {
        // SAFETY: a Hash, and as many live objects as said.
        unsafe { rb_hash_bulk_insert(objects.len() as c_long, objects.as_ptr(), hash) };
        return;
    }
    for entry in objects.chunks_exact(2) {
        // SAFETY: a Hash and live objects, which are on the stack.
        unsafe { rb_hash_aset(hash, entry[0], entry[1]) };
    }
}

/// How many objects wait on the stack to be put into their container at once.
const CHUNK: usize = 32;

/// What the keys of one Hash are.
#[derive(Default)]
struct KeyTypes {
    strings: bool,
    immediates: bool,
    others: bool,
}

impl KeyTypes {
    #[inline]
    fn add(&mut self, key: VALUE) {
        if SPECIAL_CONST_P(key) {
            self.immediates = true;
        } else if rb::is(key, ruby_value_type::RUBY_T_STRING) && rb::class_of(key) == globals().string {
            self.strings = true;
        } else {
            self.others = true;
        }
    }

    /// Whether Ruby hashes and compares them without calling a method, which a program may have written or watch.
    const fn compare_natively(&self) -> bool {
        !(self.others || self.strings && self.immediates)
    }
}

/// Raises the exception for an error in a message.
#[cold]
pub(super) fn raise(error: Error) -> ! {
    let names = globals();
    let class = match error.kind {
        // SAFETY: reads a class that lives for ever.
        ErrorKind::Truncated => unsafe { rb_eEOFError },
        // SAFETY: as above.
        ErrorKind::OutOfMemory => unsafe { rb_eNoMemError },
        ErrorKind::TooDeep(_) => names.too_deep,
        ErrorKind::Unexpected { .. } => names.unexpected_type,
        _ => names.malformed,
    };
    match error.kind {
        ErrorKind::Truncated => rb::raise(class, format_args!("end of buffer reached: {error}")),
        ErrorKind::TooDeep(_) => rb::raise(class, format_args!("stack level too deep: {error}")),
        _ => rb::raise(class, format_args!("{error}")),
    }
}

/// The one frozen String of these characters.
#[inline]
fn interned(bytes: &[u8]) -> VALUE {
    // SAFETY: copies `len` bytes from the pointer.
    unsafe { rb_enc_interned_str(bytes.as_ptr().cast(), bytes.len() as c_long, globals().utf8) }
}

/// The Symbol of these characters; raises `EncodingError` when they are not valid UTF-8.
fn symbol(bytes: &[u8]) -> VALUE {
    let length = bytes.len() as c_long;
    // SAFETY: copies `len` bytes from the pointer.
    unsafe {
        let known = rb_check_symbol_cstr(bytes.as_ptr().cast(), length, globals().utf8);
        if known != NIL {
            return known;
        }
        rb_str_intern(rb_utf8_str_new(bytes.as_ptr().cast(), length))
    }
}

fn extension_value(kind: i8, payload: VALUE) -> VALUE {
    let names = globals();
    // SAFETY: a constant of the module.
    let class = unsafe { rb_const_get(names.module, names.extension_value) };
    rb::call(class, rb::id(c"new"), &[rb::int(kind.into()), payload])
}
