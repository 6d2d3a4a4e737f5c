//! Recordings of an interpreter without a lock: what its threads wait for, and what is said about it.

use offlock_core::trace::{
    FindingKind, Kind, Lock, LockKind, Moment, Reason, RecordedThread, Recording, Stand, Summary, Timeline,
    Weight, pack_release,
};

const MS: u64 = 1_000_000;
const PAUSE: u32 = 1;
const DICT: u32 = 2;

fn at(time: u64, kind: Kind, argument: u32) -> Moment {
    Moment { time, kind, argument, native: 0 }
}

/// A thread that computes for the second of the recording, apart from waits: each a lock, a start and an end.
fn computing(name: &str, waits: &[(u32, u64, u64)]) -> RecordedThread {
    let mut moments = vec![at(0, Kind::RegionBegin, 9), at(1_000 * MS, Kind::RegionEnd, 0)];
    for (lock, start, end) in waits {
        moments.push(at(*start, Kind::Wants, *lock));
        moments.push(at(*end, Kind::Released, pack_release(*lock, Reason::Unheld)));
    }
    moments.sort_by_key(|moment| moment.time);
    RecordedThread { name: name.into(), stand: Stand::Off, moments }
}

/// A thread that collects garbage for parts of the second, each a start and an end.
fn collecting(name: &str, pauses: &[(u64, u64)]) -> RecordedThread {
    let moments = pauses.iter().flat_map(|(start, end)| {
        [
            at(start - 1, Kind::GcEnter, 0),
            at(*start, Kind::Acquired, PAUSE),
            at(*end, Kind::Released, PAUSE),
            at(end + 1, Kind::GcExit, 0),
        ]
    });
    RecordedThread { name: name.into(), stand: Stand::Off, moments: moments.collect() }
}

fn recording(threads: Vec<RecordedThread>, about: &[(&str, &str)]) -> Recording {
    let always =
        [("language", "python"), ("exact", "false"), ("obstacle", "there is none"), ("lock", "none")];
    let about = always.iter().chain(about).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Recording {
        about: about.collect(),
        end: 1_000 * MS,
        threads: (1..).zip(threads).collect(),
        locks: [(PAUSE, Lock::STOP_THE_WORLD.to_owned()), (DICT, Lock::of_objects("dict"))].into(),
        names: [(9, "Python without a lock".to_owned())].into(),
        ..Recording::default()
    }
}

fn summary(recording: &Recording) -> Summary {
    Summary::of(recording, &Timeline::of(recording))
}

/// Waits of `length` every ten milliseconds.
fn often(lock: u32, length: u64) -> Vec<(u32, u64, u64)> {
    (1..=50).map(|i| (lock, i * 10 * MS, i * 10 * MS + length)).collect()
}

