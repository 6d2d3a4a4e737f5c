//! Tests of the command as a process.

#[path = "../../core/tests/simulate/mod.rs"]
mod simulate;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use offlock_core::Task;
use offlock_core::trace::{Name, Options, Recording, Thread, Trace, now};
use simulate::{Interpreter, Script, Step, ms, simulate};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("offlock-command-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("writable");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("ours").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn offlock(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_offlock"));
        command.args(arguments).current_dir(&self.0).env_remove("RUBYOPT").env_remove("PYTHONPATH");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.offlock(arguments).stdin(Stdio::null()).output().expect("started")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// The words of a text, whatever its lines.
fn words(bytes: &[u8]) -> String {
    text(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn traced() -> String {
    let command = Path::new(env!("CARGO_BIN_EXE_offlock"));
    let program = command.with_file_name("examples").join("traced");
    program.to_str().expect("UTF-8").to_owned()
}

fn convoy(folder: &Folder) -> PathBuf {
    let interpreter = Interpreter { time_slice: ms(100), hand_over: 20_000, origin: 7 };
    let request = [Step::Idle(ms(1)), Step::Hold(100_000)];
    let net = Script::new("net", request.into_iter().cycle().take(20));
    let (recording, _) = simulate(interpreter, &[net, Script::new("counter", [Step::Hold(ms(1_500))])]);
    let path = folder.path("convoy.offlock");
    std::fs::write(&path, recording.to_bytes()).expect("writable");
    path
}

/// The traces of a server: an idle parent, a worker whose threads wait for each other, one that does little, and a parent
/// that only loads.
fn server(folder: &Folder) {
    let interpreter = Interpreter { time_slice: ms(5), hand_over: 20_000, origin: 7 };
    let busy = |name| Script::new(name, [Step::Idle(ms(1)), Step::Hold(ms(60))].into_iter().cycle().take(20));
    let idle = || Script::new("main", [Step::Hold(ms(1)), Step::Idle(ms(5_000))]);
    // It waits for a moment while the parent loads.
    let watcher = || Script::new("watcher", [Step::Hold(20_000)]);
    let loading = || Script::new("main", [Step::Hold(60_000), Step::Idle(ms(1)), Step::Hold(ms(2))]);
    for (name, pid, parent, scripts) in [
        ("a.offlock", "10", "1", vec![idle()]),
        ("a.11.offlock", "11", "10", vec![idle(), busy("worker 1"), busy("worker 2")]),
        ("a.12.offlock", "12", "10", vec![idle(), busy("worker 1")]),
        ("loading.offlock", "13", "1", vec![loading(), watcher()]),
    ] {
        let (mut recording, _) = simulate(interpreter, &scripts);
        let about = [("pid", pid), ("parent", parent), ("command", "server.py")];
        recording.about.retain(|(key, _)| key != "command");
        recording.about.extend(about.map(|(key, value)| (key.to_owned(), value.to_owned())));
        std::fs::write(folder.path(name), recording.to_bytes()).expect("writable");
    }
}

#[test]
fn a_process_that_lost_next_to_nothing_does_not_lead() {
    let folder = Folder::new("next-to-nothing");
    server(&folder);
    let output = folder.run(&["summary", "loading.offlock", "a.12.offlock"]);
    let said = text(&output.stdout);
    assert!(said.starts_with("process 12, which computed most of 2 processes"), "{said}");
}

#[test]
fn of_several_processes_the_one_that_lost_most_leads() {
    let folder = Folder::new("processes");
    server(&folder);
    let output = folder.run(&["summary", "a.offlock", "a.11.offlock", "a.12.offlock"]);
    let said = text(&output.stdout);
    assert!(said.starts_with("process 11 (child of 10), which lost most of 3 processes"), "{said}");
    assert!(words(&output.stdout).contains("slows this program down"), "{said}");
    let (_, others) = said.split_once("Other processes").expect("the others");
    let line = |start: &str| others.lines().find(|line| line.trim().starts_with(start)).expect(start);
    assert!(line("process 12 (child of 10)").contains("not the lock"), "{others}");
    assert!(line("process 10 (parent of 2)").contains("server.py"), "{others}");
    assert!(others.find("process 12") < others.find("process 10"), "{others}");
    let backwards = folder.run(&["summary", "a.12.offlock", "a.11.offlock", "a.offlock"]);
    assert_eq!(text(&backwards.stdout), said);
}

#[test]
fn recordings_of_one_process_are_told_apart_by_their_files() {
    let folder = Folder::new("namesakes");
    server(&folder);
    std::fs::copy(folder.path("a.12.offlock"), folder.path("a-2.offlock")).expect("writable");
    let output = folder.run(&["summary", "a.11.offlock", "a.12.offlock", "a-2.offlock"]);
    let said = text(&output.stdout);
    assert!(said.starts_with("a.11.offlock, which lost most of 3 recordings:"), "{said}");
    let (_, others) = said.split_once("Other recordings").expect("the others");
    assert!(others.contains("  a-2.offlock ") && others.contains("  a.12.offlock "), "{others}");
}

#[test]
fn a_summary_is_json_if_asked() {
    let folder = Folder::new("json");
    server(&folder);
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&folder.run(arguments).stdout).expect("JSON")
    };
    let mut exported = json(&["export", "-f", "json", "a.11.offlock", "-o", "-"]);
    let stacks = ["frames", "samples"].map(|key| exported.as_object_mut().and_then(|all| all.remove(key)));
    assert!(stacks.iter().flatten().all(serde_json::Value::is_array) && stacks.iter().all(Option::is_some));
    assert_eq!(json(&["summary", "--json", "a.11.offlock"]), exported, "only the export has the stacks");
    let output = folder.run(&["summary", "--json", "a.offlock", "a.11.offlock"]);
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(run["processes"][0]["file"], "a.11.offlock");
    assert_eq!(run["processes"][1]["summary"]["threads"][0]["name"], "main");
}

