//! The bytes that a `GzipReader` has decompressed and the program has not read yet.

use std::cell::Cell;

use magnus::encoding::{EncodingCapable, Index, RbEncoding};
use magnus::value::{InnerValue, Opaque, ReprValue};
use magnus::{
    Class, DataTypeFunctions, Error, Fixnum, Module, Object, RArray, RModule, RString, Ruby, TryConvert,
    TypedData, Value, function, gc, method,
};
use offlock_core::deflate::end_of_line;

use super::number::Int;
use crate::cruby::string::{self, with_bytes, with_bytes_of_both};
use crate::cruby::{self, catch};
use crate::region::Yielder;

pub(super) fn define(ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    let class = zlib.define_class("ReadBuffer", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(ReadBuffer::new, 3))?;
    class.define_method("clear", method!(ReadBuffer::clear, 0))?;
    class.define_method("size", method!(ReadBuffer::size, 0))?;
    class.define_method("rest", method!(ReadBuffer::rest, 0))?;
    class.define_method("replace", method!(ReadBuffer::replace, 1))?;
    class.define_method("unread", method!(ReadBuffer::unread, 2))?;
    class.define_method("uncounted", method!(ReadBuffer::uncounted, 0))?;
    class.define_method("peek", method!(ReadBuffer::peek, 1))?;
    class.define_method("cut", method!(ReadBuffer::cut, 1))?;
    class.define_method("exactly", method!(ReadBuffer::exactly, 1))?;
    class.define_method("getbyte", method!(ReadBuffer::getbyte, 0))?;
    class.define_method("char", method!(ReadBuffer::char, 0))?;
    class.define_method("line", method!(ReadBuffer::line, 2))?;
    class.define_method("lines_to", method!(ReadBuffer::lines_to, 3))?;
    class.define_method("find", method!(ReadBuffer::find, 2))?;
    class.define_method("skip_newlines", method!(ReadBuffer::skip_newlines, 0))?;
    class.define_method("lineno", method!(ReadBuffer::lineno, 0))?;
    class.define_method("lineno=", method!(ReadBuffer::set_lineno, 1))?;
    Ok(())
}

/// From this size on a piece shares its bytes with the whole, where possible.
const WORTH_SHARING: usize = 1 << 10;

/// Bytes in a String that no Ruby program sees, and the position of the next byte to take.
#[derive(TypedData)]
#[magnus(class = "Offlock::Zlib::ReadBuffer", free_immediately, mark, size)]
pub(super) struct ReadBuffer {
    string: Cell<Option<Opaque<RString>>>,
    /// The number of bytes that were taken.
    at: Cell<usize>,
    /// The number of bytes in the checksum. Bytes that were put back are already in it, so it may be larger
    /// than `at`.
    counted: Cell<usize>,
    lineno: Cell<i32>,
    encoding: Index,
    /// Whether text is returned as it is, and whether an ASCII byte in it is always a character.
    as_it_is: bool,
    ascii: bool,
}

