//! The arguments of `offlock tokens`. The doc comments are the help texts.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use offlock_core::pipeline::{Eos, Format, OnError, Output, Part};
use offlock_core::tokens;

/// Count the tokens of documents, or write them to files for training
///
/// The documents are in shards: files of JSON lines, MessagePack maps or text, which may be compressed with gzip or
/// Zstandard, or of Parquet. They are read, decompressed, parsed and encoded in one pass on all processors. Memory does not grow with
/// the size of the shards.
#[derive(Args)]
pub(crate) struct Tokens {
    #[command(subcommand)]
    pub(crate) command: TokensCommand,
}

#[derive(Subcommand)]
pub(crate) enum TokensCommand {
    Count(Count),
    Write(Write),
}

/// Count documents and tokens, and show how long the documents are
#[derive(Args)]
#[command(after_help = "Examples:
  offlock tokens count corpus/
  offlock tokens count --encoding cl100k_base --json part-*.jsonl.gz | jq .tokens
  offlock tokens count --tokenizer models/Qwen3-8B --field content part-0.msgpack.zst
  offlock tokens count --format lines access.log.gz")]
pub(crate) struct Count {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write the tokens of each shard to files that a training program reads
///
/// A shard's files get their names when they are complete and on the disk, so whatever has such a name is whole. When all
/// shards are done, manifest.json lists the files with their checksums. After an interruption, even by kill -9 or a power
/// failure, --resume continues with the shards that were not finished.
#[derive(Args)]
#[command(after_help = "Examples:
  offlock tokens write corpus/ -o tokens/ --output megatron
  offlock tokens write corpus/ -o tokens/ --output megatron --resume
  offlock tokens write corpus/ -o tokens/ --output megatron --part $SLURM_ARRAY_TASK_ID/16
  offlock tokens write --tokenizer models/Llama-3 --eos-token '<|end_of_text|>' --output datatrove -o tokens/ part-*.jsonl.zst")]
pub(crate) struct Write {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The folder to write to, which is made if it is not there
    #[arg(short = 'o', long = "directory", visible_alias = "out", value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The format of the files
    #[arg(long, value_parser = outputs(), value_name = "FORMAT")]
    pub(crate) output: Output,
    /// Where the token that separates documents goes [default: where the format's own writer puts it: `prepend` for llmc,
    /// `append` for the others]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(crate) eos: Option<EosPlace>,
    /// The special token that separates documents
    #[arg(long, value_name = "TOKEN", default_value = "<|endoftext|>")]
    pub(crate) eos_token: String,
    /// Continue an earlier run: leave the shards alone that it finished
    #[arg(long)]
    pub(crate) resume: bool,
    /// Write a part of the shards, beside other processes that write the other parts: 3/16 is the fourth of 16, the first
    /// being 0/16. Finished shards are left alone. Once all parts are written, --resume without --part writes manifest.json
    #[arg(long, value_name = "INDEX/COUNT", value_parser = part)]
    pub(crate) part: Option<Part>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to read, and what to encode it with.
#[derive(Args)]
pub(crate) struct Input {
    /// The shards, or folders of shards
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The public encoding [default: o200k_base]
    #[arg(long, value_parser = PossibleValuesParser::new(tokens::names()), value_name = "NAME")]
    pub(crate) encoding: Option<String>,
    /// The OpenAI model whose encoding is used, such as gpt-4o
    #[arg(long, value_name = "NAME", conflicts_with = "encoding")]
    pub(crate) model: Option<String>,
    /// A model's tokenizer: its tokenizer.json or tekken.json, or the folder that has it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["encoding", "model"])]
    pub(crate) tokenizer: Option<PathBuf>,
    /// The field of a record that has the text; `data.text` is the field `text` of the object in `data`. Of
    /// Parquet, the column
    #[arg(long, value_name = "FIELD", default_value = "text")]
    pub(crate) field: String,
    /// What the shards hold: an object on each line, MessagePack maps, a text on each line, one text, or a table; with
    /// `auto` what the names say, or else the contents
    #[arg(long, value_parser = formats(), value_name = "FORMAT", default_value = AUTO)]
    pub(crate) format: FormatChoice,
    /// How many threads to use [default: one for each processor]
    #[arg(long, short = 'j', value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// The most bytes that one record may have, such as 1m or 2g; each thread may need this much memory, a few times
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64m")]
    pub(crate) max_doc_bytes: usize,
    /// What to do with a record that has no text or is not valid: stop, leave it out, or leave it out and say why
    #[arg(long, value_enum, value_name = "WHAT", default_value = "fail")]
    pub(crate) on_error: OnErrorChoice,
}

/// Where the token that separates documents goes.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum EosPlace {
    /// After each document
    Append,
    /// Before each document
    Prepend,
    /// Nowhere
    None,
}

impl EosPlace {
    pub(crate) fn core(self) -> Eos {
        match self {
            Self::Append => Eos::Append,
            Self::Prepend => Eos::Prepend,
            Self::None => Eos::None,
        }
    }
}

/// What to do with a record that fails.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OnErrorChoice {
    /// Stop
    Fail,
    /// Leave it out, and count it
    Skip,
    /// Leave it out, count it, and print what is wrong with it
    Report,
}

