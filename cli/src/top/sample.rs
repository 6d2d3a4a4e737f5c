//! What a process did in the last seconds, as the view shows it.

use offlock_core::trace::{
    Hold, Life, LockLife, Recording, STATES, State, Summary, Timeline, printable_line,
};

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// What a process did in the last seconds. Times are in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sample {
    /// The program.
    pub(super) command: String,
    /// When it ends, on the monotonic clock.
    pub(super) end: u64,
    /// How long it is.
    pub(super) length: u64,
    /// Why it is estimated, if it is.
    pub(super) estimate: Option<String>,
    /// The share of the time for which the lock was held. Of several locks, the one for which threads waited longest.
    pub(super) held: f64,
    /// The greatest share of their active time that threads of one group lost to waiting.
    pub(super) lost: f64,
    /// The thread that holds that lock at the end.
    pub(super) holder: Option<String>,
    /// How many threads wait at the end.
    pub(super) waiting: usize,
    /// The threads.
    pub(super) threads: Vec<Row>,
    /// The groups of threads.
    pub(super) groups: Vec<Row>,
    /// The code that others waited for, that to which most time was lost first.
    pub(super) lines: Vec<Line>,
    /// For how long all threads together waited.
    pub(super) waited: u64,
    /// Whole seconds of the monotonic clock, and the share of each for which the lock was held.
    pub(super) seconds: Vec<(u64, f64)>,
}

/// A thread or a group.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// The number of threads.
    pub(super) count: usize,
    /// What it does at the end; of a group, what most of its threads do.
    pub(super) now: State,
    /// The share of its life in each state, in the order of [`State::ALL`].
    pub(super) shares: [f64; STATES],
    /// The share of its active time that it lost to contended waits.
    pub(super) lost: f64,
    /// The longest contended wait.
    pub(super) longest_wait: u64,
    /// The thread behind which it waited longest, and the share of its waiting.
    pub(super) behind: Option<(String, f64)>,
}

/// A line of code that others waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) function: String,
    /// Its file and line, empty if it has none.
    pub(super) place: String,
    /// For how long others waited meanwhile.
    pub(super) lost: u64,
    pub(super) longest_hold: u64,
}

impl Sample {
    pub(super) fn of(recording: &Recording) -> Self {
        let timeline = Timeline::of(recording);
        let summary = Summary::of(recording, &timeline);
        let lock = summary.locks.iter().max_by(|a, b| (a.waited, a.held).cmp(&(b.waited, b.held)));
        let life = lock.and_then(|lock| timeline.locks.iter().find(|life| life.id == lock.id));
        let now: Vec<State> = timeline.threads.iter().map(|life| state_at_end(life, &timeline)).collect();
        let threads = Threads { summary: &summary, timeline: &timeline, now: &now };
        Self {
            command: printable_line(recording.about("command").unwrap_or_default()),
            end: recording.end,
            length: timeline.length,
            estimate: recording.is_estimate().then(|| obstacle(recording)),
            held: lock.map_or(0.0, |lock| lock.utilization),
            lost: summary.groups.iter().map(|group| group.lost).fold(0.0, f64::max),
            holder: life.and_then(|life| holder_at(life, timeline.length)).map(|thread| threads.name(thread)),
            waiting: now.iter().filter(|state| **state == State::Waiting).count(),
            threads: threads.rows(),
            groups: threads.groups(),
            lines: lines(&summary),
            waited: summary.contended.total,
            seconds: life.map(|life| held_by_second(&life.holds, recording)).unwrap_or_default(),
        }
    }
}

fn obstacle(recording: &Recording) -> String {
    printable_line(recording.about("obstacle").unwrap_or("the interpreter does not report exactly"))
}

/// What a thread does at the end of the recording.
fn state_at_end(life: &Life, timeline: &Timeline) -> State {
    let last = life.slices.last().filter(|_| life.end >= timeline.length);
    last.map_or(State::Idle, |slice| slice.state)
}

/// The thread that holds a lock at the end, by its index.
fn holder_at(lock: &LockLife, end: u64) -> Option<usize> {
    lock.holds.last().filter(|hold| hold.end >= end).map(|hold| hold.thread)
}

/// Rows of threads and of groups.
struct Threads<'a> {
    summary: &'a Summary,
    timeline: &'a Timeline,
    now: &'a [State],
}

