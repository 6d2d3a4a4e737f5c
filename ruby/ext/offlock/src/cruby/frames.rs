//! The stacks of threads, by Ruby's profiling API, and functions that run inside a thread's own code.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use magnus::rb_sys::{FromRawValue, protect};
use magnus::{Integer, RString, Ruby, Value};
use rb_sys::*;

use super::data::Marker;
use super::object::Object;
use super::thread::RubyThread;

/// The most frames of a stack that are looked at.
const MOST: usize = 1 << 10;

/// What a frame executes: a method, or a part of a program. It must be on a thread's stack, or marked, as long
/// as it is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Code(VALUE);

// SAFETY: an address; only the lock's holder calls functions of Ruby with it, or a thread that cannot get or
// lose the lock meanwhile.
unsafe impl Send for Code {}

/// Space for the frames of a stack.
pub(crate) struct Frames {
    codes: Box<[VALUE]>,
    lines: Box<[c_int]>,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Self { codes: vec![0; MOST].into(), lines: vec![0; MOST].into() }
    }

    /// The innermost frames of a thread, innermost first, each with its line; 0 in C. Allocates nothing. The
    /// thread is the current one, or is about to release the lock, or has just acquired it.
    pub(crate) fn of(
        &mut self,
        thread: RubyThread,
    ) -> impl DoubleEndedIterator<Item = (Code, u32)> + ExactSizeIterator + Clone {
        let (codes, lines) = (self.codes.as_mut_ptr(), self.lines.as_mut_ptr());
        // SAFETY: a live thread whose stack does not change meanwhile, and space for so many frames.
        let count = unsafe { rb_profile_thread_frames(thread.as_raw(), 0, MOST as c_int, codes, lines) };
        let count = usize::try_from(count).unwrap_or(0);
        let line = |line: &c_int| u32::try_from(*line).unwrap_or(0);
        self.codes[..count].iter().zip(&self.lines).map(move |(code, at)| (Code(*code), line(at)))
    }
}

/// The file with the code that the calling thread executes now, as in a backtrace, if it is another one than `code` has:
/// Ruby's profiling API takes what a method evaluates, and blocks in that, for the method. `code` and `line` are the
/// innermost frame of the calling thread that is not in C. Allocates nothing of Ruby. The lock is held, and the thread does not release it
/// meanwhile.
pub(crate) fn evaluated_file(code: Code, line: u32) -> Option<Arc<str>> {
    // SAFETY: the calling thread has a frame, so Ruby knows it. The file of its innermost one is a frozen String that ends
    // with 0, and that lives as long as the frame.
    let file = unsafe {
        let file = rb_sourcefile();
        // Code may be said to begin at line 0, which looks like C.
        if file.is_null() || u32::try_from(rb_sourceline()) != Ok(line) {
            return None;
        }
        CStr::from_ptr(file)
    };
    (!code.has_path(file.to_bytes())).then(|| file.to_string_lossy().into())
}

/// How Ruby calls the files of its methods that are written in Ruby.
const INTERNAL: &[u8] = b"<internal:";

impl Code {
    /// Whether it is a function in C, or one of Ruby's own in Ruby: its position says nothing about the
    /// program. Allocates nothing. The lock is held, or as for [`Frames::of`].
    pub(crate) fn is_native(self) -> bool {
        // SAFETY: what `rb_profile_thread_frames` returned, for as long as the type says. A function in C has
        // no first line. Other code has a path, a frozen String.
        unsafe {
            if rb_profile_frame_first_lineno(self.0) == Qnil as VALUE {
                return true;
            }
            let path = RString::from_value(Value::from_raw(rb_profile_frame_path(self.0)));
            path.is_some_and(|path| path.as_slice().starts_with(INTERNAL))
        }
    }

    /// Whether the path of its file is this one. Allocates nothing. The lock is held.
    fn has_path(self, path: &[u8]) -> bool {
        // SAFETY: as in `is_native`.
        let own = unsafe { RString::from_value(Value::from_raw(rb_profile_frame_path(self.0))) };
        // SAFETY: nothing of Ruby runs while the bytes are read.
        own.is_some_and(|own| unsafe { own.as_slice() } == path)
    }

    /// The qualified name, as in `Report#rows`, `Report.build` or `<main>`.
    pub(crate) fn name(self, ruby: &Ruby) -> String {
        let qualified = self.text(ruby, rb_profile_frame_qualified_method_name);
        let name = qualified.or_else(|| self.text(ruby, rb_profile_frame_full_label));
        name.map_or_else(|| "?".to_owned(), |name| without_addresses(&name))
    }

    /// The path of the file, as in a backtrace.
    pub(crate) fn path(self, ruby: &Ruby) -> String {
        self.text(ruby, rb_profile_frame_path).unwrap_or_default()
    }

    /// The text that one of Ruby's functions returns for it; `None` if it is nil, or if there is no memory for
    /// it.
    fn text(self, _: &Ruby, get: unsafe extern "C" fn(VALUE) -> VALUE) -> Option<String> {
        // SAFETY: as in `is_native`; the lock is held.
        let value = protect(|| unsafe { get(self.0) }).ok()?;
        // SAFETY: an object that was just returned.
        let text = RString::from_value(unsafe { Value::from_raw(value) })?;
        // SAFETY: nothing of Ruby runs while the bytes are read.
        Some(String::from_utf8_lossy(unsafe { text.as_slice() }).into_owned())
    }

    /// The first line; 0 in C.
    pub(crate) fn first_line(self, _: &Ruby) -> u32 {
        // SAFETY: as in `name`; returns a small Integer or nil.
        let line = unsafe { Value::from_raw(rb_profile_frame_first_lineno(self.0)) };
        Integer::from_value(line).and_then(|line| line.to_u32().ok()).unwrap_or(0)
    }

    /// Keeps it alive, and where it is. Called by the garbage collector.
    pub(crate) fn mark(self, marker: &Marker) {
        marker.mark(Object::raw(self.0));
    }
}

/// A name without the addresses of objects, as in `#<Class:0x00007f8f1d0bfdc0>#run`: they differ from run to run, and among
/// classes that are made of the same code.
fn without_addresses(name: &str) -> String {
    let mut parts = name.split(":0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_hexdigit());
        whole + if rest.starts_with('>') { rest } else { part }
    })
}

/// A function that the thread with the main Ractor's lock calls at the next point where it looks for
/// interrupts.
#[derive(Clone, Copy)]
pub(crate) struct Job(rb_postponed_job_handle_t);

/// What a job does.
pub(crate) trait Work {
    /// Called with the lock held. It may make objects.
    fn run(ruby: &Ruby);
}

impl Job {
    /// Registers a job, for ever; `None` if Ruby has no place for it. Ruby knows jobs by the function that it calls, so each
    /// kind of work has one of its own.
    pub(crate) fn register<W: Work>(_: &Ruby) -> Option<Self> {
        unsafe extern "C" fn call<W: Work>(_: *mut c_void) {
            // SAFETY: Ruby calls jobs with the lock held.
            W::run(&unsafe { Ruby::get_unchecked() });
        }
        // SAFETY: the function is never unloaded.
        let handle = unsafe { rb_postponed_job_preregister(0, Some(call::<W>), std::ptr::null_mut()) };
        (handle != rb_postponed_job_handle_t::MAX).then_some(Self(handle))
    }

    /// Has it called soon. Any thread may call this.
    pub(crate) fn trigger(self) {
        // SAFETY: a registered job; the function sets two atomic flags.
        unsafe { rb_postponed_job_trigger(self.0) };
    }
}
