//! Tokens as little-endian numbers.

use std::io::{self, Write};

use crate::tokens::TokenId;

/// The number of tokens that 16 bits can tell apart.
pub(super) const SIXTEEN_BITS: usize = 1 << 16;

/// The size of a token's number in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Two,
    Four,
}

impl Width {
    /// Two bytes if they can tell `n_vocab` tokens apart.
    pub(super) fn for_vocabulary(n_vocab: usize) -> Self {
        if n_vocab <= SIXTEEN_BITS { Self::Two } else { Self::Four }
    }

    /// The number of bytes.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Writes the numbers. Those of two bytes must fit, as the vocabulary's size has ensured.
    pub(super) fn write(self, tokens: &[TokenId], out: &mut impl Write) -> io::Result<()> {
        /// Tokens that are converted at a time, on the stack.
        const AT_ONCE: usize = 512;
        for tokens in tokens.chunks(AT_ONCE) {
            match self {
                Self::Two => {
                    let mut numbers = [[0; 2]; AT_ONCE];
                    for (number, &token) in numbers.iter_mut().zip(tokens) {
                        *number = (token as u16).to_le_bytes();
                    }
                    out.write_all(numbers[..tokens.len()].as_flattened())?;
                }
                Self::Four => {
                    let mut numbers = [[0; 4]; AT_ONCE];
                    for (number, &token) in numbers.iter_mut().zip(tokens) {
                        *number = token.to_le_bytes();
                    }
                    out.write_all(numbers[..tokens.len()].as_flattened())?;
                }
            }
        }
        Ok(())
    }
}
