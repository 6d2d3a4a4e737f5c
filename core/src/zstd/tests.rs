//! Both directions against the library's own functions for whole buffers.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::Task;

fn packed(input: &[u8], settings: &Settings) -> Result<Vec<u8>, Error> {
    let mut out = Output::new();
    compress(input, settings, &mut out, &Task::new())?;
    Ok(out.into_bytes().into_vec())
}

fn unpacked_by(input: &[u8], settings: &DecoderSettings, most: Option<usize>) -> Result<Vec<u8>, Error> {
    let mut out = Output::new();
    decompress(input, settings, most, &mut out, &Task::new())?;
    Ok(out.into_bytes().into_vec())
}

fn unpacked(input: &[u8]) -> Result<Vec<u8>, Error> {
    unpacked_by(input, &DecoderSettings::default(), None)
}

/// What the library's own reader makes of `input`.
fn theirs(input: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    zstd::stream::read::Decoder::new(input)?.read_to_end(&mut plain)?;
    Ok(plain)
}

/// The frames of `pieces`, each given with a mode, and of the end.
fn streamed(pieces: &[(&[u8], Mode)], settings: &Settings) -> Vec<u8> {
    let (mut stream, mut out, task) = (Compressor::new(settings).unwrap(), Output::new(), Task::new());
    for &(mut piece, mode) in pieces {
        stream.run(&mut piece, mode, &mut out, &task).unwrap();
        assert!(piece.is_empty());
    }
    stream.run(&mut &b""[..], Mode::FlushFrame, &mut out, &task).unwrap();
    out.into_bytes().into_vec()
}

/// Text that compresses about as well as a program's log.
fn text(length: usize) -> Vec<u8> {
    let mut seed = 7_u32;
    let words = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        format!("word{} ", seed >> 22)
    });
    words.flat_map(String::into_bytes).take(length).collect()
}

#[test]
fn every_level_is_read_by_the_library() {
    let plain = text(300_000);
    for level in [-50, -1, 0, 1, 3, 6, 9, 12, 13, 16, 19, 22] {
        let settings = Settings::of_level(level);
        let whole = packed(&plain, &settings).unwrap();
        assert_eq!(theirs(&whole).unwrap(), plain, "{level}");
        assert_eq!(unpacked(&whole).unwrap(), plain, "{level}");
        let original = zstd::bulk::compress(&plain, level).unwrap();
        assert!(whole.len() <= original.len() + original.len() / 50, "{level}");
        let half =
            streamed(&[(&plain[..1000], Mode::FlushBlock), (&plain[1000..], Mode::Continue)], &settings);
        assert_eq!(theirs(&half).unwrap(), plain, "{level}");
    }
}

#[test]
fn workers_make_the_same_content() {
    let plain = text(3_000_000);
    let mut settings = Settings::of_level(3);
    settings.parameters.push((Parameter::WORKERS, 2));
    assert_eq!(theirs(&packed(&plain, &settings).unwrap()).unwrap(), plain);
    let pieces: Vec<_> = plain.chunks(70_000).map(|piece| (piece, Mode::Continue)).collect();
    assert_eq!(theirs(&streamed(&pieces, &settings)).unwrap(), plain);
}

#[test]
fn a_dictionary_is_needed_again() {
    let plain = text(20_000);
    let samples: Vec<&[u8]> = plain.chunks(100).collect();
    let task = Task::new();
    let content = train(Samples::copied(&samples, &task).unwrap(), 4000, &task).unwrap();
    let dictionary = Arc::new(Dictionary::new(content));
    assert_ne!(dictionary.id(), 0);
    for level in [3, 19] {
        for loading in [Loading::Digested, Loading::Undigested, Loading::Prefix] {
            let mut settings = Settings::of_level(level);
            settings.dictionary = Some((Arc::clone(&dictionary), loading));
            let with = packed(&plain[..500], &settings).unwrap();
            let decoder =
                DecoderSettings { dictionary: settings.dictionary.clone(), ..DecoderSettings::default() };
            assert_eq!(unpacked_by(&with, &decoder, None).unwrap(), &plain[..500], "{level} {loading:?}");
            if loading != Loading::Prefix {
                let error = unpacked(&with).unwrap_err();
                assert_eq!(error.kind, ErrorKind::Decompress, "{error}");
                assert!(error.to_string().contains("Dictionary mismatch"), "{error}");
            }
        }
    }
    let few = train(Samples::copied(&[b"one"], &task).unwrap(), 4000, &task);
    assert_eq!(few.unwrap_err().kind, ErrorKind::Train);
}

