//! What the recorder needs from the processor and the operating system.
//!
//! The one place of the trace code that may use `unsafe`: time stamps, thread and user ids, the fork handler, the
//! pointer to the recorder's state, which a fork replaces, and the list of threads, which is read without a lock.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Reads the time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn time_stamp_counter() -> u64 {
    // SAFETY: every x86-64 processor has rdtsc; it touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Waits until everything before has been done.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unused_unsafe, reason = "newer compilers know lfence to be safe")]
pub(super) fn finish_what_is_before() {
    // SAFETY: every x86-64 processor has SSE2's lfence; it touches no memory.
    unsafe { std::arch::x86_64::_mm_lfence() }
}

/// Whether the time stamp counter runs at one rate on all cores, in all power states.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "newer compilers know cpuid to be safe")]
pub(super) fn has_invariant_counter() -> bool {
    // SAFETY: every x86-64 processor has cpuid; the leaf is read only when the processor lists it.
    let (leaves, power) = unsafe {
        let leaves = std::arch::x86_64::__cpuid(0x8000_0000).eax;
        (leaves, std::arch::x86_64::__cpuid(0x8000_0007).edx)
    };
    leaves >= 0x8000_0007 && power & 1 << 8 != 0 && kernel_trusts_counter()
}

/// Linux takes `tsc` off this list when it has seen the counters of two cores disagree.
#[cfg(target_arch = "x86_64")]
fn kernel_trusts_counter() -> bool {
    let list = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    std::fs::read_to_string(list).is_ok_and(|names| names.split_whitespace().any(|name| name == "tsc"))
}

/// Nanoseconds of the system's monotonic clock, the same for all processes since boot.
#[cfg(unix)]
#[inline]
pub(crate) fn monotonic_nanoseconds() -> u64 {
    nanoseconds_of(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds for which the calling thread has run on a processor.
#[cfg(unix)]
pub(crate) fn thread_cpu_nanoseconds() -> u64 {
    nanoseconds_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds for which the threads of this process have run on processors.
#[cfg(unix)]
pub(crate) fn process_cpu_nanoseconds() -> u64 {
    nanoseconds_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[cfg(unix)]
#[inline]
fn nanoseconds_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write a timespec to; for a clock that does not exist it stays zero.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since the first call.
#[cfg(not(unix))]
pub(crate) fn monotonic_nanoseconds() -> u64 {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    ORIGIN.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64 + 1
}

/// There is no such clock here: a thread is taken to run all the time.
#[cfg(not(unix))]
pub(crate) fn thread_cpu_nanoseconds() -> u64 {
    monotonic_nanoseconds()
}

/// There is no such clock here: a process is taken to run all the time.
#[cfg(not(unix))]
pub(crate) fn process_cpu_nanoseconds() -> u64 {
    monotonic_nanoseconds()
}

/// The id under which the operating system's tools show the calling thread.
#[cfg(target_os = "linux")]
pub(super) fn native_thread_id() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// A number of the calling thread's own; this system has no small thread ids to show.
#[cfg(not(target_os = "linux"))]
pub(super) fn native_thread_id() -> u32 {
    use std::sync::atomic::AtomicU32;
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The user in whose name this process opens files.
#[cfg(unix)]
pub(super) fn user_id() -> u32 {
    // SAFETY: geteuid takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Leaves all signals to the program's own threads.
#[cfg(unix)]
pub(super) fn block_signals() {
    // SAFETY: a sigset_t may be all zeros until sigfillset fills it; both calls only read or write it
    // and change nothing but the calling thread's own mask.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
    }
}

/// There are no signals here.
#[cfg(not(unix))]
pub(super) fn block_signals() {}

/// Runs `handler` in the child after each later fork of this process, after those that were asked for before.
#[cfg(unix)]
pub fn after_fork_in_child(handler: extern "C" fn()) {
    // SAFETY: the handler is a function of this library, which is never unloaded once it records.
    unsafe { libc::pthread_atfork(None, None, Some(handler as unsafe extern "C" fn())) };
}

/// There is no fork here.
#[cfg(not(unix))]
pub fn after_fork_in_child(_handler: extern "C" fn()) {}

/// A value made on first use, that can be forgotten and made anew, in the child of a fork above all.
///
/// What was handed out stays valid for ever: forgotten values are leaked, because after a fork their
/// locks may be held by threads which no longer exist.
pub struct Remade<T>(AtomicPtr<T>);

impl<T: Sync + 'static> Remade<T> {
    /// No value yet.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The present value, if there is one.
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `get_or_make` and is never freed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The present value; `make` is called when there is none.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(value) = self.get() {
            return value;
        }
        let made = Box::into_raw(Box::new(make()));
        match self.0.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just allocated, published once, never freed.
            Ok(_) => unsafe { &*made },
            Err(first) => {
                // SAFETY: `made` lost the race and was seen by nobody else; `first` is as in `get`.
                unsafe {
                    drop(Box::from_raw(made));
                    &*first
                }
            }
        }
    }

    /// Forgets the present value without touching it.
    pub fn forget(&self) {
        self.0.store(ptr::null_mut(), Ordering::Release);
    }
}

impl<T: Sync + 'static> Default for Remade<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Values that are added and never taken away: they live for ever, and reading waits for nobody.
pub(super) struct Grown<T: 'static>(AtomicPtr<Link<T>>);

struct Link<T: 'static> {
    value: T,
    next: Option<&'static Self>,
}

impl<T: Sync + 'static> Grown<T> {
    /// No values yet.
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    fn last(&self) -> Option<&'static Link<T>> {
        // SAFETY: the pointer is null or was leaked by `push`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Adds a value.
    pub(super) fn push(&self, value: T) -> &'static T {
        let link = Box::leak(Box::new(Link { value, next: None }));
        let added = ptr::from_mut(link);
        loop {
            let last = self.last();
            // SAFETY: just leaked, and seen by nobody else before it is published.
            unsafe { (*added).next = last };
            let last = last.map_or(ptr::null_mut(), |last| ptr::from_ref(last).cast_mut());
            if self.0.compare_exchange(last, added, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // SAFETY: as above; from here on nobody writes to it.
                return unsafe { &(*added).value };
            }
        }
    }

    /// The values, the latest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static T> + use<T> {
        std::iter::successors(self.last(), |link| link.next).map(|link| &link.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_until_it_is_forgotten() {
        static VALUE: Remade<u32> = Remade::new();
        assert!(VALUE.get().is_none());
        assert_eq!(*VALUE.get_or_make(|| 1), 1);
        let first = VALUE.get_or_make(|| 2);
        assert_eq!(*first, 1);
        VALUE.forget();
        assert_eq!(*VALUE.get_or_make(|| 3), 3);
        assert_eq!(*first, 1, "what was handed out stays valid");
    }

    #[test]
    fn what_threads_add_at_once_is_all_there() {
        static NUMBERS: Grown<usize> = Grown::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    (0..1_000).for_each(|i| assert_eq!(*NUMBERS.push(thread + 4 * i), thread + 4 * i))
                });
            }
        });
        let mut numbers: Vec<usize> = NUMBERS.iter().copied().collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..4_000));
    }

    #[test]
    fn the_monotonic_clock_goes_forward() {
        let first = monotonic_nanoseconds();
        assert!(first > 0);
        assert!(monotonic_nanoseconds() >= first);
    }
}