fn kinds(summary: &Summary) -> Vec<FindingKind> {
    summary.findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn threads_that_share_nothing_have_no_problem() {
    let summary = summary(&recording(vec![computing("a", &[]), computing("b", &[])], &[]));
    assert_eq!(summary.findings[1].kind, FindingKind::Unused);
    assert_eq!(
        summary.findings[1].text,
        "This interpreter has no lock, and no thread waited in it for another one."
    );
    assert_eq!(summary.findings[1].weight, Weight::Note);
    assert!(!summary.to_text().contains("GIL"));
}

#[test]
fn pauses_are_told_with_the_thread_that_made_them() {
    let pauses: Vec<(u64, u64)> = (1..=50).map(|i| (i * 10 * MS, i * 10 * MS + 4 * MS)).collect();
    let threads = vec![
        computing("worker 1", &often(PAUSE, 4 * MS)),
        computing("worker 2", &often(PAUSE, 4 * MS)),
        collecting("collector", &pauses),
    ];
    let recording = recording(threads, &[]);
    let summary = summary(&recording);
    assert_eq!(summary.violations, 0);
    let [_, verdict, cause, ..] = summary.findings.as_slice() else { panic!("{:?}", summary.findings) };
    assert_eq!(verdict.kind, FindingKind::Waits);
    assert!(
        verdict.text.starts_with(
            "Waiting in the interpreter, which has no lock, slows this program down clearly: `worker *` (2 threads) lost \
             20% of their active time in 100 waits"
        ),
        "{}",
        verdict.text
    );
    assert_eq!((cause.kind, cause.weight), (FindingKind::StopTheWorld, Weight::Problem));
    assert_eq!(cause.group.as_deref(), Some("collector"));
    let expected = "Stop-the-world pauses stopped threads 100 times in 50 pauses, for 400 ms in all (p50 4.00 ms, p99 4.00 \
                    ms, longest 4.00 ms; 18% of their active time), 100% of that behind `collector`, mostly to collect \
                    garbage.";
    assert_eq!(cause.text, expected);
    assert!(cause.advice.as_deref().is_some_and(|advice| advice.contains("gc.collect()")));
    let [lock] = summary.locks.as_slice() else { panic!("{:?}", summary.locks) };
    assert_eq!((lock.kind, lock.waits.count, lock.holds), (LockKind::StopTheWorld, 100, 50));
    assert!(!kinds(&summary).contains(&FindingKind::Garbage), "{:?}", summary.findings);
    assert_eq!(summary.threads[0].times.waiting, 200 * MS);
    assert_eq!(summary.threads[0].times.off_lock, 800 * MS);
}

#[test]
fn waits_for_objects_are_told_with_their_type() {
    let worker = |name| computing(name, &often(DICT, 3 * MS));
    let summary = summary(&recording(vec![worker("worker 1"), worker("worker 2")], &[]));
    assert_eq!(summary.violations, 0);
    assert_eq!(summary.findings[1].kind, FindingKind::Waits);
    let cause = &summary.findings[2];
    assert_eq!((cause.kind, cause.weight), (FindingKind::SharedObjects, Weight::Problem));
    assert!(
        cause.text.starts_with("Threads waited 100 times for 300 ms in all for the locks of `dict` objects")
    );
    assert_eq!(summary.locks[0].kind, LockKind::Objects);
    let text = summary.to_text();
    assert!(!text.contains("Blame") && !text.contains("GIL"), "{text}");
}

#[test]
fn a_little_waiting_is_a_note() {
    let threads = vec![computing("a", &often(DICT, MS / 2)), computing("b", &[])];
    let summary = summary(&recording(threads, &[]));
    assert_eq!(summary.findings[1].kind, FindingKind::Unused);
    assert!(
        summary.findings[1].text.starts_with(
            "This interpreter has no lock, and waiting in it is not what slows this program down: its threads lost 1.2%"
        ),
        "{}",
        summary.findings[1].text
    );
    let cause = &summary.findings[2];
    assert_eq!((cause.kind, cause.weight, &cause.advice), (FindingKind::SharedObjects, Weight::Note, &None));
}

#[test]
fn what_is_not_seen_is_said() {
    let summary = summary(&recording(vec![computing("a", &[])], &[("waits_obstacle", "that is forbidden")]));
    assert!(summary.findings[0].text.ends_with("are not seen, because that is forbidden."));
    assert_eq!(summary.findings[1].text, "No thread used an interpreter lock during this recording.");
}

/// In the middle of a wait, before, and behind it.
#[test]
fn parts_of_a_recording_keep_the_waits_in_them() {
    let whole = || recording(vec![computing("a", &[(DICT, 100 * MS, 300 * MS)]), computing("b", &[])], &[]);
    for (from, to, waited) in
        [(0, 1_000, 200), (200, 1_000, 100), (0, 200, 100), (150, 250, 100), (400, 500, 0)]
    {
        let part = whole().cut(from * MS..to * MS, |_| true);
        let summary = summary(&part);
        assert_eq!(summary.threads[0].times.waiting, waited * MS, "{from} {to}");
        assert_eq!(summary.violations, 0, "{from} {to}");
    }
    let part = whole().cut(0..1_000 * MS, |name| name == "b");
    assert_eq!(summary(&part).violations, 0);
}

/// A thread that waits for a lock of the program's own spins, too.
#[test]
fn spinning_is_told_and_not_judged() {
    let mut recording = recording(vec![computing("a", &often(3, 15 * MS / 2)), computing("b", &[])], &[]);
    recording.locks.insert(3, Lock::SPINNING.to_owned());
    let summary = summary(&recording);
    assert_eq!(kinds(&summary)[..3], [FindingKind::Estimate, FindingKind::Unused, FindingKind::Spinning]);
    assert!(summary.findings[2].text.starts_with("Threads tried 50 times for 375 ms in all (p50 7.50 ms, "));
    assert_eq!(summary.findings[2].weight, Weight::Note);
    assert_eq!(summary.contended.count, 0);
}
