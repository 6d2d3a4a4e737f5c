//! A program that traces itself when `OFFLOCK_TRACE` says so, as an interpreter with offlock loaded
//! does. What it does then is up to its arguments; the tests of `offlock trace` run it.

use std::process::{Command, ExitCode};

use offlock_core::trace::{Lock, Options, Reason, Thread, Trace, now, now_holding};

fn main() -> ExitCode {
    let options = Options { about: vec![("language".into(), "test".into())], ..Options::default() };
    let trace = Trace::from_environment(&options).map(|trace| trace.expect("the file can be written").0);
    let (thread, lock) = (Thread::start(now(), "main"), Lock::new("GIL"));
    thread.wants(now(), lock);
    thread.acquired(now_holding(), lock);
    let status = work();
    thread.released(now(), lock, Reason::Blocks);
    thread.end(now());
    drop(trace);
    ExitCode::from(status)
}

fn work() -> u8 {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["copy"] => {
            std::io::copy(&mut std::io::stdin(), &mut std::io::stdout()).expect("copied");
            0
        }
        ["status", status] => status.parse().expect("a status"),
        ["abort"] => std::process::abort(),
        ["child", ..] => {
            let program = std::env::current_exe().expect("known");
            let child = Command::new(program).args(&arguments[1..]).status().expect("started");
            child.code().map_or(99, |code| code as u8)
        }
        ["wait"] => {
            println!("ready");
            std::thread::sleep(std::time::Duration::from_secs(60));
            98
        }
        _ => 97,
    }
}
