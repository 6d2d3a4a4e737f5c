"""Traces into files and into memory."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .._offlock import lock as _native
from ._about import about_program, thread_names
from ._stops_at_exit import StopsAtExit
from ._summary import Stats, Summary
from ._threads import threads

STACKS = 0.001
"""After how many seconds of waiting for the lock stacks are recorded, by default."""
running_traces: list[Trace] = []
"""The traces that this process records, and those that its parent recorded when it forked."""


class Trace(StopsAtExit):
    """A recording of how all threads use the lock.

    Several traces may run at the same time. A trace that still runs when the program exits is stopped and
    complete. After a kill the file is readable up to the last flush, some milliseconds before. A forked child
    writes nothing to its parent's trace. With ``OFFLOCK_LOCK=off`` in the environment a trace never runs, writes no
    file, and has an empty summary that gives the reason.

    Only its owner can read the file. It contains the program's name, and the program's arguments, which may be
    secret, only with ``arguments=True``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        limit: int | None = None,
        arguments: bool = False,
        stacks: float | None = STACKS,
    ) -> None:
        """Start recording into the file at `path`, or into memory without one.

        Args:
            path: an existing regular file is replaced; a link is refused. If the name has the extension of
                another format (``app.pftrace`` for Perfetto, ``app.gvl.json``, ``app.firefox.json``,
                ``app.speedscope.json``, ``app.json`` for the summary), `stop` writes that format, from a trace that
                is recorded beside it in ``app.offlock``, or ``app-2.offlock`` if that exists, and so on.
            limit: the maximum size of the trace in bytes. Later events are counted in `Stats.lost`.
            arguments: whether to record the program's arguments.
            stacks: record which code held the lock once a thread has waited for it for this many seconds; None
                records none. Where that is not possible, `stacks_obstacle` returns the reason, and the trace has
                none.

        Raises:
            ValueError: `stacks` is negative, or not a number.
            OSError: the file cannot be written.
        """
        self._record(lambda: _native.Recorder(path, about_program(arguments), thread_names(), limit, stacks))

    @classmethod
    def from_environment(cls) -> Trace | None:
        """Start the trace that ``offlock trace`` asked for; None when it asked for none, or its time is over."""
        if "OFFLOCK_TRACE" not in os.environ:
            return None
        running = cls.__new__(cls)
        about = about_program(arguments=bool(os.environ.get("OFFLOCK_TRACE_ARGUMENTS")))
        is_asked_for = running._record(lambda: _native.Recorder.from_environment(about, thread_names()))
        return running if is_asked_for else None

    def _record(self, start: Callable[[], _native.Recorder | None]) -> bool:
        """Record with the recorder that `start` returns; False if it returns none."""
        self._is_off = _native.switched_off() is not None
        recorder = start() if self._is_off else _started_with_names(start)
        if recorder is None:
            return False
        self._recorder = recorder
        self._stats: Stats | None = None
        self._summary: Summary | None = None
        if not self._is_off:
            threads.sample()
            running_traces.append(self)
            atexit.register(self._end)
        return True

    def _end(self) -> None:
        try:
            self.stop()
        except OSError as error:
            print(
                f"offlock: process {os.getpid()}: the trace could not be completed: {error}", file=sys.stderr
            )

    @property
    def is_running(self) -> bool:
        """Whether this process is recording the trace."""
        return self._recorder.is_running

    def stop(self) -> Stats | None:
        """Stop recording and complete the file. A second call changes nothing.

        Returns:
            The numbers of the trace; None in a process that was forked from the one that records, and for a trace
            that is switched off.

        Raises:
            OSError: the end of the file could not be written.
        """
        if self._recorder.is_running:
            try:
                numbers = self._recorder.stop(thread_names())
            finally:
                threads.leave()
                atexit.unregister(self._end)
                if self in running_traces:
                    running_traces.remove(self)
            self._stats = Stats(*numbers) if numbers else None
        return self._stats

    @property
    def summary(self) -> Summary | None:
        """The summary of a stopped trace in memory; None for a trace into a file."""
        if self._summary is None and not self.is_running and (texts := self._recorder.summary()):
            self._summary = Summary(*texts)
        return self._summary

    def __repr__(self) -> str:
        if self._stats is not None:
            return f"<Trace: stopped, {self._stats.events} events>"
        state = "running" if self.is_running else "switched off" if self._is_off else "of another process"
        return f"<Trace: {state}>"


def _started_with_names(start: Callable[[], _native.Recorder | None]) -> _native.Recorder | None:
    """The recorder that `start` returns; threads report their names if there is one."""
    threads.enter()
    recorder = None
    try:
        recorder = start()
    finally:
        if recorder is None:
            threads.leave()
    return recorder


@contextmanager
def trace(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    arguments: bool = False,
    stacks: float | None = STACKS,
) -> Iterator[Trace]:
    """Record the block into the file at `path`. See `Trace` for the arguments."""
    with Trace(path, limit=limit, arguments=arguments, stacks=stacks) as running:
        yield running


def measure(*, stacks: float | None = STACKS) -> Trace:
    """Record a block into memory, for its summary. See `Trace` for the argument::

    with offlock.lock.measure() as measured:
        work()
    print(measured.summary)
    """
    return Trace(stacks=stacks)


def complete_all() -> None:
    """Complete all files, just before the process exits without running its exit handlers.

    The process may exit at any point, so this function takes no Python lock.
    """
    for running in list(running_traces):
        if running.is_running:
            running._recorder.stop([])
