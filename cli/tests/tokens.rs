//! Tests of `offlock tokens` as a process.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("offlock-tokens-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Shards of JSON lines, each of `size` bytes or a little more.
    fn add_shards(&self, count: usize, size: usize) {
        fs::create_dir_all(self.0.join("in")).unwrap();
        for shard in 0..count {
            let mut file = fs::File::create(self.0.join(format!("in/{shard:02}.jsonl"))).unwrap();
            let (mut at, mut written) = (0, 0);
            while written < size {
                let text = format!("Document {at} of shard {shard} keeps off the lock. ").repeat(1 + at % 50);
                let line = format!("{}\n", json!({ "text": text }));
                file.write_all(line.as_bytes()).unwrap();
                written += line.len();
                at += 1;
            }
        }
    }

    fn offlock(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_offlock"));
        command.arg("tokens").args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.offlock(arguments).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// All results below a folder, which need not be there yet, in the order of their names.
fn results(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(out)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_file() && entry.file_name() != "manifest.json")
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn counts_are_shown_as_a_table_and_as_json() {
    let folder = Folder::new("count");
    fs::write(folder.0.join("a.jsonl"), "{\"text\":\"off the lock\"}\n{\"text\":\"off\"}\n").unwrap();
    fs::write(folder.0.join("b.txt"), "off the lock").unwrap();
    let output = folder.run(&["count", "a.jsonl", "b.txt"]);
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(
        lines[..5],
        [
            "shard    documents  bytes  tokens  errors",
            "a.jsonl          2     15       4       0",
            "b.txt            1     12       3       0",
            "all              3     27       7       0",
            "",
        ]
    );
    assert_eq!(lines[5], "tokens of o200k_base in a document: 1 (p10), 3 (p50), 3 (p90), 3 (p99), 3 at most");
    let output = folder.run(&["count", "--json", "--model", "gpt-4", "a.jsonl"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["tokens"], &json["documents"], &json["model"]),
        (&json!(4), &json!(2), &json!("cl100k_base"))
    );
    assert_eq!(json["tokens_per_document"]["p50"], 1);
    assert_eq!(json["shards"][0]["path"], "a.jsonl");
}

#[test]
fn the_format_is_what_the_shards_say_or_what_is_stated() {
    let folder = Folder::new("format");
    fs::write(folder.0.join("a.jsonl"), "{\"text\":\"off\"}\n").unwrap();
    let counted = |options: &[&str]| {
        let output = folder.run(&[&["count", "a.jsonl", "--json"], options].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        json["bytes"].as_u64().unwrap()
    };
    assert_eq!((counted(&[]), counted(&["--format", "auto"])), (3, 3));
    assert_eq!(counted(&["--format", "lines"]), 14);
    let unknown = folder.run(&["count", "a.jsonl", "--format", "csv"]);
    assert!(text(&unknown.stderr).contains("possible values: auto, jsonl, msgpack, lines, text, parquet"));
}

#[test]
fn errors_name_the_record_and_stop_or_are_reported_or_skipped() {
    let folder = Folder::new("errors");
    fs::write(folder.0.join("a.jsonl"), "{\"text\":\"off\"}\n{\"txt\":1}\n").unwrap();
    let problem =
        "a.jsonl: record 2 (at byte 15 of the decompressed data): the record does not have the field";
    let failed = folder.run(&["count", "a.jsonl"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(text(&failed.stderr), format!("offlock: {problem}\n"));
    let reported = folder.run(&["count", "a.jsonl", "--on-error", "report"]);
    assert!(reported.status.success());
    assert_eq!(text(&reported.stderr), format!("offlock: {problem}\n"));
    let skipped = folder.run(&["count", "a.jsonl", "--on-error=skip", "--json"]);
    assert_eq!(text(&skipped.stderr), "");
    let json: Value = serde_json::from_slice(&skipped.stdout).unwrap();
    assert_eq!((&json["errors"], &json["documents"]), (&json!(1), &json!(1)));
}

#[test]
fn settings_that_cannot_work_are_named() {
    let folder = Folder::new("settings");
    fs::write(folder.0.join("a.txt"), "off the lock").unwrap();
    for (arguments, problem) in [
        (&["count", "none.txt"][..], "none.txt: No such file"),
        (&["count", "--model", "gtp-4", "a.txt"], "gtp-4: this model is not known"),
        (&["count", "--encoding", "x", "a.txt"], "invalid value 'x' for '--encoding"),
        (&["count", "--tokenizer", "a.txt", "a.txt"], "the file is not a tokenizer's"),
        (&["count", "--max-doc-bytes", "0", "a.txt"], "it is not a size such as"),
        (&["count", "--max-doc-bytes", "5", "a.txt"], "the record is longer than 5 bytes"),
        (&["write", "-o", "x", "--output", "npz", "a.txt"], "[possible values: megatron, datatrove"),
        (&["write", "-o", "x", "--output", "nanogpt", "a.txt"], "16-bit numbers"),
        (&["write", "-o", ".", "--output", "llmc", "a.txt"], "the folder has other files"),
        (&["write", "-o", "a.txt", "--output", "llmc", "a.txt"], "a.txt: "),
    ] {
        let output = folder.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text(&output.stderr).contains(problem), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_run_that_is_killed_at_any_moment_is_resumed() {
    let folder = Folder::new("killed");
    folder.add_shards(8, 200_000);
    let write = |out: &str, more: &[&str]| {
        let arguments = ["write", "in", "-o", out, "--output", "megatron", "--encoding", "gpt2", "-j", "2"];
        folder.offlock(&[&arguments[..], more].concat())
    };
    let began = Instant::now();
    assert!(write("whole", &[]).output().unwrap().status.success());
    let usual = began.elapsed();
    let whole = results(&folder.0.join("whole"));
    let mut killed = 0;
    for round in 0..8 {
        let out = format!("killed-{round}");
        for attempt in 0..100 {
            let mut command = write(&out, if attempt == 0 { &[] } else { &["--resume"] });
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            std::thread::sleep(usual * (1 + round) / 10 + usual * attempt / 20);
            let _ = child.kill();
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                break;
            }
            assert_eq!(output.status.signal(), Some(9), "{}", text(&output.stderr));
            killed += 1;
            let finished = results(&folder.0.join(&out));
            assert!(finished.iter().all(|file| whole.contains(file)), "what has its name is whole");
        }
        assert!(results(&folder.0.join(&out)) == whole);
    }
    assert!(killed > 0, "no run was killed");
}

#[test]
fn parts_that_are_killed_and_run_again_make_the_whole_run() {
    let folder = Folder::new("parts");
    folder.add_shards(6, 300_000);
    let write = |out: &str, more: &[&str]| {
        let arguments = ["write", "in", "-o", out, "--output", "megatron", "--encoding", "gpt2", "-j", "1"];
        let mut command = folder.offlock(&[&arguments[..], more].concat());
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let began = Instant::now();
    assert!(write("whole", &[]).wait().unwrap().success());
    let usual = began.elapsed();
    let whole = results(&folder.0.join("whole"));
    let manifest = |out: &str| fs::read(folder.0.join(out).join("manifest.json")).unwrap();
    let mut killed = 0;
    for round in 0..6 {
        let out = &*format!("out-{round}");
        let mut running = ["0/3", "1/3", "2/3"].map(|part| write(out, &["--part", part]));
        std::thread::sleep(usual * (1 + round) / 12);
        let _ = running[1].kill();
        let ended = running.map(|part| part.wait_with_output().unwrap());
        killed += usize::from(ended[1].status.signal() == Some(9));
        for part in [&ended[0], &ended[2]] {
            assert!(part.status.success(), "{}", text(&part.stderr));
        }
        assert!(results(&folder.0.join(out)).iter().all(|file| whole.contains(file)));
        assert!(write(out, &["--part", "1/3"]).wait().unwrap().success());
        assert!(results(&folder.0.join(out)) == whole);
        assert!(!folder.0.join(out).join("manifest.json").exists());
        assert!(write(out, &["--resume"]).wait().unwrap().success());
        assert!(manifest(out) == manifest("whole"));
    }
    assert!(killed > 0, "no part was killed");
}

#[test]
fn an_interrupted_run_says_how_to_continue() {
    interrupt("interrupted", rustix::process::Signal::INT, 130);
    interrupt("terminated", rustix::process::Signal::TERM, 143);
}

fn interrupt(name: &str, signal: rustix::process::Signal, status: i32) {
    let folder = Folder::new(name);
    folder.add_shards(4, 8_000_000);
    let arguments = ["write", "in", "-o", "out", "--output", "datatrove"];
    let mut command = folder.offlock(&arguments);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begins = Instant::now();
    while !folder.0.join("out/.offlock/settings.json").exists() {
        assert!(begins.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(status));
    assert_eq!(text(&output.stderr), "offlock: interrupted; continue with --resume\n");
    assert!(!folder.0.join("out/manifest.json").exists());
    let resumed = folder.run(&[&arguments[..], &["--resume"]].concat());
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert!(folder.0.join("out/manifest.json").exists());
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_result() {
    // Files may not grow beyond this limit; the signal that usually comes with it is ignored.
    let folder = Folder::new("full");
    folder.add_shards(1, 2_000_000);
    let command = env!("CARGO_BIN_EXE_offlock");
    let script =
        format!("trap '' XFSZ; ulimit -f 100; exec {command} tokens write in -o out --output datatrove");
    let output = Command::new("bash").args(["-c", &script]).current_dir(&folder.0).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("File too large"), "{}", text(&output.stderr));
    assert_eq!(results(&folder.0.join("out")), []);
}

/// The greatest resident size of a process, in bytes, which prints it itself.
#[cfg(target_os = "linux")]
fn peak_memory(folder: &Folder, arguments: &[&str]) -> usize {
    let mut command = folder.offlock(arguments);
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let mut child = child;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_shards() {
    let folder = Folder::new("memory");
    folder.add_shards(1, 1_000_000);
    let small = peak_memory(&folder, &["count", "in", "-j2"]);
    folder.add_shards(2, 40_000_000);
    let large = peak_memory(&folder, &["count", "in", "-j2"]);
    assert!(large < small + (40 << 20), "{small} {large}");
    assert!(large < 150 << 20, "{large}");
}
