//! The stacks of the thread that holds the lock, and of threads that have waited for it.
//!
//! While a thread waits, a timer has the holder look at its own stack every two milliseconds: it does so where
//! it looks for interrupts, so a function in C is seen when it returns. Only the main Ractor's threads can be
//! reached in this way. A thread that releases a lock for which another one waits shows its stack in Ruby's
//! callback, in all Ractors.
//!
//! Callbacks run with a mutex of Ruby's scheduler, for which Ruby's own timer thread may wait while it holds
//! another mutex, that of a thread's interrupts. Ruby 3.4 takes that mutex in the child of a fork, and waits
//! for ever if it was held. So callbacks never wait, and before a fork they stop looking at stacks: see
//! [`before_fork`].
//!
//! In a callback no function may be called that makes objects. So what frames execute gets a number there, and
//! a name later, by the timer's next call or at the end of the trace. Until the last trace ends, the code is
//! marked, so its address stands for nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use magnus::Ruby;
use offlock_core::trace::{
    Frame, FrameText, Function, Remade, SampleTimer, Stack, Ticks, Waiters, around_forks, code_era,
    nanoseconds, now, stacks_after,
};

use crate::cruby::frames::{Code, Frames, Job, Work, evaluated_file};
use crate::cruby::thread::RubyThread;
use crate::cruby::{Data, DataType, Marker, keep_marked};

/// The most frames of a stack that are kept: the innermost ones.
const KEPT: usize = 64;

/// The threads that wait for the main Ractor's lock.
static MAIN: Waiters = Waiters::new();

static TIMER: SampleTimer = SampleTimer::new(&MAIN, || {
    if let Some(Some(job)) = JOB.get() {
        job.trigger();
    }
});

static JOB: OnceLock<Option<Job>> = OnceLock::new();

/// What is known of the program's code.
struct Functions {
    /// The recorder's era for which the numbers are valid.
    era: u32,
    numbers: HashMap<Key, Function>,
    /// Whether each known code is native. What has a number is among them.
    natives: HashMap<Code, bool>,
    unnamed: Vec<(Key, Function)>,
    /// What is being named for a dump.
    shown: Vec<Code>,
    space: Frames,
}

/// Code, and for native code also that which called it, whose file it gets, as in Ruby's backtraces.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    code: Code,
    caller: Option<Code>,
    /// The file, if it is not that of the code: a method evaluates a text.
    evaluated: Option<Arc<str>>,
}

impl Key {
    fn path(&self, ruby: &Ruby) -> String {
        match &self.evaluated {
            Some(file) => file.as_ref().to_owned(),
            None => self.caller.unwrap_or(self.code).path(ruby),
        }
    }

    /// The first line of the function; 0 if that says nothing.
    fn first_line(&self, ruby: &Ruby) -> u32 {
        let has_own = self.caller.is_none() && self.evaluated.is_none();
        if has_own { self.code.first_line(ruby) } else { 0 }
    }
}

/// Whose stack is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The calling thread's, which has the lock.
    Own,
    Another,
}

static FUNCTIONS: Remade<Mutex<Functions>> = Remade::new();

fn shared() -> &'static Mutex<Functions> {
    FUNCTIONS.get_or_make(|| Mutex::new(Functions::new()))
}

fn functions() -> MutexGuard<'static, Functions> {
    shared().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a thread is about to fork.
static FORKS: AtomicBool = AtomicBool::new(false);
/// When a callback last looked at a stack.
static LOOKED: AtomicU64 = AtomicU64::new(0);
/// How long a thread takes at most, as a rule, that waited for a callback's mutex until it has released its own.
const AFTERMATH: Duration = Duration::from_millis(1);

/// Looks at a thread's stack in a callback; `None` if that would mean to wait.
fn stack_in_callback(thread: RubyThread, whose: Whose) -> Option<Stack> {
    if FORKS.load(Ordering::SeqCst) {
        return None;
    }
    let mut functions = shared().try_lock().ok()?;
    let stack = functions.stack(thread, whose);
    LOOKED.store(now(), Ordering::Relaxed);
    stack
}

/// The calling thread, which has the lock, is about to fork: no callback looks at a stack from here on, and
/// threads that waited for one have gone on.
extern "C" fn before_fork() {
    FORKS.store(true, Ordering::SeqCst);
    drop(functions());
    let looked = LOOKED.load(Ordering::Relaxed);
    if looked != 0 && nanoseconds(now().saturating_sub(looked)) < AFTERMATH.as_nanos() as u64 {
        std::thread::sleep(AFTERMATH);
    }
}