#[test]
fn what_is_no_trace_is_not_read_to_its_end() {
    let folder = Folder::new("endless");
    let mut zeros = Command::new("head");
    let mut zeros =
        zeros.args(["-c", "64M", "/dev/zero"]).stdout(Stdio::piped()).spawn().expect("there is head");
    let input = zeros.stdout.take().expect("piped");
    let output = folder.offlock(&["summary", "-"]).stdin(input).output().expect("started");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("offlock: -: not an offlock trace"), "{}", text(&output.stderr));
    assert!(!zeros.wait().expect("started").success(), "somebody read all of it");
}

#[test]
fn a_trace_can_come_from_standard_input() {
    let folder = Folder::new("stdin");
    let trace = std::fs::File::open(convoy(&folder)).expect("written");
    let piped = folder.offlock(&["summary", "-"]).stdin(trace).output().expect("started");
    assert_eq!(piped.stdout, folder.run(&["summary", "convoy.offlock"]).stdout);
    let empty = folder.run(&["summary", "-"]);
    assert!(text(&empty.stderr).contains("-: not an offlock trace: the file is empty"));
}

fn read(path: &Path) -> Recording {
    Recording::read(&std::fs::read(path).expect("written"), &Task::new()).expect("a trace")
}

#[test]
fn without_arguments_it_helps() {
    let output = Folder::new("help").run(&[]);
    assert_eq!(output.status.code(), Some(2));
    for command in ["trace", "summary", "report", "compare", "export"] {
        assert!(text(&output.stderr).contains(command));
    }
}

#[test]
fn a_summary_is_text_on_standard_output() {
    let folder = Folder::new("summary");
    convoy(&folder);
    let output = folder.run(&["summary", "convoy.offlock"]);
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(words(&output.stdout).contains("`counter` held the lock"), "{}", text(&output.stdout));
}

#[test]
fn a_summary_fits_the_width_and_a_pipe_gets_no_colours() {
    let folder = Folder::new("width");
    convoy(&folder);
    let summary = |columns: Option<&str>| {
        let mut command = folder.offlock(&["summary", "convoy.offlock"]);
        let command = command.env_remove("COLUMNS").envs(columns.map(|columns| ("COLUMNS", columns)));
        text(&command.output().expect("started").stdout).to_owned()
    };
    for (columns, width) in [(None, 80), (Some("60"), 60), (Some("200"), 200)] {
        let said = summary(columns);
        let longest = said.lines().max_by_key(|line| line.chars().count()).expect("lines");
        assert!(longest.chars().count() <= width, "{longest}");
        assert!(!said.contains('\u{1b}'), "{said}");
        assert_eq!(said.contains("sleep"), width == 200, "{said}");
    }
    let (verdict, threads) = (summary(None).find("Waiting for the lock"), summary(None).find("Threads"));
    assert!(verdict.expect("the verdict") < threads.expect("the threads"));
}

