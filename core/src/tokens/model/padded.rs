//! Many texts as one matrix: rows of equal length, as models take them.

use super::tokenizer::{Options, Tokenizer};
use crate::memory::OutOfMemory;
use crate::task::Stretches;
use crate::tokens::{Error, TokenId};
use crate::{Task, memory};

/// On which side tokens are dropped or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before the text.
    Left,
    /// After it.
    Right,
}

/// The length of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The most tokens of a row, with those of the template. Longer texts are cut.
    pub max_length: Option<usize>,
    /// Where texts are cut.
    pub truncation_side: Side,
    /// The length of all rows; that of the longest text if there is none.
    pub length: Option<usize>,
    /// What the length is rounded up to a multiple of; 0 and 1 mean nothing.
    pub multiple_of: usize,
    /// What fills a row up, and on which side.
    pub pad_token: TokenId,
    /// Where rows are filled up.
    pub padding_side: Side,
}

/// Tokens in rows of equal length, as the signed integers of 64 bits that models take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Padded {
    /// The tokens, row after row.
    pub tokens: Vec<i64>,
    /// 1 for each token of a text and 0 for each that fills a row up.
    pub mask: Vec<i64>,
    /// The number of rows.
    pub rows: usize,
    /// The length of each.
    pub columns: usize,
}

/// How many places of a row are filled without a check of the task: new memory takes a millisecond for a megabyte.
const PART: usize = 1 << 16;

/// Rows that are being filled, in memory that has room for them.
struct Matrix<'a> {
    tokens: Vec<i64>,
    mask: Vec<i64>,
    pad_token: i64,
    stretches: Stretches<'a>,
}

impl Matrix<'_> {
    fn add(&mut self, row: &[TokenId]) -> Result<(), Error> {
        for part in row.chunks(PART) {
            self.stretches.check(self.tokens.len())?;
            self.tokens.extend(part.iter().copied().map(i64::from));
            self.mask.resize(self.tokens.len(), 1);
        }
        Ok(())
    }

    fn pad(&mut self, places: usize) -> Result<(), Error> {
        let end = self.tokens.len() + places;
        while self.tokens.len() < end {
            self.stretches.check(self.tokens.len())?;
            self.tokens.resize(end.min(self.tokens.len() + PART), self.pad_token);
            self.mask.resize(self.tokens.len(), 0);
        }
        Ok(())
    }
}

impl Tokenizer {
    /// The tokens of each text in a row, computed on up to `threads` threads.
    ///
    /// # Errors
    ///
    /// As [`encode_batch`](Self::encode_batch).
    pub fn encode_padded(
        &self,
        texts: &[&str],
        layout: &Layout,
        options: Options,
        threads: usize,
        task: &Task<'_>,
    ) -> Result<Padded, Error> {
        let mut all = self.encode_batch(texts, options, threads, task)?;
        if let Some(max) = layout.max_length {
            all.iter_mut().for_each(|tokens| self.cut(tokens, max, layout.truncation_side, options));
        }
        let longest = all.iter().map(Vec::len).max().unwrap_or(0);
        let columns = longest.max(layout.length.unwrap_or(0));
        let columns = columns.checked_next_multiple_of(layout.multiple_of.max(1)).ok_or(OutOfMemory)?;
        let size = columns.checked_mul(all.len()).ok_or(OutOfMemory)?;
        let mut matrix = Matrix {
            tokens: memory::with_capacity(size)?,
            mask: memory::with_capacity(size)?,
            pad_token: layout.pad_token.into(),
            stretches: Stretches::of_items(task),
        };
        for row in all {
            let missing = columns - row.len();
            let (before, after) = match layout.padding_side {
                Side::Left => (missing, 0),
                Side::Right => (0, missing),
            };
            matrix.pad(before)?;
            matrix.add(&row)?;
            matrix.pad(after)?;
        }
        let Matrix { tokens, mask, .. } = matrix;
        Ok(Padded { tokens, mask, rows: texts.len(), columns })
    }

    /// Drops tokens of the text, not of the template, until at most `max` are left.
    fn cut(&self, tokens: &mut Vec<TokenId>, max: usize, side: Side, options: Options) {
        let Some(surplus) = tokens.len().checked_sub(max).filter(|&surplus| surplus > 0) else { return };
        let (before, after) = self.template(options);
        let (start, end) = (before.len(), tokens.len() - after.len());
        let surplus = surplus.min(end - start);
        let dropped = match side {
            Side::Left => start..start + surplus,
            Side::Right => end - surplus..end,
        };
        tokens.drain(dropped);
        tokens.truncate(max);
    }
}
