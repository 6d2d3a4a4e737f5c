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
        let mut table = Table::new(&["function", "lost", "longest hold", "waited", "line"]);
        table.0.extend(lines.iter().take(ROWS).map(|line| self.blamed_row(line)));
        table.fit(look.width, &["waited", "longest hold"]);
        table.write_with_texts(&["waited", "line"], look, out);
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
        vec![printable(&line.function), lost, duration(line.longest_hold), waited.join(", "), place(line)]
    }
}

/// The file and the line. A long path is cut in the middle.
fn place(line: &BlamedLine) -> String {
    const LONGEST: usize = 32;
    let file = shorten(&printable_line(&line.file), LONGEST);
    if line.line == 0 { file } else { format!("{file}:{}", line.line) }
}
