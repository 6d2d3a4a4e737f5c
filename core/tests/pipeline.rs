//! Shards read, counted and written, compared with the slow and obvious way.

mod folder;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use folder::Folder;
use offlock_core::pipeline::{
    self, Destination, Eos, Error, ErrorKind, Format, Model, OnError, Output, Part, Settings, Summary,
};
use offlock_core::{Task, deflate, msgpack, tokens};
use proptest::prelude::*;
use serde_json::{Value, json};

const EOT: u32 = 50_256;

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::new(Model::Encoding(tokens::get("gpt2").unwrap())) }
}

fn encode(text: &str) -> Vec<u32> {
    tokens::get("gpt2").unwrap().encode_ordinary(text, &Task::new()).unwrap()
}

fn count(paths: &[impl AsRef<Path>], settings: &Settings) -> Result<Summary, Error> {
    let shards = pipeline::find(&owned(paths))?;
    pipeline::count(&shards, settings, &|_| {}, &Task::new())
}

fn owned(paths: &[impl AsRef<Path>]) -> Vec<PathBuf> {
    paths.iter().map(|path| path.as_ref().to_owned()).collect()
}

fn destination(folder: &Path, output: Output) -> Destination {
    let eos_token = "<|endoftext|>".to_owned();
    Destination { folder: folder.to_owned(), output, eos: None, eos_token, resume: false, part: None }
}

fn write(
    paths: &[impl AsRef<Path>],
    settings: &Settings,
    destination: &Destination,
) -> Result<Summary, Error> {
    let shards = pipeline::find(&owned(paths))?;
    pipeline::write(&shards, settings, destination, &|_| {}, &Task::new())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = deflate::Output::new();
    deflate::compress(bytes, 6, 31, &mut packed, &Task::new()).unwrap();
    packed.into_bytes().into_vec()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn jsonl(texts: &[String]) -> Vec<u8> {
    texts
        .iter()
        .enumerate()
        .flat_map(|(at, text)| format!("{}\n", json!({"id": at.to_string(), "text": text})).into_bytes())
        .collect()
}

fn messages(texts: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        msgpack::write::map_header(&mut bytes, 2);
        msgpack::write::str(&mut bytes, b"n");
        msgpack::write::int(&mut bytes, -7);
        msgpack::write::str(&mut bytes, b"text");
        msgpack::write::str(&mut bytes, text.as_bytes());
    }
    bytes
}

