//! Parquet files that pyarrow has written, the same with damage, and files that are written here.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use offlock_core::Task;
use offlock_core::parquet::{Error, File, Kept, Named, Rows, Writer};
use proptest::prelude::*;
use serde_json::Value;

/// Notes the largest piece of memory that a thread has asked for.
struct Noting;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(size: usize) {
    LARGEST.set(LARGEST.get().max(size));
}

// SAFETY: The system's allocator does everything.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: The caller keeps the same rules.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: The caller keeps the same rules.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: The caller keeps the same rules.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

/// The values of a column.
type Values = Vec<Option<Vec<u8>>>;

/// The name, the content and the texts of each file.
fn files() -> Vec<(String, Vec<u8>, Values)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/parquet/files.jsonl");
    let lines = std::fs::read_to_string(path).unwrap();
    let text = |text: &Value| text.as_str().map(|text| text.as_bytes().to_owned());
    lines
        .lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let hex = case["bytes"].as_str().unwrap();
            let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
            let texts = case["texts"].as_array().unwrap().iter().map(text);
            (case["name"].as_str().unwrap().to_owned(), bytes.collect(), texts.collect())
        })
        .collect()
}

/// The values of all columns that have at most one in a row, up to so many rows.
fn read(bytes: &[u8], most: u64) -> Result<Vec<Values>, Error> {
    let task = Task::new();
    let mut file = File::open(Arc::new(bytes.to_owned()), &task)?;
    let leaves = file.schema().columns().iter().enumerate();
    let columns: Vec<usize> = leaves.filter(|(_, leaf)| !leaf.is_repeated).map(|(index, _)| index).collect();
    let mut values = vec![Vec::new(); columns.len()];
    let mut left = most;
    while let Some(mut group) = file.next_group(&columns)? {
        let count = group.rows.min(left);
        left -= count;
        for (column, values) in group.columns.iter_mut().zip(&mut values) {
            let mut rows = Rows::default();
            (0..count).try_for_each(|_| column.next(&mut rows, &task))?;
            values.extend((0..rows.len()).map(|row| rows.get(row).map(<[u8]>::to_vec)));
        }
    }
    Ok(values)
}

#[test]
fn what_pyarrow_writes_is_read() {
    for (name, bytes, texts) in files() {
        let read = read(&bytes, u64::MAX).unwrap_or_else(|error| panic!("{name}: {error}"));
        let ids: Vec<_> = (0..texts.len() as u64).map(|id| Some(id.to_le_bytes().to_vec())).collect();
        assert_eq!(read, [ids, texts], "{name}");
    }
}

#[test]
fn columns_are_found_by_their_names() {
    for (name, bytes, _) in files() {
        let file = File::open(Arc::new(bytes), &Task::new()).unwrap();
        let find =
            |keys: &[&str]| file.schema().find(&keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>());
        assert_eq!(find(&["text"]), Named::Column(1), "{name}");
        for nothing in [&["schema"][..], &["text", "text"], &["schema", "text"], &[""]] {
            assert_eq!(find(nothing), Named::Nothing, "{name}");
        }
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * end as u128) >> 64) as usize
    }
}

/// Whatever is wrong is an error, and no memory is asked for on the word of a file of a few KB.
#[test]
fn damage_is_an_error() {
    const MOST: usize = 4 << 20;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (name, bytes, _) in files() {
        LARGEST.set(0);
        let mut failed = 0;
        for number in 0..1500 {
            let mut damaged = bytes.clone();
            // Half of the damage is in the metadata, which is at the end.
            let from = if number % 2 == 0 { bytes.len() * 2 / 3 } else { 0 };
            for _ in 0..=random.below(3) {
                let at = from + random.below(damaged.len() - from);
                damaged[at] = match random.below(3) {
                    0 => random.below(256) as u8,
                    1 => damaged[at] ^ 1 << random.below(8),
                    _ => [0, 0xff, 0x7f, 0x80, 0x1c, 0x19][random.below(6)],
                };
            }
            failed += u32::from(read(&damaged, 1000).is_err());
        }
        assert!(failed > 100, "{name}: {failed}");
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end], 1000).is_err(), "{name}, cut off at {end}");
        }
        let largest = LARGEST.get();
        assert!(largest <= MOST, "{name}: {largest} bytes");
    }
}

#[test]
fn a_wrong_checksum_is_an_error() {
    let (_, mut bytes, _) = files().into_iter().find(|(name, ..)| name == "checksums").unwrap();
    let at = bytes.windows(5).position(|window| window == b"again").unwrap();
    bytes[at] ^= 1;
    let error = read(&bytes, 100).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

#[test]
fn interrupts_end_the_reading() {
    let stopped = Task::new();
    stopped.stop();
    for (name, bytes, texts) in files() {
        assert!(matches!(File::open(Arc::new(bytes.clone()), &stopped), Err(Error::Stopped)), "{name}");
        let mut file = File::open(Arc::new(bytes), &Task::new()).unwrap();
        if let Some(mut group) = file.next_group(&[1]).unwrap().filter(|_| !texts.is_empty()) {
            let ended = group.columns[0].next(&mut Rows::default(), &stopped);
            assert!(matches!(ended, Err(Error::Stopped)), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_is_as_before(
        rows in proptest::collection::vec((proptest::option::of(".{0,40}"), 0..5_usize), 0..300),
        large in 0..3_usize,
    ) {
        let task = Task::new();
        let text = "much ".repeat(large * 100_000);
        let mut writer = Writer::begin(Vec::new(), &[Kept::text("a"), Kept::text("b")], "input_ids").unwrap();
        for (value, tokens) in &rows {
            let values = [value.as_ref().map(String::as_bytes), Some(text.as_bytes())];
            let values = if *tokens == 0 { values } else { [values[0], None] };
            writer.row(values, &vec![7; *tokens], &task).unwrap();
        }
        let read = read(&writer.finish().unwrap(), u64::MAX).unwrap();
        let expected = |second: bool| rows.iter().map(|(value, tokens)| {
            let value = value.as_ref().map(|value| value.as_bytes().to_vec());
            if second { (*tokens == 0).then(|| text.clone().into_bytes()) } else { value }
        }).collect::<Vec<_>>();
        prop_assert!(read == [expected(false), expected(true)]);
    }
}
