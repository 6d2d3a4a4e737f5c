//! When a thread that keeps an interpreter lock over many small calls should yield it.
//!
//! A small call stays under the lock, because releasing and re-acquiring the lock costs more than the call. A
//! loop of small calls therefore never releases the lock, and a thread that needs the lock for a few
//! microseconds waits until the interpreter forces a switch: 5 ms in CPython, 100 ms in CRuby. So each thread
//! has a *time slice*: once it has held the lock for about a millisecond (in CRuby, where yielding costs less,
//! a quarter of that), its next call yields.
//!
//! # How long a slice is
//!
//! Yielding to a thread that runs for a moment costs microseconds. Yielding to a thread that computes costs
//! the whole time for which the interpreter lets that thread run; a thread that did so every millisecond
//! would get a hundredth of its share. The CPU time that the process used while the thread was away tells the
//! two cases apart. If it is at least half of the interpreter's own slice, some thread computes: then a slice
//! lasts as long as the other threads used a CPU, divided among the threads that are queueing here, and at
//! most as long as the interpreter's own. (Not as long as the thread was away: on a busy machine, a thread
//! that got the lock may wait for a CPU.) Otherwise the others gave the lock up by themselves, and a slice is
//! as short as can be: a request of a web server takes the lock many times, and waits for a slice each time.
//!
//! | the other threads | they run for | the slice |
//! |---|---|---|
//! | sleep most of the time | microseconds | the shortest |
//! | one computes, in CPython | 5 ms | 4.75 ms: each thread gets half of the time |
//! | one computes, in CRuby | 100 ms | 95 ms |
//! | three also make small calls | three of the shortest | the shortest |
//!
//! A slice is a little shorter than the share, so that the effect of a single long turn dies out: by a
//! twentieth, and by a quarter among threads that yield to each other and would otherwise pass a long turn
//! on.
//!
//! # How the time is measured
//!
//! A waiting thread, whether for I/O or because the interpreter forced a switch, uses no CPU time. Between
//! calls the slice therefore counts the thread's CPU time. A slice as long as the interpreter's own begins
//! anew if the thread was off the CPU for half as long: the interpreter has just switched threads, and
//! yielding soon after would give the other threads two turns for one. These clocks take 0.3 µs together, so
//! they are read only after a quarter of a million ticks of the processor's counter. Reading the counter takes ten
//! nanoseconds or more, a tenth of the smallest calls, so only one in a few of those reads it.

use std::cell::{Cell, RefCell};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::clock::now as ticks;
use crate::fork::after_fork_in_child;
use crate::os::{monotonic_nanoseconds, process_cpu_nanoseconds, thread_cpu_nanoseconds};

/// Ticks between two readings of the clocks: 0.06 to 0.13 ms if the counter runs at 2 to 4 GHz, 0.26 ms if it
/// counts nanoseconds.
const LOOK_AFTER: u64 = 1 << 18;

/// The current time on both clocks, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    wall: u64,
    processor: u64,
}

impl Moment {
    fn now() -> Self {
        Self { wall: monotonic_nanoseconds(), processor: thread_cpu_nanoseconds() }
    }
}

/// One thread's slice.
#[derive(Debug, Default)]
struct TimeSlice {
    /// The last reading; `None` if the thread has just acquired the lock.
    last: Option<Moment>,
    held: u64,
    length: u64,
}

impl TimeSlice {
    /// Whether the thread has held the lock for its slice, and for `shortest` nanoseconds. It may have lost the
    /// lock between two calls.
    fn is_over_between_calls(&mut self, now: Moment, shortest: u64) -> bool {
        let (passed, ran) = self.since_last(now);
        let switched = self.length > shortest && passed.saturating_sub(ran) > self.length / 2;
        self.held = if switched { 0 } else { self.held + ran };
        self.held >= self.length.max(shortest)
    }

    /// The same in the middle of a call, during which the thread holds the lock.
    fn is_over_in_call(&mut self, now: Moment, shortest: u64) -> bool {
        self.held += self.since_last(now).0;
        self.held >= self.length.max(shortest)
    }

    /// How far both clocks have moved since the last reading.
    fn since_last(&mut self, now: Moment) -> (u64, u64) {
        let Some(last) = self.last.replace(now) else {
            self.held = 0;
            return (0, 0);
        };
        (now.wall.saturating_sub(last.wall), now.processor.saturating_sub(last.processor))
    }

    /// The thread has the lock again. Meanwhile the threads of the process used `ran` nanoseconds of CPU
    /// time, and `others` are still queueing.
    fn returned(&mut self, now: Moment, ran: u64, others: u32, longest: u64) {
        let share = ran / u64::from(others.max(1));
        let shorter = if others == 0 { share / 20 } else { share / 4 };
        self.length = if ran < longest / 2 { 0 } else { (share - shorter).min(longest) };
        self.held = 0;
        self.last = Some(now);
    }
}

