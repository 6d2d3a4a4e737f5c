//! Builds Ruby objects from a message, or from its tape.
//!
//! Containers nest at most 128 levels deep, as in msgpack, so this may recurse: objects under construction
//! are then on the machine stack, where the garbage collector finds them.

use std::sync::Arc;

use offlock_core::msgpack::{Error, ErrorKind, ShortKey, Token};

use super::globals::globals;
use super::input::Input;
use super::key_cache::{KEYS, KeyCache, RactorKeys};
use super::options::{MAX_DEPTH, Options};
use super::registry::{Callable, UnpackEntry};
use super::unpacker::{self, Unpacker};
use crate::cruby::ractor::RactorOwn;
use crate::cruby::string::PIECE;
use crate::cruby::{Gvl, Handle, Hash, Id, Natives, Object, Str, classes, encodings, raise};
use crate::region::Yielder;

/// Builds objects from `source`.
pub(super) struct Builder<'g, S> {
    pub(super) gvl: &'g mut Gvl,
    pub(super) source: S,
    options: Options,
    /// The unpacker whose types are registered. They are looked up for each value, because Ruby code may
    /// register others.
    types: Option<Handle<Unpacker>>,
    /// The cache of keys that were built already; determined at the first key.
    keys: Option<Keys>,
    yielder: Yielder,
    /// The number of copied bytes that were not yet counted as work.
    copied: usize,
}

/// The cache of keys that were built already.
#[derive(Clone, Copy)]
enum Keys {
    OfUnpacker(Handle<Unpacker>),
    OfRactor(RactorOwn<RactorKeys>),
}

impl Keys {
    #[inline(always)]
    fn cache(self, natives: &mut Natives, symbols: bool) -> &mut KeyCache {
        match self {
            Self::OfUnpacker(unpacker) => &mut unpacker.get_mut(natives).keys,
            Self::OfRactor(keys) => keys.get_mut(natives).of_kind(symbols),
        }
    }
}

impl<'g, 's, S: Input<'s>> Builder<'g, S> {
    /// A builder with the types of an unpacker, or with none.
    pub(super) fn new(
        gvl: &'g mut Gvl,
        source: S,
        options: Options,
        types: Option<Handle<Unpacker>>,
    ) -> Self {
        Self { gvl, source, options, types, keys: None, yielder: Yielder::new(), copied: 0 }
    }

    /// Runs Ruby code or lets other threads run, which may change the memory that holds the message.
    #[inline]
    fn outside<T>(&mut self, run: impl FnOnce(&mut Gvl, &mut Yielder) -> T) -> T {
        self.source.suspend(self.gvl);
        let result = run(self.gvl, &mut self.yielder);
        self.source.resume(self.gvl);
        result
    }

    /// Builds the next object. `depth` is the number of enclosing containers.
    #[inline]
    pub(super) fn value(&mut self, depth: usize) -> Object {
        match self.source.next() {
            Ok(token) => self.token(token, depth),
            Err(error) => self.fail(error),
        }
    }

    #[inline]
    fn token(&mut self, token: Token<'_>, depth: usize) -> Object {
        match token {
            Token::Nil => Object::NIL,
            Token::Bool(value) => Object::bool(value),
            Token::Int(value) => self.gvl.int(value),
            Token::UInt(value) => self.gvl.uint(value),
            Token::F32(value) => self.gvl.float(value.into()),
            Token::F64(value) => self.gvl.float(value),
            Token::Str(bytes) => self.string(bytes),
            Token::Bin(bytes) => self.binary(bytes),
            Token::Ext(kind, payload) => self.extension(kind, payload, depth),
            Token::Array(length) => self.array(length as usize, depth),
            Token::Map(length) => self.hash(length as usize, depth),
        }
    }

    #[inline]
    fn string(&mut self, bytes: &[u8]) -> Object {
        if !self.options.freeze
            && bytes.len() > PIECE
            && let Some(string) = self.in_pieces(bytes)
        {
            return self.gvl.in_encoding(string, encodings::utf8()).into();
        }
        self.copied += bytes.len();
        if self.options.freeze { self.gvl.interned(bytes) } else { self.gvl.utf8(bytes) }.into()
    }

