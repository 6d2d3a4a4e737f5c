//! Writes Ruby objects as a message.

use std::ffi::{c_int, c_long};
use std::mem::MaybeUninit;

use offlock_core::msgpack::write::{self, MAX_LENGTH, Sink};
use rb_sys::*;

use super::buffer;
use super::globals::globals;
use super::packer::Packer;
use super::rb;
use super::registry::PackEntry;
use crate::region::Bursts;

/// Writes to `out`. Ruby code runs only for a packer: without one, objects that would need it are refused.
pub(super) struct Writer<S> {
    out: *mut S,
    packer: *mut Packer,
    /// The packer as an object, to be passed to `to_msgpack`.
    object: VALUE,
    compatible: bool,
    symbols_are_extensions: bool,
    bursts: Bursts,
}

/// Whether the object was written; false only without a packer.
type Written = bool;

impl<S: Sink> Writer<S> {
    /// A writer without a packer.
    ///
    /// # Safety
    /// `out` lives as long as the writer.
    pub(super) const unsafe fn alone(out: *mut S) -> Self {
        Self {
            out,
            packer: std::ptr::null_mut(),
            object: rb::NIL,
            compatible: false,
            symbols_are_extensions: false,
            bursts: Bursts::new(),
        }
    }

    /// A writer for a packer.
    ///
    /// # Safety
    /// `packer` is what the live `object` holds; `out` lives as long as the writer.
    pub(super) unsafe fn of(out: *mut S, packer: *mut Packer, object: VALUE) -> Self {
        // SAFETY: the contract of this function.
        let (compatible, symbols) = unsafe { ((*packer).compatible, (&*packer).registry.symbols) };
        let bursts = Bursts::new();
        Self { out, packer, object, compatible, symbols_are_extensions: symbols, bursts }
    }

    #[inline]
    pub(super) fn out(&mut self) -> &mut S {
        // SAFETY: lives as long as the writer; no other reference to it is held across a call of this method.
        unsafe { &mut *self.out }
    }

    /// Counts what was written; now and then other threads get the lock, and interrupts are handled.
    #[inline]
    fn pause(&mut self, work: usize) {
        if self.bursts.is_over(work) {
            // SAFETY: nothing here needs dropping. Other threads may change what is packed, of which nothing is held,
            // and the packer, which is looked at anew.
            unsafe { self.bursts.give_way_or_raise() };
        }
    }

    /// Writes any object.
    #[inline]
    pub(super) fn value(&mut self, object: VALUE) -> Written {
        // SAFETY: reads the tag, or the header, of a live object.
        let kind = unsafe { RB_TYPE(object) };
        match kind {
            ruby_value_type::RUBY_T_STRING => {
                return self.maybe_extension(object, Self::string, rb_c_string());
            }
            ruby_value_type::RUBY_T_FIXNUM => {
                // SAFETY: a Fixnum.
                let value = unsafe { FIX2LONG(object) };
                write::int(self.out(), value);
            }
            ruby_value_type::RUBY_T_HASH => return self.maybe_extension(object, Self::hash, rb_c_hash()),
            ruby_value_type::RUBY_T_ARRAY => return self.maybe_extension(object, Self::array, rb_c_array()),
            ruby_value_type::RUBY_T_SYMBOL => return self.symbol(object),
            ruby_value_type::RUBY_T_FLOAT => self.float(object),
            ruby_value_type::RUBY_T_NIL => write::nil(self.out()),
            ruby_value_type::RUBY_T_TRUE => write::bool(self.out(), true),
            ruby_value_type::RUBY_T_FALSE => write::bool(self.out(), false),
            ruby_value_type::RUBY_T_BIGNUM => return self.bignum(object),
            _ => return self.other(object),
        }
        true
    }

    /// Writes a String, Array or Hash; one of a subclass as the extension it is registered for.
    #[inline]
    fn maybe_extension(
        &mut self,
        object: VALUE,
        plain: fn(&mut Self, VALUE) -> Written,
        class: VALUE,
    ) -> Written {
        if rb::class_of(object) != class {
            if self.packer.is_null() {
                return false;
            }
            if self.extension(object) {
                return true;
            }
        }
        plain(self, object)
    }

    /// Writes a Float, or any Numeric as one.
    pub(super) fn float(&mut self, object: VALUE) {
        // SAFETY: takes any object, or raises.
        let value = unsafe { rb_num2dbl(object) };
        write::f64(self.out(), value);
    }

