//! Medians over the rounds, as a table and in the form of `bench/result.schema.json`.

use crate::contestant::NAMES;
use crate::{ENCODINGS, MODELS};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// The speeds of the contestants in MB/s, one per round.
#[derive(Default, Clone)]
struct Speeds([Vec<f64>; NAMES.len()]);

impl Speeds {
    fn median(&self, name: usize) -> f64 {
        median(self.0[name].clone())
    }

    fn ratio(&self) -> f64 {
        let [ours, theirs] = &self.0;
        median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
    }
}

/// All figures, by cell, in the order of the measurements.
#[derive(Default)]
pub(crate) struct Figures(Vec<(String, Speeds)>);

impl Figures {
    /// Adds a line that a round printed.
    pub(crate) fn add(&mut self, encoding: &str, text: &str, line: &str) {
        let mut fields = line.split('\t');
        let mut field = || fields.next().expect("a line has four fields");
        let case = format!("{encoding}, {text}, {}", field());
        let mut number = || field().parse::<f64>().expect("a number");
        let (name, bytes, nanoseconds) = (number() as usize, number(), number());
        let place = self.0.iter().position(|(known, _)| *known == case).unwrap_or_else(|| {
            self.0.push((case, Speeds::default()));
            self.0.len() - 1
        });
        self.0[place].1.0[name].push(bytes / nanoseconds * 1e3);
    }

    /// The geometric means of the ratios: of each state, and of each state of an encoding.
    fn means(&self) -> Vec<(String, f64)> {
        let states = ["fresh", "seen", "cold", "whole, first", "whole, again"];
        let encodings: Vec<&str> = [""].into_iter().chain(ENCODINGS).chain(MODELS).collect();
        let all = states.iter().flat_map(|state| encodings.iter().map(|encoding| (*state, *encoding)));
        all.filter_map(|(state, encoding)| {
            let belongs = |case: &str| case.starts_with(encoding) && case.ends_with(&format!(", {state}"));
            let chosen = self.0.iter().filter(|(case, _)| belongs(case));
            let ratios: Vec<f64> = chosen.map(|(_, speeds)| speeds.ratio().ln()).collect();
            let label = if encoding.is_empty() { "all" } else { encoding };
            let mean = (ratios.iter().sum::<f64>() / ratios.len() as f64).exp();
            (!ratios.is_empty()).then(|| (format!("{label}, geometric mean, {state}"), mean))
        })
        .collect()
    }

    /// Prints a table.
    pub(crate) fn show(&self) {
        println!("{:44}{:>10}{:>11}{:>8}", "MB/s", NAMES[0], NAMES[1], "ratio");
        for (case, speeds) in &self.0 {
            let (ours, theirs) = (speeds.median(0), speeds.median(1));
            println!("{case:44}{ours:>10.1}{theirs:>11.1}{:>8.2}", speeds.ratio());
        }
        for (case, mean) in self.means() {
            println!("{case:65}{mean:>8.2}");
        }
    }

    pub(crate) fn json(&self) -> String {
        let mut rows = Vec::new();
        for (case, speeds) in &self.0 {
            for (name, contestant) in NAMES.iter().enumerate() {
                let speed = rounded(speeds.median(name), 1);
                rows.push(json!({"case": case, "contestant": contestant, "figures": {"MB_per_s": speed}}));
            }
            rows.push(row_of_ratio(case, speeds.ratio()));
        }
        rows.extend(self.means().iter().map(|(case, mean)| row_of_ratio(case, *mean)));
        let result = json!({
            "program": "bench/tokens/rust/src/main.rs",
            "time": now(),
            "machine": machine(),
            "versions": {"offlock": offlock_core_version(), "fastokens": "0.3.5", "rust": rust()},
            "method": method(),
            "rows": rows,
        });
        serde_json::to_string_pretty(&result).expect("a result is JSON")
    }
}

fn row_of_ratio(case: &str, ratio: f64) -> Value {
    json!({"case": case, "contestant": null, "figures": {"times_fastokens": rounded(ratio, 3)}})
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    (low + high) / 2.0
}

fn rounded(value: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(digits);
    (value * unit).round() / unit
}

/// The comment at the head of the program, on one line.
fn method() -> String {
    let head = include_str!("main.rs").lines().map_while(|line| line.strip_prefix("//!"));
    head.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn machine() -> Value {
    let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(": ")?.1.to_owned())
    });
    let cores = std::thread::available_parallelism().ok().map(usize::from);
    json!({"architecture": std::env::consts::ARCH, "cpu": cpu, "cores": cores, "remark": null})
}

/// The version of the workspace.
fn offlock_core_version() -> &'static str {
    let manifest = include_str!("../../../../Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    line.and_then(|line| line.strip_suffix('"')).expect("the workspace has a version")
}

fn rust() -> Option<String> {
    output("rustc", &["--version"]).and_then(|text| Some(text.split(' ').nth(1)?.to_owned()))
}

fn now() -> String {
    output("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]).expect("the time")
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
