//! Threads: data that native code attaches to them, their events, and the Ractor they belong to.
//!
//! Each Ractor has its own lock. Ruby's instrumentation reports the thread of an event, not its Ractor, and
//! may call the hook without any lock, when no function of Ruby's may be called. The Ractor is in the
//! thread's structure, next to the reference to the thread itself (`rb_thread_t`: `self`, `ractor`). The
//! exact position is determined once, with the main thread and the main Ractor, whose addresses Ruby returns.
//! If the structure looks different, or with `OFFLOCK_INTERNALS=0`, all threads count as threads of the main
//! Ractor.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;

use magnus::value::ReprValue;
use magnus::{Module, RClass, Ruby, Value};
use rb_sys::macros::RTYPEDDATA_GET_DATA;
use rb_sys::{
    RUBY_INTERNAL_EVENT_GC_ENTER as GC_ENTER, RUBY_INTERNAL_EVENT_GC_EXIT as GC_EXIT,
    RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED, RUBY_INTERNAL_THREAD_EVENT_READY as READY,
    RUBY_INTERNAL_THREAD_EVENT_RESUMED as RESUMED, RUBY_INTERNAL_THREAD_EVENT_STARTED as STARTED,
    RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as SUSPENDED, VALUE, rb_event_flag_t,
    rb_internal_thread_event_data_t,
};

use super::object::Object;

/// A live Ruby thread.
#[derive(Clone, Copy)]
pub(crate) struct RubyThread(VALUE);

impl RubyThread {
    /// The current thread. The lock is held.
    pub(crate) fn current() -> Self {
        // SAFETY: the lock is held.
        Self(unsafe { rb_sys::rb_thread_current() })
    }

    /// The current thread, if the native thread is a thread of Ruby's.
    pub(crate) fn current_if_any() -> Option<Self> {
        // SAFETY: asks for the current thread only if there is one.
        unsafe { (rb_sys::ruby_native_thread_p() != 0).then(Self::current) }
    }

    pub(super) const fn as_raw(self) -> VALUE {
        self.0
    }

    /// The object, if it is a thread. It must be on the stack as long as the thread is used.
    pub(crate) fn of(object: Value) -> Option<Self> {
        let is_thread = object.is_kind_of(Ruby::get_with(object).class_thread());
        is_thread.then(|| Self(Object::of(object).as_raw()))
    }

    /// The Ractor of the thread, or 0 if it is unknown. Needs no lock: a thread's Ractor never changes.
    pub(crate) fn ractor(self) -> RactorAddress {
        match WORD.get() {
            // SAFETY: the word was found in this Ruby's threads.
            Some(Some(word)) => unsafe { *words(self.0).add(*word) },
            _ => 0,
        }
    }
}

/// A slot on each thread, in Ruby's storage for tools, that can be read without the lock. A value lives until
/// it is taken out.
pub(crate) struct ThreadSlot<T> {
    key: OnceLock<c_int>,
    holds: PhantomData<fn() -> T>,
}

impl<T: Sync + 'static> ThreadSlot<T> {
    pub(crate) const fn new() -> Self {
        Self { key: OnceLock::new(), holds: PhantomData }
    }

    /// Reserves the slot, which must happen before there are Ractors. Called while the extension is loaded.
    pub(crate) fn reserve(&self) {
        // SAFETY: the lock is held.
        self.key.get_or_init(|| unsafe { rb_sys::rb_internal_thread_specific_key_create() });
    }

    fn key(&self) -> c_int {
        *self.key.get().expect("reserved when the extension was loaded")
    }

    /// The value in the slot. Only [`take`](Self::take) ends its life.
    pub(crate) fn get(&self, thread: RubyThread) -> Option<&'static T> {
        // SAFETY: a live thread; the slot holds null or the value that `put` stored.
        unsafe { rb_sys::rb_internal_thread_specific_get(thread.0, self.key()).cast::<T>().as_ref() }
    }

    /// Stores a value in the slot.
    pub(crate) fn put(&self, thread: RubyThread, value: T) -> &'static T {
        let value = Box::leak(Box::new(value));
        // SAFETY: a live thread.
        unsafe { rb_sys::rb_internal_thread_specific_set(thread.0, self.key(), ptr::from_mut(value).cast()) };
        value
    }

    /// Takes the value out of the slot.
    ///
    /// # Safety
    /// No code uses the value any more: the thread has ended, and no further event of it comes.
    pub(crate) unsafe fn take(&self, thread: RubyThread) -> Option<Box<T>> {
        let value = ptr::from_ref(self.get(thread)?).cast_mut();
        // SAFETY: a live thread object; `put` leaked the value, and this is the only reference to it.
        unsafe {
            rb_sys::rb_internal_thread_specific_set(thread.0, self.key(), ptr::null_mut());
            Some(Box::from_raw(value))
        }
    }
}

