//! Decompression piece by piece.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Mutex;

use magnus::{Class, DataTypeFunctions, Error, Module, RModule, RString, Ruby, TypedData, Value, gc, method};
use offlock_core::Task;
use offlock_core::zstd::{self, Decompressor, ErrorKind, Output, Status};

use super::arguments;
use super::error::is_stopped;
use super::memory::Reported;
use super::turn::{Turn, state_of};
use crate::borrow::Kept;
use crate::build;
use crate::error::IntoException;
use crate::operations::ZSTD_DECOMPRESS;
use crate::region::{Region, drop_aside, without_the_lock};

pub(super) fn define(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("StreamingDecompress", ruby.class_object())?;
    class.define_alloc_func::<Decompress>();
    class.define_private_method("native_start", method!(Decompress::start, 3))?;
    class.define_private_method("native_decompress", method!(Decompress::decompress, 2))?;
    class.define_private_method("native_feed", method!(Decompress::feed, 1))?;
    class.define_private_method("native_read", method!(Decompress::read, 1))?;
    class.define_private_method("native_made", method!(Decompress::made, 0))?;
    class.define_method("decompress_with_pos", method!(Decompress::decompress_with_pos, 1))?;
    class.define_method("finished?", method!(Decompress::is_finished, 0))?;
    class.define_method("needs_input?", method!(Decompress::needs_input, 0))
}

/// A decompressor of any number of frames, with its unread input and the output of an interrupted call.
#[derive(TypedData, Default)]
#[magnus(class = "Offlock::Zstd::StreamingDecompress", free_immediately, mark, size)]
struct Decompress {
    turn: Turn,
    /// Changed by the thread whose turn it is, while it holds the lock.
    inputs: RefCell<VecDeque<Input>>,
    state: Mutex<Option<State>>,
}

struct Input {
    share: Kept,
    read: usize,
}

struct State {
    stream: Decompressor,
    /// Output that was not returned yet.
    output: Vec<u8>,
    status: Status,
    /// Bad data, which is reported once the output before it was returned.
    failure: Option<zstd::Error>,
    /// The number of bytes that were returned, and the most that may be.
    made: usize,
    max_output: usize,
    reported: Reported,
}

/// What a call asks for.
#[derive(Clone, Copy)]
struct Wanted {
    /// The most bytes to return.
    most: usize,
    /// Whether to stop at the end of a frame.
    one_frame: bool,
    /// Whether to return what comes before bad data first.
    before_failure: bool,
}

impl DataTypeFunctions for Decompress {
    fn mark(&self, marker: &gc::Marker) {
        self.turn.mark(marker);
        if let Ok(inputs) = self.inputs.try_borrow() {
            inputs.iter().for_each(|input| input.share.mark(marker));
        }
    }

    fn size(&self) -> usize {
        let state = self.state.try_lock().ok();
        let held = state.as_ref().and_then(|state| state.as_ref());
        size_of::<Self>() + held.map_or(0, |state| state.reported.bytes() + state.output.capacity())
    }
}

impl Decompress {
    fn start(
        ruby: &Ruby,
        this: &Self,
        dict: Value,
        window_log_max: Value,
        max_output: Option<usize>,
    ) -> Result<(), Error> {
        let settings = arguments::decoder_settings(ruby, dict, window_log_max)?;
        let weight = settings.dictionary.as_ref().map_or(0, |(dictionary, _)| dictionary.content().len());
        let stream = Region::new(&ZSTD_DECOMPRESS, weight).run(ruby, |_| Decompressor::new(&settings))?;
        let mut state = match this.state.try_lock() {
            Ok(state) if state.is_none() => state,
            _ => return Err(Error::new(ruby.exception_type_error(), "the stream is initialized already")),
        };
        this.turn.prepare(ruby);
        *state = Some(State {
            stream,
            output: Vec::new(),
            status: Status::More,
            failure: None,
            made: 0,
            max_output: max_output.unwrap_or(usize::MAX),
            reported: Reported::default(),
        });
        Ok(())
    }

