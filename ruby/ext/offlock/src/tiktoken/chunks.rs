//! Chunks of a text, as numbers from which `lib/offlock/tiktoken/chunk.rb` makes objects.

use magnus::{Error, RArray, Ruby, Symbol, Value};
use offlock_core::tokens::{self, Boundary, Chunk, ChunkOptions};
use offlock_core::{Task, memory};

use super::errors::TokensError;
use crate::borrow::borrowed;
use crate::build;
use crate::operations::TOKENS_CHUNKS;
use crate::region::{Region, Release, Yielder};

/// Five numbers for each chunk that `cut` finds: its start and end in bytes, the same in characters, and its tokens.
pub(crate) fn cut(
    ruby: &Ruby,
    text: Value,
    release: Release,
    cut: impl Fn(&str, &Task<'_>) -> Result<Vec<Chunk>, tokens::Error> + Sync,
) -> Result<RArray, Error> {
    let text = borrowed!(Text, ruby, text);
    let view = text.view();
    let chunks = Region::new(&TOKENS_CHUNKS, view.len()).release(release).run(ruby, |task| {
        let chunks = cut(view.checked(task)?, task)?;
        let numbers = chunks.iter().flat_map(|chunk| {
            let (bytes, characters) = (&chunk.bytes, &chunk.characters);
            [bytes.start, bytes.end, characters.start, characters.end, chunk.tokens]
        });
        Ok::<_, TokensError>(memory::collected(numbers.map(Ok::<_, tokens::Error>))?)
    })?;
    build::integers(ruby, chunks.into_iter(), &mut Yielder::new())
}

/// How a text is to be cut.
pub(crate) fn options(ruby: &Ruby, max: i64, overlap: i64, boundary: Symbol) -> Result<ChunkOptions, Error> {
    let refused = |message: String| Error::new(ruby.exception_arg_error(), message);
    let name = boundary.name()?;
    let boundary = Boundary::named(&name).ok_or_else(|| {
        let known = ":token, :word, :sentence, :line or :paragraph";
        refused(format!("boundary must be {known}, got :{name}"))
    })?;
    match (usize::try_from(max), usize::try_from(overlap)) {
        (Ok(0) | Err(_), _) => Err(refused(format!("max_tokens must be at least 1, got {max}"))),
        (Ok(max_tokens), Ok(overlap)) if overlap < max_tokens => {
            Ok(ChunkOptions { max_tokens, overlap, boundary })
        }
        _ => Err(refused(format!("overlap must be from 0 to less than max_tokens, {max}, got {overlap}"))),
    }
}
