//! Draws the view into a buffer, which is the terminal's screen or text for a pipe.

use std::time::Duration;

use offlock_core::trace::{State, duration_text, percent_text};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, Widget};

use super::processes::{HISTORY, Process};
use super::sample::{self, Sample};
use super::view::View;

/// The width from which the tables have all their columns.
const WIDE: u16 = 110;
/// The share of waiting that is called bad.
const MUCH: f64 = 0.1;
/// The heights of a bar, in eighths of a row.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const HEAD: Style = Style::new().add_modifier(Modifier::DIM);
const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);
const BAD: Style = Style::new().fg(Color::Red);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

const HELP: &str = "\
Up Down j k   choose the process whose threads are shown
s F6          order by waiting, running, off-lock, name (W P O N: directly)
g F5          threads whose names differ in a number as one row
/ F4          show only threads with this in their names; c: all
PgUp PgDn     scroll the threads
p Space       stop the display; the processes go on
+ -           refresh more, or less, often
r             refresh now
q F10 Ctrl-C  quit

held   share of the time for which a thread held the lock
lost   share of a thread's active time that it waited behind others
behind the thread behind which it waited longest
code   what held the lock meanwhile, and for how long others waited";

/// What is drawn.
pub(super) struct Scene<'a> {
    pub(super) processes: &'a [&'a Process],
    pub(super) view: &'a View,
    pub(super) window: Duration,
    pub(super) interval: Duration,
    /// Whether a line with the keys is of use.
    pub(super) has_keys: bool,
}

/// The rows of the head and of the title of a process.
const HEAD_AND_TITLE: [u16; 2] = [1, 2];

/// The most rows of a part.
const MOST_ROWS: u16 = u16::MAX / 4;

/// The rows that the parts of the view take.
#[derive(Clone, Copy)]
struct Heights {
    processes: u16,
    threads: u16,
    code: u16,
    keys: u16,
}

impl Heights {
    fn sum(&self) -> u16 {
        HEAD_AND_TITLE.iter().sum::<u16>() + self.processes + self.threads + self.code + self.keys
    }
}

