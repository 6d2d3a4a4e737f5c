//! Finds the end of a message, and checks it against limits.
//!
//! Keeps a counter of missing values for each open container, instead of a call stack; so depth is bounded by
//! memory and by [`Limits::depth`], not by the machine's stack.

use super::error::{Error, ErrorKind};
use super::reader::{Reader, Token};
use crate::Task;

/// The number of tokens between two checks of the task.
pub(super) const CHECK_EVERY: u32 = 4096;

/// The limits on what a message may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of containers.
    pub depth: usize,
    /// Bytes of one string.
    pub str: u64,
    /// Bytes of one binary.
    pub bin: u64,
    /// Items of one array.
    pub array: u64,
    /// Entries of one map.
    pub map: u64,
    /// Bytes of one extension's payload.
    pub ext: u64,
}

impl Limits {
    /// Limits the depth only.
    pub const fn depth(depth: usize) -> Self {
        Self { depth, str: u64::MAX, bin: u64::MAX, array: u64::MAX, map: u64::MAX, ext: u64::MAX }
    }

    /// Checks one token, which begins at `offset`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLong`] if the token exceeds its limit.
    #[inline]
    pub fn check(&self, token: &Token<'_>, offset: usize) -> Result<(), Error> {
        let (length, limit) = match *token {
            Token::Str(bytes) => (bytes.len() as u64, self.str),
            Token::Bin(bytes) => (bytes.len() as u64, self.bin),
            Token::Ext(_, bytes) => (bytes.len() as u64, self.ext),
            Token::Array(length) => (length.into(), self.array),
            Token::Map(length) => (length.into(), self.map),
            _ => return Ok(()),
        };
        if length <= limit {
            return Ok(());
        }
        Err(Error::new(ErrorKind::TooLong { what: token.family(), length, limit }, offset))
    }
}

/// Finds the end of a message that may arrive in pieces.
///
/// The state is small (one number for each level of nesting), and no byte is read twice except those of a
/// token that was cut off, however many pieces there are.
#[derive(Debug, Clone)]
pub struct Scanner {
    /// The number of values still missing on each level.
    open: Vec<u64>,
    /// The offset of the first token that has not been read, from the beginning of the message.
    pos: usize,
}

impl Default for Scanner {
    fn default() -> Self {
        Self { open: vec![1], pos: 0 }
    }
}

impl Scanner {
    /// A scanner in the middle of a message: `missing` values are still to come on each level, the outermost
    /// level first.
    pub fn inside(missing: Vec<u64>) -> Self {
        Self { open: missing, pos: 0 }
    }

    /// Reads what has arrived of the message since the last call; `bytes` begins with the beginning of the
    /// message.
    ///
    /// Returns the length of the message if it is complete, `None` if more bytes are needed. After an error
    /// or a complete message the scanner is as new.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Reserved`], `TooLong`, `TooDeep` and `Stopped`.
    pub fn advance(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        task: &Task<'_>,
    ) -> Result<Option<usize>, Error> {
        let result = self.run(bytes, limits, task);
        if !matches!(result, Ok(None)) {
            self.reset();
        }
        result
    }