/// An event of a thread and its lock.
#[derive(Clone, Copy)]
pub(crate) enum ThreadEvent {
    Started,
    /// The thread waits for the lock.
    Ready,
    /// The thread has acquired the lock.
    Resumed,
    /// The thread has released the lock.
    Suspended,
    /// The thread's last event.
    Exited,
}

/// Makes Ruby call `H` on the events of all threads, from now on and forever.
pub(crate) fn add_hook<H: Hook>() {
    unsafe extern "C" fn call<H: Hook>(
        event: rb_event_flag_t,
        data: *const rb_internal_thread_event_data_t,
        _: *mut c_void,
    ) {
        let event = match event {
            STARTED => ThreadEvent::Started,
            READY => ThreadEvent::Ready,
            RESUMED => ThreadEvent::Resumed,
            SUSPENDED => ThreadEvent::Suspended,
            EXITED => ThreadEvent::Exited,
            _ => return,
        };
        // SAFETY: Ruby passes the thread of the event, which is alive.
        H::on_event(event, RubyThread(unsafe { (*data).thread }));
    }
    let events = STARTED | READY | RESUMED | SUSPENDED | EXITED;
    // SAFETY: the function may be called at any time from here on, and is never unloaded.
    unsafe { rb_sys::rb_internal_thread_add_event_hook(Some(call::<H>), events, ptr::null_mut()) };
}

/// Callbacks of Ruby.
pub(crate) trait Hook {
    /// An event of a thread. Ruby may hold its scheduler's mutex, and the calling thread may hold no lock:
    /// the hook must not call functions of Ruby.
    fn on_event(event: ThreadEvent, thread: RubyThread);
    /// The current thread, which holds the lock, begins or ends a garbage collection. The hook must not make
    /// objects.
    fn on_gc(begins: bool, thread: RubyThread);
}

/// Ruby's trace point for garbage collection, enabled while `H` is interested. The lock is held.
pub(crate) fn gc_point<H: Hook>() -> Object {
    unsafe extern "C" fn call<H: Hook>(point: VALUE, _: *mut c_void) {
        // SAFETY: Ruby passes its own trace point. This makes no object.
        let event = unsafe { rb_sys::rb_tracearg_event_flag(rb_sys::rb_tracearg_from_tracepoint(point)) };
        H::on_gc(event == GC_ENTER, RubyThread::current());
    }
    // SAFETY: the function makes no objects.
    Object::raw(unsafe { rb_sys::rb_tracepoint_new(0, GC_ENTER | GC_EXIT, Some(call::<H>), ptr::null_mut()) })
}

/// The address of a Ractor's structure; only compared, never dereferenced.
pub(crate) type RactorAddress = usize;

/// The number of words of a thread's structure that are searched.
const WORDS: usize = 8;

static WORD: OnceLock<Option<usize>> = OnceLock::new();

/// Determines where threads keep their Ractor, from the current thread and the current Ractor.
pub(crate) fn learn(thread: RubyThread, ractor: Ractor) {
    WORD.get_or_init(|| {
        let structure = words(thread.0);
        // SAFETY: `rb_thread_t` is far larger than the words that are read.
        let word = |index: usize| unsafe { *structure.add(index) };
        let known = super::uses_internals();
        (1..WORDS)
            .find(|&index| known && word(index - 1) == thread.0 as usize && word(index) == ractor.address())
    });
}

/// A Ractor.
#[derive(Clone, Copy)]
pub(crate) struct Ractor(VALUE);

impl Ractor {
    /// The object, if it is a Ractor. It must be on the stack as long as the Ractor is used.
    pub(crate) fn of(object: Value) -> Option<Self> {
        let ruby = Ruby::get_with(object);
        let class: RClass = ruby.class_object().const_get("Ractor").ok()?;
        object.is_kind_of(class).then(|| Self(Object::of(object).as_raw()))
    }

    /// The address of the Ractor, as its threads keep it.
    pub(crate) fn address(self) -> RactorAddress {
        // SAFETY: a Ractor wraps its structure.
        unsafe { RTYPEDDATA_GET_DATA(self.0) as usize }
    }
}

fn words(thread: VALUE) -> *const usize {
    // SAFETY: a thread wraps its structure.
    unsafe { RTYPEDDATA_GET_DATA(thread) }.cast()
}
