//! Reading gzip files of one or more members.
//!
//! The decoder is a state machine over the four parts of a file ([`Place`]), so that its input may be cut
//! anywhere. On several threads it first lets `members.rs` decompress whole members ahead.

use super::decompress;
use super::error::{Error, ErrorKind};
use super::gzip_header::{Header, LARGEST_HEADER};
use super::inflater::Inflater;
use super::libdeflate;
use super::members::{self, Content, Window};
use super::stream::Status;
use crate::output::Output;
use crate::{Task, memory};

/// The part of the file that a [`GzipDecoder`] reads next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the header of a member, or within it.
    Header,
    /// In the compressed data.
    Body,
    /// In the checksum and length.
    Trailer,
    /// After a member: zero bytes, or the next one.
    Between,
}

/// What comes after the first member of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    /// Further members, with any number of zero bytes between them: the decoder reads all of them.
    All,
    /// Other data: the decoder stops after the first member.
    First,
}

/// Reads gzip files piece by piece.
///
/// ```
/// use offlock_core::deflate::{GzipDecoder, Members, Output, Status, compress};
/// use offlock_core::Task;
///
/// let (mut file, task) = (Output::new(), Task::new());
/// compress(b"off the lock", 6, 31, &mut file, &task)?; // 31: gzip
/// let file = file.into_bytes();
///
/// let (mut decoder, mut plain) = (GzipDecoder::new(Members::All)?, Output::new());
/// for mut part in file.chunks(5) {
///     assert_eq!(decoder.run(&mut part, &mut plain, &task)?, Status::More);
/// }
/// assert!(decoder.may_end());
/// assert_eq!(&plain.into_bytes()[..], b"off the lock");
/// # Ok::<_, offlock_core::deflate::Error>(())
/// ```
pub struct GzipDecoder {
    inflater: Inflater,
    members: Members,
    /// How much of the file is decompressed at once; `None` on one thread.
    window: Option<Window>,
    /// Content that has been decompressed ahead and not been written yet.
    ahead: Content,
    place: Place,
    /// The bytes of an incomplete header or trailer.
    partial: Vec<u8>,
    header: Option<Header>,
    crc: u32,
    size: u32,
    read: u64,
    ended: bool,
}

impl GzipDecoder {
    /// A decoder that expects the beginning of a file.
    ///
    /// # Errors
    ///
    /// None at present; the engine's state is made later.
    pub fn new(members: Members) -> Result<Self, Error> {
        Ok(Self {
            inflater: Inflater::new(-15)?,
            members,
            window: None,
            ahead: Content::default(),
            place: Place::Header,
            partial: Vec::new(),
            header: None,
            crc: 0,
            size: 0,
            read: 0,
            ended: false,
        })
    }