    fn binary(&mut self, bytes: &[u8]) -> Object {
        let binary = self.payload(bytes);
        self.frozen(binary)
    }

    /// A new binary String.
    fn payload(&mut self, bytes: &[u8]) -> Object {
        if bytes.len() > PIECE
            && let Some(string) = self.in_pieces(bytes)
        {
            return string.into();
        }
        self.copied += bytes.len();
        self.gvl.binary(bytes).into()
    }

    /// A new binary String. While it is copied other threads may run, if that cannot change the bytes.
    #[cold]
    #[inline(never)]
    fn in_pieces(&mut self, bytes: &[u8]) -> Option<Str> {
        let keeper = self.source.keeper(self.gvl)?;
        let string = self.outside(|gvl, _| gvl.copied(&bytes));
        std::hint::black_box(keeper);
        Some(string)
    }

    /// Returns the object, frozen if the options demand it.
    #[inline]
    fn frozen(&self, object: Object) -> Object {
        if self.options.freeze { self.gvl.frozen(object) } else { object }
    }

    fn array(&mut self, length: usize, depth: usize) -> Object {
        self.check_container(length as u64, depth);
        let array = self.gvl.array_with_capacity(length.min(self.source.share(depth)));
        let mut chunk = [Object::NIL; CHUNK];
        let mut left = length;
        while left > 0 {
            let items = left.min(CHUNK);
            for place in &mut chunk[..items] {
                *place = self.value(depth + 1);
            }
            self.gvl.extend(array, &chunk[..items]);
            self.tick(items);
            left -= items;
        }
        self.frozen(array.into())
    }

    fn hash(&mut self, length: usize, depth: usize) -> Object {
        self.check_container(length as u64 * 2, depth);
        let hash = self.gvl.hash_with_capacity(length.min(self.source.share(depth) / 2));
        let mut chunk = [Object::NIL; CHUNK];
        let mut types = KeyTypes::default();
        let mut left = length;
        while left > 0 {
            let entries = left.min(CHUNK / 2);
            for place in chunk[..entries * 2].chunks_exact_mut(2) {
                place[0] = self.key(depth + 1, &mut types);
                place[1] = self.value(depth + 1);
            }
            let objects = &chunk[..entries * 2];
            if types.compare_natively() {
                insert(self.gvl, hash, objects, left == length);
            } else {
                self.outside(|gvl, _| insert(gvl, hash, objects, left == length));
            }
            self.tick(entries * 2);
            left -= entries;
        }
        self.frozen(hash.into())
    }

    #[inline]
    fn check_container(&mut self, values: u64, depth: usize) {
        if values > self.source.most_values() as u64 {
            self.fail(Error { kind: ErrorKind::Truncated, offset: self.source.offset() });
        }
        if values > 0 && depth >= MAX_DEPTH {
            self.fail(Error { kind: ErrorKind::TooDeep(MAX_DEPTH), offset: self.source.offset() });
        }
    }

    /// Counts the built values. From time to time other threads get the lock, and interrupts are handled.
    #[inline]
    fn tick(&mut self, values: usize) {
        let work = values + Yielder::copying(std::mem::take(&mut self.copied));
        if self.yielder.is_due(work) {
            self.outside(Gvl::yield_in_call);
        }
    }

    /// Builds a key of a Hash, and records its type.
    #[inline]
    fn key(&mut self, depth: usize, types: &mut KeyTypes) -> Object {
        match self.source.next() {
            Ok(Token::Str(bytes)) => {
                let key = self.string_key(bytes);
                if self.options.symbolize_keys {
                    types.add(self.gvl, key);
                } else {
                    types.strings = true;
                }
                key
            }
            Ok(token) => {
                let key = self.token(token, depth);
                let key = self.symbolized(key);
                types.add(self.gvl, key);
                key
            }
            Err(error) => self.fail(error),
        }
    }

    /// Returns the key, as a Symbol if it is a String and the options demand it.
    fn symbolized(&self, key: Object) -> Object {
        match self.gvl.objects.str(key) {
            Some(string) if self.options.symbolize_keys => self.gvl.symbol_of(string),
            _ => key,
        }
    }