    /// Writes a String: binary ones as binary, others as UTF-8.
    #[inline]
    pub(super) fn string(&mut self, object: VALUE) -> Written {
        // SAFETY: a String; it is read before anything else can run.
        let (index, bytes) = unsafe { (ENCODING_GET(object), rb::bytes(object)) };
        check_length(bytes.len(), "string");
        let names = globals();
        if self.compatible {
            write::raw(self.out(), bytes);
        } else if index == names.utf8_index || index == names.us_ascii_index {
            write::str(self.out(), bytes);
        } else if index == names.binary_index {
            write::bin(self.out(), bytes);
        } else {
            self.transcoded(object);
        }
        let work = Bursts::copying(bytes.len());
        // Until here the garbage collector must neither free nor move the String.
        std::hint::black_box(object);
        if work > 0 {
            self.pause(work);
        }
        true
    }

    #[cold]
    fn transcoded(&mut self, object: VALUE) {
        // SAFETY: a String; the result is a String that is read before anything else can run.
        let utf8 = unsafe { rb_str_encode(object, rb_enc_from_encoding(globals().utf8), 0, rb::NIL) };
        // SAFETY: a String that is on the stack until the end.
        let bytes = unsafe { rb::bytes(utf8) };
        check_length(bytes.len(), "string");
        write::str(self.out(), bytes);
        std::hint::black_box(utf8);
    }

    /// Writes a Symbol.
    #[inline]
    pub(super) fn symbol(&mut self, object: VALUE) -> Written {
        if self.symbols_are_extensions {
            return self.other(object);
        }
        // SAFETY: a Symbol.
        self.string(unsafe { rb_sym2str(object) })
    }

    /// Writes an Integer that is no Fixnum.
    pub(super) fn bignum(&mut self, object: VALUE) -> Written {
        let mut zeros: c_int = 0;
        // SAFETY: an Integer.
        let (bytes, negative) =
            unsafe { (rb_absint_size(object, &raw mut zeros), RBIGNUM_NEGATIVE_P(object)) };
        let bytes = bytes + usize::from(negative && zeros == 0) as size_t;
        if bytes > 8 && self.extends_integers() && self.extension(object) {
            return true;
        }
        // SAFETY: an Integer; both raise RangeError when it is too large.
        unsafe {
            if negative {
                let value = rb_big2ll(object);
                write::int(self.out(), value);
            } else {
                let value = rb_big2ull(object);
                write::uint(self.out(), value);
            }
        }
        true
    }

    fn extends_integers(&self) -> bool {
        // SAFETY: what the live packer holds.
        !self.packer.is_null() && unsafe { (&*self.packer).registry.big_integers }
    }

    /// Writes an Array.
    pub(super) fn array(&mut self, object: VALUE) -> Written {
        check_stack();
        // SAFETY: an Array.
        let length = unsafe { RARRAY_LEN(object) } as usize;
        check_length(length, "array");
        write::array_header(self.out(), length);
        self.items(object, length)
    }

    /// Writes the first items of an Array; nil for those that are gone when it is their turn.
    fn items(&mut self, object: VALUE, length: usize) -> Written {
        (0..length).all(|index| {
            // SAFETY: an Array; its length is asked anew, because packing may run code that changes it.
            let item = unsafe {
                if index < RARRAY_LEN(object) as usize {
                    *RARRAY_CONST_PTR(object).add(index)
                } else {
                    rb::NIL
                }
            };
            let written = self.value(item);
            self.pause(1);
            written
        })
    }

    /// Writes a Hash, as it is now: a Hash cannot get new keys while it is walked through, and that need not concern
    /// the code, and the other threads, that run while it is written.
    pub(super) fn hash(&mut self, object: VALUE) -> Written {
        check_stack();
        // SAFETY: a Hash.
        let length = unsafe { RHASH_SIZE(object) } as usize;
        check_length(length, "hash");
        write::map_header(self.out(), length);
        if length <= FEW { self.few_entries(object) } else { self.many_entries(object, length) }
    }

    fn few_entries(&mut self, object: VALUE) -> Written {
        let mut room = [const { MaybeUninit::<VALUE>::uninit() }; FEW * 2];
        let range = room.as_mut_ptr_range();
        // SAFETY: the room is on the stack, where the garbage collector finds what is in it, until the end.
        let written = unsafe { self.entries(object, range.start.cast(), FEW * 2) };
        std::hint::black_box(&room);
        written
    }

    #[cold]
    #[inline(never)]
    fn many_entries(&mut self, object: VALUE, length: usize) -> Written {
        let mut keeper = rb::NIL;
        // SAFETY: memory in which the garbage collector looks for objects, until it is given back or `keeper` is no longer
        // on the stack.
        unsafe {
            let size = length * 2 * size_of::<VALUE>();
            let room = rb_alloc_tmp_buffer(&raw mut keeper, size as c_long);
            let written = self.entries(object, room.cast(), length * 2);
            rb_free_tmp_buffer(&raw mut keeper);
            written
        }
    }

