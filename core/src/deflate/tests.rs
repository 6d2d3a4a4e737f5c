//! Against zlib itself, in both directions.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::decompress::decompress_stream;
use super::ratio_tests::source_text;
use super::*;
use crate::Task;

/// A small generator: the tests must not depend on the machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Texts of `len` bytes that compress well, a little, and not at all.
fn samples(len: usize) -> Vec<Vec<u8>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let words: Vec<Vec<u8>> = (0..3000)
        .map(|_| (0..1 + random.below(9)).map(|_| b'a' + random.below(26) as u8).collect())
        .collect();
    let mut text = Vec::new();
    while text.len() < len {
        let rank = 3000 / (1 + random.below(3000));
        text.extend(&words[(rank + random.below(1 + rank * 2)).min(2999)]);
        text.push(if random.below(9) == 0 { b'\n' } else { b' ' });
    }
    text.truncate(len);
    let noise = (0..len).map(|_| random.next() as u8).collect();
    vec![vec![0; len], text, noise]
}

const SIZES: [usize; 7] = [0, 1, 1000, 65_535, 65_536, 300_000, 1_200_000];

fn theirs(plain: &[u8], level: u32, wbits: i32) -> Vec<u8> {
    let level = Compression::new(level);
    let mut made = Vec::new();
    match wbits {
        -15 => DeflateEncoder::new(&mut made, level).write_all(plain).unwrap(),
        15 => ZlibEncoder::new(&mut made, level).write_all(plain).unwrap(),
        _ => GzEncoder::new(&mut made, level).write_all(plain).unwrap(),
    }
    made
}

fn read_by_them(packed: &[u8], wbits: i32) -> Vec<u8> {
    let mut plain = Vec::new();
    match wbits {
        -15 => DeflateDecoder::new(packed).read_to_end(&mut plain),
        15 => ZlibDecoder::new(packed).read_to_end(&mut plain),
        _ => MultiGzDecoder::new(packed).read_to_end(&mut plain),
    }
    .unwrap();
    plain
}

fn ours(plain: &[u8], level: i32, wbits: i32) -> Bytes {
    let mut out = Output::new();
    compress(plain, level, wbits, &mut out, &Task::new()).unwrap();
    out.into_bytes()
}

fn back(packed: &[u8], wbits: i32) -> Result<Bytes, Error> {
    let mut out = Output::new();
    decompress(packed, wbits, &mut out, &Task::new())?;
    Ok(out.into_bytes())
}

#[test]
fn ours_reads_theirs_and_theirs_reads_ours() {
    for len in SIZES {
        for plain in samples(len) {
            for level in [0, 1, 6, 9] {
                for wbits in [-15, 15, 31] {
                    let packed = ours(&plain, level, wbits);
                    assert!(read_by_them(&packed, wbits) == plain, "{len} {level} {wbits}");
                    let packed = theirs(&plain, level as u32, wbits);
                    assert!(*back(&packed, wbits).unwrap() == plain, "{len} {level} {wbits}");
                }
            }
        }
    }
}

#[test]
fn pieces_with_seams_are_one_stream() {
    let plain = source_text().repeat(30);
    for level in [4, 6, 7] {
        let packed = ours(&plain, level, 15);
        assert!(read_by_them(&packed, 15) == plain);
        assert!(packed.len() * 100 <= theirs(&plain, level as u32, 15).len() * 102);
    }
}

#[test]
fn the_whole_buffer_engine_and_the_stream_agree() {
    for len in SIZES {
        for plain in samples(len) {
            let packed = theirs(&plain, 6, 15);
            let mut out = Output::new();
            let mut stream = Inflater::new(15).unwrap();
            decompress_stream(&mut stream, &packed, &mut out, &Task::new()).unwrap();
            assert!(*out.into_bytes() == *back(&packed, 15).unwrap());
        }
    }
}

