//! The system calls that the core needs: clocks, ids, signals.

#![allow(unsafe_code)]

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

/// Nanoseconds for which a thread of this process has run on a processor; `None` if there is no such thread.
#[cfg(target_os = "linux")]
pub(crate) fn cpu_nanoseconds_of(native_thread: u32) -> Option<u64> {
    /// Linux's number of the clock that counts a thread's time (4) on a processor (2); see `clock_getcpuclockid`.
    const OF_THREAD: libc::clockid_t = 4 | 2;
    let clock = (!(native_thread as libc::clockid_t) << 3) | OF_THREAD;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write a timespec to; a clock that does not exist is an error.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (failed == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// This system does not tell one thread about another one's processor time by its id.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cpu_nanoseconds_of(_: u32) -> Option<u64> {
    None
}

/// The number of processors on which this process may run; `None` if there are more than the library's type
/// can hold.
#[cfg(target_os = "linux")]
pub(crate) fn allowed_processors() -> Option<usize> {
    // SAFETY: a cpu_set_t may be all zeros, and is a valid place to write one to; counting only reads it.
    let count = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        match libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) {
            0 => libc::CPU_COUNT(&set),
            _ => 0,
        }
    };
    usize::try_from(count).ok().filter(|count| *count > 0)
}

/// Nanoseconds since the first call.
#[cfg(not(unix))]
pub(crate) fn monotonic_nanoseconds() -> u64 {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    ORIGIN.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64 + 1
}

/// This system has no such clock: a thread counts as running all the time.
#[cfg(not(unix))]
pub(crate) fn thread_cpu_nanoseconds() -> u64 {
    monotonic_nanoseconds()
}

/// This system has no such clock: a process counts as running all the time.
#[cfg(not(unix))]
pub(crate) fn process_cpu_nanoseconds() -> u64 {
    monotonic_nanoseconds()
}

/// The id under which the operating system's tools show the calling thread.
#[cfg(target_os = "linux")]
pub(crate) fn native_thread_id() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// A new number at each call; this system has no small thread ids to show.
#[cfg(not(target_os = "linux"))]
pub(crate) fn native_thread_id() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Waits until one of two descriptors can be read, or has failed, and returns which; `None` after the timeout.
#[cfg(unix)]
pub(crate) fn wait_readable(
    descriptors: [std::os::fd::RawFd; 2],
    timeout: Option<std::time::Duration>,
) -> Option<usize> {
    let milliseconds = timeout.map_or(-1, |timeout| timeout.as_millis().min(1 << 30) as libc::c_int);
    let mut polled = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    loop {
        // SAFETY: `polled` is a valid array of two entries, which the call reads and writes.
        let found = unsafe { libc::poll(polled.as_mut_ptr(), 2, milliseconds) };
        match polled.iter().position(|polled| polled.revents != 0) {
            Some(first) if found > 0 => return Some(first),
            _ if found == 0 => return None,
            // Interrupted by a signal.
            _ => {}
        }
    }
}

/// Whether a thread of this process runs on a processor, or is about to; `None` if there is no such thread.
#[cfg(target_os = "linux")]
pub(crate) fn is_on_processor(native_thread: u32) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{native_thread}/stat")).ok()?;
    // The name may contain blanks and parentheses.
    Some(stat.rsplit_once(") ")?.1.starts_with('R'))
}

/// Not known on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_on_processor(_: u32) -> Option<bool> {
    None
}

/// The name that the system shows for a thread of this process; `None` if the thread has no other name than the process.
#[cfg(target_os = "linux")]
pub(crate) fn thread_name(native_thread: u32) -> Option<String> {
    let name_of = |thread: u32| {
        let name = std::fs::read(format!("/proc/self/task/{thread}/comm")).ok()?;
        Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
    };
    name_of(native_thread)
        .filter(|name| !name.is_empty() && name_of(std::process::id()).as_ref() != Some(name))
}

/// Not known on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_name(_: u32) -> Option<String> {
    None
}

/// Closes a descriptor that no value owns in this process.
#[cfg(unix)]
pub(crate) fn close(descriptor: std::os::fd::RawFd) {
    // SAFETY: the caller is the child of a fork, in which nothing else uses the descriptor.
    unsafe { libc::close(descriptor) };
}

/// The effective user of this process, which owns the files that the process makes.
#[cfg(unix)]
pub(crate) fn user_id() -> u32 {
    // SAFETY: geteuid takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The process that started this one, or that has taken it over.
#[cfg(unix)]
pub(crate) fn parent_process_id() -> u32 {
    std::os::unix::process::parent_id()
}

/// Not known on this system.
#[cfg(not(unix))]
pub(crate) fn parent_process_id() -> u32 {
    0
}

/// Blocks all signals on the calling thread, so that the program's own threads handle them.
#[cfg(unix)]
pub(crate) fn block_signals() {
    // SAFETY: a sigset_t may be all zeros until sigfillset fills it; both calls only read or write it
    // and change nothing but the calling thread's own mask.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// This system has no signals.
#[cfg(not(unix))]
pub(crate) fn block_signals() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_goes_forward() {
        let first = monotonic_nanoseconds();
        assert!(first > 0);
        assert!(monotonic_nanoseconds() >= first);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_knows_the_name_of_a_thread_that_has_one() {
        let name = || thread_name(native_thread_id());
        let named = std::thread::Builder::new().name("pool (of threads)".into()).spawn(name).unwrap();
        assert_eq!(named.join().unwrap().as_deref(), Some("pool (of thread"));
        assert_eq!(thread_name(std::process::id()), None);
        assert_eq!(thread_name(u32::MAX), None);
    }
}
