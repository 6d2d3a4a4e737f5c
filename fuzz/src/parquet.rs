//! Parquet files of any bytes: an error or rows, and rows that are written again are read as before.

use std::sync::Arc;

use offlock_core::Task;
use offlock_core::parquet::{Error, File, Kept, Rows, Writer};

/// The most rows that are read: a file of a few bytes can claim any number of missing values.
const ROWS: u64 = 2000;

/// The input is the file.
pub fn run(input: &[u8]) {
    let Ok((kept, columns)) = read(input.to_vec()) else { return };
    let mut writer = Writer::begin(Vec::new(), &kept, "input_ids").expect("memory");
    for row in 0..columns.first().map_or(0, Rows::len) {
        writer
            .row(columns.iter().map(|rows| rows.get(row)), &[1, 2, 3], &Task::new())
            .expect("no long values");
    }
    let (kept_again, columns_again) = read(writer.finish().expect("memory")).expect("it was just written");
    assert!(kept == kept_again && columns == columns_again);
}

/// The flat columns of a file, and their rows.
fn read(bytes: Vec<u8>) -> Result<(Vec<Kept>, Vec<Rows>), Error> {
    let task = Task::new();
    let mut file = File::open(Arc::new(bytes), &task)?;
    let (mut kept, mut indices) = (Vec::new(), Vec::new());
    for (index, leaf) in file.schema().columns().iter().enumerate() {
        if let Some(column) = Kept::of(file.schema(), leaf) {
            kept.push(column);
            indices.push(index);
        }
    }
    let mut columns: Vec<_> = indices.iter().map(|_| Rows::default()).collect();
    let mut left = ROWS;
    while let Some(mut group) = file.next_group(&indices)? {
        let rows = group.rows.min(left);
        left -= rows;
        for (column, read) in group.columns.iter_mut().zip(&mut columns) {
            (0..rows).try_for_each(|_| column.next(read, &task))?;
        }
    }
    Ok((kept, columns))
}