#[test]
fn lent_memory_of_any_size_will_do() {
    let plain = &samples(300_000)[1];
    let packed = theirs(plain, 6, 15);
    for lent in [0, 1, 1000, 299_999, 300_000, 400_000] {
        let mut memory = vec![std::mem::MaybeUninit::uninit(); lent];
        let mut out = Output::lent(&mut memory);
        decompress(&packed, 15, &mut out, &Task::new()).unwrap();
        let mut made = Vec::new();
        out.since(0, |piece| made.extend_from_slice(piece));
        assert!(made == *plain);
        assert_eq!(out.finish().0, if lent < 300_000 { 0 } else { 300_000 }, "one piece, wherever it lies");
    }
}

#[test]
fn the_guess_is_near_for_even_data() {
    let plain = &samples(3_000_000)[1];
    for wbits in [15, 31] {
        let guess = expected_size(&theirs(plain, 6, wbits), wbits);
        assert!((3_000_000..8_000_000).contains(&guess), "{guess}");
    }
    assert_eq!(expected_size(b"", 15), 0);
}

#[test]
fn a_limit_is_met_exactly() {
    for len in [1000, 300_000] {
        for plain in samples(len) {
            let packed = theirs(&plain, 6, 15);
            for (limit, fits) in [(0, false), (len - 1, false), (len, true), (len + 1, true)] {
                let mut out = Output::new().limited(limit);
                let result = decompress(&packed, 15, &mut out, &Task::new());
                assert_eq!(result.is_ok(), fits, "{len} {limit}");
                if let Err(error) = result {
                    assert_eq!(error.kind, ErrorKind::Limit);
                }
                assert!(out.len() <= limit);
            }
        }
    }
}

#[test]
fn every_cut_is_incomplete() {
    for wbits in [-15, 15, 31] {
        let packed = ours(&samples(300)[1], 6, wbits);
        for cut in 0..packed.len() {
            let error = back(&packed[..cut], wbits).unwrap_err();
            assert_eq!((error.kind, error.offset), (ErrorKind::Buf, cut as u64), "{wbits}");
        }
    }
}

#[test]
fn what_follows_a_stream_is_left() {
    for wbits in [-15, 15, 31] {
        let mut packed = ours(b"lock", 6, wbits).to_vec();
        let len = packed.len();
        packed.extend(b"more");
        assert_eq!(decompress(&packed, wbits, &mut Output::new(), &Task::new()), Ok(len));
    }
}

#[test]
fn errors_are_zlibs() {
    let packed = ours(b"the lock", 6, 15);
    let mut wrong_sum = packed.to_vec();
    *wrong_sum.last_mut().unwrap() ^= 1;
    let error = back(&wrong_sum, 15).unwrap_err();
    assert_eq!((error.kind, error.message()), (ErrorKind::Data, "incorrect data check"));
    let error = back(b"xx nonsense", 15).unwrap_err();
    assert_eq!((error.kind, error.message()), (ErrorKind::Data, "incorrect header check"));
    assert_eq!(Inflater::new(99).err().unwrap().kind, ErrorKind::Stream);
    let level = Config { level: 10, ..Config::default() };
    assert_eq!(Deflater::new(level).err().unwrap().kind, ErrorKind::Stream);
}

#[test]
fn streams_take_any_chunks() {
    let mut random = Random(7);
    let task = Task::new();
    for plain in samples(200_000) {
        for flush in [Flush::None, Flush::Partial, Flush::Sync, Flush::Full, Flush::Block] {
            let mut deflater = Deflater::new(Config { level: 5, ..Config::default() }).unwrap();
            let mut out = Output::new();
            let mut rest = plain.as_slice();
            while !rest.is_empty() {
                let (mut piece, after) = rest.split_at(rest.len().min(1 + random.below(30_000)));
                deflater.run(&mut piece, &mut out, flush, &task).unwrap();
                assert!(piece.is_empty());
                rest = after;
            }
            assert_eq!(deflater.run(&mut &[][..], &mut out, Flush::Finish, &task), Ok(Status::End));
            let packed = out.into_bytes();
            assert!(read_by_them(&packed, 15) == plain);
            assert!(inflate_in_pieces(&packed, 15, &mut random) == plain);
        }
    }
}

