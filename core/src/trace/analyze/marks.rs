//! Marks as holders and as waiters: what the program was doing while others waited, and what its waiting
//! cost.
//!
//! The holds and waits of each thread are cut where its marks begin and end. Each piece then belongs to a set
//! of marks, the open ones, and the sweeps of [`sweep`](super::sweep) run over these sets in place of
//! threads. So a mark within another one counts for itself and for the outer one, and recursion counts once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::recording::Recording;
use super::spans;
use super::summary::{Behind, GroupSummary, MarkBlame, MarkSummary, WaitTimes, group_of, per};
use super::sweep::{Edges, Piece, divide, wanted};
use super::timeline::{Life, LockLife, Span, Stretch, Timeline};

/// The most marks of which is said behind which holders they waited, and the most of these holders.
const MOST: usize = 64;

/// The marks, the longest first, and the blame by marks of each of the timeline's locks.
pub(super) fn summarize(
    recording: &Recording,
    timeline: &Timeline,
    contended: &[Vec<Stretch>],
    groups: &[GroupSummary],
) -> (Vec<MarkSummary>, Vec<Vec<MarkBlame>>) {
    let mut all: Vec<(u32, MarkSummary)> = spans::by_name(recording, timeline, |life| &life.marks)
        .into_iter()
        .map(|(name, span)| (name, MarkSummary { span, ..MarkSummary::default() }))
        .collect();
    all.sort_by_key(|(_, mark)| Reverse(mark.span.total));
    let index: HashMap<u32, usize> =
        all.iter().enumerate().map(|(index, (name, _))| (*name, index)).collect();
    let mut marks: Vec<MarkSummary> = all.into_iter().map(|(_, mark)| mark).collect();
    let mut sets = Sets::new(timeline, &index);
    measure(&mut marks, timeline, contended, &mut sets, &index);
    let group_of = group_of(groups, timeline.threads.len());
    let blame =
        timeline.locks.iter().map(|lock| Swept::new(timeline, lock, &sets, &group_of).blame(&mut marks));
    let blame = blame.collect();
    for mark in &mut marks {
        mark.behind.sort_by_key(|behind| (Reverse(behind.waited), behind.group, behind.mark));
    }
    (marks, blame)
}

/// The lengths of the marks' instances, and what they lost in contended waits.
fn measure(
    marks: &mut [MarkSummary],
    timeline: &Timeline,
    contended: &[Vec<Stretch>],
    sets: &mut Sets,
    index: &HashMap<u32, usize>,
) {
    let mut lengths = vec![[const { Vec::new() }; 3]; marks.len()];
    for (thread, waits) in contended.iter().enumerate() {
        for span in &timeline.threads[thread].marks {
            let [taken, lost, _] = &mut lengths[index[&span.name]];
            taken.push(span.end - span.start);
            lost.push(lost_within(waits, span));
        }
        for Piece { owner, start, end } in sets.cut(thread, waits.iter()) {
            sets.all[owner].iter().for_each(|mark| lengths[*mark][2].push(end - start));
        }
    }
    for (mark, lengths) in marks.iter_mut().zip(lengths) {
        [mark.lengths, mark.losses, mark.contended] = lengths.map(WaitTimes::of_lengths);
        mark.lost = per(mark.losses.total, mark.losses.total + mark.span.times.computing());
    }
}

fn lost_within(waits: &[Stretch], span: &Span) -> u64 {
    let first = waits.partition_point(|wait| wait.end <= span.start);
    let meanwhile = waits[first..].iter().take_while(|wait| wait.start < span.end);
    meanwhile.map(|wait| wait.end.min(span.end) - wait.start.max(span.start)).sum()
}

/// The sets of marks that threads were in.
struct Sets {
    /// The indices of the marks in each set; the first set is empty.
    all: Vec<Vec<usize>>,
    /// For each thread, which set is open from when on.
    phases: Vec<Vec<(u64, usize)>>,
}

