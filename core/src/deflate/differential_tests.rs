//! Our streams against zlib's, in both directions: every parameter, flush point, dictionary and way of
//! chunking.

#![allow(unsafe_code)]

use std::mem::{MaybeUninit, size_of};

use libz_sys as zlib;
use proptest::prelude::*;

use super::*;
use crate::Task;

/// A stream of zlib itself, compressing or decompressing.
struct Theirs {
    raw: Box<zlib::z_stream>,
    end: unsafe extern "C" fn(*mut zlib::z_stream) -> i32,
    step: unsafe extern "C" fn(*mut zlib::z_stream, i32) -> i32,
}

impl Theirs {
    fn packing(config: Config, dictionary: &[u8]) -> Self {
        let mut raw = Box::new(MaybeUninit::<zlib::z_stream>::zeroed());
        // SAFETY: the record is zeroed as zlib asks, the dictionary valid for its length.
        unsafe {
            let (version, size) = (zlib::zlibVersion(), size_of::<zlib::z_stream>() as i32);
            let Config { level, wbits, mem_level, strategy } = config;
            let code =
                zlib::deflateInit2_(raw.as_mut_ptr(), level, 8, wbits, mem_level, strategy, version, size);
            assert_eq!(code, zlib::Z_OK);
            if !dictionary.is_empty() {
                let code = zlib::deflateSetDictionary(
                    raw.as_mut_ptr(),
                    dictionary.as_ptr(),
                    dictionary.len() as u32,
                );
                assert_eq!(code, zlib::Z_OK);
            }
        }
        // SAFETY: zlib has filled in what must not be null.
        Self { raw: unsafe { raw.assume_init() }, end: zlib::deflateEnd, step: zlib::deflate }
    }

    fn unpacking(wbits: i32) -> Self {
        let mut raw = Box::new(MaybeUninit::<zlib::z_stream>::zeroed());
        // SAFETY: the record is zeroed as `inflateInit2` asks; version and size are those it was built with.
        let code = unsafe {
            zlib::inflateInit2_(
                raw.as_mut_ptr(),
                wbits,
                zlib::zlibVersion(),
                size_of::<zlib::z_stream>() as i32,
            )
        };
        assert_eq!(code, zlib::Z_OK);
        // SAFETY: zlib has filled in what must not be null.
        Self { raw: unsafe { raw.assume_init() }, end: zlib::inflateEnd, step: zlib::inflate }
    }

    /// Processes `input` until zlib needs more, and returns the last code.
    fn run(&mut self, input: &[u8], flush: i32, out: &mut Vec<u8>) -> i32 {
        self.raw.next_in = input.as_ptr().cast_mut();
        self.raw.avail_in = input.len() as u32;
        loop {
            let mut room = vec![0; 20_000];
            self.raw.next_out = room.as_mut_ptr();
            self.raw.avail_out = room.len() as u32;
            // SAFETY: the stream is initialized, input and output are valid for their lengths.
            let code = unsafe { (self.step)(&mut *self.raw, flush) };
            let left = self.raw.avail_out as usize;
            out.extend(&room[..room.len() - left]);
            if code != zlib::Z_OK || left > 0 {
                return code;
            }
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: initialized above, ended once.
        unsafe { (self.end)(&mut *self.raw) };
    }
}

/// Pieces of the input, each with its flush mode.
type Plan = Vec<(usize, usize)>;

const FLUSHES: [Flush; 5] = [Flush::None, Flush::Partial, Flush::Sync, Flush::Full, Flush::Block];

fn pieces<'a>(plain: &'a [u8], plan: &Plan) -> Vec<(&'a [u8], Flush)> {
    let (mut rest, mut pieces) = (plain, Vec::new());
    for &(size, flush) in plan {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        pieces.push((piece, FLUSHES[flush]));
        rest = after;
    }
    pieces.push((rest, Flush::Finish));
    pieces
}

fn packed_by_them(plain: &[u8], plan: &Plan, config: Config, dictionary: &[u8]) -> Vec<u8> {
    let (mut stream, mut out) = (Theirs::packing(config, dictionary), Vec::new());
    for (piece, flush) in pieces(plain, plan) {
        stream.run(piece, flush as i32, &mut out);
    }
    out
}

fn packed_by_us(plain: &[u8], plan: &Plan, config: Config, dictionary: &[u8]) -> Vec<u8> {
    let (mut stream, mut out) = (Deflater::new(config).unwrap(), Output::new());
    if !dictionary.is_empty() {
        stream.set_dictionary(dictionary).unwrap();
    }
    for (mut piece, flush) in pieces(plain, plan) {
        stream.run(&mut piece, &mut out, flush, &Task::new()).unwrap();
    }
    out.into_bytes().into_vec()
}

/// How decompression ended: zlib's code, the output, and how much was read.
type End = (i32, Vec<u8>, u64);

