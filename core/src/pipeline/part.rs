//! A run that several processes share, each of which writes a part of the shards.

use super::shard::Shard;

/// A part of a run: every `count`-th shard, from that of the index `index` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    index: usize,
    count: usize,
}

impl Part {
    /// The part of this index, the first being 0, of so many; `None` if there is no such part.
    pub fn new(index: usize, count: usize) -> Option<Self> {
        (index < count).then_some(Self { index, count })
    }

    /// The shards of the part.
    pub(super) fn of(self, shards: &[Shard]) -> Vec<Shard> {
        shards.iter().skip(self.index).step_by(self.count).cloned().collect()
    }
}
