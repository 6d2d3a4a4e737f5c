//! Compression piece by piece.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Mutex;

use magnus::{
    Class, DataTypeFunctions, Error, Module, RHash, RModule, RString, Ruby, TryConvert, TypedData, Value, gc,
    method,
};
use offlock_core::zstd::{self, Compressor, ErrorKind, Mode, Output};

use super::arguments;
use super::error::is_stopped;
use super::memory::Reported;
use super::turn::{Turn, state_of};
use crate::borrow::Kept;
use crate::build;
use crate::cruby::string::{PIECE, Pieces, StringWriter};
use crate::cruby::{Object, catch};
use crate::error::IntoException;
use crate::operations::ZSTD_COMPRESS;
use crate::region::{Region, Yielder, drop_aside};

pub(super) fn define(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("StreamingCompress", ruby.class_object())?;
    class.define_alloc_func::<Compress>();
    class.define_private_method("native_start", method!(Compress::start, 3))?;
    class.define_method("compress", method!(Compress::compress, 1))?;
    class.define_method("write", method!(Compress::write, -1))?;
    class.define_method("flush", method!(Compress::flush, 0))?;
    class.define_method("finish", method!(Compress::finish, 0))?;
    class.define_method("pledged_size=", method!(Compress::pledge, 1))?;
    class.define_private_method("native_take", method!(Compress::taken, 0))?;
    class.define_private_method("native_pending", method!(Compress::pending, 0))?;
    class.define_private_method("native_flush", method!(Compress::flush_to_self, 1))
}

/// A compressor, with the input and output of interrupted calls: no byte is lost.
#[derive(TypedData, Default)]
#[magnus(class = "Offlock::Zstd::StreamingCompress", free_immediately, mark, size)]
struct Compress {
    turn: Turn,
    /// Calls that are not finished: those that were interrupted, and the present one. Each is finished as it asked,
    /// before the next one. Changed by the thread whose turn it is, while it holds the lock.
    calls: RefCell<VecDeque<Call>>,
    state: Mutex<Option<State>>,
}

struct State {
    stream: Compressor,
    /// Output that was not returned yet.
    output: Vec<u8>,
    reported: Reported,
}

/// The input of a call, and how much of it was read.
struct Call {
    input: Option<Kept>,
    read: usize,
    mode: Mode,
    /// Whether only its output remains to be returned.
    is_done: bool,
}

impl Call {
    fn unread(&self, ruby: &Ruby) -> &[u8] {
        self.input.as_ref().map_or(&[], |input| &input.bytes(ruby)[self.read..])
    }
}

impl DataTypeFunctions for Compress {
    fn mark(&self, marker: &gc::Marker) {
        self.turn.mark(marker);
        if let Ok(calls) = self.calls.try_borrow() {
            calls.iter().filter_map(|call| call.input.as_ref()).for_each(|input| input.mark(marker));
        }
    }

    fn size(&self) -> usize {
        let state = self.state.try_lock().ok();
        let held = state.as_ref().and_then(|state| state.as_ref());
        size_of::<Self>() + held.map_or(0, |state| state.reported.bytes() + state.output.capacity())
    }
}

impl Compress {
    fn start(
        ruby: &Ruby,
        this: &Self,
        level: Value,
        dict: Value,
        parameters: Option<RHash>,
    ) -> Result<(), Error> {
        let settings = arguments::settings(ruby, level, dict, parameters)?;
        let weight = settings.dictionary.as_ref().map_or(0, |(dictionary, _)| dictionary.content().len());
        let stream = Region::new(&ZSTD_COMPRESS, weight).run(ruby, |_| Compressor::new(&settings))?;
        let mut state = match this.state.try_lock() {
            Ok(state) if state.is_none() => state,
            _ => return Err(Error::new(ruby.exception_type_error(), "the stream is initialized already")),
        };
        this.turn.prepare(ruby);
        *state = Some(State { stream, output: Vec::new(), reported: Reported::default() });
        Ok(())
    }