    /// The same decoder on several threads (0: one per core). It decompresses several members at once if its
    /// input holds several; [`window`](Self::window) is a good size for the input. It keeps the output until
    /// there is room for it: at most 8 times the window.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { window: (threads != 1).then(|| Window::new(threads)), ..self }
    }

    /// The best size of the next input, in bytes: 1 to 4 MB per thread, more if members are larger; `None` on
    /// one thread.
    pub fn window(&self) -> Option<usize> {
        self.window.as_ref().map(Window::size)
    }

    /// Resets the decoder to expect the beginning of a file.
    ///
    /// # Errors
    ///
    /// None at present, as for [`new`](Self::new).
    pub fn reset(&mut self) -> Result<(), Error> {
        *self = Self { window: self.window.as_ref().map(Window::anew), ..Self::new(self.members)? };
        Ok(())
    }

    /// Decompresses `input`, which is advanced past what was read. `End` means that nothing more can follow.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotGzip`], `GzipMethod`, `GzipCrc`, `GzipLength`, `Data`, `Mem` and `Stopped`; the offset
    /// counts from the beginning of the file.
    pub fn run(&mut self, input: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<Status, Error> {
        while !self.ended {
            if !self.ahead.give(out)? {
                return Ok(Status::Full);
            }
            if out.left() > 0 && self.take_members(input, task)? {
                continue;
            }
            let before = input.len();
            let status = match self.place {
                Place::Header => self.read_header(input),
                Place::Body => self.read_body(input, out, task),
                Place::Trailer => self.read_trailer(input),
                Place::Between => self.skip_zeros(input, task),
            };
            let error_base = self.read;
            self.read += (before - input.len()) as u64;
            match status {
                Ok(None) => {}
                Ok(Some(status)) => return Ok(status),
                Err(error) => return Err(self.placed(error, error_base)),
            }
        }
        Ok(Status::End)
    }

    /// Decompresses the members at the beginning of `input` on several threads; false if that is not
    /// worthwhile.
    fn take_members(&mut self, input: &mut &[u8], task: &Task<'_>) -> Result<bool, Error> {
        let between = self.place == Place::Header && self.partial.is_empty();
        let Some(window) = self.window.as_mut().filter(|_| between && self.members == Members::All) else {
            return Ok(false);
        };
        let Some(together) = members::together(input, window, usize::MAX, task)? else {
            return Ok(false);
        };
        *input = &input[together.read..];
        self.read += together.read as u64;
        self.header = Some(together.header);
        self.ahead = together.content;
        self.place = Place::Between;
        Ok(true)
    }

    /// The error with its offset relative to the beginning of the file.
    fn placed(&self, error: Error, base: u64) -> Error {
        let offset = match self.place {
            Place::Header => base + error.offset,
            _ => self.read,
        };
        Error { offset, ..error }
    }

    fn read_header(&mut self, input: &mut &[u8]) -> Result<Option<Status>, Error> {
        let had = self.partial.len();
        let take = input.len().min(LARGEST_HEADER + 1 - had);
        let whole_header = if had == 0 {
            Header::parse(input)?
        } else {
            memory::append(&mut self.partial, &input[..take])?;
            Header::parse(&self.partial)?
        };
        let Some((header, len)) = whole_header else {
            if had == 0 {
                memory::append(&mut self.partial, &input[..take])?;
            }
            *input = &input[take..];
            return Ok(Some(Status::More));
        };
        *input = &input[len - had..];
        self.partial.clear();
        self.header = Some(header);
        (self.crc, self.size) = (0, 0);
        self.inflater.reset()?;
        self.place = Place::Body;
        Ok(None)
    }

    fn read_body(
        &mut self,
        input: &mut &[u8],
        out: &mut Output<'_>,
        task: &Task<'_>,
    ) -> Result<Option<Status>, Error> {
        let (crc, size) = (&mut self.crc, &mut self.size);
        let status = self.inflater.run_watched(input, out, task, |out, start| {
            out.since(start, |piece| *crc = libdeflate::crc32(*crc, piece));
            *size = size.wrapping_add((out.len() - start) as u32);
        });
        match status? {
            Status::End => {
                // A reader may stay around for long after it has read everything.
                self.inflater.release();
                self.place = Place::Trailer;
                Ok(None)
            }
            status => Ok(Some(status)),
        }
    }

    fn read_trailer(&mut self, input: &mut &[u8]) -> Result<Option<Status>, Error> {
        let take = input.len().min(8 - self.partial.len());
        self.partial.extend(&input[..take]);
        *input = &input[take..];
        let Some(&[c0, c1, c2, c3, s0, s1, s2, s3]) = self.partial.first_chunk() else {
            return Ok(Some(Status::More));
        };
        self.partial.clear();
        let (crc, size) = (u32::from_le_bytes([c0, c1, c2, c3]), u32::from_le_bytes([s0, s1, s2, s3]));
        if crc != self.crc {
            let detail = format!("CRC check failed {crc:#x} != {:#x}", self.crc);
            return Err(Error::with_detail(ErrorKind::GzipCrc, detail, 0));
        }
        if size != self.size {
            let detail = format!("Incorrect length of data produced: {size} told, {} made", self.size);
            return Err(Error::with_detail(ErrorKind::GzipLength, detail, 0));
        }
        self.place = Place::Between;
        self.ended = self.members == Members::First;
        Ok(None)
    }

    fn skip_zeros(&mut self, input: &mut &[u8], task: &Task<'_>) -> Result<Option<Status>, Error> {
        *input = &input[leading_zeros(input, task)?..];
        if input.is_empty() {
            return Ok(Some(Status::More));
        }
        self.place = Place::Header;
        Ok(None)
    }

    /// The approximate size of the decompressor's state in memory.
    pub fn memory(&self) -> usize {
        self.inflater.memory()
    }

    /// The header of the last member that was read.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    #[cfg(test)]
    pub(super) fn ahead_size(&self) -> usize {
        self.ahead.size()
    }

    /// The checksum and length of the current member's content so far.
    pub fn sum(&self) -> (u32, u32) {
        (self.crc, self.size)
    }

    /// Whether a file may end here: before its first byte, or after a member.
    pub fn may_end(&self) -> bool {
        self.ended
            || self.ahead.is_empty() && self.place == Place::Between
            || self.place == Place::Header && self.partial.is_empty() && self.header.is_none()
    }

    /// Checks that the file may end here.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Buf`] if the file is truncated, or `NotGzip` if it has a single byte, which does not even
    /// tell what kind of file it is.
    pub fn check_end(&self) -> Result<(), Error> {
        let kind = match (self.place, self.partial.len()) {
            _ if self.may_end() => return Ok(()),
            (Place::Header, 1) => ErrorKind::NotGzip,
            _ => ErrorKind::Buf,
        };
        Err(Error::new(kind, self.read))
    }

    /// Whether there is content that can be written without further input.
    pub fn has_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Whether the compressed data of the current member is complete, and only its checksum and length are
    /// missing.
    pub fn in_trailer(&self) -> bool {
        self.place == Place::Trailer
    }

    /// The error for a file that ends within a trailer, after `read` bytes.
    fn footer_error(&self, read: usize) -> Error {
        let detail = match self.partial.len() {
            0 => String::new(),
            len => format!("the footer has {len} of 8 bytes"),
        };
        Error::with_detail(ErrorKind::GzipFooter, detail, read as u64)
    }

    /// Whether nothing more can follow.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Bytes read since the beginning of the file.
    pub fn total_in(&self) -> u64 {
        self.read
    }
}

