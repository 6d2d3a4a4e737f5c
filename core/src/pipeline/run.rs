//! Reads shards on several threads and hands their documents on in order.
//!
//! Each shard that is being read is a *lane*. A thread on a lane takes the next batch of records, which one thread
//! at a time can do, encodes it beside the others, waits until the batches before it were handed on, and hands it
//! on itself. Taking a batch is decompressing it, a tenth of the work. So one shard keeps several threads busy, in
//! bounded memory: each thread holds one batch.
//!
//! A thread first looks for a shard that nobody reads, then joins the lane with the fewest threads. The last thread
//! that leaves a lane finishes the shard. What is handed on does not depend on the number of threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::batch::Batch;
use super::documents::{Encoded, Extraction, OnError};
use super::error::{Error, ErrorKind};
use super::records::Records;
use super::shard::{Format, Shard};
use super::summary::{Done, Lengths, Summary, Totals, Written};
use crate::Task;
use crate::parallel::on_threads;

/// How long a thread waits for its turn before it looks whether the run has been stopped.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Where the documents of a shard go.
pub(super) trait Sink: Send {
    /// Takes the next documents.
    fn take(&mut self, encoded: &Encoded, task: &Task<'_>) -> Result<(), ErrorKind>;

    /// Completes the results.
    fn finish(self: Box<Self>, task: &Task<'_>) -> Result<Vec<Written>, ErrorKind>;
}

/// What is to be done with a shard.
pub(super) enum Plan {
    /// It is finished already.
    Finished(Done),
    /// It is to be read; if documents are only counted, they go nowhere.
    Read(Option<Box<dyn Sink>>),
}

/// A run over shards.
pub(super) struct Run<'a> {
    pub(super) shards: &'a [Shard],
    /// The format of all shards, whatever their names imply.
    pub(super) format: Option<Format>,
    pub(super) extraction: Extraction<'a>,
    pub(super) report: &'a (dyn Fn(&Error) + Sync),
    /// The most threads.
    pub(super) threads: usize,
    /// Begins the shard of an index.
    pub(super) begin: &'a (dyn Fn(usize) -> Result<Plan, Error> + Sync),
    /// Is called with each shard that is finished.
    pub(super) finished: &'a (dyn Fn(&Shard, &Done) -> io::Result<()> + Sync),
}

/// A shard that is being read.
struct Lane<'a> {
    index: usize,
    shard: &'a Shard,
    format: Format,
    intake: Mutex<Intake>,
    /// Whether all batches were taken. Not behind the mutex, which is held while a batch is decompressed.
    ended: AtomicBool,
    outlet: Mutex<Outlet>,
    /// Signalled when a batch was handed on.
    turn: Condvar,
}

/// The side on which batches are taken.
struct Intake {
    records: Records,
    /// The number of batches, and of errors between them, that were taken.
    taken: u64,
}

/// The side on which batches are handed on.
struct Outlet {
    /// The number of batches that were handed on.
    next: u64,
    totals: Totals,
    sink: Option<Box<dyn Sink>>,
}

/// What is going on.
#[derive(Default)]
struct Board<'a> {
    /// The next shard that nobody has begun.
    next: usize,
    /// The lanes, with the number of threads on each.
    lanes: Vec<(Arc<Lane<'a>>, usize)>,
    done: Vec<(usize, Done)>,
    /// The lengths of all documents. Those of the shards one by one are not kept: they take more memory.
    lengths: Lengths,
    resumed: usize,
}

impl Board<'_> {
    fn add(&mut self, index: usize, mut done: Done) {
        self.lengths.merge(&std::mem::take(&mut done.totals.lengths));
        self.done.push((index, done));
    }
}

impl Run<'_> {
    /// Reads all shards.
    pub(super) fn run(&self, task: &Task<'_>) -> Result<Summary, Error> {
        let failed = AtomicBool::new(false);
        let poll = |_| failed.load(Ordering::Relaxed) || task.check().is_err();
        let inner = Task::with_poll(&poll);
        let (board, failure) = (Mutex::new(Board::default()), Mutex::new(None));
        on_threads(self.threads, &inner, || {
            let _stops_others = IfPanicking(&failed);
            let worker = Worker { run: self, board: &board, task: &inner, progress: task };
            if let Err(error) = worker.run() {
                // The others are stopped because of the first failure; theirs are not reported.
                locked(&failure).get_or_insert(error);
                failed.store(true, Ordering::Relaxed);
            }
        });
        if let Some(error) = locked(&failure).take() {
            return Err(error);
        }
        let mut board = locked(&board);
        board.done.sort_unstable_by_key(|&(index, _)| index);
        let shards = std::mem::take(&mut board.done).into_iter().map(|(_, done)| done).collect();
        Ok(Summary { shards, lengths: std::mem::take(&mut board.lengths), resumed: board.resumed })
    }
}

/// Stops the other threads when this one panics: they would wait for what it was to hand on.
struct IfPanicking<'a>(&'a AtomicBool);

impl Drop for IfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// One thread of a run.
struct Worker<'a, 'r> {
    run: &'r Run<'a>,
    board: &'r Mutex<Board<'r>>,
    task: &'r Task<'r>,
    /// Counts the bytes of the shards that were read.
    progress: &'r Task<'r>,
}

