//! The processes that are watched: connects to those that appear, and forgets those that end.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use offlock_core::trace::{Connection, Recent, published, publishes};

use super::sample::Sample;
use crate::published::{command_of, why_not};

/// The most memory for the last seconds of a process, in bytes. Of a process that does more in them, less is shown.
const MEMORY: usize = 32 << 20;
/// How long the ring keeps more than the window: it is complete up to a second ago.
const RESERVE: Duration = Duration::from_secs(2);
/// How long after a connection failed the next is tried.
const RETRY: Duration = Duration::from_secs(1);
/// After how long without anything new a process is called silent.
const SILENCE: Duration = Duration::from_secs(4);
/// Less than that says little.
const LEAST: Duration = Duration::from_millis(500);
/// The seconds of the history.
pub(super) const HISTORY: usize = 60;

/// What is asked of the processes.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    /// The last seconds that are shown.
    pub(super) window: Duration,
    /// See [`Connection::open`].
    pub(super) stacks: Option<Duration>,
}

/// The processes that are watched.
pub(super) struct Processes {
    /// Watch these and what they started; all if it is empty.
    asked: Vec<u32>,
    wish: Wish,
    processes: BTreeMap<u32, Process>,
    arrives: Sender<(u32, io::Result<Recent>)>,
    arrived: Receiver<(u32, io::Result<Recent>)>,
}

/// A process that is watched.
pub(super) struct Process {
    pub(super) pid: u32,
    command: String,
    link: Link,
    /// The last whole seconds of the monotonic clock, and the share of each for which the lock was held.
    seconds: BTreeMap<u64, f64>,
    /// What it did in the last seconds.
    pub(super) sample: Option<Sample>,
    /// When the sample was last another one than before.
    news: Instant,
}

enum Link {
    Connecting,
    Following(Recent),
    Failed { why: String, at: Instant },
}

impl Processes {
    pub(super) fn new(asked: Vec<u32>, wish: Wish) -> Self {
        let (arrives, arrived) = mpsc::channel();
        Self { asked, wish, processes: BTreeMap::new(), arrives, arrived }
    }

    /// The processes, in the order of their numbers.
    pub(super) fn all(&self) -> Vec<&Process> {
        self.processes.values().collect()
    }

    /// Whether there is a process to watch.
    pub(super) fn is_any_there(&self) -> bool {
        !self.wanted().is_empty()
    }

    /// Their process ids.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.processes.keys().copied().collect()
    }

    /// Whether it is known of all these processes what they do, or why not. Those that have ended do not count.
    pub(super) fn have_numbers(&self, pids: &[u32]) -> bool {
        let is_known =
            |process: &Process| process.sample.is_some() || matches!(process.link, Link::Failed { .. });
        pids.iter().filter_map(|pid| self.processes.get(pid)).all(is_known)
    }

    /// Whether the processes that the user has named have ended. Then none will appear any more.
    pub(super) fn have_ended(&self) -> bool {
        let exists = |pid: &u32| std::fs::metadata(format!("/proc/{pid}")).is_ok();
        !self.asked.is_empty() && self.processes.is_empty() && !self.asked.iter().any(exists)
    }

    /// Brings everything up to date.
    pub(super) fn refresh(&mut self) {
        while let Ok((pid, connected)) = self.arrived.try_recv() {
            if let Some(process) = self.processes.get_mut(&pid) {
                process.link = match connected {
                    Ok(recent) => Link::Following(recent),
                    Err(error) => Link::Failed { why: why_not(pid, &error), at: Instant::now() },
                };
            }
        }
        let now = self.wanted();
        self.processes.retain(|pid, process| now.contains(pid) && !process.has_ended());
        for pid in now {
            let is_new = self.processes.get(&pid).is_none_or(Process::is_to_be_connected);
            if is_new {
                self.connect(pid);
            }
        }
        self.processes.values_mut().for_each(|process| process.refresh(self.wish.window));
    }

    /// The processes to be watched.
    fn wanted(&self) -> HashSet<u32> {
        let is_wanted =
            |pid: &u32| self.asked.is_empty() || line_of(*pid).any(|pid| self.asked.contains(&pid));
        // Root may ask for the processes of other users, which are not listed.
        let of_others = self.asked.iter().copied().filter(|pid| publishes(*pid));
        published().into_iter().filter(is_wanted).chain(of_others).collect()
    }

    /// Connects in a thread: a process that is stopped lets it wait.
    fn connect(&mut self, pid: u32) {
        let process = self.processes.entry(pid).or_insert_with(|| Process::new(pid));
        process.link = Link::Connecting;
        let (Wish { window, stacks }, arrives) = (self.wish, self.arrives.clone());
        std::thread::spawn(move || {
            let connection = Connection::open(pid, stacks);
            let recent =
                connection.and_then(|connection| Recent::follow(connection, window + RESERVE, MEMORY));
            // The view has ended if nobody takes it.
            let _ = arrives.send((pid, recent));
        });
    }
}

impl Process {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            command: command_of(pid),
            link: Link::Connecting,
            seconds: BTreeMap::new(),
            sample: None,
            news: Instant::now(),
        }
    }

    fn has_ended(&self) -> bool {
        matches!(&self.link, Link::Following(recent) if recent.has_ended())
    }

    fn is_to_be_connected(&self) -> bool {
        match &self.link {
            Link::Connecting => false,
            Link::Following(recent) => recent.is_crowded(),
            Link::Failed { at, .. } => at.elapsed() >= RETRY,
        }
    }

    fn refresh(&mut self, window: Duration) {
        let Link::Following(recent) = &self.link else { return };
        let Some(recording) = recent.recording(window) else { return };
        if Duration::from_nanos(recording.end - recording.start) < LEAST.min(window) {
            return;
        }
        let sample = Sample::of(&recording);
        if self.sample.as_ref().is_none_or(|before| before.end != sample.end) {
            self.news = Instant::now();
        }
        self.seconds.extend(sample.seconds.iter().copied());
        while self.seconds.len() > HISTORY {
            self.seconds.pop_first();
        }
        self.sample = Some(sample);
    }

    /// The program: as the system has it, or else as the process told it.
    pub(super) fn command(&self) -> &str {
        match &self.sample {
            Some(sample) if self.command.is_empty() => &sample.command,
            _ => &self.command,
        }
    }

    /// The share of each second of the last minute for which the lock was held, the last one at the end.
    pub(super) fn history(&self) -> Vec<f64> {
        self.seconds.values().copied().collect()
    }

    /// Why there is nothing to show, or nothing new.
    pub(super) fn trouble(&self) -> Option<String> {
        match (&self.link, &self.sample) {
            (Link::Failed { why, .. }, _) => Some(why.clone()),
            (_, None) => Some("waiting for the first second".into()),
            _ if self.news.elapsed() >= SILENCE => {
                Some(format!("nothing new for {} s: is it stopped?", self.news.elapsed().as_secs()))
            }
            (_, Some(sample)) => sample.estimate.as_ref().map(|why| format!("estimated: {why}")),
        }
    }
}

/// A process, the one that started it, and so on, as far as the system tells it.
fn line_of(pid: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(pid), |pid| parent_of(*pid).filter(|parent| *parent > 1))
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain blanks and parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_parent_of_a_process_is_known() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it is there");
        let line: Vec<u32> = line_of(child.id()).take(2).collect();
        assert_eq!(line, [child.id(), std::process::id()]);
        child.kill().expect("it runs");
        child.wait().expect("it was started");
    }
}
