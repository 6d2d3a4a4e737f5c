//! The CPU on which the calling thread runs. Memory that this CPU used last is still in its caches; reading
//! memory that another CPU wrote last takes several times as long.

/// The number of the CPU on which the calling thread runs. The thread may move to another CPU at any time.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[inline]
pub fn current() -> usize {
    // SAFETY: takes nothing and touches no memory.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// This system does not report the CPU: all threads count as running on one.
#[cfg(not(target_os = "linux"))]
pub fn current() -> usize {
    0
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_is_small() {
        // More CPUs may be online than this process may use, and their numbers may have gaps.
        assert!(super::current() < 1 << 16);
    }
}
