//! Streams: the engine of `ZStream`, `GzipWriter` and `GzipReader`.

use std::sync::{Mutex, MutexGuard};

use magnus::value::{LazyId, ReprValue};
use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RClass, RModule, RObject, RString, Ruby, Symbol,
    TypedData, Value, function, method,
};
use offlock_core::Task;
use offlock_core::deflate::{
    self, BlockDeflater, Config, Deflater, ErrorKind, Flush, GzipDecoder, Inflater, Members, Output, Status,
};

use super::error::ZlibError;
use super::gzip;
use super::number::Int;
use crate::borrow::borrowed;
use crate::build;
use crate::cruby;
use crate::cruby::string::with_bytes;
use crate::error::IntoException;
use crate::operations::{ZLIB_DEFLATE, ZLIB_INFLATE};
use crate::output;
use crate::region::{Region, Release};

pub(super) fn define(ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    zlib.define_singleton_method("native_mutex", function!(mutex, 2))?;
    let class = zlib.define_class("Engine", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("deflate", function!(Engine::deflate, 4))?;
    class.define_singleton_method("blocks", function!(Engine::blocks, 3))?;
    class.define_singleton_method("inflate", function!(Engine::inflate, 1))?;
    class.define_singleton_method("gunzip", function!(Engine::gunzip, 1))?;
    class.define_method("run", method!(Engine::run, 3))?;
    class.define_method("gather", method!(Engine::gather, 1))?;
    class.define_method("close", method!(Engine::close, 0))?;
    class.define_method("unread", method!(Engine::unread, 0))?;
    class.define_method("status", method!(Engine::status, 0))?;
    class.define_method("raise_failure", method!(Engine::raise_failure, 0))?;
    class.define_method("ended?", method!(Engine::ended, 0))?;
    class.define_method("total_in", method!(Engine::total_in, 0))?;
    class.define_method("total_out", method!(Engine::total_out, 0))?;
    class.define_method("adler", method!(Engine::adler, 0))?;
    class.define_method("data_type", method!(Engine::data_type, 0))?;
    class.define_method("reset", method!(Engine::reset, 0))?;
    class.define_method("copy", method!(Engine::copy, 0))?;
    class.define_method("params", method!(Engine::params, 2))?;
    class.define_method("set_dictionary", method!(Engine::set_dictionary, 1))?;
    class.define_method("sync", method!(Engine::sync, 1))?;
    class.define_method("sync_point?", method!(Engine::sync_point, 0))?;
    class.define_method("window", method!(Engine::window, 0))?;
    class.define_singleton_method("header", function!(gzip::fields, 1))?;
    class.define_method("may_end?", method!(Engine::may_end, 0))?;
    class.define_method("in_trailer?", method!(Engine::in_trailer, 0))?;
    class.define_method("crc", method!(Engine::crc, 0))?;
    Ok(())
}

/// The mutex of a stream, made on first use. It is made here, because no other thread can run between the
/// check and the creation.
fn mutex(ruby: &Ruby, stream: RObject, class: RClass) -> Result<Value, Error> {
    static MUTEX: LazyId = LazyId::new("@offlock_mutex");
    let name = LazyId::get_inner_with(&MUTEX, ruby);
    let mutex: Value = stream.ivar_get(name)?;
    if !mutex.is_nil() {
        return Ok(mutex);
    }
    let mutex: Value = class.new_instance(())?.as_value();
    stream.ivar_set(name, mutex)?;
    Ok(mutex)
}

/// The kinds of stream.
enum Codec {
    Deflate(Deflater),
    Blocks(BlockDeflater),
    Inflate(Inflater),
    Gunzip(GzipDecoder),
    Closed,
}

/// A stream, and the results of its last run.
struct Stream {
    codec: Codec,
    /// The output of an interrupted run, which the next run returns first.
    kept: Vec<u8>,
    /// The number of bytes of its input that the last run did not read.
    unread: usize,
    /// How the last run ended.
    status: Status,
    failure: Option<deflate::Error>,
    /// The number of bytes that were reported to Ruby's garbage collector.
    reported: usize,
}

impl Stream {
    /// Reports to the garbage collector how much memory it would free: the more there is, the earlier it
    /// runs. The calling thread must hold the lock.
    fn report_memory(&mut self) {
        let memory = self.codec.memory();
        if memory != self.reported {
            cruby::adjust_memory(memory as isize - self.reported as isize);
            self.reported = memory;
        }
    }
}

impl Drop for Stream {
    /// Called by the collector, which holds the lock.
    fn drop(&mut self) {
        self.codec = Codec::Closed;
        self.report_memory();
    }
}

/// A stream. Its Ruby owner admits one thread at a time; if two threads use it at once, the second gets an
/// error.
#[derive(TypedData)]
#[magnus(class = "Offlock::Zlib::Engine", free_immediately, size)]
pub(super) struct Engine(Mutex<Stream>);

impl DataTypeFunctions for Engine {
    fn size(&self) -> usize {
        size_of::<Self>() + self.0.try_lock().map_or(0, |state| state.reported)
    }
}

impl Engine {
    fn new(codec: Codec) -> Self {
        let state =
            Stream { codec, kept: Vec::new(), unread: 0, status: Status::More, failure: None, reported: 0 };
        Self(Mutex::new(state))
    }

    fn made(ruby: &Ruby, codec: Result<Codec, deflate::Error>) -> Result<Self, Error> {
        codec.map(Self::new).map_err(|error| ZlibError(error).into_exception(ruby))
    }

    fn deflate(ruby: &Ruby, level: Int, wbits: Int, mem_level: Int, strategy: Int) -> Result<Self, Error> {
        let config = Config { level: level.0, wbits: wbits.0, mem_level: mem_level.0, strategy: strategy.0 };
        Self::made(ruby, Deflater::new(config).map(Codec::Deflate))
    }

    fn blocks(ruby: &Ruby, level: Int, strategy: Int, threads: usize) -> Result<Self, Error> {
        Self::made(ruby, BlockDeflater::new(level.0, strategy.0, threads).map(Codec::Blocks))
    }

    fn inflate(ruby: &Ruby, wbits: Int) -> Result<Self, Error> {
        Self::made(ruby, Inflater::new(wbits.0).map(Codec::Inflate))
    }

    /// A decoder for the first member of a gzip file.
    pub(super) fn first_member(ruby: &Ruby) -> Result<Self, Error> {
        Self::made(ruby, GzipDecoder::new(Members::First).map(Codec::Gunzip))
    }

    /// A decoder for the first member of a file with one thread; for all of them, several at once, with more.
    fn gunzip(ruby: &Ruby, threads: usize) -> Result<Self, Error> {
        let members = if threads == 1 { Members::First } else { Members::All };
        let decoder = GzipDecoder::new(members).map(|decoder| decoder.on_threads(threads));
        Self::made(ruby, decoder.map(Codec::Gunzip))
    }

    fn state(&self, ruby: &Ruby) -> Result<MutexGuard<'_, Stream>, Error> {
        self.0.try_lock().map_err(|_| {
            let busy = ruby.class_object().const_get::<_, RModule>("Offlock");
            let class = busy.and_then(|offlock| offlock.const_get::<_, RModule>("Zlib"));
            let class = class.and_then(|zlib| zlib.const_get("InProgressError"));
            let class = class.unwrap_or_else(|_| ruby.exception_thread_error());
            Error::new(class, "zlib stream is in progress")
        })
    }

    /// Runs over `input` and returns the output, at most `limit` bytes. Other methods return how much input
    /// was not read and how the run ended. An interrupt raises here, and no data is lost.
    fn run(
        ruby: &Ruby,
        this: &Self,
        input: RString,
        flush: Int,
        limit: Option<usize>,
    ) -> Result<RString, Error> {
        let input = borrowed!(Bytes, input);
        let mut rest = input.view();
        let mut state = this.state(ruby)?;
        let flush = Flush::of(flush.0)
            .ok_or_else(|| ZlibError(deflate::Error::new(ErrorKind::Stream, 0)).into_exception(ruby))?;
        let Stream { codec, kept, .. } = &mut *state;
        let mut out = Output::new().limited(limit.unwrap_or(usize::MAX).max(kept.len()));
        out.resume(kept);
        let operation = match codec {
            Codec::Deflate(_) | Codec::Blocks(_) => &ZLIB_DEFLATE,
            Codec::Inflate(_) | Codec::Gunzip(_) | Codec::Closed => &ZLIB_INFLATE,
        };
        let release = if matches!(codec, Codec::Blocks(_)) { Release::ALWAYS } else { Release::AUTO };
        // If the work is stopped and called again, it continues from where it was.
        let ended =
            Region::new(operation, rest.len() + codec.gathered()).release(release).run(ruby, |task| {
                match codec.run(&mut rest, &mut out, flush, task) {
                    Err(error) if error.kind == ErrorKind::Stopped => Err(ZlibError(error)),
                    ended => Ok(ended),
                }
            });
        state.unread = rest.len();
        state.report_memory();
        match ended {
            Ok(Ok(status)) => (state.status, state.failure) = (status, None),
            Ok(Err(error)) => state.failure = Some(error),
            Err(interrupt) => {
                state.kept = out.into_bytes().into_vec();
                return Err(interrupt);
            }
        }
        let made = out.into_bytes();
        match output::string(ruby, &made) {
            Ok(string) => {
                output::discard(made);
                Ok(string)
            }
            // The next call returns it.
            Err(interrupt) => {
                state.kept = made.into_vec();
                Err(interrupt)
            }
        }
    }

    /// Copies a small piece of input, to be compressed together with later input. Returns true, or a String
    /// if there is output already; nil if it did not copy the piece, which the caller then passes to `run`.
    fn gather(ruby: &Ruby, this: &Self, input: Value) -> Option<Value> {
        let (input, mut state) = (RString::from_value(input)?, this.0.try_lock().ok()?);
        let Codec::Deflate(stream) = &mut state.codec else { return None };
        let mut out = Output::new();
        let took = with_bytes(input, |input| stream.gather(input, &mut out));
        drop(state);
        took.then(|| match &*out.into_bytes() {
            [] => ruby.qtrue().as_value(),
            made => ruby.str_from_slice(made).as_value(),
        })
    }

    /// Frees its memory, unless another thread is using the stream.
    fn close(&self) {
        if let Ok(mut state) = self.0.try_lock() {
            state.codec = Codec::Closed;
            state.kept = Vec::new();
            state.report_memory();
        }
    }

    fn unread(ruby: &Ruby, this: &Self) -> Result<usize, Error> {
        Ok(this.state(ruby)?.unread)
    }

    /// `:more`, `:full`, `:end`, `:need_dict`, or `:failed`.
    fn status(ruby: &Ruby, this: &Self) -> Result<Symbol, Error> {
        static MORE: LazyId = LazyId::new("more");
        static FULL: LazyId = LazyId::new("full");
        static END: LazyId = LazyId::new("end");
        static NEED_DICT: LazyId = LazyId::new("need_dict");
        static FAILED: LazyId = LazyId::new("failed");
        let state = this.state(ruby)?;
        let status = match (&state.failure, state.status) {
            (Some(_), _) => &FAILED,
            (None, Status::More) => &MORE,
            (None, Status::Full) => &FULL,
            (None, Status::End) => &END,
            (None, Status::NeedDict) => &NEED_DICT,
        };
        Ok(Symbol::from(LazyId::get_inner_with(status, ruby)))
    }

    fn raise_failure(ruby: &Ruby, this: &Self) -> Result<(), Error> {
        let failure = this.state(ruby)?.failure.clone();
        failure.map_or(Ok(()), |error| Err(ZlibError(error).into_exception(ruby)))
    }

    fn ended(ruby: &Ruby, this: &Self) -> Result<bool, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Deflate(stream) => stream.ended(),
            Codec::Inflate(stream) => stream.ended(),
            Codec::Gunzip(stream) => stream.ended(),
            Codec::Blocks(_) | Codec::Closed => false,
        })
    }

    fn total_in(ruby: &Ruby, this: &Self) -> Result<u64, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Deflate(stream) => stream.total_in(),
            Codec::Inflate(stream) => stream.total_in(),
            Codec::Gunzip(stream) => stream.total_in(),
            Codec::Blocks(_) | Codec::Closed => 0,
        })
    }

    fn total_out(ruby: &Ruby, this: &Self) -> Result<u64, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Deflate(stream) => stream.total_out(),
            Codec::Inflate(stream) => stream.total_out(),
            Codec::Gunzip(_) | Codec::Blocks(_) | Codec::Closed => 0,
        })
    }

    fn adler(ruby: &Ruby, this: &Self) -> Result<u32, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Deflate(stream) => stream.adler(),
            Codec::Inflate(stream) => stream.adler(),
            Codec::Gunzip(_) | Codec::Blocks(_) | Codec::Closed => 0,
        })
    }

    fn data_type(ruby: &Ruby, this: &Self) -> Result<i32, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Deflate(stream) => stream.data_type(),
            Codec::Inflate(stream) => stream.data_type(),
            Codec::Gunzip(_) | Codec::Blocks(_) | Codec::Closed => 2,
        })
    }

    fn reset(ruby: &Ruby, this: &Self) -> Result<(), Error> {
        let mut state = this.state(ruby)?;
        let done = match &mut state.codec {
            Codec::Deflate(stream) => stream.reset(),
            Codec::Inflate(stream) => stream.reset(),
            Codec::Gunzip(stream) => stream.reset(),
            Codec::Blocks(_) | Codec::Closed => Err(deflate::Error::new(ErrorKind::Stream, 0)),
        };
        state.kept.clear();
        (state.unread, state.status, state.failure) = (0, Status::More, None);
        done.map_err(|error| ZlibError(error).into_exception(ruby))
    }

    fn copy(ruby: &Ruby, this: &Self) -> Result<Self, Error> {
        let state = this.state(ruby)?;
        let codec = match &state.codec {
            Codec::Deflate(stream) => stream.copy().map(Codec::Deflate),
            Codec::Inflate(stream) => stream.copy().map(Codec::Inflate),
            Codec::Gunzip(_) | Codec::Blocks(_) | Codec::Closed => {
                Err(deflate::Error::new(ErrorKind::Stream, 0))
            }
        };
        let copy = Self::made(ruby, codec)?;
        if let Ok(mut fresh) = copy.0.lock() {
            fresh.kept.clone_from(&state.kept);
            (fresh.unread, fresh.status) = (state.unread, state.status);
            fresh.report_memory();
        }
        Ok(copy)
    }

    fn params(ruby: &Ruby, this: &Self, level: Int, strategy: Int) -> Result<RString, Error> {
        let mut state = this.state(ruby)?;
        let mut out = Output::new();
        let done = match &mut state.codec {
            Codec::Deflate(stream) => stream.params(level.0, strategy.0, &mut out, &Task::new()),
            _ => Err(deflate::Error::new(ErrorKind::Stream, 0)),
        };
        done.map_err(|error| ZlibError(error).into_exception(ruby))?;
        build::binary_at_once(ruby, &out.into_bytes())
    }

    fn set_dictionary(ruby: &Ruby, this: &Self, dictionary: RString) -> Result<(), Error> {
        let dictionary = borrowed!(Bytes, dictionary);
        let done = match &mut this.state(ruby)?.codec {
            Codec::Deflate(stream) => stream.set_dictionary(dictionary.view()),
            Codec::Inflate(stream) => stream.set_dictionary(dictionary.view()),
            _ => Err(deflate::Error::new(ErrorKind::Stream, 0)),
        };
        done.map_err(|error| ZlibError(error).into_exception(ruby))
    }

    fn sync(ruby: &Ruby, this: &Self, input: RString) -> Result<bool, Error> {
        let input = borrowed!(Bytes, input);
        let mut rest = input.view();
        let mut state = this.state(ruby)?;
        let found = match &mut state.codec {
            Codec::Inflate(stream) => stream.sync(&mut rest),
            _ => Err(deflate::Error::new(ErrorKind::Stream, 0)),
        };
        state.unread = rest.len();
        found.map_err(|error| ZlibError(error).into_exception(ruby))
    }

    fn sync_point(ruby: &Ruby, this: &Self) -> Result<bool, Error> {
        Ok(match &mut this.state(ruby)?.codec {
            Codec::Inflate(stream) => stream.at_sync_point(),
            _ => false,
        })
    }

    /// How many bytes of a gzip file to pass next, where several of its members are decompressed at once.
    fn window(ruby: &Ruby, this: &Self) -> Result<Option<usize>, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Gunzip(stream) => stream.window(),
            _ => None,
        })
    }

    /// Returns whether a gzip file may end here.
    fn may_end(ruby: &Ruby, this: &Self) -> Result<bool, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Gunzip(stream) => stream.may_end(),
            _ => false,
        })
    }

    fn in_trailer(ruby: &Ruby, this: &Self) -> Result<bool, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Gunzip(stream) => stream.in_trailer(),
            _ => false,
        })
    }

    /// The checksum of the gzip member's contents so far.
    fn crc(ruby: &Ruby, this: &Self) -> Result<u32, Error> {
        Ok(match &this.state(ruby)?.codec {
            Codec::Gunzip(stream) => stream.sum().0,
            _ => 0,
        })
    }
}

impl Codec {
    /// The memory of the engine's state, in bytes.
    fn memory(&self) -> usize {
        match self {
            Self::Deflate(stream) => stream.memory(),
            Self::Inflate(stream) => stream.memory(),
            Self::Gunzip(stream) => stream.memory(),
            Self::Blocks(_) | Self::Closed => 0,
        }
    }

    /// The number of gathered bytes, which the next run compresses.
    fn gathered(&self) -> usize {
        match self {
            Self::Deflate(stream) => stream.gathered(),
            _ => 0,
        }
    }

    fn run(
        &mut self,
        input: &mut &[u8],
        out: &mut Output<'_>,
        flush: Flush,
        task: &Task<'_>,
    ) -> Result<Status, deflate::Error> {
        match self {
            Self::Deflate(stream) => stream.run(input, out, flush, task),
            Self::Inflate(stream) => stream.run(input, out, task),
            Self::Gunzip(stream) => stream.run(input, out, task),
            Self::Blocks(stream) => {
                stream.run(input, out, flush, task)?;
                Ok(if flush == Flush::Finish { Status::End } else { Status::More })
            }
            Self::Closed => Err(deflate::Error::new(ErrorKind::Stream, 0)),
        }
    }
}
