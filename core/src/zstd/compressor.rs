//! The streaming compressor.
//!
//! The library compresses blocks of up to 128 KB, and cannot be interrupted within one. At the levels up to
//! [`FAST`] a block takes a few milliseconds, so the task is checked between two blocks. Where a block can take
//! longer, each is compressed on a thread of its own ([`Away`]), from a copy of the input: a caller who is interrupted
//! leaves it there, and its output comes with that of a later call.

use super::encoder::{Encoder, Mode, Settings, compress_error};
use super::error::{Error, ErrorKind};
use super::parameters::Parameter;
use crate::away::{Away, NoResult};
use crate::output::Output;
use crate::{Task, memory};

/// The most that the library compresses at once.
pub(super) const BLOCK: usize = 128 << 10;

/// The highest level at which a block of any content takes less than 20 ms.
const FAST: i32 = 9;

/// What takes a moment at any setting.
const LITTLE: usize = 4 << 10;

/// The most bytes that a block of so many becomes, with the headers of a frame.
pub(super) const fn bound(length: usize) -> usize {
    length + (length >> 8) + 128
}

/// A compressor of a stream of any number of frames.
///
/// ```
/// use offlock_core::zstd::{Compressor, Mode, Output, Settings, decompress};
/// use offlock_core::Task;
///
/// let (mut packed, task) = (Output::new(), Task::new());
/// let mut stream = Compressor::new(&Settings::of_level(3))?;
/// stream.run(&mut &b"off the lock"[..], Mode::FlushFrame, &mut packed, &task)?;
///
/// let mut plain = Output::new();
/// decompress(&packed.into_bytes(), &Default::default(), None, &mut plain, &task)?;
/// assert_eq!(&plain.into_bytes()[..], b"off the lock");
/// # Ok::<_, offlock_core::zstd::Error>(())
/// ```
pub struct Compressor {
    engine: Engine,
    pace: Pace,
    /// Whether a frame was begun.
    begun: bool,
    /// Bytes that the library may hold back, because their block is incomplete.
    held: usize,
    last_mode: Mode,
}

enum Engine {
    Here(Encoder),
    /// At work on a thread of its own.
    Away(Away<Done>),
    /// The thread was lost, with the encoder.
    Lost,
}

/// What a block away from the caller has become.
struct Done {
    encoder: Encoder,
    mode: Mode,
    output: Vec<u8>,
    result: Result<(), Error>,
}

/// How long a block can take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// A few milliseconds.
    Fast,
    /// Longer.
    Slow { dictionary: usize },
    /// The library has threads of its own, for which it waits.
    Workers,
}

impl Pace {
    fn of(settings: &Settings) -> Self {
        if settings.value(Parameter::WORKERS).is_some_and(|workers| workers > 0) {
            return Self::Workers;
        }
        let dictionary = settings.dictionary.as_ref().map_or(0, |(dictionary, _)| dictionary.content().len());
        let is_harmless = settings.parameters.iter().all(|(parameter, _)| parameter.is_harmless());
        if is_harmless && settings.level() <= FAST && dictionary <= BLOCK {
            Self::Fast
        } else {
            Self::Slow { dictionary }
        }
    }
}

