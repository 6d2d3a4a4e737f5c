//! `offlock dump`: prints what the threads of processes do, with their stacks.

use std::collections::HashSet;
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::time::Duration;

use offlock_core::trace::{
    DumpedState, DumpedThread, FrameText, ThreadDump, dump, duration_text, printable_line, published,
};

use crate::arguments::Dump;
use crate::failure::Failure;
use crate::published::{command_of, there_is_none, why_not};
use crate::{files, look};

/// The most columns that the names of functions are padded to.
const WIDEST: usize = 40;
/// The style of a thread's name.
const BOLD: anstyle::Style = anstyle::Style::new().bold();

pub(crate) fn run(arguments: &Dump) -> Result<(), Failure> {
    let are_named = !arguments.pids.is_empty();
    let pids = if are_named { unique(&arguments.pids) } else { published() };
    let mut all = dump_all(&pids, arguments.timeout);
    // Of a process that was killed there is a socket.
    all.retain(|(_, dump)| {
        are_named || dump.as_ref().err().is_none_or(|error| error.kind() != io::ErrorKind::NotFound)
    });
    if all.is_empty() {
        return Err(there_is_none());
    }
    let dumps: Vec<&ThreadDump> = all.iter().filter_map(|(_, dump)| dump.as_ref().ok()).collect();
    let text = if arguments.json { json(&dumps, all.len() == 1) } else { text(&dumps) };
    files::write(Path::new("-"), |out| out.write_all(text.as_bytes()))?;
    let problems = all.iter().filter_map(|(pid, dump)| Some((pid, dump.as_ref().err()?)));
    let problems: Vec<String> =
        problems.map(|(pid, error)| format!("process {pid}: {}", why_no_dump(*pid, error))).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure::new(problems.join("\nofflock: "))) }
}

fn unique(pids: &[u32]) -> Vec<u32> {
    let mut met = HashSet::new();
    pids.iter().copied().filter(|pid| met.insert(*pid)).collect()
}

/// Asks all processes at the same time: one that is stopped lets only itself be waited for.
fn dump_all(pids: &[u32], within: Duration) -> Vec<(u32, io::Result<ThreadDump>)> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = pids.iter().map(|pid| (*pid, scope.spawn(move || dump(*pid, within)))).collect();
        let failed = |_| Err(io::Error::other("the process could not be asked"));
        asked.into_iter().map(|(pid, asked)| (pid, asked.join().unwrap_or_else(failed))).collect()
    })
}

/// Why there is no dump of a process.
fn why_no_dump(pid: u32, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof if !Path::new("/proc").is_dir() || Path::new(&format!("/proc/{pid}")).is_dir() => {
            "it ended the connection: it serves as many commands as it can, or its offlock is older than this command".into()
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "it ended before it had answered".into(),
        _ => why_not(pid, error),
    }
}

fn json(dumps: &[&ThreadDump], is_one: bool) -> String {
    match dumps {
        [dump] if is_one => dump.to_json() + "\n",
        [] if is_one => String::new(),
        _ => {
            let all: Vec<String> = dumps.iter().map(|dump| dump.to_json()).collect();
            format!("{{\"processes\": [{}]}}\n", all.join(",\n"))
        }
    }
}

fn text(dumps: &[&ThreadDump]) -> String {
    let colored = look::of(&io::stdout()).colored;
    dumps.iter().map(|dump| text_of(dump, colored)).collect::<Vec<_>>().join("\n")
}

fn text_of(dump: &ThreadDump, colored: bool) -> String {
    let command = Some(command_of(dump.pid)).filter(|command| !command.is_empty());
    let command = command.unwrap_or_else(|| printable_line(&dump.command));
    let count = match dump.threads.len() {
        1 => "1 thread".to_owned(),
        count => format!("{count} threads"),
    };
    let mut out = format!("{}: {command}\n{}, {count}\n", dump.pid, printable_line(&dump.runtime));
    if let Some(obstacle) = &dump.obstacle {
        let _ = writeln!(out, "Stacks are missing: {}", printable_line(obstacle));
    }
    dump.threads.iter().for_each(|thread| write_thread(&mut out, thread, colored));
    out
}

