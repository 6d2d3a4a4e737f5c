//! The processor's time stamp counter.

#![allow(unsafe_code)]

/// Reads the time stamp counter.
#[inline]
pub(crate) fn time_stamp_counter() -> u64 {
    // SAFETY: every x86-64 processor has rdtsc; it touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Waits until all earlier instructions have completed.
#[inline]
#[allow(unused_unsafe, reason = "newer compilers know lfence to be safe")]
pub(crate) fn finish_what_is_before() {
    // SAFETY: every x86-64 processor has SSE2's lfence; it touches no memory.
    unsafe { std::arch::x86_64::_mm_lfence() }
}

/// Whether the time stamp counter runs at one rate on all cores, in all power states.
#[allow(unused_unsafe, reason = "newer compilers know cpuid to be safe")]
pub(crate) fn has_invariant_counter() -> bool {
    // SAFETY: every x86-64 processor has cpuid; the leaf is read only when the processor lists it.
    let (leaves, power) = unsafe {
        let leaves = std::arch::x86_64::__cpuid(0x8000_0000).eax;
        (leaves, std::arch::x86_64::__cpuid(0x8000_0007).edx)
    };
    leaves >= 0x8000_0007 && power & 1 << 8 != 0 && kernel_trusts_counter()
}

/// Linux removes `tsc` from this list if it has seen the counters of two cores disagree.
fn kernel_trusts_counter() -> bool {
    let list = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    std::fs::read_to_string(list).is_ok_and(|names| names.split_whitespace().any(|name| name == "tsc"))
}
