//! Compares the core's encoder with the crate fastokens 0.3.5, in one thread. Each round is a new process, because both
//! keep what they have seen. The texts are cut into documents of 1 to 20 KB, which are shuffled. A round of an encoding
//! and a kind of text has these states. *Fresh*: a contestant encodes the first three fifths of the documents, then, timed,
//! the rest, which it has not seen. *Seen*: the same documents again, timed. *Cold*: the contestants take turns
//! document by document, on documents not seen before, so that each finds the processor's caches filled by the other (in
//! a process of its own, with the same documents before it). *Whole*: in another process, the whole text of 5 MB in one
//! call, first as the first text at all and then once more. The answers are compared before anything is timed, in yet another process.
//! The contestants change order from round to round. Times are the thread's processor time, because others use the machine
//! too. Speeds are medians over the rounds; ratios (speed of offlock by
//! that of fastokens) are medians of the ratios of each round. The figures for each script are those of the fresh documents
//! of the text in many scripts, sorted by the script of most of their letters.
//!
//!     cargo run --release --manifest-path bench/tokens/rust/Cargo.toml -- [--rounds N] [--only WORD]... [--json FILE]
//!         [--models MODELS] [FOLDER]
//!
//! `--only cold` or `--only o200k_base` leaves out what does not have the word in its name. FOLDER has prose, code and multi
//! `.txt.gz`; without it, it is `OFFLOCK_DATA`, or what `script/corpora` makes. With `--models` the tokenizers of models are
//! measured instead of the public encodings: MODELS has a folder for each, as `script/setup --models` makes it.

mod contestant;
mod report;
mod round;
mod scripts;
mod texts;

use contestant::Contestant;
use report::Figures;
use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const ENCODINGS: [&str; 2] = ["cl100k_base", "o200k_base"];
const MODELS: [&str; 3] = ["llama3_1", "qwen3", "deepseek_v3"];
const TEXTS: [&str; 3] = ["prose", "code", "multi"];

/// What the command line asks for.
struct Options {
    rounds: usize,
    only: Vec<String>,
    json: Option<PathBuf>,
    models: Option<PathBuf>,
    folder: PathBuf,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [command, folder, encoding, text, state, number, models @ ..] = &arguments[..]
        && command == "round"
    {
        let contestants = match models {
            [] => Contestant::both(encoding),
            [models, ..] => Contestant::both_with_model(&PathBuf::from(models).join(encoding)),
        };
        let cell = format!("{encoding}, {text}");
        let number = number.parse().expect("a number");
        return round::run(&PathBuf::from(folder), &contestants, &cell, text, state, number);
    }
    let options = match options(arguments) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let mut figures = Figures::default();
    let encodings = if options.models.is_some() { &MODELS[..] } else { &ENCODINGS };
    for encoding in encodings {
        for text in TEXTS {
            for (state, cells) in round::STATES {
                let wanted = |cell: &str| {
                    let name = format!("{encoding}, {text}, {cell}");
                    options.only.iter().all(|word| name.contains(word.as_str()))
                };
                if !cells.iter().any(|cell| wanted(cell)) {
                    continue;
                }
                let rounds = if *state == "check" { 1 } else { options.rounds };
                for number in 0..rounds {
                    if !measure(&options, encoding, text, state, number, &mut figures) {
                        return ExitCode::FAILURE;
                    }
                }
            }
        }
    }
    figures.show();
    if let Some(file) = &options.json {
        std::fs::write(file, figures.json() + "\n").expect("the file of results can be written");
    }
    ExitCode::SUCCESS
}

fn options(arguments: Vec<String>) -> Result<Options, String> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let folder = env::var_os("OFFLOCK_DATA").map_or_else(|| root.join(".cache/corpora"), PathBuf::from);
    let mut options = Options { rounds: 7, only: Vec::new(), json: None, models: None, folder };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--rounds" => options.rounds = value()?.parse().map_err(|error| format!("--rounds: {error}"))?,
            "--only" => options.only.push(value()?),
            "--models" => options.models = Some(value()?.into()),
            "--json" => options.json = Some(value()?.into()),
            unknown if unknown.starts_with('-') => return Err(format!("unknown option {unknown}")),
            folder => options.folder = folder.into(),
        }
    }
    if options.rounds == 0 {
        return Err("--rounds: at least one".into());
    }
    Ok(options)
}

/// Runs one round in a process of its own and collects what it prints; false if it fails.
fn measure(
    options: &Options,
    encoding: &str,
    text: &str,
    state: &str,
    number: usize,
    figures: &mut Figures,
) -> bool {
    let program = env::current_exe().expect("the path of this program");
    let mut command = Command::new(program);
    command.arg("round").arg(&options.folder).args([encoding, text, state, &number.to_string()]);
    command.args(&options.models);
    // The contestants are compared in one thread.
    command.env("FASTOKENS_BPE_THREADS", "1").stderr(std::process::Stdio::inherit());
    let output = command.output().expect("a round can be started");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        figures.add(encoding, text, line);
    }
    output.status.success()
}