impl Scene<'_> {
    pub(super) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let heights = self.heights(area.height);
        let [head, list, title, threads, code, _, keys] = Layout::vertical([
            Constraint::Length(HEAD_AND_TITLE[0]),
            Constraint::Length(heights.processes),
            Constraint::Length(HEAD_AND_TITLE[1]),
            Constraint::Length(heights.threads),
            Constraint::Length(heights.code),
            Constraint::Min(0),
            Constraint::Length(heights.keys),
        ])
        .areas(area);
        self.head().render(head, buffer);
        self.processes(list, buffer);
        if let Some(process) = self.chosen() {
            Paragraph::new(vec![Line::default(), about(process)]).render(title, buffer);
        }
        if let Some(sample) = self.sample() {
            self.threads(sample, threads, buffer);
            code_lines(sample, code, buffer);
        }
        if self.has_keys {
            self.keys().render(keys, buffer);
        }
        if self.view.shows_help {
            help(area, buffer);
        }
    }

    /// The rows that everything takes.
    pub(super) fn height(&self) -> u16 {
        self.heights(u16::MAX).sum()
    }

    /// How the rows of the screen are divided. If they are too few for everything, processes and code get a third at
    /// most, and threads the rest.
    fn heights(&self, all: u16) -> Heights {
        let rows = |count: usize| u16::try_from(count).unwrap_or(MOST_ROWS).min(MOST_ROWS);
        let (threads, lines) =
            self.sample().map_or((0, 0), |sample| (self.view.rows(sample).len() + 1, sample.lines.len()));
        let wanted = Heights {
            processes: rows(self.processes.len() + 1),
            threads: rows(threads),
            code: if lines == 0 { 0 } else { rows(lines + 2) },
            keys: u16::from(self.has_keys),
        };
        if wanted.sum() <= all {
            return wanted;
        }
        let (processes, code) = (wanted.processes.min((all / 3).max(2)), wanted.code.min((all / 3).max(3)));
        let left = all.saturating_sub(Heights { processes, threads: 0, code, ..wanted }.sum());
        Heights { processes, threads: wanted.threads.min(left), code, ..wanted }
    }

    fn sample(&self) -> Option<&Sample> {
        self.chosen().and_then(|process| process.sample.as_ref())
    }

    fn chosen(&self) -> Option<&Process> {
        let pids: Vec<u32> = self.processes.iter().map(|process| process.pid).collect();
        self.processes.get(self.view.chosen(&pids)).copied()
    }

    fn head(&self) -> Line<'static> {
        let count = match self.processes.len() {
            1 => "1 process".to_owned(),
            count => format!("{count} processes"),
        };
        let mut spans = vec![
            Span::styled("offlock top", TITLE),
            Span::raw(format!(" · {count} · last {:?} · every {:?}", self.window, self.interval)),
        ];
        if self.view.is_paused {
            spans.push(Span::styled(" · paused", BAD));
        }
        Line::from(spans)
    }

    fn processes(&self, area: Rect, buffer: &mut Buffer) {
        let is_wide = area.width >= WIDE;
        let minute = if is_wide { HISTORY as u16 } else { 20 };
        let widths = [
            Constraint::Length(7),
            Constraint::Length(5),
            Constraint::Length(5),
            Constraint::Length(7),
            Constraint::Length(7),
            Constraint::Length(minute),
            Constraint::Min(10),
        ];
        let head = [right("pid"), right("held"), right("lost"), right("waiting"), right("threads")]
            .into_iter()
            .chain([Line::raw(format!("held, last {minute} s")), "command".into()]);
        let chosen = self.chosen().map(|process| process.pid);
        let skipped = self.skipped(chosen, usize::from(area.height.saturating_sub(1)));
        let rows = self.processes.iter().skip(skipped).map(|process| {
            let row = process_row(process, usize::from(minute));
            if Some(process.pid) == chosen && self.has_keys { row.style(CHOSEN) } else { row }
        });
        Table::new(rows, widths).header(Row::new(head).style(HEAD)).column_spacing(1).render(area, buffer);
    }

    /// How many processes are left out above, so that the chosen one is among the `room` that are shown.
    fn skipped(&self, chosen: Option<u32>, room: usize) -> usize {
        let place = self.processes.iter().position(|process| Some(process.pid) == chosen).unwrap_or(0);
        (place + 1).saturating_sub(room.max(1))
    }

    fn threads(&self, sample: &Sample, area: Rect, buffer: &mut Buffer) {
        let is_wide = area.width >= WIDE;
        let mut widths = vec![Constraint::Fill(3), Constraint::Length(8)];
        widths.extend([Constraint::Length(7), Constraint::Length(7), Constraint::Length(8)]);
        let mut head: Vec<Line> = vec!["thread".into(), "now".into()];
        head.extend(["running", "waiting", "off-lock"].map(right));
        if is_wide {
            widths.extend([Constraint::Length(7), Constraint::Length(7)]);
            head.extend(["idle", "gc"].map(right));
        }
        widths.extend([Constraint::Length(6), Constraint::Length(9), Constraint::Fill(4)]);
        head.extend([right("lost"), right("longest"), "behind".into()]);
        let rows = self.view.rows(sample);
        let skipped = self.view.scrolled.min(rows.len().saturating_sub(1));
        let rows = rows.into_iter().skip(skipped).map(|row| thread_row(row, is_wide));
        Table::new(rows, widths).header(Row::new(head).style(HEAD)).column_spacing(1).render(area, buffer);
    }

    fn keys(&self) -> Line<'static> {
        let view = self.view;
        if view.is_typing {
            return Line::from(vec![
                Span::styled("Threads with: ", TITLE),
                Span::raw(format!("{}▏", view.filter)),
            ]);
        }
        let filter =
            if view.filter.is_empty() { String::new() } else { format!(" ({}, c: all)", view.filter) };
        let keys = format!(
            "q quit  h help  ↑↓ process  s order: {}  g {}  / filter{filter}  p pause",
            view.order.name(),
            if view.by_group { "threads" } else { "groups" },
        );
        Line::styled(keys, HEAD)
    }
}

/// What there is to say about the chosen process now.
fn about(process: &Process) -> Line<'static> {
    let now = match (process.trouble(), &process.sample) {
        (Some(trouble), _) => Span::styled(trouble, BAD),
        (None, Some(Sample { holder: Some(holder), waiting, .. })) => {
            Span::raw(format!("`{holder}` holds the lock, {waiting} wait"))
        }
        (None, _) => Span::raw("no thread holds the lock"),
    };
    let pid = Span::styled(format!("{}: ", process.pid), TITLE);
    Line::from(vec![pid, now, Span::styled(format!(" · {}", process.command()), HEAD)])
}

fn process_row(process: &Process, minute: usize) -> Row<'static> {
    let pid = right(process.pid.to_string());
    let trouble = process.trouble().filter(|_| process.sample.is_none());
    let trouble = trouble.map(|why| Span::styled(format!("{why} · "), BAD));
    let command = Line::from_iter(trouble.into_iter().chain([Span::raw(process.command().to_owned())]));
    let numbers = process.sample.as_ref().map_or_else(<[Line; 4]>::default, |sample| {
        [
            right(percent_text(sample.held)),
            right(percent_text(sample.lost)).style(badness(sample.lost)),
            right(sample.waiting.to_string()),
            right(sample.threads.len().to_string()),
        ]
    });
    Row::new([pid].into_iter().chain(numbers).chain([Line::raw(bars(&process.history(), minute)), command]))
}

