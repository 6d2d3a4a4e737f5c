//! Comparison of the code that others waited for, function by function.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::change::{Better, is_notable};
use super::summary::Summary;
use super::table::{Table, printable, printable_line, shorten, write_rest};
use super::units::duration;

/// The functions to which more or less time was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CodeChanges {
    /// Those to which more time is lost now first, the worst one at the beginning. None unless both recordings have
    /// stacks.
    pub functions: Vec<FunctionChange>,
    /// Which recordings have no stacks: `before`, `after`.
    pub without_stacks: Vec<&'static str>,
}

/// What others lost to a function in both recordings, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionChange {
    /// Its qualified name.
    pub function: String,
    /// The path of its file, empty if it has none.
    pub file: String,
    /// In the first recording.
    pub before: u64,
    /// In the second.
    pub after: u64,
    /// The change in words.
    pub change: String,
}

/// The most rows that are shown.
const ROWS: usize = 10;
/// The greatest length of a path.
const LONGEST: usize = 32;

impl CodeChanges {
    pub(super) fn of(before: &Summary, after: &Summary) -> Self {
        let sides = [("before", before), ("after", after)];
        let without_stacks: Vec<_> =
            sides.into_iter().filter(|(_, summary)| !has_stacks(summary)).map(|(side, _)| side).collect();
        let functions = if without_stacks.is_empty() { functions(before, after) } else { Vec::new() };
        Self { functions, without_stacks }
    }

    pub(super) fn write(&self, out: &mut String) {
        if let [side] = self.without_stacks[..] {
            let sentence = format!("The trace from {side} has no stacks, so the code is not compared.");
            out.push_str(&format!("\n{sentence}\n"));
        }
        if self.functions.is_empty() {
            return;
        }
        out.push_str("\nCode that others waited for\n");
        let mut table = Table::new(&["function", "lost before", "after", "change", "file"]);
        table.0.extend(self.greatest().map(FunctionChange::row));
        table.write_with_texts(&["file"], super::look::Look::default(), out);
        write_rest(out, self.functions.len(), ROWS);
    }

    /// The greatest changes, in their order.
    fn greatest(&self) -> impl Iterator<Item = &FunctionChange> {
        let size = |change: &FunctionChange| change.after.abs_diff(change.before);
        let mut sizes: Vec<(usize, u64)> = self.functions.iter().map(size).enumerate().collect();
        sizes.sort_by_key(|(_, size)| Reverse(*size));
        sizes.truncate(ROWS);
        sizes.sort_unstable();
        sizes.into_iter().map(|(index, _)| &self.functions[index])
    }
}

/// Whether stacks were recorded. Where all waits were short, there are none to see.
fn has_stacks(summary: &Summary) -> bool {
    summary.about("stacks").is_some() || summary.code.known > 0
}

fn functions(before: &Summary, after: &Summary) -> Vec<FunctionChange> {
    let mut all: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    for (side, summary) in [before, after].into_iter().enumerate() {
        for line in &summary.code.lines {
            all.entry((&line.function, &line.file)).or_default()[side] += line.lost;
        }
    }
    let change = |((function, file), [before, after]): ((&str, &str), [u64; 2])| FunctionChange {
        function: function.to_owned(),
        file: file.to_owned(),
        before,
        after,
        change: Better::Less.change(before as f64, after as f64),
    };
    let mut changes: Vec<FunctionChange> = all.into_iter().map(change).collect();
    changes.retain(|change| is_notable(change.before as f64, change.after as f64));
    changes.sort_by_key(|change| Reverse(i128::from(change.after) - i128::from(change.before)));
    changes
}

impl FunctionChange {
    fn row(&self) -> Vec<String> {
        let file = shorten(&printable_line(&self.file), LONGEST);
        let [before, after] = [self.before, self.after].map(duration);
        vec![printable(&self.function), before, after, self.change.clone(), file]
    }
}
