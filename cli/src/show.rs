//! The commands that read traces: summary, report, compare and export.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::slice;

use offlock_core::trace::{
    Comparison, Format, Process, Recording, Run, Summary, Timeline, size_text, write_comparison, write_report,
};

use crate::arguments::{self, Compare, Export, ExportFormat, Report, Window};
use crate::failure::Failure;
use crate::{files, look, progress};

/// Before an export of so many events, its size is said: other tools cannot open very large files.
const MANY_EVENTS: u64 = 1_000_000;

pub(crate) fn summary(arguments: &arguments::Summary) -> Result<(), Failure> {
    let run = run(&arguments.files, &arguments.window)?;
    let text = if arguments.json { run.to_json() + "\n" } else { run.to_text_as(look::of(&io::stdout())) };
    files::write(Path::new("-"), |out| out.write_all(text.as_bytes()))
}

/// The processes that wrote the traces.
fn run(traces: &[PathBuf], window: &Window) -> Result<Run, Failure> {
    let process = |file: &PathBuf| {
        let (recording, timeline) = files::read(file, window)?;
        Ok(Process { file: file.display().to_string(), summary: summed_up(&recording, &timeline) })
    };
    Ok(Run::new(traces.iter().map(process).collect::<Result<_, _>>()?))
}

pub(crate) fn summed_up(recording: &Recording, timeline: &Timeline) -> Summary {
    progress::during("summing up", None, |_| Summary::of(recording, timeline))
}

pub(crate) fn report(arguments: &Report) -> Result<(), Failure> {
    let read = |file: &PathBuf| files::read(file, &arguments.window);
    let processes: Vec<_> = arguments.files.iter().map(read).collect::<Result<_, _>>()?;
    let processes: Vec<_> = processes.iter().map(|(recording, timeline)| (recording, timeline)).collect();
    let output = files::write_or_beside(arguments.output.as_deref(), &arguments.files[0], "html", |out| {
        write_report(&processes, out)
    })?;
    if arguments.open { open(&output) } else { Ok(()) }
}

/// Shows a page in the user's browser.
fn open(page: &Path) -> Result<(), Failure> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    match Command::new(opener).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::with_file(page, &format!("{opener} could not open it ({status})"))),
        Err(error) => Err(Failure::with_file(page, &format!("{opener} could not open it ({error})"))),
    }
}

pub(crate) fn compare(arguments: &Compare) -> Result<(), Failure> {
    let (before_file, after_file) = compared(arguments)?;
    let (before, before_timeline) = files::read(&before_file, &Window::default())?;
    let (after, after_timeline) = files::read(&after_file, &Window::default())?;
    let piped = arguments.report.as_deref() == Some(Path::new("-"));
    if !piped {
        let summaries = (summed_up(&before, &before_timeline), summed_up(&after, &after_timeline));
        let comparison = Comparison::of(&summaries.0, &summaries.1);
        let text = if arguments.json { comparison.to_json() + "\n" } else { comparison.to_text() };
        files::write(Path::new("-"), |out| out.write_all(text.as_bytes()))?;
    }
    let Some(page) = &arguments.report else { return Ok(()) };
    let title = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let titles = (title(&before_file), title(&after_file));
    files::write(page, |out| {
        write_comparison((&titles.0, &before, &before_timeline), (&titles.1, &after, &after_timeline), out)
    })?;
    files::say_where(page);
    Ok(())
}

/// The traces to compare: of each run that of the process that lost most.
fn compared(arguments: &Compare) -> Result<(PathBuf, PathBuf), Failure> {
    let (before, after) = match arguments.files.as_slice() {
        [before, after] if arguments.after.is_empty() => (slice::from_ref(before), slice::from_ref(after)),
        _ if arguments.after.is_empty() => {
            let message = "compare two traces, or several from before with several behind --after";
            return Err(Failure { message: message.into(), status: 2 });
        }
        before => (before, arguments.after.as_slice()),
    };
    Ok((worst(before)?, worst(after)?))
}

fn worst(traces: &[PathBuf]) -> Result<PathBuf, Failure> {
    if let [alone] = traces {
        return Ok(alone.clone());
    }
    let run = run(traces, &Window::default())?;
    let worst = PathBuf::from(&run.processes()[0].file);
    eprintln!("offlock: {}: lost most of {} processes", worst.display(), traces.len());
    Ok(worst)
}

pub(crate) fn export(arguments: &Export) -> Result<(), Failure> {
    let by_name = arguments.output.as_deref().and_then(Format::of_path);
    let Some(format) = arguments.format.map(ExportFormat::core).or(by_name) else {
        return Err(Failure {
            message: "which format? Give --format, or an output file whose extension implies one".into(),
            status: 2,
        });
    };
    let (recording, timeline) = files::read(&arguments.file, &arguments.window)?;
    let content = |out: &mut dyn io::Write| format.write(&recording, &timeline, out);
    if recording.events >= MANY_EVENTS {
        let size = progress::during("measuring", None, |_| size_of(content));
        eprintln!("offlock: the file will have {}; --from and --to export a part", size_text(size));
    }
    files::write_or_beside(arguments.output.as_deref(), &arguments.file, format.extension(), content)
        .map(drop)
}

/// The size of what `content` writes.
fn size_of(content: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> u64 {
    struct Counter(u64);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    content(&mut counter).expect("a counter takes all bytes");
    counter.0
}
