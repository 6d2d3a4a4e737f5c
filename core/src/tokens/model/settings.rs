//! The parts of a `tokenizer.json` besides the vocabulary: what they ask for, or that it is not here.

use super::form::Form;
use super::pattern;
use super::tokenizer::Trim;
use super::{invalid, unsupported};
use crate::tokens::split::cuts::Keep;
use crate::tokens::split::gpt2;
use crate::tokens::{Error, TokenId};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// The most parts of a list, and the most tokens of a template. Models have a few; each costs time or memory for
/// every text.
const MOST: usize = 1024;

/// A list of parts that may be written as one part, as a `Sequence`, or as nothing.
fn parts<'v>(value: &'v Value, list: &str) -> Result<Vec<&'v Value>, Error> {
    let parts = flat(value, list);
    if parts.len() > MOST { Err(unsupported(format!("more than {MOST} {list}"))) } else { Ok(parts) }
}

fn flat<'v>(value: &'v Value, list: &str) -> Vec<&'v Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Object(part) if kind(value) == "Sequence" => match part.get(list) {
            Some(Value::Array(parts)) => parts.iter().flat_map(|part| flat(part, list)).collect(),
            _ => Vec::new(),
        },
        part => vec![part],
    }
}

fn kind(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or("of no type")
}

fn parsed<'v, T: Deserialize<'v>>(part: &'v Value) -> Result<T, Error> {
    T::deserialize(part).map_err(|error| invalid(format!("{}: {error}", kind(part))))
}

/// The normalization forms, in order.
pub(super) fn forms(normalizer: &Value) -> Result<Vec<Form>, Error> {
    let form = |part| match kind(part) {
        "NFC" => Ok(Form::Nfc),
        "NFD" => Ok(Form::Nfd),
        "NFKC" => Ok(Form::Nfkc),
        "NFKD" => Ok(Form::Nfkd),
        other => Err(unsupported(format!("the normalizer {other}"))),
    };
    parts(normalizer, "normalizers")?.into_iter().map(form).collect()
}

