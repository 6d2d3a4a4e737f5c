//! Writes made-up traces, to look at and for the tests of the report page:
//! `cargo run --example simulate -- KIND FILE`.

#[path = "simulate/free_threaded.rs"]
mod free_threaded;
#[path = "../tests/simulate/mod.rs"]
mod simulate;
#[path = "simulate/stacks.rs"]
mod stacks;

use std::process::ExitCode;

use offlock_core::trace::{Kind, Moment, Reason, Recording, unpack_release};
use simulate::{Interpreter, Script, Step, ms};

const RUBY: Interpreter = Interpreter { time_slice: 100_000_000, hand_over: 20_000, origin: 7_000_000_000 };

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, file] = arguments.as_slice() else { return usage() };
    let Some(mut recording) = recording(kind) else { return usage() };
    // Two recordings of one process are `web` and `server`.
    let pid = if kind == "convoy" { "4711" } else { "4712" };
    recording.about.push(("pid".into(), pid.into()));
    match std::fs::write(file, recording.to_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The recording of this kind, if there is one.
fn recording(kind: &str) -> Option<Recording> {
    let (interpreter, scripts) = match kind {
        "convoy" => (RUBY, convoy()),
        "web" | "stacks" => (Interpreter { time_slice: 10_000_000, ..RUBY }, web()),
        "hostile" => (RUBY, hostile()),
        "server" => (Interpreter { time_slice: 10_000_000, ..RUBY }, server()),
        "million" => (Interpreter { time_slice: 1_000_000, hand_over: 2_000, ..RUBY }, million()),
        "free-threaded" => return Some(free_threaded::recording()),
        _ => return None,
    };
    let (mut recording, _) = simulate::simulate(interpreter, &scripts);
    match kind {
        "server" => mark_requests(&mut recording),
        "stacks" => stacks::add(&mut recording),
        "hostile" => rename(&mut recording),
        _ => {}
    }
    Some(recording)
}

fn usage() -> ExitCode {
    eprintln!("simulate convoy|web|server|stacks|hostile|million|free-threaded FILE");
    ExitCode::from(2)
}

/// A network thread beside one that computes.
fn convoy() -> Vec<Script> {
    let request = [Step::Idle(ms(1)), Step::Hold(100_000)];
    let net = Script::new("net", request.into_iter().cycle().take(60));
    vec![net, Script::new("counter", [Step::Hold(ms(3_500))])]
}

/// A web server: workers, an indexer that computes, a reporter that compresses off the lock.
fn web() -> Vec<Script> {
    let mut random = Random(1);
    let mut threads =
        vec![Script::new("main", [Step::Hold(ms(2)), Step::Sleep(ms(2_900)), Step::Hold(ms(1))])];
    for i in 0..8 {
        let turns = (0..60).flat_map(|_| {
            let io = random.between(ms(5), ms(60));
            [Step::Hold(random.between(100_000, ms(4))), Step::Idle(io)]
        });
        threads.push(Script {
            start: ms(i * 3),
            ..Script::new(&format!("puma worker {i}"), turns.collect::<Vec<_>>())
        });
    }
    let indexing = (0..6).flat_map(|_| [Step::Hold(ms(180)), Step::Gc(ms(25)), Step::Sleep(ms(220))]);
    threads.push(Script { start: ms(300), ..Script::new("indexer", indexing) });
    for i in 0..2 {
        let turn = [Step::Hold(ms(3)), Step::OffLock(ms(140)), Step::Hold(ms(1)), Step::Idle(ms(90))];
        threads.push(Script {
            start: ms(500),
            ..Script::new(&format!("reporter {i}"), turn.into_iter().cycle().take(32))
        });
    }
    threads
}

/// A pool of threads that answers quick requests and, now and then, one that computes a report; and many threads that
/// live briefly.
fn server() -> Vec<Script> {
    let mut random = Random(3);
    let mut threads =
        vec![Script::new("main", [Step::Hold(ms(2)), Step::Sleep(ms(1_900)), Step::Hold(ms(1))])];
    for i in 0..5 {
        let turns = (0..40).flat_map(|turn| {
            let work = if (turn + 8 * i) % 13 == 12 { REPORT_TIME } else { random.between(200_000, 600_000) };
            [Step::Hold(work), Step::Idle(random.between(ms(5), ms(40)))]
        });
        threads.push(Script {
            start: ms(i),
            ..Script::new(&format!("puma srv tp 00{}", i + 1), turns.collect::<Vec<_>>())
        });
    }
    for i in 0..40 {
        let name = format!("Thread-{} (process_request_thread)", i + 1);
        let steps = [Step::Hold(300_000), Step::Idle(ms(8)), Step::Hold(100_000)];
        threads.push(Script { start: ms(100 + i * 37), ..Script::new(&name, steps) });
    }
    threads
}

const REPORT_TIME: u64 = 60_000_000;
const HELLO: u32 = 20;
const REPORT: u32 = 21;
const RENDER: u32 = 22;

/// Marks what the pool does from wanting the lock to blocking: a quick request, or a report, which renders at its end.
fn mark_requests(recording: &mut Recording) {
    let names = [(HELLO, "GET /hello"), (REPORT, "GET /report"), (RENDER, "render")];
    recording.names.extend(names.map(|(id, name)| (id, name.to_owned())));
    for thread in recording.threads.values_mut().filter(|thread| thread.name.starts_with("puma")) {
        let mut begin = None;
        let mut marks = Vec::new();
        for moment in &thread.moments {
            match moment.kind {
                Kind::Wants => drop(begin.get_or_insert(*moment)),
                Kind::Released if unpack_release(moment.argument).1 == Reason::Blocks => {
                    marks.extend(begin.take().map(|begin| request(begin, moment.time)).into_iter().flatten());
                }
                _ => {}
            }
        }
        thread.moments.extend(marks);
        thread.moments.sort_by_key(|moment| moment.time);
    }
}

/// The marks of a request that ends at a point in time.
fn request(begin: Moment, end: u64) -> Vec<Moment> {
    let at = |time, kind, argument| Moment { time, kind, argument, ..begin };
    if end - begin.time < REPORT_TIME {
        return vec![at(begin.time, Kind::MarkBegin, HELLO), at(end, Kind::MarkEnd, 0)];
    }
    let renders = end - (end - begin.time) / 3;
    vec![
        at(begin.time, Kind::MarkBegin, REPORT),
        at(renders, Kind::MarkBegin, RENDER),
        at(end, Kind::MarkEnd, 0),
        at(end, Kind::MarkEnd, 0),
    ]
}

const HOSTILE: &str = "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>";

/// Names that would run a script where a page forgets to escape them.
fn hostile() -> Vec<Script> {
    let steps = [Step::Hold(ms(10)), Step::OffLock(ms(5)), Step::Hold(ms(10))];
    let names = [HOSTILE, "\"'`--><!--${window.owned=1}\\u003c\u{2028}", "\u{202e}rtl\u{0}\u{7}", ""];
    names.iter().map(|name| Script::new(name, steps)).collect()
}

/// Gives such names to what is no thread, too.
fn rename(recording: &mut Recording) {
    recording.names.insert(simulate::OPERATION, HOSTILE.into());
    stacks::add(recording);
    recording.code.functions.values_mut().for_each(|function| function.name = HOSTILE.into());
    recording.code.files.values_mut().for_each(|file| *file = HOSTILE.into());
}

/// About a million events of a hundred threads.
fn million() -> Vec<Script> {
    let mut random = Random(2);
    let thread = |i: usize| {
        let turns = (0..3_300).flat_map(|_| {
            let hold = random.between(1_000, 60_000);
            let step = match random.between(0, 10) {
                0 => Step::Sleep(random.between(100_000, ms(8))),
                1 => Step::OffLock(random.between(100_000, ms(3))),
                _ => Step::Idle(random.between(20_000, ms(4))),
            };
            [Step::Hold(hold), step]
        });
        Script { start: i as u64 * 10_000, ..Script::new(&format!("worker {i}"), turns.collect::<Vec<_>>()) }
    };
    (0..100).map(thread).collect()
}

/// The same numbers each time.
struct Random(u64);

impl Random {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) % (high - low)
    }
}