extern "C" fn after_fork_in_parent() {
    FORKS.store(false, Ordering::SeqCst);
}

impl Functions {
    fn new() -> Self {
        Self {
            era: code_era(),
            numbers: HashMap::new(),
            natives: HashMap::new(),
            unnamed: Vec::new(),
            shown: Vec::new(),
            space: Frames::new(),
        }
    }

    /// Forgets the numbers that the recorder has forgotten.
    fn forget_earlier(&mut self) {
        let era = code_era();
        if self.era != era {
            self.era = era;
            self.numbers.clear();
            self.natives.clear();
            self.unnamed.clear();
        }
    }

    /// The stack of a thread, as [`Frames::of`] allows; `None` if it executes nothing.
    fn stack(&mut self, thread: RubyThread, whose: Whose) -> Option<Stack> {
        self.forget_earlier();
        let Self { era, numbers, natives, unnamed, space, .. } = self;
        let (placed, beyond) = placed(space, natives, thread, whose, KEPT);
        let frames = placed.into_iter().map(|(key, line)| {
            let function = *numbers.entry(key).or_insert_with_key(|key| {
                let function = Function::numbered();
                unnamed.push((key.clone(), function));
                function
            });
            Frame { function, line }
        });
        Stack::of(*era, frames, beyond)
    }
}

/// The frames of a thread, as [`Frames::of`] allows, outermost first, with their lines: the `kept` innermost ones, and the
/// number of those beyond. Native code has the line of what called it.
fn placed(
    space: &mut Frames,
    natives: &mut HashMap<Code, bool>,
    thread: RubyThread,
    whose: Whose,
    kept: usize,
) -> (Vec<(Key, u32)>, usize) {
    let mut is_native = |code: Code| *natives.entry(code).or_insert_with(|| code.is_native());
    let raw = space.of(thread);
    let beyond = raw.len().saturating_sub(kept);
    // Ruby tells the file of what a thread executes only to that thread, and only of its innermost frame that is not in C.
    let innermost = raw.clone().position(|(_, line)| line > 0).filter(|_| whose == Whose::Own);
    let mut program =
        raw.clone().skip(kept).find(|(code, _)| !is_native(*code)).map(|(code, line)| (code, line, None));
    let place = |(number, (code, line))| {
        let is_native = is_native(code);
        if !is_native {
            let evaluated =
                innermost.filter(|innermost| *innermost == number).and_then(|_| evaluated_file(code, line));
            program = Some((code, line, evaluated));
        }
        let (caller, line, evaluated) =
            program.clone().map_or((None, 0, None), |(code, line, file)| (Some(code), line, file));
        (Key { code, caller: caller.filter(|_| is_native), evaluated }, line)
    };
    let innermost_frames = raw.enumerate().take(kept);
    (innermost_frames.rev().map(place).collect(), beyond)
}

/// The most frames of a stack in a dump: the innermost ones.
const SHOWN: usize = 256;

/// The stacks of threads in words: of each its frames, innermost first, and the number of those beyond. The calling thread
/// holds the lock of their Ractor.
pub(super) fn texts(ruby: &Ruby, threads: &[RubyThread]) -> Vec<(Vec<FrameText>, usize)> {
    let (mut known, mut natives) = (functions(), HashMap::new());
    let stacks =
        threads.iter().map(|thread| placed(&mut known.space, &mut natives, *thread, Whose::Another, SHOWN));
    let stacks: Vec<_> = stacks.collect();
    // Naming makes objects, and the collector marks these meanwhile.
    known.shown = natives.into_keys().collect();
    drop(known);
    let mut names: HashMap<Key, (String, String)> = HashMap::new();
    let mut text = |(key, line): (Key, u32)| {
        let (name, path) = names.entry(key).or_insert_with_key(|key| (key.code.name(ruby), key.path(ruby)));
        FrameText { function: name.clone(), file: path.clone(), line }
    };
    let texts = stacks
        .into_iter()
        .map(|(frames, beyond)| (frames.into_iter().rev().map(&mut text).collect(), beyond));
    let texts = texts.collect();
    functions().shown.clear();
    texts
}

