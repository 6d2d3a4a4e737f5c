//! The commands that read traces: summary, report, compare and export.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use offlock_core::trace::{
    Comparison, Format, Process, Recording, Run, Summary, Timeline, write_comparison, write_report,
};

use crate::{Compare, Export, Failure, Report, files, look, progress};

pub(crate) fn summary(arguments: &crate::Summary) -> Result<(), Failure> {
    let run = Run::new(arguments.files.iter().map(|file| process(file)).collect::<Result<_, _>>()?);
    let text = if arguments.json { run.to_json() + "\n" } else { run.to_text_as(look::of(&io::stdout())) };
    files::write(Path::new("-"), |out| out.write_all(text.as_bytes()))
}

/// The process that wrote a trace.
fn process(file: &Path) -> Result<Process, Failure> {
    let (recording, timeline) = files::read(file)?;
    Ok(Process { file: file.display().to_string(), summary: summed_up(&recording, &timeline) })
}

pub(crate) fn summed_up(recording: &Recording, timeline: &Timeline) -> Summary {
    progress::during("summing up", None, |_| Summary::of(recording, timeline))
}

pub(crate) fn report(arguments: &Report) -> Result<(), Failure> {
    let (recording, timeline) = files::read(&arguments.file)?;
    let output = files::write_or_beside(arguments.output.as_deref(), &arguments.file, "html", |out| {
        write_report(&recording, &timeline, out)
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
    let (before, before_timeline) = files::read(&arguments.before)?;
    let (after, after_timeline) = files::read(&arguments.after)?;
    let piped = arguments.report.as_deref() == Some(Path::new("-"));
    if !piped {
        let summaries = (summed_up(&before, &before_timeline), summed_up(&after, &after_timeline));
        let text = Comparison::of(&summaries.0, &summaries.1).to_text();
        files::write(Path::new("-"), |out| out.write_all(text.as_bytes()))?;
    }
    let Some(page) = &arguments.report else { return Ok(()) };
    let title = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let titles = (title(&arguments.before), title(&arguments.after));
    files::write(page, |out| {
        write_comparison((&titles.0, &before, &before_timeline), (&titles.1, &after, &after_timeline), out)
    })?;
    files::say_where(page);
    Ok(())
}

pub(crate) fn export(arguments: &Export) -> Result<(), Failure> {
    let by_name = arguments.output.as_deref().and_then(Format::of_path);
    let Some(format) = arguments.format.map(crate::ExportFormat::core).or(by_name) else {
        return Err(Failure {
            message: "which format? Give --format, or an output file whose extension implies one".into(),
            status: 2,
        });
    };
    let (recording, timeline) = files::read(&arguments.file)?;
    let content = |out: &mut dyn std::io::Write| format.write(&recording, &timeline, out);
    files::write_or_beside(arguments.output.as_deref(), &arguments.file, format.extension(), content)
        .map(drop)
}
