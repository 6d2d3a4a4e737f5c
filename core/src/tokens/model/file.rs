//! A model's tokenizer from its `tokenizer.json`.

use super::added::{Added, AddedTokens};
use super::form::Form;
use super::normalize::Normalized;
use super::parts::Preparation;
use super::reader::{self, Collect, Collected, Setting};
use super::tokenizer::{Other, Tokenizer};
use super::{byte_level, invalid, settings, unsupported};
use crate::Stopped;
use crate::memory::OutOfMemory;
use crate::task::Stretches;
use crate::tokens::sort::sort;
use crate::tokens::split::Splitter;
use crate::tokens::strings::Strings;
use crate::tokens::vocabulary::{Listed, Vocabulary};
use crate::tokens::{Encoding, Error, TokenId};
use crate::{Task, memory};
use foldhash::{HashMap, HashMapExt};
use rustc_hash::FxHashMap;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default)]
    added_tokens: Collected<Vec<FileToken>>,
    #[serde(default)]
    normalizer: Setting,
    #[serde(default)]
    pre_tokenizer: Setting,
    #[serde(default)]
    post_processor: Setting,
    #[serde(default)]
    decoder: Setting,
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
    vocab: Vocab,
    #[serde(default)]
    merges: Collected<Merges>,
    dropout: Option<f32>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
}

/// The entries of the vocabulary, as they are written.
#[derive(Default)]
struct Entries {
    texts: Strings,
    ids: Vec<TokenId>,
}

impl Collect for Entries {
    type Item = (String, TokenId);

    fn add(&mut self, (text, id): Self::Item) -> Result<(), OutOfMemory> {
        self.texts.push(text.as_bytes())?;
        memory::push(&mut self.ids, id)
    }
}

impl Entries {
    fn iter(&self) -> impl Iterator<Item = (&str, TokenId)> {
        let text = |bytes| std::str::from_utf8(bytes).expect("texts are UTF-8");
        self.texts.iter().map(text).zip(self.ids.iter().copied())
    }
}

