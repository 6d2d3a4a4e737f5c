//! Batches of documents, encoded ahead by threads of their own.
//!
//! The threads take batches of records in the order of the shards, encode them beside each other, and queue the
//! results in the same order. Each thread waits with its result until there is room in the queue, so a reader that
//! is slower than the threads bounds what is in memory. The threads end when the [`Batches`] are dropped.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use std::{fmt, mem, process};

use super::batch;
use super::documents::{Encoded, OnError};
use super::error::{Error, ErrorKind};
use super::records::Records;
use super::reports::Reports;
use super::settings::Settings;
use super::shard::{Format, Shard};
use crate::fork::lock;
use crate::tokens::TokenId;
use crate::{Task, memory};

/// How many batches wait in the queue, besides the one that each thread holds.
const QUEUED: usize = 2;

/// How long the reader waits for a batch before it looks whether it has been stopped.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The documents of about 1 MB of records of one shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The shard.
    pub path: PathBuf,
    /// The tokens of all documents, one document after the other.
    pub tokens: Vec<TokenId>,
    /// Where each document begins in `tokens`, and the end of the last one.
    pub offsets: Vec<u64>,
    /// The number of each document's record in the shard, the first being 1; in formats of lines, that of the line.
    pub records: Vec<u64>,
    /// The bytes of the documents' texts.
    pub bytes: u64,
    /// How many records failed and were left out.
    pub failed: u64,
    /// What is wrong with them, with [`OnError::Report`]; at most [`Reports::LIMIT`] are kept.
    pub errors: Vec<Error>,
}

impl Batch {
    fn new(encoded: Encoded, path: &Path) -> Result<Self, Error> {
        let no_memory = |error: memory::OutOfMemory| Error::new(path, error);
        let documents = encoded.documents.len();
        let mut offsets = memory::with_capacity(documents + 1).map_err(no_memory)?;
        let mut records = memory::with_capacity(documents).map_err(no_memory)?;
        offsets.push(0);
        let mut bytes = 0;
        for document in &encoded.documents {
            offsets.push(document.end as u64);
            records.push(document.place.number);
            bytes += document.bytes as u64;
        }
        let Encoded { tokens, failed, mut errors, .. } = encoded;
        errors.truncate(Reports::LIMIT);
        Ok(Self { path: path.to_owned(), tokens, offsets, records, bytes, failed, errors })
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.records.len()
    }
}

/// An iterator over the batches of shards, in order.
///
/// It can be shared between threads; each batch goes to one of them. In the child of a fork it gives an error, as the
/// threads that encode live in the parent.
pub struct Batches {
    state: Arc<State>,
    /// The process that has the threads.
    process: u32,
}

impl Batches {
    /// Starts to read `shards` on [`Settings::threads`] threads.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` or `Io` if no thread can be started. What is wrong with the shards, [`next`](Self::next) tells.
    pub fn start(shards: Vec<Shard>, settings: Arc<Settings>) -> Result<Self, Error> {
        let threads = settings.thread_count();
        let total = shards.iter().map(|shard| shard.size).sum();
        let state = Arc::new(State {
            total,
            settings,
            intake: Mutex::new(Intake { shards: shards.into_iter(), lane: None, taken: 0 }),
            queue: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            read: AtomicU64::new(0),
            task: Task::new(),
        });
        let batches = Self { state, process: process::id() };
        for started in 0..threads {
            match batches.start_thread() {
                Ok(()) => {}
                // Fewer threads do all of the work.
                Err(_) if started > 0 => break,
                Err(error) => return Err(Error::new(Path::new("a thread to encode on"), error)),
            }
        }
        Ok(batches)
    }

    fn start_thread(&self) -> Result<(), ErrorKind> {
        // A thread that fails to allocate while it starts ends the process. So check for the memory first.
        memory::with_capacity::<u8>(FOR_A_THREAD)?;
        lock(&self.state.queue).working += 1;
        let state = Arc::clone(&self.state);
        let started = thread::Builder::new().name("offlock-pipeline".to_owned()).spawn(move || state.work());
        if started.is_err() {
            lock(&self.state.queue).working -= 1;
        }
        Ok(started.map(drop)?)
    }

    /// The next batch; `None` behind the last one and after an error.
    ///
    /// # Errors
    ///
    /// Those of [`count`](super::count). `Stopped` when `task` is; the batch is not lost then.
    ///
    /// # Panics
    ///
    /// When a thread that encodes has panicked.
    pub fn next(&self, task: &Task<'_>) -> Result<Option<Batch>, Error> {
        if self.process != process::id() {
            let message = "the batches are read by threads of the process that forked; begin anew".to_owned();
            return Err(Error::new(Path::new("the pipeline"), ErrorKind::Invalid { message }));
        }
        let mut queue = lock(&self.state.queue);
        loop {
            task.check().map_err(|stopped| Error::new(Path::new("the pipeline"), stopped))?;
            assert!(!queue.panicked, "a thread that encodes has panicked");
            if let Some(batch) = queue.ready.pop_front() {
                self.state.changed.notify_all();
                return batch.map(Some);
            }
            if queue.working == 0 || self.state.stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            queue = wait_for(&self.state.changed, queue);
        }
    }

    /// Ends the threads, and returns when they no longer work. [`next`](Self::next) returns `None` from then on.
    pub fn close(&self) {
        if self.process != process::id() {
            return;
        }
        self.state.stop();
        let mut queue = lock(&self.state.queue);
        while queue.working > 0 {
            queue = wait_for(&self.state.changed, queue);
        }
        queue.ready.clear();
    }

