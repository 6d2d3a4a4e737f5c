//! The public encodings: their patterns, vocabularies and special tokens.
//!
//! Each is loaded at its first use and kept for the life of the process. Encodings with the same vocabulary
//! share it. Two threads that load one at the same time both do the work, so that none waits for another: the
//! child of a fork would wait forever.

use super::split::{cl100k, gpt2, o200k};
use super::vocabulary::Vocabulary;
use super::{Encoding, Error, TokenId};
use crate::trace::Remade;
use std::sync::Arc;

const ENDOFTEXT: &str = "<|endoftext|>";
const ENDOFPROMPT: &str = "<|endofprompt|>";
const FIM_PREFIX: &str = "<|fim_prefix|>";
const FIM_MIDDLE: &str = "<|fim_middle|>";
const FIM_SUFFIX: &str = "<|fim_suffix|>";

/// The names of the public encodings.
pub fn names() -> &'static [&'static str] {
    &["gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]
}

/// The public encoding `name`, which is loaded at its first use and kept.
///
/// `None` if there is none of this name; [`names`] lists them.
///
/// ```
/// use offlock_core::tokens;
///
/// assert_eq!(tokens::get("cl100k_base").unwrap().n_vocab(), 100_277);
/// assert!(tokens::get("unknown").is_none());
/// ```
///
/// # Panics
///
/// If there is no memory for it; [`load`] returns an error instead.
pub fn get(name: &str) -> Option<&'static Encoding> {
    load(name).expect("memory for a public encoding")
}

/// The same as [`get`], with an error if memory runs out.
///
/// # Errors
///
/// `OutOfMemory`.
pub fn load(name: &str) -> Result<Option<&'static Encoding>, Error> {
    static LOADED: [Remade<Encoding>; 7] = [const { Remade::new() }; 7];
    let Some(index) = names().iter().position(|&known| known == name) else { return Ok(None) };
    get_or_load(&LOADED[index], || assemble(names()[index])).map(Some)
}

/// The content of `kept`; the caller loads it if there is none. If two threads load it at once, the result of
/// the first one is kept.
///
/// Waiting for the other thread would save the second load, but in the child of a fork that happened
/// meanwhile the wait would never end.
fn get_or_load<T: Sync>(
    kept: &Remade<T>,
    load: impl FnOnce() -> Result<T, Error>,
) -> Result<&'static T, Error> {
    match kept.get() {
        Some(loaded) => Ok(loaded),
        None => {
            let loaded = load()?;
            Ok(kept.get_or_make(|| loaded))
        }
    }
}

fn assemble(name: &'static str) -> Result<Encoding, Error> {
    let endoftext_50k = || specials(&[(ENDOFTEXT, 50256)]);
    let (pattern, vocabulary, specials) = match name {
        "gpt2" | "r50k_base" => (gpt2::PATTERN, r50k_ranks()?, endoftext_50k()),
        "p50k_base" => (gpt2::PATTERN, p50k_ranks()?, endoftext_50k()),
        "p50k_edit" => (gpt2::PATTERN, p50k_ranks()?, p50k_edit_specials()),
        "cl100k_base" => (cl100k::PATTERN, cl100k_ranks()?, cl100k_specials()),
        "o200k_base" => {
            (o200k::PATTERN, o200k_ranks()?, specials(&[(ENDOFTEXT, 199_999), (ENDOFPROMPT, 200_018)]))
        }
        "o200k_harmony" => (o200k::PATTERN, o200k_ranks()?, harmony_specials()),
        other => unreachable!("{other} is not among the names"),
    };
    Encoding::assemble(name, pattern, vocabulary, specials)
}

/// Defines a function that unpacks a vocabulary at its first use.
macro_rules! vocabulary {
    ($name:ident, $file:literal, $count:expr) => {
        fn $name() -> Result<Arc<Vocabulary>, Error> {
            static LOADED: Remade<Arc<Vocabulary>> = Remade::new();
            let packed = include_bytes!(concat!(env!("OUT_DIR"), "/", $file));
            get_or_load(&LOADED, || Ok(Arc::new(Vocabulary::unpack(packed, $count)?))).cloned()
        }
    };
}

// p50k continues r50k with runs of spaces.
vocabulary!(r50k_ranks, "p50k.vocabulary", 50_256);
vocabulary!(p50k_ranks, "p50k.vocabulary", usize::MAX);
vocabulary!(cl100k_ranks, "cl100k.vocabulary", usize::MAX);
vocabulary!(o200k_ranks, "o200k.vocabulary", usize::MAX);

type Listed = Vec<(String, TokenId)>;

fn specials(listed: &[(&str, TokenId)]) -> Listed {
    listed.iter().map(|&(text, token)| (text.to_owned(), token)).collect()
}

fn p50k_edit_specials() -> Listed {
    specials(&[(ENDOFTEXT, 50256), (FIM_PREFIX, 50281), (FIM_MIDDLE, 50282), (FIM_SUFFIX, 50283)])
}

fn cl100k_specials() -> Listed {
    specials(&[
        (ENDOFTEXT, 100_257),
        (FIM_PREFIX, 100_258),
        (FIM_MIDDLE, 100_259),
        (FIM_SUFFIX, 100_260),
        (ENDOFPROMPT, 100_276),
    ])
}

/// The tokens of the harmony format. 200,018 has two texts: o200k's own and a reserved one.
fn harmony_specials() -> Listed {
    let named = specials(&[
        (ENDOFTEXT, 199_999),
        (ENDOFPROMPT, 200_018),
        ("<|startoftext|>", 199_998),
        ("<|return|>", 200_002),
        ("<|constrain|>", 200_003),
        ("<|channel|>", 200_005),
        ("<|start|>", 200_006),
        ("<|end|>", 200_007),
        ("<|message|>", 200_008),
        ("<|call|>", 200_012),
    ]);
    let reserved = [200_000, 200_001, 200_004, 200_009, 200_010, 200_011].into_iter().chain(200_013..201_088);
    named.into_iter().chain(reserved.map(|token| (format!("<|reserved_{token}|>"), token))).collect()
}
