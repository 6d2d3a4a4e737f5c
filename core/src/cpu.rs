//! The CPU that the calling thread runs on. Memory that it used last is still in its caches; to read memory that another
//! CPU wrote to takes several times as long.

/// The number of the CPU that the calling thread runs on. The thread may move to another one at any time.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[inline]
pub fn current() -> usize {
    // SAFETY: takes nothing and touches no memory.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// This system does not tell: all CPUs count as one.
#[cfg(not(target_os = "linux"))]
pub fn current() -> usize {
    0
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_is_small() {
        // More may be online than this process may use, and they may be numbered with gaps.
        assert!(super::current() < 1 << 16);
    }
}