impl Sets {
    fn new(timeline: &Timeline, index: &HashMap<u32, usize>) -> Self {
        let mut sets = Self { all: vec![Vec::new()], phases: Vec::new() };
        let mut numbers = HashMap::from([(Vec::new(), 0)]);
        for life in &timeline.threads {
            let mut phases = vec![(0, 0)];
            for (time, open) in open_marks(life, index) {
                let number = *numbers.entry(open).or_insert_with_key(|open| {
                    sets.all.push(open.clone());
                    sets.all.len() - 1
                });
                phases.push((time, number));
            }
            sets.phases.push(phases);
        }
        sets
    }

    /// Stretches of a thread as pieces during which the same marks were open; `owner` is the set.
    fn cut<'a>(&self, thread: usize, stretches: impl Iterator<Item = &'a Stretch>) -> Vec<Piece> {
        let phases = &self.phases[thread];
        let mut pieces = Vec::new();
        for stretch in stretches {
            let first = phases.partition_point(|(from, _)| *from <= stretch.start) - 1;
            let ends = phases[first + 1..].iter().map(|(from, _)| *from).chain([u64::MAX]);
            for ((from, owner), to) in phases[first..].iter().zip(ends) {
                if *from >= stretch.end {
                    break;
                }
                let (start, end) = (stretch.start.max(*from), stretch.end.min(to));
                pieces.push(Piece { owner: *owner, start, end });
            }
        }
        pieces
    }
}

/// The marks that are open on a thread, in ascending order, from each time at which that changes.
fn open_marks(life: &Life, index: &HashMap<u32, usize>) -> Vec<(u64, Vec<usize>)> {
    let spans = life.marks.iter().filter(|span| span.end > span.start);
    let mut edges: Vec<(u64, bool, usize)> = spans
        .flat_map(|span| [(span.start, true, index[&span.name]), (span.end, false, index[&span.name])])
        .collect();
    edges.sort_unstable();
    let mut open: BTreeMap<usize, u32> = BTreeMap::new();
    let mut changes = Vec::new();
    for at_once in edges.chunk_by(|a, b| a.0 == b.0) {
        for (_, begins, mark) in at_once {
            let count = open.entry(*mark).or_default();
            *count = if *begins { *count + 1 } else { *count - 1 };
        }
        open.retain(|_, count| *count > 0);
        changes.push((at_once[0].0, open.keys().copied().collect()));
    }
    changes
}

/// The holds of a lock and the waits for it, by marks.
struct Swept<'a> {
    sets: &'a Sets,
    /// Group and set of each holder.
    holders: Vec<(usize, usize)>,
    holds: Vec<Piece>,
    waits: Vec<Piece>,
    edges: Edges,
}

/// A holder: a group, in a mark or in none.
type Holder = (usize, Option<usize>);

impl<'a> Swept<'a> {
    fn new(timeline: &Timeline, lock: &LockLife, sets: &'a Sets, group_of: &[usize]) -> Self {
        let (mut holders, mut numbers) = (Vec::new(), HashMap::new());
        let mut holds = Vec::new();
        for hold in &lock.holds {
            let stretch = Stretch { lock: lock.id, start: hold.start, end: hold.end };
            for piece in sets.cut(hold.thread, [&stretch].into_iter()) {
                let holder = (group_of[hold.thread], piece.owner);
                let owner = *numbers.entry(holder).or_insert_with(|| {
                    holders.push(holder);
                    holders.len() - 1
                });
                holds.push(Piece { owner, ..piece });
            }
        }
        let waits = timeline.threads.iter().enumerate().flat_map(|(thread, life)| {
            sets.cut(thread, life.waits.iter().filter(|wait| wait.lock == lock.id && wait.length() > 0))
        });
        let waits: Vec<Piece> = waits.collect();
        Self { sets, holders, holds, edges: Edges::of(&waits), waits }
    }

    /// The groups and marks that a holder stands for.
    fn stands_for(&self, (group, set): (usize, usize)) -> Vec<Holder> {
        match self.sets.all[set].as_slice() {
            [] => vec![(group, None)],
            marks => marks.iter().map(|mark| (group, Some(*mark))).collect(),
        }
    }

