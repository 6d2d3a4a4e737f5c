//! The streaming compressor: zlib-rs behind zlib's interface, with three additions.
//!
//! - A stream of at most 16,000 bytes that is finished before the engine was needed is compressed by
//!   libdeflate, and small inputs are gathered until there is enough to work on (`small.rs`). So an engine
//!   state of 268 KB is set up only for streams that need it.
//! - The level is translated to a faster equivalent level of zlib-rs (`level.rs`). The header is written at
//!   the caller's level first.
//! - Every 64 KB, the next input is sampled for short repeats, and the search is adapted (`policy.rs`,
//!   `short_matches.rs`).

#![allow(unsafe_code)]

use std::ffi::c_int;

use libz_rs_sys as z;

use super::error::{Error, ErrorKind};
use super::level;
use super::policy::{self, Search};
use super::small::{self, Ended};
use super::state::{self, Compressor};
use super::stream::{Config, Flush, Status};
use super::zlib_rs::{INFLATE_SLICE, Raw};
use crate::Task;
use crate::output::Output;

/// The input of one call of the engine: well below a millisecond of work at the faster levels, about a
/// millisecond at level 9.
const DEFLATE_SLICE: usize = 32 << 10;

/// The amount of input after which the data is sampled again.
const NEXT_LOOK: u64 = 64 << 10;

/// A compressor of a stream.
///
/// ```
/// use offlock_core::deflate::{Config, Deflater, Flush, Output};
/// use offlock_core::Task;
///
/// let (mut stream, mut out, task) = (Deflater::new(Config::default())?, Output::new(), Task::new());
/// for mut part in [&b"off "[..], b"the ", b"lock"] {
///     stream.run(&mut part, &mut out, Flush::None, &task)?;
/// }
/// stream.run(&mut &[][..], &mut out, Flush::Finish, &task)?;
/// assert!(stream.ended());
/// # Ok::<_, offlock_core::deflate::Error>(())
/// ```
pub struct Deflater {
    /// The engine's state, made when it is first needed.
    state: Option<Compressor>,
    config: Config,
    /// Small inputs that have not been compressed yet.
    gathered: Vec<u8>,
    /// The final figures of a stream that has ended.
    result: Option<Ended>,
    /// The number of bytes of the header that were written before there was a state.
    header: usize,
    /// Whether the header was written and the engine has been set to its own level.
    begun: bool,
    ended: bool,
    /// The kind of search in use.
    search: Search,
    /// The position in the input at which the search is chosen again.
    next_look: u64,
}

impl Deflater {
    /// A new stream.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if a parameter is out of range.
    pub fn new(config: Config) -> Result<Self, Error> {
        if level::in_header(config.level).is_none() || !state::is_possible(config) {
            return Err(Error::new(ErrorKind::Stream, 0));
        }
        Ok(Self {
            state: None,
            config,
            gathered: Vec::new(),
            result: None,
            header: 0,
            begun: false,
            ended: false,
            search: Search::Usual,
            next_look: 0,
        })
    }

    fn raw(&mut self) -> Result<&mut Raw, Error> {
        let state = match self.state.take() {
            Some(state) => state,
            None => Compressor::take(self.config)?,
        };
        Ok(self.state.insert(state))
    }

    /// Sets the search limits, which the engine forgets at each reset and change of level.
    fn tune(&mut self, engine: level::Streaming) {
        if let (Some([good, lazy, nice, chain]), Some(state)) = (engine.tuned, &mut self.state) {
            // SAFETY: a `Compressor` is initialized; the numbers are search limits, which the engine bounds
            // itself.
            unsafe { z::deflateTune(&mut *state.0, good, lazy, nice, chain) };
        }
    }

    /// Stores a small input, to be compressed together with later ones, and writes what the engine would
    /// write after so little input: the header, the first time. False if the input does not fit or there is
    /// no room for the header. Costs little more than a copy.
    pub fn gather(&mut self, input: &[u8], out: &mut Output<'_>) -> bool {
        let fits = !self.ended
            && (1..=small::PIECE).contains(&input.len())
            && self.gathered.len() + input.len() <= small::GATHERED
            && self.gathered.try_reserve(input.len()).is_ok();
        if !fits || !self.give_header_ahead(out) {
            return false;
        }
        self.gathered.extend_from_slice(input);
        true
    }