/// The library crashes with some of these.
#[test]
fn a_few_bytes_are_no_samples() {
    let task = Task::new();
    let content = text(1000);
    for count in 0..30 {
        for length in 0..10 {
            for last in 0..10 {
                let mut samples = vec![&content[..length]; count];
                samples.extend([&content[..last]]);
                let training = samples[..samples.len() * 3 / 4].concat().len();
                for capacity in [0, 8, 256, 300, 10_000] {
                    let made = train(Samples::copied(&samples, &task).unwrap(), capacity, &task);
                    match made {
                        Ok(made) => assert!(training >= 8 && made.len() <= capacity),
                        Err(error) => assert_eq!(error.kind, ErrorKind::Train),
                    }
                }
            }
        }
    }
}

#[test]
fn a_limit_holds_for_all_frames_together() {
    let frame = packed(&text(100_000), &Settings::of_level(3)).unwrap();
    let two = [&frame[..], &frame[..]].concat();
    let decoder = DecoderSettings::default();
    assert_eq!(unpacked_by(&two, &decoder, Some(200_000)).unwrap().len(), 200_000);
    assert_eq!(unpacked_by(&two, &decoder, Some(199_999)).unwrap_err().kind, ErrorKind::Limit);
    assert_eq!(unpacked_by(&frame, &decoder, Some(0)).unwrap_err().kind, ErrorKind::Limit);
}

#[test]
fn windows_are_limited() {
    let plain = text(300_000);
    let mut settings = Settings::of_level(3);
    settings.parameters.push((Parameter::named("window_log").unwrap(), 20));
    let frame = streamed(&[(&plain, Mode::Continue)], &settings);
    let narrow = DecoderSettings { window_log_max: Some(19), ..DecoderSettings::default() };
    assert_eq!(unpacked_by(&frame, &narrow, None).unwrap_err().kind, ErrorKind::Decompress);
    let wide = DecoderSettings { window_log_max: Some(20), ..DecoderSettings::default() };
    assert_eq!(unpacked_by(&frame, &wide, None).unwrap(), plain);
}

#[test]
fn skippable_frames_are_skipped_and_read() {
    let own = write_skippable(3, b"our own", b"", &Task::new()).unwrap();
    let frame = packed(b"content", &Settings::of_level(3)).unwrap();
    let all = [&own[..], &frame, &own].concat();
    assert_eq!(write_skippable(3, b"our own", &all[own.len()..], &Task::new()).unwrap(), all);
    assert_eq!(unpacked(&all).unwrap(), b"content");
    assert_eq!(skippable(&all), Ok((3, &b"our own"[..])));
    assert_eq!(frame_size(&all, &Task::new()), Ok(own.len()));
    assert_eq!(frame_size(&all[own.len()..], &Task::new()), Ok(frame.len()));
    assert_eq!(skippable(&frame).unwrap_err().kind, ErrorKind::Frame);
    assert_eq!(write_skippable(16, b"", b"", &Task::new()).unwrap_err().kind, ErrorKind::Frame);
}

#[test]
fn a_claim_of_size_reserves_nothing() {
    // A frame of one segment, which claims 2^62 bytes.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend_from_slice(&(1_u64 << 62).to_le_bytes());
    frame.extend_from_slice(&[1, 0, 0]);
    assert_eq!(expected_size(&frame), 0);
    assert_eq!(unpacked(&frame).unwrap_err().kind, ErrorKind::Decompress);
}

