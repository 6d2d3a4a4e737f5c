//! Which processor runs us: what was used there last is still in its caches, and memory that another one wrote to takes
//! several times as long to read as one's own.

/// A small number of the processor that the calling thread runs on just now; it may be another one right afterwards.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[inline]
pub fn current() -> usize {
    // SAFETY: takes nothing and touches no memory.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// This system does not tell: all are one.
#[cfg(not(target_os = "linux"))]
pub fn current() -> usize {
    0
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_such_a_processor() {
        // More may be online than this process may use, and they may be numbered with gaps.
        assert!(super::current() < 1 << 16);
    }
}