    #[inline]
    fn string_key(&mut self, bytes: &[u8]) -> Object {
        let Some(key) = ShortKey::of(bytes) else { return self.make_key(bytes) };
        let keys = match self.keys {
            Some(keys) => keys,
            None => self.find_keys(),
        };
        let symbols = self.options.symbolize_keys;
        if let Some(known) = keys.cache(&mut self.gvl.natives, symbols).get(&key) {
            return known;
        }
        let made = self.make_key(bytes);
        keys.cache(&mut self.gvl.natives, symbols).add(key, made);
        made
    }

    #[cold]
    fn find_keys(&mut self) -> Keys {
        let keys = match self.source.unpacker() {
            Some(unpacker) if self.options.key_cache => Keys::OfUnpacker(unpacker),
            _ => Keys::OfRactor(KEYS.own(self.gvl)),
        };
        *self.keys.insert(keys)
    }

    #[inline]
    fn make_key(&self, bytes: &[u8]) -> Object {
        if self.options.symbolize_keys { self.gvl.symbol(bytes) } else { self.gvl.interned(bytes).into() }
    }

    #[cold]
    #[inline(never)]
    fn extension(&mut self, kind: i8, payload: &[u8], depth: usize) -> Object {
        let (is_symbol, entry) = self.type_of(kind);
        if is_symbol {
            return self.gvl.symbol(payload);
        }
        let object = match entry {
            Some(UnpackEntry { unpacker: Some(callable), recursive: true, .. }) => {
                self.recursive(callable, payload, depth)
            }
            Some(UnpackEntry { unpacker: Some(callable), .. }) => {
                let payload = self.payload(payload);
                self.call(callable, payload)
            }
            _ if self.options.allow_unknown_ext => {
                let payload = self.payload(payload);
                self.outside(|gvl, _| extension_value(gvl, kind, payload))
            }
            _ => {
                let offset = self.source.offset();
                raise(
                    globals().unknown_ext,
                    format_args!("unexpected extension type {kind} at offset {offset}"),
                )
            }
        };
        self.frozen(object)
    }

    /// Returns whether a type is that of Symbols, and a copy of its entry, because Ruby code may register
    /// another one.
    fn type_of(&self, kind: i8) -> (bool, Option<UnpackEntry>) {
        let Some(types) = self.types else { return (false, None) };
        let registry = &types.get(&self.gvl.natives).registry;
        (registry.symbol_type == Some(kind), registry.unpacker(kind).copied())
    }

    /// Calls the unpacker of an extension, which may use the same `Unpacker`.
    fn call(&mut self, callable: Callable, payload: Object) -> Object {
        let Some(unpacker) = self.source.unpacker() else {
            return self.outside(|gvl, _| callable.call(gvl, payload, None));
        };
        let depth = unpacker.get(&self.gvl.natives).depth;
        unpacker.get_mut(&mut self.gvl.natives).bytes.readers += 1;
        self.source.leave(&mut self.gvl.natives);
        let object = call_from(self.gvl, unpacker, depth, callable, payload);
        self.source.reload(self.gvl);
        object
    }

    /// Lets the code of a recursive extension read its payload: from the unpacker, or from a new one if there
    /// is none.
    fn recursive(&mut self, callable: Callable, payload: &[u8], depth: usize) -> Object {
        if depth >= MAX_DEPTH {
            self.fail(Error { kind: ErrorKind::TooDeep(MAX_DEPTH), offset: self.source.offset() });
        }
        let Some(unpacker) = self.source.unpacker() else {
            return self.recursive_apart(callable, payload, depth);
        };
        // The payload was just read, so it ends at the position of the source.
        let length = payload.len();
        unpacker.get_mut(&mut self.gvl.natives).bytes.readers += 1;
        self.source.leave(&mut self.gvl.natives);
        unpacker.get_mut(&mut self.gvl.natives).bytes.give_back(length);
        let object = call_from(self.gvl, unpacker, depth + 1, callable, unpacker.object());
        self.source.reload(self.gvl);
        object
    }

