//! Many texts in one call, on several threads.
//!
//! The threads take texts one at a time through an atomic counter, so that none is left with a long rest.
//! Each one uses a cache of its own (`cache.rs`).

use super::{Encoding, Error, Specials, TokenId};
use crate::parallel::on_threads;
use crate::task::Stretches;
use crate::{Task, memory};
use std::sync::atomic::{AtomicUsize, Ordering};

impl Encoding {
    /// The tokens of each text, as [`encode`](Self::encode) gives them, computed on up to `threads` threads.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary), the first in the order of the texts.
    pub fn encode_batch(
        &self,
        texts: &[&str],
        allowed: Specials<'_>,
        threads: usize,
        task: &Task<'_>,
    ) -> Result<Vec<Vec<TokenId>>, Error> {
        map(texts, threads, task, |text| self.encode(text, allowed, task))
    }

    /// The number of tokens of each text, computed on up to `threads` threads.
    ///
    /// # Errors
    ///
    /// As [`encode_batch`](Self::encode_batch).
    pub fn count_batch(
        &self,
        texts: &[&str],
        allowed: Specials<'_>,
        threads: usize,
        task: &Task<'_>,
    ) -> Result<Vec<usize>, Error> {
        map(texts, threads, task, |text| self.count(text, allowed, task))
    }
}

/// The bytes of text between two checks of the task, and what each text counts besides its length.
const CHECK_EVERY: usize = 4 << 10;
const EACH: usize = 16;

/// Applies `f` to all texts.
pub(super) fn map<T: Send>(
    texts: &[&str],
    threads: usize,
    task: &Task<'_>,
    f: impl Fn(&str) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let parts = on_threads(threads.min(texts.len()), task, || {
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < texts.len());
        let mut done = Vec::new();
        // A short text is encoded without a check of the task.
        let mut stretches = Stretches::new(task, CHECK_EVERY);
        let mut at = 0;
        for index in std::iter::from_fn(take) {
            stretches.check(at)?;
            memory::push(&mut done, (index, f(texts[index])))?;
            at += texts[index].len() + EACH;
        }
        Ok::<_, Error>(done)
    });
    let mut done = memory::with_capacity(texts.len())?;
    for part in parts {
        done.extend(part?);
    }
    done.sort_unstable_by_key(|&(index, _)| index);
    memory::collected(done.into_iter().map(|(_, result)| result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::{ErrorKind, get};
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_batch_of_short_texts_ends_soon_after_its_task_is_stopped() {
        let encoding = get("gpt2").unwrap();
        let texts = vec!["one"; 100_000];
        let (asked, encoded) = (AtomicU32::new(0), AtomicUsize::new(0));
        let stop = |_| asked.fetch_add(1, Ordering::Relaxed) > 0;
        let task = Task::with_poll(&stop);
        let encode = |text: &str| {
            encoded.fetch_add(1, Ordering::Relaxed);
            encoding.count(text, Specials::None, &task)
        };
        assert_eq!(map(&texts, 1, &task, encode).unwrap_err().kind, ErrorKind::Stopped);
        let most = 2 * CHECK_EVERY / EACH;
        assert!(encoded.into_inner() <= most);
    }
}
