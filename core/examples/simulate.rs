//! Writes made-up traces, to look at and for the tests of the report page:
//! `cargo run --example simulate -- KIND FILE`.

#[path = "../tests/simulate/mod.rs"]
mod simulate;

use std::process::ExitCode;

use simulate::{Interpreter, Script, Step, ms};

const RUBY: Interpreter = Interpreter { time_slice: 100_000_000, hand_over: 20_000, origin: 7_000_000_000 };

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, file] = arguments.as_slice() else { return usage() };
    let (interpreter, scripts) = match kind.as_str() {
        "convoy" => (RUBY, convoy()),
        "web" => (Interpreter { time_slice: 10_000_000, ..RUBY }, web()),
        "hostile" => (RUBY, hostile()),
        "million" => (Interpreter { time_slice: 1_000_000, hand_over: 2_000, ..RUBY }, million()),
        _ => return usage(),
    };
    let (mut recording, _) = simulate::simulate(interpreter, &scripts);
    if kind == "hostile" {
        recording.names.insert(simulate::OPERATION, HOSTILE.into());
    }
    match std::fs::write(file, recording.to_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("simulate convoy|web|hostile|million FILE");
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

const HOSTILE: &str = "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>";

/// Names that would run a script where a page forgets to escape them.
fn hostile() -> Vec<Script> {
    let steps = [Step::Hold(ms(10)), Step::OffLock(ms(5)), Step::Hold(ms(10))];
    let names = [HOSTILE, "\"'`--><!--${window.owned=1}\\u003c\u{2028}", "\u{202e}rtl\u{0}\u{7}", ""];
    names.iter().map(|name| Script::new(name, steps)).collect()
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