#[test]
fn a_truncated_file_is_read_as_far_as_possible_and_the_offset_named() {
    let folder = Folder::new("cut");
    let path = convoy(&folder);
    let bytes = std::fs::read(&path).expect("written");
    std::fs::write(&path, &bytes[..bytes.len() - 5]).expect("writable");
    let output = folder.run(&["summary", "convoy.offlock"]);
    assert!(output.status.success());
    let frame = bytes.len() - 9 - 8;
    let warning = text(&output.stderr);
    assert!(
        warning.starts_with("offlock: convoy.offlock: the file is cut off in the frame at byte"),
        "{warning}"
    );
    let offset = warning.split("at byte ").nth(1).and_then(|rest| rest.split(':').next()).expect("an offset");
    assert!(offset.parse::<usize>().expect("a number").abs_diff(frame) < 10, "{warning}");
    assert!(text(&output.stdout).contains("Incomplete"));
}

#[test]
fn foreign_and_missing_files_are_errors_that_name_them() {
    let folder = Folder::new("foreign");
    std::fs::write(folder.path("x.json"), "[]").expect("writable");
    std::fs::write(folder.path("new.offlock"), b"offlock\x09").expect("writable");
    std::fs::write(folder.path("empty"), b"").expect("writable");
    for (file, message) in [
        ("x.json", "x.json: not an offlock trace: byte 0 looks like JSON"),
        ("new.offlock", "format version 9 (byte 7); this offlock reads version 1"),
        ("empty", "empty: not an offlock trace: the file is empty"),
        ("missing", "missing: No such file"),
    ] {
        let output = folder.run(&["summary", file]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}

#[test]
fn exports_go_beside_the_trace_or_to_a_given_path() {
    let folder = Folder::new("export");
    convoy(&folder);
    for (format, file) in [
        ("perfetto", "convoy.pftrace"),
        ("gvl-tracing", "convoy.gvl.json"),
        ("firefox", "convoy.firefox.json"),
        ("speedscope", "convoy.speedscope.json"),
        ("collapsed", "convoy.folded"),
        ("json", "convoy.json"),
    ] {
        let output = folder.run(&["export", "--format", format, "convoy.offlock"]);
        assert!(output.status.success());
        assert!(text(&output.stderr).contains(file));
        let beside = std::fs::read(folder.path(file)).expect("written");
        let piped = folder.run(&["export", "-f", format, "convoy.offlock", "-o", "-"]);
        assert_eq!(piped.stdout, beside);
        assert!(piped.stderr.is_empty());
        let other = format!("other.{}", file.split_once('.').expect("an extension").1);
        assert!(folder.run(&["export", "convoy.offlock", "-o", &other]).status.success());
        assert_eq!(std::fs::read(folder.path(&other)).expect("written"), beside);
    }
    let output = folder.run(&["export", "convoy.offlock"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_report_is_one_page_beside_the_trace() {
    let folder = Folder::new("report");
    convoy(&folder);
    let output = folder.run(&["report", "convoy.offlock"]);
    assert!(output.status.success() && text(&output.stderr).contains("wrote convoy.html"));
    let page = std::fs::read_to_string(folder.path("convoy.html")).expect("written");
    assert_eq!(page.matches("<script").count(), 2, "the data and the program");
    assert!(page.contains("id=\"offlock-trace-0\"") && !page.contains("<!--data-->"));
    let piped = folder.run(&["report", "convoy.offlock", "-o", "-"]);
    assert_eq!(piped.stdout, page.as_bytes());
}

#[test]
fn a_report_of_several_processes_is_one_page() {
    let folder = Folder::new("report-of-several");
    server(&folder);
    let output = folder.run(&["report", "a.offlock", "a.11.offlock", "a.12.offlock"]);
    assert!(output.status.success() && text(&output.stderr).contains("wrote a.html"));
    let page = std::fs::read_to_string(folder.path("a.html")).expect("written");
    assert!(page.contains("id=\"offlock-trace-2\"") && !page.contains("id=\"offlock-trace-3\""));
}

#[test]
fn a_comparison_is_text_and_a_page_if_asked() {
    let folder = Folder::new("compare");
    convoy(&folder);
    let output = folder.run(&["compare", "convoy.offlock", "convoy.offlock", "--report", "both.html"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("useful parallelism"));
    assert!(!text(&output.stdout).contains("better") && !text(&output.stdout).contains("worse"));
    let json = folder.run(&["compare", "--json", "convoy.offlock", "convoy.offlock"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["measures"][0]["name"], "length");
    assert_eq!(json["code"]["without_stacks"], serde_json::json!(["before", "after"]));
    let page = std::fs::read_to_string(folder.path("both.html")).expect("written");
    assert!(page.contains("id=\"offlock-trace-1\"") && page.contains("id=\"offlock-comparison\""));
}

#[test]
fn a_traced_program_keeps_its_input_output_and_status() {
    let folder = Folder::new("status");
    let mut child = folder
        .offlock(&["trace", "-o", "t.offlock", "--", &traced(), "copy"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    child.stdin.take().expect("piped").write_all(b"some\0input").expect("read");
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success());
    assert_eq!(output.stdout, b"some\0input");
    assert!(text(&output.stderr).contains("Threads") && text(&output.stderr).contains("wrote"));
    assert_eq!(read(&folder.path("t.offlock")).events, 5);
    for summary in ["--summary", "--no-summary"] {
        let output = folder.run(&["trace", summary, "--", &traced(), "status", "7"]);
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(output.stderr.is_empty(), summary == "--no-summary");
        assert_eq!(read(&folder.path("trace.offlock")).events, 5);
    }
    assert_eq!(folder.run(&["trace", "--", "/no/such/program"]).status.code(), Some(127));
}

#[test]
fn a_traced_program_dies_of_its_own_signal() {
    let folder = Folder::new("signal");
    let output = folder.run(&["trace", "--", &traced(), "abort"]);
    assert_eq!(output.status.signal(), Some(6));
    for said in [words(&output.stderr), words(&folder.run(&["summary", "trace.offlock"]).stdout)] {
        assert!(
            said.contains("SIGABRT ended the program: the recording is complete up to its last flush"),
            "{said}"
        );
        assert!(!said.contains("Incomplete"), "{said}");
    }
}

#[test]
fn signals_are_passed_on() {
    let folder = Folder::new("forward");
    for (name, number) in [("TERM", 15), ("INT", 2), ("QUIT", 3), ("HUP", 1)] {
        let mut command = folder.offlock(&["trace", "--", &traced(), "wait"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("read");
        let killed = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
        assert!(killed.expect("kill exists").success());
        assert_eq!(child.wait().expect("ended").signal(), Some(number), "{name}");
    }
}

#[test]
fn the_program_inherits_ignored_signals() {
    let folder = Folder::new("ignored");
    let script = "trap '' HUP; exec \"$0\" trace -- sh -c 'kill -HUP $$; echo alive'";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_offlock")])
        .current_dir(&folder.0)
        .output();
    assert_eq!(text(&output.expect("started").stdout), "alive\n");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("written").permissions().mode() & 0o777
}

#[test]
fn only_the_owner_can_read_the_files() {
    let folder = Folder::new("mode");
    let arguments = ["trace", "--report", "-o", "run.json", "--", &traced(), "child", "status", "0"];
    assert!(folder.run(&arguments).status.success());
    assert_eq!(folder.names().len(), 4, "{:?}", folder.names());
    for name in folder.names() {
        assert_eq!(mode(&folder.path(&name)), 0o600, "{name}");
    }
}

#[test]
fn existing_files_are_only_overwritten_by_name() {
    let folder = Folder::new("neighbours");
    let keep = |name: &str| std::fs::write(folder.path(name), "mine").expect("writable");
    ["trace.offlock", "run.offlock", "run.html", "run-2.html", "convoy.json"].into_iter().for_each(keep);
    let refused = folder.run(&["trace", "--", &traced(), "status", "0"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("is not a trace"), "{}", text(&refused.stderr));
    let exported = folder.run(&["trace", "--report", "-o", "run.json", "--", &traced(), "status", "0"]);
    for name in ["run-2.offlock", "run-2-2.html", "run.json"] {
        assert!(text(&exported.stderr).contains(name), "{}", text(&exported.stderr));
    }
    convoy(&folder);
    let exported = folder.run(&["export", "-f", "json", "convoy.offlock"]);
    assert!(text(&exported.stderr).contains("wrote convoy-2.json"), "{}", text(&exported.stderr));
    for name in ["trace.offlock", "run.offlock", "run.html", "run-2.html", "convoy.json"] {
        assert_eq!(std::fs::read_to_string(folder.path(name)).expect("there"), "mine", "{name}");
    }
    let named = folder.run(&["trace", "-o", "trace.offlock", "--", &traced(), "status", "0"]);
    assert!(named.status.success(), "a file that is named may be replaced");
    assert_eq!(read(&folder.path("trace.offlock")).events, 5);
    let again = folder.run(&["trace", "--", &traced(), "status", "0"]);
    assert!(again.status.success(), "so may a trace under the name of traces");
}

#[test]
fn planted_links_are_not_followed() {
    let folder = Folder::new("planted");
    std::fs::write(folder.path("victim"), "precious").expect("writable");
    for link in ["t.offlock", "t.json", "t.html"] {
        std::os::unix::fs::symlink(folder.path("victim"), folder.path(link)).expect("writable");
    }
    convoy(&folder);
    for arguments in [
        &["trace", "-o", "t.offlock", "--", "true"][..],
        &["trace", "-o", "t.json", "--", "true"],
        &["report", "convoy.offlock", "-o", "t.html"],
        &["export", "convoy.offlock", "-o", "t.json"],
    ] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains("offlock does not"), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_to_string(folder.path("victim")).expect("there"), "precious");
}

#[test]
fn a_pipe_is_no_trace_and_is_not_waited_for() {
    let folder = Folder::new("pipe");
    assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().expect("there is mkfifo").success());
    for command in ["summary", "report"] {
        let output = folder.run(&[command, "pipe"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("pipe: it is not a regular file"), "{}", text(&output.stderr));
    }
}

#[test]
fn children_have_files_of_their_own() {
    let folder = Folder::new("children");
    let output = folder.run(&["trace", "--", &traced(), "child", "child", "status", "3"]);
    assert_eq!(output.status.code(), Some(3));
    let names = folder.names();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[2], "trace.offlock");
    for name in &names {
        let recording = read(&folder.path(name));
        assert_eq!((recording.damage, recording.events), (None, 5));
        assert!(text(&output.stderr).contains(name.as_str()));
        if name != "trace.offlock" {
            assert_eq!(name, &format!("trace.{}.offlock", recording.about("pid").expect("known")));
        }
    }
}

#[test]
fn a_report_of_a_traced_program_lies_beside_its_trace() {
    let folder = Folder::new("trace-report");
    assert!(
        folder.run(&["trace", "--report", "--no-summary", "--", &traced(), "status", "0"]).status.success()
    );
    assert_eq!(folder.names(), ["trace.html", "trace.offlock"]);
}

#[test]
fn the_size_of_a_large_export_is_said_before() {
    let folder = Folder::new("large");
    let path = folder.path("large.offlock");
    let trace = Trace::start(
        Box::new(std::fs::File::create(&path).expect("writable")),
        &Options { limit: None, ..Options::default() },
    );
    let (trace, thread, mark) = (trace.expect("a thread"), Thread::present("marking"), Name::of("mark"));
    for _ in 0..500_000 {
        thread.mark_begin(now(), mark);
        thread.mark_end(now(), None);
    }
    trace.stop().expect("writable");
    let output = folder.run(&["export", "-f", "perfetto", "large.offlock"]);
    let size = std::fs::metadata(folder.path("large.pftrace")).expect("written").len();
    let said = format!("the file will have {:.1} MB; --from and --to export a part", size as f64 / 1e6);
    assert!(text(&output.stderr).contains(&said), "{said}: {}", text(&output.stderr));
    let output =
        folder.run(&["export", "-f", "perfetto", "--to", "1ms", "large.offlock", "-o", "part.pftrace"]);
    assert!(!text(&output.stderr).contains("will have"), "{}", text(&output.stderr));
}

#[test]
fn an_output_of_another_tool_is_exported() {
    let folder = Folder::new("pftrace");
    assert!(folder.run(&["trace", "-o", "run.pftrace", "--", &traced(), "status", "0"]).status.success());
    assert_eq!(folder.names(), ["run.offlock", "run.pftrace"]);
}

#[test]
fn a_program_that_cannot_be_traced_is_run_all_the_same() {
    let folder = Folder::new("untraced");
    let output = folder.run(&["trace", "--", "sh", "-c", "echo out; exit 5"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(5), "out\n"));
    assert!(text(&output.stderr).contains("no trace was written"));
}

#[test]
fn the_environment_makes_interpreters_trace_themselves() {
    let folder = Folder::new("environment");
    let output = folder
        .offlock(&[
            "trace",
            "--no-summary",
            "--",
            "sh",
            "-c",
            "echo $RUBYOPT; echo $RUBYLIB; echo $PYTHONPATH; echo $OFFLOCK_TRACE; echo [$OFFLOCK_TRACE_ARGUMENTS]",
        ])
        .env("OFFLOCK_RUBYLIB", "/gem/lib")
        .env("OFFLOCK_PYTHONPATH", "/wheel/autotrace")
        .env("RUBYOPT", "-W0")
        .env("PYTHONPATH", "/mine")
        .output()
        .expect("started");
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines[..3], ["-rofflock/autotrace -W0", "/gem/lib", "/wheel/autotrace:/mine"]);
    assert!(Path::new(lines[3]).is_absolute() && lines[3].ends_with("/trace.offlock"));
    assert_eq!(lines[4], "[]");
    let asked =
        ["trace", "--no-summary", "--keep-arguments", "--", "sh", "-c", "echo $OFFLOCK_TRACE_ARGUMENTS"];
    assert_eq!(text(&folder.run(&asked).stdout), "1\n");
    let bare = folder.run(&["trace", "--no-summary", "--", "sh", "-c", "echo \"[$RUBYOPT$RUBYLIB]\""]);
    assert_eq!(text(&bare.stdout), "[]\n", "nothing is loaded that is not there");
}

#[test]
fn a_part_of_a_recording_can_be_meant() {
    let folder = Folder::new("part");
    convoy(&folder);
    let json = |arguments: &[&str]| -> serde_json::Value {
        let output = folder.run(&[&["summary", "--json", "convoy.offlock"], arguments].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let (all, part) = (json(&[]), json(&["--from", "500ms", "--to", "1s"]));
    assert_eq!(part["length"], ms(500));
    assert_eq!(part, json(&["--since", "0.5s", "--until", "1s"]));
    let threads = part["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), all["threads"].as_array().expect("threads").len());
    let share = |summary: &serde_json::Value| summary["locks"][0]["utilization"].as_f64().expect("a number");
    assert!((share(&part) - share(&all)).abs() < 0.02, "{} {}", share(&part), share(&all));
    assert_eq!(part["violations"], 0);
    let net = json(&["--thread", "ne"]);
    let names: Vec<&str> =
        net["threads"].as_array().expect("threads").iter().filter_map(|t| t["name"].as_str()).collect();
    assert_eq!(names, ["net", "other threads"]);
    let none = folder.run(&["summary", "convoy.offlock", "--thread", "nobody"]);
    assert!(text(&none.stderr).contains("convoy.offlock: no thread has nobody in its name"));
    for arguments in [["--from", "1h"], ["--to", "0s"]] {
        let output = folder.run(&[&["summary", "convoy.offlock"], arguments.as_slice()].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).starts_with("offlock: convoy.offlock: nothing is left"));
    }
    assert_eq!(folder.run(&["summary", "convoy.offlock", "--from", "soon"]).status.code(), Some(2));
}

#[test]
fn runs_of_several_processes_are_compared_by_those_that_lost_most() {
    let folder = Folder::new("runs");
    server(&folder);
    let output =
        folder.run(&["compare", "a.offlock", "a.11.offlock", "--after", "a.12.offlock", "a.offlock"]);
    assert!(text(&output.stderr).contains("a.11.offlock: lost most of 2 processes"));
    let alone = folder.run(&["compare", "a.11.offlock", "a.12.offlock"]);
    assert_eq!(output.stdout, alone.stdout);
    assert_eq!(folder.run(&["compare", "a.offlock"]).status.code(), Some(2));
}

#[test]
fn a_trace_that_is_still_written_is_read_with_a_note() {
    let folder = Folder::new("growing");
    let mut command = folder.offlock(&["trace", "--", &traced(), "wait"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("read");
    let output = folder.run(&["summary", "trace.offlock"]);
    assert!(Command::new("kill").arg(child.id().to_string()).status().expect("kill exists").success());
    child.wait().expect("ended");
    assert!(output.status.success());
    if cfg!(target_os = "linux") {
        for said in [words(&output.stdout), words(&output.stderr)] {
            assert!(said.contains("is still recording: this is what it has written so far"), "{said}");
        }
    }
}

#[test]
fn recording_can_end_before_the_program() {
    let folder = Folder::new("for");
    let mut command = folder.offlock(&["trace", "--for", "100ms", "--", &traced(), "wait"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("started");
    let said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let said: Vec<String> =
        said.map(|line| line.expect("read")).take_while(|line| !line.contains("wrote")).collect();
    assert!(said.iter().any(|line| line.contains("recording is over after 100ms")), "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("Threads")), "{said:?}");
    let recording = read(&folder.path("trace.offlock"));
    assert_eq!(recording.damage, None);
    assert!((recording.end - recording.start).abs_diff(ms(100)) < ms(80));
    assert_eq!(child.try_wait().expect("known"), None, "the program goes on");
    assert!(Command::new("kill").arg(child.id().to_string()).status().expect("kill exists").success());
    child.wait().expect("ended");
}

#[test]
fn errors_of_starting_a_program_say_what_to_do() {
    let folder = Folder::new("hints");
    std::fs::write(folder.path("app.py"), "print()").expect("writable");
    let output = folder.run(&["trace", "app.py"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("Did you mean: offlock trace -- python app.py"));
    let script = folder.path("serve");
    std::fs::write(&script, "#!/usr/bin/env -S sh -c true ruby\n").expect("writable");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("ours");
    let mut command = folder.offlock(&["trace", "./serve"]);
    let said = command.env("OFFLOCK_PYTHONPATH", "/wheel").output().expect("started").stderr;
    let expected =
        "./serve: it is a Ruby program, and this command is of the Python package: gem install offlock";
    assert!(text(&said).contains(expected), "{}", text(&said));
    let said = command.env("OFFLOCK_RUBYLIB", "/gem").output().expect("started").stderr;
    assert!(!text(&said).contains("gem install"), "{}", text(&said));
}

#[test]
fn a_signal_is_named_to_the_program_and_passed_on() {
    let folder = Folder::new("chosen");
    let program =
        ["sh", "-c", "trap 'echo got it; exit 0' URG; echo $OFFLOCK_SIGNAL; while :; do sleep 0.01; done"];
    let mut command = folder.offlock(&[&["trace", "--signal", "SIGURG", "--"], program.as_slice()].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert_eq!(lines.next().expect("a line").expect("read"), "URG");
    let killed = Command::new("kill").args(["-URG", &child.id().to_string()]).status();
    assert!(killed.expect("kill exists").success());
    assert_eq!(lines.next().expect("a line").expect("read"), "got it");
    let output = child.wait_with_output().expect("ended");
    assert!(text(&output.stderr).contains("no process of the program got the signal URG"));
    assert_eq!(folder.run(&["trace", "--signal", "KILL", "--", "true"]).status.code(), Some(2));
}

#[test]
fn shells_and_man_learn_the_command() {
    let folder = Folder::new("shells");
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.run(&["completions", shell]);
        assert!(script.status.success() && text(&script.stdout).contains("keep-arguments"), "{shell}");
    }
    let page = folder.run(&["man", "trace"]);
    assert!(
        text(&page.stdout).contains(".SH EXTRA") && text(&page.stdout).contains("\\-\\-keep\\-arguments")
    );
    assert!(text(&folder.run(&["man"]).stdout).contains("Shows which threads"));
    let unknown = folder.run(&["man", "nothing"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("nothing: there is no such subcommand"));
}

#[test]
fn a_program_runs_without_a_trace_if_tracing_is_switched_off() {
    let folder = Folder::new("off");
    let mut command = folder.offlock(&["trace", "--report", "--", "sh", "-c", "echo $OFFLOCK_TRACE; exit 3"]);
    let output = command.env("OFFLOCK_LOCK", "off").output().expect("runs");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), "\n"));
    let reason = "tracing is switched off by OFFLOCK_LOCK=off";
    assert_eq!(text(&output.stderr), format!("offlock: {reason}: the program runs without a trace\n"));
    assert_eq!(folder.names(), [] as [String; 0]);
}