    /// Compresses `data` and returns the output that is complete so far.
    fn compress(ruby: &Ruby, this: &Self, data: RString) -> Result<RString, Error> {
        this.run(ruby, Mode::Continue, true, || this.add(data))
    }

    /// Compresses the Strings, keeps the output, and returns how many bytes they have.
    fn write(ruby: &Ruby, this: &Self, strings: &[Value]) -> Result<usize, Error> {
        let data = match strings {
            [string] => RString::try_convert(*string)?,
            _ => joined(ruby, strings)?,
        };
        this.run(ruby, Mode::Continue, false, || this.add(data))?;
        Ok(data.len())
    }

    fn flush(ruby: &Ruby, this: &Self) -> Result<RString, Error> {
        this.run(ruby, Mode::FlushBlock, true, || Ok(()))
    }

    fn finish(ruby: &Ruby, this: &Self) -> Result<RString, Error> {
        this.run(ruby, Mode::FlushFrame, true, || Ok(()))
    }

    /// Writes out all input, and the end of the frame, to the output that is kept.
    fn flush_to_self(ruby: &Ruby, this: &Self, ends: bool) -> Result<(), Error> {
        let mode = if ends { Mode::FlushFrame } else { Mode::FlushBlock };
        this.run(ruby, mode, false, || Ok(())).map(drop)
    }

    /// The output that is complete so far.
    fn taken(ruby: &Ruby, this: &Self) -> Result<RString, Error> {
        this.turn.take(ruby, &this.state, || this.take(ruby))
    }

    /// The number of bytes of output that were not returned yet.
    fn pending(ruby: &Ruby, this: &Self) -> Result<usize, Error> {
        this.turn.take(ruby, &this.state, || this.with_state(ruby, |state| state.output.len()))
    }

    /// Declares the size of the next frame's content.
    fn pledge(ruby: &Ruby, this: &Self, size: Option<u64>) -> Result<(), Error> {
        this.turn.take(ruby, &this.state, || {
            let pledged = if this.calls.borrow().is_empty() {
                this.with_state(ruby, |state| state.stream.pledge(size))?
            } else {
                Err(zstd::Error::new(ErrorKind::Pledge, 0))
            };
            pledged.map_err(|error| error.into_exception(ruby))
        })
    }

    fn with_state<T>(&self, ruby: &Ruby, with: impl FnOnce(&mut State) -> T) -> Result<T, Error> {
        let mut state = state_of(ruby, &self.state)?;
        Ok(with(state.as_mut().expect("it was checked")))
    }

    /// Does what the calls ask for that `add` adds, and before that what interrupted ones have asked for; then returns all
    /// output, or keeps it.
    fn run(
        &self,
        ruby: &Ruby,
        mode: Mode,
        takes: bool,
        add: impl FnOnce() -> Result<(), Error>,
    ) -> Result<RString, Error> {
        self.turn.take(ruby, &self.state, || {
            let before = self.calls.borrow().len();
            add()?;
            self.ask_for(mode, before);
            self.work(ruby)?;
            if takes {
                return self.take(ruby);
            }
            self.calls.borrow_mut().clear();
            Ok(ruby.str_buf_new(0))
        })
    }

    /// Adds a call with input. The share of the String goes where the collector finds it before anything else is made.
    fn add(&self, data: RString) -> Result<(), Error> {
        if !data.is_empty() {
            let input = Some(Kept::share(data)?);
            self.calls.borrow_mut().push_back(Call { input, read: 0, mode: Mode::Continue, is_done: false });
        }
        Ok(())
    }

    /// Adds a call without input, unless one was added to the first `before`, or an interrupted one of this mode is to be
    /// finished.
    fn ask_for(&self, mode: Mode, before: usize) {
        let mut calls = self.calls.borrow_mut();
        if calls.len() == before && calls.back().is_none_or(|last| last.mode != mode) {
            calls.push_back(Call { input: None, read: 0, mode, is_done: false });
        }
    }