    /// The holders by group and mark; what concerns one mark is added to it.
    fn blame(&self, marks: &mut [MarkSummary]) -> Vec<MarkBlame> {
        let mut by_holder: BTreeMap<Holder, MarkBlame> = BTreeMap::new();
        let wanted = wanted(self.holders.len(), &self.holds, &self.edges);
        for (holder, wanted) in self.holders.iter().zip(wanted).filter(|(_, wanted)| wanted.waited > 0) {
            for (group, mark) in self.stands_for(*holder) {
                let new = MarkBlame { group, mark, held: 0, longest_hold: 0, inflicted: 0 };
                let blame = by_holder.entry((group, mark)).or_insert(new);
                blame.held += wanted.held;
                blame.longest_hold = blame.longest_hold.max(wanted.longest_hold);
                blame.inflicted += wanted.waited;
            }
        }
        let mut blame: Vec<MarkBlame> = by_holder.into_values().collect();
        blame.sort_by_key(|blame| (Reverse(blame.inflicted), blame.group, blame.mark));
        self.add_waiting(marks, &blame);
        blame
    }

    fn add_waiting(&self, marks: &mut [MarkSummary], blame: &[MarkBlame]) {
        let waits = self.by_mark(marks.len(), &self.waits, |set| set);
        let holds = self.by_mark(marks.len(), &self.holds, |holder| self.holders[holder].1);
        let waited: Vec<u64> = waits.iter().map(|waits| total(waits)).collect();
        for each in blame {
            let Some(mark) = each.mark else { continue };
            marks[mark].held_wanted += each.held;
            marks[mark].inflicted += each.inflicted;
            marks[mark].inflicted_on_others += each.inflicted;
        }
        for (mark, (holds, waits)) in marks.iter_mut().zip(holds.iter().zip(&waits)) {
            mark.others_waited += total(&self.waits) - total(waits);
            mark.inflicted_on_others -= wanted(1, holds, &Edges::of(waits))[0].waited;
        }
        self.add_behind(marks, blame, &waited);
    }

    /// The pieces in each mark, all of one holder or waiter; `set_of` is the set of marks for a piece's
    /// number.
    fn by_mark(&self, marks: usize, pieces: &[Piece], set_of: impl Fn(usize) -> usize) -> Vec<Vec<Piece>> {
        let mut by_mark = vec![Vec::new(); marks];
        for piece in pieces {
            let marks = &self.sets.all[set_of(piece.owner)];
            marks.iter().for_each(|mark| by_mark[*mark].push(Piece { owner: 0, ..*piece }));
        }
        by_mark
    }

    /// Divides the waiting in the marks in which threads waited longest among the worst holders.
    fn add_behind(&self, marks: &mut [MarkSummary], blame: &[MarkBlame], waited: &[u64]) {
        let mut rows: Vec<usize> = (0..marks.len()).filter(|mark| waited[*mark] > 0).collect();
        rows.sort_by_key(|mark| (Reverse(waited[*mark]), *mark));
        rows.truncate(MOST);
        let columns: Vec<Holder> = blame.iter().take(MOST).map(|each| (each.group, each.mark)).collect();
        let (row, column) = (positions(&rows), positions(&columns));
        let rows_of: Vec<Vec<usize>> = self.sets.all.iter().map(|set| found(&row, set)).collect();
        let columns_of: Vec<Vec<usize>> =
            self.holders.iter().map(|holder| found(&column, &self.stands_for(*holder))).collect();
        let totals = divide((columns.len(), &columns_of), (rows.len(), &rows_of), &self.holds, &self.edges);
        for (mark, totals) in rows.iter().zip(totals.chunks(columns.len().max(1))) {
            let behind = columns.iter().zip(totals).filter(|(_, waited)| **waited > 0);
            let behind =
                behind.map(|((group, mark), waited)| Behind { group: *group, mark: *mark, waited: *waited });
            marks[*mark].behind.extend(behind);
        }
    }
}

fn total(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.end - piece.start).sum()
}

fn positions<T: Copy + Eq + Hash>(all: &[T]) -> HashMap<T, usize> {
    all.iter().enumerate().map(|(position, each)| (*each, position)).collect()
}

fn found<T: Eq + Hash>(positions: &HashMap<T, usize>, wanted: &[T]) -> Vec<usize> {
    wanted.iter().filter_map(|each| positions.get(each).copied()).collect()
}
