//! The code that others waited for, as text for the terminal.

use std::fmt::Write;

use super::look::{Look, TITLE};
use super::summary::{BlamedCode, BlamedLine, Summary, per};
use super::table::{Table, printable, printable_line, shorten};
use super::units::{duration, percent};

/// The most lines that are shown.
const ROWS: usize = 10;

/// Which of a line's groups are named.
const GROUPS: usize = 2;

impl Summary {
    /// Writes the section, unless there is nothing to say.
    pub(super) fn write_blamed_code(&self, look: Look, out: &mut String) {
        let BlamedCode { lines, known, unknown } = &self.code;
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{}", look.paint(TITLE, "Code that others waited for"));
        let has_tasks = lines.iter().take(ROWS).any(|line| !line.tasks.is_empty());
        let head = ["function", "lost", "longest hold", "waited", "line", "task"];
        let mut table = Table::new(if has_tasks { &head } else { &head[..5] });
        let row = |line| {
            let mut row = self.blamed_row(line);
            row.truncate(table.0[0].len());
            row
        };
        let rows: Vec<_> = lines.iter().take(ROWS).map(row).collect();
        table.0.extend(rows);
        table.fit(look.width, &["waited", "longest hold"]);
        table.cut_columns(look.width, &["task", "line"]);
        table.write_with_texts(&["waited", "line", "task"], look, out);
        if lines.len() > ROWS {
            let _ = writeln!(out, "  … and {} more lines", lines.len() - ROWS);
        }
        let share = per(*unknown, known + unknown);
        if share >= 0.0005 {
            let _ =
                writeln!(out, "  {} of the waiting was behind holds too short for a stack", percent(share));
        }
    }

    fn blamed_row(&self, line: &BlamedLine) -> Vec<String> {
        let group = |(group, _): &(usize, u64)| self.groups.get(*group).map(|group| printable(&group.name));
        let mut waited: Vec<String> = line.groups.iter().take(GROUPS).filter_map(group).collect();
        if line.groups.len() > GROUPS {
            waited.push(format!("{} more", line.groups.len() - GROUPS));
        }
        let lost = format!("{} ({})", duration(line.lost), percent(per(line.lost, self.code.known)));
        let hold = duration(line.longest_hold);
        vec![printable(&line.function), lost, hold, waited.join(", "), place(line), tasks(line)]
    }
}

/// The task for which others waited longest, and how many more are known.
fn tasks(line: &BlamedLine) -> String {
    match line.tasks.as_slice() {
        [] => String::new(),
        [(task, _)] => printable(task),
        [(task, _), ..] => format!("{}, others", printable(task)),
    }
}

/// The file and the line. A long path is cut in the middle.
fn place(line: &BlamedLine) -> String {
    const LONGEST: usize = 32;
    let file = shorten(&printable_line(&line.file), LONGEST);
    if line.line == 0 { file } else { format!("{file}:{}", line.line) }
}
