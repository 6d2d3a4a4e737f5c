//! Tables for the terminal.

use std::fmt::Write;

use super::look::{FAINT, Look};

/// The greatest length of a name in a table.
const LONGEST: usize = 28;
/// The least that is left of a name so that a table fits.
const SHORTEST: usize = 12;

/// A name without control characters and at most 28 characters long: names are data of the traced program.
pub(in crate::trace) fn printable(name: &str) -> String {
    shorten(&printable_line(name), LONGEST)
}

/// A text without control characters, for a terminal: names are data of the traced program.
pub fn printable_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Cuts a text of more than `longest` characters in the middle: names differ at their ends.
pub(super) fn shorten(text: &str, longest: usize) -> String {
    let count = text.chars().count();
    if count <= longest {
        return text.to_owned();
    }
    let kept = longest.saturating_sub(1);
    let end = kept / 2;
    let letters = text.chars();
    letters.clone().take(kept - end).chain(['…']).chain(letters.skip(count - end)).collect()
}

/// Rows of cells, the first of them the head. The first column is aligned to the left, the others to the right.
pub(in crate::trace) struct Table(pub(super) Vec<Vec<String>>);

impl Table {
    pub(in crate::trace) fn new(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|cell| (*cell).to_owned()).collect()])
    }

    /// Makes the table fit: leaves out the columns of `least`, the least important one first, beginning with
    /// those in which all cells are nothing, and then shortens the cells of the first column.
    pub(super) fn fit(&mut self, width: usize, least: &[&str]) {
        for only_empty in [true, false] {
            for name in least {
                if self.width() <= width {
                    return;
                }
                self.leave_out(name, only_empty);
            }
        }
        let longest = self.widths().first().copied().unwrap_or(0);
        let room = longest.saturating_sub(self.width().saturating_sub(width)).max(SHORTEST);
        self.0.iter_mut().for_each(|row| row[0] = shorten(&row[0], room));
    }

    /// Cuts the cells of these columns, one column after the other, until the table is `width` wide or something is left
    /// of each only.
    pub(super) fn cut_columns(&mut self, width: usize, names: &[&str]) {
        for name in names {
            let Some(column) = self.0[0].iter().position(|cell| cell == name) else { continue };
            let room = self.widths()[column].saturating_sub(self.width().saturating_sub(width)).max(SHORTEST);
            self.0.iter_mut().for_each(|row| row[column] = shorten(&row[column], room));
        }
    }

    fn leave_out(&mut self, name: &str, only_empty: bool) {
        let Some(column) = self.0[0].iter().position(|cell| cell == name) else { return };
        let is_nothing = |cell: &str| matches!(cell, "" | "0" | "0%" | "0 ns");
        if !only_empty || self.0[1..].iter().all(|row| is_nothing(&row[column])) {
            self.0.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }

    /// The length of the longest cell of each column.
    fn widths(&self) -> Vec<usize> {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.0.iter().filter_map(move |row| row.get(column));
        let width = |column: usize| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
        (0..columns).map(width).collect()
    }

    /// The length of the longest line.
    fn width(&self) -> usize {
        self.widths().iter().map(|width| width + 2).sum()
    }

    pub(in crate::trace) fn write(&self, out: &mut String) {
        self.write_as(Look::default(), out);
    }

    pub(super) fn write_as(&self, look: Look, out: &mut String) {
        self.write_with_texts(&[], look, out);
    }

    /// The columns of these names are texts, which are aligned to the left, too.
    pub(super) fn write_with_texts(&self, texts: &[&str], look: Look, out: &mut String) {
        let widths = self.widths();
        let is_text: Vec<bool> = self.0[0].iter().map(|name| texts.contains(&name.as_str())).collect();
        for (number, row) in self.0.iter().enumerate() {
            let line = line(row, &widths, &is_text);
            out.push_str(&if number == 0 { look.paint(FAINT, &line) } else { line });
            out.push('\n');
        }
    }

    /// Writes a table of three columns without its head. The last column is prose.
    pub(super) fn write_prose(&self, look: Look, out: &mut String) {
        let widths = self.widths();
        for row in &self.0[1..] {
            let line = line(&row[..2], &widths, &[false; 2]);
            let _ = writeln!(out, "{line}  {}", look.hang(line.chars().count() + 2, &row[2]));
        }
    }
}

fn line(row: &[String], widths: &[usize], is_text: &[bool]) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        let _ = match column {
            0 => write!(line, "  {cell:<width$}"),
            _ if is_text[column] => write!(line, "  {cell:<width$}"),
            _ => write!(line, "  {cell:>width$}"),
        };
    }
    line.trim_end().to_owned()
}

/// Says how many of the rows are not shown.
pub(in crate::trace) fn write_rest(out: &mut String, rows: usize, shown: usize) {
    if rows > shown {
        let _ = writeln!(out, "  … and {} more", rows - shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(shorten("worker", 6), "worker");
        assert_eq!(shorten("worker 1", 7), "wor…r 1");
        assert_eq!(printable("a\nb"), "a\u{fffd}b");
        let long = "ThreadPoolExecutor-indexing-of-all-documents_3";
        assert_eq!(printable(long), "ThreadPoolExec…l-documents_3");
        assert_eq!(printable(long).chars().count(), LONGEST);
    }

    #[test]
    fn columns_are_left_out_until_the_table_fits() {
        let table = |width| {
            let mut table = Table::new(&["name", "a", "b", "gc"]);
            table.0.push(["a long name indeed", "1 ms", "2 ms", "0%"].map(str::to_owned).into());
            table.fit(width, &["a", "gc", "b"]);
            table.0
        };
        assert_eq!(table(40)[0], ["name", "a", "b", "gc"]);
        assert_eq!(table(35)[0], ["name", "a", "b"], "a column of nothing goes first");
        assert_eq!(table(28)[0], ["name", "b"], "then the least important one");
        assert_eq!(table(20), [["name"], ["a long name indeed"]]);
        assert_eq!(table(14), [["name"], ["a long…ndeed"]]);
        assert_eq!(table(1)[1], ["a long…ndeed"], "something is left of a name");
    }

    #[test]
    fn columns_of_text_are_cut_until_the_table_fits() {
        let table = |width| {
            let mut table = Table::new(&["name", "line", "task"]);
            table.0.push(
                ["name", "/srv/app/web/server.py:1234", "Task-* (fetch_orders)"].map(str::to_owned).into(),
            );
            table.cut_columns(width, &["task", "line"]);
            table
        };
        for width in [36, 40, 50, 58] {
            assert_eq!(table(width).width(), width);
        }
        assert_eq!(table(50).0[1][1..], ["/srv/app/web/server.py:1234", "Task-*…rders)"]);
        assert_eq!(table(1).width(), 34, "something is left of each");
    }
}
