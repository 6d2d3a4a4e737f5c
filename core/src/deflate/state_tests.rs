//! Deferred work (the engine's state, small inputs) changes nothing but the time.

use super::state::{self, Compressor, Decompressor};
use super::{Config, Deflater, ErrorKind, Flush, GzipDecoder, Inflater, Members, Output, Status, decompress};
use crate::Task;

const FORMATS: [i32; 5] = [15, -15, 31, 9, -12];

/// `len` bytes with some repeats.
fn sample(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = format!("line {} of {}\n", state >> 58, state >> 60);
        bytes.extend(word.bytes());
    }
    bytes.truncate(len);
    bytes
}

fn finished(stream: &mut Deflater, input: &[u8]) -> Vec<u8> {
    let mut out = Output::new();
    let status = stream.run(&mut { input }, &mut out, Flush::Finish, &Task::new()).unwrap();
    assert_eq!(status, Status::End);
    out.into_bytes().to_vec()
}

fn inflated(packed: &[u8], wbits: i32) -> Vec<u8> {
    let mut out = Output::new();
    decompress(packed, wbits, &mut out, &Task::new()).unwrap();
    out.into_bytes().to_vec()
}

#[test]
fn parameters_are_refused_as_the_engine_refuses_them() {
    for level in -2..=10 {
        for wbits in -18..=50 {
            for mem_level in [-1, 0, 1, 8, 9, 10] {
                for strategy in -1..=5 {
                    let config = Config { level, wbits, mem_level, strategy };
                    assert_eq!(Deflater::new(config).is_ok(), Compressor::take(config).is_ok(), "{config:?}");
                }
            }
        }
    }
    for wbits in -20..=80 {
        state::forget();
        assert_eq!(Inflater::new(wbits).is_ok(), Decompressor::take(wbits).is_ok(), "{wbits}");
    }
}

#[test]
fn a_stream_without_a_state_tells_the_same_figures() {
    for wbits in FORMATS {
        let config = Config { wbits, ..Config::default() };
        let (stream, state) = (Deflater::new(config).unwrap(), Compressor::take(config).unwrap());
        let told = (stream.total_in(), stream.total_out(), stream.adler(), stream.data_type());
        assert_eq!(told, (0, 0, state.0.adler as u32, state.0.data_type), "{wbits}");
        let (stream, state) = (Inflater::new(wbits).unwrap(), Decompressor::take(wbits).unwrap());
        assert_eq!(
            (stream.adler(), stream.data_type()),
            (state.0.adler as u32, state.0.data_type),
            "{wbits}"
        );
    }
    for wbits in [0, 32, 40, 47] {
        state::forget();
        let (stream, state) = (Inflater::new(wbits).unwrap(), Decompressor::take(wbits).unwrap());
        assert_eq!(stream.adler(), state.0.adler as u32, "{wbits}");
    }
}

#[test]
fn a_state_that_was_used_before_works_as_a_new_one() {
    let inputs = [sample(100_000, 1), vec![7; 40_000], sample(20_000, 2), sample(300, 3)];
    for (number, wbits) in FORMATS.iter().cycle().take(40).enumerate() {
        let (level, strategy) = (number as i32 % 11 - 1, number as i32 / 3 % 5);
        let config = Config { level, wbits: *wbits, strategy, ..Config::default() };
        let input = &inputs[number % inputs.len()];
        let through = |config| {
            let mut stream = Deflater::new(config).unwrap();
            let mut out = Output::new();
            stream.run(&mut &input[..], &mut out, Flush::Sync, &Task::new()).unwrap();
            out.push(&finished(&mut stream, input)).unwrap();
            out.into_bytes().to_vec()
        };
        if level > 9 {
            continue;
        }
        // The previous stream left its state in the middle of a block.
        let mut before = Deflater::new(Config { level: 9, strategy: 1, ..config }).unwrap();
        let some = &inputs[(number + 1) % inputs.len()];
        before.run(&mut &some[..], &mut Output::new(), Flush::None, &Task::new()).unwrap();
        drop(before);
        let used = through(config);
        state::forget();
        assert!(used == through(config), "{config:?}");
        let mut decoder = Inflater::new(*wbits).unwrap();
        decoder.run(&mut &used[..used.len() / 2], &mut Output::new(), &Task::new()).unwrap();
        drop(decoder);
        assert!(inflated(&used, *wbits) == [&input[..], input].concat(), "{config:?}");
    }
}

