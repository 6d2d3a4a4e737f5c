//! Streams of a model's tokenizer.
//!
//! Added tokens are looked for twice, in the text as it is and in what lies between those that were found there,
//! normalized. So what is kept of the text begins where both searches are through, where a piece of the pattern
//! ends, and where normalization joins nothing: before a character that it neither changes nor joins with what
//! stands before (the quick check of Unicode says yes, and the combining class is 0).

use super::added::{Added, AddedTokens, Stage};
use super::form::Form;
use super::normalize::Normalized;
use super::tokenizer::{Options, Tokenizer};
use crate::Task;
use crate::memory;
use crate::tokens::beginnings::Beginnings;
use crate::tokens::encoder::Encoder;
use crate::tokens::encoding_stream::unknown_pattern;
use crate::tokens::split::Scan;
use crate::tokens::stream::{Place, Sink, Source, Stream, encode, encode_final};
use crate::tokens::{Error, ErrorKind, TokenId};
use std::borrow::Cow;
use std::ops::Deref;

/// A tokenizer, and what is asked of it.
struct OfModel<T> {
    tokenizer: T,
    options: Options,
    scan: Scan,
    /// The added tokens that are looked for in the text as it is, and in the normalized text.
    raw: Beginnings,
    normalized: Beginnings,
}

impl Stream {
    /// A stream with the tokens of [`Tokenizer::encode`]. The template's first tokens come with the first piece,
    /// its last ones at the end. At most `limit` bytes of the text are kept back, if there is a limit.
    ///
    /// # Errors
    ///
    /// `CannotStream` for a pattern that is not matched by hand, added tokens that have to be words of their own,
    /// and rare combinations of what added tokens ask for.
    pub fn of_model<T>(tokenizer: T, options: Options, limit: Option<usize>) -> Result<Self, Error>
    where
        T: Deref<Target = Tokenizer> + Send + Sync + 'static,
    {
        let scan = tokenizer.encoding.splitter.scan().ok_or_else(unknown_pattern)?;
        check(&tokenizer.preparation.added, options)?;
        let (mut raw, mut normalized) = (Vec::new(), Vec::new());
        for added in &tokenizer.preparation.added.list {
            if added.in_normalized {
                let text = Normalized::new(&added.text);
                let text = text.normalize(&tokenizer.preparation.forms, false, &Task::new())?;
                normalized.push(text.text.into_owned());
            } else {
                raw.push(added.text.clone());
            }
        }
        let beginnings = |texts: Vec<String>| Beginnings::new(texts.iter().map(String::as_str));
        let (raw, normalized) = (beginnings(raw), beginnings(normalized));
        Ok(Self::new(OfModel { tokenizer, options, scan, raw, normalized }, limit))
    }
}

/// Refuses added tokens that depend on more than what a stream keeps.
fn check(added: &AddedTokens, options: Options) -> Result<(), Error> {
    let any = |what: fn(&Added) -> bool| added.list.iter().any(what);
    let reason = if any(|added| added.is_word) {
        "an added token has to be a word of its own"
    } else if added.take_blanks && any(|added| added.text.contains(char::is_whitespace)) {
        "added tokens have blanks, and others take the blanks around them"
    } else if options.split_special_tokens && any(|added| added.is_special && added.in_normalized) {
        "special tokens are looked for in normalized text, and have to be split"
    } else {
        return Ok(());
    };
    Err(ErrorKind::CannotStream { reason: reason.into() }.into())
}

impl<T: Deref<Target = Tokenizer> + Send + Sync> Source for OfModel<T> {
    fn settle(
        &self,
        text: &str,
        place: Place,
        is_whole: bool,
        sink: Sink<'_>,
        task: &Task<'_>,
    ) -> Result<(usize, Place), Error> {
        let added = &self.tokenizer.preparation.added;
        let (from, plain) = (place.search_from, self.options.split_special_tokens);
        let mut begins = place.begins;
        let mut run = Run { source: self, encoder: self.tokenizer.encoding.encoder(task), sink, task };
        let beginnings = (!is_whole).then_some(&self.raw);
        let rest = added.split_known(Stage::Raw, text, from, beginnings, plain, task, |token, range| {
            match token {
                Some(id) => (run.sink)(&mut vec![id])?,
                None => _ = run.segment(&text[range], begins, true)?,
            }
            begins = true;
            Ok(())
        })?;
        let (settled, begins) = run.segment(&text[rest.start..rest.end], begins, is_whole)?;
        let at = rest.start + settled;
        Ok((at, Place { begins, search_from: rest.search_from.saturating_sub(at) }))
    }

