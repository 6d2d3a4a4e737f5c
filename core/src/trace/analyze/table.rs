//! Tables for the terminal.

use std::fmt::Write;

/// A name without control characters and at most 28 characters long: names are data of the traced program.
pub(in crate::trace) fn printable(name: &str) -> String {
    const LONGEST: usize = 28;
    let clean = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut shown: String = clean.clone().take(LONGEST).collect();
    if clean.count() > LONGEST {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// Rows of cells. The first column is aligned to the left, the others to the right.
pub(in crate::trace) struct Table(pub(super) Vec<Vec<String>>);

impl Table {
    pub(in crate::trace) fn new(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|cell| (*cell).to_owned()).collect()])
    }

    pub(in crate::trace) fn write(&self, out: &mut String) {
        self.write_with_prose(usize::MAX, out);
    }

    /// Columns from `prose` on are texts, which are aligned to the left, too.
    pub(super) fn write_with_prose(&self, prose: usize, out: &mut String) {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.0.iter().filter_map(move |row| row.get(column));
        let width = |column: usize| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.0 {
            let mut line = String::from("  ");
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match column {
                    0 => write!(line, "{cell:<width$}"),
                    _ if column >= prose => write!(line, "  {cell:<width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// Says how many of the rows are not shown.
pub(in crate::trace) fn write_rest(out: &mut String, rows: usize, shown: usize) {
    if rows > shown {
        let _ = writeln!(out, "  … and {} more", rows - shown);
    }
}