/// The number of small calls after which one reads the counter: few, because other work may lie between them.
const CALLS: usize = 8;
/// A call counts as one more for each multiple of this many bytes.
const BYTES_LIKE_A_CALL: usize = 512;

/// The number of calls left until one reads the counter. All threads share it; those that share a lock count
/// one at a time. Finding a thread's own counter would take longer than counting.
static CALLS_LEFT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
    static SLICE: RefCell<TimeSlice> = const { RefCell::new(TimeSlice { last: None, held: 0, length: 0 }) };
}

/// How many threads of this process have yielded and are waiting to get the lock back.
static QUEUE: AtomicU32 = AtomicU32::new(0);

/// Whether it is time to read the clocks, according to the processor's counter.
#[inline]
pub fn look_is_due() -> bool {
    LOOKED_AT.with(|looked_at| ticks().wrapping_sub(looked_at.get()) >= LOOK_AFTER)
}

/// The same before a call over `bytes` bytes. Takes a nanosecond if they are few, so that every call can ask.
#[inline]
pub fn look_is_due_before_call(bytes: usize) -> bool {
    let rest = CALLS_LEFT.load(Ordering::Relaxed).checked_sub(1 + bytes / BYTES_LIKE_A_CALL);
    // If two threads count at once, some calls are not counted.
    CALLS_LEFT.store(rest.unwrap_or(CALLS), Ordering::Relaxed);
    rest.is_none() && look_is_due()
}

/// Whether the calling thread, which begins a call with the lock held, has held it for its slice, or for
/// `shortest` nanoseconds if that is more.
pub fn is_over_between_calls(shortest: u64) -> bool {
    look(|slice, now| slice.is_over_between_calls(now, shortest))
}

/// Whether the calling thread, which has held the lock since the call began or since it last yielded, has
/// held it for its slice, or for `shortest` nanoseconds if that is more.
pub fn is_over_in_call(shortest: u64) -> bool {
    look(|slice, now| slice.is_over_in_call(now, shortest))
}

fn look(is_over: impl FnOnce(&mut TimeSlice, Moment) -> bool) -> bool {
    LOOKED_AT.set(ticks());
    SLICE.with_borrow_mut(|slice| is_over(slice, Moment::now()))
}

/// Restarts the slice: the calling thread has just released the lock for an operation, or no other thread
/// could have wanted it.
#[inline]
pub fn restart() {
    LOOKED_AT.set(ticks());
    SLICE.with_borrow_mut(|slice| slice.last = None);
}

/// Calls `yield_lock`, which releases and re-acquires the lock, and measures what the other threads do
/// meanwhile. `longest` is the interpreter's own time slice, in nanoseconds.
pub fn yielding<T>(longest: u64, yield_lock: impl FnOnce() -> T) -> T {
    static FORK_HANDLER: Once = Once::new();
    FORK_HANDLER.call_once(|| after_fork_in_child(forget_queue));
    let ran = process_cpu_nanoseconds();
    QUEUE.fetch_add(1, Ordering::Relaxed);
    let result = yield_lock();
    let others = QUEUE.fetch_sub(1, Ordering::Relaxed) - 1;
    let ran = process_cpu_nanoseconds().saturating_sub(ran);
    LOOKED_AT.set(ticks());
    SLICE.with_borrow_mut(|slice| slice.returned(Moment::now(), ran, others, longest));
    result
}

