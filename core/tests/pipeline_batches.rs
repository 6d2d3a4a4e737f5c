//! Batches of documents: their order, errors, back-pressure, and the end of the threads that make them.

mod folder;

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use folder::Folder;
use offlock_core::pipeline::{self, Batch, Batches, Error, ErrorKind, Model, OnError, Settings};
use offlock_core::{Task, tokens};
use serde_json::json;

impl Folder {
    /// Shards of `count` documents each.
    fn with_shards(name: &str, shards: usize, count: usize) -> (Self, Vec<String>) {
        let folder = Self::new(name);
        let mut texts = Vec::new();
        for shard in 0..shards {
            let new: Vec<String> =
                (0..count).map(|at| format!("{shard} {at} ").repeat(at % 97 * shard.pow(2))).collect();
            let lines: Vec<String> = new.iter().map(|text| json!({ "text": text }).to_string()).collect();
            folder.add(&format!("{shard}.jsonl"), lines.join("\n").as_bytes());
            texts.extend(new);
        }
        (folder, texts)
    }

    fn batches(&self, settings: Settings) -> Batches {
        let shards = pipeline::find(std::slice::from_ref(&self.0)).unwrap();
        Batches::start(shards, Arc::new(settings)).unwrap()
    }
}

fn settings(threads: usize, on_error: OnError) -> Settings {
    let model = Model::Encoding(tokens::get("gpt2").unwrap());
    Settings { threads, on_error, ..Settings::new(model) }
}

fn all(batches: &Batches) -> Result<Vec<Batch>, Error> {
    std::iter::from_fn(|| batches.next(&Task::new()).transpose()).collect()
}

fn documents(batch: &Batch) -> impl Iterator<Item = &[u32]> {
    batch.offsets.windows(2).map(|ends| &batch.tokens[ends[0] as usize..ends[1] as usize])
}

#[test]
fn batches_come_in_order_on_any_number_of_threads() {
    let (folder, texts) = Folder::with_shards("order", 6, 1500);
    let encoding = tokens::get("gpt2").unwrap();
    let expected: Vec<Vec<u32>> =
        texts.iter().map(|text| encoding.encode_ordinary(text, &Task::new()).unwrap()).collect();
    for threads in [1, 2, 7] {
        let batches = folder.batches(settings(threads, OnError::Fail));
        let read = all(&batches).unwrap();
        assert!(read.len() > 10);
        let found: Vec<&[u32]> = read.iter().flat_map(documents).collect();
        assert!(found == expected, "{threads} threads");
        assert_eq!(read.iter().map(|batch| batch.bytes).sum::<u64>(), bytes(&texts));
        let numbers: Vec<u64> = read.iter().flat_map(|batch| batch.records.clone()).collect();
        assert_eq!(numbers, (0..6).flat_map(|_| 1..=1500).collect::<Vec<u64>>());
        assert_eq!(batches.bytes_read(), batches.bytes_total());
        assert_eq!(batches.next(&Task::new()), Ok(None));
    }
}

fn bytes(texts: &[String]) -> u64 {
    texts.iter().map(|text| text.len() as u64).sum()
}

#[test]
fn the_first_error_ends_the_batches_or_is_reported_with_its_batch() {
    let folder = Folder::new("errors");
    folder.add("a.jsonl", b"{\"text\":\"one\"}\n{\"text\":1}\n{\"text\":\"two\"}");
    folder.add("b.jsonl", b"{\"text\":\"three\"}\n{");
    let batches = folder.batches(settings(2, OnError::Fail));
    let error = all(&batches).unwrap_err();
    assert_eq!((error.kind, error.record.unwrap().number), (ErrorKind::NotText { found: "a number" }, 2));
    assert_eq!(batches.next(&Task::new()), Ok(None));

    let read = all(&folder.batches(settings(2, OnError::Report))).unwrap();
    let found: Vec<(u64, usize, Vec<u64>)> =
        read.iter().map(|batch| (batch.failed, batch.errors.len(), batch.records.clone())).collect();
    assert_eq!(found, [(1, 1, vec![1, 3]), (1, 1, vec![1])]);
    let read = all(&folder.batches(settings(2, OnError::Skip))).unwrap();
    assert_eq!(read.iter().map(|batch| (batch.failed, batch.errors.len())).collect::<Vec<_>>(), [(1, 0); 2]);
}

#[test]
fn a_shard_that_is_gone_is_an_error_in_its_place() {
    let (folder, _) = Folder::with_shards("gone", 2, 10);
    let shards = pipeline::find(std::slice::from_ref(&folder.0)).unwrap();
    fs::remove_file(folder.0.join("1.jsonl")).unwrap();
    let batches = Batches::start(shards, Arc::new(settings(2, OnError::Skip))).unwrap();
    assert_eq!(batches.next(&Task::new()).unwrap().unwrap().documents(), 10);
    let error = batches.next(&Task::new()).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Io { code: Some(2), .. }), "{error}");
    assert!(error.path.ends_with("1.jsonl"));
    assert_eq!(batches.next(&Task::new()), Ok(None));
}

#[test]
fn what_no_one_reads_is_not_encoded() {
    let (folder, _) = Folder::with_shards("slow", 8, 1500);
    let batches = folder.batches(settings(2, OnError::Fail));
    let first = batches.next(&Task::new()).unwrap();
    thread::sleep(Duration::from_millis(300));
    let before = batches.bytes_read();
    thread::sleep(Duration::from_millis(100));
    // Two batches are queued, each thread holds one, the first was taken, and one more may have been begun.
    assert_eq!(batches.bytes_read(), before);
    assert!(before <= 8 << 20 && before < batches.bytes_total() / 2, "{before}");
    assert!(first.is_some() && all(&batches).unwrap().len() > 10);
}

#[test]
fn nothing_comes_after_the_batches_are_closed() {
    let (folder, _) = Folder::with_shards("ends", 8, 1500);
    let closed = folder.batches(settings(3, OnError::Fail));
    closed.next(&Task::new()).unwrap();
    closed.close();
    assert_eq!(closed.next(&Task::new()), Ok(None));
}

#[test]
fn a_reader_that_is_stopped_loses_no_batch() {
    let (folder, texts) = Folder::with_shards("stopped", 5, 1500);
    let batches = folder.batches(settings(1, OnError::Fail));
    let stopped = Task::new();
    stopped.stop();
    let mut count = 0;
    loop {
        assert_eq!(batches.next(&stopped).unwrap_err().kind, ErrorKind::Stopped);
        match batches.next(&Task::new()).unwrap() {
            Some(batch) => count += batch.documents(),
            None => break,
        }
    }
    assert_eq!(count, texts.len());
}
