//! Packs Ruby objects into a message.

use offlock_core::msgpack::write::{self, MAX_LENGTH, Sink as _};

use super::byte_queue::{self, ByteQueue, HasQueue as _};
use super::globals::globals;
use super::packer::{self, Packer};
use super::registry::PackEntry;
use super::sink::Rewind;
use crate::cruby::string::{PIECE, StringWriter};
use crate::cruby::{
    Array, Bignum, Entries, Gvl, Handle, Hash, Kind, Locked, Natives, Object, Str, Symbol, classes,
    for_each_entry, raise,
};
use crate::region::Yielder;

/// The destination of a message.
pub(super) trait Target {
    type Sink: Rewind;
    fn sink<'a>(&'a mut self, natives: &'a mut Natives) -> &'a mut Self::Sink;
}

impl Target for &mut StringWriter {
    type Sink = StringWriter;

    #[inline(always)]
    fn sink<'a>(&'a mut self, _: &'a mut Natives) -> &'a mut StringWriter {
        self
    }
}

impl Target for Handle<Packer> {
    type Sink = ByteQueue;

    #[inline(always)]
    fn sink<'a>(&'a mut self, natives: &'a mut Natives) -> &'a mut ByteQueue {
        self.queue_mut(natives)
    }
}

/// Packs into `target`. Ruby code runs only for a packer: without one, objects that need Ruby code are
/// rejected.
pub(super) struct Writer<'a, T> {
    gvl: &'a mut Gvl,
    target: T,
    packer: Option<Handle<Packer>>,
    compatible: bool,
    symbols_are_extensions: bool,
    yielder: Yielder,
    /// Whether a Hash is being iterated over, when no Ruby code and no other thread may run.
    in_hash: bool,
    /// The length of the message when an entry could not be written during the iteration over its Hash. Up to
    /// that length the iteration is not tried again: it would fail once more for each Hash around the entry.
    refused_at: usize,
}

impl<T> Locked for Writer<'_, T> {
    #[inline(always)]
    fn gvl(&mut self) -> &mut Gvl {
        self.gvl
    }
}

/// Whether the object was written. False if the object needs a packer and there is none, and if other code
/// would have to run during the iteration over a Hash.
type Written = bool;

impl<'a> Writer<'a, &'a mut StringWriter> {
    /// A writer without a packer.
    pub(super) const fn alone(gvl: &'a mut Gvl, target: &'a mut StringWriter) -> Self {
        Self {
            gvl,
            target,
            packer: None,
            compatible: false,
            symbols_are_extensions: false,
            yielder: Yielder::new(),
            in_hash: false,
            refused_at: 0,
        }
    }
}

impl<'a> Writer<'a, Handle<Packer>> {
    /// A writer for a packer.
    pub(super) fn of(gvl: &'a mut Gvl, packer: Handle<Packer>) -> Self {
        let held = packer.get(&gvl.natives);
        let (compatible, symbols_are_extensions) = (held.compatible, held.registry.symbols);
        Self {
            gvl,
            target: packer,
            packer: Some(packer),
            compatible,
            symbols_are_extensions,
            yielder: Yielder::new(),
            in_hash: false,
            refused_at: 0,
        }
    }
}

