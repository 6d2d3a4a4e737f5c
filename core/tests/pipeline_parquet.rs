//! Shards that are tables, and files of tokens that are.

mod folder;

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use folder::Folder;
use offlock_core::parquet::{File, Kept, Named, Rows, Writer};
use offlock_core::pipeline::{
    self, Batches, Destination, Eos, Error, ErrorKind, Format, Model, OnError, Output, Settings, Summary,
};
use offlock_core::{Task, tokens};
use serde_json::{Value, json};

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::new(Model::Encoding(tokens::get("gpt2").unwrap())) }
}

fn count(paths: &[PathBuf], settings: &Settings) -> Result<Summary, Error> {
    pipeline::count(&pipeline::find(paths)?, settings, &|_| {}, &Task::new())
}

fn destination(folder: &Path, output: Output) -> Destination {
    Destination {
        folder: folder.to_owned(),
        output,
        eos: None,
        eos_token: "<|endoftext|>".to_owned(),
        resume: false,
        part: None,
    }
}

/// The cases of `vectors/parquet`: a name, a file, and its texts.
fn vectors() -> Vec<(String, Vec<u8>, Vec<Option<String>>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/parquet/files.jsonl");
    let lines = fs::read_to_string(path).unwrap();
    lines
        .lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let hex = case["bytes"].as_str().unwrap();
            let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
            let texts = serde_json::from_value(case["texts"].clone()).unwrap();
            (case["name"].as_str().unwrap().to_owned(), bytes.collect(), texts)
        })
        .collect()
}

/// A table of texts, with a column `id` of texts.
fn table(texts: &[Option<String>]) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), &[Kept::text("id"), Kept::text("text")], "lists").unwrap();
    for (row, text) in texts.iter().enumerate() {
        let id = format!("row {row}");
        writer
            .row([Some(id.as_bytes()), text.as_ref().map(String::as_bytes)], &[1, 2], &Task::new())
            .unwrap();
    }
    writer.finish().unwrap()
}

fn jsonl(texts: &[Option<String>]) -> Vec<u8> {
    texts.iter().flat_map(|text| format!("{}\n", json!({ "text": text })).into_bytes()).collect()
}

fn texts(count: usize) -> Vec<Option<String>> {
    (0..count)
        .map(|at| (at % 7 != 3).then(|| format!("text {at} {}", "of words ".repeat(at % 400))))
        .collect()
}

/// The numbers of each column of texts, and those of its rows.
fn column(bytes: Vec<u8>, name: &str) -> Vec<Option<String>> {
    let task = Task::new();
    let mut file = File::open(Arc::new(bytes), &task).unwrap();
    let Named::Column(column) = file.schema().find(&[name.to_owned()]) else { panic!("no column {name}") };
    let mut values = Vec::new();
    while let Some(mut group) = file.next_group(&[column]).unwrap() {
        let mut rows = Rows::default();
        (0..group.rows).for_each(|_| group.columns[0].next(&mut rows, &task).unwrap());
        values.extend(
            (0..rows.len()).map(|row| rows.get(row).map(|value| String::from_utf8(value.to_vec()).unwrap())),
        );
    }
    values
}

#[test]
fn tables_count_as_lines_of_json_do() {
    let folder = Folder::new("counts");
    let skip = Settings { on_error: OnError::Skip, ..settings() };
    let mut cases = vectors();
    cases.push(("many rows".to_owned(), table(&texts(3000)), texts(3000)));
    for (number, (name, bytes, texts)) in cases.into_iter().enumerate() {
        let table = folder.add(&format!("{number}/a.parquet"), &bytes);
        let lines = folder.add(&format!("{number}/a.jsonl"), &jsonl(&texts));
        let [table, lines] = [table, lines].map(|path| count(&[path], &skip).unwrap());
        assert_eq!(table.totals(), lines.totals(), "{name}");
    }
}

#[test]
fn a_table_is_known_by_its_name_or_its_content() {
    let (folder, rows) = (Folder::new("known"), texts(3));
    let bytes = table(&rows);
    folder.add("in/train-00000-of-00001.parquet", &bytes);
    for path in [folder.0.join("in"), folder.add("part-0", &bytes)] {
        assert_eq!(count(&[path], &settings()).unwrap().totals().documents, 3);
    }
    let named = folder.add("a.txt", &bytes);
    let as_table = Settings { format: Some(Format::Parquet), ..settings() };
    assert_eq!(count(&[named], &as_table).unwrap().totals().documents, 3);
}