/// The parent's queueing threads do not exist in the child of a fork.
extern "C" fn forget_queue() {
    QUEUE.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The number of calls over `bytes` bytes up to one that finds a reading due, if one is due.
    fn calls_to_a_look(bytes: usize) -> usize {
        CALLS_LEFT.store(CALLS, Ordering::Relaxed);
        LOOKED_AT.set(ticks().wrapping_sub(LOOK_AFTER));
        1 + (0..1000).take_while(|_| !look_is_due_before_call(bytes)).count()
    }

    #[test]
    fn the_more_bytes_calls_have_the_fewer_come_to_a_look() {
        assert_eq!([0, 13, 2000, 4096].map(calls_to_a_look), [9, 9, 3, 1]);
        restart();
        assert!(!(0..100).any(|_| look_is_due_before_call(13)));
    }

    /// A thread and its clocks.
    #[derive(Default)]
    struct Simulated {
        slice: TimeSlice,
        now: Moment,
    }

    impl Simulated {
        fn runs(&mut self, nanoseconds: u64) {
            self.now.wall += nanoseconds;
            self.now.processor += nanoseconds;
        }

        fn waits(&mut self, nanoseconds: u64) {
            self.now.wall += nanoseconds;
        }

        /// Makes small calls until one yields, or for `most` nanoseconds; returns for how long.
        fn calls(&mut self, most: u64) -> u64 {
            let began = self.now.wall;
            while self.now.wall - began < most {
                self.runs(MS / 2);
                if self.slice.is_over_between_calls(self.now, MS) {
                    break;
                }
            }
            self.now.wall - began
        }

        fn returns_after(&mut self, took: u64, others: u32, longest: u64) {
            self.waits(took);
            self.slice.returned(self.now, took, others, longest);
        }
    }

    #[test]
    fn beside_threads_that_sleep_a_slice_is_a_millisecond() {
        let mut thread = Simulated::default();
        thread.calls(MS);
        for _ in 0..100 {
            thread.returns_after(100_000, 0, 100 * MS);
            assert_eq!(thread.calls(100 * MS), MS);
        }
    }

    #[test]
    fn beside_a_thread_that_computes_a_slice_is_about_as_long_as_that_threads() {
        for longest in [5 * MS, 100 * MS] {
            let mut thread = Simulated::default();
            thread.returns_after(longest, 0, longest);
            let held = thread.calls(1000 * MS);
            assert!((longest * 9 / 10..=longest + MS).contains(&held), "{held}");
        }
    }

    #[test]
    fn a_slice_is_never_longer_than_the_interpreters_own() {
        let mut thread = Simulated::default();
        thread.returns_after(3_000 * MS, 0, 5 * MS);
        assert_eq!(thread.calls(1000 * MS), 5 * MS);
    }

    #[test]
    fn a_long_slice_begins_anew_when_the_interpreter_switched_threads() {
        let mut thread = Simulated::default();
        thread.returns_after(5 * MS, 0, 5 * MS);
        assert_eq!(thread.calls(4 * MS), 4 * MS, "not yet");
        thread.waits(5 * MS); // the interpreter took the lock away
        assert_eq!(thread.calls(100 * MS), 5 * MS + MS / 2, "the look that finds it out, and a whole slice");
    }

    #[test]
    fn a_short_slice_goes_on_when_the_system_ran_another_process() {
        let mut thread = Simulated::default();
        thread.returns_after(100_000, 0, 5 * MS);
        assert_eq!(thread.calls(MS / 2), MS / 2);
        thread.waits(5 * MS);
        assert_eq!(thread.calls(100 * MS), MS / 2);
    }

    #[test]
    fn threads_that_yield_to_each_other_share_what_a_return_takes() {
        let mut thread = Simulated::default();
        thread.returns_after(4 * MS, 2, 5 * MS);
        assert_eq!(thread.calls(100 * MS), 3 * MS / 2);
    }

    #[test]
    fn a_slice_is_the_shortest_beside_threads_that_give_the_lock_up_by_themselves() {
        let mut thread = Simulated::default();
        thread.returns_after(49 * MS, 0, 100 * MS);
        assert_eq!(thread.calls(100 * MS), MS);
    }

    #[test]
    fn a_long_return_is_forgotten_by_threads_that_yield_to_each_other() {
        let mut threads: Vec<_> = (0..4).map(|_| Simulated::default()).collect();
        threads[0].returns_after(80 * MS, 0, 100 * MS);
        let mut held = [MS; 4];
        for turn in 0..400 {
            let now = turn % 4;
            held[now] = threads[now].calls(1000 * MS);
            let took = held.iter().sum::<u64>() - held[now];
            threads[now].returns_after(took, 3, 100 * MS);
        }
        assert!(held.iter().all(|held| *held <= 2 * MS), "{held:?}");
    }

    #[test]
    fn in_the_middle_of_a_call_all_the_time_counts() {
        let mut thread = Simulated::default();
        thread.returns_after(0, 0, 5 * MS);
        thread.waits(MS); // the system runs another process, the lock is held
        assert!(!thread.slice.is_over_in_call(thread.now, 2 * MS));
        thread.waits(MS);
        assert!(thread.slice.is_over_in_call(thread.now, 2 * MS));
    }

    #[test]
    fn a_thread_that_holds_the_lock_for_a_slice_is_told_to_yield_once() {
        restart();
        let began = std::time::Instant::now();
        while !(look_is_due() && is_over_between_calls(MS)) {
            assert!(began.elapsed().as_secs() < 10, "it ends");
        }
        assert!(thread_cpu_nanoseconds() >= MS);
        assert_eq!(yielding(5 * MS, || 7), 7);
        assert!(!look_is_due() && !is_over_between_calls(MS));
    }
}