    fn recursive_apart(&mut self, callable: Callable, payload: &[u8], depth: usize) -> Object {
        let registry = self.types.map(|types| Arc::clone(&types.get(&self.gvl.natives).registry));
        let apart = unpacker::make(self.gvl, Object::NIL, None, registry.unwrap_or_default());
        let held = apart.get_mut(&mut self.gvl.natives);
        (held.options, held.depth) = (self.options, depth + 1);
        let payload = self.gvl.binary(payload).into();
        unpacker::feed(self.gvl, apart, payload);
        self.outside(|gvl, _| callable.call(gvl, apart.object(), None))
    }

    /// Raises the exception for an error in the message.
    #[cold]
    #[inline(never)]
    fn fail(&mut self, error: Error) -> ! {
        if let Some(unpacker) = self.source.unpacker()
            && error.kind != ErrorKind::Truncated
        {
            unpacker.get_mut(&mut self.gvl.natives).bytes.take_to(error.offset);
        }
        raise_error(error)
    }
}

/// Calls the unpacker of an extension, for which one more reader of the `Unpacker` was counted. Restores the
/// `Unpacker` afterwards, also if the call raises.
fn call_from(
    gvl: &mut Gvl,
    unpacker: Handle<Unpacker>,
    depth: usize,
    callable: Callable,
    subject: Object,
) -> Object {
    let depth_before = std::mem::replace(&mut unpacker.get_mut(&mut gvl.natives).depth, depth);
    gvl.ensure(
        |gvl| callable.call(gvl, subject, None),
        |gvl| {
            let held = unpacker.get_mut(&mut gvl.natives);
            held.depth = depth_before;
            held.bytes.readers -= 1;
        },
    )
}

/// Stores keys and values in a Hash. Storing them all at once is cheaper for the first ones, but costs as
/// much as the size of the Hash for each later call.
#[inline]
fn insert(gvl: &mut Gvl, hash: Hash, objects: &[Object], is_first: bool) {
    if is_first {
        gvl.insert_all(hash, objects);
        return;
    }
    for entry in objects.chunks_exact(2) {
        gvl.insert(hash, entry[0], entry[1]);
    }
}

/// The number of objects on the stack that are stored in their container at once.
const CHUNK: usize = 32;

/// The types of the keys of one Hash.
#[derive(Default)]
struct KeyTypes {
    strings: bool,
    immediates: bool,
    others: bool,
}

impl KeyTypes {
    #[inline]
    fn add(&mut self, gvl: &Gvl, key: Object) {
        if key.is_immediate() {
            self.immediates = true;
        } else if gvl.objects.str(key).is_some() && gvl.objects.class_of(key) == globals().string {
            self.strings = true;
        } else {
            self.others = true;
        }
    }

    /// Returns whether Ruby hashes and compares them without calling a method, which a program may have
    /// redefined or may trace.
    const fn compare_natively(&self) -> bool {
        !(self.others || self.strings && self.immediates)
    }
}

/// Raises the exception for an error in a message.
#[cold]
pub(super) fn raise_error(error: Error) -> ! {
    let names = globals();
    match error.kind {
        ErrorKind::Truncated => raise(classes::eof_error(), format_args!("end of buffer reached: {error}")),
        ErrorKind::OutOfMemory => raise(classes::no_memory_error(), format_args!("{error}")),
        ErrorKind::TooDeep(_) => raise(names.too_deep, format_args!("stack level too deep: {error}")),
        ErrorKind::Unexpected { .. } => raise(names.unexpected_type, format_args!("{error}")),
        _ => raise(names.malformed, format_args!("{error}")),
    }
}

/// Raises `MalformedFormatError` when bytes follow a message.
pub(super) fn check_extra(extra: usize) {
    if extra > 0 {
        raise(globals().malformed, format_args!("{extra} extra bytes after the deserialized object"));
    }
}

fn extension_value(gvl: &mut Gvl, kind: i8, payload: Object) -> Object {
    let names = globals();
    let class = gvl.constant(names.module, names.extension_value);
    let kind = gvl.int(kind.into());
    gvl.call(class, Id::of(c"new"), &[kind, payload])
}
