//! The message that objects are built from, and what becomes of it when other code runs.
//!
//! Ruby code runs in the middle of a message: what unpacks an extension, the `#hash` and `#eql?` of a key, and what
//! other threads do while they have the lock. It can do anything to an unpacker or to a String. So a builder suspends the
//! input before, and resumes it after, when the input finds its position in the bytes again; all of it goes through
//! [`Builder::outside`](super::build::Builder).

use offlock_core::msgpack::{Direct, Indexed, Source};

use super::options::LIMITS;
use super::unpacker::Unpacker;
use crate::cruby::string::Share;
use crate::cruby::{Gvl, Handle, Natives, Str};

/// A source of which other code can change what is under it.
pub(super) trait Input<'a>: Source<'a> {
    /// The unpacker that the message is in.
    fn unpacker(&self) -> Option<Handle<Unpacker>> {
        None
    }

    /// To be called before other code runs. The bytes are not used until `resume`.
    fn suspend(&mut self, gvl: &mut Gvl);

    /// To be called after it.
    fn resume(&mut self, gvl: &mut Gvl);

    /// Before what unpacks an extension runs: the unpacker is to stand behind that.
    fn leave(&self, _: &mut Natives) {}

    /// After that: goes on where the unpacker now is.
    fn reload(&mut self, _: &mut Gvl) {}
}

/// A message in an unpacker.
pub(super) struct UnpackerInput<'a> {
    direct: Direct<'a, false>,
    unpacker: Handle<Unpacker>,
    /// The position of the next value, while other code runs.
    next: u64,
}

impl UnpackerInput<'_> {
    /// The next message in an unpacker.
    ///
    /// # Safety
    /// The input stays on the stack. Nothing changes the unpacker's bytes while they are used: other code runs between
    /// `suspend` and `resume`, or `leave` and `reload`.
    pub(super) unsafe fn new(gvl: &mut Gvl, unpacker: Handle<Unpacker>) -> Self {
        let mut this = Self { direct: Direct::at(&[], 0, LIMITS), unpacker, next: 0 };
        this.reload(gvl);
        this
    }

    fn look_at(&mut self, gvl: &Gvl, offset: usize) {
        let bytes = self.unpacker.get(&gvl.natives).bytes.all();
        // SAFETY: the contract of `new`.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        self.direct = Direct::at(bytes, offset.min(bytes.len()), LIMITS);
    }
}

impl<'a> Input<'a> for UnpackerInput<'a> {
    fn unpacker(&self) -> Option<Handle<Unpacker>> {
        Some(self.unpacker)
    }

    fn suspend(&mut self, gvl: &mut Gvl) {
        self.next = self.unpacker.get(&gvl.natives).bytes.position_of(self.direct.pos());
    }

    fn resume(&mut self, gvl: &mut Gvl) {
        let offset = self.unpacker.get(&gvl.natives).bytes.offset_of(self.next);
        self.look_at(gvl, offset);
    }

    fn leave(&self, natives: &mut Natives) {
        self.unpacker.get_mut(natives).bytes.take_to(self.direct.pos());
    }

    fn reload(&mut self, gvl: &mut Gvl) {
        let head = self.unpacker.get(&gvl.natives).bytes.head();
        self.look_at(gvl, head);
    }
}

/// A message that is a String, which is shared only if other code runs before its end.
pub(super) struct StringInput<'a> {
    direct: Direct<'a, false>,
    /// Found by the garbage collector, as the input is on the stack.
    string: Str,
    share: Option<Share>,
}

impl StringInput<'_> {
    /// The message in a String.
    ///
    /// # Safety
    /// The input stays on the stack. Other code runs only between `suspend` and `resume`.
    pub(super) unsafe fn new(gvl: &Gvl, string: Str) -> Self {
        let bytes = gvl.objects.bytes(string);
        // SAFETY: the contract of this function: before the first other code, the String is shared.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        Self { direct: Direct::at(bytes, 0, LIMITS), string, share: None }
    }

    /// How many bytes follow the message.
    pub(super) fn extra(&self) -> usize {
        self.direct.room()
    }
}

impl<'a> Input<'a> for StringInput<'a> {
    fn suspend(&mut self, gvl: &mut Gvl) {
        if self.share.is_none() {
            let share = self.share.insert(gvl.share(self.string));
            let bytes = share.bytes();
            // SAFETY: the bytes of the share never change, and it is kept by being on the stack.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
            self.direct = Direct::at(bytes, self.direct.pos(), LIMITS);
        }
    }

    fn resume(&mut self, _: &mut Gvl) {
        std::hint::black_box(self.share);
    }
}

/// The tape and the bytes of an index never change.
impl<'a> Input<'a> for Indexed<'a> {
    fn suspend(&mut self, _: &mut Gvl) {}
    fn resume(&mut self, _: &mut Gvl) {}
}

/// Reads as what it wraps does.
macro_rules! reads_directly {
    ($name:ident) => {
        impl<'a> Source<'a> for $name<'a> {
            const STREAM: bool = false;

            #[inline(always)]
            fn visit<B: offlock_core::msgpack::Builder<'a>>(&mut self, builder: &mut B) -> B::Out {
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
