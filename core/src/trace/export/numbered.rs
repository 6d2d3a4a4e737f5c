//! Tables whose rows other rows name by number, each row once.

use std::collections::HashMap;
use std::hash::Hash;

/// Rows with numbers from 0 on; equal rows have the same number.
pub(super) struct Numbered<T> {
    numbers: HashMap<T, usize>,
    rows: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), rows: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// The number of a row, which is added unless it is there.
    pub(super) fn number(&mut self, row: T) -> usize {
        if let Some(number) = self.numbers.get(&row) {
            return *number;
        }
        let number = self.rows.len();
        self.rows.push(row.clone());
        self.numbers.insert(row, number);
        number
    }

    /// All rows in the order of their numbers.
    pub(super) fn rows(&self) -> &[T] {
        &self.rows
    }
}
