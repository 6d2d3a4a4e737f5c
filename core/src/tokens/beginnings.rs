//! Strings of which the end of a text may have the beginning.

/// A set of strings, for texts that go on.
pub(super) struct Beginnings {
    sorted: Vec<Vec<u8>>,
    longest: usize,
}

impl Beginnings {
    pub(super) fn new<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut sorted: Vec<_> = texts.map(|text| text.as_bytes().to_vec()).collect();
        sorted.sort_unstable();
        let longest = sorted.iter().map(Vec::len).max().unwrap_or(0);
        Self { sorted, longest }
    }

    /// The first place at or after `from` from which on `text` has the beginning of a string, but not yet all of
    /// it; the end of the text if there is none. Which strings begin before that place is certain.
    pub(super) fn first_open(&self, text: &str, from: usize) -> usize {
        let text = text.as_bytes();
        let first = from.max((text.len() + 1).saturating_sub(self.longest));
        (first..text.len()).find(|&at| self.has_beginning(&text[at..])).unwrap_or(text.len())
    }

    fn has_beginning(&self, beginning: &[u8]) -> bool {
        let place = self.sorted.partition_point(|text| text.as_slice() <= beginning);
        self.sorted.get(place).is_some_and(|text| text.starts_with(beginning))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_beginning_counts() {
        let beginnings = Beginnings::new(["<|end|>", "<|end|>>", "é!"].into_iter());
        for (text, open) in [
            ("", 0),
            ("a", 1),
            ("a<", 1),
            ("a<<|", 2),
            ("<|end|", 0),
            ("<|end|>", 0), // `<|end|>>` may follow
            ("<|end|>>", 8),
            ("<|end|> ", 8),
            ("<|e<|", 3),
            ("xé", 1),
            ("xé!", 4),
        ] {
            assert_eq!(beginnings.first_open(text, 0), open, "{text:?}");
        }
        assert_eq!(beginnings.first_open("<|e<|", 4), 5);
        assert_eq!(Beginnings::new([].into_iter()).first_open("<|", 0), 2);
    }
}
