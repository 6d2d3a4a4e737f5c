//! A recording of an interpreter without a lock: two threads compute, a third one stops them to collect garbage.

use offlock_core::trace::{Kind, Lock, Moment, Reason, RecordedThread, Recording, Stand, pack_release};

const MS: u64 = 1_000_000;
const LENGTH: u64 = 1_000 * MS;
const PAUSE: u32 = 1;
const COMPUTING: u32 = 9;

pub(super) fn recording() -> Recording {
    let about = [
        ("language", "python"),
        ("exact", "false"),
        ("obstacle", "this interpreter runs without a lock"),
        ("lock", "none"),
    ];
    Recording {
        about: about.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
        end: LENGTH,
        threads: (1..).zip([worker("worker-1"), worker("worker-2"), collector()]).collect(),
        locks: [(PAUSE, Lock::STOP_THE_WORLD.to_owned())].into(),
        names: [(COMPUTING, "Python without a lock".to_owned())].into(),
        ..Recording::default()
    }
}

/// The pauses: 20 ms every 100 ms.
fn pauses() -> impl Iterator<Item = (u64, u64)> {
    (1..10).map(|number| (number * 100 * MS, (number * 100 + 20) * MS))
}

fn worker(name: &str) -> RecordedThread {
    let waits = pauses().flat_map(|(start, end)| {
        [at(start, Kind::Wants, PAUSE), at(end, Kind::Released, pack_release(PAUSE, Reason::Unheld))]
    });
    let computes = [at(0, Kind::RegionBegin, COMPUTING)].into_iter().chain(waits);
    thread(name, computes.chain([at(LENGTH, Kind::RegionEnd, 0)]))
}

fn collector() -> RecordedThread {
    let collections = pauses().flat_map(|(start, end)| {
        [
            at(start - 1, Kind::GcEnter, 0),
            at(start, Kind::Acquired, PAUSE),
            at(end, Kind::Released, PAUSE),
            at(end + 1, Kind::GcExit, 0),
        ]
    });
    thread("collector", collections)
}

fn thread(name: &str, moments: impl Iterator<Item = Moment>) -> RecordedThread {
    RecordedThread { name: name.into(), stand: Stand::Off, moments: moments.collect() }
}

fn at(time: u64, kind: Kind, argument: u32) -> Moment {
    Moment { time, kind, argument, native: 0 }
}