impl<T: Target> Writer<'_, T> {
    #[inline(always)]
    pub(super) fn out(&mut self) -> &mut T::Sink {
        self.target.sink(&mut self.gvl.natives)
    }

    /// Counts the written bytes. From time to time other threads get the lock, and interrupts are handled.
    #[inline]
    fn tick(&mut self, work: usize) -> Written {
        !self.yielder.is_due(work) || self.yield_lock()
    }

    /// Lets other threads run. They may change the objects that are packed, none of which is borrowed, and
    /// the packer, which is read again.
    #[cold]
    fn yield_lock(&mut self) -> Written {
        if self.in_hash {
            return !self.yielder.has_to_yield();
        }
        self.gvl.yield_in_call(&mut self.yielder);
        true
    }

    /// Returns whether Ruby code may run.
    fn may_call(&self) -> bool {
        self.packer.is_some() && !self.in_hash
    }

    /// Writes any object.
    #[inline]
    pub(super) fn value(&mut self, object: Object) -> Written {
        match self.gvl.objects.kind(object) {
            Kind::Str(string) => {
                if self.gvl.objects.class_of(object) != classes::string()
                    && let Some(written) = self.inherited(object)
                {
                    return written;
                }
                return self.string(string);
            }
            Kind::Fixnum(value) => write::int(self.out(), value),
            Kind::Hash(hash) => {
                if self.gvl.objects.class_of(object) != classes::hash()
                    && let Some(written) = self.inherited(object)
                {
                    return written;
                }
                return self.hash(hash);
            }
            Kind::Array(array) => {
                if self.gvl.objects.class_of(object) != classes::array()
                    && let Some(written) = self.inherited(object)
                {
                    return written;
                }
                return self.array(array);
            }
            Kind::Symbol(symbol) => return self.symbol(symbol),
            Kind::Float => self.float(object),
            Kind::Nil => write::nil(self.out()),
            Kind::True => write::bool(self.out(), true),
            Kind::False => write::bool(self.out(), false),
            Kind::Bignum(number) => return self.bignum(number),
            Kind::Struct | Kind::Other => return self.other(object),
        }
        true
    }

    /// Writes an object of a subclass as the extension that its class is registered for; `None` if there is
    /// none.
    #[cold]
    fn inherited(&mut self, object: Object) -> Option<Written> {
        if !self.may_call() {
            return Some(false);
        }
        self.extension(object).then_some(true)
    }

    /// Writes a Float, or any Numeric converted to one.
    pub(super) fn float(&mut self, object: Object) {
        let value = self.gvl.coerce_f64(object);
        write::f64(self.out(), value);
    }

    /// Writes a String: binary Strings as binary, others as UTF-8.
    #[inline]
    pub(super) fn string(&mut self, string: Str) -> Written {
        let encoding = self.gvl.objects.encoding(string);
        let bytes = self.gvl.objects.bytes(string);
        check_length(bytes.len(), "string");
        if bytes.len() > PIECE && !self.in_hash {
            drop(bytes);
            return self.long_string(string);
        }
        let out = self.target.sink(&mut self.gvl.natives);
        let names = globals();
        if self.compatible {
            write::raw(out, &bytes);
        } else if encoding == names.utf8 || encoding == names.us_ascii {
            write::str(out, &bytes);
        } else if encoding == names.binary {
            write::bin(out, &bytes);
        } else {
            drop(bytes);
            return self.transcoded(string);
        }
        let work = Yielder::copying(bytes.len());
        drop(bytes);
        work == 0 || self.tick(work)
    }

    #[cold]
    fn transcoded(&mut self, string: Str) -> Written {
        if self.in_hash {
            return false;
        }
        let utf8 = self.gvl.encode(string, globals().utf8);
        self.string(utf8)
    }

    /// Writes a long String in pieces, between which other threads may run and change the String.
    #[cold]
    #[inline(never)]
    fn long_string(&mut self, string: Str) -> Written {
        let encoding = self.gvl.objects.encoding(string);
        let names = globals();
        let is_text = encoding == names.utf8 || encoding == names.us_ascii;
        if !self.compatible && !is_text && encoding != names.binary {
            return self.transcoded(string);
        }
        let share = self.gvl.share(string);
        let (length, compatible) = (share.bytes().len(), self.compatible);
        match (compatible, is_text) {
            (true, _) => write::raw_header(self.out(), length),
            (false, true) => write::str_header(self.out(), length),
            (false, false) => write::bin_header(self.out(), length),
        }
        // Otherwise the memory would be copied each time that it doubles, in one go.
        self.out().expect(length);
        for piece in share.bytes().chunks(PIECE) {
            self.out().put(piece);
            // Never refused: this is outside of any Hash.
            self.tick(Yielder::copying(piece.len()));
        }
        std::hint::black_box(share);
        true
    }

    /// Writes a Symbol.
    #[inline]
    pub(super) fn symbol(&mut self, symbol: Symbol) -> Written {
        if self.symbols_are_extensions {
            return self.other(symbol.into());
        }
        let name = self.gvl.objects.name(symbol);
        self.string(name)
    }

    /// Writes an Integer that is not a Fixnum.
    pub(super) fn bignum(&mut self, number: Bignum) -> Written {
        let (bytes, is_negative, is_full) = self.gvl.objects.bignum_size(number);
        let bytes = bytes + usize::from(is_negative && is_full);
        if bytes > 8 && self.extends_integers() {
            if self.in_hash {
                return false;
            }
            if self.extension(number.into()) {
                return true;
            }
        }
        if is_negative {
            let value = self.gvl.objects.bignum_signed(number);
            write::int(self.out(), value);
        } else {
            let value = self.gvl.objects.bignum_unsigned(number);
            write::uint(self.out(), value);
        }
        true
    }

    fn extends_integers(&self) -> bool {
        self.packer.is_some_and(|packer| packer.get(&self.gvl.natives).registry.big_integers)
    }

    /// Writes an Array; nil for items that were removed in the meantime.
    pub(super) fn array(&mut self, array: Array) -> Written {
        self.gvl.check_stack();
        let length = self.gvl.objects.array_len(array);
        check_length(length, "array");
        write::array_header(self.out(), length);
        (0..length).all(|index| {
            let item = self.gvl.objects.item(array, index);
            self.value(item) && self.tick(1)
        })
    }

    /// Writes a Hash as it is now. A Hash cannot get new keys while it is iterated over, so no other code
    /// runs in the meantime. If other code has to run, the remaining entries are copied first.
    pub(super) fn hash(&mut self, hash: Hash) -> Written {
        self.gvl.check_stack();
        let length = self.gvl.objects.hash_len(hash);
        check_length(length, "hash");
        let refused = !self.in_hash && self.out().mark() < self.refused_at;
        write::map_header(self.out(), length);
        let within = std::mem::replace(&mut self.in_hash, !refused);
        let mut written = 0;
        if !refused {
            for_each_entry(self, hash, |writer, key, value| {
                let is_written = writer.entry(key, value);
                written += usize::from(is_written);
                is_written
            });
        }
        self.in_hash = within;
        written == length || (!within && self.entries_left(hash, length - written, refused))
    }

    /// Writes an entry during the iteration over its Hash; false if that was not possible.
    #[inline]
    fn entry(&mut self, key: Object, value: Object) -> bool {
        let mark = self.out().mark();
        if self.value(key) && self.value(value) && self.tick(2) {
            return true;
        }
        self.refused_at = self.refused_at.max(self.out().mark());
        self.out().rewind(mark);
        false
    }

    /// Writes the last entries of a Hash from a copy, during which any code may run.
    #[cold]
    fn entries_left(&mut self, hash: Hash, count: usize, was_refused: bool) -> Written {
        let entries = Entries::last(self.gvl, hash, count);
        let others_ran = if was_refused { self.tick(entries.len() * 2) } else { self.yield_lock() };
        others_ran
            && entries.for_each(self, |writer, key, value| {
                writer.value(key) && writer.value(value) && writer.tick(2)
            })
    }

    /// Writes an object that MessagePack has no type for.
    #[cold]
    #[inline(never)]
    pub(super) fn other(&mut self, object: Object) -> Written {
        let Some(packer) = self.packer.filter(|_| self.may_call()) else { return false };
        if !self.extension(object) {
            self.gvl.call(object, globals().to_msgpack, &[packer.object()]);
        }
        true
    }

    /// Writes the object as the extension that it is registered for, if there is one.
    fn extension(&mut self, object: Object) -> bool {
        let Some(packer) = self.packer else { return false };
        let Some(entry) = packer::entry_for(self.gvl, packer, object) else { return false };
        let Some(callable) = entry.packer else { return true };
        let payload = if entry.recursive {
            self.recursive(packer, object, entry)
        } else {
            let payload = callable.call(self.gvl, object, None);
            self.gvl.coerce_str(payload)
        };
        self.ext(entry.kind, payload);
        true
    }

    /// Writes the payload with the same packer, then removes it again, so that it can follow its header. In
    /// the meantime the packer keeps the earlier output in a list of its own, from which it is restored if
    /// the code raises.
    fn recursive(&mut self, packer: Handle<Packer>, object: Object, entry: PackEntry) -> Str {
        let outer = packer.get_mut(&mut self.gvl.natives).begin_payload();
        if let Some(callable) = entry.packer {
            callable.call(self.gvl, object, Some(packer.object()));
        }
        let payload = byte_queue::to_string(self.gvl, packer);
        packer.get_mut(&mut self.gvl.natives).end_payload(outer);
        payload
    }

    /// Writes an extension with the bytes of a String as its payload.
    pub(super) fn ext(&mut self, kind: i8, payload: Str) {
        let bytes = self.gvl.objects.bytes(payload);
        check_length(bytes.len(), "extension");
        write::ext(self.target.sink(&mut self.gvl.natives), kind, &bytes);
    }
}

/// Raises `ArgumentError` if the format cannot represent the length.
#[inline]
fn check_length(length: usize, what: &str) {
    if length > MAX_LENGTH {
        too_long(length, what);
    }
}

#[cold]
fn too_long(length: usize, what: &str) -> ! {
    raise(
        classes::argument_error(),
        format_args!("size of {what} is too long to pack: {length} should be <= {MAX_LENGTH}"),
    )
}
