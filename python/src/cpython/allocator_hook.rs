//! The allocator hook that returns freed strings to their blocks.
//!
//! CPython frees a `str` through its object allocator, which can be wrapped. The hook checks whether the
//! memory lies in the pool's range of addresses. If so, it decrements the count of the string's block;
//! otherwise it calls the wrapped allocator. It is installed once and never removed: strings in blocks may
//! live as long as the process.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::block_pool::{self, BLOCK};
use super::str_layout;
use crate::error::WithMessage;
use crate::objects::name;

/// The state that the hook reads. Written once, before it is installed.
struct Hook {
    /// The first address of the pool.
    base: usize,
    bytes: usize,
    wrapped: ffi::PyMemAllocatorEx,
}

struct Written(UnsafeCell<MaybeUninit<Hook>>);

// SAFETY: only read after it is written, which happens once, with the lock held and before the hook is
// installed.
unsafe impl Sync for Written {}

static HOOK: Written = Written(UnsafeCell::new(MaybeUninit::uninit()));
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// How often zeroed memory was requested through the hook.
static ZEROED: AtomicUsize = AtomicUsize::new(0);

/// Installs the hook, unless it is installed. `RuntimeError` says why it cannot be.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    if INSTALLED.load(Ordering::Relaxed) {
        return check(py);
    }
    if let Some(obstacle) = obstacle(py)? {
        // The search for obstacles lets other threads run: one of them may have installed the hook, which
        // then is the obstacle.
        if INSTALLED.load(Ordering::Relaxed) {
            return check(py);
        }
        return Err(PyRuntimeError::with_message(format!("strings cannot be built in blocks: {obstacle}")));
    }
    let (base, bytes) = block_pool::addresses();
    // SAFETY: the lock is held, and no thread reads before the hook is installed.
    unsafe {
        let wrapped = current();
        (*HOOK.0.get()).write(Hook { base, bytes, wrapped });
        let mut ours = ffi::PyMemAllocatorEx {
            calloc: Some(zeroed),
            realloc: Some(reallocate),
            free: Some(free),
            ..wrapped // its context stays the same, and new memory comes from it directly
        };
        ffi::PyMem_SetAllocator(ffi::PyMemAllocatorDomain::PYMEM_DOMAIN_OBJ, &raw mut ours);
    }
    INSTALLED.store(true, Ordering::Relaxed);
    Ok(())
}

/// `RuntimeError` unless strings can be built in blocks now.
pub(crate) fn check(py: Python<'_>) -> PyResult<()> {
    match unavailable(py)? {
        Some(reason) => {
            Err(PyRuntimeError::with_message(format!("strings cannot be built in blocks: {reason}")))
        }
        None => Ok(()),
    }
}

/// Whether blocks were enabled and can be used.
pub(crate) fn is_ready() -> bool {
    INSTALLED.load(Ordering::Relaxed) && is_in_place() == Some(true)
}

/// Why strings cannot be built in blocks now.
pub(crate) fn unavailable(py: Python<'_>) -> PyResult<Option<String>> {
    if !INSTALLED.load(Ordering::Relaxed) {
        let possible = || "call offlock.strings.enable_blocks() first".to_owned();
        return Ok(Some(obstacle(py)?.unwrap_or_else(possible)));
    }
    match is_in_place() {
        Some(true) => return Ok(None),
        Some(false) => {}
        None => return Err(PyMemoryError::new_err(())),
    }
    Ok(Some("the hook is gone: a tool that had wrapped the allocator before has put it back".to_owned()))
}

/// Whether the object allocator calls the hook: the hook has to see a request that is otherwise rare. `None`
/// when it does not see the request and the request fails: an allocator that wraps the hook may have had no
/// memory.
fn is_in_place() -> Option<bool> {
    let before = ZEROED.load(Ordering::Relaxed);
    // SAFETY: the lock is held.
    let object = unsafe { ffi::PyObject_Calloc(1, 1) };
    // SAFETY: frees the memory that was just allocated; null is allowed.
    unsafe { ffi::PyObject_Free(object) };
    let seen = ZEROED.load(Ordering::Relaxed) != before;
    (seen || !object.is_null()).then_some(seen)
}

