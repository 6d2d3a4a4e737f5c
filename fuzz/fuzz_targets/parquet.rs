#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| offlock_fuzz::parquet::run(bytes));
