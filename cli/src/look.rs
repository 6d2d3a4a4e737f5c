//! How text looks on a stream: as wide as its terminal, and in colours if it is one and nothing says otherwise.

use std::os::fd::AsFd;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use offlock_core::trace::Look;

/// The look for a stream. `NO_COLOR`, `CLICOLOR` and `TERM=dumb` are honoured. Where the width is unknown,
/// because the stream is no terminal, `COLUMNS` says it.
pub(crate) fn of(stream: &(impl RawStream + AsFd)) -> Look {
    let width = terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = width.filter(|width| *width > 0).or_else(columns);
    let colored = AutoStream::choice(stream) != ColorChoice::Never;
    Look { width: width.unwrap_or(Look::default().width), colored }
}