#[test]
fn slow_levels_stop_at_once_and_go_on() {
    let plain = text(2 << 20);
    let mut stream = Compressor::new(&Settings::of_level(22)).unwrap();
    let (mut rest, mut out) = (&plain[..], Output::new());
    let mut calls = 0;
    loop {
        calls += 1;
        let start = Instant::now();
        let poll = |_| start.elapsed() > Duration::from_millis(30);
        match stream.run(&mut rest, Mode::FlushFrame, &mut out, &Task::with_poll(&poll)) {
            Ok(()) => break,
            Err(error) => assert_eq!(error.kind, ErrorKind::Stopped),
        }
    }
    assert!(calls > 3, "{calls}");
    assert_eq!(theirs(&out.into_bytes()).unwrap(), plain);
}

/// A poll that stops a call at about one of `of` checks, by a seed.
fn now_and_then(seed: &AtomicU64, of: u64) -> bool {
    let mut random = seed.load(Ordering::Relaxed);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    seed.store(random, Ordering::Relaxed);
    (random >> 40).is_multiple_of(of)
}

#[test]
fn calls_that_are_stopped_lose_no_byte() {
    let plain = text(600_000);
    for level in [1, 3, 9, 12, 19] {
        let mut stops = 0;
        for (round, size) in [900_000, 100_000, 150_000, 70_000, 131_072, 3_000].into_iter().enumerate() {
            let seed = AtomicU64::new(0x9e37_79b9_7f4a_7c15 + round as u64);
            let poll = |_| now_and_then(&seed, 2);
            let mut stream = Compressor::new(&Settings::of_level(level)).unwrap();
            let mut out = Output::new();
            for (number, mut piece) in plain.chunks(size).enumerate() {
                let mode = [Mode::FlushFrame, Mode::Continue, Mode::FlushBlock][(number + round) % 3];
                while let Err(error) = stream.run(&mut piece, mode, &mut out, &Task::with_poll(&poll)) {
                    assert_eq!(error.kind, ErrorKind::Stopped, "{level} {round}");
                    stops += 1;
                }
                assert_eq!((piece.len(), stream.last_mode()), (0, mode));
            }
            stream.run(&mut &b""[..], Mode::FlushFrame, &mut out, &Task::new()).unwrap();
            assert_eq!(theirs(&out.into_bytes()).unwrap(), plain, "{level} {round}");
        }
        assert!(stops > 20, "{level}: {stops}");
    }
}

#[test]
fn decompression_that_is_stopped_loses_no_byte() {
    let plain = text(600_000);
    let frame = packed(&plain, &Settings::of_level(3)).unwrap();
    let seed = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
    let poll = |_| now_and_then(&seed, 2);
    let mut stream = Decompressor::new(&DecoderSettings::default()).unwrap();
    let (mut out, mut input, mut stops) = (Output::new(), &frame[..], 0);
    while let Err(error) = stream.run(&mut input, &mut out, &Task::with_poll(&poll)) {
        assert_eq!(error.kind, ErrorKind::Stopped);
        stops += 1;
    }
    assert!(stops > 0 && stream.ended());
    assert_eq!(*out.into_bytes(), plain);
}

/// A frame that says how long its content is, with a block for each piece after the first.
fn of_small_blocks(plain: &[u8], first: usize, size: usize) -> Vec<u8> {
    let (mut stream, mut out, task) =
        (Compressor::new(&Settings::of_level(3)).unwrap(), Output::new(), Task::new());
    stream.pledge(Some(plain.len() as u64)).unwrap();
    let (begin, end) = plain.split_at(first);
    for mut piece in std::iter::once(begin).chain(end.chunks(size)) {
        stream.run(&mut piece, Mode::FlushBlock, &mut out, &task).unwrap();
    }
    stream.run(&mut &b""[..], Mode::FlushFrame, &mut out, &task).unwrap();
    out.into_bytes().into_vec()
}

#[test]
fn the_end_of_a_frame_can_be_of_small_blocks() {
    // Longer than the memory that a thread keeps, so that the output grows.
    let first = 300_000;
    for end in [0, 1, 2, 3, 31, 62, 63, 64, 65, 66, 127, 128, 129, 200, 1000] {
        let mut plain = text(first);
        // Repeated, for blocks that refer to the beginning.
        plain.extend_from_within(1000..1000 + end);
        for size in [1, 5, 30, 63, 64, 65, 100] {
            let frame = of_small_blocks(&plain, first, size);
            assert_eq!(unpacked(&frame).unwrap(), plain, "{end} in blocks of {size}");
            let twice = unpacked(&[&frame[..], &frame].concat()).unwrap();
            assert!(twice[..plain.len()] == plain && twice[plain.len()..] == plain, "{end} {size}");
        }
    }
}