impl DataTypeFunctions for ReadBuffer {
    fn mark(&self, marker: &gc::Marker) {
        if let Some(string) = self.string.get() {
            marker.mark(string);
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

impl ReadBuffer {
    /// For text in `encoding`, where `ascii` says whether that is compatible with ASCII; text that is
    /// `converted` to another one is not returned directly.
    fn new(encoding: RbEncoding, ascii: bool, converted: bool) -> Self {
        Self {
            string: Cell::new(None),
            at: Cell::default(),
            counted: Cell::default(),
            lineno: Cell::default(),
            encoding: encoding.into(),
            as_it_is: !converted,
            ascii,
        }
    }

    /// For text in `encoding`, returned as it is.
    pub(super) fn of(ruby: &Ruby, encoding: Value) -> Result<Self, Error> {
        let index = Index::from(RbEncoding::try_convert(encoding)?);
        let ascii = index == ruby.utf8_encindex() || encoding.funcall("ascii_compatible?", ())?;
        Ok(Self::new(index.into(), ascii, false))
    }

    /// Resets the buffer to its initial state.
    fn clear(&self) {
        self.string.set(None);
        self.at.set(0);
        self.counted.set(0);
        self.lineno.set(0);
    }

    fn string(&self, ruby: &Ruby) -> RString {
        self.string.get().map_or_else(|| ruby.str_buf_new(0), |string| string.get_inner_with(ruby))
    }

    /// Returns the result of `read` for the bytes that were not taken.
    #[inline]
    fn with_bytes<T: Send>(&self, ruby: &Ruby, read: impl FnOnce(&[u8]) -> T + Send) -> T {
        let Some(string) = self.string.get() else { return read(&[]) };
        let at = self.at.get();
        with_bytes(string.get_inner_with(ruby), |bytes| read(bytes.get(at..).unwrap_or_default()))
    }

    fn size(ruby: &Ruby, this: &Self) -> usize {
        this.with_bytes(ruby, <[u8]>::len)
    }

    fn taken(&self, size: usize) {
        self.at.set(self.at.get() + size);
    }

    /// The next `size` bytes in their encoding, without taking them.
    fn text(&self, ruby: &Ruby, from: usize, size: usize, encoding: Index) -> Result<RString, Error> {
        let from = self.at.get() + from;
        if size < WORTH_SHARING {
            return Ok(string::copied_part(ruby, self.string(ruby), from..from + size, encoding.into()));
        }
        let part = self.part(ruby, from, size)?;
        part.enc_associate(encoding)?;
        Ok(part)
    }

    /// A part of the String, which shares its bytes where possible.
    fn part(&self, ruby: &Ruby, from: usize, size: usize) -> Result<RString, Error> {
        let whole = cruby::Object::of(self.string(ruby));
        RString::try_convert(catch(ruby, |gvl| {
            let whole = gvl.coerce_str(whole);
            gvl.part(whole, from, size).into()
        })?)
    }

    /// The bytes that were not taken, as a String that this object no longer uses: the caller then calls
    /// `replace`.
    fn rest(ruby: &Ruby, this: &Self) -> Result<RString, Error> {
        match this.at.get() {
            0 => Ok(this.string(ruby)),
            _ => this.text(ruby, 0, Self::size(ruby, this), ruby.ascii8bit_encindex()),
        }
    }

    /// Replaces the String with another one, which begins with the bytes that were not taken.
    fn replace(&self, string: RString) {
        self.string.set(Some(string.into()));
        self.counted.set(self.counted.get().saturating_sub(self.at.get()));
        self.at.set(0);
    }

    /// Replaces the String with another one: `before` bytes that were in the checksum, then `rest`.
    fn unread(&self, string: RString, before: usize) {
        self.replace(string);
        self.counted.set(self.counted.get() + before);
    }

    /// The bytes that were taken since the last call, for the checksum.
    fn uncounted(ruby: &Ruby, this: &Self) -> Result<Option<RString>, Error> {
        let (at, counted) = (this.at.get(), this.counted.get());
        if counted >= at {
            return Ok(None);
        }
        let part = this.part(ruby, counted, at - counted)?;
        this.counted.set(at);
        Ok(Some(part))
    }

    /// At most `size` bytes, without taking them.
    fn peek(ruby: &Ruby, this: &Self, size: usize) -> Result<RString, Error> {
        let size = size.min(Self::size(ruby, this));
        this.text(ruby, 0, size, this.encoding)
    }

    /// Takes at most `size` bytes.
    fn cut(ruby: &Ruby, this: &Self, size: usize) -> Result<RString, Error> {
        let size = size.min(Self::size(ruby, this));
        let cut = this.text(ruby, 0, size, ruby.ascii8bit_encindex())?;
        this.taken(size);
        Ok(cut)
    }

    /// Takes exactly `size` bytes, if they are available; nil otherwise, and if `size` is not a positive
    /// Integer.
    fn exactly(ruby: &Ruby, this: &Self, size: Value) -> Result<Option<RString>, Error> {
        let size = Fixnum::from_value(size).and_then(|size| size.to_usize().ok());
        match size.filter(|size| (1..=Self::size(ruby, this)).contains(size)) {
            Some(size) => Self::cut(ruby, this, size).map(Some),
            None => Ok(None),
        }
    }

    fn getbyte(ruby: &Ruby, this: &Self) -> Option<u8> {
        let byte = this.with_bytes(ruby, |bytes| bytes.first().copied())?;
        this.taken(1);
        Some(byte)
    }

    /// Takes the next character, if its length is certain.
    fn char(ruby: &Ruby, this: &Self) -> Result<Option<RString>, Error> {
        if !(this.as_it_is && this.ascii) {
            return Ok(None);
        }
        let is_utf8 = this.encoding == ruby.utf8_encindex();
        let size = this.with_bytes(ruby, |bytes| match bytes.first() {
            None => 0,
            Some(..0x80) => 1,
            Some(_) => utf8_size(bytes, is_utf8),
        });
        if size == 0 {
            return Ok(None);
        }
        let char = this.text(ruby, 0, size, this.encoding)?;
        this.taken(size);
        Ok(Some(char))
    }

    /// Takes the next line, if all of it is available, without its separator if `chomp`; nil also for special
    /// separators.
    fn line(ruby: &Ruby, this: &Self, separator: Value, chomp: bool) -> Result<Option<RString>, Error> {
        let Some(separator) = RString::from_value(separator).filter(|_| this.as_it_is) else {
            return Ok(None);
        };
        if chomp && !this.ascii {
            return Ok(None);
        }
        this.next_line(ruby, separator, chomp)
    }

    /// Takes the next line, if all of it is available.
    pub(super) fn next_line(
        &self,
        ruby: &Ruby,
        separator: RString,
        chomp: bool,
    ) -> Result<Option<RString>, Error> {
        let at = self.at.get();
        let found = with_bytes_of_both(self.string(ruby), separator, |bytes, separator| {
            let bytes = bytes.get(at..)?;
            let size = end_of_line(bytes, separator)?;
            Some((size, if chomp { chomped(&bytes[..size], separator).len() } else { size }))
        });
        let Some((size, kept)) = found else { return Ok(None) };
        let line = self.text(ruby, 0, kept, self.encoding)?;
        self.taken(size);
        self.lineno.set(self.lineno.get().wrapping_add(1));
        Ok(Some(line))
    }

    /// Appends the following complete lines to `lines`, separated as in `line`. Other threads get the lock
    /// from time to time.
    fn lines_to(ruby: &Ruby, this: &Self, lines: RArray, separator: Value, chomp: bool) -> Result<(), Error> {
        let mut yielder = Yielder::new();
        while let Some(line) = Self::line(ruby, this, separator, chomp)? {
            lines.push(line)?;
            yielder.tick(1)?;
        }
        Ok(())
    }

    /// Returns whether lines can be returned as they are.
    pub(super) fn is_direct(&self) -> bool {
        self.as_it_is
    }

    /// The offset after the separator, searched for behind the next `from` bytes.
    fn find(ruby: &Ruby, this: &Self, separator: RString, from: usize) -> Option<usize> {
        let start = this.at.get() + from;
        with_bytes_of_both(this.string(ruby), separator, |bytes, separator| {
            end_of_line(bytes.get(start..)?, separator).map(|end| from + end)
        })
    }

    /// Takes line feeds. Returns whether other bytes follow.
    fn skip_newlines(ruby: &Ruby, this: &Self) -> bool {
        let other = this.with_bytes(ruby, |bytes| bytes.iter().position(|&byte| byte != b'\n'));
        this.taken(other.unwrap_or_else(|| Self::size(ruby, this)));
        other.is_some()
    }

    fn lineno(&self) -> i32 {
        self.lineno.get()
    }

    fn set_lineno(&self, Int(number): Int) {
        self.lineno.set(number);
    }
}

/// The line without its separator, as `String#chomp` removes it.
fn chomped<'a>(line: &'a [u8], separator: &[u8]) -> &'a [u8] {
    let line = line.strip_suffix(separator).unwrap_or(line);
    if separator == b"\n" { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
}

/// The number of bytes of a non-ASCII character; 0 if it is uncertain.
fn utf8_size(bytes: &[u8], is_utf8: bool) -> usize {
    let longest = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&longest[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().filter(|_| is_utf8).map_or(0, char::len_utf8)
}