/// Texts of many lengths, some longer than a batch.
fn texts(count: usize) -> Vec<String> {
    let words = ["off", "the", "lock", "GVL", "naïve", "日本語", "\n", "1234", "\"quoted\"", "🙂"];
    let mut seed = 7_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    (0..count)
        .map(|at| {
            let length = if at % 60 == 39 { 250_000 } else { next(200) };
            (0..length).map(|_| words[next(words.len())]).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

fn expected(texts: &[String]) -> (u64, u64, u64) {
    let tokens: usize = texts.iter().map(|text| encode(text).len()).sum();
    (texts.len() as u64, texts.iter().map(|text| text.len() as u64).sum(), tokens as u64)
}

fn counted(summary: &Summary) -> (u64, u64, u64) {
    let totals = summary.totals();
    (totals.documents, totals.bytes, totals.tokens)
}

#[test]
fn all_formats_and_compressions_give_the_same_counts() {
    let (folder, texts) = (Folder::new("formats"), texts(100));
    let mut array = Vec::new();
    msgpack::write::array_header(&mut array, texts.len());
    array.extend(messages(&texts));
    let halves = |bytes: &[u8], pack: fn(&[u8]) -> Vec<u8>| {
        let (one, other) = bytes.split_at(bytes.len() / 3);
        [pack(one), pack(other)].concat()
    };
    let lines = jsonl(&texts);
    let marked = [b"\xef\xbb\xbf", &lines[..]].concat();
    let windows = String::from_utf8(lines.clone()).unwrap().replace('\n', "\r\n\r\n");
    for (name, bytes) in [
        ("a.jsonl", lines.clone()),
        ("a.jsonl.gz", gzip(&lines)),
        ("members.jsonl.gz", halves(&lines, gzip)),
        ("a.ndjson.zst", zstd(&lines)),
        ("frames.jsonl.zst", halves(&lines, zstd)),
        ("first-byte-alone.msgpack.zst", [zstd(&array[..1]), zstd(&array[1..])].concat()),
        ("blanks-first.zst", [zstd(&[b' '; 200_000]), zstd(&lines)].concat()),
        ("skippable.jsonl.zst", [b"\x50\x2a\x4d\x18\x03\0\0\0abc", &zstd(&lines)[..]].concat()),
        ("gzip-in-disguise.jsonl", gzip(&lines)),
        ("no-extension", gzip(&lines)),
        ("last-line-without-newline.jsonl", lines[..lines.len() - 1].to_vec()),
        ("marked.jsonl", marked),
        ("windows.jsonl", windows.into_bytes()),
        ("a.msgpack", messages(&texts)),
        ("array.msgpack.gz", gzip(&array)),
        ("a.mpk.zst", zstd(&messages(&texts))),
    ] {
        let path = folder.add(name, &bytes);
        for threads in [1, 2, 5] {
            let summary = count(&[&path], &Settings { threads, ..settings() }).unwrap();
            assert_eq!(counted(&summary), expected(&texts), "{name} on {threads}");
        }
    }
}

#[test]
fn texts_and_lines() {
    let folder = Folder::new("texts");
    let text = "one line\n\n  \nanother <|endoftext|>";
    let path = folder.add("a.txt.gz", &gzip(text.as_bytes()));
    let whole = count(&[&path], &settings()).unwrap();
    assert_eq!(counted(&whole), expected(&[text.to_owned()]));
    let lines = Settings { format: Some(Format::Lines), ..settings() };
    let lines = count(&[path], &lines).unwrap();
    assert_eq!(counted(&lines), expected(&["one line".to_owned(), "another <|endoftext|>".to_owned()]));
    let empty = count(&[folder.add("empty.txt", b""), folder.add("empty.jsonl", b"")], &settings()).unwrap();
    assert_eq!(counted(&empty), (0, 0, 0));
}

#[test]
fn a_folder_stands_for_the_shards_below_it() {
    let (folder, texts) = (Folder::new("folder"), texts(3));
    folder.add("b/c.jsonl", &jsonl(&texts));
    folder.add("a.jsonl.gz", &gzip(&jsonl(&texts)));
    folder.add("README", b"not a shard");
    folder.add(".hidden.jsonl", b"not a shard");
    let shards = pipeline::find(std::slice::from_ref(&folder.0)).unwrap();
    let names: Vec<&str> = shards.iter().map(|shard| shard.name.as_str()).collect();
    assert_eq!(names, ["a", "b/c"]);
    folder.add("a.jsonl", b"");
    let out = folder.path("out");
    let error = write(&[&folder.0], &settings(), &destination(&out, Output::Llmc)).unwrap_err();
    assert!(error.to_string().contains("results would have the same name as those of"), "{error}");
    let none = Folder::new("none");
    assert!(pipeline::find(std::slice::from_ref(&none.0)).is_err());
    assert!(matches!(pipeline::find(&[none.path("x.jsonl")]).unwrap_err().kind, ErrorKind::Io { .. }));
}

/// What a run with `OnError::Report` says about a shard, and the number of its documents.
fn reported(path: &Path, settings: &Settings) -> (Vec<String>, u64) {
    let shards = pipeline::find(&[path.to_owned()]).unwrap();
    let errors = Mutex::new(Vec::new());
    let report = |error: &Error| {
        let place = error.record.map_or((0, 0), |place| (place.number, place.offset));
        errors.lock().unwrap().push(format!("{} {} {}", place.0, place.1, error.kind));
    };
    let settings = Settings { on_error: OnError::Report, threads: settings.threads, ..copied(settings) };
    let summary = pipeline::count(&shards, &settings, &report, &Task::new()).unwrap();
    let errors = errors.into_inner().unwrap();
    assert_eq!(summary.totals().errors, errors.len() as u64);
    (errors, summary.totals().documents)
}

fn copied(other: &Settings) -> Settings {
    Settings {
        format: other.format,
        field: other.field.clone(),
        max_doc_bytes: other.max_doc_bytes,
        ..settings()
    }
}

#[test]
fn records_that_fail_are_named_with_their_place() {
    let folder = Folder::new("failing");
    let lines = b"{\"text\":\"one\"}\n\n{\"text\":5}\n{\"txt\":\"\"}\n{\"text\":\"\xff\"}\n{\"text\":\n[]\n{\"text\":\"two\"}";
    let path = folder.add("a.jsonl", lines);
    let (errors, documents) = reported(&path, &settings());
    assert_eq!(documents, 2);
    assert_eq!(
        errors,
        [
            "3 16 the field is not a string but a number",
            "4 27 the record does not have the field",
            "5 38 the text is not valid UTF-8",
            "6 51 JSON: EOF while parsing a value, at byte 8 of the record",
            "7 60 the record does not have the field",
        ]
    );
    let error = count(&[path], &settings()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with(
            "a.jsonl: record 3 (at byte 16 of the decompressed data): the field is not a string but a number"
        ),
        "{text}"
    );

    let message = b"\x81\xa4text\xa3one\x81\xa4text\x05\xc0\x81\xa4text\xa1\xff\x81\xa4text\xa3two";
    let (errors, documents) = reported(&folder.add("a.msgpack", message), &settings());
    assert_eq!(documents, 2);
    assert_eq!(
        errors,
        [
            "2 10 the field is not a string but a number",
            "3 17 the record does not have the field",
            "4 18 the text is not valid UTF-8",
        ]
    );
}

#[test]
fn data_that_ends_early_gives_what_is_whole_and_an_error() {
    let (folder, texts) = (Folder::new("truncated"), texts(60));
    let lines = jsonl(&texts);
    let cut = |bytes: &[u8]| bytes[..bytes.len() - 20].to_vec();
    for (name, bytes, problem) in [
        ("a.jsonl.gz", cut(&gzip(&lines)), "the gzip data ends early"),
        ("a.jsonl.zst", cut(&zstd(&lines)), "the Zstandard data ends early"),
        ("a.msgpack", cut(&messages(&texts)), "MessagePack: the data ends within a record"),
        ("b.jsonl.gz", [gzip(&lines), b"rubbish".to_vec()].concat(), "gzip: "),
        ("reserved.msgpack", [messages(&texts), b"\xc1".to_vec()].concat(), "MessagePack: invalid byte 0xc1"),
    ] {
        let path = folder.add(name, &bytes);
        let (errors, documents) = reported(&path, &settings());
        assert_eq!(errors.len(), 1, "{name}");
        assert!(errors[0].contains(problem), "{name}: {errors:?}");
        let lost = if name.starts_with("a.") { 1..42 } else { 0..1 };
        assert!(lost.contains(&(texts.len() as u64 - documents)), "{name}: {documents} documents");
        assert!(count(&[path], &settings()).is_err(), "{name}");
    }
}

#[test]
fn a_record_beyond_the_limit_is_passed() {
    let folder = Folder::new("long");
    let long = "x".repeat(5 << 20);
    let texts = ["one".to_owned(), long, "two".to_owned()];
    let limited = Settings { max_doc_bytes: 2 << 20, ..settings() };
    let (errors, documents) = reported(&folder.add("a.jsonl.gz", &gzip(&jsonl(&texts))), &limited);
    assert_eq!(
        (errors, documents),
        (vec!["2 24 the record is longer than 2097152 bytes, the limit".to_owned()], 2)
    );
    // The end of a message that is too long is not looked for.
    let (errors, documents) = reported(&folder.add("a.msgpack", &messages(&texts)), &limited);
    assert_eq!((errors.len(), documents), (1, 1));
    assert!(errors[0].ends_with("the limit; the rest of the shard is not read"), "{errors:?}");
    // The end of a line does not count.
    let line = "x".repeat(2 << 20);
    let path = folder.add("a.log", format!("{line}\r\nshort\r\n").as_bytes());
    assert_eq!(reported(&path, &limited), (Vec::new(), 2));
    let (errors, documents) = reported(&folder.add("a.txt", texts[1].as_bytes()), &limited);
    assert_eq!((errors.len(), documents), (1, 0));
}

#[test]
fn the_first_failure_is_the_same_on_any_number_of_threads() {
    let (folder, texts) = (Folder::new("first"), texts(200));
    let mut lines = jsonl(&texts);
    lines.splice(0..0, b"{\"text\":1}\n".to_vec());
    lines.extend(b"{\"text\":2}\n");
    let path = folder.add("a.jsonl", &lines);
    for threads in [1, 2, 8] {
        let error = count(&[&path], &Settings { threads, ..settings() }).unwrap_err();
        assert_eq!(error.record.unwrap().number, 1);
    }
}

#[test]
fn what_is_no_shard_is_refused() {
    let folder = Folder::new("unknown");
    let error = count(&[folder.add("a.bin", b"text")], &settings()).unwrap_err();
    assert!(error.to_string().contains("the format is not known"), "{error}");
}

/// The bytes that the formats demand, made in the obvious way.
fn oracle(output: Output, texts: &[String], source: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let documents: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| match output {
            Output::Llmc => [vec![EOT], encode(text)].concat(),
            _ => [encode(text), vec![EOT]].concat(),
        })
        .collect();
    let lengths: Vec<usize> = documents.iter().map(Vec::len).collect();
    let total: usize = lengths.iter().sum();
    let narrow: Vec<u8> = documents.concat().iter().flat_map(|&token| (token as u16).to_le_bytes()).collect();
    let ends: Vec<usize> = lengths
        .iter()
        .scan(0, |end, length| {
            *end += length;
            Some(*end)
        })
        .collect();
    match output {
        Output::Nanogpt => vec![("a.bin", narrow)],
        Output::Llmc => {
            let mut header = [0_u8; 1024];
            header[..4].copy_from_slice(&20_240_520_u32.to_le_bytes());
            header[4..8].copy_from_slice(&1_u32.to_le_bytes());
            header[8..12].copy_from_slice(&(total as u32).to_le_bytes());
            vec![("a.bin", [&header[..], &narrow].concat())]
        }
        Output::Megatron => {
            let mut index = b"MMIDIDX\0\0\x01\0\0\0\0\0\0\0\x08".to_vec();
            index.extend((texts.len() as u64).to_le_bytes());
            index.extend((texts.len() as u64 + 1).to_le_bytes());
            index.extend(lengths.iter().flat_map(|&length| (length as i32).to_le_bytes()));
            index.extend(
                ends.iter().zip(&lengths).flat_map(|(end, length)| (2 * (end - length) as i64).to_le_bytes()),
            );
            index.extend((0..=texts.len() as i64).flat_map(i64::to_le_bytes));
            vec![("a.bin", narrow), ("a.idx", index)]
        }
        Output::Datatrove => {
            let ends = ends.iter().flat_map(|&end| (end as u64).to_le_bytes()).collect();
            let rounded = format!("{:.2} MT", total as f64 / 1e6);
            vec![
                ("a.ds", narrow),
                ("a.ds.index", ends),
                ("a.ds.metadata", format!("gpt2|2\n{total}\n{rounded}").into_bytes()),
            ]
        }
        Output::Mds => {
            let columns = r#"{"column_encodings": ["ndarray:uint16"], "column_names": ["tokens"], "column_sizes": [null], "compression": null, "format": "mds", "hashes": [], "size_limit": 67108864, "version": 2}"#;
            let samples: Vec<Vec<u8>> = documents.iter().map(|tokens| mds_sample(tokens)).collect();
            let mut file = (samples.len() as u32).to_le_bytes().to_vec();
            let mut offset = 4 + 4 * (samples.len() + 1) + columns.len();
            for size in [0].into_iter().chain(samples.iter().map(Vec::len)) {
                offset += size;
                file.extend((offset as u32).to_le_bytes());
            }
            file.extend(columns.as_bytes());
            file.extend(samples.concat());
            let about = format!(
                r#", "raw_data": {{"basename": "shard.00000.mds", "bytes": {}, "hashes": {{}}}}, "samples": {}, "size_limit""#,
                file.len(),
                samples.len()
            );
            let described = columns
                .replace(r#", "size_limit""#, &about)
                .replace(r#""version": 2}"#, r#""version": 2, "zip_data": null}"#);
            let index = format!(r#"{{"shards": [{described}], "version": 2}}"#);
            vec![("a/shard.00000.mds", file), ("a/index.json", index.into_bytes())]
        }
        Output::Dolma => {
            let row = |(at, (end, length)): (usize, (&usize, &usize))| {
                format!("{},{end},{at},{},{}\r\n", end - length, source.display(), at + 1)
            };
            let rows: String = ends.iter().zip(&lengths).enumerate().map(row).collect();
            vec![("a.npy", narrow), ("a.csv.gz", rows.into_bytes())]
        }
        // What pyarrow reads is compared with the tokens in the command's tests.
        Output::Parquet => vec![],
    }
}

fn mds_sample(tokens: &[u32]) -> Vec<u8> {
    let mut array = match tokens.len() {
        count @ ..256 => vec![4, count as u8],
        count @ ..65_536 => [&[5][..], &(count as u16).to_le_bytes()].concat(),
        count => [&[6][..], &(count as u32).to_le_bytes()].concat(),
    };
    array.extend(tokens.iter().flat_map(|&token| (token as u16).to_le_bytes()));
    [&(array.len() as u32).to_le_bytes()[..], &array].concat()
}

fn read(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut plain = deflate::Output::new();
        deflate::decompress(&bytes, 31, &mut plain, &Task::new()).unwrap();
        return plain.into_bytes().into_vec();
    }
    bytes
}

#[test]
fn every_format_is_written_as_it_must_be_on_any_number_of_threads() {
    let (folder, texts) = (Folder::new("outputs"), texts(110));
    let path = folder.add("in/a.jsonl.gz", &gzip(&jsonl(&texts)));
    for (name, output) in Output::NAMES {
        for threads in [1, 2, 5] {
            let out = folder.path(&format!("{name}-{threads}"));
            let settings = Settings { threads, ..settings() };
            let summary = write(&[&path], &settings, &destination(&out, output)).unwrap();
            assert_eq!(summary.totals().documents, texts.len() as u64);
            for (file, bytes) in oracle(output, &texts, &path) {
                assert!(read(&out.join(file)) == bytes, "{name}: {file}");
            }
            check_manifest(&out);
        }
    }
}

/// The manifest names all files but itself, with their sizes.
fn check_manifest(out: &Path) {
    let manifest: Value = serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    let mut listed: Vec<(String, u64)> = Vec::new();
    for shard in manifest["shards"].as_array().unwrap() {
        for file in shard["files"].as_array().unwrap() {
            assert_eq!(file["sha256"].as_str().unwrap().len(), 64);
            listed.push((file["name"].as_str().unwrap().to_owned(), file["size"].as_u64().unwrap()));
        }
    }
    listed.sort();
    let size = |(name, bytes): (String, Vec<u8>)| (name, bytes.len() as u64);
    assert_eq!(listed, contents(out).into_iter().map(size).collect::<Vec<_>>());
    assert!(!out.join(".offlock/unfinished").exists());
}

/// All results below a folder by their names.
fn contents(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(out).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        match name.as_str() {
            "manifest.json" | ".offlock" => {}
            _ if path.is_dir() => {
                found.extend(
                    contents(&path).into_iter().map(|(file, bytes)| (format!("{name}/{file}"), bytes)),
                );
            }
            _ => found.push((name, fs::read(path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn wide_vocabularies_get_wide_numbers() {
    let folder = Folder::new("wide");
    let path = folder.add("a.txt", b"off the lock");
    let encoding = tokens::get("o200k_base").unwrap();
    let settings = Settings::new(Model::Encoding(encoding));
    let wide: Vec<u8> = [2864_u32, 290, 8109, 199_999].iter().flat_map(|token| token.to_le_bytes()).collect();
    for (output, extension) in [(Output::Megatron, "bin"), (Output::Datatrove, "ds"), (Output::Dolma, "npy")]
    {
        let out = folder.path(output.name());
        write(&[&path], &settings, &destination(&out, output)).unwrap();
        assert_eq!(fs::read(out.join(format!("a.{extension}"))).unwrap(), wide);
    }
    let index = fs::read(folder.path("megatron/a.idx")).unwrap();
    assert_eq!((index[17], &index[34..38]), (4, &4_i32.to_le_bytes()[..]));
    let out = folder.path("llmc");
    write(&[&path], &settings, &destination(&out, Output::Llmc)).unwrap();
    let bytes = fs::read(out.join("a.bin")).unwrap();
    assert_eq!(bytes[..12], [20_240_801_u32, 7, 4].map(u32::to_le_bytes).concat());
    assert_eq!(bytes[1024..1028], 199_999_u32.to_le_bytes());
    let error = write(&[path], &settings, &destination(&folder.path("nano"), Output::Nanogpt)).unwrap_err();
    assert!(error.to_string().contains("16-bit numbers"), "{error}");
}

#[test]
fn an_unknown_separator_is_refused_before_anything_is_written() {
    let folder = Folder::new("separator");
    let path = folder.add("a.txt", b"off the lock");
    let wrong =
        Destination { eos_token: "</s>".to_owned(), ..destination(&folder.path("out"), Output::Llmc) };
    let error = write(&[path], &settings(), &wrong).unwrap_err();
    assert!(error.to_string().contains("no special token </s>"), "{error}");
    assert!(!folder.path("out").exists());
}

#[test]
fn a_run_that_was_stopped_anywhere_is_resumed_without_loss() {
    let folder = Folder::new("resume");
    let paths: Vec<PathBuf> = (0..6)
        .map(|at| folder.add(&format!("in/{at}.jsonl.gz"), &gzip(&jsonl(&texts(20 + at * 7)))))
        .collect();
    let whole = folder.path("whole");
    let wanted = write(&paths, &settings(), &destination(&whole, Output::Megatron)).unwrap();
    let shards = pipeline::find(&paths).unwrap();
    for stop_at in [1, 20, 120, 500] {
        let out = folder.path(&format!("stopped-{stop_at}"));
        let mut destination = destination(&out, Output::Megatron);
        for attempt in 0_u32.. {
            let asked = AtomicU32::new(0);
            let poll = |_| asked.fetch_add(1, Ordering::Relaxed) > stop_at << attempt;
            let task = Task::with_poll(&poll);
            match pipeline::write(&shards, &settings(), &destination, &|_| {}, &task) {
                Ok(summary) => {
                    assert_eq!(counted(&summary), counted(&wanted));
                    break;
                }
                Err(error) => assert_eq!(error.kind, ErrorKind::Stopped, "{error}"),
            }
            destination.resume = true;
        }
        assert!(contents(&out) == contents(&whole), "stopped at {stop_at}");
        check_manifest(&out);
    }
}

/// All files below a folder but the lock, with their contents, in the order of their names.
fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    files.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()))
                }
            }
        }
    }
    files.retain(|(name, _)| !name.ends_with("lock"));
    files.sort();
    files
}

#[test]
fn parts_that_are_written_at_a_time_are_the_whole_run() {
    let folder = Folder::new("parts");
    for at in 0..7 {
        folder.add(&format!("in/{}/{at}.jsonl", at % 2), &jsonl(&texts(20 + at * 7)));
    }
    let input = [folder.path("in")];
    for output in Output::NAMES.map(|(_, output)| output) {
        let (whole, out) = (folder.path("whole"), folder.path("out"));
        let wanted = write(&input, &settings(), &destination(&whole, output)).unwrap();
        let shards = pipeline::find(&input).unwrap();
        let whole_run = destination(&out, output);
        pipeline::prepare(&shards, &settings(), &whole_run).unwrap();
        // More parts than shards, and each twice at a time.
        std::thread::scope(|scope| {
            for at in 0..20 {
                let part = Destination { part: Part::new(at % 10, 10), ..whole_run.clone() };
                let input = &input;
                scope.spawn(move || write(input, &settings(), &part).unwrap());
            }
        });
        assert!(!out.join("manifest.json").exists());
        assert_eq!(fs::read_dir(out.join(".offlock/unfinished")).unwrap().count(), 0);
        let summary = write(&input, &settings(), &Destination { resume: true, ..whole_run }).unwrap();
        assert_eq!((counted(&summary), summary.resumed), (counted(&wanted), 7));
        assert!(everything(&out) == everything(&whole), "{}", output.name());
        fs::remove_dir_all(&whole).unwrap();
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn parts_agree_on_the_settings_and_exclude_whole_runs() {
    let folder = Folder::new("agree");
    let paths = [folder.add("1.txt", b"one"), folder.add("2.txt", b"two")];
    let out = folder.path("out");
    let part = |index, output| Destination { part: Part::new(index, 2), ..destination(&out, output) };
    let first = write(&paths, &settings(), &part(0, Output::Nanogpt)).unwrap();
    assert_eq!((first.shards.len(), first.resumed, first.totals().bytes), (1, 0, 3));
    assert_eq!(write(&paths, &settings(), &part(0, Output::Nanogpt)).unwrap().resumed, 1);
    let error = write(&paths, &settings(), &part(1, Output::Llmc)).unwrap_err();
    assert!(error.to_string().contains("made with another eos"), "{error}");
    assert_eq!(fs::read_dir(out.join(".offlock/unfinished")).unwrap().count(), 0);

    let whole = Destination { resume: true, ..destination(&out, Output::Nanogpt) };
    let lock = fs::OpenOptions::new().read(true).open(out.join(".offlock/lock")).unwrap();
    lock.lock_shared().unwrap();
    let error = write(&paths, &settings(), &whole).unwrap_err();
    assert!(error.to_string().contains("another run writes to this folder"), "{error}");
    let second = write(&paths, &settings(), &part(1, Output::Nanogpt)).unwrap();
    assert_eq!((second.shards.len(), second.resumed), (1, 0));
    lock.unlock().unwrap();
    lock.lock().unwrap();
    let error = write(&paths, &settings(), &part(1, Output::Nanogpt)).unwrap_err();
    assert!(error.to_string().contains("another run writes to this folder"), "{error}");
    lock.unlock().unwrap();

    assert_eq!(write(&paths, &settings(), &whole).unwrap().resumed, 2);
    assert!(out.join("manifest.json").exists());
    // A part of which nothing is missing leaves the list of results, one that makes something anew removes it.
    write(&paths, &settings(), &part(1, Output::Nanogpt)).unwrap();
    assert!(out.join("manifest.json").exists());
    fs::write(&paths[1], b"changed").unwrap();
    assert_eq!(write(&paths, &settings(), &part(1, Output::Nanogpt)).unwrap().resumed, 0);
    assert!(!out.join("manifest.json").exists());

    let same = [folder.add("a/1.txt", b"one"), folder.add("b/1.txt", b"one")];
    let error = write(&same, &settings(), &part(0, Output::Nanogpt)).unwrap_err();
    assert!(error.to_string().contains("results would have the same name"), "{error}");
    let shards = pipeline::find(&paths).unwrap();
    let error = pipeline::prepare(&shards, &settings(), &destination(&out, Output::Nanogpt)).unwrap_err();
    assert!(error.to_string().contains("results of an earlier run"), "{error}");
}

#[test]
fn shards_are_packed_with_all_that_was_known_of_them() {
    use std::os::unix::ffi::OsStringExt;
    let folder = Folder::new("packed");
    folder.add("in/a b/1.txt", b"one");
    folder.add("in/2.jsonl.gz", b"");
    let shards = pipeline::find(&[folder.path("in"), folder.add("3", b"{}")]).unwrap();
    let packed = pipeline::pack(&shards).unwrap();
    fs::remove_dir_all(folder.path("in")).unwrap();
    assert_eq!(pipeline::unpack(&packed).unwrap(), shards);
    assert!(pipeline::unpack(b"[").is_err());
    let not_utf8 = folder.0.join(std::ffi::OsString::from_vec(b"x\xff.txt".to_vec()));
    fs::write(&not_utf8, b"").unwrap();
    let error = pipeline::pack(&pipeline::find(&[not_utf8]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

#[test]
fn a_run_that_is_stopped_finishes_no_shard() {
    // One record of many small values, in which the task is checked, and others behind it.
    let mut bytes = Vec::new();
    msgpack::write::map_header(&mut bytes, 100_001);
    for key in 0..100_000 {
        msgpack::write::int(&mut bytes, key);
        msgpack::write::bool(&mut bytes, true);
    }
    msgpack::write::str(&mut bytes, b"text");
    msgpack::write::str(&mut bytes, b"");
    bytes.extend(messages(&texts(30)));
    let folder = Folder::new("stopped");
    let shards = pipeline::find(&[folder.add("a.msgpack", &bytes)]).unwrap();
    let mut finished = false;
    for stop_at in 0..10_000 {
        let out = folder.path(&format!("out-{stop_at}"));
        let asked = AtomicU32::new(0);
        let poll = |_| asked.fetch_add(1, Ordering::Relaxed) >= stop_at;
        let task = Task::with_poll(&poll);
        let one = Settings { threads: 1, ..settings() };
        match pipeline::write(&shards, &one, &destination(&out, Output::Nanogpt), &|_| {}, &task) {
            Ok(summary) => {
                assert_eq!(summary.totals().documents, 31);
                finished = true;
                break;
            }
            Err(error) => assert_eq!(error.kind, ErrorKind::Stopped),
        }
        assert_eq!(contents(&out), [], "stopped at {stop_at}");
        fs::remove_dir_all(&out).unwrap();
    }
    assert!(finished);
}

#[test]
fn links_to_folders_are_not_followed() {
    let folder = Folder::new("links");
    folder.add("in/a.jsonl", b"{\"text\":\"off\"}\n");
    for name in ["self", "self2"] {
        std::os::unix::fs::symlink(".", folder.path("in").join(name)).unwrap();
    }
    std::os::unix::fs::symlink("a.jsonl", folder.path("in/b.jsonl")).unwrap();
    let shards = pipeline::find(&[folder.path("in")]).unwrap();
    assert_eq!(shards.iter().map(|shard| shard.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn names_that_results_cannot_have_are_refused_at_once() {
    use std::os::unix::ffi::OsStringExt;
    let folder = Folder::new("names");
    let line = b"{\"text\":\"off\"}\n";
    let not_utf8 = std::ffi::OsString::from_vec(b"x\xff.jsonl".to_vec());
    fs::write(folder.path("in-other").with_file_name(&not_utf8), line).unwrap();
    for (paths, problem) in [
        (vec![folder.add("one/...jsonl", line)], "results cannot be named after this file"),
        (vec![folder.add("one/.offlock.jsonl", line)], "results cannot be named after this file"),
        (vec![folder.add("one/manifest.json.jsonl", line)], "results cannot be named after this file"),
        (vec![folder.0.join(&not_utf8)], "the name is not UTF-8"),
        (
            vec![folder.add("two/a.jsonl", line), folder.add("two/a.bin/x.jsonl", line), folder.path("two")]
                [2..]
                .to_vec(),
            "results would have the same name",
        ),
    ] {
        let out = folder.path("out");
        let error = write(&paths, &settings(), &destination(&out, Output::Llmc)).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        assert!(!out.exists());
    }
}

#[test]
fn documents_that_a_format_cannot_hold_or_name() {
    let folder = Folder::new("odd");
    let path = folder.add("a.jsonl", b"{\"text\":\"\",\"id\":7}\n{\"text\":\"off\",\"id\":-8}\n");
    let skip = Settings { on_error: OnError::Skip, ..settings() };
    let none = Some(Eos::None);
    let out = folder.path("mds");
    let summary =
        write(&[&path], &skip, &Destination { eos: none, ..destination(&out, Output::Mds) }).unwrap();
    assert_eq!((summary.totals().documents, summary.totals().errors), (1, 1));
    let out = folder.path("dolma");
    let summary =
        write(&[&path], &settings(), &Destination { eos: none, ..destination(&out, Output::Dolma) }).unwrap();
    assert_eq!(summary.totals().documents, 2);
    let rows = String::from_utf8(read(&out.join("a.csv.gz"))).unwrap();
    assert!(rows.starts_with("0,0,7,") && rows.contains("\r\n0,1,-8,"), "{rows}");
}

#[test]
fn a_resumed_run_makes_anew_what_has_changed() {
    let folder = Folder::new("changed");
    let (one, other) = (folder.add("1.txt", b"one"), folder.add("2.txt", b"two"));
    let out = folder.path("out");
    let mut destination = destination(&out, Output::Nanogpt);
    write(&[&one, &other], &settings(), &destination).unwrap();
    let error = write(&[&one], &settings(), &destination).unwrap_err();
    assert!(error.to_string().contains("results of an earlier run"), "{error}");
    destination.resume = true;
    fs::write(&one, b"changed").unwrap();
    fs::remove_file(out.join("2.bin")).unwrap();
    let summary = write(&[&one, &other], &settings(), &destination).unwrap();
    assert_eq!(summary.resumed, 0);
    let summary = write(&[&one, &other], &settings(), &destination).unwrap();
    assert_eq!((summary.resumed, summary.totals().bytes), (2, 10));
    let narrow: Vec<u8> = [encode("changed"), vec![EOT]]
        .concat()
        .iter()
        .flat_map(|&token| (token as u16).to_le_bytes())
        .collect();
    assert_eq!(fs::read(out.join("1.bin")).unwrap(), narrow);
    let fewer = write(&[&one], &settings(), &destination).unwrap_err();
    assert!(fewer.to_string().contains("a shard that is not among those named: 2"), "{fewer}");
    fs::write(&one, b"\xff").unwrap();
    write(&[&one, &folder.path("2.txt")], &settings(), &destination).unwrap_err();
    assert!(!out.join("manifest.json").exists() && !out.join("1.bin").exists());
    fs::remove_dir_all(out.join(".offlock/done")).unwrap();
    destination.resume = false;
    let killed = write(&[&one], &settings(), &destination).unwrap_err();
    assert!(killed.to_string().contains("results of an earlier run"), "{killed}");
    destination.resume = true;
    let other_output = Destination { output: Output::Llmc, ..destination };
    let error = write(&[one], &settings(), &other_output).unwrap_err();
    assert!(error.to_string().contains("made with another eos: \"append\", not \"prepend\""), "{error}");
}

#[test]
fn a_folder_that_is_in_use_or_has_other_files_is_refused() {
    let folder = Folder::new("used");
    let path = folder.add("in/a.txt", b"one");
    fs::create_dir_all(folder.path(".offlock")).unwrap();
    let error = write(&[&path], &settings(), &destination(&folder.0, Output::Nanogpt)).unwrap_err();
    assert!(error.to_string().contains("the folder has other files"), "{error}");
    let out = folder.path("out");
    fs::create_dir_all(out.join(".offlock/done")).unwrap();
    let lock = fs::File::create(out.join(".offlock/lock")).unwrap();
    lock.lock().unwrap();
    let error = write(&[&path], &settings(), &destination(&out, Output::Nanogpt)).unwrap_err();
    assert!(error.to_string().contains("another run writes to this folder"), "{error}");
    drop(lock);
    write(&[path], &settings(), &destination(&out, Output::Nanogpt)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Any bytes: an error or a count, never a panic, and the same on any number of threads.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), lines in any::<bool>()) {
        let folder = Folder::new("any");
        let path = folder.add("a", &bytes);
        let format = Some(if lines { Format::Jsonl } else { Format::Msgpack });
        let one = count(&[&path], &Settings { format, threads: 1, on_error: OnError::Skip, ..settings() });
        let two = count(&[path], &Settings { format, threads: 3, on_error: OnError::Skip, ..settings() });
        prop_assert_eq!(one, two);
    }
}