/// Text, an array of numbers and text again: the search is changed in between.
fn changing_data() -> Vec<u8> {
    let counters = (0..60_000_u32).flat_map(|number| (number * 3 + number % 3).to_le_bytes());
    [&source_text()[..70_000], &counters.collect::<Vec<u8>>(), &source_text()[..90_000]].concat()
}

#[test]
fn streams_change_their_search_in_any_chunks_and_rooms() {
    let mut random = Random(12);
    let task = Task::new();
    let plain = changing_data();
    for level in 0..=9 {
        let mut deflater = Deflater::new(Config { level, ..Config::default() }).unwrap();
        for (most_read, most_written) in [(40_000, 100), (3_000, 7), (200_000, 50_000)] {
            let (mut rest, mut packed) = (plain.as_slice(), Vec::new());
            let mut status = Status::More;
            while status != Status::End {
                let (mut piece, after) = rest.split_at(rest.len().min(1 + random.below(most_read)));
                let flush = if after.is_empty() { Flush::Finish } else { Flush::None };
                loop {
                    let mut out = Output::new().limited(1 + random.below(most_written));
                    status = deflater.run(&mut piece, &mut out, flush, &task).unwrap();
                    packed.extend_from_slice(&out.into_bytes());
                    if status != Status::Full {
                        break;
                    }
                    if random.below(50) == 0 {
                        deflater = deflater.copy().unwrap();
                    }
                }
                assert!(piece.is_empty());
                rest = after;
            }
            assert!(read_by_them(&packed, 15) == plain, "level {level}");
            deflater.reset().unwrap();
        }
    }
}

#[test]
fn streams_have_the_header_that_theirs_have() {
    let task = Task::new();
    for (level, dictionary) in (0..=9).flat_map(|level| [(level, false), (level, true)]) {
        let mut theirs = flate2::Compress::new(Compression::new(level), true);
        let mut expected = Vec::with_capacity(100);
        let mut stream = Deflater::new(Config { level: 3, ..Config::default() }).unwrap();
        stream.params(level as i32, 0, &mut Output::new(), &task).unwrap();
        for _ in 0..2 {
            if dictionary {
                theirs.set_dictionary(b"some words").unwrap();
                stream.set_dictionary(b"some words").unwrap();
            }
            let mut packed = Vec::new();
            while packed.len() < 6 {
                let mut out = Output::new().limited(1);
                stream.run(&mut &b"some more words"[..], &mut out, Flush::Finish, &task).unwrap();
                packed.extend_from_slice(&out.into_bytes());
            }
            expected.clear();
            theirs.compress_vec(b"some more words", &mut expected, flate2::FlushCompress::Finish).unwrap();
            let header = if dictionary { 6 } else { 2 };
            assert_eq!(packed[..header], expected[..header], "level {level}");
            stream.reset().unwrap();
            theirs.reset();
        }
    }
}

#[test]
fn streams_find_short_matches_wherever_they_begin() {
    let plain = changing_data();
    for level in 1..=9 {
        let mut out = Output::new();
        let mut stream = Deflater::new(Config { level, ..Config::default() }).unwrap();
        stream.run(&mut plain.as_slice(), &mut out, Flush::Finish, &Task::new()).unwrap();
        let mut theirs = ZlibEncoder::new(Vec::new(), Compression::new(level as u32));
        theirs.write_all(&plain).unwrap();
        let theirs = theirs.finish().unwrap().len();
        // Up to 64 KB pass before the search is changed, which costs about 25 KB here.
        assert!(out.len() < theirs + 30_000, "level {level}: {} to {theirs}", out.len());
    }
}