    /// Writes the header, if that has not been done and the header is known without the engine. True if
    /// nothing is left to do.
    fn give_header_ahead(&mut self, out: &mut Output<'_>) -> bool {
        if self.begun || self.header > 0 {
            return true;
        }
        // If there is no memory for the header, the engine will find and report that.
        self.state.is_none() && self.give_header(out).unwrap_or(false)
    }

    /// Writes the header if it is known without the engine and fits; returns whether that was so.
    fn give_header(&mut self, out: &mut Output<'_>) -> Result<bool, Error> {
        let known = small::header(self.config);
        let Some(header) = known.filter(|header| header.len() <= out.left()) else { return Ok(false) };
        out.push(&header)?;
        self.header = header.len();
        Ok(true)
    }

    /// The number of stored bytes that have not been compressed.
    pub fn gathered(&self) -> usize {
        self.gathered.len()
    }

    /// Compresses `input`, which is advanced past what was read, and writes as much as `flush` demands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Mem`] and [`ErrorKind::Stopped`].
    pub fn run(
        &mut self,
        input: &mut &[u8],
        out: &mut Output<'_>,
        flush: Flush,
        task: &Task<'_>,
    ) -> Result<Status, Error> {
        if self.ended {
            return Ok(Status::End);
        }
        if flush == Flush::Finish && self.finish_whole(input, out, task)? {
            return Ok(Status::End);
        }
        if !self.gathered.is_empty() {
            let last = input.is_empty();
            let status = self.work_on_gathered(out, if last { flush } else { Flush::None }, task)?;
            if last || status == Status::Full {
                return Ok(status);
            }
        }
        self.work(input, out, flush, task)
    }

    /// Finishes a stream that has received little input with libdeflate; false if that does not apply.
    fn finish_whole(
        &mut self,
        input: &mut &[u8],
        out: &mut Output<'_>,
        task: &Task<'_>,
    ) -> Result<bool, Error> {
        let size = self.gathered.len() + input.len();
        if self.state.is_some() || !small::is_whole(self.config, size, out) {
            return Ok(false);
        }
        self.gathered.try_reserve(input.len()).map_err(|_| Error::new(ErrorKind::Mem, 0))?;
        self.gathered.extend_from_slice(input);
        *input = &[];
        self.result = small::finish(&self.gathered, self.config, self.header, out, task)?;
        if self.result.is_some() {
            self.end();
        }
        Ok(self.ended)
    }

    /// Compresses the stored small inputs; what does not fit into the output stays stored.
    fn work_on_gathered(
        &mut self,
        out: &mut Output<'_>,
        flush: Flush,
        task: &Task<'_>,
    ) -> Result<Status, Error> {
        let mut gathered = std::mem::take(&mut self.gathered);
        let mut rest = &*gathered;
        let status = self.work(&mut rest, out, flush, task);
        let done = gathered.len() - rest.len();
        gathered.drain(..done);
        self.gathered = gathered;
        status
    }

    fn work(
        &mut self,
        input: &mut &[u8],
        out: &mut Output<'_>,
        flush: Flush,
        task: &Task<'_>,
    ) -> Result<Status, Error> {
        if !self.begin(out, task)? {
            return Ok(Status::Full);
        }
        loop {
            task.check()?;
            let read = input.len().min(DEFLATE_SLICE);
            if !self.choose_search(&input[..read], out, task)? {
                return Ok(Status::Full);
            }
            let now = if read == input.len() { flush } else { Flush::None };
            let before = input.len();
            // SAFETY: `step` has set input and output of an initialized stream.
            let engine = |stream: &mut z::z_stream| unsafe { z::deflate(stream, now as c_int) };
            let (code, left) = self.raw()?.step(input, read, out, INFLATE_SLICE, engine)?;
            task.advance((before - input.len()) as u64);
            match code {
                z::Z_STREAM_END => {
                    self.end();
                    return Ok(Status::End);
                }
                z::Z_OK | z::Z_BUF_ERROR if out.left() == 0 => return Ok(Status::Full),
                z::Z_OK if !left || !input.is_empty() => {}
                // The engine had nothing left to do.
                z::Z_OK | z::Z_BUF_ERROR => return Ok(Status::More),
                code => return Err(self.raw()?.failure(code)),
            }
        }
    }

