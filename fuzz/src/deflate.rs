//! Compression and decompression agree with zlib on any bytes, in each format and with any parameters.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use offlock_core::Task;
use offlock_core::deflate::{
    self, Config, Deflater, ErrorKind, Flush, GzipDecoder, Inflater, Members, Output, Status,
};

/// The limit on the outputs of both libraries, in bytes.
const MOST: usize = 1 << 20;

/// Runs the target on one input.
pub fn run(bytes: &[u8]) {
    for wbits in [-15, 15, 31] {
        read(bytes, wbits);
    }
    if let [level, wbits, mem_level, strategy, rest @ ..] = bytes {
        let config = Config {
            level: i32::from(level % 11) - 1,
            wbits: [9, 10, 12, 15, -9, -15, 25, 31][usize::from(wbits % 8)],
            mem_level: i32::from(mem_level % 9) + 1,
            strategy: i32::from(strategy % 5),
        };
        pack(rest, config);
        members(rest, usize::from(*level) << 8 | usize::from(*wbits), *strategy);
    }
}

/// A gzip file of several members with one changed byte: threads and a single thread decode it to the same
/// bytes or error. Threads read whole members with libdeflate, which accepts some codes that zlib refuses; then the
/// checksum must fit, so the content is right.
fn members(plain: &[u8], at: usize, by: u8) {
    let mut file = Vec::new();
    for part in plain.chunks(1 + plain.len() / 4) {
        let mut out = Output::new();
        deflate::compress(part, 6, 31, &mut out, &Task::new()).expect("nothing stops the task");
        file.extend_from_slice(&out.into_bytes());
    }
    let changed = at % file.len().max(1);
    if let Some(byte) = file.get_mut(changed) {
        *byte ^= by;
    }
    let (together, alone) = (file_on_threads(&file, 3), file_on_threads(&file, 1));
    if matches!(alone.1, Err((ErrorKind::Data, _))) && together.1 == Ok(true) {
        assert_eq!(together.0, plain);
    } else {
        assert_eq!(together, alone);
    }
}

/// Returns the output of a file's decoder, and its final state or error.
fn file_on_threads(file: &[u8], threads: usize) -> (Vec<u8>, Result<bool, (ErrorKind, u64)>) {
    let mut decoder = GzipDecoder::new(Members::All).expect("memory").on_threads(threads);
    let (mut rest, mut plain) = (file, Vec::new());
    loop {
        let mut out = Output::new().limited(1000);
        let status = decoder.run(&mut rest, &mut out, &Task::new());
        plain.extend_from_slice(&out.into_bytes());
        match status {
            Ok(Status::Full) if plain.len() <= MOST => {}
            Ok(_) => return (plain, Ok(decoder.may_end())),
            Err(error) => return (plain, Err((error.kind, error.offset))),
        }
    }
}

/// Returns the content as zlib decodes it, or `None` if zlib refuses it.
fn theirs(packed: &[u8], wbits: i32) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let reader: &mut dyn Read = match wbits {
        15 => &mut ZlibDecoder::new(packed),
        31 => &mut GzDecoder::new(packed),
        _ => &mut DeflateDecoder::new(packed),
    };
    reader.take(MOST as u64 + 1).read_to_end(&mut plain).ok()?;
    (plain.len() <= MOST).then_some(plain)
}

fn read(packed: &[u8], wbits: i32) {
    let task = Task::new();
    let mut out = Output::new().limited(MOST);
    let whole = deflate::decompress(packed, wbits, &mut out, &task);
    let plain = whole.as_ref().ok().map(|_| out.into_bytes().into_vec());
    let piecewise = in_pieces(packed, wbits);
    if wbits > 0 && plain.is_some() && piecewise.is_none() {
        // As above: a whole buffer with a checksum.
        assert_eq!(theirs(packed, wbits), None, "{wbits}");
        return;
    }
    assert_eq!(plain, piecewise, "{wbits} {whole:?}");
    // flate2 reads gzip headers itself, in another way than zlib.
    if wbits != 31 && !matches!(&whole, Err(error) if error.kind == ErrorKind::Limit) {
        assert_eq!(plain, theirs(packed, wbits), "{wbits} {whole:?}");
    }
}

/// Decompresses with a stream that gets its input byte by byte.
fn in_pieces(packed: &[u8], wbits: i32) -> Option<Vec<u8>> {
    let mut stream = Inflater::new(wbits).expect("a window that is allowed");
    let mut out = Output::new().limited(MOST + 1);
    for piece in packed.chunks(1) {
        if stream.run(&mut { piece }, &mut out, &Task::new()).ok()? == Status::End {
            let plain = out.into_bytes().into_vec();
            return (plain.len() <= MOST).then_some(plain);
        }
    }
    None
}

fn pack(plain: &[u8], config: Config) {
    let mut stream = Deflater::new(config).expect("parameters that are allowed");
    let mut out = Output::new();
    for (index, mut piece) in plain.chunks(1 + plain.len() / 3).enumerate() {
        let flush = [Flush::None, Flush::Sync, Flush::Full][index % 3];
        stream.run(&mut piece, &mut out, flush, &Task::new()).expect("nothing stops the task");
    }
    stream.run(&mut &[][..], &mut out, Flush::Finish, &Task::new()).expect("nothing stops the task");
    let packed = out.into_bytes();
    let mut back = Output::new();
    deflate::decompress(&packed, config.wbits, &mut back, &Task::new()).expect("what was just packed");
    assert_eq!(&*back.into_bytes(), plain);
    // The oracle's window of 32 KB can read streams with any smaller window.
    let wbits = if config.wbits < 0 { -15 } else { config.wbits / 16 * 16 + 15 };
    assert_eq!(theirs(&packed, wbits).as_deref(), Some(plain));
}