fn write_thread(out: &mut String, thread: &DumpedThread, colored: bool) {
    let name = printable_line(&thread.name);
    let name = if colored { format!("{BOLD}{name}{BOLD:#}") } else { name };
    let id = thread.native_id.map(|id| format!(" ({id})")).unwrap_or_default();
    let _ = write!(out, "\n{name}{id}: {}", state_text(thread));
    if let Some(task) = &thread.task {
        let _ = write!(out, ", in {}", printable_line(task));
    }
    out.push('\n');
    if let Some(age) = thread.age {
        let _ = writeln!(out, "  {} ago it was in", duration_text(age));
    }
    let frames: Vec<(String, String)> = thread.frames.iter().map(frame_text).collect();
    let width =
        frames.iter().map(|(function, _)| function.chars().count()).filter(|count| *count <= WIDEST).max();
    let width = width.unwrap_or(0);
    for (function, place) in frames {
        let _ = writeln!(out, "{}", format!("  {function:width$}  {place}").trim_end());
    }
    if thread.left_out > 0 {
        let _ = writeln!(out, "  … {} more", thread.left_out);
    }
}

/// What a thread does, as in `has waited for the lock for 1.20 s, behind worker`.
fn state_text(thread: &DumpedThread) -> String {
    let time = thread.nanoseconds.map(duration_text);
    let behind = thread.behind.as_ref().map(|holder| format!(", behind {}", printable_line(holder)));
    match (thread.state, time) {
        (DumpedState::Running, Some(time)) => format!("has held the lock for {time}"),
        (DumpedState::Running, None) => "holds the lock".into(),
        (DumpedState::Waiting, Some(time)) => {
            format!("has waited for the lock for {time}{}", behind.unwrap_or_default())
        }
        (DumpedState::Waiting, None) => format!("waits for the lock{}", behind.unwrap_or_default()),
        (DumpedState::OffLock, _) => "runs without the lock".into(),
        (DumpedState::Idle, _) => "idle".into(),
    }
}

/// The function and its place.
fn frame_text(frame: &FrameText) -> (String, String) {
    let FrameText { function, file, line } = frame;
    let place = match (file.is_empty(), line) {
        (true, _) => String::new(),
        (false, 0) => file.clone(),
        (false, line) => format!("{file}:{line}"),
    };
    (printable_line(function), printable_line(&place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(state: DumpedState, nanoseconds: Option<u64>) -> DumpedThread {
        DumpedThread {
            name: "web\u{1b}[2J".into(),
            native_id: Some(12),
            state,
            nanoseconds,
            behind: None,
            task: None,
            frames: Vec::new(),
            left_out: 0,
            age: None,
        }
    }

    fn shown(thread: &DumpedThread) -> String {
        let mut out = String::new();
        write_thread(&mut out, thread, false);
        out
    }

    #[test]
    fn a_thread_is_shown_with_its_state_and_frames_in_columns() {
        let frame = |function: &str, file: &str, line| FrameText {
            function: function.into(),
            file: file.into(),
            line,
        };
        let waiting = DumpedThread {
            behind: Some("main".into()),
            task: Some("Task-7 (fetch)".into()),
            frames: vec![
                frame("App.parse", "/srv/app.py", 41),
                frame("main", "app.py", 0),
                frame("a\nb", "", 7),
            ],
            left_out: 3,
            ..thread(DumpedState::Waiting, Some(1_200_000_000))
        };
        assert_eq!(
            shown(&waiting),
            "\nweb\u{fffd}[2J (12): has waited for the lock for 1.20 s, behind main, in Task-7 (fetch)
  App.parse  /srv/app.py:41
  main       app.py
  a\u{fffd}b\n  … 3 more\n"
        );
        let held = DumpedThread { age: Some(5_000_000), ..thread(DumpedState::Running, None) };
        assert_eq!(shown(&held), "\nweb\u{fffd}[2J (12): holds the lock\n  5.00 ms ago it was in\n");
        assert!(shown(&thread(DumpedState::OffLock, None)).ends_with(": runs without the lock\n"));
        assert!(shown(&thread(DumpedState::Idle, None)).ends_with(": idle\n"));
    }

    #[test]
    fn one_process_is_an_object_and_several_are_a_list_in_one() {
        let dump = ThreadDump::default();
        assert!(json(&[&dump], true).starts_with("{\n  \"pid\": 0,"));
        for dumps in [vec![], vec![&dump], vec![&dump, &dump]] {
            let all: serde_json::Value = serde_json::from_str(&json(&dumps, false)).expect("JSON");
            assert_eq!(all["processes"].as_array().map(Vec::len), Some(dumps.len()));
        }
    }
}