impl Compressor {
    /// A new stream.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Compress`] if a parameter is out of its bounds, `CompressionDictionary` and `OutOfMemory`.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let engine = Engine::Here(Encoder::new(settings)?);
        Ok(Self { engine, pace: Pace::of(settings), begun: false, held: 0, last_mode: Mode::FlushFrame })
    }

    /// The mode of the last complete call.
    pub fn last_mode(&self) -> Mode {
        self.last_mode
    }

    /// The bytes of memory that its state takes, while it is not at work.
    pub fn memory(&self) -> usize {
        match &self.engine {
            Engine::Here(encoder) => encoder.memory(),
            Engine::Away(_) | Engine::Lost => 0,
        }
    }

    /// About how many bytes at a low level would take as long as a call on `length` bytes.
    pub fn weight(&self, length: usize, mode: Mode) -> usize {
        let is_gathered = mode == Mode::Continue && self.held.saturating_add(length) < BLOCK;
        match self.pace {
            // Bytes that are copied, to be compressed later.
            Pace::Fast if is_gathered && self.begun => length / 64,
            Pace::Fast if self.begun => self.held.saturating_add(length),
            Pace::Fast if mode == Mode::FlushFrame => length,
            // Tables for any size have to be made.
            _ => length.saturating_add(self.held).saturating_add(1 << 20),
        }
    }

    /// Declares the size of the next frame's content; `None` if it is not known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Pledge`] in the middle of a frame.
    pub fn pledge(&mut self, length: Option<u64>) -> Result<(), Error> {
        match &mut self.engine {
            Engine::Here(encoder) => encoder.pledge(length),
            Engine::Away(_) => Err(Error::new(ErrorKind::Pledge, 0)),
            Engine::Lost => Err(Error::new(ErrorKind::Forked, 0)),
        }
    }

    /// Compresses `input`, which is advanced past what was read: past all of it unless there is an error.
    ///
    /// A call that was stopped is continued by the next one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Compress`], after which a new frame begins; `OutOfMemory`, `Stopped` and `Forked`.
    pub fn run(
        &mut self,
        input: &mut &[u8],
        mode: Mode,
        out: &mut Output<'_>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        let ran = self.run_to_end(input, mode, out, task);
        match &ran {
            Ok(()) => self.last_mode = mode,
            Err(error) if error.kind == ErrorKind::Stopped => {}
            Err(_) => self.begin_again(),
        }
        ran
    }

    fn run_to_end(
        &mut self,
        input: &mut &[u8],
        mode: Mode,
        out: &mut Output<'_>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        if self.collect(out, task)? == Some(mode) && input.is_empty() {
            return Ok(());
        }
        if !self.begun && mode == Mode::FlushFrame {
            self.pledge(Some(input.len() as u64))?;
        }
        self.begun = true;
        loop {
            task.check()?;
            let (piece, rest) = input.split_at(input.len().min(BLOCK));
            let mode = if rest.is_empty() { mode } else { Mode::Continue };
            let before = input.len();
            let is_done = if self.goes_away(piece.len(), mode) {
                let piece = memory::copied(piece)?;
                *input = rest;
                self.send_away(piece, mode)?;
                self.collect(out, task)?;
                true
            } else {
                self.step_here(input, piece.len(), mode, out)?
            };
            task.advance((before - input.len()) as u64);
            if is_done && input.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether a call of the library on so many bytes can take long.
    fn goes_away(&self, length: usize, mode: Mode) -> bool {
        match self.pace {
            Pace::Fast => false,
            Pace::Workers => true,
            Pace::Slow { dictionary } => {
                let work = self.held.saturating_add(length).saturating_add(dictionary);
                // The tables of a frame of unknown size are large.
                work > LITTLE || (self.held == 0 && mode != Mode::FlushFrame)
            }
        }
    }

    /// One call of the library; true if it has no output left, and reads no more.
    fn step_here(
        &mut self,
        input: &mut &[u8],
        length: usize,
        mode: Mode,
        out: &mut Output<'_>,
    ) -> Result<bool, Error> {
        let Engine::Here(encoder) = &mut self.engine else { return Err(Error::new(ErrorKind::Forked, 0)) };
        let total = self.held.saturating_add(length);
        let is_gathered = mode == Mode::Continue && total < BLOCK;
        let spare = if is_gathered { out.spare()? } else { out.spare_for(bound(total.min(BLOCK)))? };
        let room = spare.len();
        let step = encoder.step(&input[..length], 0, mode, spare).map_err(compress_error)?;
        // SAFETY: the library has written so many bytes.
        #[allow(unsafe_code)]
        unsafe {
            out.written(step.written);
        }
        *input = &input[step.read..];
        self.held = if mode == Mode::Continue { (self.held + step.read) % BLOCK } else { 0 };
        let is_done = step.left == 0 || (mode == Mode::Continue && step.written < room);
        if is_done && input.is_empty() && mode == Mode::FlushFrame {
            self.begun = false;
        }
        Ok(is_done)
    }

    fn send_away(&mut self, piece: Vec<u8>, mode: Mode) -> Result<(), Error> {
        let Engine::Here(encoder) = std::mem::replace(&mut self.engine, Engine::Lost) else {
            return Err(Error::new(ErrorKind::Forked, 0));
        };
        if encoder.is_forked() {
            return Err(Error::new(ErrorKind::Forked, 0));
        }
        self.held = if mode == Mode::Continue { (self.held + piece.len()) % BLOCK } else { 0 };
        self.engine = Engine::Away(Away::start(move || {
            let mut done = Done { encoder, mode, output: Vec::new(), result: Ok(()) };
            done.result = whole(&mut done.encoder, &piece, mode, &mut done.output);
            done
        }));
        Ok(())
    }

    /// Takes back the encoder, and its output. Returns the mode of the block that it has finished.
    fn collect(&mut self, out: &mut Output<'_>, task: &Task<'_>) -> Result<Option<Mode>, Error> {
        let done = match &self.engine {
            Engine::Here(_) => return Ok(None),
            Engine::Lost => return Err(Error::new(ErrorKind::Forked, 0)),
            Engine::Away(away) => away.wait(task),
        };
        let done = match done {
            Ok(done) => done,
            Err(NoResult::Stopped) => return Err(Error::new(ErrorKind::Stopped, 0)),
            Err(NoResult::Lost) => {
                self.engine = Engine::Lost;
                return Err(Error::new(ErrorKind::Forked, 0));
            }
        };
        self.engine = Engine::Here(done.encoder);
        done.result?;
        out.push(&done.output)?;
        if done.mode == Mode::FlushFrame {
            self.begun = false;
        }
        Ok(Some(done.mode))
    }

    /// After an error: what was held back is lost, as in the original.
    fn begin_again(&mut self) {
        (self.begun, self.held, self.last_mode) = (false, 0, Mode::FlushFrame);
        if let Engine::Here(encoder) = &mut self.engine
            && !encoder.is_forked()
        {
            encoder.reset();
        }
    }
}

