//! The texts, and the documents that they are cut into.

use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads a compressed text.
pub(crate) fn read(folder: &Path, name: &str) -> String {
    let path = folder.join(format!("{name}.txt.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("the texts are UTF-8");
    text
}

/// Cuts a text into documents of 1 to 20 KB, in another order, the same each time.
pub(crate) fn documents(text: &str) -> Vec<&str> {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let (mut documents, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let size = rest.floor_char_boundary(1_000 + chance.below(19_000));
        let (document, after) = rest.split_at(size);
        documents.push(document);
        rest = after;
    }
    for last in (1..documents.len()).rev() {
        documents.swap(last, chance.below(last + 1));
    }
    documents
}

/// Pseudo-random numbers (xorshift, Marsaglia 2003).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}