#[test]
fn nothing_of_an_earlier_stream_can_be_read() {
    state::forget();
    let secret = sample(60_000, 5);
    let mut before = Inflater::new(-15).unwrap();
    let packed = finished(&mut Deflater::new(Config { wbits: -15, ..Config::default() }).unwrap(), &secret);
    before.run(&mut &packed[..], &mut Output::new(), &Task::new()).unwrap();
    drop(before);
    // A fixed block that begins with a match that refers to bytes before the beginning.
    let reaching_back = [0b0000_0011, 0b0000_0010, 0];
    let failure = Inflater::new(-15).unwrap().run(&mut &reaching_back[..], &mut Output::new(), &Task::new());
    assert_eq!(failure.map_err(|error| error.kind), Err(ErrorKind::Data));
}

#[test]
fn small_pieces_come_out_whole() {
    for wbits in FORMATS {
        for (len, piece) in
            [(0, 1), (1, 1), (55, 7), (3000, 100), (100_000, 100), (50_000, 1024), (9000, 3000)]
        {
            let input = sample(len, len as u64);
            let mut stream = Deflater::new(Config { wbits, ..Config::default() }).unwrap();
            let mut out = Output::new();
            for piece in input.chunks(piece) {
                if !stream.gather(piece, &mut out) {
                    stream.run(&mut { piece }, &mut out, Flush::None, &Task::new()).unwrap();
                }
            }
            assert_eq!(stream.total_in(), len as u64);
            out.push(&finished(&mut stream, &[])).unwrap();
            assert_eq!((stream.total_in(), stream.total_out()), (len as u64, out.len() as u64));
            assert!(stream.ended() && !stream.gather(b"x", &mut Output::new()));
            assert!(inflated(&out.into_bytes(), wbits) == input, "{wbits}: {len} in pieces of {piece}");
        }
    }
}

#[test]
fn the_header_comes_out_with_the_first_piece() {
    for wbits in [15, -15, 31, 9] {
        for (strategy, level) in [(0, -1), (0, 0), (0, 1), (0, 5), (0, 6), (0, 9), (2, 6), (4, 9)] {
            let config = Config { wbits, strategy, level, ..Config::default() };
            let mut engine = Deflater::new(config).unwrap();
            let mut header = Output::new();
            engine.run(&mut &b"piece"[..], &mut header, Flush::None, &Task::new()).unwrap();
            let mut header = header.into_bytes().to_vec();
            if (wbits, level, strategy) == (31, 9, 0) {
                // The engine is at level 8 when it makes the header, and does not say that it is the best.
                header[8] = 2;
            }
            for pieces in [1, 30] {
                let mut stream = Deflater::new(config).unwrap();
                let mut out = Output::new();
                let mut rest = Vec::new();
                for _ in 0..pieces {
                    let piece = sample(700, 3);
                    if !stream.gather(&piece, &mut out) {
                        stream.run(&mut &piece[..], &mut out, Flush::None, &Task::new()).unwrap();
                    }
                    rest.extend(piece);
                }
                assert!(stream.total_out() >= header.len() as u64);
                out.push(&finished(&mut stream, &[])).unwrap();
                assert_eq!(stream.total_out(), out.len() as u64);
                let packed = out.into_bytes();
                assert_eq!(packed[..header.len()], header, "{config:?}");
                assert!(inflated(&packed, wbits) == rest, "{config:?}");
                stream.reset().unwrap();
                assert_eq!(stream.total_out(), 0);
            }
        }
    }
}

