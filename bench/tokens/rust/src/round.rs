//! One round: what runs in a process of its own. It prints a line for each figure: the cell, the contestant's number, the
//! bytes of text and the nanoseconds that they took, separated by tabs.

use crate::contestant::{Contestant, NAMES};
use crate::{scripts, texts};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

/// The kinds of processes, and the cells that each gives figures for.
pub(crate) const STATES: &[(&str, &[&str])] = &[
    ("check", &["fresh", "seen", "cold", "whole"]),
    ("fresh", &["fresh", "seen"]),
    ("cold", &["cold"]),
    ("whole", &["whole"]),
];

/// The part of the documents that is encoded before anything is timed: three of five.
fn warm_up<'a, 't>(documents: &'a [&'t str]) -> (&'a [&'t str], &'a [&'t str]) {
    documents.split_at(documents.len() * 3 / 5)
}

/// Runs a round.
pub(crate) fn run(
    folder: &Path,
    contestants: &[Contestant; 2],
    cell: &str,
    text: &str,
    state: &str,
    number: usize,
) -> ExitCode {
    let whole = texts::read(folder, text);
    let documents = texts::documents(&whole);
    let order = if number.is_multiple_of(2) { [0, 1] } else { [1, 0] };
    match state {
        "check" => return check(contestants, &whole, &documents, cell),
        "fresh" => order.into_iter().for_each(|name| fresh(contestants, name, &documents, text == "multi")),
        "cold" => cold(contestants, order, &documents),
        _ => order.into_iter().for_each(|name| all_at_once(contestants, name, &whole)),
    }
    ExitCode::SUCCESS
}

/// Compares the answers.
fn check(contestants: &[Contestant; 2], whole: &str, documents: &[&str], cell: &str) -> ExitCode {
    let [ours, theirs] = contestants;
    let differs = |text: &&&str| ours.encode(text) != theirs.encode(text);
    let wrong = documents.iter().chain([&whole]).filter(differs).count();
    if wrong > 0 {
        eprintln!("{cell}: other tokens in {wrong} of {} documents", documents.len() + 1);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn fresh(contestants: &[Contestant; 2], name: usize, documents: &[&str], by_script: bool) {
    let contestant = &contestants[name];
    let (before, timed) = warm_up(documents);
    for text in before {
        black_box(contestant.encode(text));
    }
    let mut scripts: BTreeMap<&str, (usize, u128)> = BTreeMap::new();
    let mut nanoseconds = Vec::with_capacity(timed.len());
    for text in timed {
        nanoseconds.push(time(contestant, text));
    }
    print("fresh", name, timed.iter().map(|text| text.len()).sum(), nanoseconds.iter().sum());
    let seen = timed.iter().map(|text| time(contestant, text)).sum();
    print("seen", name, timed.iter().map(|text| text.len()).sum(), seen);
    if by_script {
        for (text, nanoseconds) in timed.iter().zip(nanoseconds) {
            let sums = scripts.entry(scripts::script(text)).or_default();
            *sums = (sums.0 + text.len(), sums.1 + nanoseconds);
        }
        for (script, (bytes, nanoseconds)) in scripts {
            print(&format!("fresh, {script}"), name, bytes, nanoseconds);
        }
    }
}

fn cold(contestants: &[Contestant; 2], order: [usize; 2], documents: &[&str]) {
    let (before, timed) = warm_up(documents);
    for text in before {
        for name in order {
            black_box(contestants[name].encode(text));
        }
    }
    let mut sums = [0; NAMES.len()];
    for text in timed {
        for name in order {
            sums[name] += time(&contestants[name], text);
        }
    }
    for name in order {
        print("cold", name, timed.iter().map(|text| text.len()).sum(), sums[name]);
    }
}

fn all_at_once(contestants: &[Contestant; 2], name: usize, text: &str) {
    for cell in ["whole, first", "whole, again"] {
        print(cell, name, text.len(), time(&contestants[name], text));
    }
}

/// The nanoseconds of processor time that a text takes: others use the machine too.
fn time(contestant: &Contestant, text: &str) -> u128 {
    let start = processor_time();
    black_box(contestant.encode(black_box(text)));
    processor_time() - start
}

/// The processor time of this thread in nanoseconds.
fn processor_time() -> u128 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock writes one time, for which there is room.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "this system has no clock for the processor time of a thread");
    time.tv_sec as u128 * 1_000_000_000 + time.tv_nsec as u128
}

fn print(cell: &str, name: usize, bytes: usize, nanoseconds: u128) {
    println!("{cell}\t{name}\t{bytes}\t{nanoseconds}");
}