    /// The number of bytes of the shards that have been read so far.
    pub fn bytes_read(&self) -> u64 {
        self.state.read.load(Ordering::Relaxed)
    }

    /// The size of all shards in bytes.
    pub fn bytes_total(&self) -> u64 {
        self.state.total
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("bytes_read", &self.bytes_read()).finish_non_exhaustive()
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        if self.process == process::id() {
            // The threads end by themselves, within about a millisecond.
            self.state.stop();
        } else {
            // Another thread may have held the locks at the fork.
            mem::forget(Arc::clone(&self.state));
        }
    }
}

/// Bytes of memory that a thread needs besides its stack, estimated generously.
const FOR_A_THREAD: usize = 4 << 20;

/// What the threads and the reader share.
struct State {
    settings: Arc<Settings>,
    total: u64,
    intake: Mutex<Intake>,
    queue: Mutex<Queue>,
    /// Signalled when a batch was queued or taken, and when a thread has ended.
    changed: Condvar,
    stopped: AtomicBool,
    /// The bytes of the shards that were read.
    read: AtomicU64,
    task: Task<'static>,
}

/// The side on which batches of records are taken, by one thread at a time.
struct Intake {
    shards: std::vec::IntoIter<Shard>,
    lane: Option<Lane>,
    /// The number of batches, and of errors between them, that were taken.
    taken: u64,
}

/// The shard that is being read.
struct Lane {
    path: Arc<Path>,
    format: Format,
    records: Records,
}

/// The side on which batches of documents are queued.
#[derive(Default)]
struct Queue {
    /// The number of batches that were queued.
    next: u64,
    ready: VecDeque<Result<Batch, Error>>,
    /// How many threads work.
    working: usize,
    panicked: bool,
}

/// A batch of records, or what was in its place.
struct Taken {
    number: u64,
    path: Arc<Path>,
    format: Format,
    batch: Result<batch::Batch, Error>,
}

impl State {
    fn work(&self) {
        let _ends = Ending(self);
        while let Some(taken) = self.take() {
            let number = taken.number;
            let encoded = self.encode(taken);
            if !self.hand_on(number, encoded) {
                return;
            }
        }
    }

    fn take(&self) -> Option<Taken> {
        let mut intake = lock(&self.intake);
        let intake = &mut *intake;
        while self.task.check().is_ok() {
            let Some(lane) = &mut intake.lane else {
                let shard = intake.shards.next()?;
                match self.open(&shard) {
                    Ok(lane) => intake.lane = Some(lane),
                    Err(error) => {
                        let number = intake.taken;
                        intake.taken += 1;
                        let format = Format::Text; // of no account: there is nothing to encode
                        return Some(Taken { number, path: shard.path.into(), format, batch: Err(error) });
                    }
                }
                continue;
            };
            let before = lane.records.read();
            let batch = lane.records.next(&self.task).transpose();
            self.read.fetch_add(lane.records.read() - before, Ordering::Relaxed);
            match batch {
                Some(batch) => {
                    let number = intake.taken;
                    intake.taken += 1;
                    return Some(Taken { number, path: Arc::clone(&lane.path), format: lane.format, batch });
                }
                None => intake.lane = None,
            }
        }
        None
    }

    fn open(&self, shard: &Shard) -> Result<Lane, Error> {
        let format = self.settings.format.or(shard.format);
        let extraction = self.settings.extraction();
        let records = Records::open(&shard.path, format, extraction.wanted(), &self.task)?;
        self.read.fetch_add(records.read(), Ordering::Relaxed);
        Ok(Lane { path: shard.path.as_path().into(), format: records.format(), records })
    }

    fn encode(&self, taken: Taken) -> Result<Batch, Error> {
        let extraction = self.settings.extraction();
        let mut encoded = match taken.batch {
            Ok(batch) => extraction.run(batch, taken.format, &taken.path, &self.task)?,
            Err(error) => {
                let mut encoded = Encoded::default();
                extraction.note(error, &mut encoded)?;
                encoded
            }
        };
        if self.settings.on_error == OnError::Fail && !encoded.errors.is_empty() {
            return Err(encoded.errors.swap_remove(0));
        }
        Batch::new(encoded, &taken.path)
    }

    /// Queues a batch when all before it are; false if the threads are to end. An error is the last in the queue.
    fn hand_on(&self, number: u64, batch: Result<Batch, Error>) -> bool {
        let mut queue = lock(&self.queue);
        while queue.next != number || queue.ready.len() >= QUEUED {
            if self.stopped.load(Ordering::Relaxed) {
                return false;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        queue.next += 1;
        let failed = batch.is_err();
        queue.ready.push_back(batch);
        if failed {
            self.task.stop();
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.changed.notify_all();
        !failed
    }

    fn stop(&self) {
        self.task.stop();
        // With the lock held, so that no thread waits after it has looked.
        let _queue = lock(&self.queue);
        self.stopped.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// Tells that a thread has ended, even by a panic.
struct Ending<'a>(&'a State);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let panicked = thread::panicking();
        if panicked {
            self.0.stop();
        }
        let mut queue = lock(&self.0.queue);
        queue.working -= 1;
        queue.panicked |= panicked;
        self.0.changed.notify_all();
    }
}

fn wait_for<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait_timeout(guard, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0
}