#[test]
fn a_stream_that_was_one_whole_buffer_tells_the_engines_figures() {
    let samples =
        [&b"text, and more text "[..], b"\x07\x1b", b"\x00binary", b"", b"tabs\t\r\n", &[200; 3000]];
    for input in samples.map(|sample| sample.repeat(4)) {
        for wbits in [15, -15, 31] {
            for level in [0, 1, 6, 9] {
                let config = Config { wbits, level, ..Config::default() };
                let mut whole = Deflater::new(config).unwrap();
                let mut streamed = Deflater::new(config).unwrap();
                // A stream with a state continues in it.
                streamed.run(&mut &[][..], &mut Output::new(), Flush::None, &Task::new()).unwrap();
                let packed = finished(&mut whole, &input);
                finished(&mut streamed, &input);
                let told = |stream: &Deflater| (stream.total_in(), stream.adler(), stream.data_type());
                // An empty stream has no block whose kind of data could be told.
                if !input.is_empty() {
                    assert_eq!(told(&whole), told(&streamed), "{config:?} {input:?}");
                }
                assert_eq!(whole.total_out(), packed.len() as u64);
                assert_eq!(inflated(&packed, wbits), input);
                whole.reset().unwrap();
                assert_eq!((whole.total_in(), whole.total_out(), whole.ended()), (0, 0, false));
                assert_eq!(finished(&mut whole, &input), packed);
            }
        }
    }
}

#[test]
fn an_interrupt_loses_no_small_pieces() {
    let input = sample(3000, 9);
    for first in [Flush::Finish, Flush::Sync, Flush::None] {
        let mut stream = Deflater::new(Config::default()).unwrap();
        let (task, mut out) = (Task::new(), Output::new());
        assert!(stream.gather(&input[..1000], &mut out));
        task.stop();
        let mut rest = &input[1000..];
        let stopped = stream.run(&mut rest, &mut out, first, &task);
        assert_eq!(stopped.map_err(|error| error.kind), Err(ErrorKind::Stopped));
        let rest = rest.to_vec();
        out.push(&finished(&mut stream, &rest)).unwrap();
        assert!(inflated(&out.into_bytes(), 15) == input, "{first:?}");
    }
}

#[test]
fn small_pieces_are_copied_changed_and_refused_a_dictionary() {
    let input = sample(900, 4);
    let mut stream = Deflater::new(Config::default()).unwrap();
    let mut out = Output::new();
    assert!(stream.gather(&input, &mut out));
    assert_eq!(stream.set_dictionary(b"word").map_err(|error| error.kind), Err(ErrorKind::Stream));
    let header = out.into_bytes().to_vec();
    let mut copy = stream.copy().unwrap();
    let mut out = Output::new();
    copy.params(9, 0, &mut out, &Task::new()).unwrap();
    out.push(&finished(&mut copy, &input)).unwrap();
    assert!(inflated(&[&header[..], &out.into_bytes()].concat(), 15) == input.repeat(2));
    assert!(inflated(&[&header[..], &finished(&mut stream, &[])].concat(), 15) == input);
}

#[test]
fn a_reader_of_a_gzip_file_keeps_no_state_after_the_content() {
    let (text, config) = (sample(3000, 1), Config { wbits: 31, ..Config::default() });
    let member = finished(&mut Deflater::new(config).unwrap(), &text);
    let file = [&member[..], &member[..]].concat();
    for (members, content) in
        [(Members::First, text.clone()), (Members::All, [&text[..], &text[..]].concat())]
    {
        let (mut decoder, mut out) = (GzipDecoder::new(members).unwrap(), Output::new());
        decoder.run(&mut &file[..member.len() / 2], &mut out, &Task::new()).unwrap();
        assert!(decoder.memory() > 0);
        decoder.run(&mut &file[member.len() / 2..], &mut out, &Task::new()).unwrap();
        assert_eq!((decoder.memory(), decoder.may_end()), (0, true));
        assert_eq!(out.into_bytes()[..], content);
    }
}