impl<'r> Worker<'_, 'r> {
    fn run(&self) -> Result<(), Error> {
        while let Some(lane) = self.lane()? {
            self.work_on(&lane)?;
            self.leave(&lane)?;
        }
        Ok(())
    }

    /// A lane to work on: a new one or, if all shards were begun, that with the fewest threads.
    fn lane(&self) -> Result<Option<Arc<Lane<'r>>>, Error> {
        let mut board = locked(self.board);
        while board.next < self.run.shards.len() {
            let index = board.next;
            board.next += 1;
            let shard = &self.run.shards[index];
            match (self.run.begin)(index)? {
                Plan::Finished(done) => {
                    self.progress.advance(shard.size);
                    board.add(index, done);
                    board.resumed += 1;
                }
                Plan::Read(sink) => {
                    let lane = Arc::new(self.open(index, shard, sink)?);
                    board.lanes.push((Arc::clone(&lane), 1));
                    return Ok(Some(lane));
                }
            }
        }
        let open = board.lanes.iter_mut().filter(|(lane, _)| !lane.ended.load(Ordering::Relaxed));
        let least = open.min_by_key(|(_, threads)| *threads);
        Ok(least.map(|(lane, threads)| {
            *threads += 1;
            Arc::clone(lane)
        }))
    }

    fn open(&self, index: usize, shard: &'r Shard, sink: Option<Box<dyn Sink>>) -> Result<Lane<'r>, Error> {
        let format = self.run.format.or(shard.format);
        let records = Records::open(&shard.path, format, self.run.extraction.wanted(), self.task)?;
        self.progress.advance(records.read());
        Ok(Lane {
            index,
            shard,
            format: records.format(),
            intake: Mutex::new(Intake { records, taken: 0 }),
            ended: AtomicBool::new(false),
            outlet: Mutex::new(Outlet { next: 0, totals: Totals::default(), sink }),
            turn: Condvar::new(),
        })
    }

    /// Encodes batches until the shard has ended.
    fn work_on(&self, lane: &Lane<'_>) -> Result<(), Error> {
        while let Some((number, batch)) = self.take(lane) {
            let encoded = match batch {
                Ok(batch) => self.run.extraction.run(batch, lane.format, &lane.shard.path, self.task)?,
                Err(error) => {
                    let mut encoded = Encoded::default();
                    self.run.extraction.note(error, &mut encoded)?;
                    encoded
                }
            };
            self.hand_on(lane, number, &encoded)?;
        }
        Ok(())
    }

    /// The next batch of the shard, or what was in its place, and its number.
    fn take(&self, lane: &Lane<'_>) -> Option<(u64, Result<Batch, Error>)> {
        let mut intake = locked(&lane.intake);
        if lane.ended.load(Ordering::Relaxed) {
            return None;
        }
        let before = intake.records.read();
        let batch = intake.records.next(self.task).transpose();
        self.progress.advance(intake.records.read() - before);
        let Some(batch) = batch else {
            lane.ended.store(true, Ordering::Relaxed);
            return None;
        };
        intake.taken += 1;
        Some((intake.taken - 1, batch))
    }

    fn hand_on(&self, lane: &Lane<'_>, number: u64, encoded: &Encoded) -> Result<(), Error> {
        let mut outlet = locked(&lane.outlet);
        while outlet.next != number {
            self.task.check().map_err(|stopped| Error::new(&lane.shard.path, stopped))?;
            let waited = lane.turn.wait_timeout(outlet, LOOK_EVERY);
            outlet = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.count(&mut outlet.totals, encoded)?;
        if let Some(sink) = &mut outlet.sink {
            sink.take(encoded, self.task).map_err(|kind| Error::new(&lane.shard.path, kind))?;
        }
        outlet.next += 1;
        lane.turn.notify_all();
        Ok(())
    }

    fn count(&self, totals: &mut Totals, encoded: &Encoded) -> Result<(), Error> {
        for error in &encoded.errors {
            match self.run.extraction.on_error {
                OnError::Fail => return Err(error.clone()),
                _ => (self.run.report)(error),
            }
        }
        totals.errors += encoded.failed;
        totals.documents += encoded.documents.len() as u64;
        totals.tokens += encoded.tokens.len() as u64;
        let mut start = 0;
        for document in &encoded.documents {
            totals.bytes += document.bytes as u64;
            totals.lengths.add((document.end - start) as u64);
            start = document.end;
        }
        Ok(())
    }

    /// Leaves a lane that has ended. The last thread finishes the shard.
    fn leave(&self, lane: &Arc<Lane<'r>>) -> Result<(), Error> {
        let mut board = locked(self.board);
        let Some(at) = board.lanes.iter().position(|(other, _)| Arc::ptr_eq(other, lane)) else {
            return Ok(());
        };
        board.lanes[at].1 -= 1;
        if board.lanes[at].1 > 0 {
            return Ok(());
        }
        board.lanes.swap_remove(at);
        drop(board);
        self.task.check().map_err(|stopped| Error::new(&lane.shard.path, stopped))?;
        let done = self.finish(lane)?;
        locked(self.board).add(lane.index, done);
        Ok(())
    }

    fn finish(&self, lane: &Lane<'_>) -> Result<Done, Error> {
        let mut outlet = locked(&lane.outlet);
        let totals = std::mem::take(&mut outlet.totals);
        let shard = lane.shard;
        let wrong = |kind: ErrorKind| Error::new(&shard.path, kind);
        let sink = outlet.sink.take();
        let files = sink.map_or(Ok(Vec::new()), |sink| sink.finish(self.task)).map_err(wrong)?;
        let done =
            Done { path: shard.path.clone(), size: shard.size, modified: shard.modified, totals, files };
        (self.run.finished)(shard, &done).map_err(|error| wrong(error.into()))?;
        Ok(done)
    }
}

/// A mutex's content, also after a panic of another thread, which the calling thread resumes anyway.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
