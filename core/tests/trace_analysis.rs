//! From a recording to states, blame and numbers: scripted scenarios whose shape is known, and
//! random ones against slow, obvious calculations.

mod simulate;

use std::collections::BTreeMap;

use offlock_core::Task;
use offlock_core::trace::{
    Behind, Blame, FindingKind, Flaw, Kind, Life, LockLife, MachineUsed, MarkBlame, Moment, RecordedThread,
    Recording, Stand, State, Strength, Summary, Timeline, Used, Weight, pack_size,
};
use proptest::prelude::*;
use simulate::{Interpreter, LOCK, Script, Step, Truth, ms, simulate};

const RUBY: Interpreter = Interpreter { time_slice: 100_000_000, hand_over: 20_000, origin: 7_000_000_000 };

fn analyse(scripts: &[Script]) -> (Recording, Timeline, Summary) {
    let (recording, _) = simulate(RUBY, scripts);
    let timeline = Timeline::of(&recording);
    let summary = Summary::of(&recording, &timeline);
    assert_eq!(summary.violations, 0);
    (recording, timeline, summary)
}

fn about(value: u64, expected: u64) -> bool {
    value.abs_diff(expected) <= expected / 50 + 100_000
}

/// The words of a text, whatever its lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_thread_that_sleeps_with_the_lock_runs() {
    let (.., summary) = analyse(&[Script::new("holder", [Step::Hold(ms(300))])]);
    let thread = &summary.threads[0];
    assert!(about(thread.times.running, ms(300)), "{thread:?}");
    assert_eq!((thread.acquisitions, thread.releases), (1, 1));
    assert!(about(thread.longest_hold, ms(300)));
    assert!(about((summary.locks[0].utilization * 1e9) as u64, 1_000_000_000));
}

#[test]
fn a_lock_that_was_not_to_be_there_is_a_problem() {
    let (mut recording, _) = simulate(RUBY, &[Script::new("holder", [Step::Hold(ms(300))])]);
    recording.about.push(("lock_enabled".into(), "an import asks for it".into()));
    let summary = Summary::of(&recording, &Timeline::of(&recording));
    let found = summary.findings.iter().find(|finding| finding.kind == FindingKind::LockEnabled);
    let found = found.expect("it is about the interpreter");
    assert_eq!(found.weight, Weight::Problem);
    assert!(found.text.ends_with(": an import asks for it."), "{}", found.text);
}

#[test]
fn a_thread_that_sleeps_without_the_lock_sleeps() {
    let steps =
        [Step::Hold(ms(1)), Step::Sleep(ms(200)), Step::Hold(ms(1)), Step::Idle(ms(100)), Step::Hold(1)];
    let (.., summary) = analyse(&[Script::new("sleeper", steps)]);
    let times = summary.threads[0].times;
    assert_eq!((times.sleep, times.idle), (ms(200), ms(100)));
    assert!(summary.findings.iter().all(|finding| finding.weight == Weight::Note));
    assert!(summary.findings[0].text.contains("not what slows this program down"), "{:?}", summary.findings);
}

#[test]
fn two_busy_threads_share_the_lock_and_wait_for_each_other() {
    let busy = |name| Script::new(name, [Step::Hold(ms(1_000))]);
    let (.., summary) = analyse(&[busy("a"), busy("b")]);
    for thread in &summary.threads {
        assert!(about(thread.times.running, ms(1_000)));
        assert!(about(thread.times.waiting, ms(1_000)) || about(thread.times.waiting, ms(900)), "{thread:?}");
        assert!(about(thread.longest_hold, ms(100)));
        assert!(about(thread.waits.max, ms(100)));
    }
    let lock = &summary.locks[0];
    assert!(lock.utilization > 0.99 && (0.9..1.1).contains(&lock.mean_waiters));
    assert!((0.99..1.01).contains(&summary.useful_parallelism));
    for row in &lock.blame {
        assert_eq!(row.by.len(), 1);
        assert_eq!(row.by[0].0, 1 - row.thread);
        assert!(about(row.by[0].1, row.waited));
    }
    assert!(summary.findings.iter().any(|finding| finding.text.starts_with("The lock was held")));
}

#[test]
fn in_a_convoy_a_network_thread_pays_a_time_slice_for_each_input() {
    let request = [Step::Idle(ms(1)), Step::Hold(100_000)];
    let net = Script::new("net", request.into_iter().cycle().take(40));
    let counter = Script::new("counter", [Step::Hold(ms(2_500))]);
    let (.., summary) = analyse(&[net, counter]);
    let net = &summary.threads[0];
    assert!(about(net.waits.p50, ms(99)), "{net:?}");
    assert!(net.times.waiting > 10 * (net.times.running + net.times.idle));
    let row = &summary.locks[0].blame[0];
    assert_eq!((row.thread, row.by[0].0), (0, 1));
    assert!(row.by[0].1 * 100 > row.waited * 98);
    let text = words(&summary.to_text());
    assert!(text.contains("`counter` held the lock for 100% of the time in which `net` waited"), "{text}");
    assert!(text.contains("`net` needed the lock only briefly (100 µs at a time) but waited"), "{text}");
    assert!(text.contains("another process or a Ractor"), "{text}");
}

/// Threads that want the lock all the time, `hold` nanoseconds each time, while each hand-over takes
/// `hand_over`: what is said of a lock that nobody holds.
#[test]
fn a_free_lock_is_blamed_on_hand_overs_only_where_there_are_many() {
    const SWITCH_LESS: &str = "Switch less";
    const NO_PROCESSOR: &str = "Give the program more processors";
    for (hand_over, hold, rounds, expected) in [
        (50_000, 20_000, 2_000, Some(SWITCH_LESS)),
        (500_000, 100_000, 500, Some(SWITCH_LESS)),
        (900_000, 100_000, 500, Some(SWITCH_LESS)),
        (900_000, 400_000, 30, Some(NO_PROCESSOR)),
        (ms(5), ms(1), 100, Some(NO_PROCESSOR)),
        (ms(40), ms(10), 20, Some(NO_PROCESSOR)),
        (ms(900), ms(20), 3, Some(NO_PROCESSOR)),
        (900_000, ms(20), 50, None),
        (1_000, ms(1), 100, None),
    ] {
        let interpreter = Interpreter { hand_over, ..RUBY };
        let steps = [Step::Idle(1_000), Step::Hold(hold)];
        let thread = |i| Script::new(&format!("t{i}"), steps.into_iter().cycle().take(2 * rounds));
        let (recording, _) = simulate(interpreter, &(0..3).map(thread).collect::<Vec<_>>());
        let summary = Summary::of(&recording, &Timeline::of(&recording));
        let advice = |phrase: &str| {
            summary
                .findings
                .iter()
                .find(|f| f.advice.as_ref().is_some_and(|advice| advice.starts_with(phrase)))
        };
        for phrase in [SWITCH_LESS, NO_PROCESSOR] {
            let found = advice(phrase);
            assert_eq!(
                found.is_some(),
                expected == Some(phrase),
                "{hand_over} {hold}: {:#?}",
                summary.findings
            );
        }
    }
}