impl OnErrorChoice {
    pub(crate) fn core(self) -> OnError {
        match self {
            Self::Fail => OnError::Fail,
            Self::Skip => OnError::Skip,
            Self::Report => OnError::Report,
        }
    }
}

fn outputs() -> impl TypedValueParser<Value = Output> {
    named(&Output::NAMES)
}

/// The name of the format that the shards themselves tell.
const AUTO: &str = "auto";

/// A format, or none if the shards tell it.
#[derive(Clone, Copy)]
pub(crate) struct FormatChoice(pub(crate) Option<Format>);

fn formats() -> impl TypedValueParser<Value = FormatChoice> {
    let find = |text: String| Format::NAMES.iter().find(|(name, _)| *name == text).map(|(_, format)| *format);
    let names = Format::NAMES.iter().map(|(name, _)| *name);
    PossibleValuesParser::new([AUTO].into_iter().chain(names)).map(move |text| FormatChoice(find(text)))
}

/// Accepts one of these names.
fn named<T: Copy + Send + Sync + 'static>(
    names: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let find = |text: String| names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    PossibleValuesParser::new(names.iter().map(|(name, _)| *name))
        .try_map(move |text| find(text).ok_or("it is not one of the names"))
}

/// Reads a size in bytes: a number, with `k`, `m` or `g` for powers of 1024.
fn size(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, u32); 3] = [("k", 10), ("m", 20), ("g", 30)];
    let lower = text.to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(unit, power)| Some((lower.strip_suffix(unit)?, *power)));
    let (number, power) = unit.unwrap_or((&lower, 0));
    let bytes = number.trim().parse().ok().and_then(|number: usize| number.checked_mul(1 << power));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "it is not a size such as 500k, 64m or 2g".to_owned())
}

/// Reads which part of how many.
fn part(text: &str) -> Result<Part, String> {
    let numbers =
        text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    let part = numbers.and_then(|(index, count)| Part::new(index, count));
    part.ok_or_else(|| "it is not a part such as 0/2 or 1/2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{part, size};

    #[test]
    fn a_part_is_one_of_several() {
        assert!(part("0/1").is_ok() && part("15/16").is_ok());
        for wrong in ["", "1", "/", "1/1", "0/0", "-1/2", "a/b", "1/2/3"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_a_number_and_a_unit() {
        assert_eq!(
            (size("7"), size("2k"), size("64M"), size("1 g")),
            (Ok(7), Ok(2048), Ok(64 << 20), Ok(1 << 30))
        );
        for wrong in ["", "0", "-1", "1.5m", "k", "99999999999g"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
