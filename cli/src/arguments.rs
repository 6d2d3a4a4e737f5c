//! The arguments of the command and of its subcommands. The doc comments are the help texts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use offlock_core::trace::{Format, stacks_from};

use crate::tokens::arguments::Tokens;
use crate::{duration, signals};

/// Shows which threads of a Ruby or Python program hold the interpreter lock (GVL, GIL), which threads wait for
/// it, and what to do about it.
#[derive(Parser)]
#[command(name = "offlock", version, subcommand_required = true, arg_required_else_help = true)]
#[command(
    max_term_width = 110,
    after_help = "Examples:
  offlock trace -- python app.py              Run a program, then say whether the lock slows it down
  offlock trace --report -- bundle exec puma  Also write a page that shows every wait
  offlock summary trace.offlock               Show the answer again
  offlock compare before.offlock after.offlock
  offlock run -- bundle exec puma             Run a program that can be recorded later, and
  offlock record --for 10s                    record it, or
  offlock top                                 watch it, or
  offlock dump                                print the stacks of all its threads
  offlock attach 4711 --for 10s               Record a Python program that runs already
  offlock tokens count corpus/                Count the tokens of documents in compressed shards

The guide: https://github.com/offlock/offlock/blob/main/docs/is-the-lock-my-problem.md"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Trace(Trace),
    Run(Run),
    Record(Record),
    Attach(Attach),
    Top(Top),
    Dump(Dump),
    Summary(Summary),
    Report(Report),
    Compare(Compare),
    Export(Export),
    Tokens(Tokens),
    Completions(Completions),
    Man(Man),
}

/// Run a Ruby or Python program and record which threads hold the lock and which wait for it
///
/// The program is not changed and keeps its exit status, signals, input and output. Children that are Ruby or
/// Python programs as well are recorded into files of their own, named with their process ids. A signal sent
/// to `offlock trace` is passed on to the program; the terminal's own signals (Ctrl-C) reach the program
/// anyway.
///
/// Traces are readable by their owner only. They hold the program's name but not its arguments, which may be
/// secret. An existing FILE is replaced if it is a regular file. A link is refused, and so is, without
/// --output, a file that is not a trace. Other files get names that are free: trace-2.html beside a
/// trace.html.
#[derive(Args)]
#[command(after_help = "Examples:
  offlock trace -- ruby app.rb
  offlock trace -o web.offlock --report -- bundle exec puma
  offlock trace --for 30s -- gunicorn app:app
  offlock trace --signal URG -- python server.py
  offlock trace --keep 30s --dump-on-hold 100ms -- puma
  offlock trace -o run.pftrace -- python -m app")]
pub(crate) struct Trace {
    /// Where to write the trace; with another tool's extension (.pftrace, …) it is exported as well [default:
    /// trace.offlock]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Stop recording after this time, such as 30s or 5m, and show the summary; the program goes on
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse, conflicts_with = "signal")]
    pub(crate) period: Option<Duration>,
    /// Begin to record when the program gets this signal, such as URG, and stop when it gets it again; each
    /// recording has a file of its own. The program must not use the signal itself
    #[arg(long, value_name = "SIGNAL", value_parser = signals::parse)]
    pub(crate) signal: Option<signals::Named>,
    /// Keep only the last seconds, such as 30s, in at most 64 MiB, and write them when the program ends; with
    /// --signal also at each signal
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "period")]
    pub(crate) keep: Option<Duration>,
    /// With --keep: also write them when a thread has waited for the lock this long, at most 10 times and once a
    /// minute
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "keep")]
    pub(crate) dump_on_wait: Option<Duration>,
    /// With --keep: also write them when a thread has held the lock this long while another one waited
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "keep")]
    pub(crate) dump_on_hold: Option<Duration>,
    /// Keep the program's arguments in the trace
    #[arg(long)]
    pub(crate) keep_arguments: bool,
    /// Record which code held the lock once a thread has waited this long: 1ms, 200us, or off [default: 1ms]
    #[arg(long, value_name = "WAIT", value_parser = stacks)]
    pub(crate) stacks: Option<String>,
    /// Also write the report page beside the trace
    #[arg(long)]
    pub(crate) report: bool,
    /// Print no summary after the program has ended
    #[arg(long, overrides_with = "summary")]
    pub(crate) no_summary: bool,
    /// Print a summary to standard error after the program has ended (the default)
    #[arg(long, overrides_with = "no_summary")]
    pub(crate) summary: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// Run a Ruby or Python program so that `offlock record`, `top` and `dump` can look at it