/// A server with a pool, one of whose requests computes: mostly idle, but what it does suffers.
#[test]
fn a_pool_that_takes_turns_is_the_holder_and_idle_time_hides_nothing() {
    let report = [Step::Idle(ms(900)), Step::Hold(ms(300))];
    let hello = [Step::Idle(ms(20)), Step::Hold(200_000)];
    let pool = (1..=3).map(|i| Script::new(&format!("web tp 00{i}"), report.into_iter().cycle().take(20)));
    let reactor = Script::new("reactor", hello.into_iter().cycle().take(600));
    let idle = (1..=40).map(|i| Script::new(&format!("idle {i}"), [Step::Idle(ms(12_000)), Step::Hold(1)]));
    let (.., summary) = analyse(&pool.chain([reactor]).chain(idle).collect::<Vec<_>>());
    let names: Vec<&str> = summary.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let pool = summary.groups.iter().find(|group| group.name == "web tp *").unwrap();
    assert_eq!(pool.threads.len(), 3);
    assert!(summary.times.waiting * 10 < summary.times.total(), "idle threads dilute a share of all time");
    let findings: Vec<&str> = summary.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert!(findings[0].starts_with("Waiting for the lock slows this program down"), "{findings:?}");
    assert!(
        findings.iter().any(|text| text.starts_with("`web tp *` (3 threads) held the lock for")),
        "{findings:?}"
    );
}

/// The threads of a pool in a mark, and one beside them in another.
#[test]
fn the_verdict_and_its_cause_name_the_marks() {
    let report = [Step::Idle(ms(100)), Step::Hold(ms(300))];
    let hello = [Step::Idle(ms(20)), Step::Hold(200_000)];
    let pool = (1..=3).map(|i| Script::new(&format!("web tp 00{i}"), report.into_iter().cycle().take(20)));
    let reactor = Script::new("reactor", hello.into_iter().cycle().take(100));
    let (mut recording, _) = simulate(RUBY, &pool.chain([reactor]).collect::<Vec<_>>());
    for thread in recording.threads.values_mut() {
        let name = if thread.name == "reactor" { 8 } else { 9 };
        let begin = Moment { time: recording.start, kind: Kind::MarkBegin, argument: name, native: 0 };
        thread.moments.insert(0, begin);
    }
    recording.names.extend([(8, "GET /hello".into()), (9, "GET /report".into())]);
    let summary = Summary::of(&recording, &Timeline::of(&recording));
    let found = |kind| summary.findings.iter().find(|finding| finding.kind == kind).expect("found");
    let (verdict, cause) = (found(FindingKind::Lock), found(FindingKind::MainHolder));
    assert_eq!((verdict.strength, verdict.mark.as_deref()), (Some(Strength::Strong), Some("GET /hello")));
    assert_eq!((cause.group.as_deref(), cause.mark.as_deref()), (Some("web tp *"), Some("GET /report")));
    assert!(
        cause.text.starts_with("`GET /report` of `web tp *` (3 threads) held the lock for"),
        "{}",
        cause.text
    );
}

#[test]
fn a_hold_for_which_nobody_waited_is_no_cause() {
    let boot = [Step::Hold(ms(800)), Step::Idle(ms(20))];
    let compute = [Step::Hold(ms(40)), Step::Idle(ms(1))].into_iter().cycle().take(40);
    let hello = [Step::Idle(ms(5)), Step::Hold(200_000)].into_iter().cycle().take(200);
    let web = [Step::Idle(ms(810))].into_iter().chain(hello);
    let (.., summary) =
        analyse(&[Script::new("worker", boot.into_iter().chain(compute)), Script::new("web", web)]);
    assert!(about(summary.threads[0].longest_hold, ms(800)), "{:?}", summary.threads[0]);
    let cause = summary.findings.iter().find(|finding| finding.kind == FindingKind::MainHolder);
    let text = &cause.expect("the web thread waited for the worker").text;
    let longest = text.split("the longest hold kept them waiting for ").nth(1).expect("the time");
    assert!(longest.starts_with("3") && longest.ends_with(" ms."), "{text}");
}

#[test]
fn the_typical_hold_is_that_of_half_of_the_time() {
    let steps = [Step::Hold(ms(10)), Step::Idle(1_000), Step::Hold(ms(30)), Step::Idle(1_000)];
    let short = [Step::Hold(10_000), Step::Idle(1_000)].into_iter().cycle().take(200);
    let (.., summary) = analyse(&[Script::new("alone", steps.into_iter().chain(short))]);
    assert!(about(summary.groups[0].typical_hold, ms(30)), "{:?}", summary.groups);
}

#[test]
fn uncontended_acquisitions_are_no_waits() {
    let steps = [Step::Idle(ms(1)), Step::Hold(1_000)];
    let (.., summary) = analyse(&[Script::new("alone", steps.into_iter().cycle().take(2_000))]);
    let thread = &summary.threads[0];
    assert_eq!((thread.contended.count, thread.contended.total), (0, 0));
    assert!(summary.findings[0].text.contains("lost 0% of their active time"), "{:?}", summary.findings);
}

#[test]
fn parallel_work_off_the_lock_is_visible() {
    let steps = [Step::Hold(ms(1)), Step::OffLock(ms(400)), Step::Hold(ms(1))];
    let threads: Vec<Script> = (0..4).map(|i| Script::new(&format!("zip-{i}"), steps)).collect();
    let (.., summary) = analyse(&threads);
    assert_eq!(summary.times.off_lock, 4 * ms(400));
    assert!(summary.useful_parallelism > 3.9);
    let operation = &summary.operations[0];
    assert_eq!((operation.name.as_str(), operation.count, operation.bytes), ("deflate", 4, 4 * 4_096));
    assert_eq!(operation.times.off_lock, 4 * ms(400));
    assert!(summary.findings.iter().any(|f| f.text.starts_with("Operations off the lock (`deflate`)")));
}

#[test]
fn garbage_collection_holds_the_lock() {
    let steps = [Step::Hold(ms(50)), Step::Gc(ms(50)), Step::Hold(ms(10))];
    let other = [Step::Idle(ms(60)), Step::Hold(ms(1))];
    let (_, timeline, summary) = analyse(&[Script::new("main", steps), Script::new("other", other)]);
    assert_eq!(summary.threads[0].times.gc, ms(50));
    assert_eq!(timeline.threads[0].holds.len(), 2, "collecting does not break a hold, the time slice does");
    assert!(about(summary.threads[1].times.waiting, ms(40)), "{:?}", summary.threads[1]);
    assert!(summary.findings.iter().any(|f| f.text.starts_with("Garbage collection took")));
}