    /// Notes the final figures and keeps the state for the thread's next stream.
    fn end(&mut self) {
        self.ended = true;
        self.gathered = Vec::new();
        if let Some(state) = self.state.take() {
            let z::z_stream { total_in, total_out, adler, data_type, .. } = *state.0;
            self.result = Some(Ended { total_in, total_out, adler: adler as u32, data_type });
            state.keep();
        }
    }

    /// Changes level and strategy. Earlier input is compressed with the old ones.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if a parameter is out of range or the stream has ended with other parameters,
    /// `Buf` if the output has no room for the earlier input, `Mem` and `Stopped`.
    pub fn params(
        &mut self,
        level: i32,
        strategy: i32,
        out: &mut Output<'_>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        let config = Config { level, strategy, ..self.config };
        if self.ended {
            let same = config == self.config;
            return if same { Ok(()) } else { Err(Error::new(ErrorKind::Stream, self.total_in())) };
        }
        if !self.begun && self.gathered.is_empty() && self.header == 0 {
            return self.prepare_header(config);
        }
        let status = self.work_on_gathered(out, Flush::None, task)?;
        if status != Status::Full && self.apply(config, self.search, out, task)? {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Buf, self.total_in()))
        }
    }

    /// Changes the configuration before any input, so that the header will tell of the new level.
    fn prepare_header(&mut self, config: Config) -> Result<(), Error> {
        if level::in_header(config.level).is_none() || !state::is_possible(config) {
            return Err(Error::new(ErrorKind::Stream, 0));
        }
        if let Some(state) = &mut self.state {
            state.prepare_header(config)?;
        }
        self.config = config;
        Ok(())
    }

    /// Writes the header, which states the caller's level, and then switches to the engine's equivalent
    /// level. False if the output reached its limit first.
    fn begin(&mut self, out: &mut Output<'_>, task: &Task<'_>) -> Result<bool, Error> {
        if self.begun {
            return Ok(true);
        }
        let mut again = Output::new();
        // SAFETY: `step` has set input and output of an initialized stream.
        let engine = |stream: &mut z::z_stream| unsafe { z::deflate(stream, z::Z_NO_FLUSH) };
        // The engine's own gzip header states other levels than zlib's does.
        let given = self.header > 0 || self.config.wbits > 15 && self.give_header(out)?;
        let raw = self.raw()?;
        let (code, _) = if given {
            raw.step(&mut &[][..], 0, &mut again, INFLATE_SLICE, engine)?
        } else {
            raw.step(&mut &[][..], 0, out, INFLATE_SLICE, engine)?
        };
        if code != z::Z_BUF_ERROR {
            raw.expect(code)?;
        }
        self.begun = self.apply(self.config, self.search, out, task)?;
        Ok(self.begun)
    }

    /// Samples `input`, the next input, if that is due, and sets the search accordingly. False if the output
    /// reached its limit first.
    fn choose_search(&mut self, input: &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<bool, Error> {
        let at = self.total_in();
        let searches =
            self.config.level != 0 && !matches!(self.config.strategy, z::Z_HUFFMAN_ONLY | z::Z_RLE);
        if at < self.next_look || !searches {
            return Ok(true);
        }
        let Some(search) = policy::search(input) else { return Ok(true) };
        let chosen = search == self.search || self.apply(self.config, search, out, task)?;
        if chosen {
            self.next_look = at + NEXT_LOOK;
        }
        Ok(chosen)
    }

    /// Switches to another configuration; false if the output reached its limit first.
    fn apply(
        &mut self,
        config: Config,
        search: Search,
        out: &mut Output<'_>,
        task: &Task<'_>,
    ) -> Result<bool, Error> {
        let settings = policy::settings(config.level, search).ok_or(Error::new(ErrorKind::Stream, 0))?;
        loop {
            task.check()?;
            // SAFETY: `step` has set the output of an initialized stream; there is no input.
            let engine = |stream: &mut z::z_stream| unsafe {
                z::deflateParams(stream, settings.level, config.strategy)
            };
            let raw = self.raw()?;
            let (code, left) = raw.step(&mut &[][..], 0, out, INFLATE_SLICE, engine)?;
            match code {
                z::Z_BUF_ERROR if out.left() == 0 => return Ok(false),
                z::Z_BUF_ERROR if !left => {}
                code => {
                    raw.expect(code)?;
                    (self.config, self.search) = (config, search);
                    self.tune(settings);
                    return Ok(true);
                }
            }
        }
    }

    /// Sets a preset dictionary, before any input.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if there has been input already; `Mem`.
    pub fn set_dictionary(&mut self, dictionary: &[u8]) -> Result<(), Error> {
        if !self.gathered.is_empty() || self.header > 0 || self.result.is_some() {
            return Err(Error::new(ErrorKind::Stream, 0));
        }
        let raw = self.raw()?;
        // SAFETY: the stream is initialized, the dictionary valid for its length; the engine copies it.
        let code = unsafe {
            z::deflateSetDictionary(
                &mut *raw.0,
                dictionary.as_ptr(),
                dictionary.len().min(u32::MAX as usize) as u32,
            )
        };
        raw.expect(code)
    }

    /// Resets the stream, keeping parameters and memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if the engine's state is inconsistent, which does not happen.
    pub fn reset(&mut self) -> Result<(), Error> {
        (self.begun, self.ended, self.next_look, self.result, self.header) = (false, false, 0, None, 0);
        self.gathered.clear();
        match &mut self.state {
            Some(state) => state.reset(self.config),
            None => Ok(()),
        }
    }

    /// A copy of the stream in its present state.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Mem`].
    pub fn copy(&self) -> Result<Self, Error> {
        let state = self.state.as_ref().map(Compressor::copy).transpose()?;
        Ok(Self { state, gathered: self.gathered.clone(), ..*self })
    }

    /// Whether the stream is complete.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The approximate size of the state in memory, as zlib documents it.
    pub fn memory(&self) -> usize {
        if self.state.is_some() { 268 << 10 } else { 0 }
    }

    /// Bytes read since the beginning.
    pub fn total_in(&self) -> u64 {
        let worked_on = self.figure(|ended| ended.total_in, |stream| stream.total_in, 0);
        worked_on + self.gathered.len() as u64
    }

    /// Bytes written since the beginning.
    pub fn total_out(&self) -> u64 {
        self.figure(|ended| ended.total_out, |stream| stream.total_out, self.header as u64)
    }

    /// The checksum of the uncompressed data so far.
    pub fn adler(&self) -> u32 {
        let initial = small::initial_sum(self.config);
        let sum = self.figure(|ended| ended.adler, |stream| stream.adler as u32, initial);
        small::add_to_sum(self.config, sum, &self.gathered)
    }

    /// zlib's guess of the data type: 0 binary, 1 text, 2 unknown.
    pub fn data_type(&self) -> i32 {
        self.figure(|ended| ended.data_type, |stream| stream.data_type, small::UNKNOWN)
    }

    /// A figure of the stream: from the final figures, from the engine's state, or the initial value.
    fn figure<T>(&self, result: impl Fn(&Ended) -> T, stream: impl Fn(&z::z_stream) -> T, nothing: T) -> T {
        match (&self.result, &self.state) {
            (Some(ended), _) => result(ended),
            (None, Some(state)) => stream(&state.0),
            (None, None) => nothing,
        }
    }
}

impl Drop for Deflater {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            state.keep();
        }
    }
}
