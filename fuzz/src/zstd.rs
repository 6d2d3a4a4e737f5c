//! Decompression of any bytes agrees with the library's own reader, in one call and in pieces; what is compressed in
//! pieces is read back.

use std::io::Read;

use offlock_core::Task;
use offlock_core::zstd::{
    Compressor, DecoderSettings, Decompressor, Header, Mode, Output, Settings, Status, decompress,
    frame_size, skippable,
};

/// The limit on the outputs, in bytes.
const MOST: usize = 1 << 20;

/// Why more than that is refused.
const TOO_LONG: &str = "more than the limit";

/// The largest window, as a power of two.
const WINDOW_LOG: i32 = 20;

/// Runs the target on one input.
pub fn run(bytes: &[u8]) {
    read(bytes);
    let _ = (Header::read(bytes), skippable(bytes));
    if let Ok(length) = frame_size(bytes, &Task::new()) {
        assert!(length <= bytes.len());
    }
    if let [level, size, modes, plain @ ..] = bytes {
        pack(plain, i32::from(level % 30) - 10, 1 + usize::from(*size), usize::from(*modes));
    }
}

fn settings() -> DecoderSettings {
    DecoderSettings { window_log_max: Some(WINDOW_LOG), ..DecoderSettings::default() }
}

/// The content as the library reads it, or why it refuses it.
fn theirs(packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let mut reader = zstd::stream::read::Decoder::with_buffer(packed).expect("memory");
    reader.window_log_max(WINDOW_LOG as u32).expect("a window that is allowed");
    reader.take(MOST as u64 + 1).read_to_end(&mut plain).map_err(|error| error.to_string())?;
    if plain.len() <= MOST { Ok(plain) } else { Err(TOO_LONG.into()) }
}

fn read(packed: &[u8]) {
    let mut out = Output::new();
    let whole = decompress(packed, &settings(), Some(MOST), &mut out, &Task::new());
    let plain = whole.is_ok().then(|| out.into_bytes().into_vec());
    let theirs = if packed.is_empty() { plain.clone().ok_or_else(String::new) } else { theirs(packed) };
    for other in [in_pieces(packed), theirs] {
        // Only in one call does the library compare the content with the length that the frame says.
        let is_stricter =
            plain.is_none() && whole.as_ref().is_err_and(|error| error.detail.contains("corruption"));
        // A frame that is there as a whole needs no window, so that the library does not look at its size.
        let needs_window = other.as_ref().is_err_and(|error| error.contains("too much memory"));
        assert!(is_stricter || needs_window || plain == other.clone().ok(), "{whole:?} {:?}", other.err());
    }
}

/// Decompresses with streams that get their input byte by byte.
fn in_pieces(packed: &[u8]) -> Result<Vec<u8>, String> {
    let (mut out, mut ended) = (Output::new().limited(MOST + 1), false);
    let mut stream = Decompressor::new(&settings()).expect("memory");
    for piece in packed.chunks(1) {
        if ended {
            stream = Decompressor::new(&settings()).expect("memory");
        }
        let status = stream.run(&mut { piece }, &mut out, &Task::new()).map_err(|error| error.detail)?;
        if status == Status::Full && out.len() > MOST {
            return Err(TOO_LONG.into());
        }
        ended = status == Status::End;
    }
    if !ended {
        return Err("incomplete".into());
    }
    if out.len() <= MOST { Ok(out.into_bytes().into_vec()) } else { Err(TOO_LONG.into()) }
}

fn pack(plain: &[u8], level: i32, size: usize, modes: usize) {
    let mut stream = Compressor::new(&Settings::of_level(level.min(9))).expect("a level that is allowed");
    let mut out = Output::new();
    for (index, mut piece) in plain.chunks(size).enumerate() {
        let mode = [Mode::Continue, Mode::FlushBlock, Mode::FlushFrame][(modes + index) % 3];
        stream.run(&mut piece, mode, &mut out, &Task::new()).expect("nothing stops the task");
    }
    stream.run(&mut &b""[..], Mode::FlushFrame, &mut out, &Task::new()).expect("nothing stops the task");
    let packed = out.into_bytes();
    let mut back = Output::new();
    decompress(&packed, &DecoderSettings::default(), None, &mut back, &Task::new()).expect("just packed");
    assert_eq!(&*back.into_bytes(), plain);
    let mut theirs = Vec::new();
    zstd::stream::read::Decoder::new(&packed[..]).expect("memory").read_to_end(&mut theirs).expect("frames");
    assert_eq!(theirs, plain);
}