fn read_by_them(packed: &[u8], size: usize, wbits: i32, dictionary: &[u8]) -> End {
    let (mut stream, mut out, mut code, mut read) = (Theirs::unpacking(wbits), Vec::new(), zlib::Z_OK, 0);
    if wbits < 0 && !dictionary.is_empty() {
        // SAFETY: the dictionary is valid for its length.
        unsafe { zlib::inflateSetDictionary(&mut *stream.raw, dictionary.as_ptr(), dictionary.len() as u32) };
    }
    for piece in packed.chunks(size) {
        code = stream.run(piece, zlib::Z_SYNC_FLUSH, &mut out);
        if code == zlib::Z_NEED_DICT {
            let rest = piece[piece.len() - stream.raw.avail_in as usize..].to_vec();
            // SAFETY: the dictionary is valid for its length.
            code = unsafe {
                zlib::inflateSetDictionary(&mut *stream.raw, dictionary.as_ptr(), dictionary.len() as u32)
            };
            if code == zlib::Z_OK {
                code = stream.run(&rest, zlib::Z_SYNC_FLUSH, &mut out);
            }
        }
        // zlib's own count leaves out what was read by a call that ended by asking for the dictionary.
        read += piece.len() as u64 - u64::from(stream.raw.avail_in);
        if !matches!(code, zlib::Z_OK | zlib::Z_BUF_ERROR) {
            break;
        }
    }
    (if code == zlib::Z_BUF_ERROR { zlib::Z_OK } else { code }, out, read)
}

fn read_by_us(packed: &[u8], size: usize, wbits: i32, dictionary: &[u8]) -> End {
    let (mut stream, mut out) = (Inflater::new(wbits).unwrap(), Output::new());
    if wbits < 0 && !dictionary.is_empty() {
        stream.set_dictionary(dictionary).unwrap();
    }
    let mut code = zlib::Z_OK;
    for mut piece in packed.chunks(size) {
        let mut status = stream.run(&mut piece, &mut out, &Task::new());
        if status == Ok(Status::NeedDict) {
            status = stream
                .set_dictionary(dictionary)
                .and_then(|()| stream.run(&mut piece, &mut out, &Task::new()));
        }
        code = match status {
            Ok(Status::End) => zlib::Z_STREAM_END,
            Ok(Status::NeedDict) => zlib::Z_NEED_DICT,
            Ok(_) => zlib::Z_OK,
            Err(error) => error.kind.code(),
        };
        if code != zlib::Z_OK {
            break;
        }
    }
    (code, out.into_bytes().into_vec(), stream.total_in())
}

fn configs() -> impl Strategy<Value = Config> {
    let wbits = prop_oneof![9..=15, -15..=-9, 25..=31];
    (-1..=9, wbits, 1..=9, 0..=4).prop_map(|(level, wbits, mem_level, strategy)| Config {
        level,
        wbits,
        mem_level,
        strategy,
    })
}

/// Words and noise.
fn plains() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => (0..50usize, 1..30usize).prop_map(|(word, times)| format!("word{word} ").repeat(times).into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..3000),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn each_reads_the_others_streams(
        plain in plains(),
        config in configs(),
        plan in proptest::collection::vec((0..9000usize, 0..FLUSHES.len()), 0..6),
        dictionary in proptest::collection::vec(any::<u8>(), 0..300),
        size in 1..5000usize,
    ) {
        let dictionary = if config.wbits > 15 { Vec::new() } else { dictionary };
        for packed in [packed_by_us(&plain, &plan, config, &dictionary), packed_by_them(&plain, &plan, config, &dictionary)] {
            let ours = read_by_us(&packed, size, config.wbits, &dictionary);
            prop_assert_eq!(&ours, &read_by_them(&packed, size, config.wbits, &dictionary));
            prop_assert!(ours == (zlib::Z_STREAM_END, plain.clone(), packed.len() as u64));
        }
    }

    #[test]
    fn damage_is_found_at_the_same_place(
        plain in plains(),
        wbits in prop_oneof![Just(15), Just(-15), Just(31)],
        (at, bit, cut) in (any::<prop::sample::Index>(), 0..8u8, any::<prop::sample::Index>()),
        near_the_start in any::<bool>(),
        after in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut packed = packed_by_them(&plain, &Vec::new(), Config { wbits, ..Config::default() }, &[]);
        packed.extend(after);
        let within = if near_the_start { packed.len().min(60) } else { packed.len() };
        packed[at.index(within)] ^= 1 << bit;
        packed.truncate(cut.index(packed.len()) + 1);
        let theirs = read_by_them(&packed, packed.len(), wbits, &[]);
        let ours = read_by_us(&packed, packed.len(), wbits, &[]);
        prop_assert_eq!((ours.0, ours.1 == theirs.1), (theirs.0, true));
        // In one call.
        let mut out = Output::new();
        let whole = decompress(&packed, wbits, &mut out, &Task::new());
        match (theirs.0, whole) {
            (zlib::Z_STREAM_END, Ok(read)) => prop_assert_eq!((read as u64, out.into_bytes().into_vec()), (theirs.2, theirs.1)),
            (zlib::Z_OK, Err(error)) => prop_assert_eq!(error.kind, ErrorKind::Buf),
            (code, Err(error)) => prop_assert_eq!(error.kind.code(), code),
            (code, Ok(_)) => prop_assert!(false, "taken, where zlib says {}", code),
        }
    }
}

/// A length code with a single symbol, and data that uses the missing one: zlib rejects it, libdeflate does
/// not.
#[test]
fn half_a_code_is_refused() {
    let packed = [
        0x93, 0x97, 0x97, 0x91, 0x97, 0x97, 0x97, 0x1f, 0x03, 0x91, 0x72, 0x50, 0x36, 0x18, 0x81, 0x81, 0x1c,
        0x48, 0x08, 0xc6, 0x81, 0x02, 0x84, 0x00, 0x00,
    ];
    assert_eq!(read_by_them(&packed, packed.len(), -15, &[]).0, zlib::Z_DATA_ERROR);
    assert_eq!(decompress(&packed, -15, &mut Output::new(), &Task::new()).unwrap_err().kind, ErrorKind::Data);
}