#[test]
fn blocks_of_one_byte_repeated_and_stored_ones_end_a_frame() {
    let block = |is_last: bool, kind: u32, length: usize| {
        let header = u32::from(is_last) | kind << 1 | (length as u32) << 3;
        header.to_le_bytes()[..3].to_vec()
    };
    for end in 0..140 {
        // A magic number, and the descriptor of a frame of one segment with its length in four bytes.
        let (mut frame, mut plain) = (vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0], Vec::new());
        frame.extend_from_slice(&(300_000 + end as u32).to_le_bytes());
        for _ in 0..3 {
            frame.extend(block(false, 1, 100_000));
            frame.push(b'r');
            plain.extend([b'r'; 100_000]);
        }
        for number in 0..end {
            let is_repeated = number % 2 == 0;
            frame.extend(block(number + 1 == end, u32::from(is_repeated), 1));
            frame.push(number);
            plain.push(number);
        }
        if end == 0 {
            frame.extend(block(true, 0, 0));
        }
        assert_eq!(theirs(&frame).unwrap(), plain, "{end}");
        assert_eq!(unpacked(&frame).unwrap(), plain, "{end}");
        // A last byte more than the header says.
        let more = frame.len() - 4;
        if end > 0 {
            frame[more] |= 1 << 4;
            assert_eq!(unpacked(&frame).is_ok(), theirs(&frame).is_ok(), "{end}");
        }
    }
}

proptest! {
    #[test]
    fn streams_of_any_pieces_are_read(
        plain in proptest::collection::vec(any::<u8>(), 0..5000),
        repeat in 1..100_usize,
        cuts in proptest::collection::vec((1..200_000_usize, 0..3), 0..20),
        level in -5..14,
        most in 1..300_000_usize,
    ) {
        let plain = plain.repeat(repeat);
        let (mut pieces, mut rest) = (Vec::new(), &plain[..]);
        for (length, mode) in cuts {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            pieces.push((piece, Mode::of(mode).unwrap()));
            rest = after;
        }
        pieces.push((rest, Mode::Continue));
        let frames = streamed(&pieces, &Settings::of_level(level));
        prop_assert_eq!(&theirs(&frames).unwrap(), &plain);
        prop_assert_eq!(&unpacked(&frames).unwrap(), &plain);
        let (mut made, mut input) = (Vec::new(), &frames[..]);
        while !input.is_empty() {
            let mut stream = Decompressor::new(&DecoderSettings::default()).unwrap();
            while !stream.ended() {
                let mut out = Output::new().limited(most);
                stream.run(&mut input, &mut out, &Task::new()).unwrap();
                made.extend_from_slice(&out.into_bytes());
            }
        }
        prop_assert_eq!(made, plain);
    }

    #[test]
    fn damage_is_an_error_or_as_the_library_sees_it(
        plain in proptest::collection::vec(0..4_u8, 0..3000),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
        checksum in any::<bool>(),
    ) {
        let mut settings = Settings::of_level(3);
        settings.parameters.push((Parameter::CHECKSUM, checksum.into()));
        let frame = packed(&plain, &settings).unwrap();
        let cut = at.index(frame.len());
        prop_assert!(unpacked(&frame[..cut]).is_err());
        let mut damaged = frame.clone();
        damaged[cut] = to;
        match (unpacked(&damaged), theirs(&damaged)) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
            // The library's reader does not compare the length in the header with that of a frame whose last block is empty.
            (Err(_), Ok(theirs)) if theirs.is_empty() => {}
            (ours, theirs) => prop_assert_eq!(ours.is_ok(), theirs.is_ok()),
        }
        if let Ok(length) = frame_size(&frame, &Task::new()) {
            prop_assert_eq!(length, frame.len());
        } else {
            prop_assert!(false, "a whole frame has a size");
        }
    }
}
