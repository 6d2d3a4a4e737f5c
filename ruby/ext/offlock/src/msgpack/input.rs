//! Where a message lies while objects are made of it, and what becomes of that when other code runs.
//!
//! Ruby code runs in the middle of a message: what unpacks an extension, the `#hash` and `#eql?` of a key, and what
//! other threads do while they have the lock. It can do anything to an unpacker or to a String. So a builder looks away
//! from the bytes before, and finds its place in them again after; all of it goes through [`Builder::outside`].
//!
//! [`Builder::outside`]: super::build::Builder

use offlock_core::msgpack::{Builder, Direct, Indexed, Source};
use rb_sys::VALUE;

use super::build::LIMITS;
use super::unpacker::Unpacker;
use crate::borrow::frozen;
use crate::cruby::raw as rb;

/// A source of which other code can change what is under it.
pub(super) trait Input<'a>: Source<'a> {
    /// The unpacker that the message is in, or null.
    fn unpacker(&self) -> *mut Unpacker {
        std::ptr::null_mut()
    }

    /// The same as an object, or nil.
    fn object(&self) -> VALUE {
        rb::NIL
    }

    /// To be called before other code runs. The bytes are not used until `resume`.
    fn suspend(&mut self);

    /// To be called after it.
    fn resume(&mut self);

    /// Before what unpacks an extension runs: the unpacker stands behind it.
    fn leave(&self) {}

    /// After that: goes on where the unpacker now is.
    fn reload(&mut self) {}
}

/// A message in an unpacker.
pub(super) struct UnpackerInput<'a> {
    direct: Direct<'a, false>,
    /// Kept alive and in place by being here, on the stack.
    object: VALUE,
    /// What the object holds.
    unpacker: *mut Unpacker,
    /// Where the next value begins, while other code runs.
    next: u64,
}

impl UnpackerInput<'_> {
    /// The next message in an unpacker.
    ///
    /// # Safety
    /// The source stays on the stack.
    pub(super) unsafe fn new(object: VALUE) -> Self {
        let unpacker = rb::held(object);
        let mut this = Self { direct: Direct::at(&[], 0, LIMITS), object, unpacker, next: 0 };
        this.reload();
        this
    }

    fn look_at(&mut self, offset: usize) {
        // SAFETY: the contract of `new`. The bytes belong to the unpacker; they are used until `suspend`, and nothing
        // changes them before that.
        let bytes = unsafe {
            let bytes = (*self.unpacker).bytes.all();
            std::slice::from_raw_parts(bytes.as_ptr(), bytes.len())
        };
        self.direct = Direct::at(bytes, offset.min(bytes.len()), LIMITS);
    }
}

impl<'a> Input<'a> for UnpackerInput<'a> {
    fn unpacker(&self) -> *mut Unpacker {
        self.unpacker
    }

    fn object(&self) -> VALUE {
        self.object
    }

    fn suspend(&mut self) {
        // SAFETY: the contract of `new`.
        self.next = unsafe { (*self.unpacker).bytes.place_of(self.direct.pos()) };
    }

    fn resume(&mut self) {
        // SAFETY: the contract of `new`.
        let offset = unsafe { (*self.unpacker).bytes.offset_of(self.next) };
        self.look_at(offset);
    }

    fn leave(&self) {
        // SAFETY: the contract of `new`.
        unsafe { (*self.unpacker).bytes.take_to(self.direct.pos()) }
    }

    fn reload(&mut self) {
        // SAFETY: the contract of `new`.
        let head = unsafe { (*self.unpacker).bytes.head() };
        self.look_at(head);
    }
}

/// A message that is a String, which is shared only if other code runs before its end.
pub(super) struct StringInput<'a> {
    direct: Direct<'a, false>,
    /// Found by the garbage collector, as the source is on the stack.
    string: VALUE,
    shared: bool,
}

impl StringInput<'_> {
    /// The message in a String.
    pub(super) fn new(string: VALUE) -> Self {
        // SAFETY: a String; other code runs only after `suspend`, which shares it.
        let bytes = unsafe { rb::bytes(string) };
        Self { direct: Direct::at(bytes, 0, LIMITS), string, shared: false }
    }

    /// How many bytes follow the message.
    pub(super) fn extra(&self) -> usize {
        self.direct.room()
    }
}

impl<'a> Input<'a> for StringInput<'a> {
    fn suspend(&mut self) {
        if !self.shared {
            let next = self.direct.pos();
            // SAFETY: a String; nobody changes the bytes of the share, which is kept by being on the stack.
            let bytes = unsafe {
                self.string = frozen(self.string);
                rb::bytes(self.string)
            };
            self.direct = Direct::at(bytes, next, LIMITS);
            self.shared = true;
        }
    }

    fn resume(&mut self) {
        std::hint::black_box(self.string);
    }
}

/// The tape and the bytes of an index never change.
impl<'a> Input<'a> for Indexed<'a> {
    fn suspend(&mut self) {}
    fn resume(&mut self) {}
}

/// Reads as what it wraps does.
macro_rules! reads_directly {
    ($name:ident) => {
        impl<'a> Source<'a> for $name<'a> {
            const STREAM: bool = false;

            #[inline(always)]
            fn visit<B: Builder<'a>>(&mut self, builder: &mut B) -> B::Out {
                self.direct.visit(builder)
            }

            #[inline]
            fn room(&self) -> usize {
                self.direct.room()
            }

            #[inline]
            fn offset(&self) -> usize {
                self.direct.offset()
            }
        }
    };
}

reads_directly!(UnpackerInput);
reads_directly!(StringInput);