fn inflate_in_pieces(packed: &[u8], wbits: i32, random: &mut Random) -> Vec<u8> {
    let mut inflater = Inflater::new(wbits).unwrap();
    let (mut rest, mut plain) = (packed, Vec::new());
    while !inflater.ended() {
        let end = rest.len().min(1 + random.below(5000));
        let mut piece = &rest[..end];
        let mut out = Output::new().limited(1 + random.below(20_000));
        inflater.run(&mut piece, &mut out, &Task::new()).unwrap();
        rest = &rest[end - piece.len()..];
        plain.extend_from_slice(&out.into_bytes());
    }
    assert_eq!(inflater.total_out(), plain.len() as u64);
    plain
}

#[test]
fn a_copy_goes_its_own_way() {
    let task = Task::new();
    let plain = &samples(100_000)[1];
    let mut first = Deflater::new(Config::default()).unwrap();
    let mut out = Output::new();
    first.run(&mut &plain[..50_000], &mut out, Flush::Sync, &task).unwrap();
    let mut second = first.copy().unwrap();
    let start = out.into_bytes().into_vec();
    for (stream, rest) in [(&mut first, &plain[50_000..]), (&mut second, b"other".as_slice())] {
        let mut out = Output::new();
        out.push(&start).unwrap();
        stream.run(&mut { rest }, &mut out, Flush::Finish, &task).unwrap();
        let expected = [&plain[..50_000], rest].concat();
        assert!(*back(&out.into_bytes(), 15).unwrap() == expected);
    }
}

#[test]
fn a_copy_of_a_decompressor_goes_its_own_way() {
    let task = Task::new();
    let plain = &samples(100_000)[1];
    let packed = theirs(plain, 6, 15);
    let mut first = Inflater::new(15).unwrap();
    let mut untouched = first.copy().unwrap();
    let (start, end) = packed.split_at(packed.len() / 2);
    let mut out = Output::new();
    first.run(&mut { start }, &mut out, &task).unwrap();
    let begun = out.into_bytes();
    let mut second = first.copy().unwrap();
    drop(first);
    let mut out = Output::new();
    out.push(&begun).unwrap();
    assert_eq!(second.run(&mut { end }, &mut out, &task), Ok(Status::End));
    assert!(*out.into_bytes() == *plain);
    assert_eq!(untouched.run(&mut &*packed, &mut Output::new(), &task), Ok(Status::End));
}

#[test]
fn a_dictionary_is_asked_for() {
    let task = Task::new();
    let mut deflater = Deflater::new(Config::default()).unwrap();
    deflater.set_dictionary(b"the interpreter lock").unwrap();
    let mut out = Output::new();
    deflater.run(&mut &b"off the interpreter lock"[..], &mut out, Flush::Finish, &task).unwrap();
    let packed = out.into_bytes();
    assert_eq!(back(&packed, 15).unwrap_err().kind, ErrorKind::NeedDict);
    let mut inflater = Inflater::new(15).unwrap();
    let (mut rest, mut out) = (&*packed, Output::new());
    assert_eq!(inflater.run(&mut rest, &mut out, &task), Ok(Status::NeedDict));
    assert_eq!(inflater.set_dictionary(b"wrong").unwrap_err().kind, ErrorKind::Data);
    inflater.set_dictionary(b"the interpreter lock").unwrap();
    assert_eq!(inflater.run(&mut rest, &mut out, &task), Ok(Status::End));
    assert_eq!(&*out.into_bytes(), b"off the interpreter lock");
}

#[test]
fn parameters_change_on_the_way() {
    let task = Task::new();
    let plain = &samples(100_000)[1];
    let mut deflater = Deflater::new(Config { level: 1, ..Config::default() }).unwrap();
    let mut out = Output::new();
    deflater.run(&mut &plain[..50_000], &mut out, Flush::None, &task).unwrap();
    deflater.params(9, 2, &mut out, &task).unwrap();
    deflater.run(&mut &plain[50_000..], &mut out, Flush::Finish, &task).unwrap();
    assert!(*back(&out.into_bytes(), 15).unwrap() == *plain);
    assert!(deflater.params(10, 0, &mut Output::new(), &task).is_err());
}