///
/// The program replaces this command. Nothing is recorded until `offlock record` connects. Children that are Ruby or
/// Python programs as well, such as a server's workers, can be recorded by their own process ids.
#[derive(Args)]
#[command(after_help = "Example:
  offlock run -- bundle exec puma &
  offlock record --for 10s")]
pub(crate) struct Run {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// Take a trace from a running process, and show its summary
///
/// The process must have been started with `offlock run`, or load offlock with OFFLOCK_LIVE=1 in its environment, or call
/// `publish`. It must belong to the same user, unless root records it. It goes on, and nothing of it is changed.
#[derive(Args)]
#[command(after_help = "Examples:
  offlock record 4711 --for 30s --report
  offlock record 4711 -o web.offlock --no-summary")]
pub(crate) struct Record {
    /// The process; may be left out if only one can be recorded
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) recording: Recording,
}

/// Take a trace from a running Python process that was not started for it, and show its summary
///
/// For CPython 3.14 and newer on Linux. The process loads offlock as soon as its main thread executes Python code, and
/// publishes itself; from then on `offlock record` can record it, too. It must belong to the same user, unless root
/// attaches, and the system must allow one process to change another.
#[derive(Args)]
#[command(after_help = "Example:
  offlock attach 4711 --for 30s --report")]
pub(crate) struct Attach {
    /// The process
    pub(crate) pid: u32,
    #[command(flatten)]
    pub(crate) recording: Recording,
}

/// What to record, and where to.
#[derive(Args)]
pub(crate) struct Recording {
    /// How long to record
    #[arg(long = "for", visible_alias = "seconds", value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    pub(crate) period: Duration,
    /// Where to write the trace, replacing an existing regular file [default: record.offlock, record-2.offlock, …]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Record which code held the lock once a thread has waited this long: 1ms, 200us, or off [default: 1ms]
    #[arg(long, value_name = "WAIT", value_parser = stacks)]
    pub(crate) stacks: Option<String>,
    /// Also write the report page beside the trace
    #[arg(long)]
    pub(crate) report: bool,
    /// Print no summary
    #[arg(long)]
    pub(crate) no_summary: bool,
}

/// Watch what the threads of running processes do: which hold the lock, which wait, and behind which code
///
/// The processes must have been started with `offlock run`, or load offlock with OFFLOCK_LIVE=1 in their environment, or
/// call `publish`, and belong to the same user. While they are watched, they are recorded. What is shown is exact; it is
/// up to a second old.
#[derive(Args)]
#[command(after_help = "Examples:
  offlock top                Watch all processes that can be recorded
  offlock top 4711           Watch a server and its workers
  offlock top -b -n 1 4711   Print the numbers once")]
pub(crate) struct Top {
    /// Watch these processes and those that they have started [default: all that can be recorded]
    #[arg(value_name = "PID")]
    pub(crate) pids: Vec<u32>,
    /// The time between two refreshes
    #[arg(short = 'd', long, visible_alias = "delay", value_name = "TIME", value_parser = duration::parse_positive, default_value = "1s")]
    pub(crate) interval: Duration,
    /// How many of the last seconds the numbers are of
    #[arg(long, value_name = "TIME", value_parser = duration::parse_positive, default_value = "5s")]
    pub(crate) window: Duration,
    /// Print the numbers as text, as is done if standard output is not a terminal
    #[arg(short, long, visible_alias = "plain")]
    pub(crate) batch: bool,
    /// Stop after this many refreshes
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: Option<u64>,
    /// Show which code held the lock once a thread has waited this long: 1ms, 200us, or off [default: 1ms]
    #[arg(long, value_name = "WAIT", value_parser = stacks)]
    pub(crate) stacks: Option<String>,
}

/// Print what the threads of running processes do, with their stacks
///
/// Each thread is shown with its relation to the lock (it holds the lock, waits for it, runs without it, or is idle), and the
/// functions that it executes, innermost first; of asyncio also the task. The processes must have been started with `offlock
/// run`, or load offlock with OFFLOCK_LIVE=1 in their environment, or call `publish`, and belong to the same user. They go on,
/// and nothing of them is changed. Stacks of Python are read even while a thread does not give up the lock; those of Ruby are
/// missing then.
#[derive(Args)]
#[command(after_help = "Examples:
  offlock dump            All processes that can be recorded
  offlock dump 4711
  offlock dump --json 4711 | jq '.threads[] | select(.state == \"waiting\")'")]