fn recording(threads: impl IntoIterator<Item = (u32, Stand, Vec<(u64, Kind, u32)>)>) -> Recording {
    let mut recording = Recording { end: 1_000, ..Recording::default() };
    recording.locks.insert(LOCK, "GIL".into());
    for (id, stand, moments) in threads {
        let moment = |(time, kind, argument)| Moment { time, kind, argument, native: id };
        let thread = RecordedThread {
            name: format!("t{id}"),
            stand,
            moments: moments.into_iter().map(moment).collect(),
        };
        recording.events += thread.moments.len() as u64;
        recording.threads.insert(id, thread);
    }
    recording
}

fn states(timeline: &Timeline, thread: usize) -> Vec<(State, u64, u64)> {
    timeline.threads[thread].states().map(|(slice, end)| (slice.state, slice.start, end)).collect()
}

#[test]
fn the_first_event_tells_what_was_before_it() {
    use Kind::*;
    use State::*;
    let timeline = Timeline::of(&recording([
        (1, Stand::Unknown, vec![(100, Wants, LOCK), (300, Acquired, LOCK)]),
        (2, Stand::Off, vec![(200, Acquired, LOCK), (250, Released, LOCK)]),
        (3, Stand::Unknown, vec![(150, Released, LOCK)]),
        (4, Stand::Holds, vec![]),
        (5, Stand::Wants, vec![(10, GcEnter, 0), (20, GcExit, 0)]),
        (6, Stand::Unknown, vec![]),
        (7, Stand::Unknown, vec![(400, ThreadStart, 0), (900, ThreadEnd, 0)]),
    ]));
    assert_eq!(states(&timeline, 0), [(Idle, 0, 100), (Waiting, 100, 300), (Running, 300, 1_000)]);
    assert_eq!(states(&timeline, 1), [(Waiting, 0, 200), (Running, 200, 250), (Idle, 250, 1_000)]);
    assert_eq!(states(&timeline, 2), [(Running, 0, 150), (Idle, 150, 1_000)]);
    assert_eq!(states(&timeline, 3), [(Running, 0, 1_000)]);
    assert_eq!(states(&timeline, 4), [(Waiting, 0, 1_000)]);
    assert_eq!(states(&timeline, 5), [(Idle, 0, 1_000)]);
    assert_eq!(states(&timeline, 6), [(Idle, 400, 900)]);
}

#[test]
fn two_holders_at_a_time_are_reported() {
    use Kind::*;
    let broken = recording([
        (1, Stand::Off, vec![(100, Acquired, LOCK), (300, Released, LOCK)]),
        (2, Stand::Off, vec![(290, Acquired, LOCK), (400, Released, LOCK), (410, Released, LOCK)]),
    ]);
    let timeline = Timeline::of(&broken);
    let overlap = timeline.overlaps[0];
    assert_eq!((overlap.first, overlap.second, overlap.start, overlap.end), (0, 1, 290, 300));
    assert_eq!(timeline.threads[1].oddities, 1, "a release by someone who does not hold");
    let summary = Summary::of(&broken, &timeline);
    assert_eq!(summary.violations, 2);
    assert_eq!(summary.findings[0].weight, Weight::Caveat);
}

#[test]
fn events_outside_the_recording_are_clipped() {
    use Kind::*;
    let mut early = recording([(
        1,
        Stand::Off,
        vec![(100, Wants, LOCK), (200, Acquired, LOCK), (2_000, Released, LOCK)],
    )]);
    early.start = 150;
    let timeline = Timeline::of(&early);
    assert_eq!(timeline.length, 850);
    assert_eq!(states(&timeline, 0), [(State::Waiting, 0, 50), (State::Running, 50, 850)]);
}

#[test]
fn marks_say_what_the_thread_did_meanwhile() {
    use Kind::*;
    let mut marked = recording([(
        1,
        Stand::Holds,
        vec![
            (100, MarkBegin, 9),
            (200, Released, LOCK),
            (250, MarkBegin, 9),
            (300, Wants, LOCK),
            (350, MarkEnd, 0),
            (400, Acquired, LOCK),
            (500, MarkEnd, 0),
        ],
    )]);
    marked.names.insert(9, "checkout".into());
    let summary = Summary::of(&marked, &Timeline::of(&marked));
    let mark = &summary.marks[0].span;
    assert_eq!((mark.name.as_str(), mark.count, mark.total), ("checkout", 2, 500));
    assert_eq!((mark.times.running, mark.times.idle, mark.times.waiting), (200, 150, 150));
}

/// One thread holds the lock in the mark `report` and, within it, `render`; a second one waits in `hello`,
/// and a third one outside of any mark.
#[test]
fn marks_say_what_others_waited_for() {
    use Kind::*;
    const REPORT: u32 = 7;
    const RENDER: u32 = 8;
    const HELLO: u32 = 9;
    let mut marked = recording([
        (
            1,
            Stand::Holds,
            vec![
                (100, MarkBegin, REPORT),
                (200, MarkBegin, RENDER),
                (400, MarkEnd, 0),
                (500, MarkEnd, 0),
                (600, Released, LOCK),
            ],
        ),
        (
            2,
            Stand::Off,
            vec![
                (140, MarkBegin, HELLO),
                (150, Wants, LOCK),
                (600, Acquired, LOCK),
                (650, MarkEnd, 0),
                (650, Released, LOCK),
            ],
        ),
        (3, Stand::Off, vec![(300, Wants, LOCK), (650, Acquired, LOCK), (651, Released, LOCK)]),
    ]);
    for (name, text) in [(REPORT, "report"), (RENDER, "render"), (HELLO, "hello")] {
        marked.names.insert(name, text.into());
    }
    let summary = Summary::of(&marked, &Timeline::of(&marked));
    let names: Vec<&str> = summary.marks.iter().map(|mark| mark.span.name.as_str()).collect();
    assert_eq!(names, ["hello", "report", "render"]);
    let [hello, report, render] = summary.marks.as_slice() else { unreachable!("three") };
    assert_eq!((report.held_wanted, report.inflicted, report.inflicted_on_others), (350, 550, 550));
    assert_eq!((render.held_wanted, render.inflicted, render.others_waited), (200, 300, 800));
    assert_eq!((hello.held_wanted, hello.inflicted, hello.others_waited), (50, 50, 350));
    assert_eq!((hello.contended.count, hello.contended.total, hello.losses.p50), (1, 450, 450));
    assert_eq!((hello.lengths.p99, hello.lost), (510, 450.0 / 500.0));
    assert_eq!((report.lengths.p50, report.losses.max, report.lost), (400, 0, 0.0));
    let behind = |mark, waited| Behind { group: 0, mark, waited };
    assert_eq!(hello.behind, [behind(Some(1), 350), behind(Some(2), 200), behind(None, 100)]);
    let blame =
        |mark, held, longest_hold, inflicted| MarkBlame { group: 0, mark, held, longest_hold, inflicted };
    assert_eq!(
        summary.locks[0].by_mark,
        [
            blame(Some(1), 350, 200, 550),
            blame(Some(2), 200, 200, 300),
            blame(None, 100, 100, 200),
            blame(Some(0), 50, 50, 50),
        ]
    );
}

