//! The numbers of a run, as a table or as JSON.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use offlock_core::pipeline::{Done, Lengths, Summary, Totals};
use serde_json::{Value, json};

use super::progress::duration;
use crate::failure::Failure;
use crate::files;

/// How many shards the table shows.
const SHOWN: usize = 20;

/// The percentiles of documents' lengths that are shown.
const PERCENTILES: [f64; 4] = [10.0, 50.0, 90.0, 99.0];

pub(super) fn print(summary: &Summary, model: &str, time: Duration, as_json: bool) -> Result<(), Failure> {
    let text =
        if as_json { format!("{:#}\n", value(summary, model, time)) } else { table(summary, model, time) };
    files::write(Path::new("-"), |out| out.write_all(text.as_bytes()))
}

fn value(summary: &Summary, model: &str, time: Duration) -> Value {
    let totals = summary.totals();
    let shards: Vec<Value> = summary.shards.iter().map(shard).collect();
    let mut value = numbers(&totals);
    value["model"] = model.into();
    value["seconds"] = time.as_secs_f64().into();
    value["resumed"] = summary.resumed.into();
    value["tokens_per_document"] = lengths(&totals.lengths);
    value["shards"] = shards.into();
    value
}

fn numbers(totals: &Totals) -> Value {
    let Totals { documents, bytes, tokens, errors, .. } = totals;
    json!({ "documents": documents, "bytes": bytes, "tokens": tokens, "errors": errors })
}

fn shard(done: &Done) -> Value {
    let mut value = numbers(&done.totals);
    value["path"] = done.path.display().to_string().into();
    value["files"] = json!(done.files);
    value
}

fn lengths(lengths: &Lengths) -> Value {
    let mut value = json!({ "longest": lengths.longest() });
    for percent in PERCENTILES {
        value[format!("p{percent}")] = lengths.percentile(percent).into();
    }
    value
}

fn table(summary: &Summary, model: &str, time: Duration) -> String {
    let totals = summary.totals();
    let mut rows = vec![["shard", "documents", "bytes", "tokens", "errors"].map(str::to_owned)];
    rows.extend(
        summary.shards.iter().take(SHOWN).map(|done| row(&done.path.display().to_string(), &done.totals)),
    );
    if summary.shards.len() > SHOWN {
        rows.push([
            format!("… and {} more", summary.shards.len() - SHOWN),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
        ]);
    }
    if summary.shards.len() > 1 {
        rows.push(row("all", &totals));
    }
    let mut text = aligned(&rows);
    let _ = writeln!(text, "\n{}", in_words(&totals, model));
    let rate = totals.bytes as f64 / time.as_secs_f64().max(1e-9) / 1e6;
    let _ = match summary.resumed {
        0 => writeln!(text, "{}, {rate:.1} MB of text per second", duration(time.as_secs_f64())),
        resumed => writeln!(
            text,
            "{}; an earlier run had finished {resumed} of {} shards",
            duration(time.as_secs_f64()),
            summary.shards.len()
        ),
    };
    text
}

fn in_words(totals: &Totals, model: &str) -> String {
    let lengths = &totals.lengths;
    let at = PERCENTILES.map(|percent| format!("{} (p{percent})", grouped(lengths.percentile(percent))));
    format!("tokens of {model} in a document: {}, {} at most", at.join(", "), grouped(lengths.longest()))
}

fn row(name: &str, totals: &Totals) -> [String; 5] {
    let Totals { documents, bytes, tokens, errors, .. } = totals;
    [name.to_owned(), grouped(*documents), grouped(*bytes), grouped(*tokens), grouped(*errors)]
}

/// Rows with aligned columns, the first one to the left.
fn aligned(rows: &[[String; 5]]) -> String {
    let widths: [usize; 5] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let [name, numbers @ ..] = row;
        let _ = write!(text, "{name:<width$}", width = widths[0]);
        for (number, width) in numbers.iter().zip(&widths[1..]) {
            let _ = write!(text, "  {number:>width$}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// A number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 12_345_678].map(grouped), ["0", "999", "1,000", "12,345,678"]);
    }
}