    fn template(&self) -> (&[TokenId], &[TokenId]) {
        self.tokenizer.template(self.options)
    }
}

/// One call.
struct Run<'a, T> {
    source: &'a OfModel<T>,
    encoder: Encoder<'a>,
    sink: Sink<'a>,
    task: &'a Task<'a>,
}

impl<T: Deref<Target = Tokenizer>> Run<'_, T> {
    /// Passes on the tokens of text between two added tokens, or of its final beginning if it may go on. Returns
    /// where the rest begins, and whether an added token stands before that.
    fn segment(&mut self, text: &str, begins: bool, is_whole: bool) -> Result<(usize, bool), Error> {
        let source = self.source;
        let preparation = &source.tokenizer.preparation;
        let (forms, plain) = (&*preparation.forms, source.options.split_special_tokens);
        let with_blank = |text, begins| match begins && preparation.blank_before {
            true => Normalized::new(text).with_blank().map(|normalized| normalized.text),
            false => Ok(Cow::Borrowed(text)),
        };
        let known = if is_whole { text.len() } else { last_boundary(text, forms) };
        let normalized = Normalized::new(&text[..known]).normalize(forms, true, self.task)?;
        let origin = |at| normalized.origin_start(at, known);
        // What one character became has its origin in common.
        let begins_character = |at| at == 0 || origin(at - 1) < origin(at);
        let is_boundary = |at| {
            at == normalized.text.len() || begins_character(at) && begins_stable(&text[origin(at)..], forms)
        };
        let (mut settled, mut begins) = ((0, begins), begins);
        // The tokens behind the last place where the text may be cut.
        let mut held = Vec::new();
        let beginnings = (!is_whole).then_some(&source.normalized);
        let rest = preparation.added.split_known(
            Stage::Normalized,
            &normalized.text,
            0,
            beginnings,
            plain,
            self.task,
            |token, range| {
                match token {
                    Some(id) => memory::push(&mut held, id)?,
                    None => {
                        let part = with_blank(&normalized.text[range.clone()], begins)?;
                        let all = &mut |new: &mut Vec<TokenId>| Ok(memory::append(&mut held, new)?);
                        encode(&mut self.encoder, &part, 0, part.len(), all)?;
                    }
                }
                begins = token.is_some();
                if begins && is_boundary(range.end) {
                    (self.sink)(&mut held)?;
                    held.clear();
                    settled = (origin(range.end), true);
                }
                Ok(())
            },
        )?;
        let part = with_blank(&normalized.text[rest.start..rest.end], begins)?;
        let blank = part.len() - (rest.end - rest.start);
        let mut sink = |new: &mut Vec<TokenId>| {
            (self.sink)(&mut held)?;
            held.clear();
            (self.sink)(new)
        };
        if is_whole {
            encode(&mut self.encoder, &part, 0, part.len(), &mut sink)?;
            sink(&mut Vec::new())?;
            return Ok((text.len(), false));
        }
        let may_end = |end: usize| is_boundary(rest.start + end.saturating_sub(blank));
        match encode_final(&mut self.encoder, source.scan, &part, 0, may_end, &mut sink, self.task)? {
            0 => Ok(settled),
            end => Ok((origin(rest.start + end.saturating_sub(blank)), false)),
        }
    }
}

/// The last place in a text that goes on before which normalization joins nothing.
fn last_boundary(text: &str, forms: &[Form]) -> usize {
    if forms.is_empty() {
        return text.len();
    }
    text.char_indices().rev().find(|&(_, character)| is_stable(character, forms)).map_or(0, |(at, _)| at)
}

/// Whether the forms leave a character as it is, and join it with nothing that stands before it.
fn is_stable(character: char, forms: &[Form]) -> bool {
    forms.iter().all(|form| form.leaves(character))
}

fn begins_stable(text: &str, forms: &[Form]) -> bool {
    text.chars().next().is_none_or(|character| is_stable(character, forms))
}