#[test]
fn a_cut_recording_says_what_was_going_on_at_the_cut() {
    use Kind::*;
    const SLEEPS: u32 = 2 << 24;
    let whole = recording([
        // Holds the lock in a mark; collects garbage; sleeps.
        (
            1,
            Stand::Holds,
            vec![
                (50, MarkBegin, 9),
                (120, GcEnter, 0),
                (180, GcExit, 0),
                (300, Released, LOCK | SLEEPS),
                (800, MarkEnd, 0),
            ],
        ),
        // Waits from 100 on.
        (2, Stand::Off, vec![(100, Wants, LOCK), (310, Acquired, LOCK), (700, Released, LOCK)]),
        // In an operation off the lock, from the beginning to 600.
        (3, Stand::Off, vec![(10, RegionBegin, 5), (600, RegionEnd, 0)]),
        (4, Stand::Unknown, vec![(0, ThreadStart, 0), (90, ThreadEnd, 0)]),
        (5, Stand::Unknown, vec![(900, ThreadStart, 0)]),
        // Nothing is known of them before 950: they had waited, and held another lock.
        (6, Stand::Unknown, vec![(950, Acquired, LOCK)]),
        (7, Stand::Unknown, vec![(950, Released, 77)]),
    ]);
    let cut = |period| Timeline::of(&whole.clone().cut(period, |_| true));
    use State::*;
    let early = cut(150..400);
    let names: Vec<&str> = early.threads.iter().map(|life| life.name.as_str()).collect();
    assert_eq!((early.length, names), (250, vec!["t1", "t2", "t3", "t6", "t7"]));
    assert_eq!(states(&early, 0), [(Gc, 0, 30), (Running, 30, 150), (Sleep, 150, 250)]);
    assert_eq!(states(&early, 1), [(Waiting, 0, 160), (Running, 160, 250)]);
    assert_eq!(states(&early, 2), [(OffLock, 0, 250)]);
    assert_eq!((states(&early, 3), states(&early, 4)), (vec![(Waiting, 0, 250)], vec![(Running, 0, 250)]));
    assert_eq!(early.threads[4].holds[0].lock, 77);
    assert_eq!((early.threads[0].marks[0].start, early.threads[0].marks[0].end), (0, 250));
    let late = cut(400..850);
    assert_eq!(states(&late, 0), [(Sleep, 0, 450)]);
    assert_eq!(states(&late, 1), [(Running, 0, 300), (Idle, 300, 450)]);
    assert_eq!(states(&late, 2), [(OffLock, 0, 200), (Idle, 200, 450)]);
    let between = cut(350..360);
    assert_eq!(states(&between, 1), [(Running, 0, 10)]);
    for timeline in [&early, &late, &between] {
        assert!(timeline.overlaps.is_empty() && timeline.threads.iter().all(|life| life.oddities == 0));
    }
    assert_eq!(cut(5_000..6_000).length, 0);
    assert_eq!(whole.clone().cut(0..u64::MAX, |_| true).end, whole.end);
}

#[test]
fn threads_that_are_left_out_still_hold_the_lock() {
    let busy = |name| Script::new(name, [Step::Hold(ms(400))]);
    let (recording, _) = simulate(RUBY, &[busy("web 1"), busy("web 2"), busy("job")]);
    let cut = recording.cut(ms(150)..ms(950), |name| name == "job");
    let timeline = Timeline::of(&cut);
    let names: Vec<&str> = timeline.threads.iter().map(|life| life.name.as_str()).collect();
    assert_eq!(names, ["job", "other threads"]);
    let summary = Summary::of(&cut, &timeline);
    assert_eq!(summary.violations, 0);
    let row = &summary.locks[0].blame[0];
    assert_eq!((row.thread, row.by[0].0), (0, 1));
    assert!(about(row.by[0].1, row.waited), "{row:?}");
    assert!(summary.locks[0].utilization > 0.99);
    let again = Recording::read(&cut.to_bytes(), &Task::new()).expect("a trace");
    assert_eq!(Recording { bytes: 0, ..again }, Recording { bytes: 0, ..cut });
}

#[test]
fn readings_are_cut_in_proportion() {
    let events = vec![(0, Kind::Acquired, LOCK), (20, Kind::Released, LOCK)];
    let mut whole = metered(events, &[(0, 0, 0), (20, 20, 0), (100, 80, 16)]);
    let machine = |time, busy, total| MachineUsed { time: ms(time), busy, total };
    whole.machine = vec![machine(0, 0, 0), machine(100, 50, 100)];
    let cut = whole.cut(ms(40)..ms(60), |_| true);
    let used = |time, cpu, delay: u64| Used { time: ms(time), cpu, run_delay: Some(delay) };
    assert_eq!(cut.usage[&1], [used(40, 35_000, 4_000), used(60, 50_000, 8_000)]);
    assert_eq!(cut.machine, [machine(40, 20, 40), machine(60, 30, 60)]);
    let timeline = Timeline::of(&cut);
    assert_eq!(states(&timeline, 0), [(State::OffLock, 0, ms(20))]);
    assert_eq!(timeline.threads[0].usage.map(|usage| usage.others), Some(ms(15)));
}

/// A recording of 100 ms with one thread, on the native thread 1; `readings` are milliseconds: when, how long
/// on a processor, how long without one.
fn metered(events: Vec<(u64, Kind, u32)>, readings: &[(u64, u64, u64)]) -> Recording {
    let events = events.into_iter().map(|(time, kind, argument)| (ms(time), kind, argument)).collect();
    let mut metered = Recording { end: ms(100), ..recording([(1, Stand::Off, events)]) };
    let used = |(time, cpu, delay): &(u64, u64, u64)| Used {
        time: ms(*time),
        cpu: cpu * 1_000,
        run_delay: Some(delay * 1_000),
    };
    metered.usage.insert(1, readings.iter().map(used).collect());
    metered
}