    /// Decompresses `data`, and returns at most `most` bytes.
    fn decompress(ruby: &Ruby, this: &Self, data: RString, most: Option<usize>) -> Result<RString, Error> {
        let most = most.unwrap_or(usize::MAX);
        let wanted = Wanted { most, one_frame: false, before_failure: false };
        this.turn.take(ruby, &this.state, || {
            this.add(data)?;
            this.decompressed(ruby, wanted)
        })
    }

    /// Takes input for `read`, and returns how many bytes it has. No input stands for the end of a file.
    fn feed(ruby: &Ruby, this: &Self, data: Option<RString>) -> Result<usize, Error> {
        let Some(data) = data else {
            return Err(Error::new(ruby.exception_eof_error(), "end of file reached"));
        };
        this.turn.take(ruby, &this.state, || this.add(data))?;
        Ok(data.len())
    }

    /// The same as `decompress` for input that was taken before, but bad data raises only in the call after that which
    /// returns what comes before it.
    fn read(ruby: &Ruby, this: &Self, most: usize) -> Result<RString, Error> {
        let wanted = Wanted { most, one_frame: false, before_failure: true };
        this.turn.take(ruby, &this.state, || this.decompressed(ruby, wanted))
    }

    /// The number of bytes that were returned.
    fn made(ruby: &Ruby, this: &Self) -> Result<usize, Error> {
        this.turn.take(ruby, &this.state, || this.with_state(ruby, |state| state.made))
    }

    /// Decompresses `data` to the end of the frame at most. Returns the output, and how much of `data` was read.
    fn decompress_with_pos(ruby: &Ruby, this: &Self, data: RString) -> Result<(RString, usize), Error> {
        let length = data.len();
        let wanted = Wanted { most: usize::MAX, one_frame: true, before_failure: false };
        this.turn.take(ruby, &this.state, || {
            this.add(data)?;
            let plain = this.decompressed(ruby, wanted)?;
            // Those of earlier calls are read first, so the last one is `data`.
            let last = if length > 0 { this.inputs.borrow_mut().pop_back() } else { None };
            let rest = last.map_or(0, |input| input.unread(ruby).len());
            Ok((plain, length - rest))
        })
    }

    fn is_finished(ruby: &Ruby, this: &Self) -> Result<bool, Error> {
        this.turn.take(ruby, &this.state, || {
            let is_read = this.inputs.borrow().is_empty();
            this.with_state(ruby, |state| is_read && state.stream.ended() && state.output.is_empty())
        })
    }

    fn needs_input(ruby: &Ruby, this: &Self) -> Result<bool, Error> {
        this.turn.take(ruby, &this.state, || {
            let is_read = this.inputs.borrow().is_empty();
            this.with_state(ruby, |state| {
                is_read && state.output.is_empty() && state.failure.is_none() && state.status != Status::Full
            })
        })
    }

    fn with_state<T>(&self, ruby: &Ruby, with: impl FnOnce(&mut State) -> T) -> Result<T, Error> {
        let mut state = state_of(ruby, &self.state)?;
        Ok(with(state.as_mut().expect("it was checked")))
    }

    /// Adds input. The share of the String goes where the collector finds it before anything else is made.
    fn add(&self, data: RString) -> Result<(), Error> {
        if !data.is_empty() {
            let share = Kept::share(data)?;
            self.inputs.borrow_mut().push_back(Input { share, read: 0 });
        }
        Ok(())
    }

    fn decompressed(&self, ruby: &Ruby, wanted: Wanted) -> Result<RString, Error> {
        let mut state = state_of(ruby, &self.state)?;
        let Some(state) = &mut *state else { return Ok(ruby.str_buf_new(0)) };
        if state.failure.is_none() {
            self.work(ruby, state, wanted)?;
        }
        if let Some(failure) = &state.failure
            && (!wanted.before_failure || state.output.is_empty())
        {
            let failure = failure.clone();
            if !wanted.before_failure {
                // As in the original, which then begins again.
                (state.failure, state.output, state.status) = (None, Vec::new(), Status::More);
            }
            return Err(failure.into_exception(ruby));
        }
        if state.output.len() > state.max_output - state.made {
            return Err(zstd::Error::new(ErrorKind::Limit, state.stream.total_in()).into_exception(ruby));
        }
        state.take(ruby, wanted.most)
    }

