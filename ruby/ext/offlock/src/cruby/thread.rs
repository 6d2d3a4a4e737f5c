//! Threads: what native code keeps on them, what happens to them, and which Ractor they belong to.
//!
//! Each Ractor has a lock of its own. Ruby's instrumentation names the thread of an event, not its Ractor, and may call with no
//! lock held, when nothing can be asked of Ruby. The answer is in the thread's structure, beside the reference to the thread
//! itself (`rb_thread_t`: `self`, `ractor`). Where exactly is found out once, with the main thread and the
//! main Ractor, both of which Ruby hands out. With any other picture, and with `OFFLOCK_INTERNALS=0`, all threads count as the
//! main Ractor's.

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

    /// The current thread, if the native one is a thread of Ruby's.
    pub(crate) fn current_if_any() -> Option<Self> {
        // SAFETY: asks only for a thread if there is one.
        unsafe { (rb_sys::ruby_native_thread_p() != 0).then(Self::current) }
    }

    /// The object, if it is a thread. It is on the stack as long as the thread is used.
    pub(crate) fn of(object: Value) -> Option<Self> {
        let is_thread = object.is_kind_of(Ruby::get_with(object).class_thread());
        is_thread.then(|| Self(Object::of(object).as_raw()))
    }

    /// The Ractor of the thread, or 0 where that cannot be told. No lock is needed: a thread's Ractor never changes.
    pub(crate) fn ractor(self) -> RactorAddress {
        match WORD.get() {
            // SAFETY: the word was found in this Ruby's threads.
            Some(Some(word)) => unsafe { *words(self.0).add(*word) },
            _ => 0,
        }
    }
}

/// A place on each thread, in Ruby's storage for tools, which can be read without the lock. What is put there lives until it is
/// taken away.
pub(crate) struct ThreadSlot<T> {
    key: OnceLock<c_int>,
    holds: PhantomData<fn() -> T>,
}

impl<T: Sync + 'static> ThreadSlot<T> {
    pub(crate) const fn new() -> Self {
        Self { key: OnceLock::new(), holds: PhantomData }
    }

    /// Asks Ruby for the place, which has to be before there are Ractors. The extension is being loaded.
    pub(crate) fn reserve(&self) {
        // SAFETY: the lock is held.
        self.key.get_or_init(|| unsafe { rb_sys::rb_internal_thread_specific_key_create() });
    }

    fn key(&self) -> c_int {
        *self.key.get().expect("reserved when the extension was loaded")
    }

    /// What is there. Only [`take`](Self::take) ends its life.
    pub(crate) fn get(&self, thread: RubyThread) -> Option<&'static T> {
        // SAFETY: a live thread; the slot holds null or what `put` put there.
        unsafe { rb_sys::rb_internal_thread_specific_get(thread.0, self.key()).cast::<T>().as_ref() }
    }

    /// Puts something there.
    pub(crate) fn put(&self, thread: RubyThread, value: T) -> &'static T {
        let value = Box::leak(Box::new(value));
        // SAFETY: a live thread.
        unsafe { rb_sys::rb_internal_thread_specific_set(thread.0, self.key(), ptr::from_mut(value).cast()) };
        value
    }

    /// Takes away what is there.
    ///
    /// # Safety
    /// Nobody uses it any more: the thread has ended, and no further event of it comes.
    pub(crate) unsafe fn take(&self, thread: RubyThread) -> Option<Box<T>> {
        let value = ptr::from_ref(self.get(thread)?).cast_mut();
        // SAFETY: a live thread object; `put` leaked the value, and this is the only way to it.
        unsafe {
            rb_sys::rb_internal_thread_specific_set(thread.0, self.key(), ptr::null_mut());
            Some(Box::from_raw(value))
        }
    }
}

/// What happens to a thread and its lock.
#[derive(Clone, Copy)]
pub(crate) enum ThreadEvent {
    Started,
    /// It waits for the lock.
    Ready,
    /// It has the lock.
    Resumed,
    /// It no longer has the lock.
    Suspended,
    /// Its last event.
    Exited,
}

/// Asks Ruby to call `H` on the events of all threads, from now on for ever.
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
        // SAFETY: Ruby passes the thread that the event is about, which lives.
        H::on_event(event, RubyThread(unsafe { (*data).thread }));
    }
    let events = STARTED | READY | RESUMED | SUSPENDED | EXITED;
    // SAFETY: the function may be called at any time from here on, and is never unloaded.
    unsafe { rb_sys::rb_internal_thread_add_event_hook(Some(call::<H>), events, ptr::null_mut()) };
}

/// What Ruby calls.
pub(crate) trait Hook {
    /// Something happens to a thread. Ruby may hold its scheduler's mutex, and the calling thread no lock: nothing of Ruby is to
    /// be called.
    fn on_event(event: ThreadEvent, thread: RubyThread);
    /// The current thread, which holds the lock, begins or ends to collect garbage. No object is to be made.
    fn on_gc(begins: bool, thread: RubyThread);
}

/// Ruby's trace point for garbage collection, to be enabled while `H` wants to know. The lock is held.
pub(crate) fn gc_point<H: Hook>() -> Object {
    unsafe extern "C" fn call<H: Hook>(point: VALUE, _: *mut c_void) {
        // SAFETY: Ruby passes its own trace point. This makes no object.
        let event = unsafe { rb_sys::rb_tracearg_event_flag(rb_sys::rb_tracearg_from_tracepoint(point)) };
        H::on_gc(event == GC_ENTER, RubyThread::current());
    }
    // SAFETY: the function makes no objects.
    Object::raw(unsafe { rb_sys::rb_tracepoint_new(0, GC_ENTER | GC_EXIT, Some(call::<H>), ptr::null_mut()) })
}

/// The address of a Ractor's structure; only compared, never looked into.
pub(crate) type RactorAddress = usize;

/// How many words of a thread's structure are looked through.
const WORDS: usize = 8;

static WORD: OnceLock<Option<usize>> = OnceLock::new();

/// Finds out where threads keep their Ractor, with the current thread and the current Ractor.
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
    /// The object, if it is a Ractor. It is on the stack as long as that is used.
    pub(crate) fn of(object: Value) -> Option<Self> {
        let ruby = Ruby::get_with(object);
        let class: RClass = ruby.class_object().const_get("Ractor").ok()?;
        object.is_kind_of(class).then(|| Self(Object::of(object).as_raw()))
    }

    /// Its address, as in its threads.
    pub(crate) fn address(self) -> RactorAddress {
        // SAFETY: a Ractor wraps its structure.
        unsafe { RTYPEDDATA_GET_DATA(self.0) as usize }
    }
}

fn words(thread: VALUE) -> *const usize {
    // SAFETY: a thread wraps its structure.
    unsafe { RTYPEDDATA_GET_DATA(thread) }.cast()
}
