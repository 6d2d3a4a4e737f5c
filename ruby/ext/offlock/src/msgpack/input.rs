//! The message from which objects are built, and its changes while other code runs.
//!
//! Ruby code runs in the middle of a message: unpackers of extensions, the `#hash` and `#eql?` of keys, and
//! other threads while they have the lock. It can change an unpacker or a String in any way. So a builder
//! suspends the input before such code runs, and resumes it afterwards, when the input looks up its position
//! in the bytes again. All such calls go through [`Builder::outside`](super::build::Builder).

use offlock_core::msgpack::{Direct, Indexed, Source};

use super::options::LIMITS;
use super::unpacker::Unpacker;
use crate::cruby::string::Share;
use crate::cruby::{Gvl, Handle, Natives, Object, Str};

/// A source whose memory other code can change.
pub(super) trait Input<'a>: Source<'a> {
    /// The unpacker that holds the message.
    fn unpacker(&self) -> Option<Handle<Unpacker>> {
        None
    }

    /// An object that, while it is on the stack, keeps the bytes that were read as they are, also when other
    /// code runs.
    /// `None` if there is none: the bytes are gone once that code changes the `Unpacker`.
    fn keeper(&self, gvl: &Gvl) -> Option<Object>;

    /// Called before other code runs. The bytes are not used until `resume`.
    fn suspend(&mut self, gvl: &mut Gvl);

    /// Called after other code has run.
    fn resume(&mut self, gvl: &mut Gvl);

    /// Called before an extension's unpacker runs: moves the `Unpacker` past the extension.
    fn leave(&self, _: &mut Natives) {}

    /// Called after an extension's unpacker has run: continues at the position of the `Unpacker`.
    fn reload(&mut self, _: &mut Gvl) {}
}

/// A message in an unpacker.
pub(super) struct UnpackerInput<'a> {
    direct: Direct<'a, false>,
    unpacker: Handle<Unpacker>,
    /// The position of the next value while other code runs.
    next: u64,
}

impl UnpackerInput<'_> {
    /// The next message in an unpacker.
    ///
    /// # Safety
    /// The input stays on the stack. The unpacker's bytes do not change while they are used: other code runs
    /// only between `suspend` and `resume`, or `leave` and `reload`.
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

    fn keeper(&self, gvl: &Gvl) -> Option<Object> {
        self.unpacker.get(&gvl.natives).bytes.whole()
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

/// A message in a String, which is shared only if other code runs before the end of the message.
pub(super) struct StringInput<'a> {
    direct: Direct<'a, false>,
    /// The garbage collector finds it, because the input is on the stack.
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
        // SAFETY: the contract of this function: the String is shared before any other code runs.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        Self { direct: Direct::at(bytes, 0, LIMITS), string, share: None }
    }

    /// The number of bytes after the message.
    pub(super) fn extra(&self) -> usize {
        self.direct.most_values()
    }
}

impl<'a> Input<'a> for StringInput<'a> {
    fn keeper(&self, _: &Gvl) -> Option<Object> {
        self.share.map(Share::object)
    }

    fn suspend(&mut self, gvl: &mut Gvl) {
        if self.share.is_none() {
            let share = self.share.insert(gvl.share(self.string));
            let bytes = share.bytes();
            // SAFETY: the bytes of the share never change, and the share is kept alive on the stack.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
            self.direct = Direct::at(bytes, self.direct.pos(), LIMITS);
        }
    }

    fn resume(&mut self, _: &mut Gvl) {
        std::hint::black_box(self.share);
    }
}

/// The tape and the bytes of an index never change, and the caller has them on its stack.
impl<'a> Input<'a> for Indexed<'a> {
    fn keeper(&self, _: &Gvl) -> Option<Object> {
        Some(Object::NIL)
    }

    fn suspend(&mut self, _: &mut Gvl) {}
    fn resume(&mut self, _: &mut Gvl) {}
}

/// Forwards the methods of `Source` to the wrapped source.
macro_rules! reads_directly {
    ($name:ident) => {
        impl<'a> Source<'a> for $name<'a> {
            const STREAM: bool = false;

            #[inline(always)]
            fn visit<B: offlock_core::msgpack::Builder<'a>>(&mut self, builder: &mut B) -> B::Out {
                self.direct.visit(builder)
            }

            #[inline]
            fn most_values(&self) -> usize {
                self.direct.most_values()
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