#[test]
fn what_computes_in_other_code_does_not_idle() {
    use Kind::{Acquired, RegionBegin, RegionEnd, Released, Wants};
    use State::{Idle, OffLock, Running, Waiting};
    let released = vec![(0, Acquired, LOCK), (20, Released, LOCK)];
    let steps = |cpu: [u64; 6]| (0..6).map(|i| (i * 20, cpu[i as usize], 0)).collect::<Vec<_>>();
    // When it idles, it uses no processor, or a little, or for a while, or for most of the time.
    for (cpu, expected, others) in [
        ([0, 20, 20, 20, 20, 20], vec![(Running, 0, 20), (Idle, 20, 100)], 0),
        ([0, 20, 24, 28, 30, 32], vec![(Running, 0, 20), (Idle, 20, 100)], 12),
        (
            [0, 20, 20, 35, 35, 35],
            vec![(Running, 0, 20), (Idle, 20, 40), (OffLock, 40, 60), (Idle, 60, 100)],
            15,
        ),
        ([0, 20, 40, 60, 80, 100], vec![(Running, 0, 20), (OffLock, 20, 100)], 80),
    ] {
        let timeline = Timeline::of(&metered(released.clone(), &steps(cpu)));
        let expected: Vec<_> = expected.into_iter().map(|(state, a, b)| (state, ms(a), ms(b))).collect();
        assert_eq!(states(&timeline, 0), expected, "{cpu:?}");
        let usage = timeline.threads[0].usage.expect("recorded");
        assert_eq!((usage.cpu, usage.others), (ms(cpu[5]), ms(others)), "{cpu:?}");
    }
    // It could have computed, but something else used the processors.
    let timeline = Timeline::of(&metered(released, &[(20, 0, 0), (60, 5, 35), (100, 5, 35)]));
    assert_eq!(
        states(&timeline, 0),
        [(Running, 0, ms(20)), (OffLock, ms(20), ms(60)), (Idle, ms(60), ms(100))]
    );
    // An operation off the lock, on a thread of its own: its time is no other code's.
    let operation = vec![
        (0, Acquired, LOCK),
        (10, RegionBegin, 7),
        (10, Released, LOCK),
        (80, Wants, LOCK),
        (90, Acquired, LOCK),
        (90, RegionEnd, 0),
    ];
    let timeline = Timeline::of(&metered(operation, &[(0, 0, 0), (100, 20, 5)]));
    assert_eq!(
        states(&timeline, 0),
        [
            (Running, 0, ms(10)),
            (OffLock, ms(10), ms(80)),
            (Waiting, ms(80), ms(90)),
            (Running, ms(90), ms(100))
        ]
    );
    assert_eq!(timeline.threads[0].usage.map(|usage| usage.others), Some(0));
}

/// Where a thread had no processor: while it held the lock, or while it waited for it.
#[test]
fn waiting_for_a_processor_is_told_from_waiting_for_the_lock() {
    use Kind::{Acquired, Released, Wants};
    let events = vec![(0, Wants, LOCK), (40, Acquired, LOCK), (80, Released, LOCK)];
    for (cpu, delay, waiting) in [(40, 0, 0), (40, 30, 30), (30, 30, 20), (30, 5, 0), (40, 60, 40)] {
        let timeline = Timeline::of(&metered(events.clone(), &[(0, 7, 9), (100, 7 + cpu, 9 + delay)]));
        let usage = timeline.threads[0].usage.expect("recorded");
        let expected = (ms(cpu), Some(ms(delay)), Some(ms(waiting)));
        assert_eq!((usage.cpu, usage.run_delay, usage.run_delay_waiting), expected, "{cpu} {delay}");
    }
}

/// The tables say the same of a group as the verdict.
#[test]
fn a_wait_for_a_processor_is_not_lost_to_the_lock() {
    use Kind::{Acquired, Released, Wants};
    let events = vec![(0, Wants, LOCK), (60, Acquired, LOCK), (100, Released, LOCK)];
    let recording = metered(events, &[(0, 0, 0), (100, 40, 9)]);
    let summary = Summary::of(&recording, &Timeline::of(&recording));
    assert_eq!(summary.groups[0].lost, 51.0 / 91.0);
    assert!(summary.findings[0].text.contains("lost 56% of its active time"), "{:?}", summary.findings[0]);
}

/// While the thread that is to get the lock has no processor, those behind it wait, too.
#[test]
fn all_wait_for_the_one_without_a_processor() {
    use Kind::{Acquired, Released, Wants};
    let events = |wait: u64, hold: u64| {
        let events = [(0, Wants, LOCK), (wait, Acquired, LOCK), (wait + hold, Released, LOCK)];
        events.into_iter().map(|(time, kind, lock)| (ms(time), kind, lock)).collect()
    };
    let turns = [(60, 10), (70, 10), (80, 20)];
    let threads = (1..).zip(turns).map(|(id, (wait, hold))| (id, Stand::Off, events(wait, hold)));
    let mut waiting = Recording { end: ms(100), ..recording(threads) };
    let used = |time, delay: u64| Used { time: ms(time), cpu: time * 100, run_delay: Some(delay * 1_000) };
    // Those behind it wait for the lock for 30 ms besides; all three hold it for 40 ms.
    for (delay, expected) in [(0, 210.0 / 250.0), (18, 156.0 / 196.0), (31, 30.0 / 70.0), (60, 30.0 / 70.0)] {
        waiting.usage.insert(1, vec![used(0, 0), used(100, delay)]);
        let summary = Summary::of(&waiting, &Timeline::of(&waiting));
        assert_eq!((summary.locks[0].free, summary.groups[0].lost), (ms(60), expected), "{delay}");
    }
}

/// A thread that seldom computes and then has a processor for half of the time, and one that waits for it meanwhile:
/// the lock is the problem, however long both idle.
#[test]
fn idle_life_on_a_full_machine_hides_no_waiting() {
    for idle in [ms(100), ms(10_000)] {
        let turns = [Step::Hold(ms(60)), Step::Idle(idle)].into_iter().cycle().take(60);
        let light = [Step::Hold(ms(1) / 20), Step::Idle(ms(20))];
        let light = light.into_iter().cycle().take(60 * ((idle + ms(60)) / ms(20)) as usize);
        let (mut recording, _) = simulate(RUBY, &[Script::new("indexer", turns), Script::new("web", light)]);
        recording.about.push(("processors".into(), "2".into()));
        let (from, to) = (recording.start, recording.end);
        let used = |time, cpu, delay| Used { time, cpu, run_delay: Some(delay) };
        recording.usage.insert(1_000, vec![used(from, 0, 0), used(to, 900_000, 900_000)]);
        let machine = |time, busy| MachineUsed { time, busy, total: busy };
        recording.machine = vec![machine(from, 0), machine(to, to - from)];
        let summary = Summary::of(&recording, &Timeline::of(&recording));
        assert_eq!(summary.findings[0].kind, FindingKind::Lock, "{idle} {:?}", summary.findings);
    }
}