    /// Decompresses the input until there is as much output as is wanted.
    fn work(&self, ruby: &Ruby, state: &mut State, wanted: Wanted) -> Result<(), Error> {
        // One byte more than allowed shows that there is more.
        let allowed = (state.max_output - state.made).saturating_add(1);
        let mut out = Output::new().limited(wanted.most.min(allowed));
        out.resume(&mut state.output);
        let inputs = self.inputs.borrow();
        let mut rests: Vec<_> = inputs.iter().map(|input| input.unread(ruby)).collect();
        let unread: usize = rests.iter().map(|rest| rest.len()).sum();
        // A few bytes can stand for any number.
        let weight = unread.saturating_add(wanted.most.min(1 << 20) / 4);
        let State { stream, status, failure, .. } = state;
        // If the work is stopped and called again, it continues from where it was.
        let ended = Region::new(&ZSTD_DECOMPRESS, weight).run(ruby, |task| {
            let ran = frames(stream, &mut rests, status, &mut out, wanted.one_frame, task);
            if is_stopped(&ran) {
                return ran;
            }
            *failure = ran.err();
            Ok(())
        });
        let left: Vec<_> = rests.iter().map(|rest| rest.len()).collect();
        drop(inputs);
        state.reported.set(state.stream.memory());
        state.output = out.into_bytes().into_vec();
        self.note(ruby, &left, state.failure.is_some());
        ended
    }

    /// Notes what was read: `left` is what remains of each input.
    fn note(&self, ruby: &Ruby, left: &[usize], is_bad: bool) {
        let mut inputs = self.inputs.borrow_mut();
        if is_bad {
            return inputs.clear();
        }
        for (input, &left) in inputs.iter_mut().zip(left) {
            input.read += input.unread(ruby).len() - left;
        }
        while inputs.front().is_some_and(|input| input.unread(ruby).is_empty()) {
            inputs.pop_front();
        }
    }
}

impl Input {
    fn unread(&self, ruby: &Ruby) -> &[u8] {
        &self.share.bytes(ruby)[self.read..]
    }
}

impl State {
    /// Returns at most `most` bytes of the output. They are forgotten once they were copied: an interrupt of the copy
    /// loses nothing.
    fn take(&mut self, ruby: &Ruby, most: usize) -> Result<RString, Error> {
        // The limit of an interrupted call may have been higher.
        let count = self.output.len().min(most);
        let plain = build::binary_in_pieces(ruby, &self.output[..count])?;
        if count == self.output.len() {
            drop_aside(std::mem::take(&mut self.output));
        } else {
            let output = &mut self.output;
            without_the_lock(|| drop(output.drain(..count)));
        }
        self.made += count;
        Ok(plain)
    }
}

/// Decompresses the frames in `rests`, which are advanced past what was read.
fn frames(
    stream: &mut Decompressor,
    rests: &mut [&[u8]],
    status: &mut Status,
    out: &mut Output<'_>,
    one_frame: bool,
    task: &Task<'_>,
) -> Result<(), zstd::Error> {
    let mut none: &[u8] = &[];
    loop {
        let rest = rests.iter_mut().find(|rest| !rest.is_empty());
        if out.left() == 0 {
            // There may be more.
            if rest.is_some() {
                *status = Status::Full;
            }
            return Ok(());
        }
        let rest = match rest {
            Some(rest) => rest,
            // What the library has kept back.
            None if *status == Status::Full => &mut none,
            None => return Ok(()),
        };
        if stream.ended() {
            stream.reset();
        }
        *status = stream.run(rest, out, task)?;
        if *status == Status::End && one_frame {
            return Ok(());
        }
    }
}
