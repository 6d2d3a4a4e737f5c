//! What all threads do at one moment, for `offlock dump`.
//!
//! A native thread of the connection asks, and a thread of the main Ractor answers: it looks at the stacks of all threads
//! where it looks for interrupts, with the lock held. If no thread has the lock, none looks for interrupts, so the main
//! thread is woken for a moment, as by a signal.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use magnus::value::ReprValue;
use magnus::{Module, RArray, RClass, Ruby, Value};
use offlock_core::trace::{
    Patience, Remade, Stand, Standing, TakenStacks, ThreadStack, after_fork_in_child, standings,
};

use super::{events, stacks};
use crate::cruby::frames::{Job, Work};
use crate::cruby::thread::RubyThread;
use crate::cruby::wake;

/// How often the threads are asked again.
const AGAIN: Duration = Duration::from_millis(10);

static JOB: OnceLock<Option<Job>> = OnceLock::new();

/// The dumps that were asked for, and the last answer.
#[derive(Default)]
struct Requests {
    asked: u64,
    /// The last request that is answered.
    answered: u64,
    answer: Answer,
}

#[derive(Clone, Default)]
struct Answer {
    taken: TakenStacks,
    /// The id of the thread that has answered.
    by: u32,
}

#[derive(Default)]
struct Exchange {
    requests: Mutex<Requests>,
    answered: Condvar,
}

impl Exchange {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static EXCHANGE: Remade<Exchange> = Remade::new();

fn exchange() -> &'static Exchange {
    EXCHANGE.get_or_make(Exchange::default)
}

/// Prepares for dumps. Called before the process is published.
pub(super) fn prepare(ruby: &Ruby) {
    JOB.get_or_init(|| {
        after_fork_in_child(forget);
        wake::prepare(ruby);
        Job::register::<Answering>(ruby)
    });
}

/// In the child of a fork, another thread may have held the lock of the parent's requests.
extern "C" fn forget() {
    EXCHANGE.forget();
}

/// The stacks of all threads of the main Ractor, and what all threads do with their locks.
pub(super) fn take(patience: &Patience<'_>) -> TakenStacks {
    let Some(Some(job)) = JOB.get() else {
        return TakenStacks::without_stacks("Ruby has no place for another job".into());
    };
    let (exchange, before) = (exchange(), standings());
    let mut requests = exchange.requests();
    requests.asked += 1;
    let number = requests.asked;
    let mut is_asked_again = false;
    while requests.answered < number && !patience.is_over() {
        job.trigger();
        if is_asked_again && !is_lock_used() {
            wake::wake_main_thread();
        }
        is_asked_again = true;
        let waited = exchange.answered.wait_timeout(requests, AGAIN.min(patience.left()));
        requests = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    if requests.answered >= number {
        return requests.answer.clone().with(&before);
    }
    let within = patience.within();
    let held =
        before.iter().find(|standing| standing.stand == Stand::Holds && standing.lock == main_lock(&before));
    let held = held.map(|holder| &holder.name);
    TakenStacks::without_stacks(match held {
        Some(holder) => {
            format!("{holder} did not give up the lock within {within:?}, nor look for interrupts")
        }
        None => format!("no thread took the lock within {within:?} to answer"),
    })
}

/// Whether a thread has or wants the main Ractor's lock.
fn is_lock_used() -> bool {
    let standings = standings();
    let main = main_lock(&standings);
    let uses =
        |standing: &Standing| matches!(standing.stand, Stand::Holds | Stand::Wants) && standing.lock == main;
    standings.iter().any(uses)
}

/// The number of the main Ractor's lock: it is the first one that was made, and the main thread's.
fn main_lock(standings: &[Standing]) -> u32 {
    standings.iter().map(|standing| standing.lock).filter(|lock| *lock != 0).min().unwrap_or(0)
}

impl Answer {
    /// A thread that was idle before answers with the lock, which it would not have otherwise.
    fn with(self, before: &[Standing]) -> TakenStacks {
        let Self { mut taken, by } = self;
        let was_off = before.iter().find(|standing| standing.thread == by && standing.stand == Stand::Off);
        let now = taken.standings.iter_mut().find(|standing| standing.thread == by);
        if let Some((now, before)) = now.zip(was_off) {
            *now = before.clone();
            taken
                .stacks
                .iter_mut()
                .filter(|stack| stack.thread == by)
                .for_each(|stack| stack.was_idle = true);
        }
        taken
    }
}

/// Answers what was asked, in a thread of the main Ractor.
struct Answering;

impl Work for Answering {
    fn run(ruby: &Ruby) {
        answer(ruby);
    }
}

fn answer(ruby: &Ruby) {
    let exchange = exchange();
    let asked = {
        let requests = exchange.requests();
        if requests.answered >= requests.asked {
            return;
        }
        requests.asked
    };
    let by = events::find(RubyThread::current()).map_or(0, |thread| thread.id());
    let standings = standings();
    let looked = look(ruby);
    let obstacle = match &looked {
        Ok(_) if has_other_ractors(ruby) => Some("those of threads in other Ractors are not read".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    let taken = TakenStacks { standings, stacks: looked.unwrap_or_default(), obstacle };
    let mut requests = exchange.requests();
    (requests.answered, requests.answer) = (asked, Answer { taken, by });
    exchange.answered.notify_all();
}

fn look(ruby: &Ruby) -> Result<Vec<ThreadStack>, magnus::Error> {
    let list: RArray = ruby.class_thread().funcall("list", ())?;
    let values: Vec<Value> = list.into_iter().collect();
    let threads: Vec<RubyThread> = values.iter().filter_map(|thread| RubyThread::of(*thread)).collect();
    let texts = stacks::texts(ruby, &threads);
    let all =
        values.iter().zip(threads).zip(texts).map(|((value, thread), (frames, left_out))| ThreadStack {
            thread: events::find(thread).map_or(0, |thread| thread.id()),
            native_id: value.funcall("native_thread_id", ()).ok().flatten(),
            task: None,
            frames,
            left_out,
            was_idle: false,
        });
    let all = all.collect();
    // The list keeps the threads.
    std::hint::black_box(list);
    Ok(all)
}

fn has_other_ractors(ruby: &Ruby) -> bool {
    let ractor: Result<RClass, _> = ruby.class_object().const_get("Ractor");
    let count = ractor.and_then(|ractor| ractor.funcall::<_, _, usize>("count", ()));
    count.is_ok_and(|count| count > 1)
}