#[test]
fn parallelism_is_what_the_processors_did() {
    let steps = [Step::Hold(ms(1)), Step::OffLock(ms(99)), Step::Hold(1)];
    let threads: Vec<Script> = (0..4).map(|i| Script::new(&format!("zip-{i}"), steps)).collect();
    let (mut recording, _) = simulate(RUBY, &threads);
    let summary = |recording: &Recording| Summary::of(recording, &Timeline::of(recording));
    assert!(summary(&recording).useful_parallelism > 3.0, "nothing is known of processors");
    recording.about.push(("processors".into(), "2".into()));
    let by_states = summary(&recording);
    assert_eq!((by_states.useful_parallelism, by_states.busy), (2.0, None));
    let length = recording.end - recording.start;
    let used = |time, cpu| Used { time, cpu: cpu / 1_000, run_delay: None };
    let readings = vec![used(recording.start, 0), used(recording.end, length / 1_000 * 1_500)];
    recording.usage.insert(Recording::PROCESS, readings);
    let machine = |time, busy, total| MachineUsed { time, busy, total };
    recording.machine = vec![machine(recording.start, 50, 100), machine(recording.end, 140, 200)];
    let measured = summary(&recording);
    assert!((1.49..1.51).contains(&measured.useful_parallelism), "{}", measured.useful_parallelism);
    assert!(measured.busy.is_some_and(|busy| (0.74..0.76).contains(&busy)), "{:?}", measured.busy);
    assert_eq!((measured.processors, measured.machine_busy), (Some(2.0), Some(0.9)));
}

#[test]
fn a_mark_may_get_its_name_at_its_end() {
    use Kind::*;
    let mut marked = recording([(
        1,
        Stand::Holds,
        vec![
            (100, MarkBegin, 8),
            (150, MarkBegin, 9),
            (200, MarkEnd, 0),
            (300, MarkEnd, 7),
            (400, MarkBegin, 8),
        ],
    )]);
    for (id, name) in [(7, "GET /users/:id"), (8, "GET"), (9, "query")] {
        marked.names.insert(id, name.into());
    }
    let summary = Summary::of(&marked, &Timeline::of(&marked));
    let mut marks: Vec<_> =
        summary.marks.iter().map(|mark| (mark.span.total, mark.span.name.as_str())).collect();
    marks.sort_unstable();
    assert_eq!(marks, [(50, "query"), (200, "GET /users/:id"), (600, "GET")]);
}

#[test]
fn a_big_number_of_waiting_threads_is_blamed_in_little_time() {
    let script = |i: u64| Script {
        start: i * 1_000,
        ..Script::new(&format!("t{i}"), [Step::Hold(50_000), Step::Idle(1), Step::Hold(50_000)])
    };
    let scripts: Vec<Script> = (0..5_000).map(script).collect();
    let (recording, _) = simulate(Interpreter { hand_over: 0, ..RUBY }, &scripts);
    let timeline = Timeline::of(&recording);
    let blame = Blame::of(&timeline, &timeline.locks[0]);
    assert_eq!(blame.holders.len(), offlock_core::trace::COLUMNS);
    for row in &blame.rows {
        assert_eq!(row.by.iter().sum::<u64>() + row.by_others + row.by_no_thread, row.waited);
    }
}

/// For how long threads waited for a lock that was free, by looking between every two moments at which that changes.
fn slow_free(timeline: &Timeline, lock: &LockLife) -> u64 {
    let waits = || timeline.threads.iter().flat_map(|life| &life.waits).filter(|wait| wait.lock == lock.id);
    let held = || lock.holds.iter().map(|hold| (hold.start, hold.end));
    let mut moments: Vec<u64> = held()
        .chain(waits().map(|wait| (wait.start, wait.end)))
        .flat_map(|(start, end)| [start, end])
        .collect();
    moments.sort_unstable();
    let is_free = |from: u64, to: u64| {
        waits().any(|wait| wait.start <= from && to <= wait.end)
            && !held().any(|(start, end)| start <= from && to <= end)
    };
    moments.windows(2).filter(|pair| is_free(pair[0], pair[1])).map(|pair| pair[1] - pair[0]).sum()
}

/// More threads hold the lock than have a column of their own.
#[test]
fn a_pool_of_many_threads_is_one_holder() {
    let pool = (0..100).map(|i| Script::new(&format!("job {i}"), [Step::Hold(ms(1))]));
    let (recording, _) = simulate(RUBY, &pool.collect::<Vec<_>>());
    let summary = Summary::of(&recording, &Timeline::of(&recording));
    let [row] = summary.locks[0].by_group.as_slice() else { panic!("{:?}", summary.locks[0].by_group) };
    assert_eq!((row.by_others, row.by.len()), (0, 1));
    assert!(!summary.to_text().contains("others"), "{}", summary.to_text());
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![1..1_000_u64, 1_000..ms(5), ms(5)..ms(300)];
    (length, 0..8).prop_map(|(length, what)| match what {
        0..3 => Step::Hold(length),
        3 => Step::Gc(length),
        4 => Step::Sleep(length),
        5 => Step::OffLock(length),
        _ => Step::Idle(length),
    })
}

fn scripts() -> impl Strategy<Value = Vec<Script>> {
    let turn = (1..ms(3), step()).prop_map(|(hold, step)| [Step::Hold(hold), step]);
    let script = (0..ms(50), prop::collection::vec(turn, 1..12));
    let name = |(i, (start, turns)): (usize, (u64, Vec<[Step; 2]>))| Script {
        start,
        ..Script::new(&format!("t{i}"), turns.concat())
    };
    prop::collection::vec(script, 1..7).prop_map(move |all| all.into_iter().enumerate().map(name).collect())
}

/// Readings of the clocks of a few native threads, in the order of time.
fn readings() -> impl Strategy<Value = BTreeMap<u32, Vec<Used>>> {
    let step = (0..ms(50), 0..100_000_u64, 0..100_000_u64);
    let add = |steps: Vec<(u64, u64, u64)>| {
        let mut last = (RUBY.origin, 0, 0);
        let used = steps.into_iter().map(move |step| {
            last = (last.0 + step.0, last.1 + step.1, last.2 + step.2);
            Used { time: last.0, cpu: last.1, run_delay: Some(last.2) }
        });
        used.collect::<Vec<_>>()
    };
    prop::collection::btree_map(1_000..1_007_u32, prop::collection::vec(step, 1..40).prop_map(add), 0..5)
}

/// The simulation's truth of one thread, equal neighbours merged.
fn truth_of(truth: &[Truth], thread: usize) -> Vec<(State, u64, u64)> {
    let mut merged: Vec<(State, u64, u64)> = Vec::new();
    for Truth { state, start, end, .. } in truth.iter().filter(|truth| truth.thread == thread) {
        match merged.last_mut() {
            Some(last) if last.0 == *state && last.2 == *start => last.2 = *end,
            _ => merged.push((*state, *start, *end)),
        }
    }
    merged
}

