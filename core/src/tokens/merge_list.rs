//! Byte pair encoding by a list of merges, as `tokenizer.json` has it: the order in which pairs are joined is
//! that of the list, whatever the tokens' numbers are, and a pair that is not in the list is never joined.
//!
//! # When a list of merges is the same as an order of tokens
//!
//! The faster methods know no list: to them, any two neighbours that form a token may be joined, and the
//! token's index is its rank. [`order`] finds out whether some order of the tokens makes that the same.
//!
//! Both algorithms join the pair of lowest rank, the leftmost of equals. Look at a span of a piece that
//! becomes one token at some time. Until then no join went across its ends, and those inside were chosen by
//! the same ranks and in the same order as if the span were a piece of its own. So the last join is always
//! the one that makes the token of its own bytes: every token has one pair from which it is ever made, its
//! *maker*, or is never made at all. What the algorithm does on any piece depends on nothing but the makers
//! and their order.
//!
//! Hence: take the tokens that the list makes, first the bytes, then the others in the order in which their
//! makers are listed. If joining by these indices gives every token the same maker, both algorithms give the
//! same result on every piece. The check takes one encoding of each token by each of the two. Tokens that the
//! list never makes stay out of the table, because the other algorithm might make them.
//!
//! A maker may be listed before that of a part of the token (90 in the list of Llama 3). Then the
//! token is made as soon as the part is, before any other pair of a higher rank, and its place in the order is
//! behind that part ([`place`]). By the list, each occurrence of the part in a piece is followed by what is made
//! of it; by the order, all occurrences come first. That is the same unless one occurrence takes a token that
//! another one needs, which [`is_independent`] excludes.

use super::Error;
use super::merges::Merge;
use crate::memory::{self, OutOfMemory};
use crate::task::Stretches;
use crate::{Stopped, Task};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The pairs that may be joined.
#[derive(Default)]
pub(super) struct MergeList {
    /// For two tokens, the rank of their join, and the token that it makes.
    joins: FxHashMap<(u32, u32), (u32, u32)>,
}

/// How a token is made of its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maker {
    pub(super) rank: u32,
    pub(super) left: u32,
    pub(super) right: u32,
}

impl MergeList {
    /// Enters the next pair of the list; of equal pairs the last one counts.
    pub(super) fn add(&mut self, left: u32, right: u32, rank: u32, joined: u32) -> Result<(), OutOfMemory> {
        if self.joins.len() == self.joins.capacity() {
            self.joins.try_reserve(self.joins.len().max(1024)).map_err(|_| OutOfMemory)?;
        }
        self.joins.insert((left, right), (rank, joined));
        Ok(())
    }

    /// The same list for tokens with new numbers.
    pub(super) fn renumbered(&self, number: impl Fn(u32) -> u32) -> Result<Self, OutOfMemory> {
        let mut list = Self::default();
        for (&(left, right), &(rank, joined)) in &self.joins {
            list.add(number(left), number(right), rank, number(joined))?;
        }
        Ok(list)
    }
}

/// One piece after the other, in memory that is used again.
#[derive(Default)]
pub(super) struct Joiner {
    parts: Vec<Part>,
    /// The rank, the place and the two tokens of pairs that may be joined.
    queue: BinaryHeap<Reverse<(u32, usize, u32, u32)>>,
}

struct Part {
    token: u32,
    /// The places of the neighbours.
    before: usize,
    after: usize,
}

/// No place.
const NONE: usize = usize::MAX;

/// A part that was joined to the one before it.
const GONE: u32 = u32::MAX;

/// The number of steps between two checks of the task.
const STRETCH: usize = 1024;

impl Joiner {
    /// Joins the tokens of single bytes, as far as the list goes. Returns the last join.
    pub(super) fn join(
        &mut self,
        tokens: impl Iterator<Item = u32>,
        list: &MergeList,
        task: &Task<'_>,
    ) -> Result<Option<Maker>, Error> {
        self.parts.clear();
        self.queue.clear();
        for (place, token) in tokens.enumerate() {
            look_at(task, place)?;
            memory::push(&mut self.parts, Part { token, before: place.wrapping_sub(1), after: place + 1 })?;
        }
        if let Some(last) = self.parts.last_mut() {
            last.after = NONE;
        }
        for place in 0..self.parts.len() {
            self.offer(place, list)?;
        }
        let mut last = None;
        for step in 1.. {
            look_at(task, step)?;
            let Some(Reverse((rank, place, left, right))) = self.queue.pop() else { break };
            let part = &self.parts[place];
            let is_current =
                part.token == left && part.after != NONE && self.parts[part.after].token == right;
            if is_current {
                self.join_at(place, list.joins[&(left, right)].1, list)?;
                last = Some(Maker { rank, left, right });
            }
        }
        Ok(last)
    }

    /// The tokens that the last piece was joined to.
    pub(super) fn tokens(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().map(|part| part.token).filter(|&token| token != GONE)
    }

    fn join_at(&mut self, place: usize, joined: u32, list: &MergeList) -> Result<(), OutOfMemory> {
        let gone = self.parts[place].after;
        let after = self.parts[gone].after;
        self.parts[gone].token = GONE;
        self.parts[place].token = joined;
        self.parts[place].after = after;
        if after != NONE {
            self.parts[after].before = place;
        }
        self.offer(place, list)?;
        self.offer(self.parts[place].before, list)
    }

    /// Queues the pair of the part at `place` and the next one, if the list has it.
    fn offer(&mut self, place: usize, list: &MergeList) -> Result<(), OutOfMemory> {
        let Some(left) = self.parts.get(place) else { return Ok(()) };
        let Some(right) = self.parts.get(left.after) else { return Ok(()) };
        if let Some(&(rank, _)) = list.joins.get(&(left.token, right.token)) {
            self.queue.try_reserve(1)?;
            self.queue.push(Reverse((rank, place, left.token, right.token)));
        }
        Ok(())
    }
}