/// The vocabulary: the entries of an object. Those of Unigram are an array, of which nothing is kept.
#[derive(Default)]
struct Vocab(Collected<Entries>);

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vocab;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vocabulary")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
                let mut entries = Collected::default();
                while let Some(entry) = map.next_entry()? {
                    entries.add(entry);
                }
                Ok(Vocab(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vocab, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Vocab::default())
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// The two tokens of each merge, one after the other, as they are written.
#[derive(Default)]
struct Merges(Strings);

impl Collect for Merges {
    type Item = Pair;

    fn add(&mut self, Pair(left, right): Pair) -> Result<(), OutOfMemory> {
        self.0.push(left.as_bytes())?;
        self.0.push(right.as_bytes())
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
        if is_sentencepiece(json) {
            return Err(unsupported("a SentencePiece model"));
        }
        // Mistral's files begin with their configuration or their vocabulary; only theirs have token_bytes.
        let is_tekken = memchr::memmem::find(&json[..json.len().min(1 << 20)], b"\"token_bytes\"").is_some();
        let mut tokenizer = if is_tekken {
            Self::from_tekken(json, task)?
        } else {
            Self::from_file(reader::read(json, task)?, task)?
        };
        tokenizer.sha256 = sha256(&[json], task)?;
        Ok(tokenizer)
    }

    fn from_file(file: File, task: &Task<'_>) -> Result<Self, Error> {
        check_model(&file.model)?;
        let forms = settings::forms(&file.normalizer.0)?;
        let pre_tokenizer = settings::pre_tokenizer(&file.pre_tokenizer.0)?;
        let post_processor = settings::post_processor(&file.post_processor.0)?;
        settings::check_decoder(&file.decoder.0)?;
        let (merges, added_tokens) = (file.model.merges.0?, file.added_tokens.0?);
        let splitter = Splitter::of_cuts(pre_tokenizer.cuts)?;
        let tokens = Tokens::of(file.model.vocab.0.0?, task)?;
        let places = Places::of(&tokens, task)?;
        let added = places.number(added_tokens)?;
        let (merges, bytes) = (places.merges(&merges, task)?, places.bytes()?);
        drop(places);
        let Tokens { bytes: tokens, ids, foreign } = tokens;
        let listed = Listed { tokens, ids, merges, bytes, ignore_merges: file.model.ignore_merges };
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
        let normalize = |text: &str| -> Result<String, Error> {
            Ok(Normalized::new(text).normalize(&forms, false, task)?.text.into_owned())
        };
        let added = AddedTokens::new(added, normalize)?;
        let specials = added.specials();
        let mut others = FxHashMap::default();
        others.try_reserve(foreign.len() + added.list.len()).map_err(OutOfMemory::from)?;
        let mut add = |text: String, id, is_special| {
            let bytes = byte_level::bytes(&text).unwrap_or_else(|| text.as_bytes().to_vec());
            others.insert(id, Other { text, bytes, is_special });
        };
        for (text, id) in foreign {
            let is_special = specials.contains(&*text);
            add(text, id, is_special);
        }
        for token in &added.list {
            // As it occurs in normalized text, which is how tokenizers decodes it.
            let text = if token.in_normalized { normalize(&token.text)? } else { token.text.clone() };
            add(text, token.id, specials.contains(&*token.text));
        }
        drop(specials);
        Ok(Self {
            encoding: Encoding::of_parts(splitter, vocabulary)?,
            preparation: Preparation { added, forms, blank_before: false },
            before: Vec::new(),
            after: Vec::new(),
            trim: None,
            others,
            sha256: [0; 32],
        })
    }
}

/// Whether a file is a SentencePiece model: a message of protocol buffers that begins with the first of its pieces, whose length
/// is a character that JSON does not have.
fn is_sentencepiece(file: &[u8]) -> bool {
    matches!(file, [b'\n', length, b'\n', ..] if length.is_ascii_control() && !length.is_ascii_whitespace())
}

/// The SHA-256 of the parts; those after the first are followed by their lengths, so that no two lists of parts are alike.
pub(super) fn sha256(parts: &[&[u8]], task: &Task<'_>) -> Result<[u8; 32], Stopped> {
    let mut hash = Sha256::new();
    for (number, part) in parts.iter().enumerate() {
        for piece in part.chunks(1 << 20) {
            task.check()?;
            hash.update(piece);
        }
        if number > 0 {
            hash.update(part.len().to_le_bytes());
        }
    }
    Ok(hash.finalize().into())
}

fn check_model(model: &Model) -> Result<(), Error> {
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    match model.r#type.as_deref() {
        Some("BPE") => {}
        Some(other) => return Err(unsupported(format!("the model {other}"))),
        None if model.merges.0.as_ref().is_ok_and(|merges| merges.0.len() == 0) => {
            return Err(unsupported("a model without a type and merges"));
        }
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

/// The vocabulary as bytes.
struct Tokens {
    bytes: Strings,
    ids: Vec<TokenId>,
    /// Entries that are not in the byte-level alphabet, which stand for no bytes.
    foreign: Vec<(String, TokenId)>,
}

impl Tokens {
    fn of(entries: Entries, task: &Task<'_>) -> Result<Self, Error> {
        check_numbers(&entries, task)?;
        let (mut bytes, mut ids, mut foreign) = (Strings::default(), Vec::new(), Vec::new());
        let (mut token, mut stretches) = (Vec::new(), Stretches::of_items(task));
        for (number, (text, id)) in entries.iter().enumerate() {
            stretches.check(number)?;
            if byte_level::read(text, &mut token)? {
                bytes.push(&token)?;
                memory::push(&mut ids, id)?;
            } else {
                memory::push(&mut foreign, (text.to_owned(), id))?;
            }
        }
        Ok(Self { bytes, ids, foreign })
    }
}

/// Refuses a number that two entries have.
fn check_numbers(entries: &Entries, task: &Task<'_>) -> Result<(), Error> {
    let mut ids = memory::copied(&entries.ids)?;
    sort(&mut ids, task)?;
    let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) else { return Ok(()) };
    let mut texts = entries.iter().filter(|(_, id)| *id == pair[0]).map(|(text, _)| text);
    let (one, other) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
    Err(invalid(format!("the number {} is given to both {one:?} and {other:?}", pair[0])))
}

/// Finds entries of the vocabulary. The hash function has a secret: no file can be made so that many of its tokens
/// have the same hash.
struct Places<'t> {
    tokens: &'t Tokens,
    /// The place of each token.
    bytes: HashMap<&'t [u8], u32>,
    foreign: HashMap<&'t str, TokenId>,
}

