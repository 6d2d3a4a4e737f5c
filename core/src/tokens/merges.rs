//! How byte pair encoding makes each token: from which two others.
//!
//! The vocabulary is *orderly* if all 256 bytes are tokens and if each token that byte pair encoding makes of
//! its own bytes is joined from two tokens of lower rank. The vocabularies that training produces are; a
//! hand-made one need not be. The methods of `backtrack.rs`, `char_seeds.rs` and `simd_merge.rs` need an
//! orderly vocabulary.

use super::Error;
use super::merge::merge;
use super::table::Table;
use crate::task::Stretches;
use crate::{Task, memory};

/// The bytes of tokens between two checks of the task.
const STRETCH: usize = 4 << 10;

/// How a token is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merge {
    /// The indices of the tokens it is joined from; its own index if it is a single byte.
    pub(super) left: u32,
    pub(super) right: u32,
    pub(super) length: u32,
}

impl Merge {
    /// Whether byte pair encoding ever makes the token.
    pub(super) fn is_made(&self) -> bool {
        self.left != NEVER
    }
}

/// The merge of a token that byte pair encoding never makes, not even of the token's own bytes.
pub(super) const NEVER: u32 = u32::MAX;

/// Finds the merge of each token by encoding its bytes. `None` if the vocabulary is not orderly or has more
/// than `limit` tokens.
pub(super) fn merges<'a>(
    tokens: impl Iterator<Item = &'a [u8]> + Clone,
    table: &Table,
    limit: usize,
    task: &Task<'_>,
) -> Result<Option<Vec<Merge>>, Error> {
    let all_bytes = (0..=255).all(|byte: u8| table.get(&[byte], 0, 1).is_some());
    if !all_bytes || tokens.clone().count() > limit {
        return Ok(None);
    }
    let mut merges = memory::with_capacity(tokens.clone().count())?;
    let (mut looks, mut end) = (Stretches::new(task, STRETCH), 0);
    for (index, bytes) in (0..).zip(tokens) {
        end += bytes.len();
        looks.check(end)?;
        match merge_of(index, bytes, table, task)? {
            Some(merge) => merges.push(merge),
            None => return Ok(None),
        }
    }
    Ok(Some(merges))
}

fn merge_of(index: u32, bytes: &[u8], table: &Table, task: &Task<'_>) -> Result<Option<Merge>, Error> {
    let Ok(length) = u32::try_from(bytes.len()) else { return Ok(None) };
    let index_of = |start: usize, end: usize| table.get(bytes, start, end - start);
    if length == 1 {
        return Ok(Some(Merge { left: index, right: index, length }));
    }
    // Checking the task would take a noticeable part of the time of a short one.
    let parts = if bytes.len() < STRETCH {
        merge(bytes.len(), index_of, &Task::new())?
    } else {
        merge(bytes.len(), index_of, task)?
    };
    let (Some(boundary), 1) = (parts.last_boundary, parts.spans().count()) else {
        return Ok(Some(Merge { left: NEVER, right: NEVER, length }));
    };
    let (Some(left), Some(right)) = (index_of(0, boundary), index_of(boundary, bytes.len())) else {
        return Ok(None);
    };
    Ok((left < index && right < index).then_some(Merge { left, right, length }))
}