/// How long `a` waited while `b` held, by looking at every pair.
fn slow_blame(truth: &[Truth], a: usize, b: usize) -> u64 {
    let of = |thread, wanted: fn(State) -> bool| {
        truth.iter().filter(move |t| t.thread == thread && wanted(t.state))
    };
    let pairs = of(a, |state| state == State::Waiting)
        .flat_map(|wait| of(b, State::holds).map(move |hold| (wait, hold)));
    pairs.map(|(wait, hold)| wait.end.min(hold.end).saturating_sub(wait.start.max(hold.start))).sum()
}

/// When, on which thread, a mark with which name begins, or none: the innermost ends. In thousandths of the
/// recording.
fn marks() -> impl Strategy<Value = Vec<(u64, u32, Option<u32>)>> {
    prop::collection::vec((0..1_000_u64, 1..7_u32, prop::option::of(20..23_u32)), 0..30)
}

fn insert_marks(recording: &mut Recording, marks: &[(u64, u32, Option<u32>)]) {
    let (start, length) = (recording.start, recording.end - recording.start);
    for (at, thread, name) in marks {
        let Some(thread) = recording.threads.get_mut(thread) else { continue };
        let time = start + length * at / 1_000;
        let (kind, argument) = name.map_or((Kind::MarkEnd, 0), |name| (Kind::MarkBegin, name));
        let at = thread.moments.partition_point(|moment| moment.time <= time);
        thread.moments.insert(at, Moment { time, kind, argument, native: 1 });
    }
}

/// What a mark caused, by looking at each moment at which nothing changes.
#[derive(Default)]
struct SlowMark {
    held_wanted: u64,
    inflicted: u64,
    on_others: u64,
    others_waited: u64,
    waited: u64,
    waited_for_nobody: u64,
}

impl SlowMark {
    fn of(recording: &Recording, timeline: &Timeline, name: &str) -> Self {
        let spans = timeline.threads.iter().flat_map(|life| &life.marks);
        let mut times: Vec<u64> = spans.flat_map(|span| [span.start, span.end]).collect();
        times.extend(timeline.threads.iter().flat_map(|life| life.states().map(|(slice, _)| slice.start)));
        times.push(timeline.length);
        times.sort_unstable();
        times.dedup();
        let mut sums = Self::default();
        times.windows(2).for_each(|pair| sums.add(recording, timeline, name, pair[0], pair[1] - pair[0]));
        sums
    }

    fn add(&mut self, recording: &Recording, timeline: &Timeline, name: &str, time: u64, length: u64) {
        let is_in = |life: &&Life| {
            let mut spans = life.marks.iter().filter(|span| (span.start..span.end).contains(&time));
            spans.any(|span| recording.name(span.name) == name)
        };
        let is = |life: &&Life, wanted: fn(State) -> bool| {
            let alive = (life.start..life.end).contains(&time);
            alive
                && life.states().any(|(slice, end)| (slice.start..end).contains(&time) && wanted(slice.state))
        };
        let waits = |life: &&Life| is(life, |state| state == State::Waiting);
        let holder = timeline.threads.iter().find(|life| is(life, State::holds));
        let waiting: Vec<&Life> = timeline.threads.iter().filter(waits).collect();
        let others = waiting.iter().filter(|life| !is_in(life)).count() as u64;
        let (all, own) = (waiting.len() as u64, waiting.len() as u64 - others);
        self.others_waited += length * others;
        self.waited += length * own;
        if holder.is_none() {
            self.waited_for_nobody += length * own;
        } else if holder.as_ref().is_some_and(is_in) {
            self.held_wanted += if all > 0 { length } else { 0 };
            self.inflicted += length * all;
            self.on_others += length * others;
        }
    }
}