#[derive(Deserialize)]
struct ByteLevel {
    #[serde(default = "yes")]
    add_prefix_space: bool,
    #[serde(default = "yes")]
    trim_offsets: bool,
    #[serde(default = "yes")]
    use_regex: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Split {
    pattern: SplitPattern,
    behavior: String,
    #[serde(default)]
    invert: bool,
}

#[derive(Deserialize)]
enum SplitPattern {
    String(String),
    Regex(String),
}

/// How a text is cut.
#[derive(Default)]
pub(super) struct PreTokenizer {
    pub(super) cuts: Vec<(String, Keep)>,
    pub(super) blank_before: bool,
    is_byte_level: bool,
}

/// The cuts of a model.
pub(super) fn pre_tokenizer(pre_tokenizer: &Value) -> Result<PreTokenizer, Error> {
    let mut made = PreTokenizer::default();
    for part in parts(pre_tokenizer, "pretokenizers")? {
        if made.is_byte_level {
            return Err(unsupported(format!("the pre-tokenizer {} after ByteLevel", kind(part))));
        }
        match kind(part) {
            "ByteLevel" => made.byte_level(&parsed(part)?)?,
            "Split" => made.cuts.push(cut(parsed(part)?)?),
            "Digits" => {
                let one = part.get("individual_digits").and_then(Value::as_bool).unwrap_or(false);
                let pattern = if one { r"\p{N}" } else { r"\p{N}+" };
                made.cuts.push((pattern.to_owned(), Keep::Everything));
            }
            other => return Err(unsupported(format!("the pre-tokenizer {other}"))),
        }
    }
    if made.is_byte_level { Ok(made) } else { Err(unsupported("a vocabulary that is not byte-level")) }
}

impl PreTokenizer {
    fn byte_level(&mut self, part: &ByteLevel) -> Result<(), Error> {
        self.is_byte_level = true;
        if part.add_prefix_space && !self.cuts.is_empty() {
            return Err(unsupported("add_prefix_space after another pre-tokenizer"));
        }
        self.blank_before = part.add_prefix_space;
        if part.use_regex {
            self.cuts.push((gpt2::PLAIN.to_owned(), Keep::Everything));
        }
        Ok(())
    }
}

fn cut(split: Split) -> Result<(String, Keep), Error> {
    let pattern = match split.pattern {
        SplitPattern::String(text) => fancy_regex::escape(&text).into_owned(),
        SplitPattern::Regex(pattern) => {
            pattern::check(&pattern)?;
            pattern
        }
    };
    let keep = match (&*split.behavior, split.invert) {
        ("Isolated", _) => Keep::Everything,
        ("Removed", true) => Keep::Matches,
        ("Removed", false) => Keep::Gaps,
        (other, _) => return Err(unsupported(format!("the pre-tokenizer Split with the behavior {other}"))),
    };
    Ok((pattern, keep))
}

#[derive(Deserialize)]
struct Template {
    single: Vec<Piece>,
    special_tokens: HashMap<String, SpecialToken>,
}

#[derive(Deserialize)]
enum Piece {
    SpecialToken { id: String },
    Sequence { id: String },
}

#[derive(Deserialize)]
struct SpecialToken {
    ids: Vec<TokenId>,
}

/// The tokens before and after a text, each with its number.
#[derive(Deserialize)]
struct Ends {
    cls: (String, TokenId),
    sep: (String, TokenId),
}

/// What is done to the tokens of a text.
#[derive(Default)]
pub(super) struct PostProcessor {
    pub(super) before: Vec<TokenId>,
    pub(super) after: Vec<TokenId>,
    pub(super) trim: Option<Trim>,
}

/// The template of a model, and what becomes of offsets.
pub(super) fn post_processor(post_processor: &Value) -> Result<PostProcessor, Error> {
    let mut made = PostProcessor::default();
    for part in parts(post_processor, "processors")? {
        match kind(part) {
            "ByteLevel" => {
                let part: ByteLevel = parsed(part)?;
                made.trim = part.trim_offsets.then_some(Trim { keeps_first: part.add_prefix_space });
            }
            "TemplateProcessing" => made.add(&parsed(part)?)?,
            "BertProcessing" => made.surround(&parsed(part)?),
            "RobertaProcessing" => {
                made.surround(&parsed(part)?);
                let part: ByteLevel = parsed(part)?;
                made.trim = part.trim_offsets.then_some(Trim { keeps_first: part.add_prefix_space });
            }
            other => return Err(unsupported(format!("the post-processor {other}"))),
        }
    }
    Ok(made)
}

impl PostProcessor {
    fn surround(&mut self, ends: &Ends) {
        self.before.insert(0, ends.cls.1);
        self.after.push(ends.sep.1);
    }

    fn add(&mut self, template: &Template) -> Result<(), Error> {
        let (mut before, mut after, mut seen) = (Vec::new(), Vec::new(), false);
        for piece in &template.single {
            match piece {
                Piece::Sequence { id } if id == "A" && !seen => seen = true,
                Piece::Sequence { .. } => {
                    return Err(unsupported("a template that does not have its text once"));
                }
                Piece::SpecialToken { id } => {
                    let token = template.special_tokens.get(id);
                    let token =
                        token.ok_or_else(|| invalid(format!("the template has no special token {id:?}")))?;
                    let tokens = if seen { &mut after } else { &mut before };
                    if tokens.len() + token.ids.len() > MOST {
                        return Err(unsupported(format!("a template of more than {MOST} tokens")));
                    }
                    tokens.extend_from_slice(&token.ids);
                }
            }
        }
        if !seen {
            return Err(unsupported("a template that does not have its text once"));
        }
        before.append(&mut self.before);
        self.before = before;
        self.after.append(&mut after);
        Ok(())
    }
}

/// Refuses any decoder but that of byte-level vocabularies.
pub(super) fn check_decoder(decoder: &Value) -> Result<(), Error> {
    match &*parts(decoder, "decoders")? {
        [only] if kind(only) == "ByteLevel" => Ok(()),
        [] => Err(unsupported("no decoder")),
        parts => {
            let other = parts.iter().find(|part| kind(part) != "ByteLevel").unwrap_or(&parts[0]);
            Err(unsupported(format!("the decoder {}", kind(other))))
        }
    }
}