#[test]
fn a_damaged_stream_goes_on_after_a_full_flush() {
    let task = Task::new();
    let mut deflater = Deflater::new(Config { wbits: -15, ..Config::default() }).unwrap();
    let mut out = Output::new();
    deflater.run(&mut &b"lost "[..], &mut out, Flush::Full, &task).unwrap();
    let damaged = out.len() - 5;
    deflater.run(&mut &b"found"[..], &mut out, Flush::Finish, &task).unwrap();
    let packed = out.into_bytes();
    let mut inflater = Inflater::new(-15).unwrap();
    let (mut rest, mut out) = (&packed[damaged..], Output::new());
    assert!(inflater.sync(&mut rest).unwrap());
    inflater.run(&mut rest, &mut out, &task).unwrap();
    assert_eq!(&*out.into_bytes(), b"found");
    assert!(!Inflater::new(-15).unwrap().sync(&mut &b"no such point"[..]).unwrap());
}

#[test]
fn a_stopped_stream_goes_on_later() {
    let plain = &samples(3_000_000)[1];
    let packed = theirs(plain, 6, 15);
    let mut inflater = Inflater::new(15).unwrap();
    let (mut rest, mut out) = (packed.as_slice(), Output::new());
    let checks = std::sync::atomic::AtomicUsize::new(0);
    let poll = |_| checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 3;
    let error = inflater.run(&mut rest, &mut out, &Task::with_poll(&poll)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Stopped);
    assert!(!out.is_empty() && out.len() < plain.len());
    assert_eq!(inflater.run(&mut rest, &mut out, &Task::new()), Ok(Status::End));
    assert!(*out.into_bytes() == *plain);
}

#[test]
fn a_stopped_call_ends_soon() {
    let packed = theirs(&vec![0; 200 << 20], 1, 15);
    let stop_at = std::sync::atomic::AtomicUsize::new(0);
    let poll = |_| stop_at.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 10;
    let mut out = Output::new();
    let error = decompress(&packed, 15, &mut out, &Task::with_poll(&poll)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Stopped);
    assert!(out.len() <= 11 * (256 << 10), "{}", out.len());
}

#[test]
fn batches_keep_their_order() {
    let plain: Vec<Vec<u8>> = (0..2000).flat_map(|i| samples(i % 700)).collect();
    let inputs: Vec<&[u8]> = plain.iter().map(Vec::as_slice).collect();
    let task = Task::new();
    for threads in [0, 1, 2, 7] {
        let packed = deflate_all(&inputs, 6, 15, threads, &task).unwrap();
        let packed: Vec<&[u8]> = packed.iter().collect();
        let unpacked = inflate_all(&packed, 15, Some(700), threads, &task).unwrap();
        assert!(unpacked.iter().eq(inputs.iter().copied()));
    }
}

#[test]
fn a_batch_names_the_first_bad_input() {
    let good = ours(&vec![b'x'; 100_000], 0, 15);
    let mut inputs = vec![&*good; 50];
    inputs[17] = b"bad";
    inputs[40] = b"worse";
    let (index, error) = inflate_all(&inputs, 15, None, 2, &Task::new()).unwrap_err();
    assert_eq!((index, error.message()), (17, "incorrect header check"));
}

#[test]
fn blocks_are_one_stream() {
    let task = Task::new();
    for len in SIZES {
        for plain in samples(len) {
            for (threads, flush) in [(1, Flush::None), (2, Flush::Sync), (3, Flush::Full)] {
                let mut deflater = BlockDeflater::new(6, 0, threads).unwrap();
                let mut out = Output::new();
                for mut piece in plain.chunks(1_000_000) {
                    deflater.run(&mut piece, &mut out, flush, &task).unwrap();
                }
                deflater.run(&mut &[][..], &mut out, Flush::Finish, &task).unwrap();
                let packed = out.into_bytes();
                assert!(read_by_them(&packed, -15) == plain, "{len} {threads}");
            }
        }
    }
}

