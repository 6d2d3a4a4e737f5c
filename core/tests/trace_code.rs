//! The code that others waited for: recordings whose truth is known, and random ones against a slow, obvious
//! calculation.

mod simulate;

use std::collections::BTreeMap;

use offlock_core::trace::{
    CodeChanges, Comparison, Format, Kind, Moment, RecordedFrame, RecordedFunction, RecordedThread,
    Recording, Stand, Summary, Timeline, blamed_pieces,
};
use proptest::prelude::*;
use serde_json::Value;
use simulate::{Interpreter, LOCK, Script, Step, ms, simulate};

const PARSE: u32 = 2;
const SEND: u32 = 3;
const DEEP: u32 = 5;

/// Frames: main at 3 calls parse at 41 (stack 2) or send at 7 (stack 3); 90 frames were left out above parse
/// at 42.
fn with_code(mut recording: Recording) -> Recording {
    let function = |name: &str, line| RecordedFunction { name: name.into(), file: 1, line };
    let code = &mut recording.code;
    code.files = BTreeMap::from([(1, "/srv/app.py".into())]);
    code.functions =
        BTreeMap::from([(1, function("main", 1)), (2, function("App.parse", 40)), (3, function("send", 5))]);
    let frame = |caller, function, line| RecordedFrame { caller, function, line };
    code.frames = BTreeMap::from([
        (1, frame(0, 1, 3)),
        (PARSE, frame(1, 2, 41)),
        (SEND, frame(1, 3, 7)),
        (4, frame(0, 0, 90)),
        (DEEP, frame(4, 2, 42)),
    ]);
    recording
}

fn sampled(mut recording: Recording, samples: &[(u32, u64, Kind, u32)]) -> Recording {
    for (thread, time, kind, argument) in samples.iter().copied() {
        let moment = Moment { time: recording.start + time, kind, argument, native: 1 };
        recording.threads.get_mut(&thread).expect("a thread").moments.push(moment);
    }
    recording.threads.values_mut().for_each(|thread| thread.moments.sort_by_key(|moment| moment.time));
    with_code(recording)
}

/// The holder has the lock from 0 to 8 ms and from 20 to 21 ms; `web 1` and `web 2` wait from 2 to 8 and 5 to
/// 9 ms, and `net` from 20 to 21 ms.
fn known() -> Recording {
    use Kind::*;
    let thread = |name: &str, stand, moments: &[(u64, Kind)]| RecordedThread {
        name: name.into(),
        stand,
        moments: moments
            .iter()
            .map(|(time, kind)| Moment { time: ms(*time), kind: *kind, argument: LOCK, native: 9 })
            .collect(),
    };
    let threads = BTreeMap::from([
        (1, thread("holder", Stand::Holds, &[(8, Released), (20, Acquired), (21, Released)])),
        (2, thread("web 1", Stand::Off, &[(2, Wants), (8, Acquired), (9, Released)])),
        (3, thread("web 2", Stand::Off, &[(5, Wants), (9, Acquired), (10, Released)])),
        (4, thread("net", Stand::Off, &[(20, Wants), (21, Acquired), (22, Released)])),
    ]);
    let locks = BTreeMap::from([(LOCK, "GIL".to_owned())]);
    Recording { threads, locks, end: ms(30), events: 11, ..Recording::default() }
}

/// The expected rows: function, line, lost, longest hold, samples, time by the name of the group.
type Row<'a> = (&'a str, u32, u64, u64, u64, &'a [(&'a str, u64)]);