#[test]
fn errors_name_the_row_and_its_page() {
    let (folder, rows) = (Folder::new("errors"), texts(10));
    let path = folder.add("a.parquet", &table(&rows));
    let error = count(slice::from_ref(&path), &settings()).unwrap_err();
    let place = error.record.unwrap();
    assert_eq!((error.kind.clone(), place.number, place.is_page), (ErrorKind::MissingField, 4, true));
    let wanted = format!(
        "a.parquet: record 4 (in the page at byte {} of the file): the record does not",
        place.offset
    );
    assert!(place.offset > 4 && error.to_string().contains(&wanted), "{error}");
    let reported = Mutex::new(Vec::new());
    let report = Settings { on_error: OnError::Report, max_doc_bytes: 60, ..settings() };
    let shards = pipeline::find(&[path]).unwrap();
    let add =
        |error: &Error| reported.lock().unwrap().push((error.record.unwrap().number, error.kind.clone()));
    let summary = pipeline::count(&shards, &report, &add, &Task::new()).unwrap();
    let too_long = |number| (number, ErrorKind::TooLong { limit: 60, ends_shard: false });
    assert_eq!(
        *reported.lock().unwrap(),
        [(4, ErrorKind::MissingField), too_long(7), too_long(8), too_long(9), too_long(10)]
    );
    assert_eq!((summary.totals().documents, summary.totals().errors), (5, 5));
}

#[test]
fn columns_that_are_no_texts_are_refused_by_name() {
    let folder = Folder::new("columns");
    let path = folder.add("a.parquet", &table(&texts(2)));
    let (_, numbered, _) = vectors().swap_remove(0);
    let numbered = folder.add("b.parquet", &numbered);
    for (path, field, message) in [
        (&path, &["nothing"][..], "there is no column nothing, but id, text"),
        (&path, &["lists"], "the field is not a string but a group or a list"),
        (&path, &["lists", "list", "element"], "the field is not a string but a list"),
        (&numbered, &["id"], "the field is not a string but a number"),
    ] {
        let field = field.iter().map(|&key| key.to_owned()).collect();
        let named = Settings { field, ..settings() };
        let error = count(slice::from_ref(path), &named).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        let skip = Settings { on_error: OnError::Skip, ..named };
        assert_eq!(count(slice::from_ref(path), &skip).unwrap().totals().errors, 1);
    }
}

#[test]
fn rows_before_damage_are_used() {
    let folder = Folder::new("damage");
    let text = |at: u64| (0..9_000).map(|number: u64| format!("{} ", number * number * (at + 1))).collect();
    let rows: Vec<Option<String>> = (0..40).map(|at| Some(text(at))).collect();
    let whole = table(&rows);
    let settings = Settings { on_error: OnError::Skip, ..settings() };
    let mut seen = Vec::new();
    // Nearly all of the file is texts.
    for at in [whole.len() / 4, whole.len() / 2, whole.len() * 3 / 4] {
        let mut damaged = whole.clone();
        damaged[at..at + 100].fill(0xa5);
        let summary = count(&[folder.add("a.parquet", &damaged)], &settings).unwrap();
        assert_eq!(summary.totals().errors, 1);
        seen.push(summary.totals().documents);
    }
    // A page has a few rows of the 40; the first one is damaged at first.
    assert!(seen[0] == 0 && seen[0] < seen[1] && seen[1] < seen[2] && seen[2] < 40, "{seen:?}");
    for bytes in
        [&whole[..whole.len() / 2], b"", b"PAR1", &[b"PAR1\xff\xff\xff\x7f".as_slice(), b"PAR1"].concat()]
    {
        let path = folder.add("b.parquet", bytes);
        let error = count(slice::from_ref(&path), &Settings { on_error: OnError::Fail, ..self::settings() })
            .unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Malformed { .. }), "{error}");
        assert_eq!(count(&[path], &settings).unwrap().totals().errors, 1);
    }
}

#[test]
fn batches_are_those_of_lines_of_json() {
    let (folder, rows) = (Folder::new("batches"), texts(2000));
    let all = |path: PathBuf| {
        let settings = Arc::new(Settings { on_error: OnError::Skip, ..settings() });
        let batches = Batches::start(pipeline::find(&[path]).unwrap(), settings).unwrap();
        let (mut tokens, mut records, mut count) = (Vec::new(), Vec::new(), 0);
        while let Some(batch) = batches.next(&Task::new()).unwrap() {
            assert!(batches.bytes_read() <= batches.bytes_total());
            tokens.extend(batch.tokens);
            records.extend(batch.records);
            count += 1;
        }
        assert_eq!(batches.bytes_read(), batches.bytes_total());
        (tokens, records, count)
    };
    let table = all(folder.add("a.parquet", &table(&rows)));
    assert!(table.2 > 1);
    let lines = all(folder.add("a.jsonl", &jsonl(&rows)));
    assert_eq!((table.0, table.1), (lines.0, lines.1));
}

