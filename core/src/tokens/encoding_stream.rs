//! Streams of an encoding.

use super::beginnings::Beginnings;
use super::encoder::STRETCH;
use super::encoding::Encoding;
use super::specials::{Choice, Specials};
use super::split::Scan;
use super::stream::{Place, Sink, Source, Stream, encode, encode_final};
use super::{Error, ErrorKind};
use crate::Task;
use crate::task::Stretches;
use std::ops::Deref;

/// An encoding, and the special tokens that are recognized.
struct OfEncoding<E> {
    encoding: E,
    scan: Scan,
    allowed: Choice,
    beginnings: Beginnings,
}

impl Stream {
    /// A stream with the tokens of [`Encoding::encode`]. At most `limit` bytes of the text are kept back, if there
    /// is a limit.
    ///
    /// # Errors
    ///
    /// `CannotStream` for an encoding with a pattern of its own.
    pub fn of_encoding<E>(encoding: E, allowed: Specials<'_>, limit: Option<usize>) -> Result<Self, Error>
    where
        E: Deref<Target = Encoding> + Send + Sync + 'static,
    {
        let scan = encoding.splitter.scan().ok_or_else(unknown_pattern)?;
        let allowed = encoding.specials.choose(allowed);
        // A special token that is not allowed hides the others that begin at the same place.
        let texts = encoding.specials.iter().map(|(text, _)| text).filter(|_| !allowed.is_empty());
        let beginnings = Beginnings::new(texts);
        Ok(Self::new(OfEncoding { encoding, scan, allowed, beginnings }, limit))
    }
}

/// The error for a pattern that may look anywhere.
pub(super) fn unknown_pattern() -> Error {
    let reason = "its pattern is none of those whose look ahead is known (the public encodings', and those of Llama 3, Phi-4, Qwen, DeepSeek V3, GPT-OSS, Mistral, Kimi K2 and Command R)";
    ErrorKind::CannotStream { reason: reason.into() }.into()
}

impl<E: Deref<Target = Encoding> + Send + Sync> Source for OfEncoding<E> {
    fn settle(
        &self,
        text: &str,
        place: Place,
        is_whole: bool,
        sink: Sink<'_>,
        task: &Task<'_>,
    ) -> Result<(usize, Place), Error> {
        let specials = &self.encoding.specials;
        let mut encoder = self.encoding.encoder(task);
        let first_open = |from| if is_whole { text.len() } else { self.beginnings.first_open(text, from) };
        let mut stretches = Stretches::new(task, STRETCH);
        let (mut at, mut open) = (0, first_open(0));
        while let Some(found) = specials.next_allowed(text, at, &self.allowed, task)? {
            stretches.check(found.start)?;
            if found.start >= open {
                break;
            }
            let before = &text[at..found.start];
            encode(&mut encoder, before, 0, before.len(), sink)?;
            sink(&mut vec![found.token])?;
            at = found.end;
            if at > open {
                open = first_open(at);
            }
        }
        let rest = &text[at..open.max(at)];
        let settled = match is_whole {
            true => encode(&mut encoder, rest, 0, rest.len(), sink)?,
            false => encode_final(&mut encoder, self.scan, rest, 0, |_| true, sink, task)?,
        };
        Ok((at + settled, place))
    }
}
