//! Stacks for a made-up trace, taken when a recorder would take them.

use offlock_core::trace::{Kind, Moment, RecordedFrame, RecordedFunction, Recording, Stretch, Timeline};

const FILES: [&str; 3] = ["/srv/app/server.py", "/srv/app/index.py", "/usr/lib/python3.12/json/decoder.py"];

/// Name, number of the file, first line.
const FUNCTIONS: [(&str, u32, u32); 9] = [
    ("Server.serve", 1, 10),
    ("Server.handle", 1, 30),
    ("Server.render", 1, 60),
    ("JSONDecoder.decode", 3, 330),
    ("Indexer.run", 2, 5),
    ("Index.build", 2, 20),
    ("Index.tokenize", 2, 48),
    ("Index.merge", 2, 90),
    ("main", 1, 200),
];

/// Caller, function, line, from frame 1 on. Frame 12 is of a function that calls itself.
const FRAMES: [(u32, u32, u32); 14] = [
    (0, 1, 14),
    (1, 2, 33),
    (2, 4, 337),
    (2, 3, 64),
    (4, 3, 71),
    (0, 5, 8),
    (6, 6, 24),
    (7, 7, 51),
    (7, 7, 52),
    (7, 8, 95),
    (0, 0, 900),
    (11, 8, 97),
    (12, 8, 99),
    (0, 9, 203),
];
const SERVING: [u32; 3] = [3, 4, 5];
const INDEXING: [u32; 8] = [8, 8, 8, 9, 8, 9, 10, 13];
const MAIN: u32 = 14;
const SERVE: u32 = 1;

/// Stacks are taken once a thread has waited for so long, and then at this interval.
const THRESHOLD: u64 = 1_000_000;
const STEP: usize = 2_000_000;

pub(crate) fn add(recording: &mut Recording) {
    define(recording);
    let timeline = Timeline::of(recording);
    for life in &timeline.threads {
        let Some(thread) = recording.threads.get_mut(&life.id) else { continue };
        let taken = life.holds.iter().flat_map(|hold| of_holder(&timeline, &life.name, hold));
        let long = life.waits.iter().filter(|wait| wait.length() > THRESHOLD);
        let waiting = long.map(|wait| (wait.start + THRESHOLD, Kind::StackWaiting, wants(&life.name)));
        let moment =
            |(time, kind, argument)| Moment { time: recording.start + time, kind, argument, native: 1 };
        thread.moments.extend(taken.chain(waiting).map(moment));
        thread.moments.sort_by_key(|moment| moment.time);
    }
}

fn define(recording: &mut Recording) {
    let code = &mut recording.code;
    code.files = (1..).zip(FILES.map(String::from)).collect();
    let function = |(name, file, line): (&str, _, _)| RecordedFunction { name: name.into(), file, line };
    code.functions = (1..).zip(FUNCTIONS.map(function)).collect();
    let frame = |(caller, function, line)| RecordedFrame { caller, function, line };
    code.frames = (1..).zip(FRAMES.map(frame)).collect();
}

/// The stacks of a hold: from when some thread has waited for long to the release.
fn of_holder(timeline: &Timeline, name: &str, hold: &Stretch) -> Vec<(u64, Kind, u32)> {
    let waits = timeline.threads.iter().flat_map(|life| &life.waits);
    let overlapping = waits.filter(|wait| wait.start < hold.end && wait.end > hold.start);
    let Some(first) = overlapping.map(|wait| wait.start + THRESHOLD).min() else { return Vec::new() };
    let during = (first.max(hold.start + 1)..hold.end).step_by(STEP);
    let mut taken: Vec<_> = during.map(|time| (time, Kind::StackHolding, holds(name, time))).collect();
    if first < hold.end {
        taken.push((hold.end, Kind::StackReleasing, holds(name, hold.end)));
    }
    taken
}

/// What a thread does with the lock: another thing every 5 ms.
fn holds(name: &str, time: u64) -> u32 {
    let pick = |stacks: &[u32]| stacks[(time / 5_000_000) as usize % stacks.len()];
    match name {
        "indexer" => pick(&INDEXING),
        "main" => MAIN,
        _ => pick(&SERVING),
    }
}

/// Where it asks for the lock.
fn wants(name: &str) -> u32 {
    if name == "indexer" { INDEXING[0] } else { SERVE }
}