/// The thread's wait for its lock, as far as stacks are concerned.
pub(super) struct Waiting {
    /// Those who wait for the same lock, unless it is the main Ractor's.
    others: Option<Arc<Waiters>>,
    place: AtomicUsize,
}

/// The place of a thread that does not wait.
const NOWHERE: usize = usize::MAX;

impl Waiting {
    pub(super) fn new(others: Option<Arc<Waiters>>) -> Self {
        Self { others, place: AtomicUsize::new(NOWHERE) }
    }

    fn waiters(&self) -> &Waiters {
        self.others.as_deref().unwrap_or(&MAIN)
    }

    /// The thread begins to wait.
    #[inline]
    pub(super) fn begins(&self, now: Ticks) {
        if stacks_after().is_some() && self.place.load(Ordering::Relaxed) == NOWHERE {
            let place = self.waiters().enter(now);
            self.place.store(place.unwrap_or(NOWHERE), Ordering::Relaxed);
            if self.others.is_none() {
                TIMER.wake();
            }
        }
    }

    /// The thread waits no more. Returns since when it did, if it was among the waiters.
    #[inline]
    pub(super) fn ends(&self) -> Option<Ticks> {
        let place = self.place.swap(NOWHERE, Ordering::Relaxed);
        (place != NOWHERE).then(|| self.waiters().leave(place))
    }

    /// The thread with this id has acquired the lock at a time.
    #[inline]
    pub(super) fn acquired(&self, at: Ticks, thread: RubyThread, id: u32) {
        let Some((since, after)) = self.ends().zip(stacks_after()) else { return };
        if since != 0
            && at.saturating_sub(since) >= after
            && let Some(stack) = stack_in_callback(thread, Whose::Another)
        {
            stack.waiting(since, id);
        }
    }

    /// The thread is about to release the lock at a time.
    #[inline]
    pub(super) fn releases(&self, at: Ticks, thread: RubyThread, id: u32) {
        if self.waiters().wants_release(at) {
            self.waiters().release(at);
            if let Some(stack) = stack_in_callback(thread, Whose::Own) {
                stack.releasing(at, id);
            }
        }
    }

    /// The thread, which is the current one, holds the lock.
    pub(super) fn holds(&self, thread: RubyThread, id: u32) {
        let (now, waiters) = (now(), self.waiters());
        let due = waiters.oldest().and_then(|since| waiters.due(since));
        if due.is_some_and(|due| due <= now) {
            waiters.sample(now);
            if let Some(stack) = functions().stack(thread, Whose::Own) {
                stack.holding(now, id);
            }
        }
    }
}

/// Describes the functions that the recorder does not know yet.
pub(super) fn name_functions(ruby: &Ruby) {
    loop {
        // Naming makes objects, and the collector then marks what is in the table.
        let next = functions().unnamed.pop();
        let Some((key, function)) = next else { return };
        function.describe(&key.code.name(ruby), &key.path(ruby), key.first_line(ruby));
        std::hint::black_box(key);
    }
}

/// Keeps the code alive that has a number. Belongs to an object that exists for ever.
#[derive(Default)]
struct KnownCode;

impl Data for KnownCode {
    const DATA_TYPE: &'static DataType = &DataType::of::<Self>(c"Offlock::Lock::KnownCode");

    fn mark(&self, marker: &Marker) {
        let functions = functions();
        functions.natives.keys().chain(&functions.shown).for_each(|code| code.mark(marker));
    }

    fn size(&self) -> usize {
        let functions = functions();
        functions.numbers.len() * size_of::<(Key, Function)>() + functions.natives.len() * size_of::<Code>()
    }
}

/// Prepares for stacks. Called before the first trace starts. `Sample` is what the holder of the main Ractor's
/// lock does when the timer asks.
pub(super) fn prepare<Sample: Work>(ruby: &Ruby) {
    JOB.get_or_init(|| {
        keep_marked::<KnownCode>(ruby);
        around_forks(before_fork, after_fork_in_parent);
        TIMER.register();
        Job::register::<Sample>(ruby)
    });
}

/// A trace has stopped. After the last one, nothing is kept alive any more.
pub(super) fn stopped() {
    if stacks_after().is_none() {
        functions().forget_earlier();
    }
}

/// In the child of a fork, which has one thread, and whose traces are to begin.
pub(super) fn after_fork_in_child() {
    FORKS.store(false, Ordering::SeqCst);
    FUNCTIONS.forget();
    TIMER.forget();
    MAIN.clear();
}