/// Decompresses the member at the beginning of `input` and returns its length.
///
/// # Errors
///
/// As [`GzipDecoder::run`]; also `Buf` or `GzipFooter` if the member is truncated, and `Limit` if the output
/// would exceed the limit of `out`.
pub fn first_member(input: &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<usize, Error> {
    let start = out.len();
    match decompress::decompress(input, 31, out, task) {
        Err(error) if error.kind != ErrorKind::Mem => {}
        ended => return ended,
    }
    task.check()?;
    out.truncate(start);
    let mut decoder = GzipDecoder::new(Members::First)?;
    let mut rest = input;
    let status = decoder.run(&mut rest, out, task)?;
    let read = input.len() - rest.len();
    let fail = |kind| Err(Error::new(kind, read as u64));
    match status {
        Status::End => Ok(read),
        Status::Full => fail(ErrorKind::Limit),
        _ if decoder.in_trailer() => Err(decoder.footer_error(read)),
        _ => decoder.check_end().and(fail(ErrorKind::Buf)),
    }
}

/// Decompresses a gzip file of one or more members, as a decoder of all [`Members`] does.
///
/// If there are several members (BGZF, or concatenated files), up to `threads` of them are decompressed at
/// once; 0 means one per core.
///
/// # Errors
///
/// As [`first_member`].
pub fn gunzip(input: &[u8], threads: usize, out: &mut Output<'_>, task: &Task<'_>) -> Result<(), Error> {
    let mut at = 0;
    let mut window = Window::new(threads);
    while at < input.len() {
        at += match members::together(&input[at..], &mut window, out.left(), task)? {
            Some(mut together) => {
                if !together.content.give(out)? {
                    return Err(Error::new(ErrorKind::Limit, (at + together.read) as u64));
                }
                together.read
            }
            None => first_member(&input[at..], out, task).map_err(|error| error.after(at))?,
        };
        at += leading_zeros(&input[at..], task)?;
    }
    Ok(())
}

/// How many zero bytes `input` begins with.
fn leading_zeros(input: &[u8], task: &Task<'_>) -> Result<usize, Error> {
    const BETWEEN_CHECKS: usize = 1 << 20;
    let mut zeros = 0;
    for part in input.chunks(BETWEEN_CHECKS) {
        task.check()?;
        let found = part.iter().take_while(|&&byte| byte == 0).count();
        zeros += found;
        if found < part.len() {
            break;
        }
    }
    Ok(zeros)
}

#[cfg(test)]
mod tests {
    use super::super::gzip_header::NAME;
    use super::*;

    #[test]
    fn an_endless_name_is_refused() {
        let mut bytes = vec![0x1f, 0x8b, 8, NAME, 0, 0, 0, 0, 0, 3];
        bytes.resize(3 << 20, b'n');
        let mut decoder = GzipDecoder::new(Members::All).unwrap();
        let mut failed = false;
        for piece in bytes.chunks(100_000) {
            failed |= decoder.run(&mut { piece }, &mut Output::new(), &Task::new()).is_err();
            assert!(decoder.partial.len() <= LARGEST_HEADER + 1);
        }
        assert!(failed);
    }

    #[test]
    fn an_endless_name_is_refused_in_one_piece_too() {
        let mut bytes = vec![0x1f, 0x8b, 8, NAME, 0, 0, 0, 0, 0, 3];
        bytes.resize(3 << 20, b'n');
        bytes.push(0);
        assert_eq!(Header::parse(&bytes).unwrap_err().kind, ErrorKind::Data);
    }

    #[test]
    fn zeros_after_a_member_are_skipped_until_the_task_is_stopped() {
        let mut file = Output::new();
        super::super::compress(b"content", 6, 31, &mut file, &Task::new()).unwrap();
        let mut file = file.into_bytes().into_vec();
        file.resize(file.len() + (5 << 20), 0);
        assert_eq!(gunzip(&file, 1, &mut Output::new(), &Task::new()), Ok(()));
        let checks = std::sync::atomic::AtomicUsize::new(0);
        let poll = |_| checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 4;
        let stopped = gunzip(&file, 1, &mut Output::new(), &Task::with_poll(&poll));
        assert_eq!(stopped.unwrap_err().kind, ErrorKind::Stopped);
        let mut decoder = GzipDecoder::new(Members::All).unwrap();
        checks.store(0, std::sync::atomic::Ordering::Relaxed);
        let stopped = decoder.run(&mut &file[..], &mut Output::new(), &Task::with_poll(&poll));
        assert_eq!(stopped.unwrap_err().kind, ErrorKind::Stopped);
    }

    #[test]
    fn what_is_no_gzip_file_is_named() {
        for (input, kind) in [
            (&b"PK"[..], ErrorKind::NotGzip),
            (b"\x1f\x9d", ErrorKind::NotGzip),
            (b"\x1f\x8b\x07\0\0\0\0\0\0\0", ErrorKind::GzipMethod),
        ] {
            assert_eq!(Header::parse(input).unwrap_err().kind, kind);
        }
        for (input, kind) in [
            (&b""[..], ErrorKind::Buf),
            (b"\x1f", ErrorKind::NotGzip),
            (b"\x1f\x8b", ErrorKind::Buf),
            (b"\x1f\x8b\x07\0\0\0\0\0\0", ErrorKind::Buf),
        ] {
            assert_eq!(first_member(input, &mut Output::new(), &Task::new()).unwrap_err().kind, kind);
        }
    }
}
