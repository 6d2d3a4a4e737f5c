//! From a recording to states, blame and numbers: scripted scenarios whose shape is known, and
//! random ones against slow, obvious calculations.

mod simulate;

use offlock_core::Task;
use offlock_core::trace::{
    Behind, Blame, Flaw, Kind, Life, MarkBlame, Moment, RecordedThread, Recording, Stand, State, Summary,
    Timeline, Weight, pack_size,
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
    let text = summary.to_text();
    assert!(text.contains("`counter` held the lock for 100% of the time in which `net` waited"), "{text}");
    assert!(text.contains("`net` needed the lock only briefly (100 µs at a time) but waited"), "{text}");
    assert!(text.contains("another process or a Ractor"), "{text}");
}

/// Threads that want the lock all the time, `hold` nanoseconds each time, while each hand-over takes
/// `hand_over`: what is said of a lock that nobody holds.
#[test]
fn a_free_lock_is_blamed_on_hand_overs_only_where_there_are_many() {
    const SWITCH_LESS: &str = "Switch less";
    const NO_PROCESSOR: &str = "The lock is not the cause.";
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

#[test]
fn uncontended_acquisitions_are_no_waits() {
    let steps = [Step::Idle(ms(1)), Step::Hold(1_000)];
    let (.., summary) = analyse(&[Script::new("alone", steps.into_iter().cycle().take(2_000))]);
    let thread = &summary.threads[0];
    assert_eq!((thread.contended.count, thread.contended.total), (0, 0));
    assert!(summary.findings[0].text.contains("no thread lost more than 0%"), "{:?}", summary.findings);
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

/// One thread holds the lock in the mark `report` and, within it, `render`; a second one waits in `hello`, and a
/// third one outside of any mark.
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
    let blame = |mark, held, inflicted| MarkBlame { group: 0, mark, held, inflicted };
    assert_eq!(
        summary.locks[0].by_mark,
        [blame(Some(1), 350, 550), blame(Some(2), 200, 300), blame(None, 100, 200), blame(Some(0), 50, 50)]
    );
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

/// When, on which thread, a mark with which name begins, or none: the innermost ends. In thousandths of the recording.
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
    fn blame_is_what_looking_at_every_pair_says(scripts in scripts(), hand_over in 0..50_000_u64) {
        let (recording, truth) = simulate(Interpreter { hand_over, ..RUBY }, &scripts);
        let timeline = Timeline::of(&recording);
        let Some(lock) = timeline.locks.first() else { return Ok(()) };
        let blame = Blame::of(&timeline, lock);
        for row in &blame.rows {
            for (column, holder) in blame.holders.iter().enumerate() {
                prop_assert_eq!(row.by[column], slow_blame(&truth, row.thread, *holder));
            }
            prop_assert_eq!(row.by_others, 0);
            prop_assert_eq!(row.by.iter().sum::<u64>() + row.by_no_thread, row.waited);
        }
        prop_assert_eq!(blame.waited(), timeline.threads.iter().flat_map(|t| &t.waits).map(|w| w.length()).sum::<u64>());
        let inflicted: Vec<u64> = (0..blame.holders.len()).map(|column| blame.inflicted(column)).collect();
        prop_assert!(inflicted.is_sorted_by(|a, b| a >= b));
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
    fn a_recording_survives_its_file(scripts in scripts()) {
        let (recording, _) = simulate(RUBY, &scripts);
        let bytes = recording.to_bytes();
        let expected = Recording { bytes: bytes.len() as u64, ..recording };
        prop_assert_eq!(Recording::read(&bytes, &Task::new()), Ok(expected));
    }

    #[test]
    fn no_bytes_make_it_panic(scripts in scripts(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20), seal in any::<bool>()) {
        let (recording, _) = simulate(RUBY, &scripts);
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