proptest! {
    #[test]
    fn readings_change_nothing_but_idle_slices(scripts in scripts(), readings in readings()) {
        let (mut recording, truth) = simulate(RUBY, &scripts);
        recording.usage = readings;
        let timeline = Timeline::of(&recording);
        for (thread, life) in timeline.threads.iter().enumerate() {
            prop_assert!(life.states().all(|(slice, end)| slice.start < end));
            let mut shown: Vec<(State, u64, u64)> = Vec::new();
            for (slice, end) in life.states() {
                let is_other = (slice.state, slice.what) == (State::OffLock, Recording::OTHER_CODE);
                let state = if is_other { State::Idle } else { slice.state };
                match shown.last_mut() {
                    Some(last) if last.0 == state && last.2 == slice.start => last.2 = end,
                    _ => shown.push((state, slice.start, end)),
                }
            }
            prop_assert_eq!(shown, truth_of(&truth, thread));
            let usage = life.usage.unwrap_or_default();
            prop_assert!(usage.others <= usage.cpu && usage.run_delay_waiting <= usage.run_delay);
        }
    }

    #[test]
    fn the_timeline_is_what_was_the_case(scripts in scripts(), hand_over in 0..50_000_u64) {
        let (recording, truth) = simulate(Interpreter { hand_over, ..RUBY }, &scripts);
        let timeline = Timeline::of(&recording);
        prop_assert!(timeline.overlaps.is_empty());
        for (thread, life) in timeline.threads.iter().enumerate() {
            prop_assert_eq!(states(&timeline, thread), truth_of(&truth, thread));
            prop_assert_eq!(life.oddities, 0);
            prop_assert_eq!(life.slices[0].start, life.start);
            prop_assert!(life.states().all(|(slice, end)| slice.start < end));
        }
        let summary = Summary::of(&recording, &timeline);
        for thread in &summary.threads {
            prop_assert_eq!(thread.times.total(), thread.lifetime);
        }
        let held: u64 = summary.locks.iter().map(|lock| lock.held).sum();
        prop_assert_eq!(held, summary.times.holding());
        prop_assert_eq!(summary.times.waiting, summary.locks.iter().map(|lock| lock.waited).sum::<u64>());
    }

    #[test]
    fn a_cut_shows_the_same_states(scripts in scripts(), hand_over in 0..50_000_u64, from in 0..1_000_u64, to in 0..1_000_u64) {
        let (recording, _) = simulate(Interpreter { hand_over, ..RUBY }, &scripts);
        let whole = Timeline::of(&recording);
        let (from, to) = (whole.length * from.min(to) / 1_000, whole.length * from.max(to) / 1_000);
        let cut = recording.cut(from..to, |_| true);
        let timeline = Timeline::of(&cut);
        for (index, life) in timeline.threads.iter().enumerate() {
            let original = whole.threads.iter().find(|original| original.id == life.id).expect("a part of the whole");
            let within = original.states().filter_map(|(slice, end)| {
                let (start, end) = (slice.start.max(from), end.min(to));
                (start < end).then(|| (slice.state, start - from, end - from))
            });
            prop_assert_eq!(states(&timeline, index), within.collect::<Vec<_>>(), "{} of {}..{}", life.name, from, to);
            prop_assert_eq!(life.oddities, 0);
        }
        prop_assert!(timeline.overlaps.is_empty());
        let alive = whole.threads.iter().filter(|life| from < to && life.start < to && life.end > from);
        prop_assert_eq!(timeline.threads.iter().filter(|life| life.end > life.start).count(), alive.count());
    }

    #[test]
    fn blame_is_what_looking_at_every_pair_says(scripts in scripts(), hand_over in 0..50_000_u64) {
        let (recording, truth) = simulate(Interpreter { hand_over, ..RUBY }, &scripts);
        let timeline = Timeline::of(&recording);
        let Some(lock) = timeline.locks.first() else { return Ok(()) };
        let blame = Blame::of(&timeline, lock);
        for row in &blame.rows {
            for (column, holder) in blame.holders.iter().enumerate() {
                prop_assert_eq!(row.by[column], slow_blame(&truth, row.owner, *holder));
            }
            prop_assert_eq!(row.by_others, 0);
            prop_assert_eq!(row.by.iter().sum::<u64>() + row.by_no_thread, row.waited);
        }
        prop_assert_eq!(blame.waited(), timeline.threads.iter().flat_map(|t| &t.waits).map(|w| w.length()).sum::<u64>());
        let inflicted: Vec<u64> = (0..blame.holders.len()).map(|column| blame.inflicted(column)).collect();
        prop_assert!(inflicted.is_sorted_by(|a, b| a >= b));
        prop_assert_eq!(blame.free, slow_free(&timeline, lock));
    }

    #[test]
    fn the_blame_of_groups_is_that_of_their_threads(scripts in scripts(), hand_over in 0..50_000_u64) {
        let (recording, _) = simulate(Interpreter { hand_over, ..RUBY }, &scripts);
        let timeline = Timeline::of(&recording);
        let summary = Summary::of(&recording, &timeline);
        let Some(lock) = summary.locks.first() else { return Ok(()) };
        for row in &lock.by_group {
            let is_member = |thread: usize| summary.groups[row.group].threads.contains(&thread);
            let own: Vec<_> = lock.blame.iter().filter(|each| is_member(each.thread)).collect();
            prop_assert_eq!(row.waited, own.iter().map(|each| each.waited).sum::<u64>());
            prop_assert_eq!(row.by_no_thread, own.iter().map(|each| each.by_no_thread).sum::<u64>());
            for (group, time) in &row.by {
                let members = &summary.groups[*group].threads;
                let behind = own.iter().flat_map(|each| &each.by).filter(|(holder, _)| members.contains(holder));
                prop_assert_eq!(*time, behind.map(|(_, time)| time).sum::<u64>());
            }
        }
        prop_assert_eq!(lock.by_group.iter().map(|row| row.waited).sum::<u64>(), lock.waited);
    }

    #[test]
    fn marks_are_what_looking_at_every_moment_says(scripts in scripts(), marks in marks()) {
        let (mut recording, _) = simulate(RUBY, &scripts);
        insert_marks(&mut recording, &marks);
        let timeline = Timeline::of(&recording);
        let summary = Summary::of(&recording, &timeline);
        for mark in &summary.marks {
            let slow = SlowMark::of(&recording, &timeline, &mark.span.name);
            prop_assert_eq!(mark.held_wanted, slow.held_wanted);
            prop_assert_eq!(mark.inflicted, slow.inflicted);
            prop_assert_eq!(mark.inflicted_on_others, slow.on_others);
            prop_assert_eq!(mark.others_waited, slow.others_waited);
            let behind: u64 = mark.behind.iter().map(|behind| behind.waited).sum();
            prop_assert!(slow.waited == 0 || behind > 0 || slow.waited_for_nobody == slow.waited);
        }
    }

    #[test]
    fn a_recording_survives_its_file(scripts in scripts(), readings in readings()) {
        let (mut recording, _) = simulate(RUBY, &scripts);
        recording.usage = readings;
        recording.machine = vec![MachineUsed { time: recording.start, busy: 5, total: 10 }];
        let bytes = recording.to_bytes();
        let expected = Recording { bytes: bytes.len() as u64, ..recording };
        prop_assert_eq!(Recording::read(&bytes, &Task::new()), Ok(expected));
    }

    #[test]
    fn no_bytes_make_it_panic(scripts in scripts(), readings in readings(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20), seal in any::<bool>()) {
        let (mut recording, _) = simulate(RUBY, &scripts);
        recording.usage = readings;
        let mut bytes = recording.to_bytes();
        for (index, byte) in damage {
            let at = 8 + index.index(bytes.len() - 8);
            bytes[at] = byte;
        }
        if seal {
            reseal(&mut bytes);
        }
        if let Ok(recording) = Recording::read(&bytes, &Task::new()) {
            let timeline = Timeline::of(&recording);
            for life in &timeline.threads {
                prop_assert!(life.slices.windows(2).all(|pair| pair[0].start < pair[1].start));
            }
            let _ = Summary::of(&recording, &timeline).to_text();
        }
    }
}

/// Makes the checksums fit again, so that what lies behind them is reached.
fn reseal(bytes: &mut [u8]) {
    let mut at = 8;
    while at + 9 <= bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().expect("four bytes")) as usize;
        let Some(body) = bytes.get(at + 9..at + 9 + length) else { return };
        let summed = [&bytes[at..at + 5], body].concat();
        let crc = offlock_core::deflate::crc32(0, &summed, &Task::new()).expect("not stopped");
        bytes[at + 5..at + 9].copy_from_slice(&crc.to_le_bytes());
        at += 9 + length;
    }
}

#[test]
fn sizes_and_names_of_operations_come_from_the_file() {
    use Kind::*;
    let begin = vec![(10, RegionBegin, 77), (20, Released, LOCK), (30, RegionEnd, pack_size(3 << 30))];
    let nameless = recording([(1, Stand::Holds, begin)]);
    let summary = Summary::of(&nameless, &Timeline::of(&nameless));
    assert_eq!((summary.operations[0].name.as_str(), summary.operations[0].bytes), ("name 77", 3 << 30));
}

/// Found by fuzzing: times that cannot be added up.
#[test]
fn a_recording_that_claims_to_last_for_ages_is_damaged() {
    let moment = |time, kind| Moment { time, kind, argument: 1, native: 1 };
    let moments = vec![moment(1, Kind::Wants), moment(u64::MAX - 1, Kind::Acquired)];
    let thread = RecordedThread { name: "a".into(), stand: Stand::Off, moments };
    let threads = (0..3).map(|id| (id, thread.clone())).collect();
    let absurd = Recording { end: u64::MAX, threads, events: 6, ..Recording::default() };
    let read = Recording::read(&absurd.to_bytes(), &Task::new()).expect("a trace");
    assert_eq!(read.damage.map(|damage| damage.flaw), Some(Flaw::Body));
    let summary = Summary::of(&read, &Timeline::of(&read));
    assert!(summary.times.total() <= 3 * summary.length && summary.length < u64::MAX / 3, "{summary:?}");
}