#[test]
fn each_piece_of_a_hold_belongs_to_a_sample() {
    use Kind::{StackHolding as Holding, StackReleasing as Releasing};
    let (parse, send) = ((1, ms(3), Holding, PARSE), (1, ms(8), Releasing, SEND));
    let again = (1, ms(6), Holding, PARSE);
    let cases: [(&str, &[_], u64, &[Row<'_>]); 7] = [
        ("nothing", &[], ms(6 + 4 + 1), &[]),
        ("the release only", &[send], ms(2), &[("send", 7, ms(9), ms(8), 1, &[("web *", ms(9))])]),
        (
            "one sample, which stands for the rest, too",
            &[parse],
            ms(2),
            &[("App.parse", 41, ms(9), ms(8), 1, &[("web *", ms(9))])],
        ),
        (
            "samples and, soon after, the release",
            &[parse, again, send],
            ms(2),
            &[("App.parse", 41, ms(9), ms(8), 2, &[("web *", ms(9))])],
        ),
        (
            "a sample and, long after, the release",
            &[parse, send],
            ms(2),
            &[
                ("send", 7, ms(8), ms(5), 1, &[("web *", ms(8))]),
                ("App.parse", 41, ms(1), ms(3), 1, &[("web *", ms(1))]),
            ],
        ),
        (
            "frames left out",
            &[(1, ms(21), Releasing, DEEP)],
            ms(10),
            &[("App.parse", 42, ms(1), ms(1), 1, &[("net", ms(1))])],
        ),
        (
            "a sample outside of all holds, one of the waiting thread, an unknown stack",
            &[(1, ms(12), Holding, SEND), (2, ms(3), Kind::StackWaiting, SEND), (1, ms(8), Releasing, 77)],
            ms(11),
            &[],
        ),
    ];
    for (case, samples, unknown, rows) in cases {
        let recording = sampled(known(), samples);
        let timeline = Timeline::of(&recording);
        let summary = Summary::of(&recording, &timeline);
        let code = &summary.code;
        let found: Vec<_> = code
            .lines
            .iter()
            .map(|line| {
                let groups: Vec<_> = line
                    .groups
                    .iter()
                    .map(|(group, lost)| (summary.groups[*group].name.as_str(), *lost))
                    .collect();
                assert_eq!(line.file, "/srv/app.py");
                (line.function.as_str(), line.line, line.lost, line.longest_hold, line.samples, groups)
            })
            .collect();
        let expected = rows
            .iter()
            .map(|(f, line, lost, hold, count, groups)| (*f, *line, *lost, *hold, *count, groups.to_vec()));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{case}");
        assert_eq!(code.known + code.unknown, ms(11), "{case}");
        assert_eq!(code.unknown, unknown, "{case}");
    }
}

/// What others lost to each line, by function.
fn lost_by_function(recording: &Recording) -> BTreeMap<String, u64> {
    let code = Summary::of(recording, &Timeline::of(recording)).code;
    code.lines.into_iter().map(|line| (line.function, line.lost)).collect()
}

#[test]
fn between_two_samples_a_hold_is_cut_in_the_middle() {
    use Kind::StackHolding as Holding;
    let lost = |recording: &Recording| {
        let of = lost_by_function(recording);
        ["App.parse", "send"].map(|function| of.get(function).copied().unwrap_or(0))
    };
    let close = sampled(known(), &[(1, ms(3), Holding, PARSE), (1, ms(5), Holding, SEND)]);
    assert_eq!(lost(&close), [ms(2), ms(7)], "at 4 ms");
    let late = sampled(known(), &[(1, ms(2), Holding, PARSE), (1, ms(7), Holding, SEND)]);
    assert_eq!(lost(&late), [ms(1), ms(8)], "at 3 ms: then began what could not be interrupted");

    let mut ruby = sampled(known(), &[(1, ms(4), Holding, PARSE), (1, ms(6), Holding, SEND)]);
    ruby.about.push(("language".into(), "ruby".into()));
    assert_eq!(lost(&ruby), [ms(3), ms(6)], "at 5 ms: this is a function in Ruby");
    ruby.code.functions.get_mut(&2).expect("parse").line = 0;
    assert_eq!(lost(&ruby), [ms(2), ms(7)], "at 4 ms: a function in C is seen when it returns");
}

#[test]
fn where_nothing_hides_from_samples_the_last_one_stands_for_the_rest() {
    let mut recording =
        sampled(known(), &[(1, ms(3), Kind::StackHolding, PARSE), (1, ms(8), Kind::StackReleasing, SEND)]);
    assert_eq!(lost_by_function(&recording)["send"], ms(8));
    recording.about.push(("language".into(), "python".into()));
    assert_eq!(lost_by_function(&recording), BTreeMap::from([("App.parse".to_owned(), ms(9))]));
}

/// A thread that holds the lock for 0.2 ms every 0.3 ms, a hundred times, while `web` waits all the time. It always
/// releases the lock in `send`; in some holds it was seen in `parse`.
fn brief_holds(seen: impl Fn(u64) -> bool) -> Recording {
    use Kind::*;
    let (step, held) = (ms(3) / 10, ms(2) / 10);
    let moment = |time, kind| Moment { time, kind, argument: LOCK, native: 9 };
    let holds =
        (0..100).flat_map(|hold| [moment(hold * step, Acquired), moment(hold * step + held, Released)]);
    let threads = BTreeMap::from([
        (1, RecordedThread { name: "brief".into(), stand: Stand::Off, moments: holds.collect() }),
        (2, RecordedThread { name: "web".into(), stand: Stand::Off, moments: vec![moment(0, Wants)] }),
    ]);
    let locks = BTreeMap::from([(LOCK, "GIL".to_owned())]);
    let recording = Recording { threads, locks, end: ms(30), events: 201, ..Recording::default() };
    let mut samples = Vec::new();
    for hold in 0..100 {
        if seen(hold) {
            samples.push((1, hold * step + held / 2, StackHolding, PARSE));
        }
        samples.push((1, hold * step + held, StackReleasing, SEND));
    }
    sampled(recording, &samples)
}

#[test]
fn holds_too_short_for_samples_get_those_of_their_like() {
    let lost = |recording: &Recording| lost_by_function(recording).into_iter().collect::<Vec<_>>();
    assert_eq!(lost(&brief_holds(|hold| hold % 20 == 7)), [("App.parse".to_owned(), ms(20))]);
    assert_eq!(lost(&brief_holds(|_| false)), [("send".to_owned(), ms(20))], "nothing better is known");

    // The samples of another thread say it, too, but not those of a long hold that ends in the same place.
    let mut other = brief_holds(|_| false);
    other.threads.insert(3, brief_holds(|hold| hold % 20 == 7).threads.remove(&1).expect("brief"));
    other.threads.get_mut(&3).expect("there").moments.iter_mut().for_each(|moment| moment.time += ms(40));
    other.end = ms(80);
    // `web` waits for both, and the first thread for the other one, as it yielded.
    assert_eq!(lost(&other), [("App.parse".to_owned(), ms(60))]);
    let mut long = brief_holds(|_| false);
    let hold =
        [(40, Kind::Acquired, LOCK), (50, Kind::StackHolding, PARSE), (60, Kind::StackReleasing, SEND)];
    let hold = hold.into_iter().chain([(60, Kind::Released, LOCK)]);
    let moments = hold.map(|(time, kind, argument)| Moment { time: ms(time), kind, argument, native: 9 });
    long.threads.get_mut(&1).expect("brief").moments.extend(moments);
    long.end = ms(80);
    assert_eq!(lost_by_function(&long)["send"], ms(20 + 10));
}

#[test]
fn the_summary_names_the_lines() {
    let samples = [(1, ms(3), Kind::StackHolding, PARSE), (1, ms(8), Kind::StackReleasing, SEND)];
    let recording = sampled(known(), &samples);
    let text = Summary::of(&recording, &Timeline::of(&recording)).to_text();
    for expected in [
        "Code that others waited for",
        "send       8.00 ms (89%)       5.00 ms  web *   /srv/app.py:7",
        "18% of the waiting was behind holds too short for a stack",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let silent = known();
    let text = Summary::of(&silent, &Timeline::of(&silent)).to_text();
    assert!(!text.contains("Code that others"), "{text}");
}

#[test]
fn code_that_is_evaluated_again_is_one_line() {
    let samples = [(1, ms(3), Kind::StackHolding, PARSE), (1, ms(21), Kind::StackReleasing, SEND)];
    let mut recording = sampled(known(), &samples);
    let parse = recording.code.functions[&2].clone();
    recording.code.functions.insert(3, RecordedFunction { line: 90, ..parse });
    recording.code.frames.get_mut(&SEND).expect("send").line = 41;
    let code = Summary::of(&recording, &Timeline::of(&recording)).code;
    let rows: Vec<_> =
        code.lines.iter().map(|line| (&*line.function, line.line, line.lost, line.samples)).collect();
    assert_eq!(rows, [("App.parse", 41, ms(10), 2)]);
}

#[test]
fn a_look_at_some_stacks_leaves_the_others_out() {
    let samples = [(1, ms(3), Kind::StackHolding, PARSE), (1, ms(21), Kind::StackReleasing, SEND)];
    let mut recording = sampled(known(), &samples);
    let stacks = |parts: &[&str]| {
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        recording.code.stacks_with(&parts)
    };
    assert_eq!(stacks(&["main"]), [1, PARSE, SEND].into());
    assert_eq!(stacks(&["end", "nowhere"]), [SEND].into());
    assert_eq!(stacks(&["nowhere"]), [].into());
    recording.looked_at = Some(stacks(&["send"]));
    let code = Summary::of(&recording, &Timeline::of(&recording)).code;
    assert_eq!(code.lines.iter().map(|line| &*line.function).collect::<Vec<_>>(), ["send"]);
    assert_eq!((code.known, code.unknown), (ms(10), ms(1)));
    assert_eq!(
        exported(Format::Collapsed, &recording),
        "main (/srv/app.py:3);send (/srv/app.py:7) 1000000\n"
    );
}

#[test]
fn the_waits_of_offlocks_own_threads_are_no_loss() {
    let mut recording = known();
    let mut lost = || {
        let summary = Summary::of(&recording, &Timeline::of(&recording));
        recording.threads.get_mut(&4).expect("net").name = "offlock watch".into();
        summary.threads.iter().map(|thread| thread.times.waiting).sum::<u64>()
    };
    assert_eq!([lost(), lost()], [ms(6 + 4 + 1), ms(6 + 4)]);
}

#[test]
fn collapsed_stacks_count_what_others_lost() {
    let samples = [
        (1, ms(3), Kind::StackHolding, PARSE),
        (1, ms(8), Kind::StackReleasing, SEND),
        (1, ms(21), Kind::StackReleasing, DEEP),
    ];
    let mut recording = sampled(known(), &samples);
    recording.code.functions.get_mut(&3).expect("send").name = "send;\n".into();
    assert_eq!(
        exported(Format::Collapsed, &recording),
        "main (/srv/app.py:3);App.parse (/srv/app.py:41) 1000000\n\
         main (/srv/app.py:3);send,  (/srv/app.py:7) 8000000\n\
         … 90 frames left out;App.parse (/srv/app.py:42) 1000000\n"
    );
}

fn exported(format: Format, recording: &Recording) -> String {
    let mut out = Vec::new();
    format.write(recording, &Timeline::of(recording), &mut out).expect("memory");
    String::from_utf8(out).expect("text")
}

fn json(format: Format, recording: &Recording) -> Value {
    serde_json::from_str(&exported(format, recording)).expect("JSON")
}

#[test]
fn waits_name_the_line_that_held_the_lock() {
    let samples = [(1, ms(3), Kind::StackHolding, PARSE), (1, ms(8), Kind::StackReleasing, SEND)];
    let recording = sampled(known(), &samples);
    // `web 1` waited 1 ms for `parse` and 5 ms for `send`; `web 2` only for `send`.
    let events = json(Format::GvlTracing, &recording);
    let code = |event: &Value| event["args"]["code"].as_str().map(str::to_owned);
    let events = events.as_array().expect("a list");
    assert_eq!(events.iter().filter_map(code).collect::<Vec<_>>(), ["send (/srv/app.py:7)"; 2]);
    let profile = json(Format::Firefox, &recording);
    let markers = profile["threads"][1]["markers"]["data"].as_array().expect("a list");
    let codes: Vec<&str> = markers.iter().filter_map(|marker| marker["code"].as_str()).collect();
    assert_eq!(codes, ["send (/srv/app.py:7)"]);
}

#[test]
fn json_has_the_stacks() {
    let samples = [(1, ms(3), Kind::StackHolding, PARSE), (1, ms(8), Kind::StackReleasing, SEND)];
    let export = json(Format::Json, &sampled(known(), &samples));
    let frame = |function: &str, line: u32, caller: Option<u32>| serde_json::json!({"function": function, "file": "/srv/app.py", "line": line, "caller": caller});
    let frames =
        [frame("main", 3, None), frame("App.parse", 41, Some(0)), frame("send", 7, Some(0))].to_vec();
    assert_eq!(export["frames"], Value::Array(frames));
    let sample = |start, end, lost, frame: u32| {
        let times = [start, end, lost].map(ms);
        serde_json::json!({
            "lock": LOCK, "thread": 0, "start": times[0], "end": times[1], "lost": times[2], "frame": frame,
        })
    };
    assert_eq!(export["samples"], Value::Array([sample(0, 3, 1, 1), sample(3, 8, 8, 2)].to_vec()));
    assert!(export["code"]["known"].is_u64(), "the summary is there, too");
}

fn compared(before: &Recording, after: &Recording) -> (CodeChanges, String) {
    let [before, after] = [before, after].map(|each| Summary::of(each, &Timeline::of(each)));
    let comparison = Comparison::of(&before, &after);
    let json: Value = serde_json::from_str(&comparison.to_json()).expect("JSON");
    assert_eq!(json["code"]["functions"].as_array().expect("a list").len(), comparison.code.functions.len());
    let text = comparison.to_text();
    (comparison.code, text)
}

#[test]
fn functions_are_compared_by_what_was_lost_to_them() {
    use Kind::{StackHolding as Holding, StackReleasing as Releasing};
    let before = sampled(known(), &[(1, ms(3), Holding, PARSE), (1, ms(8), Releasing, SEND)]);
    let after = sampled(known(), &[(1, ms(6), Holding, PARSE), (1, ms(21), Releasing, DEEP)]);
    let (code, text) = compared(&before, &after);
    let changes: Vec<_> =
        code.functions.iter().map(|each| (&*each.function, each.before, each.after, &*each.change)).collect();
    assert_eq!(
        changes,
        [("App.parse", ms(1), ms(10), "10 times as much, worse"), ("send", ms(8), 0, "gone, better")]
    );
    assert!(text.contains("App.parse      1.00 ms  10.0 ms  10 times as much, worse  /srv/app.py"), "{text}");

    let (code, text) = compared(&after, &after);
    assert_eq!(code, CodeChanges::default());
    assert!(!text.contains("Code that others"), "{text}");
}

#[test]
fn code_is_compared_only_if_both_recordings_have_stacks() {
    let with = sampled(known(), &[(1, ms(8), Kind::StackReleasing, SEND)]);
    let (code, text) = compared(&with, &known());
    assert_eq!((code.functions.len(), code.without_stacks), (0, vec!["after"]));
    assert!(text.ends_with("\nThe trace from after has no stacks, so the code is not compared.\n"), "{text}");
    assert!(compared(&known(), &with).1.contains("The trace from before has no stacks"));

    let (code, text) = compared(&known(), &known());
    assert_eq!(code.without_stacks, ["before", "after"]);
    assert!(!text.contains("no stacks"), "nobody has asked for stacks: {text}");

    // Stacks were recorded, but there was nothing to see any more.
    let mut quick = known();
    quick.about.push(("stacks".into(), "1000000".into()));
    assert_eq!(compared(&with, &quick).0.functions[0].change, "gone, better");
}

/// Integrates over the waits of all threads, one by one.
fn lost_slowly(timeline: &Timeline, lock: u32, start: u64, end: u64) -> u64 {
    let waits = timeline.threads.iter().flat_map(|life| &life.waits).filter(|wait| wait.lock == lock);
    waits.map(|wait| wait.end.min(end).saturating_sub(wait.start.max(start))).sum()
}

fn step() -> impl Strategy<Value = Step> {
    let length = 1_000..ms(40);
    prop_oneof![
        length.clone().prop_map(Step::Hold),
        length.clone().prop_map(Step::Idle),
        length.prop_map(Step::OffLock),
    ]
}

/// A simulated program of which there is a sample every 7 ms of a hold and at each release. A thread has a function of
/// its own, and is on line 1 or 2 of it by turns, or on line 3 as it releases the lock.
fn random(scripts: Vec<Vec<Step>>) -> (Recording, Timeline) {
    let interpreter = Interpreter { time_slice: ms(10), hand_over: 3_000, origin: 5_000_000 };
    let scripts = scripts.into_iter().enumerate().map(|(i, steps)| Script::new(&format!("t {i}"), steps));
    let (mut recording, _) = simulate(interpreter, &scripts.collect::<Vec<_>>());
    let bare = Timeline::of(&recording);
    let mut samples = Vec::new();
    for (index, life) in bare.threads.iter().enumerate() {
        let function = index as u32 + 1;
        let stack = |line: u32| function + line * 100;
        recording
            .code
            .functions
            .insert(function, RecordedFunction { name: life.name.clone(), file: 0, line: 0 });
        let frame = |line| (stack(line), RecordedFrame { caller: 0, function, line });
        recording.code.frames.extend((1..=3).map(frame));
        for hold in life.holds.iter().filter(|hold| hold.length() > 0) {
            let during =
                (hold.start..hold.end).step_by(ms(7) as usize).skip(1).zip([1, 2].into_iter().cycle());
            samples.extend(during.map(|(time, line)| (life.id, time, Kind::StackHolding, stack(line))));
            samples.push((life.id, hold.end, Kind::StackReleasing, stack(3)));
        }
    }
    let code = recording.code.clone();
    (Recording { code, ..sampled(recording, &samples) }, bare)
}

/// What others lost to each line of each function.
fn lost_by_line(recording: &Recording) -> BTreeMap<(String, u32), u64> {
    let code = Summary::of(recording, &Timeline::of(recording)).code;
    code.lines.into_iter().map(|line| ((line.function, line.line), line.lost)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blame_agrees_with_a_slow_calculation(
        scripts in prop::collection::vec(prop::collection::vec(step(), 1..8), 1..6),
    ) {
        let (recording, bare) = random(scripts);
        let timeline = Timeline::of(&recording);
        prop_assert_eq!(&timeline, &bare);

        let pieces = blamed_pieces(&recording, &timeline);
        for piece in &pieces {
            prop_assert_eq!(piece.lost, lost_slowly(&timeline, piece.lock, piece.start, piece.end));
            prop_assert_eq!(piece.stack as usize % 100, piece.thread + 1);
        }
        let code = Summary::of(&recording, &timeline).code;
        prop_assert_eq!((code.known, code.unknown), (pieces.iter().map(|piece| piece.lost).sum(), 0));
        prop_assert_eq!(code.lines.iter().map(|line| line.lost).sum::<u64>(), code.known);
        for line in &code.lines {
            let of_thread = timeline.threads.iter().position(|life| life.name == line.function).expect("known");
            let stack = of_thread as u32 + 1 + line.line * 100;
            let lost: u64 = pieces.iter().filter(|piece| piece.stack == stack).map(|piece| piece.lost).sum();
            prop_assert_eq!(line.lost, lost);
            prop_assert_eq!(line.groups.iter().map(|(_, lost)| lost).sum::<u64>(), lost);
        }
    }

    /// What is lost before a time and what is lost after it are, line by line, what is lost.
    #[test]
    fn a_cut_divides_the_blame(
        scripts in prop::collection::vec(prop::collection::vec(step(), 1..8), 1..6),
        at in 0.0..1.0,
    ) {
        let (recording, _) = random(scripts);
        let at = ((recording.end - recording.start) as f64 * at) as u64;
        let mut sum = BTreeMap::new();
        for period in [0..at, at..u64::MAX] {
            for (line, lost) in lost_by_line(&recording.clone().cut(period, |_| true)) {
                *sum.entry(line).or_default() += lost;
            }
        }
        prop_assert_eq!(sum, lost_by_line(&recording));
    }

    /// The threads that are left out keep the blame for what the others waited.
    #[test]
    fn a_cut_to_threads_shows_what_these_waited_for(
        scripts in prop::collection::vec(prop::collection::vec(step(), 1..8), 1..6),
    ) {
        let (recording, timeline) = random(scripts);
        let mut expected = BTreeMap::new();
        for piece in blamed_pieces(&recording, &timeline) {
            let first = Timeline { threads: vec![timeline.threads[0].clone()], ..Timeline::default() };
            let lost = lost_slowly(&first, piece.lock, piece.start, piece.end);
            if lost > 0 {
                let function = timeline.threads[piece.thread].name.clone();
                *expected.entry((function, piece.stack / 100)).or_default() += lost;
            }
        }
        prop_assert_eq!(lost_by_line(&recording.cut(0..u64::MAX, |name| name == "t 0")), expected);
    }

    /// What the exports count is what was lost, and the parts of holds are where they were.
    #[test]
    fn exports_add_up(scripts in prop::collection::vec(prop::collection::vec(step(), 1..8), 1..6)) {
        let (recording, timeline) = random(scripts);
        let pieces = blamed_pieces(&recording, &timeline);
        let known: u64 = pieces.iter().map(|piece| piece.lost).sum();
        let numbers = |list: &Value| -> Vec<u64> {
            list.as_array().expect("a list").iter().map(|number| number.as_u64().expect("a number")).collect()
        };

        let profiles = json(Format::Speedscope, &recording)["profiles"].take();
        let [lost, held @ ..] = &profiles.as_array().expect("a list")[..] else { panic!("no profile") };
        prop_assert_eq!(numbers(&lost["weights"]).iter().sum::<u64>(), known);
        for profile in held {
            let name = profile["name"].as_str().expect("a name");
            let thread = timeline.threads.iter().position(|life| name.starts_with(&format!("{}:", life.name)));
            let (mut open, mut last) = (Vec::new(), 0);
            let mut spans = Vec::new();
            for event in profile["events"].as_array().expect("a list") {
                let (at, frame) = (event["at"].as_u64().expect("a time"), &event["frame"]);
                prop_assert!(last <= at);
                last = at;
                if event["type"] == "O" {
                    open.push((frame, at));
                } else {
                    let (opened, since) = open.pop().expect("one that was opened");
                    prop_assert_eq!(opened, frame);
                    spans.push((since, at));
                }
            }
            prop_assert!(open.is_empty());
            // Stacks have one frame here. Equal ones without a gap between them are one.
            let mut expected: Vec<(u64, u64, u32, u64)> = Vec::new();
            for piece in pieces.iter().filter(|piece| Some(piece.thread) == thread) {
                match expected.last_mut() {
                    Some((_, end, stack, hold)) if (*stack, *hold) == (piece.stack, piece.hold) => *end = piece.end,
                    _ => expected.push((piece.start, piece.end, piece.stack, piece.hold)),
                }
            }
            prop_assert_eq!(spans, expected.iter().map(|each| (each.0, each.1)).collect::<Vec<_>>());
        }

        let threads = json(Format::Firefox, &recording)["threads"].take();
        for (index, thread) in threads.as_array().expect("a list").iter().enumerate() {
            let weights = thread["samples"]["weight"].as_array().expect("a list");
            let sum: f64 = weights.iter().map(|weight| weight.as_f64().expect("a number")).sum();
            let lost: u64 = pieces.iter().filter(|piece| piece.thread == index).map(|piece| piece.lost).sum();
            prop_assert!((sum - lost as f64 / 1e6).abs() < 1e-6, "{sum} {lost}");
        }

        let samples = json(Format::Json, &recording)["samples"].take();
        let lost = samples.as_array().expect("a list").iter().map(|sample| sample["lost"].as_u64().expect("a number"));
        prop_assert_eq!(lost.sum::<u64>(), known);
    }
}