#[test]
fn columns_are_kept_beside_the_tokens() {
    let (folder, rows) = (Folder::new("kept"), texts(3000));
    let path = folder.add("in/a.parquet", &table(&rows));
    let skip = Settings { on_error: OnError::Skip, ..settings() };
    let mut contents = Vec::new();
    for threads in [1, 3] {
        let out = folder.0.join(format!("out-{threads}"));
        let skip = Settings { on_error: OnError::Skip, threads, ..settings() };
        let shards = pipeline::find(slice::from_ref(&path)).unwrap();
        let summary =
            pipeline::write(&shards, &skip, &destination(&out, Output::Parquet), &|_| {}, &Task::new());
        assert_eq!(summary.unwrap().totals().documents, rows.iter().flatten().count() as u64);
        contents.push(fs::read(out.join("a.parquet")).unwrap());
        // The list of results is no shard.
        assert_eq!(pipeline::find(slice::from_ref(&out)).unwrap().len(), 1);
        assert!(out.join("manifest.json").exists());
    }
    assert!(contents[0] == contents[1]);
    let there = rows.iter().enumerate().filter(|(_, text)| text.is_some());
    let ids: Vec<_> = there.map(|(row, _)| Some(format!("row {row}"))).collect();
    assert_eq!(column(contents.swap_remove(0), "id"), ids);
    // Dolma's rows have the ids as well.
    let out = folder.0.join("dolma");
    let shards = pipeline::find(&[path]).unwrap();
    pipeline::write(&shards, &skip, &destination(&out, Output::Dolma), &|_| {}, &Task::new()).unwrap();
    assert!(out.join("a.csv.gz").exists());
}

#[test]
fn other_formats_give_ids() {
    let folder = Folder::new("ids");
    let lines = b"{\"text\": \"a\", \"id\": \"one\"}\n{\"text\": \"\"}\n{\"id\": 3, \"text\": \"c\"}\n";
    let shards = pipeline::find(&[
        folder.add("a.jsonl", lines),
        folder.add("b.txt", b"text"),
        folder.add("c.jsonl", b""),
    ]);
    let out = folder.0.join("out");
    let none = Destination { eos: Some(Eos::None), ..destination(&out, Output::Parquet) };
    pipeline::write(&shards.unwrap(), &settings(), &none, &|_| {}, &Task::new()).unwrap();
    let ids = |name: &str| column(fs::read(out.join(name)).unwrap(), "id");
    assert_eq!(ids("a.parquet"), [Some("one".to_owned()), None, Some("3".to_owned())]);
    assert_eq!((ids("b.parquet"), ids("c.parquet")), (vec![None], vec![]));
}

#[test]
fn a_table_without_rows_keeps_its_columns() {
    let folder = Folder::new("empty");
    let (_, bytes, _) = vectors().into_iter().find(|(name, ..)| name == "no rows").unwrap();
    let shards = pipeline::find(&[folder.add("a.parquet", &bytes)]).unwrap();
    let out = folder.0.join("out");
    pipeline::write(&shards, &settings(), &destination(&out, Output::Parquet), &|_| {}, &Task::new())
        .unwrap();
    let file = File::open(Arc::new(fs::read(out.join("a.parquet")).unwrap()), &Task::new()).unwrap();
    assert_eq!((file.rows(), file.schema().find(&["id".to_owned()])), (0, Named::Column(0)));
    assert_eq!(file.schema().find(&["input_ids".to_owned()]), Named::Group);
}

#[test]
fn a_run_over_tables_that_was_stopped_anywhere_is_resumed() {
    let folder = Folder::new("resumed");
    let skip = Settings { on_error: OnError::Skip, ..settings() };
    let paths = [0, 1, 2].map(|at| folder.add(&format!("in/{at}.parquet"), &table(&texts(200 + at * 300))));
    let shards = pipeline::find(&paths).unwrap();
    let whole = folder.0.join("whole");
    pipeline::write(&shards, &skip, &destination(&whole, Output::Parquet), &|_| {}, &Task::new()).unwrap();
    for stop_at in [1, 30, 300] {
        let out = folder.0.join(format!("stopped-{stop_at}"));
        for attempt in 0_u32.. {
            let asked = AtomicU32::new(0);
            let poll = |_| asked.fetch_add(1, Ordering::Relaxed) > stop_at << attempt;
            let resumed = Destination { resume: attempt > 0, ..destination(&out, Output::Parquet) };
            match pipeline::write(&shards, &skip, &resumed, &|_| {}, &Task::with_poll(&poll)) {
                Ok(_) => break,
                Err(error) => assert_eq!(error.kind, ErrorKind::Stopped, "{error}"),
            }
        }
        for name in ["0.parquet", "1.parquet", "2.parquet", "manifest.json"] {
            assert!(fs::read(out.join(name)).unwrap() == fs::read(whole.join(name)).unwrap(), "{name}");
        }
    }
}