#[test]
fn stopped_blocks_are_not_lost() {
    let plain = &samples(3_000_000)[1];
    let mut deflater = BlockDeflater::new(6, 0, 2).unwrap();
    let (mut rest, mut out) = (plain.as_slice(), Output::new());
    let stopped = Task::new();
    stopped.stop();
    for _ in 0..3 {
        assert!(deflater.run(&mut rest, &mut out, Flush::None, &stopped).is_err());
    }
    deflater.run(&mut rest, &mut out, Flush::Finish, &Task::new()).unwrap();
    assert!(read_by_them(&out.into_bytes(), -15) == *plain);
}

/// A file of several members, some of them empty, with zero bytes in between, and its content.
fn many_members() -> (Vec<u8>, Vec<u8>) {
    let (mut file, mut content) = (Vec::new(), Vec::new());
    for (index, plain) in [0, 10, 200_000, 0, 70_000, 1_000_000].into_iter().flat_map(samples).enumerate() {
        file.extend(theirs(&plain, 6, 31));
        file.resize(file.len() + index % 3, 0);
        content.extend(plain);
    }
    (file, content)
}

#[test]
fn members_are_read_one_after_the_other_and_together() {
    let (file, content) = many_members();
    let task = Task::new();
    for threads in [1, 2, 5] {
        let mut out = Output::new();
        gunzip(&file, threads, &mut out, &task).unwrap();
        assert!(*out.into_bytes() == content);
        let mut out = Output::new().limited(content.len() - 1);
        assert_eq!(gunzip(&file, threads, &mut out, &task).unwrap_err().kind, ErrorKind::Limit);
    }
    for size in [1, 7, 1000, 100_000] {
        let mut decoder = GzipDecoder::new(Members::All).unwrap();
        let mut out = Output::new();
        for mut piece in file.chunks(size) {
            decoder.run(&mut piece, &mut out, &task).unwrap();
        }
        assert!(decoder.may_end());
        assert!(*out.into_bytes() == content, "{size}");
    }
}

/// The whole output of a decoder, in buffers of `room` bytes, and how it ends.
fn read_all(
    file: &[u8],
    threads: usize,
    piece: usize,
    room: usize,
) -> (Vec<u8>, Result<bool, (ErrorKind, u64)>) {
    let mut decoder = GzipDecoder::new(Members::All).unwrap().on_threads(threads);
    let mut plain = Vec::new();
    for mut piece in file.chunks(piece) {
        loop {
            let mut out = Output::new().limited(room);
            let status = decoder.run(&mut piece, &mut out, &Task::new());
            plain.extend_from_slice(&out.into_bytes());
            match status {
                Ok(Status::Full) => {}
                Ok(_) => break,
                Err(error) => return (plain, Err((error.kind, error.offset))),
            }
        }
    }
    (plain, Ok(decoder.may_end()))
}

#[test]
fn members_together_are_what_they_are_in_order() {
    let (file, content) = many_members();
    for (piece, room) in [(usize::MAX, 1000), (usize::MAX, usize::MAX), (300_000, 70_000), (1000, 1 << 20)] {
        let (plain, end) = read_all(&file, 3, piece.min(file.len()), room);
        assert!(plain == content && end == Ok(true), "{piece} {room} {end:?}");
    }
    // Truncated and damaged anywhere, including at the boundaries of members.
    let mut bad = file.clone();
    for at in (0..file.len()).step_by(file.len() / 12) {
        bad[at] ^= 0x10;
        assert_eq!(read_all(&bad, 3, file.len(), 1 << 20), read_all(&bad, 1, file.len(), 1 << 20), "{at}");
        bad[at] ^= 0x10;
        assert_eq!(
            read_all(&file[..at], 3, at + 1, 1 << 20),
            read_all(&file[..at], 1, at + 1, 1 << 20),
            "{at}"
        );
    }
}

/// A file of members of `size` incompressible bytes, and its content.
fn members_of(size: usize, count: usize) -> (Vec<u8>, Vec<u8>) {
    let mut random = Random(1);
    let members: Vec<Vec<u8>> =
        (0..count).map(|_| (0..size).map(|_| random.next() as u8).collect()).collect();
    (members.iter().flat_map(|member| theirs(member, 1, 31)).collect(), members.concat())
}