impl Threads<'_> {
    fn name(&self, thread: usize) -> String {
        self.timeline.threads.get(thread).map(|life| printable_line(&life.name)).unwrap_or_default()
    }

    /// The threads that live at the end.
    fn rows(&self) -> Vec<Row> {
        let alive =
            self.timeline.threads.iter().enumerate().filter(|(_, life)| life.end >= self.timeline.length);
        alive.map(|(index, _)| self.row(index)).collect()
    }

    fn row(&self, index: usize) -> Row {
        let thread = &self.summary.threads[index];
        let active = thread.times.computing() + thread.contended.total;
        Row {
            name: self.name(index),
            count: 1,
            now: self.now[index],
            shares: thread.times.all().map(|time| share(time, thread.lifetime)),
            lost: share(thread.contended.total, active),
            longest_wait: thread.contended.max,
            behind: self.behind(&[index]),
        }
    }

    fn groups(&self) -> Vec<Row> {
        let group = |group: &offlock_core::trace::GroupSummary| {
            let life = group.threads.iter().map(|thread| self.summary.threads[*thread].lifetime).sum();
            Row {
                name: printable_line(&group.name),
                count: group.threads.len(),
                now: self.most_do(&group.threads),
                shares: group.times.all().map(|time| share(time, life)),
                lost: group.lost,
                longest_wait: group.contended.max,
                behind: self.behind(&group.threads),
            }
        };
        self.summary.groups.iter().map(group).collect()
    }

    /// What most of these threads do; the state that says more where several are as many.
    fn most_do(&self, threads: &[usize]) -> State {
        let count = |state: State| threads.iter().filter(|thread| self.now[**thread] == state).count();
        let by_count = |state: &State| (count(*state), STATES - *state as usize);
        State::ALL.into_iter().max_by_key(by_count).unwrap_or(State::Idle)
    }

    /// The thread behind which these threads waited longest.
    fn behind(&self, threads: &[usize]) -> Option<(String, f64)> {
        let rows = self.summary.locks.iter().flat_map(|lock| &lock.blame);
        let rows: Vec<_> = rows.filter(|row| threads.contains(&row.thread)).collect();
        let waited: u64 = rows.iter().map(|row| row.waited).sum();
        let mut by = vec![0; self.timeline.threads.len()];
        rows.iter().flat_map(|row| &row.by).for_each(|(holder, time)| by[*holder] += time);
        let (holder, time) =
            by.into_iter().enumerate().max_by_key(|(_, time)| *time).filter(|(_, time)| *time > 0)?;
        Some((self.name(holder), share(time, waited)))
    }
}

fn lines(summary: &Summary) -> Vec<Line> {
    let line = |line: &offlock_core::trace::BlamedLine| Line {
        function: printable_line(&line.function),
        place: match (line.file.as_str(), line.line) {
            ("", _) => String::new(),
            (file, 0) => printable_line(file),
            (file, number) => printable_line(&format!("{file}:{number}")),
        },
        lost: line.lost,
        longest_hold: line.longest_hold,
    };
    summary.code.lines.iter().map(line).collect()
}

/// The whole seconds of the recording, and the share of each for which a lock with these holds was held.
fn held_by_second(holds: &[Hold], recording: &Recording) -> Vec<(u64, f64)> {
    let whole = recording.start.div_ceil(SECOND)..recording.end / SECOND;
    let mut held: Vec<(u64, u64)> = whole.map(|second| (second, 0)).collect();
    for hold in holds {
        let (start, end) = (recording.start + hold.start, recording.start + hold.end);
        let first = held.partition_point(|(second, _)| (second + 1) * SECOND <= start);
        for (second, time) in &mut held[first..] {
            let (begins, ends) = (*second * SECOND, (*second + 1) * SECOND);
            if begins >= end {
                break;
            }
            *time += end.min(ends) - start.max(begins);
        }
    }
    held.into_iter().map(|(second, time)| (second, share(time, SECOND))).collect()
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_held_for_the_sum_of_the_holds_in_it() {
        let recording = Recording { start: SECOND / 2, end: 4 * SECOND + 1, ..Recording::default() };
        let hold = |start: f64, end: f64| Hold {
            thread: 0,
            start: (start * SECOND as f64) as u64,
            end: (end * SECOND as f64) as u64,
        };
        // From 0.5 s on the clock: a hold before the first whole second, one over two seconds, two in one.
        let holds = [hold(0.0, 0.25), hold(0.75, 2.0), hold(2.5, 2.6), hold(2.7, 2.9)];
        let seconds = held_by_second(&holds, &recording);
        let rounded: Vec<_> =
            seconds.iter().map(|(second, held)| (*second, (held * 100.0).round())).collect();
        assert_eq!(rounded, [(1, 75.0), (2, 50.0), (3, 30.0)]);
        assert_eq!(held_by_second(&holds, &Recording::default()), []);
    }
}
