//! What a trace has written and a connection has not sent yet.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use crate::fork::lock;

/// The most bytes that wait to be sent. A client that is slower than that is left.
const MOST: usize = 64 << 20;

/// The output of a trace, from which a connection takes. Clones share it. It never blocks, because the recorder's
/// thread, which serves other traces as well, writes to it.
#[derive(Clone, Default)]
pub(super) struct Outgoing(Arc<Mutex<Unsent>>);

#[derive(Default)]
struct Unsent {
    bytes: Vec<u8>,
    is_too_much: bool,
}

impl Outgoing {
    /// Takes what was written; an error if it is not all.
    pub(super) fn take(&self) -> io::Result<Vec<u8>> {
        let mut unsent = lock(&self.0);
        if unsent.is_too_much {
            return Err(io::Error::other("the client is too slow"));
        }
        Ok(std::mem::take(&mut unsent.bytes))
    }
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut unsent = lock(&self.0);
        if unsent.bytes.len() + bytes.len() > MOST {
            *unsent = Unsent { bytes: Vec::new(), is_too_much: true };
            return Err(io::Error::other("the client is too slow"));
        }
        unsent.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slow_client_leaves_is_bounded() {
        let mut out = Outgoing::default();
        out.write_all(b"ab").expect("there is room");
        assert_eq!(out.take().expect("all of it"), b"ab");
        let block = vec![0; MOST / 2];
        out.write_all(&block).expect("there is room");
        out.write_all(&block).expect("there is room");
        assert!(out.write_all(b"c").is_err());
        assert!(out.take().is_err(), "a part is missing");
    }
}