#[test]
fn a_window_grows_where_members_are_large() {
    for (size, count, grown) in [(400_000, 40, 4), (20_000, 500, 1)] {
        let (file, content) = members_of(size, count);
        let mut decoder = GzipDecoder::new(Members::All).unwrap().on_threads(2);
        let first = decoder.window().unwrap();
        let (mut rest, mut plain) = (&*file, Vec::new());
        while !rest.is_empty() {
            let (mut piece, after) = rest.split_at(decoder.window().unwrap().min(rest.len()));
            let mut out = Output::new();
            decoder.run(&mut piece, &mut out, &Task::new()).unwrap();
            plain.extend_from_slice(&out.into_bytes());
            rest = after;
        }
        assert!(plain == content && decoder.may_end(), "{size}");
        assert_eq!(decoder.window(), Some(grown * first), "{size}");
    }
}

#[test]
fn members_together_are_bounded() {
    let bomb = theirs(&vec![0; 40 << 20], 9, 31);
    let file = [theirs(b"first", 6, 31), bomb.clone(), bomb].concat();
    let mut decoder = GzipDecoder::new(Members::All).unwrap().on_threads(2);
    let (mut rest, mut total) = (&*file, 0);
    loop {
        let mut out = Output::new().limited(1 << 20);
        let status = decoder.run(&mut rest, &mut out, &Task::new()).unwrap();
        total += out.len();
        assert!(decoder.ahead_size() <= 16 << 20);
        if status != Status::Full {
            break;
        }
    }
    assert_eq!(total, 5 + (80 << 20));
}

#[test]
fn bad_members_are_told_apart() {
    let good = ours(b"content", 6, 31).to_vec();
    let len = good.len();
    let change = |at: usize| {
        let mut bytes = [good.clone(), good.clone()].concat();
        bytes[len + at] ^= 0x55;
        bytes
    };
    let cases = [
        (change(0), ErrorKind::NotGzip),
        (change(2), ErrorKind::GzipMethod),
        (change(len - 6), ErrorKind::GzipCrc),
        (change(len - 1), ErrorKind::GzipLength),
        ([good.clone(), good[..len - 2].to_vec()].concat(), ErrorKind::GzipFooter),
        ([good.clone(), b"rest".to_vec()].concat(), ErrorKind::NotGzip),
    ];
    for (bytes, kind) in cases {
        let error = gunzip(&bytes, 2, &mut Output::new(), &Task::new()).unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.offset >= len as u64, "{error}");
    }
}

/// Memory and states that a thread keeps from one stream to the next show in nothing that the next one makes.
#[test]
fn a_stream_makes_the_same_whatever_was_made_before() {
    fn made(level: i32, flush: Flush, mut data: &[u8]) -> Vec<u8> {
        let mut stream = Deflater::new(Config { level, ..Config::default() }).unwrap();
        let mut out = Output::new();
        stream.run(&mut data, &mut out, flush, &Task::new()).unwrap();
        out.into_bytes().to_vec()
    }
    const FLUSHES: [Flush; 6] =
        [Flush::None, Flush::Partial, Flush::Sync, Flush::Full, Flush::Block, Flush::Finish];
    for flush in FLUSHES {
        for level in [1, 2, 6, 9] {
            let fresh = std::thread::spawn(move || made(level, flush, b"text")).join().unwrap();
            for (before, earlier) in
                FLUSHES.into_iter().flat_map(|flush| [1, 2, 6].map(|level| (flush, level)))
            {
                for data in ["", "text", &"x".repeat(100_000)] {
                    let data = data.to_owned();
                    let again = std::thread::spawn(move || {
                        drop(made(earlier, before, data.as_bytes()));
                        made(level, flush, b"text")
                    });
                    assert_eq!(again.join().unwrap(), fresh, "{flush:?} {level} after {before:?} {earlier}");
                }
            }
        }
    }
}