fn thread_row(row: &sample::Row, is_wide: bool) -> Row<'static> {
    let share = |state: State| right(percent_text(row.shares[state as usize]));
    let name = if row.count == 1 { row.name.clone() } else { format!("{} ×{}", row.name, row.count) };
    let mut cells = vec![Line::raw(name), Line::styled(row.now.name(), color_of(row.now))];
    cells.extend([share(State::Running), share(State::Waiting), share(State::OffLock)]);
    if is_wide {
        let idle = row.shares[State::Idle as usize] + row.shares[State::Sleep as usize];
        cells.extend([right(percent_text(idle)), share(State::Gc)]);
    }
    cells.push(right(percent_text(row.lost)).style(badness(row.lost)));
    let longest = if row.longest_wait == 0 { String::new() } else { duration_text(row.longest_wait) };
    cells.push(right(longest));
    let behind = row.behind.as_ref().map(|(name, share)| format!("{name} ({})", percent_text(*share)));
    cells.push(Line::raw(behind.unwrap_or_default()));
    Row::new(cells)
}

/// The code that others waited for.
fn code_lines(sample: &Sample, area: Rect, buffer: &mut Buffer) {
    if sample.lines.is_empty() || area.height < 3 {
        return;
    }
    let [_, area] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let widths = [
        Constraint::Length(10),
        Constraint::Length(6),
        Constraint::Length(12),
        Constraint::Fill(3),
        Constraint::Fill(4),
    ];
    let head = [right("waited for"), right("share"), right("longest hold"), "code".into(), "line".into()];
    let rows = sample.lines.iter().map(|line| {
        let share = if sample.waited == 0 { 0.0 } else { line.lost as f64 / sample.waited as f64 };
        Row::new([
            right(duration_text(line.lost)),
            right(percent_text(share.min(1.0))),
            right(duration_text(line.longest_hold)),
            Line::raw(line.function.clone()),
            Line::raw(end_of(&line.place, usize::from(area.width) / 3)),
        ])
    });
    Table::new(rows, widths).header(Row::new(head).style(HEAD)).column_spacing(1).render(area, buffer);
}

/// A cell that is aligned to the right.
fn right<'a>(text: impl Into<Line<'a>>) -> Line<'a> {
    text.into().right_aligned()
}

/// The end of a path, which says more than its beginning.
fn end_of(path: &str, longest: usize) -> String {
    let count = path.chars().count();
    if count <= longest {
        return path.to_owned();
    }
    let kept = longest.saturating_sub(1);
    std::iter::once('…').chain(path.chars().skip(count - kept)).collect()
}

fn help(area: Rect, buffer: &mut Buffer) {
    let lines = HELP.lines().count() as u16;
    let width = HELP.lines().map(|line| line.chars().count()).max().unwrap_or(0) as u16;
    let inner = area.intersection(Rect {
        x: area.x + area.width.saturating_sub(width + 2) / 2,
        y: area.y + area.height.saturating_sub(lines + 2) / 2,
        width: width + 2,
        height: lines + 2,
    });
    Clear.render(inner, buffer);
    Paragraph::new(HELP).block(Block::bordered().title(" Help: any key goes back ")).render(inner, buffer);
}

/// The last shares as a row of bars, aligned to the right.
fn bars(shares: &[f64], width: usize) -> String {
    let shown = &shares[shares.len().saturating_sub(width)..];
    let bar = |share: &f64| BARS[((share * 8.0).ceil() as usize).min(8)];
    std::iter::repeat_n(' ', width - shown.len()).chain(shown.iter().map(bar)).collect()
}

fn badness(lost: f64) -> Style {
    if lost >= MUCH { BAD } else { Style::new() }
}

fn color_of(state: State) -> Style {
    let color = match state {
        State::Running => Color::Green,
        State::Waiting => Color::Red,
        State::OffLock => Color::Cyan,
        State::Gc => Color::Yellow,
        State::Idle | State::Sleep => return HEAD,
    };
    Style::new().fg(color)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_the_shares_and_end_with_the_last_one() {
        assert_eq!(bars(&[0.0, 0.01, 0.5, 1.0, 1.2], 7), "   ▁▄██");
        assert_eq!(bars(&[1.0, 0.5], 1), "▄");
        assert_eq!(bars(&[], 3), "   ");
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        assert_eq!(end_of("/srv/app/models/report.rb:12", 12), "…eport.rb:12");
        assert_eq!(end_of("a.rb:1", 12), "a.rb:1");
    }
}