fn look_at(task: &Task<'_>, step: usize) -> Result<(), Stopped> {
    if step.is_multiple_of(STRETCH) { task.check() } else { Ok(()) }
}

/// The tokens of a list of merges in the order that the faster methods need.
pub(super) struct Order {
    /// The tokens that are made, the single bytes first.
    pub(super) made: Vec<u32>,
    /// The tokens that are never made.
    pub(super) never: Vec<u32>,
    /// For each token that is made of two, by number, how.
    makers: Vec<Option<Maker>>,
    /// Whether the list may be followed by an order at all.
    is_independent: bool,
}

/// Finds out how the list makes each of the `tokens`. `bytes` has the token of each byte.
pub(super) fn order<'a>(
    tokens: impl Iterator<Item = &'a [u8]>,
    bytes: &[u32; 256],
    list: &MergeList,
    task: &Task<'_>,
) -> Result<Order, Error> {
    let (mut single, mut made, mut never) = (Vec::new(), Vec::new(), Vec::new());
    let mut makers = Vec::new();
    let mut joiner = Joiner::default();
    let (mut looks, mut end) = (Stretches::new(task, 4 << 10), 0);
    let mut lengths = Vec::new();
    for (number, token) in (0..).zip(tokens) {
        end += token.len();
        memory::push(&mut lengths, token.len())?;
        looks.check(end)?;
        let last = joiner.join(token.iter().map(|&byte| bytes[usize::from(byte)]), list, task)?;
        let maker = last.filter(|_| joiner.tokens().count() == 1);
        match maker {
            _ if token.len() == 1 => memory::push(&mut single, number)?,
            Some(_) => memory::push(&mut made, number)?,
            None => memory::push(&mut never, number)?,
        }
        memory::push(&mut makers, maker)?;
    }
    made.sort_unstable_by_key(|&number: &u32| lengths[number as usize]);
    let late = late(&made, &makers)?;
    made.sort_unstable_by(|a, b| place(*a, &makers, &late).cmp(place(*b, &makers, &late)));
    let is_independent = is_independent(&makers, &late);
    let made = memory::collected::<_, Error>(single.into_iter().chain(made).map(Ok))?;
    Ok(Order { made, never, makers, is_independent })
}

/// The places in the order of tokens whose makers are listed before that of a part. A place is the rank of the part
/// that comes last, followed by lower ones in falling order: what is made before anything of a higher rank.
type Late = FxHashMap<u32, Vec<u32>>;

/// A token's place: the rank of its maker, unless it is late; nothing for a single byte.
fn place<'a>(number: u32, makers: &'a [Option<Maker>], late: &'a Late) -> &'a [u32] {
    match (late.get(&number), &makers[number as usize]) {
        (Some(place), _) => place,
        (None, Some(maker)) => std::slice::from_ref(&maker.rank),
        (None, None) => &[],
    }
}

/// Finds the late tokens among those that are `made`, which come by their length, so that parts come first.
fn late(made: &[u32], makers: &[Option<Maker>]) -> Result<Late, OutOfMemory> {
    let mut late = Late::default();
    for &number in made {
        let Some(Maker { rank, left, right }) = makers[number as usize] else { continue };
        let last = place(left, makers, &late).max(place(right, makers, &late));
        let higher = last.iter().take_while(|&&other| other > rank).count();
        if higher > 0 {
            let place = memory::collected::<_, OutOfMemory>(
                last[..higher].iter().chain([&rank]).map(|&rank| Ok(rank)),
            )?;
            late.try_reserve(1).map_err(|_| OutOfMemory)?;
            late.insert(number, place);
        }
    }
    Ok(late)
}

/// Whether what late tokens are made of is needed by nothing else that is made at the same time. All tokens whose places
/// begin with one rank are made from one that has this rank, the first: each joins what there was before, on its left or
/// right, with one of them. Occurrences of the first are made from the left. Two of them need the same token only if one
/// joins on its right what the first begins with, or if the token is joined on both sides.
fn is_independent(makers: &[Option<Maker>], late: &Late) -> bool {
    if late.is_empty() {
        return true;
    }
    let first_of = |number| place(number, makers, late).first();
    let beginnings: FxHashMap<u32, u32> =
        makers.iter().flatten().map(|maker| (maker.rank, maker.left)).collect();
    let mut sides: FxHashMap<(u32, u32), bool> = FxHashMap::default();
    late.iter().all(|(&number, place)| {
        let (first, Some(Maker { left, right, .. })) = (place[0], makers[number as usize]) else {
            return false;
        };
        let is_later = [left, right].map(|part| first_of(part) == Some(&first));
        let (joined, is_right) = match is_later {
            [true, false] => (right, true),
            [false, true] => (left, false),
            _ => return false,
        };
        let takes_beginning = is_right && beginnings.get(&first) == Some(&joined);
        !takes_beginning && *sides.entry((first, joined)).or_insert(is_right) == is_right
    })
}

impl Order {
    /// Whether `merges`, which has the indices of `made`, makes every token as the list does.
    pub(super) fn is_kept_by(&self, merges: &[Merge]) -> bool {
        self.is_independent
            && self.made.iter().zip(merges).all(|(&number, merge)| match self.makers[number as usize] {
                None => merge.length == 1,
                Some(maker) => {
                    merge.is_made()
                        && self.made[merge.left as usize] == maker.left
                        && self.made[merge.right as usize] == maker.right
                }
            })
    }
}