    /// Does what all calls have asked for.
    fn work(&self, ruby: &Ruby) -> Result<(), Error> {
        let mut state = state_of(ruby, &self.state)?;
        let Some(State { stream, output, reported }) = &mut *state else { return Ok(()) };
        let mut out = Output::new();
        out.resume(output);
        let calls = self.calls.borrow();
        let first = calls.iter().take_while(|call| call.is_done).count();
        let mut rests: Vec<_> = calls.iter().skip(first).map(|call| (call.unread(ruby), call.mode)).collect();
        let weights = rests.iter().map(|&(rest, mode)| stream.weight(rest.len(), mode));
        let weight = weights.fold(0, usize::saturating_add);
        let (mut at, mut failure) = (0, None);
        // If the work is stopped and called again, it continues from where it was.
        let ended = Region::new(&ZSTD_COMPRESS, weight).run(ruby, |task| {
            while let Some((rest, mode)) = rests.get_mut(at) {
                let ran = stream.run(rest, *mode, &mut out, task);
                if is_stopped(&ran) {
                    return ran;
                }
                failure = ran.err();
                if failure.is_some() {
                    return Ok(());
                }
                at += 1;
            }
            Ok(())
        });
        let left: Vec<_> = rests.iter().map(|(rest, _)| rest.len()).collect();
        drop(calls);
        reported.set(stream.memory());
        if let Some(failure) = failure {
            // What was held back is lost, as in the original.
            self.calls.borrow_mut().clear();
            return ended.and_then(|()| Err(failure.into_exception(ruby)));
        }
        *output = out.into_bytes().into_vec();
        self.note(ruby, first, at, &left);
        ended
    }

    /// Notes what the calls after the first `first` have read: `left` is what remains, and `finished` of them are done.
    /// The last call is kept until its output is returned.
    fn note(&self, ruby: &Ruby, first: usize, finished: usize, left: &[usize]) {
        let mut calls = self.calls.borrow_mut();
        for (call, &left) in calls.iter_mut().skip(first).zip(left) {
            call.read += call.unread(ruby).len() - left;
        }
        let done = first + finished;
        let last = calls.len() - 1;
        if done > last {
            calls[last].is_done = true;
        }
        calls.drain(..done.min(last));
    }

    /// Returns the output. It is forgotten once it was copied: an interrupt of the copy loses nothing.
    fn take(&self, ruby: &Ruby) -> Result<RString, Error> {
        let mut state = state_of(ruby, &self.state)?;
        let Some(state) = &mut *state else { return Ok(ruby.str_buf_new(0)) };
        let packed = build::binary_in_pieces(ruby, &state.output)?;
        drop_aside(std::mem::take(&mut state.output));
        let mut calls = self.calls.borrow_mut();
        calls.retain(|call| !call.is_done);
        Ok(packed)
    }
}

/// The bytes of Strings, one after the other, copied in pieces.
fn joined(ruby: &Ruby, strings: &[Value]) -> Result<RString, Error> {
    let joined = catch(ruby, |gvl| {
        let mut yielder = Yielder::new();
        let written = StringWriter::collect(gvl, |gvl, writer| {
            for &string in Object::all(strings) {
                let string = gvl.coerce_str(string);
                let (mut from, length) = (0, string.length(gvl));
                while from < length {
                    let to = length.min(from + PIECE);
                    let Some(bytes) = string.piece(gvl, from, to) else { break };
                    writer.put(bytes);
                    from = to;
                    gvl.tick(&mut yielder, Yielder::copying(PIECE));
                }
                gvl.tick(&mut yielder, 1);
            }
            true
        });
        written.unwrap_or(Object::NIL)
    })?;
    RString::try_convert(joined)
}