/// Why the hook cannot be installed.
fn obstacle(py: Python<'_>) -> PyResult<Option<String>> {
    if cfg!(Py_GIL_DISABLED) {
        let reason = "without a GIL, a thread may still look at a string that another one has freed";
        return Ok(Some(reason.to_owned()));
    }
    if let Err(unknown) = str_layout::of_exact(py) {
        return Ok(Some(unknown.to_string()));
    }
    if py.import(name!("_tracemalloc"))?.call_method0(name!("is_tracing"))?.is_truthy()? {
        return Ok(Some(
            "tracemalloc is tracing; enable blocks before it starts, or after it has stopped".to_owned(),
        ));
    }
    if !is_pythons_own() {
        return Ok(Some("another tool has wrapped the object allocator".to_owned()));
    }
    if block_pool::Block::take().is_none() {
        return Ok(Some("the system has no addresses to reserve".to_owned()));
    }
    Ok(None)
}

/// The current object allocator.
fn current() -> ffi::PyMemAllocatorEx {
    let mut allocator = MaybeUninit::uninit();
    // SAFETY: fills the struct.
    unsafe {
        ffi::PyMem_GetAllocator(ffi::PyMemAllocatorDomain::PYMEM_DOMAIN_OBJ, allocator.as_mut_ptr());
        allocator.assume_init()
    }
}

/// Whether the functions of the object allocator are in the same library as `PyObject_Free`.
#[cfg(unix)]
fn is_pythons_own() -> bool {
    let library = |function: *const c_void| {
        let mut found = MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: only looks up an address; fills the struct unless it returns 0.
        unsafe { (libc::dladdr(function, found.as_mut_ptr()) != 0).then(|| found.assume_init().dli_fbase) }
    };
    let own = library(ffi::PyObject_Free as *const c_void);
    own.is_some() && current().free.is_some_and(|free| library(free as *const c_void) == own)
}

#[cfg(not(unix))]
fn is_pythons_own() -> bool {
    false
}

/// # Safety
///
/// The hook is installed.
#[inline]
unsafe fn hook() -> &'static Hook {
    // SAFETY: written before it was installed, and never again.
    unsafe { (*HOOK.0.get()).assume_init_ref() }
}

impl Hook {
    #[inline]
    fn has(&self, memory: *mut c_void) -> bool {
        memory.addr().wrapping_sub(self.base) < self.bytes
    }
}

extern "C" fn free(context: *mut c_void, memory: *mut c_void) {
    // SAFETY: called by CPython, as the installed hook.
    let hook = unsafe { hook() };
    if hook.has(memory) {
        // SAFETY: only strings of published blocks have such addresses, and CPython no longer uses this one.
        unsafe { block_pool::release_object(memory) };
    } else if let Some(free) = hook.wrapped.free {
        free(context, memory);
    }
}

extern "C" fn zeroed(context: *mut c_void, number: usize, size: usize) -> *mut c_void {
    ZEROED.store(ZEROED.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    // SAFETY: called by CPython, as the installed hook.
    let wrapped = unsafe { hook() }.wrapped.calloc;
    wrapped.map_or(ptr::null_mut(), |calloc| calloc(context, number, size))
}

/// A string in a block that grows or shrinks is moved out of the block.
extern "C" fn reallocate(context: *mut c_void, memory: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: called by CPython, as the installed hook.
    let hook = unsafe { hook() };
    if !hook.has(memory) {
        return hook.wrapped.realloc.map_or(ptr::null_mut(), |realloc| realloc(context, memory, size));
    }
    let moved = hook.wrapped.malloc.map_or(ptr::null_mut(), |malloc| malloc(context, size));
    if !moved.is_null() {
        let rest = BLOCK - memory.addr() % BLOCK;
        // SAFETY: the string ends within its block; the bytes after it in the block are copied too, and have
        // no meaning. The new memory has `size` bytes, and CPython uses it in place of the string from now
        // on.
        unsafe {
            ptr::copy_nonoverlapping(memory.cast::<u8>(), moved.cast::<u8>(), size.min(rest));
            block_pool::release_object(memory);
        }
    }
    moved
}