/// Compresses all of `piece`.
fn whole(encoder: &mut Encoder, piece: &[u8], mode: Mode, output: &mut Vec<u8>) -> Result<(), Error> {
    let mut read = 0;
    loop {
        memory::reserve(output, bound(piece.len()).min(BLOCK))?;
        let step = encoder.step(piece, read, mode, output.spare_capacity_mut()).map_err(compress_error)?;
        let is_full = step.written == output.capacity() - output.len();
        // SAFETY: the library has written so many bytes.
        #[allow(unsafe_code)]
        unsafe {
            output.set_len(output.len() + step.written);
        }
        read += step.read;
        if read == piece.len() && (step.left == 0 || (mode == Mode::Continue && !is_full)) {
            return Ok(());
        }
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        if let Engine::Here(encoder) = std::mem::replace(&mut self.engine, Engine::Lost) {
            match self.pace {
                // The library waits for its threads.
                Pace::Workers if !encoder.is_forked() => drop(Away::start(move || drop(encoder))),
                _ => encoder.keep(),
            }
        }
    }
}

/// Compresses `input` to one frame.
///
/// # Errors
///
/// As [`Compressor::run`].
pub fn compress(
    mut input: &[u8],
    settings: &Settings,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<(), Error> {
    if Pace::of(settings) != Pace::Fast {
        return Compressor::new(settings)?.run(&mut input, Mode::FlushFrame, out, task);
    }
    let mut encoder = Encoder::new(settings)?;
    let ended = in_place(&mut encoder, input, out, task);
    encoder.keep();
    ended
}

/// Compresses `input` without copying it first.
fn in_place(encoder: &mut Encoder, input: &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<(), Error> {
    encoder.keep_input_in_place()?;
    encoder.pledge(Some(input.len() as u64))?;
    let mut read = 0;
    loop {
        task.check()?;
        let end = input.len().min(read + BLOCK);
        let mode = if end == input.len() { Mode::FlushFrame } else { Mode::Continue };
        let spare = out.spare_for(bound(end - read))?;
        let step = encoder.step(&input[..end], read, mode, spare).map_err(compress_error)?;
        // SAFETY: the library has written so many bytes.
        #[allow(unsafe_code)]
        unsafe {
            out.written(step.written);
        }
        read += step.read;
        task.advance(step.read as u64);
        if read == input.len() && mode == Mode::FlushFrame && step.left == 0 {
            return Ok(());
        }
    }
}