pub(crate) struct Dump {
    /// The processes [default: all that can be recorded]
    #[arg(value_name = "PID")]
    pub(crate) pids: Vec<u32>,
    /// How long to wait for stacks, if a thread does not give up the lock
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s")]
    pub(crate) timeout: Duration,
    /// Print JSON, times in nanoseconds; of several processes an object with the list `processes`
    #[arg(long)]
    pub(crate) json: bool,
}

/// Refuses a text that traced programs would not understand.
fn stacks(text: &str) -> Result<String, String> {
    stacks_from(text).map(|_| text.to_owned())
}

/// Show what traces say, in numbers and in words
///
/// Of several traces, such as those of a server's processes, the summary of the process that lost most time to
/// the lock is shown, and a line for each of the others.
#[derive(Args)]
#[command(after_help = "Examples:
  offlock summary trace.offlock
  offlock summary trace.offlock trace.*.offlock
  offlock summary --json trace.offlock | jq .findings
  ssh server cat trace.offlock | offlock summary -")]
pub(crate) struct Summary {
    #[command(flatten)]
    pub(crate) window: Window,
    /// The traces, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON, times in nanoseconds; of several traces an object with the list `processes`
    #[arg(long)]
    pub(crate) json: bool,
}

/// The part of a recording that is meant.
#[derive(Args, Default)]
pub(crate) struct Window {
    /// Leave out what happened before this time since the start of the recording, such as 10s
    #[arg(long, visible_alias = "since", value_name = "TIME", value_parser = duration::parse)]
    pub(crate) from: Option<Duration>,
    /// Leave out what happened after this time since the start of the recording
    #[arg(long, visible_alias = "until", value_name = "TIME", value_parser = duration::parse)]
    pub(crate) to: Option<Duration>,
    /// Show only the threads whose names contain this, and the others as one; may be repeated
    #[arg(long = "thread", value_name = "NAME")]
    pub(crate) threads: Vec<String>,
    /// Show only the code that ran in functions whose names contain this, or was called by them; may be repeated
    #[arg(long = "function", value_name = "NAME")]
    pub(crate) functions: Vec<String>,
}

/// Write the report page of a trace, or of the processes of a run: one HTML file that needs no network
#[derive(Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) window: Window,
    /// The traces: several processes of a run are shown on one axis of time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where to write, replacing an existing regular file, or - for standard output; by default beside the
    /// first trace, under a name that is free
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// Compare two traces of a program, from before and after a change
///
/// Of a run of several processes, those that lost most are compared.
#[derive(Args)]
#[command(after_help = "Examples:
  offlock compare before.offlock after.offlock --report both.html
  offlock compare before*.offlock --after after*.offlock")]
pub(crate) struct Compare {
    /// The traces from before and after the change; with --after, all traces from before
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The traces from after the change
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) after: Vec<PathBuf>,
    /// Print JSON, times in nanoseconds
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write a page with both reports, or - for standard output instead of the text
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// Write a trace in the format of another tool
#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) window: Window,
    /// The trace
    pub(crate) file: PathBuf,
    /// The format; by default the one that the output's extension implies
    #[arg(short, long)]
    pub(crate) format: Option<ExportFormat>,
    /// Where to write, replacing an existing regular file, or - for standard output; by default beside the
    /// trace, under a name that is free
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Print a script that makes a shell complete this command's arguments
#[derive(Args)]
#[command(after_help = "Examples:
  offlock completions bash > ~/.local/share/bash-completion/completions/offlock
  offlock completions fish > ~/.config/fish/completions/offlock.fish")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the manual page, or that of a subcommand
#[derive(Args)]
#[command(after_help = "Example:
  offlock man trace | man -l -")]
pub(crate) struct Man {
    /// The subcommand
    pub(crate) subcommand: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For ui.perfetto.dev (.pftrace)
    Perfetto,
    /// The JSON of the gem gvl-tracing (.gvl.json)
    GvlTracing,
    /// For profiler.firefox.com (.firefox.json)
    Firefox,
    /// The code that others waited for, for speedscope.app (.speedscope.json)
    Speedscope,
    /// The code that others waited for, as collapsed stacks for flame graph tools (.folded)
    Collapsed,
    /// The summary as JSON, times in nanoseconds, and the stacks (.json)
    Json,
    /// The report page (.html)
    Html,
}

impl ExportFormat {
    pub(crate) fn core(self) -> Format {
        match self {
            Self::Perfetto => Format::Perfetto,
            Self::GvlTracing => Format::GvlTracing,
            Self::Firefox => Format::Firefox,
            Self::Speedscope => Format::Speedscope,
            Self::Collapsed => Format::Collapsed,
            Self::Json => Format::Json,
            Self::Html => Format::Html,
        }
    }
}
