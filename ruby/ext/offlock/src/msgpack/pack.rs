//! Writes Ruby objects as a message.

use std::ffi::{c_int, c_long};
use std::mem::MaybeUninit;

use offlock_core::msgpack::write::{self, MAX_LENGTH};
use rb_sys::*;

use super::buffer;
use super::globals::globals;
use super::packer::Packer;
use super::registry::PackEntry;
use super::sink::Rewind;
use crate::cruby::raw as rb;
use crate::region::Pace;

/// Writes to `out`. Ruby code runs only for a packer: without one, objects that would need it are refused.
pub(super) struct Writer<S> {
    out: *mut S,
    packer: *mut Packer,
    /// The packer as an object, to be passed to `to_msgpack`.
    object: VALUE,
    compatible: bool,
    symbols_are_extensions: bool,
    pace: Pace,
    /// Whether nothing else may run: no Ruby code, no other thread.
    calm: bool,
    /// How far the message was when an entry could not be written in a calm. Until there, no calm is tried again: it would
    /// end there once more for each Hash around the entry.
    refused_at: usize,
}

/// Whether the object was written; false without a packer where that would be needed, and in a calm where something else
/// should run.
type Written = bool;

impl<S: Rewind> Writer<S> {
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
            pace: Pace::new(),
            calm: false,
            refused_at: 0,
        }
    }

    /// A writer for a packer.
    ///
    /// # Safety
    /// `packer` is what the live `object` holds; `out` lives as long as the writer.
    pub(super) unsafe fn of(out: *mut S, packer: *mut Packer, object: VALUE) -> Self {
        // SAFETY: the contract of this function.
        let (compatible, symbols) = unsafe { ((*packer).compatible, (&*packer).registry.symbols) };
        let pace = Pace::new();
        Self {
            out,
            packer,
            object,
            compatible,
            symbols_are_extensions: symbols,
            pace,
            calm: false,
            refused_at: 0,
        }
    }

    #[inline]
    pub(super) fn out(&mut self) -> &mut S {
        // SAFETY: lives as long as the writer; no other reference to it is held across a call of this method.
        unsafe { &mut *self.out }
    }

    /// Counts what was written; now and then other threads get the lock, and interrupts are handled.
    #[inline]
    fn pause(&mut self, work: usize) -> Written {
        !self.pace.is_due(work) || self.give_way()
    }

    #[cold]
    fn give_way(&mut self) -> Written {
        if self.calm {
            return !self.pace.has_to_yield();
        }
        // SAFETY: nothing here needs dropping. Other threads may change what is packed, of which nothing is held,
        // and the packer, which is looked at anew.
        unsafe { self.pace.yield_or_raise() };
        true
    }

    /// Whether Ruby code may run.
    fn may_call(&self) -> bool {
        !self.packer.is_null() && !self.calm
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
            if !self.may_call() {
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
        } else if self.calm {
            return false;
        } else {
            self.transcoded(object);
        }
        let work = Pace::copying(bytes.len());
        // Until here the garbage collector must neither free nor move the String.
        std::hint::black_box(object);
        work == 0 || self.pause(work)
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
        if bytes > 8 && self.extends_integers() {
            if self.calm {
                return false;
            }
            if self.extension(object) {
                return true;
            }
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
            self.value(item) && self.pause(1)
        })
    }

    /// Writes a Hash, as it is now. A Hash cannot get new keys while it is walked through, which must not concern other
    /// code: so that happens in a calm. When something else has to run, what is left of the Hash is copied before.
    pub(super) fn hash(&mut self, object: VALUE) -> Written {
        check_stack();
        // SAFETY: a Hash.
        let length = unsafe { RHASH_SIZE(object) } as usize;
        check_length(length, "hash");
        let again = !self.calm && self.out().mark() < self.refused_at;
        write::map_header(self.out(), length);
        let within = std::mem::replace(&mut self.calm, !again);
        let mut few = [const { MaybeUninit::<VALUE>::uninit() }; FEW * 2];
        let mut keeper = rb::NIL;
        let mut walk = Walk::<S> {
            writer: self,
            left: length,
            within,
            refused: again,
            few: few.as_mut_ptr().cast(),
            keeper: &raw mut keeper,
            rest: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
        };
        if again {
            // SAFETY: `few` is as large as that.
            unsafe { walk.make_room() };
        }
        // SAFETY: a Hash, and a function that gets the address of `walk`, which outlives the call.
        unsafe { rb_hash_foreach(object, Some(entry::<S>), (&raw mut walk) as VALUE) };
        let Walk { left, refused, end, .. } = walk;
        self.calm = within;
        if end.is_null() {
            return !refused;
        }
        // SAFETY: so many keys and values were copied. The garbage collector finds them by `keeper`, or in `few`, which are on
        // the stack until the end.
        let written = unsafe {
            let rest = std::slice::from_raw_parts(end.sub(left * 2), left * 2);
            let others = if again { self.pause(rest.len()) } else { self.give_way() };
            let written = others && self.objects(rest);
            if keeper != rb::NIL {
                rb_free_tmp_buffer(&raw mut keeper);
            }
            written
        };
        std::hint::black_box(&few);
        written
    }

    /// Writes objects that are kept alive, one after the other.
    fn objects(&mut self, objects: &[VALUE]) -> Written {
        objects
            .chunks(FEW)
            .all(|objects| objects.iter().all(|&object| self.value(object)) && self.pause(objects.len()))
    }

    /// Writes an object that MessagePack has no type for.
    #[cold]
    #[inline(never)]
    pub(super) fn other(&mut self, object: VALUE) -> Written {
        if !self.may_call() {
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

/// Up to so many entries of a Hash are copied to the stack.
const FEW: usize = 32;

/// A Hash that is walked through in a calm, in which it cannot change.
struct Walk<S> {
    writer: *mut Writer<S>,
    /// The entries that were not written.
    left: usize,
    /// Whether that happens within another calm.
    within: bool,
    /// Whether an entry could not be written in the calm, or there is none. Unless it is within another one, all that are left
    /// are copied then.
    refused: bool,
    few: *mut VALUE,
    keeper: *mut VALUE,
    /// Where the next key and value are copied to, and the end of the room for them.
    rest: *mut VALUE,
    end: *mut VALUE,
}

impl<S> Walk<S> {
    /// Makes room for what is left, where the garbage collector looks for objects.
    ///
    /// # Safety
    /// `few` has room for `FEW` entries.
    #[cold]
    unsafe fn make_room(&mut self) {
        let count = self.left * 2;
        // SAFETY: the contract of this function.
        unsafe {
            self.rest = if self.left <= FEW {
                self.few
            } else {
                rb_alloc_tmp_buffer(self.keeper, (count * size_of::<VALUE>()) as c_long).cast()
            };
            self.end = self.rest.add(count);
        }
    }
}

unsafe extern "C" fn entry<S: Rewind>(key: VALUE, value: VALUE, walk: VALUE) -> c_int {
    // SAFETY: the address that `hash` passed, which has what it points to on its stack.
    unsafe {
        let walk = &mut *(walk as *mut Walk<S>);
        if !walk.refused {
            let writer = &mut *walk.writer;
            let mark = writer.out().mark();
            if writer.value(key) && writer.value(value) && writer.pause(2) {
                walk.left -= 1;
                return st_retval::ST_CONTINUE as c_int;
            }
            writer.refused_at = writer.refused_at.max(writer.out().mark());
            writer.out().rewind(mark);
            walk.refused = true;
            if walk.within {
                return st_retval::ST_STOP as c_int;
            }
            walk.make_room();
        }
        if walk.rest == walk.end {
            return st_retval::ST_STOP as c_int;
        }
        walk.rest.write(key);
        walk.rest.add(1).write(value);
        walk.rest = walk.rest.add(2);
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