    /// Forgets the current message.
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn run(&mut self, bytes: &[u8], limits: &Limits, task: &Task<'_>) -> Result<Option<usize>, Error> {
        if self.pos > bytes.len() {
            return Ok(None);
        }
        let mut reader = Reader::at(bytes, self.pos);
        let mut until_check = CHECK_EVERY;
        while self.next_level() {
            let token = match reader.token() {
                Ok(token) => token,
                Err(Error { kind: ErrorKind::Truncated, .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            limits.check(&token, self.pos)?;
            self.count(&token, limits)?;
            self.pos = reader.pos();
            until_check -= 1;
            if until_check == 0 {
                task.check()?;
                until_check = CHECK_EVERY;
            }
        }
        Ok(Some(self.pos))
    }

    /// Closes the levels that are complete; returns whether a value is still to come.
    fn next_level(&mut self) -> bool {
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
        if self.open.is_empty() {
            self.open.push(0);
            return false;
        }
        true
    }

    /// Counts one value on the current level, and opens a new level for a container.
    fn count(&mut self, token: &Token<'_>, limits: &Limits) -> Result<(), Error> {
        let items = match *token {
            Token::Array(items) => u64::from(items),
            Token::Map(entries) => u64::from(entries) * 2,
            _ => 0,
        };
        if items > 0 && self.open.len() > limits.depth {
            return Err(Error::new(ErrorKind::TooDeep(limits.depth), self.pos));
        }
        if let Some(left) = self.open.last_mut() {
            *left -= 1;
        }
        if items > 0 {
            self.open.push(items);
        }
        Ok(())
    }
}

/// The offset of the end of the message that begins at `start`.
///
/// # Errors
///
/// [`ErrorKind::Truncated`], `Reserved` and `Stopped`.
pub fn end_of_message(bytes: &[u8], start: usize, task: &Task<'_>) -> Result<usize, Error> {
    let mut reader = Reader::at(bytes, start);
    skip(&mut reader, task)?;
    Ok(reader.pos())
}

/// Skips one value. The depth needs no limit here, because nothing is stored per level.
pub(super) fn skip(reader: &mut Reader<'_>, task: &Task<'_>) -> Result<(), Error> {
    let mut values = 1_u64;
    let mut until_check = CHECK_EVERY;
    while values > 0 {
        values -= 1;
        values += match reader.token()? {
            Token::Array(items) => u64::from(items),
            Token::Map(entries) => u64::from(entries) * 2,
            _ => 0,
        };
        if values > reader.left() as u64 {
            return Err(Error::new(ErrorKind::Truncated, reader.pos()));
        }
        until_check -= 1;
        if until_check == 0 {
            task.check()?;
            until_check = CHECK_EVERY;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"\x82\xa1a\x93\x01\xc0\x90\xa1b\x81\xa1c\xcb\0\0\0\0\0\0\0\0";

    fn advance(scanner: &mut Scanner, bytes: &[u8]) -> Result<Option<usize>, ErrorKind> {
        scanner.advance(bytes, &Limits::depth(8), &Task::new()).map_err(|error| error.kind)
    }

    #[test]
    fn a_message_in_pieces_is_found_when_its_last_byte_is_there() {
        let mut scanner = Scanner::default();
        for _ in 0..2 {
            for end in 0..MESSAGE.len() {
                assert_eq!(advance(&mut scanner, &MESSAGE[..end]), Ok(None));
            }
            assert_eq!(advance(&mut scanner, MESSAGE), Ok(Some(MESSAGE.len())));
        }
    }

    #[test]
    fn what_follows_is_left_alone() {
        let two = [MESSAGE, b"\xc1"].concat();
        assert_eq!(advance(&mut Scanner::default(), &two), Ok(Some(MESSAGE.len())));
        assert_eq!(end_of_message(&two, 0, &Task::new()), Ok(MESSAGE.len()));
        assert_eq!(end_of_message(&two, 3, &Task::new()), Ok(7));
    }

    #[test]
    fn depth_is_limited_to_the_level() {
        let nested = |levels| [vec![0x91; levels], vec![0xc0]].concat();
        assert_eq!(advance(&mut Scanner::default(), &nested(8)), Ok(Some(9)));
        assert_eq!(advance(&mut Scanner::default(), &nested(9)), Err(ErrorKind::TooDeep(8)));
    }

    #[test]
    fn an_error_leaves_the_scanner_as_new() {
        let mut scanner = Scanner::default();
        assert_eq!(advance(&mut scanner, b"\x92\xc1"), Err(ErrorKind::Reserved(0xc1)));
        assert_eq!(advance(&mut scanner, b"\x07"), Ok(Some(1)));
    }

    #[test]
    fn lengths_are_limited_each_on_its_own() {
        let limits = Limits { str: 2, ..Limits::depth(8) };
        let mut scanner = Scanner::default();
        assert_eq!(scanner.advance(b"\xa2ab", &limits, &Task::new()), Ok(Some(3)));
        let error = scanner.advance(b"\x91\xa3abc", &limits, &Task::new()).unwrap_err();
        assert_eq!(error, Error::new(ErrorKind::TooLong { what: "str", length: 3, limit: 2 }, 1));
        assert_eq!(error.to_string(), "3 exceeds max_str_len(2) at offset 1");
    }

    #[test]
    fn a_huge_declared_length_costs_nothing() {
        for message in [&b"\xdd\xff\xff\xff\xff\x01"[..], b"\xdf\xff\xff\xff\xff\x01\x01"] {
            assert_eq!(advance(&mut Scanner::default(), message), Ok(None));
            let error = end_of_message(message, 0, &Task::new()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Truncated);
        }
    }

    #[test]
    fn a_stopped_task_stops_a_long_scan() {
        let task = Task::new();
        task.stop();
        let long = [&b"\xdc\xff\xff"[..], &[0; 65535]].concat();
        let error = Scanner::default().advance(&long, &Limits::depth(8), &task).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Stopped);
    }
}
