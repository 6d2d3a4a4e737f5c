//! A model's tokenizer from its `tokenizer.json`.

use super::added::{Added, AddedTokens};
use super::normalize::{Form, Normalized};
use super::parts::Preparation;
use super::tokenizer::{Other, Tokenizer};
use super::{byte_level, invalid, reader, settings, unsupported};
use crate::memory::OutOfMemory;
use crate::task::Stretches;
use crate::tokens::split::Splitter;
use crate::tokens::vocabulary::{Listed, Vocabulary};
use crate::tokens::{Encoding, Error, TokenId};
use crate::{Task, memory};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default)]
    added_tokens: Vec<FileToken>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
    model: Model,
}

#[derive(Deserialize)]
struct FileToken {
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    normalized: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
}

#[derive(Deserialize)]
struct Model {
    r#type: Option<String>,
    #[serde(default)]
    vocab: Entries,
    #[serde(default)]
    merges: Vec<Pair>,
    dropout: Option<f32>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
}

/// The vocabulary: the entries of an object. Those of Unigram are an array, of which nothing is kept.
#[derive(Default)]
struct Entries(Vec<(String, TokenId)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vocabulary")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Entries, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Entries::default())
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A merge: two strings, or one with a blank between them.
struct Pair(String, String);

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Pair;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge of two tokens")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Pair, E> {
                let halves = text.split_once(' ').filter(|(_, right)| !right.contains(' '));
                let (left, right) =
                    halves.ok_or_else(|| E::custom(format!("the merge {text:?} has not two tokens")))?;
                Ok(Pair(left.to_owned(), right.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Pair, A::Error> {
                let mut next = || {
                    items.next_element()?.ok_or_else(|| serde::de::Error::custom("a merge has two tokens"))
                };
                Ok(Pair(next()?, next()?))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Tokenizer {
    /// The tokenizer that a `tokenizer.json`, or Mistral's `tekken.json`, describes.
    ///
    /// # Errors
    ///
    /// `Stopped`; `OutOfMemory`; `Unsupported` for what is not byte-level byte pair encoding, naming what is
    /// missing; `BadVocabulary` for a file that is not valid.
    pub fn from_json(json: &[u8], task: &Task<'_>) -> Result<Self, Error> {
        // Mistral's files begin with their configuration or their vocabulary; only theirs have token_bytes.
        if memchr::memmem::find(&json[..json.len().min(1 << 20)], b"\"token_bytes\"").is_some() {
            return Self::from_tekken(json, task);
        }
        Self::from_file(reader::read(json, task)?, task)
    }

    fn from_file(file: File, task: &Task<'_>) -> Result<Self, Error> {
        check_model(&file.model)?;
        let forms = settings::forms(&file.normalizer)?;
        let pre_tokenizer = settings::pre_tokenizer(&file.pre_tokenizer)?;
        let post_processor = settings::post_processor(&file.post_processor)?;
        settings::check_decoder(&file.decoder)?;
        let added = number(file.added_tokens, &file.model.vocab.0)?;
        let splitter = Splitter::of_cuts(pre_tokenizer.cuts)?;
        let (listed, foreign) = listed(file.model, task)?;
        let vocabulary = Arc::new(Vocabulary::listed(listed, task)?);
        let mut tokenizer = Self::assemble(splitter, vocabulary, added, foreign, forms, task)?;
        tokenizer.preparation.blank_before = pre_tokenizer.blank_before;
        tokenizer.before = post_processor.before;
        tokenizer.after = post_processor.after;
        tokenizer.trim = post_processor.trim;
        Ok(tokenizer)
    }

    /// A tokenizer without a template. `foreign` are entries of the vocabulary that no text gives.
    pub(super) fn assemble(
        splitter: Splitter,
        vocabulary: Arc<Vocabulary>,
        added: Vec<Added>,
        foreign: Vec<(String, TokenId)>,
        forms: Vec<Form>,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let normalize =
            |text: &str| Ok(Normalized::new(text).normalize(&forms, false, task)?.text.into_owned());
        let added = AddedTokens::new(added, normalize)?;
        let specials = added.specials();
        let mut others = FxHashMap::default();
        let tokens = foreign.into_iter().chain(added.list.iter().map(|added| (added.text.clone(), added.id)));
        for (text, id) in tokens {
            let bytes = byte_level::bytes(&text).unwrap_or_else(|| text.as_bytes().to_vec());
            let is_special = specials.contains(&*text);
            others.insert(id, Other { text, bytes, is_special });
        }
        drop(specials);
        Ok(Self {
            encoding: Encoding::of_parts(splitter, vocabulary)?,
            preparation: Preparation { added, forms, blank_before: false },
            before: Vec::new(),
            after: Vec::new(),
            trim: None,
            others,
        })
    }
}

fn check_model(model: &Model) -> Result<(), Error> {
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    match model.r#type.as_deref() {
        Some("BPE") => {}
        Some(other) => return Err(unsupported(format!("the model {other}"))),
        None if model.merges.is_empty() => return Err(unsupported("a model without a type and merges")),
        None => {}
    }
    if model.byte_fallback {
        return Err(unsupported("the model BPE with byte_fallback, as SentencePiece has it"));
    }
    if model.dropout.is_some_and(|dropout| dropout != 0.0) {
        return Err(unsupported("dropout"));
    }
    if is_set(&model.continuing_subword_prefix) || is_set(&model.end_of_word_suffix) {
        return Err(unsupported("continuing_subword_prefix or end_of_word_suffix"));
    }
    Ok(())
}

/// Numbers the added tokens as Hugging Face's tokenizers do: those of the vocabulary keep their numbers, the
/// others follow it. Equal ones count once.
fn number(tokens: Vec<FileToken>, vocabulary: &[(String, TokenId)]) -> Result<Vec<Added>, Error> {
    let mut known = FxHashMap::default();
    if !tokens.is_empty() {
        known.extend(vocabulary.iter().map(|(text, id)| (text.clone(), *id)));
    }
    let mut next = TokenId::try_from(vocabulary.len()).map_err(|_| OutOfMemory)?;
    let mut added: Vec<Added> = Vec::new();
    for token in tokens.into_iter().filter(|token| !token.content.is_empty()) {
        let id = *known.entry(token.content.clone()).or_insert_with(|| {
            next += 1;
            next - 1
        });
        added.push(Added {
            text: token.content,
            id,
            is_special: token.special,
            in_normalized: token.normalized,
            takes_left: token.lstrip,
            takes_right: token.rstrip,
            is_word: token.single_word,
        });
    }
    Ok(added)
}

/// Entries of a vocabulary that are not in the byte-level alphabet.
type Foreign = Vec<(String, TokenId)>;

/// The vocabulary and the merges as bytes and places, and the entries that stand for no bytes.
fn listed(model: Model, task: &Task<'_>) -> Result<(Listed, Foreign), Error> {
    let (mut tokens, mut foreign) = (memory::with_capacity(model.vocab.0.len())?, Vec::new());
    let mut places = FxHashMap::default();
    let mut ids = FxHashMap::default();
    let mut stretches = Stretches::of_items(task);
    for (number, (text, id)) in model.vocab.0.into_iter().enumerate() {
        stretches.check(number)?;
        if let Some(other) = ids.insert(id, text.clone()) {
            return Err(invalid(format!("the number {id} is given to both {other:?} and {text:?}")));
        }
        match byte_level::bytes(&text) {
            Some(bytes) => {
                let place = u32::try_from(tokens.len()).map_err(|_| OutOfMemory)?;
                if places.insert(bytes.clone(), place).is_some() {
                    return Err(invalid(format!("the token {text:?} has two numbers")));
                }
                tokens.push((bytes, id));
            }
            None => foreign.push((text, id)),
        }
    }
    drop(ids);
    let foreign_texts: FxHashSet<_> = foreign.iter().map(|(text, _)| &**text).collect();
    let mut merges = memory::with_capacity(model.merges.len())?;
    let mut stretches = Stretches::of_items(task);
    for (number, Pair(left, right)) in model.merges.into_iter().enumerate() {
        stretches.check(number)?;
        let joined = left.clone() + &right;
        let place = |text: &str| match byte_level::bytes(text) {
            Some(bytes) => places.get(&bytes).copied().map(Some),
            // A merge of what no text gives is never used.
            None => foreign_texts.contains(text).then_some(None),
        };
        let unknown =
            |text: &str| invalid(format!("the merges have {text:?}, which is not in the vocabulary"));
        let [left, right, joined] =
            [&*left, &*right, &*joined].map(|text| place(text).ok_or_else(|| unknown(text)));
        if let (Some(left), Some(right), Some(joined)) = (left?, right?, joined?) {
            merges.push([left, right, joined]);
        }
    }
    let mut bytes = [0; 256];
    for (byte, place) in (0..=255).zip(&mut bytes) {
        let found: Option<&u32> = places.get([byte].as_slice());
        *place = *found.ok_or_else(|| unsupported(format!("a vocabulary without the byte 0x{byte:02x}")))?;
    }
    drop(foreign_texts);
    Ok((Listed { tokens, merges, bytes, ignore_merges: model.ignore_merges }, foreign))
}
