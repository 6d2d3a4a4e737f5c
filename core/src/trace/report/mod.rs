//! The report page: one HTML file that needs no network, built from `viewer/`.

mod code;
mod pack;

use std::cmp::Reverse;
use std::io::{self, Write};

use pack::Place;

use super::analyze::compare::Comparison;
use super::analyze::recording::Recording;
use super::analyze::run::Loss;
use super::analyze::summary::Summary;
use super::analyze::timeline::Timeline;

/// The page without data, which `npm run build` in `viewer/` writes here.
const PAGE: &str = include_str!("page.html");
/// The marker at which the data is inserted.
const PLACE: &str = "<!--data-->";

/// Writes the report of one process, or of several processes of one run on one axis of time. The process that lost
/// most leads; see [`Run`](super::Run).
///
/// # Errors
///
/// Errors of `out`, or of compressing the data.
pub fn write_report(processes: &[(&Recording, &Timeline)], out: &mut dyn Write) -> io::Result<()> {
    let first = processes.iter().map(|(recording, _)| recording.start).min().unwrap_or(0);
    let with_summary = |&(recording, timeline)| (recording, timeline, Summary::of(recording, timeline));
    let mut all: Vec<(&Recording, &Timeline, Summary)> = processes.iter().map(with_summary).collect();
    let busiest = Loss::busiest(all.iter().map(|(_, _, summary)| summary));
    all.sort_by_cached_key(|(_, _, summary)| Reverse(Loss::of(summary, busiest)));
    let pack = |(recording, timeline, summary): &(&Recording, &Timeline, Summary)| {
        let (title, offset) = (title(recording, processes), recording.start - first);
        pack::pack(recording, timeline, summary, Place { title: &title, offset })
    };
    let traces: Vec<Vec<u8>> = all.iter().map(pack).collect::<io::Result<_>>()?;
    write_page(&traces, None, out)
}

/// Writes the report that compares two recordings, each with a title of its own.
///
/// # Errors
///
/// Errors of `out`, or of compressing the data.
pub fn write_comparison(
    before: (&str, &Recording, &Timeline),
    after: (&str, &Recording, &Timeline),
    out: &mut dyn Write,
) -> io::Result<()> {
    let summaries = [before, after].map(|(_, recording, timeline)| Summary::of(recording, timeline));
    let comparison = Comparison::of(&summaries[0], &summaries[1]);
    let pack = |(title, recording, timeline): (&str, &Recording, &Timeline), summary| {
        pack::pack(recording, timeline, summary, Place { title, offset: 0 })
    };
    let traces = [pack(before, &summaries[0])?, pack(after, &summaries[1])?];
    write_page(&traces, Some(&comparison), out)
}

/// What the recording is of: the program, with the process's number if there are several recordings, and with its own
/// if several are of the process.
fn title(recording: &Recording, all: &[(&Recording, &Timeline)]) -> String {
    let name = recording.about("command").or_else(|| recording.about("language")).unwrap_or("Trace");
    let Some(pid) = recording.about("pid").filter(|_| all.len() > 1) else { return name.to_owned() };
    let of_process = || all.iter().map(|(other, _)| other).filter(|other| other.about("pid") == Some(pid));
    if of_process().count() == 1 {
        return format!("{name} ({pid})");
    }
    let number = 1 + of_process().filter(|other| other.start < recording.start).count();
    format!("{name} ({pid}, recording {number})")
}

/// The data is in elements that the browser neither shows nor runs, as base64, which has no character that
/// could end them.
fn write_page(traces: &[Vec<u8>], comparison: Option<&Comparison>, out: &mut dyn Write) -> io::Result<()> {
    let (before, after) = PAGE.split_once(PLACE).unwrap_or((PAGE, ""));
    out.write_all(before.as_bytes())?;
    for (number, trace) in traces.iter().enumerate() {
        write_data(&format!("offlock-trace-{number}"), trace, out)?;
    }
    if let Some(comparison) = comparison {
        write_data("offlock-comparison", &serde_json::to_vec(comparison)?, out)?;
    }
    out.write_all(after.as_bytes())
}

fn write_data(id: &str, data: &[u8], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "<script type=\"text/plain\" id=\"{id}\">")?;
    out.write_all(&pack::base64(data))?;
    out.write_all(b"</script>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_told_apart_by_their_process_and_their_number() {
        let recording = |pid: &str, start| Recording {
            about: vec![("command".into(), "app.py".into()), ("pid".into(), pid.into())],
            start,
            end: start,
            ..Recording::default()
        };
        let all = [recording("7", 300), recording("7", 100), recording("8", 200)];
        let timelines = all.each_ref().map(Timeline::of);
        let pairs: Vec<_> = all.iter().zip(&timelines).collect();
        let titles: Vec<String> = all.iter().map(|recording| title(recording, &pairs)).collect();
        assert_eq!(titles, ["app.py (7, recording 2)", "app.py (7, recording 1)", "app.py (8)"]);
        assert_eq!(title(&all[0], &pairs[..1]), "app.py");
    }
}