impl<'t> Places<'t> {
    fn of(tokens: &'t Tokens, task: &Task<'_>) -> Result<Self, Error> {
        let (mut bytes, mut foreign) = (HashMap::new(), HashMap::new());
        bytes.try_reserve(tokens.bytes.len()).map_err(OutOfMemory::from)?;
        foreign.try_reserve(tokens.foreign.len()).map_err(OutOfMemory::from)?;
        let mut stretches = Stretches::of_items(task);
        for (place, token) in (0..).zip(tokens.bytes.iter()) {
            stretches.check(place as usize)?;
            if bytes.insert(token, place).is_some() {
                return Err(invalid(format!("the token {:?} has two numbers", byte_level::token(token))));
            }
        }
        foreign.extend(tokens.foreign.iter().map(|(text, id)| (&**text, *id)));
        Ok(Self { tokens, bytes, foreign })
    }

    /// Numbers the added tokens as Hugging Face's tokenizers do: those of the vocabulary keep their numbers,
    /// the others follow it. Equal ones count once.
    fn number(&self, tokens: Vec<FileToken>) -> Result<Vec<Added>, Error> {
        let known = |text: &str| match byte_level::bytes(text) {
            Some(bytes) => self.bytes.get(&*bytes).map(|&place| self.tokens.ids[place as usize]),
            None => self.foreign.get(text).copied(),
        };
        let mut next = TokenId::try_from(self.bytes.len() + self.foreign.len()).map_err(|_| OutOfMemory)?;
        let mut new: HashMap<String, TokenId> = HashMap::new();
        let mut added = memory::with_capacity(tokens.len())?;
        for token in tokens.into_iter().filter(|token| !token.content.is_empty()) {
            let id = known(&token.content).or_else(|| new.get(&token.content).copied());
            let id = match id {
                Some(id) => id,
                None => {
                    new.try_reserve(1).map_err(OutOfMemory::from)?;
                    new.insert(token.content.clone(), next);
                    next += 1;
                    next - 1
                }
            };
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

    /// The merges, as the places of the two tokens and of the one that they make.
    fn merges(&self, merges: &Merges, task: &Task<'_>) -> Result<Vec<[u32; 3]>, Error> {
        let mut places = memory::with_capacity(merges.0.len() / 2)?;
        let (mut joined, mut stretches) = (Vec::new(), Stretches::of_items(task));
        for at in (0..merges.0.len()).step_by(2) {
            stretches.check(at)?;
            let (left, right) = (merges.0.get(at), merges.0.get(at + 1));
            joined.clear();
            memory::append(&mut joined, left)?;
            memory::append(&mut joined, right)?;
            let place = |text: &[u8]| self.place(text);
            if let (Some(left), Some(right), Some(joined)) = (place(left)?, place(right)?, place(&joined)?) {
                places.push([left, right, joined]);
            }
        }
        Ok(places)
    }

    /// The place of a token of a merge. A merge of what no text gives is never used.
    fn place(&self, text: &[u8]) -> Result<Option<u32>, Error> {
        let text = std::str::from_utf8(text).expect("two texts are a text");
        let (found, is_foreign) = match byte_level::bytes(text) {
            Some(bytes) => (self.bytes.get(&*bytes).copied(), false),
            None => (None, self.foreign.contains_key(text)),
        };
        if found.is_none() && !is_foreign {
            return Err(invalid(format!("the merges have {text:?}, which is not in the vocabulary")));
        }
        Ok(found)
    }

    /// The places of the 256 bytes.
    fn bytes(&self) -> Result<[u32; 256], Error> {
        let mut places = [0; 256];
        for (byte, place) in (0..=255).zip(&mut places) {
            let found = self.bytes.get([byte].as_slice());
            *place =
                *found.ok_or_else(|| unsupported(format!("a vocabulary without the byte 0x{byte:02x}")))?;
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs, path::Path};

    /// The files that `script/setup --models` fetches.
    #[test]
    fn widespread_models_are_encoded_by_the_fast_methods() {
        let here = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache");
        let models = env::var_os("OFFLOCK_CACHE").map_or_else(here, Into::into).join("models");
        for name in ["llama3_1", "qwen3", "deepseek_v3", "gptoss", "mistral_nemo", "command_r_plus"] {
            let Ok(json) = fs::read(models.join(name).join("tokenizer.json")) else {
                assert!(env::var_os("CI").is_none(), "script/setup --models has not fetched {name}");
                continue;
            };
            let tokenizer = Tokenizer::from_json(&json, &Task::new()).unwrap();
            let encoding = &tokenizer.encoding;
            assert!(encoding.splitter.cut_many().is_some(), "{name}: the pattern");
            assert!(encoding.vocabulary.tables(&Task::new()).is_some(), "{name}: the merges");
        }
    }
}
