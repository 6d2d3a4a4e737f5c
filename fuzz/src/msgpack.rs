//! The reader, the scanner, the tape and the extraction agree on any bytes, and none of them panics.

use offlock_core::Task;
use offlock_core::msgpack::extract::fields;
use offlock_core::msgpack::{ErrorKind, Limits, Node, Scanner, Tape, end_of_message};

const LIMITS: Limits = Limits::depth(64);

/// Runs the target on one input.
pub fn run(bytes: &[u8]) {
    let task = Task::new();
    let skipped = end_of_message(bytes, 0, &task);
    let whole = Scanner::default().advance(bytes, &LIMITS, &task);
    match Tape::index(bytes, &LIMITS, &task) {
        Ok((tape, end)) => {
            assert_eq!((&skipped, &whole), (&Ok(end), &Ok(Some(end))));
            walk(&tape, bytes);
        }
        Err(error) if error.kind == ErrorKind::Truncated => {
            assert!(!matches!(whole, Ok(Some(_))), "accepted as complete: {whole:?}");
        }
        Err(_) => {}
    }
    assert_eq!(in_pieces(bytes), whole);
    let _ = fields(bytes, &[b"a"], &task);
    let _ = fields(bytes, &[b"a", b"b"], &task);
}

/// Scans the bytes as if they arrived one by one.
fn in_pieces(bytes: &[u8]) -> Result<Option<usize>, offlock_core::msgpack::Error> {
    let mut scanner = Scanner::default();
    for end in 0..=bytes.len() {
        match scanner.advance(&bytes[..end], &LIMITS, &Task::new()) {
            Ok(None) => {}
            found => return found,
        }
    }
    Ok(None)
}

fn walk(tape: &Tape, bytes: &[u8]) {
    let (mut place, end) = (0, tape.after(0));
    while place < end {
        let (node, next) = tape.node(bytes, place);
        assert!(next <= tape.after(place));
        if let Node::Map(_) = node {
            let _ = tape.lookup(bytes, place, b"a");
        }
        place = next;
    }
    assert_eq!(place, end);
}
