//! Runs every target on the seeds, and for a few seconds on mutations of these: `FUZZ_SECONDS` for all
//! targets together (default: 24). `FUZZ_SEED` repeats a run. An input that fails is written to `artifacts/`.

use std::io::Write;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, io};

use offlock_fuzz::TARGETS;

/// The longest input in bytes, as in `script/fuzz`.
const LONGEST: usize = 4096;

fn here(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// Returns the seeds of a target: written ones, and those of former failures, whose names describe the
/// failure.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(here("seeds").join(target)).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn kept_inputs() {
    for (name, run) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no kept input");
        for (path, bytes) in seeds {
            assert!(catch_unwind(|| run(&bytes)).is_ok(), "{}", path.display());
        }
        for empty in [&[][..], &[0], &[255; 64]] {
            run(empty);
        }
    }
}

#[test]
fn mutations_of_kept_inputs() {
    let number = |name: &str| env::var(name).ok().map(|value| value.parse::<u64>().expect(name));
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = number("FUZZ_SEED").unwrap_or(time);
    let each = Duration::from_secs(number("FUZZ_SECONDS").unwrap_or(24)) / TARGETS.len() as u32;
    for (name, run) in TARGETS {
        let mut random = Random(seed);
        let seeds: Vec<_> = seeds(name).into_iter().map(|(_, bytes)| bytes).collect();
        let (until, mut count) = (Instant::now() + each, 0);
        while Instant::now() < until {
            let input = mutated(&seeds, &mut random);
            if catch_unwind(|| run(&input)).is_err() {
                let left = here("artifacts").join(format!("{name}-{seed}-{count}"));
                fs::create_dir_all(here("artifacts")).and_then(|()| fs::write(&left, &input)).unwrap();
                panic!("FUZZ_SEED={seed}: {name} failed at input {count}: {}", left.display());
            }
            count += 1;
        }
        // Not `println`, whose output the test runner hides if the test passes.
        writeln!(io::stderr(), "fuzz: FUZZ_SEED={seed}: {name}: {count} inputs").unwrap();
    }
}

/// Returns one of the inputs, or the beginning of one and the end of another, changed in a few places.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.of(seeds).clone();
    if random.below(4) == 0 {
        let other = random.of(seeds);
        input.truncate(random.below(input.len() + 1));
        input.extend_from_slice(&other[random.below(other.len() + 1)..]);
    }
    for _ in 0..random.below(6) {
        let at = random.below(input.len() + 1);
        let end = input.len().min(at + random.below(8));
        match random.below(6) {
            0 => input.insert(at, random.byte()),
            1 => drop(input.drain(at..end)),
            2 => {
                let again = input[at..end].repeat(1 + random.below(20));
                input.splice(at..at, again);
            }
            3 => input.truncate(at),
            _ if at == input.len() => {}
            4 => input[at] ^= 1 << random.below(8),
            _ => input[at] = random.byte(),
        }
    }
    input.truncate(LONGEST);
    input
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Returns, in half of the cases, a byte with a meaning in one of the formats.
    fn byte(&mut self) -> u8 {
        const MEANINGFUL: &[u8] = b"\0\x01\x1f\x7f\x80\x85\x8b\x90\xa8\xc1\xc2\xdf\xe2\xff\n\r\t, a";
        if self.below(2) == 0 { *self.of(MEANINGFUL) } else { self.next() as u8 }
    }
}