    /// Copies the keys and values into the room and writes them.
    ///
    /// # Safety
    /// `object` is a Hash; there is room for so many objects, where the garbage collector finds them.
    unsafe fn entries(&mut self, object: VALUE, room: *mut VALUE, count: usize) -> Written {
        // SAFETY: the contract of this function; `entries` outlives the call. No Ruby code runs.
        let objects = unsafe {
            let mut entries = Entries { at: room, end: room.add(count) };
            rb_hash_foreach(object, Some(collect_entry), (&raw mut entries) as VALUE);
            std::slice::from_raw_parts(room, entries.at.offset_from_unsigned(room))
        };
        self.pause(objects.len());
        objects.chunks(FEW).all(|objects| {
            let written = objects.iter().all(|&object| self.value(object));
            self.pause(objects.len());
            written
        })
    }

    /// Writes an object that MessagePack has no type for.
    #[cold]
    #[inline(never)]
    pub(super) fn other(&mut self, object: VALUE) -> Written {
        if self.packer.is_null() {
            return false;
        }
        if !self.extension(object) {
            rb::call(object, globals().to_msgpack, &[self.object]);
        }
        true
    }

    /// Writes the object as the extension that it is registered for, if it is.
    fn extension(&mut self, object: VALUE) -> bool {
        // SAFETY: what the live packer holds.
        let Some(entry) = (unsafe { (*self.packer).entry_for(object) }) else { return false };
        if entry.recursive {
            self.recursive(object, entry)
        } else {
            self.payload(object, entry)
        }
        true
    }

    fn payload(&mut self, object: VALUE, entry: PackEntry) {
        let Some(packer) = entry.packer else { return };
        let payload = rb::string(packer.call(object, None));
        self.ext(entry.kind, payload);
    }

    /// Writes the payload with the same packer, and then moves it behind its header.
    fn recursive(&mut self, object: VALUE, entry: PackEntry) {
        let Some(packer) = entry.packer else { return };
        // SAFETY: what the live packer holds; no reference is held while Ruby code runs. The bytes written so far are
        // set aside in the packer's own list, where they are found again should the code raise.
        unsafe {
            let outer = (*self.packer).set_aside();
            packer.call(object, Some(self.object));
            let payload = buffer::to_string(&raw const (*self.packer).bytes);
            (*self.packer).put_back(outer);
            self.ext(entry.kind, payload);
        }
    }

    /// Writes an extension with the bytes of a String as its payload.
    pub(super) fn ext(&mut self, kind: i8, payload: VALUE) {
        // SAFETY: a String that is read before anything else can run.
        let bytes = unsafe { rb::bytes(payload) };
        check_length(bytes.len(), "extension");
        write::ext(self.out(), kind, bytes);
        std::hint::black_box(payload);
    }
}

/// Up to so many entries of a Hash are kept on the stack while they are written.
const FEW: usize = 32;

/// The room that is left for the keys and values of a Hash.
struct Entries {
    at: *mut VALUE,
    end: *mut VALUE,
}

unsafe extern "C" fn collect_entry(key: VALUE, value: VALUE, entries: VALUE) -> c_int {
    // SAFETY: the address that `entries` passed; from `at` to `end` there is room, for an even number of objects.
    unsafe {
        let entries = &mut *(entries as *mut Entries);
        if entries.at == entries.end {
            return st_retval::ST_STOP as c_int;
        }
        entries.at.write(key);
        entries.at.add(1).write(value);
        entries.at = entries.at.add(2);
    }
    st_retval::ST_CONTINUE as c_int
}

/// Raises `SystemStackError` before the stack overflows.
#[inline]
fn check_stack() {
    // SAFETY: compares the stack pointer with the end of this thread's or fiber's stack.
    unsafe {
        if ruby_stack_check() != 0 {
            rb::raise(rb_eSysStackError, format_args!("stack level too deep"));
        }
    }
}

/// Raises `ArgumentError` when the format cannot express the length.
fn check_length(length: usize, what: &str) {
    if length > MAX_LENGTH {
        // SAFETY: reads a class that lives for ever.
        let class = unsafe { rb_eArgError };
        rb::raise(
            class,
            format_args!("size of {what} is too long to pack: {length} should be <= {MAX_LENGTH}"),
        );
    }
}

fn rb_c_string() -> VALUE {
    // SAFETY: reads a class that lives for ever.
    unsafe { rb_cString }
}

fn rb_c_array() -> VALUE {
    // SAFETY: reads a class that lives for ever.
    unsafe { rb_cArray }
}

fn rb_c_hash() -> VALUE {
    // SAFETY: reads a class that lives for ever.
    unsafe { rb_cHash }
}
