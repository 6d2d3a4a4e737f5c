"""Traces CPython's lock: which thread holds it, which threads wait for it, for how long and for which holder.

Record a file for ``offlock summary`` and ``offlock report``::

    with offlock.lock.trace("app.trace"):
        serve()

Or keep live numbers in production::

    offlock.lock.GlobalTimer.enable()
    ...
    statsd.gauge("lock.waited_ns", offlock.lock.GlobalTimer.monotonic_time())

Recording is exact: the trace has every request, acquisition and release of the lock. That needs CPython 3.11 to
3.15 with a GIL on Linux. Elsewhere `obstacle` returns the reason. A trace is then an estimate from samples, which
all reports label as such, and the live numbers stay zero.

``OFFLOCK_LOCK=off`` (or ``0``, ``no``, ``false``) in the environment switches all of this off: nothing is hooked or
started, and no file is written. Traces and flight recorders can be made as usual, but do not run, and live numbers are
zero.
"""

from __future__ import annotations

import atexit
import gc
import html
import json
import os
import platform
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ContextDecorator, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ._offlock import lock as _native
from ._watch_lock import LockWatch
from ._watch_loop import LateCount, LateEvent, LoopWatch

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = [
    "Alarm",
    "FlightRecorder",
    "GlobalTimer",
    "LateCount",
    "LateEvent",
    "LocalTimer",
    "LockWatch",
    "LoopWatch",
    "Stats",
    "Summary",
    "Trace",
    "WaitingThreads",
    "mark",
    "measure",
    "obstacle",
    "publish",
    "stacks_obstacle",
    "start",
    "stop",
    "trace",
    "unpublish",
    "watch_lock",
    "watch_loop",
]


def obstacle() -> str | None:
    """Returns the reason why the lock cannot be traced exactly in this process; None when it can.

    ``OFFLOCK_FEED=samples`` in the environment makes all traces estimates; with ``OFFLOCK_LOCK=off`` nothing is
    traced at all.
    """
    return _native.obstacle()


def stacks_obstacle() -> str | None:
    """Returns the reason why traces of this process have no stacks; None when they can have them.

    Stacks are read from the interpreter's memory, whose layout is compared with ``sys._getframe`` first.
    """
    return _native.stacks_obstacle()


_STACKS = 0.001
"""After how many seconds of waiting for the lock stacks are recorded, by default."""


@dataclass(frozen=True)
class Stats:
    """The size of a trace, and how much of it is missing.

    Attributes:
        events: the number of events recorded.
        lost: the number of events missing, because threads filled the buffers faster than the writer emptied
            them, or because the trace reached its limit.
        bytes: the size of the trace in bytes.
    """

    events: int
    lost: int
    bytes: int


class Summary:
    """The results of a trace: times per thread, which threads made which others wait, and findings."""

    def __init__(self, text: str, json_text: str) -> None:
        self._text = text
        self._json = json_text

    def to_dict(self) -> dict[str, Any]:
        """Returns all numbers, times in nanoseconds. The keys are those of ``offlock export --format json``."""
        return cast(dict[str, Any], json.loads(self._json))

    def to_json(self) -> str:
        """Returns the contents of `to_dict` as JSON."""
        return self._json

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        numbers = self.to_dict()
        counts = (f"{len(numbers[kind])} {kind}" for kind in ("threads", "locks", "findings"))
        return f"<Summary: {numbers['length'] / 1e9:.3g} s, {numbers['events']} events, {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        return f'<pre style="overflow-x: auto; white-space: pre">{html.escape(self._text)}</pre>'


class Trace:
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
        stacks: float | None = _STACKS,
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
        self._record(lambda: _native.Recorder(path, _about(arguments), _thread_names(), limit, stacks))

    @classmethod
    def from_environment(cls) -> Trace | None:
        """Start the trace that ``offlock trace`` asked for; None when it asked for none, or its time is over."""
        if "OFFLOCK_TRACE" not in os.environ:
            return None
        running = cls.__new__(cls)
        about = _about(arguments=bool(os.environ.get("OFFLOCK_TRACE_ARGUMENTS")))
        is_asked_for = running._record(lambda: _native.Recorder.from_environment(about, _thread_names()))
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
            _threads.sample()
            _running.append(self)
            atexit.register(self.stop)
        return True

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
                numbers = self._recorder.stop(_thread_names())
            finally:
                _threads.leave()
                atexit.unregister(self.stop)
                if self in _running:
                    _running.remove(self)
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

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _started_with_names(start: Callable[[], _native.Recorder | None]) -> _native.Recorder | None:
    """The recorder that `start` returns; threads report their names if there is one."""
    _threads.enter()
    recorder = None
    try:
        recorder = start()
    finally:
        if recorder is None:
            _threads.leave()
    return recorder


@dataclass(frozen=True)
class Alarm:
    """A wait for the lock, or a hold of it, that was too long.

    Attributes:
        holder: the name of the thread that held the lock, of a wait the one that held it longest; empty if that is
            unknown.
        waiting: the name of the thread that waited longest.
        nanoseconds: how long it waited, or the lock was held while it waited, until now.
        is_over: whether that has ended.
        text: all of this in a sentence.
        stack: the holder's stack, innermost call first: function, file and line. Empty if it is unknown.
    """

    holder: str
    waiting: str
    nanoseconds: int
    is_over: bool
    text: str
    stack: tuple[tuple[str, str, int], ...]

    def __str__(self) -> str:
        return self.text


_WATCH = "offlock watch"
"""The name of the threads that call `FlightRecorder.on_wait` and `on_hold` back."""


class FlightRecorder(Trace):
    """A recording of the last seconds in bounded memory, for programs that run for long.

    It writes a trace of these seconds on request, or by itself when a thread waits for the lock for too long::

        recorder = offlock.lock.FlightRecorder(path="/var/tmp/app.offlock", dump_on_wait=0.2)
        recorder.on_hold(0.1, lambda alarm: logging.warning("%s", alarm))

    The dumps are traces like others, for ``offlock summary`` and ``offlock report``. In a forked child the recorder
    starts again, with nothing kept, and with the process id in the names of the files that it writes by itself.

    With ``OFFLOCK_LOCK=off`` in the environment it is made as usual, but does not run: it keeps nothing, `dump` writes
    nothing and returns None, and what `on_wait` and `on_hold` are given is never called.
    """

    def __init__(
        self,
        *,
        seconds: float = 30,
        memory: int = 64 << 20,
        path: str | os.PathLike[str] | None = None,
        dump_on_wait: float | None = None,
        dump_on_hold: float | None = None,
        interval: float = 60,
        most: int = 10,
        arguments: bool = False,
        stacks: float | None = _STACKS,
    ) -> None:
        """Start recording.

        Args:
            seconds: how much of the past to keep.
            memory: the maximum number of bytes that it takes, at least 1 MiB; it keeps less of the past if needed.
            path: where dumps are written that nobody asked for. Existing files stay: ``app.offlock`` is followed by
                ``app-2.offlock`` and so on.
            dump_on_wait: write a dump once a thread has waited for the lock for this many seconds.
            dump_on_hold: write a dump once a thread has held the lock for this many seconds while another one waited.
            interval: the least number of seconds between two such dumps.
            most: the maximum number of such dumps.
            arguments: whether to record the program's arguments.
            stacks: as for `Trace`.

        Raises:
            ValueError: a number is out of range.
            OSError: there is a reason to write dumps but no path, or too little memory.
        """
        self._keep = (float(seconds), memory)
        self._dumps = (dump_on_wait, dump_on_hold, float(interval), most)
        self._path = None if path is None else os.fspath(path)
        self._options = (arguments, stacks)
        self._watches: list[tuple[str, float, Callable[[Alarm], object]]] = []
        self._begin()
        if not self._is_off:
            _recorders.append(self)

    def _begin(self) -> None:
        arguments, stacks = self._options
        dumps = (self._path, *self._dumps)
        self._record(
            lambda: _native.Recorder.keep(_about(arguments), _thread_names(), stacks, self._keep, dumps)
        )

    def _begin_again(self) -> None:
        """Start again in a forked child."""
        if self._path is not None:
            root, extension = os.path.splitext(self._path)
            self._path = f"{root}.{os.getpid()}{extension}"
        watches, self._watches = self._watches, []
        self._begin()
        for watched, seconds, call in watches:
            self._watch(watched, seconds, call)

    def dump(self, path: str | os.PathLike[str]) -> Stats | None:
        """Write the trace of the last seconds to the file at `path`. The recording goes on.

        Returns:
            The numbers of that trace; None if the recorder is stopped or switched off.

        Raises:
            OSError: the file cannot be written. An existing file then stays as it was.
        """
        numbers = self._recorder.dump(os.fspath(path), _thread_names())
        return Stats(*numbers) if numbers else None

    @property
    def memory(self) -> int:
        """The number of bytes that the last seconds take now; 0 once it is stopped, and if it is switched off."""
        return self._recorder.memory or 0

    def on_wait(self, seconds: float, call: Callable[[Alarm], object]) -> None:
        """Call `call` with an `Alarm` soon after a thread has waited for the lock for this many seconds.

        It is called in a thread of its own, once for each such wait, also while the wait goes on. An exception that it
        raises goes to `threading.excepthook` and ends the watch.
        """
        self._watch("wait", seconds, call)

    def on_hold(self, seconds: float, call: Callable[[Alarm], object]) -> None:
        """Call `call` with an `Alarm` soon after a thread has held the lock for this many seconds while another waited.

        As `on_wait`. While the lock is held, the thread that calls needs it, too: it calls as soon as it gets it.
        """
        self._watch("hold", seconds, call)

    def _watch(self, watched: str, seconds: float, call: Callable[[Alarm], object]) -> None:
        if self._is_off:
            return
        watch = self._recorder.watch(watched, seconds)
        if watch is None:
            raise RuntimeError("the flight recorder is stopped")
        self._watches.append((watched, seconds, call))

        def run() -> None:
            while alarm := watch.next():
                call(Alarm(*alarm))

        threading.Thread(target=run, name=_WATCH, daemon=True).start()

    def stop(self) -> Stats | None:
        """Stop recording and forget what was kept. A second call changes nothing.

        Returns:
            The numbers of what was kept; None in a process that was forked from the one that records.
        """
        if self in _recorders:
            _recorders.remove(self)
        return super().stop()

    def __repr__(self) -> str:
        state = "running" if self.is_running else "switched off" if self._is_off else "stopped"
        return f"<FlightRecorder: {state}, {self.memory} bytes>"


class _Live(Trace):
    """Publishes this process, and those that are forked from it; see `publish`."""

    def __init__(self, stacks: float | None) -> None:
        self._stacks = stacks
        self._begin()
        if self.is_running:
            _recorders.append(self)

    def _begin(self) -> None:
        about = _about(arguments=False)
        self._record(lambda: _native.Recorder.publish(about, _thread_names(), self._stacks))

    def _begin_again(self) -> None:
        """Start again in a forked child, which goes on if it cannot be published."""
        try:
            self._begin()
        except OSError as error:
            _warn_unpublished(error)

    def stop(self) -> None:
        """End the recordings of connected clients, and take no more."""
        if self in _recorders:
            _recorders.remove(self)
        super().stop()


def _warn_unpublished(error: OSError) -> None:
    # Not through sys.stderr: another thread may have held its lock when the parent forked.
    os.write(2, f"offlock: process {os.getpid()} is not published: {error}\n".encode(errors="replace"))


_live: _Live | None = None
"""The live traces of this process, or of the one that it was forked from."""


def publish(*, stacks: float | None = _STACKS) -> bool:
    """Publish this process, so that ``offlock record`` can take traces from it while it runs, without root.

    So do ``OFFLOCK_LIVE=1`` in the environment once offlock is imported, and ``offlock attach``. Nothing is recorded until the command
    connects. The socket lies in a folder that only this user can enter, and forked children get one of their own.

    Args:
        stacks: whether traces have stacks: None for none. ``offlock record --stacks`` says from which wait on.

    Returns:
        Whether it published the process: False if it is published already, or with ``OFFLOCK_LOCK=off`` in the
        environment.

    Raises:
        OSError: the socket cannot be made.
    """
    global _live
    if _live is not None and _live.is_running:
        return False
    _live = _Live(stacks)
    return _live.is_running


def unpublish() -> bool:
    """End the recordings of ``offlock record``, and allow no more.

    Returns:
        Whether the process was published.
    """
    global _live
    live, _live = _live, None
    if live is None or not live.is_running:
        return False
    live.stop()
    return True


def _publish_if_requested() -> None:
    """Publish the process if the environment asks for it. A process that cannot be published goes on."""
    if _native.is_live_requested():
        try:
            publish()
        except OSError as error:
            _warn_unpublished(error)


_recorders: list[FlightRecorder | _Live] = []
"""The flight recorders and live traces that run, also in a forked child before they start again."""


def _begin_again() -> None:
    """Start the recorders of a forked child."""
    for recorder in list(_recorders):
        recorder._begin_again()


_running: list[Trace] = []
"""The traces that this process records, and those that its parent recorded when it forked."""


def _complete_all() -> None:
    """Complete all files, just before the process exits without running its exit handlers.

    The process may exit at any point, so this function takes no Python lock.
    """
    for running in list(_running):
        if running.is_running:
            running._recorder.stop([])


@contextmanager
def trace(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    arguments: bool = False,
    stacks: float | None = _STACKS,
) -> Iterator[Trace]:
    """Record the block into the file at `path`. See `Trace` for the arguments."""
    with Trace(path, limit=limit, arguments=arguments, stacks=stacks) as running:
        yield running


def measure(*, stacks: float | None = _STACKS) -> Trace:
    """Record a block into memory, for its summary. See `Trace` for the argument::

    with offlock.lock.measure() as measured:
        work()
    print(measured.summary)
    """
    return Trace(stacks=stacks)


_started: Trace | None = None
_starting = threading.RLock()
_is_changing = False


@contextmanager
def _change_alone() -> Iterator[bool]:
    """Run the block in one thread at a time.

    The value is False in a signal handler that interrupts such a block of its own thread.
    """
    global _is_changing
    with _starting:
        if _is_changing:
            yield False
            return
        _is_changing = True
        try:
            yield True
        finally:
            _is_changing = False


def start(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    arguments: bool = False,
    stacks: float | None = _STACKS,
) -> bool:
    """Start the process's own trace. It runs until `stop`. See `Trace` for the arguments.

    May be called from any thread and from a signal handler.

    Returns:
        True; False, without any change, if the trace is running already, in a signal handler that interrupts this
        function or `stop`, or with ``OFFLOCK_LOCK=off`` in the environment.

    Raises:
        OSError: the file cannot be written.
    """
    global _started
    with _change_alone() as is_alone:
        if not is_alone or (_started is not None and _started.is_running):
            return False
        _started = Trace(path, limit=limit, arguments=arguments, stacks=stacks)
        return _started.is_running


def stop() -> Stats | None:
    """Stop the trace that `start` started.

    May be called from any thread and from a signal handler.

    Returns:
        The numbers of the trace; None if no trace was running, or in a signal handler that interrupts this function
        or `start`.

    Raises:
        OSError: the end of the file could not be written.
    """
    global _started
    with _change_alone() as is_alone:
        if not is_alone:
            return None
        running, _started = _started, None
        return running.stop() if running else None


def _start_or_stop(*_: object) -> None:
    """Start the trace that ``offlock trace`` asked for or, if it is running, stop it: a signal handler."""
    global _started
    with _change_alone() as is_alone:
        if not is_alone:
            return
        running, _started = _started, None
        if running is not None and running.is_running:
            running.stop()
        else:
            _started = Trace.from_environment()


def _dump_kept(*_: object) -> None:
    """Write the last seconds that ``offlock trace --keep`` asked for: a signal handler."""
    for running in list(_running):
        if running.is_running:
            running._recorder.dump_beside(_thread_names())


class mark(ContextDecorator):
    """Name the work of the calling thread in a block, or in each call of a decorated function, for the report.

    Costs almost nothing while no trace is running.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> mark:
        _native.mark_begin(self.name)
        return self

    def __exit__(self, *_: object) -> None:
        _native.mark_end()


def watch_lock(*, hold: float | None = 0.1, wait: float | None = None, interval: float = 1.0) -> LockWatch:
    """Log each hold of the lock, and each wait for it, that takes too long, until `LockWatch.stop`::

        with offlock.lock.watch_lock(hold=0.2):
            serve()

    The logger ``offlock.lock`` gets a warning with the threads, the time so far, and the holder's function, file and
    line, soon after the limit is passed, also while it goes on. While a watch runs, a `FlightRecorder` does, too. A
    forked child watches as well.

    Args:
        hold: after how many seconds a thread has held the lock for too long while another one waited; None for never.
        wait: after how many seconds a thread has waited for it for too long; None for never.
        interval: the least number of seconds between two lines. The next line says how many were left out.

    Where the lock cannot be traced exactly, a `RuntimeWarning` gives the reason, and nothing is watched. With
    ``OFFLOCK_LOCK=off`` in the environment nothing is watched, and nothing said.

    Raises:
        ValueError: a number is out of range, or both `hold` and `wait` are None.
    """
    limits = [limit for limit in (hold, wait) if limit is not None]
    if not limits:
        raise ValueError("neither hold nor wait is given")

    def record(call: Callable[[Alarm], None]) -> FlightRecorder | None:
        if _native.switched_off():
            return None
        if reason := obstacle():
            warnings.warn(f"the lock is not watched: {reason}", RuntimeWarning, stacklevel=4)
            return None
        recorder = FlightRecorder(seconds=1, memory=1 << 20, stacks=min(_STACKS, min(limits) / 2))
        try:
            if hold is not None:
                recorder.on_hold(hold, call)
            if wait is not None:
                # The recorder's own threads wait, too, when they have something to tell.
                recorder.on_wait(wait, lambda alarm: call(alarm) if alarm.waiting != _WATCH else None)
        except BaseException:
            recorder.stop()
            raise
        return recorder

    return LockWatch(interval, record)


def watch_loop(
    threshold: float = 0.05,
    *,
    loop: AbstractEventLoop | None = None,
    on_late: Callable[[LateEvent], object] | None = None,
) -> LoopWatch:
    """Tell why an event loop is late, whenever it is late by more than `threshold` seconds, until `LoopWatch.stop`::

        async def main():
            with offlock.lock.watch_loop():
                await serve()

    Each time the logger ``offlock.lock`` gets a warning, `on_late` is called, `LoopWatch.counts` grows, and a trace
    that runs gets a mark ``late: function`` at the end of the delay. A loop of asyncio is measured callback by
    callback; any other, such as uvloop's, by a timer that it runs four times in `threshold`. While a watch runs, a
    `FlightRecorder` and `LocalTimer` do, too. A forked child watches nothing.

    Args:
        threshold: a number of seconds, at least 0.001.
        loop: the loop to watch, which may run in another thread, or later; without one, the running loop.
        on_late: is called with a `LateEvent` in a thread of the watch's own, some milliseconds after the delay; after
            up to 0.2 s, if the holder of the lock is not known before. An exception that it raises is logged.

    Where the lock cannot be traced exactly, a `RuntimeWarning` gives the reason. Waits for the lock then count as
    blocked. With ``OFFLOCK_LOCK=off`` in the environment nothing is watched.

    Raises:
        RuntimeError: without a loop, none is running; or the loop is being watched already.
        ValueError: `threshold` is out of range.
    """
    return LoopWatch(threshold, loop, on_late, _record_waits)


def _record_waits(seconds: float, call: Callable[[Alarm], object]) -> FlightRecorder | None:
    """Call `call` for each wait for the lock of at least so many seconds; without effect where that is impossible."""
    if reason := obstacle():
        warnings.warn(f"waits for the lock count as blocked: {reason}", RuntimeWarning, stacklevel=4)
        return None
    recorder = FlightRecorder(seconds=1, memory=1 << 20, stacks=seconds / 2)
    recorder.on_wait(seconds, call)
    return recorder


class _Metric:
    """The switch that the three kinds of live numbers share."""

    _name: ClassVar[str]

    @classmethod
    def enable(cls) -> None:
        """Start measuring.

        Where the lock cannot be traced exactly, the numbers stay zero and a `RuntimeWarning` gives the reason. With
        ``OFFLOCK_LOCK=off`` in the environment nothing is measured, and nothing said.
        """
        if _native.is_enabled(cls._name):
            return
        if reason := _native.enable(cls._name):
            warnings.warn(f"the numbers of {cls.__name__} stay zero: {reason}", RuntimeWarning, stacklevel=2)

    @classmethod
    def disable(cls) -> None:
        """Stop measuring. The numbers remain readable."""
        _native.disable(cls._name)

    @classmethod
    def enabled(cls) -> bool:
        """Whether measuring is on."""
        return _native.is_enabled(cls._name)


class GlobalTimer(_Metric):
    """The time that all threads together have waited for the lock. Reading never blocks."""

    _name = "global"

    @staticmethod
    def monotonic_time() -> int:
        """Returns the nanoseconds that threads have waited since the last `reset`, without waits that go on."""
        return _native.global_numbers()[0]

    @staticmethod
    def acquisitions() -> int:
        """Returns how many times a thread has acquired the lock since the last `reset`."""
        return _native.global_numbers()[1]

    @staticmethod
    def histogram() -> list[tuple[int, int]]:
        """Returns pairs of a duration in ns (off by 1/32 at most) and the number of such waits, shortest first."""
        return _native.waits()

    @staticmethod
    def reset() -> None:
        """Set the numbers back to zero."""
        _native.reset_global()


class LocalTimer(_Metric):
    """The time that one thread has waited for the lock. Reading never blocks."""

    _name = "local"

    def __init__(self, thread: threading.Thread | None = None) -> None:
        """Read the numbers of `thread`, which must have started; without one, of the calling thread."""
        self._native_id = _native.native_id() if thread is None else _native_id_of(thread) or 0

    def monotonic_time(self) -> int:
        """Returns the nanoseconds that the thread has waited since the last `reset`, without a wait that goes on."""
        return _native.local_numbers(self._native_id)[0]

    def acquisitions(self) -> int:
        """Returns how many times the thread has acquired the lock since the last `reset`."""
        return _native.local_numbers(self._native_id)[1]

    def releases(self) -> int:
        """Returns how many times the thread has released the lock since the last `reset`."""
        return _native.local_numbers(self._native_id)[2]

    def histogram(self) -> list[tuple[int, int]]:
        """Returns pairs of a duration in ns (off by 1/32 at most) and the number of such waits, shortest first."""
        return _native.waits(self._native_id)

    def reset(self) -> None:
        """Set the thread's numbers back to zero."""
        _native.reset_local(self._native_id)


class WaitingThreads(_Metric):
    """The number of threads that wait for the lock at this moment. Reading never blocks."""

    _name = "waiting"

    @staticmethod
    def count() -> int:
        """Returns the number of threads that wait, or that waited when `disable` was called."""
        return _native.waiting()

    @staticmethod
    def reset() -> None:
        """Set the number back to zero and count from there. `enable` does so, too."""
        _native.reset_waiting()


def _native_id_of(thread: threading.Thread) -> int | None:
    """Returns None for a green thread of eventlet or gevent that has no native id."""
    return getattr(thread, "native_id", None)


def _program(arguments: Sequence[str]) -> list[str]:
    """Returns the interpreter and the name of the program.

    Arguments, and code after ``-c``, may be secret and are left out.
    """
    words = iter(arguments[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
        elif word == "-" or not word.startswith("-"):
            return [arguments[0], word]
        elif not word.startswith("--"):
            for at, letter in enumerate(word[1:], 2):
                if letter == "c":
                    return [arguments[0], "-c"]
                if letter == "m":
                    return [arguments[0], "-m", word[at:] or next(words, "")]
                if letter in "WX":
                    if not word[at:]:
                        next(words, None)
                    break
    return list(arguments[:1])


def _about(arguments: bool) -> list[tuple[str, str]]:
    command = " ".join(sys.orig_argv if arguments else _program(sys.orig_argv))
    return [
        ("language", "python"),
        ("runtime", f"{platform.python_implementation()} {platform.python_version()}"),
        ("command", command),
        ("switch_interval_ns", str(round(sys.getswitchinterval() * 1e9))),
    ]


def _thread_names() -> list[tuple[int, str]]:
    """Returns the native id and name of every thread.

    The main thread of a forked child may still have its parent's `native_id`, so the calling thread's id is asked
    of the system.
    """
    own = threading.current_thread()
    names = {_native.native_id(): own.name}
    for other in threading.enumerate():
        if other is not own and (native_id := _native_id_of(other)):
            names.setdefault(native_id, other.name)  # green threads share a native one
    return list(names.items())


class _Sampler:
    """A thread that estimates from samples which threads hold the lock."""

    _PAUSE = 0.005

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._ended: dict[int, int] = {}
        self._thread = threading.Thread(target=self._run, name="offlock sampler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        has_lock = getattr(sys, "_is_gil_enabled", lambda: True)
        sampler = _native.Sampler(has_lock())
        while not self._stopped.is_set():
            sampler.round(self._PAUSE, self._ended)

    def thread_ends(self, native_id: int) -> None:
        """Record the CPU time of the calling thread, which has this id and is about to end."""
        self._ended[native_id] = time.thread_time_ns()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


class _Threads:
    """Reports the names of threads that start and end, and garbage collections, to the recorder while a trace runs."""

    def __init__(self) -> None:
        self._traces = 0
        self._sampler: _Sampler | None = None
        self._changing = threading.RLock()
        self._bootstrap: Callable[[threading.Thread], Any] | None = None
        self._named: set[int] = set()
        os.register_at_fork(after_in_child=self._forget)

    def enter(self) -> None:
        with self._changing:
            self._traces += 1
            if self._traces == 1:
                gc.callbacks.append(_native.on_gc)
                self._wrap_bootstrap()

    def sample(self) -> None:
        """Start the sampler, if the lock cannot be traced exactly and none runs. Called when a trace has begun."""
        with self._changing:
            if self._sampler is None and _native.obstacle() is not None:
                self._sampler = _Sampler()

    def leave(self) -> None:
        with self._changing:
            self._traces -= 1
            if self._traces == 0:
                sampler, self._sampler = self._sampler, None
                if sampler:
                    sampler.stop()
                self._end()

    def _end(self) -> None:
        if self._traces:  # a signal handler has started another one
            return
        if _native.on_gc in gc.callbacks:
            gc.callbacks.remove(_native.on_gc)
        if self._bootstrap is not None:
            threading.Thread._bootstrap_inner = self._bootstrap  # type: ignore[attr-defined]
            self._bootstrap = None

    def _forget(self) -> None:
        """Reset the state in a forked child, where no trace runs and another thread's locks would stay locked."""
        global _starting, _is_changing
        self._changing, _starting, _is_changing = threading.RLock(), threading.RLock(), False
        self._traces = 0
        self._sampler = None
        self._end()

    def _wrap_bootstrap(self) -> None:
        """Make threads report their names when they start, and again when they end, as the name may have changed."""
        if self._bootstrap is not None:
            return
        self._bootstrap = bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
        self._named = {native_id for native_id, _ in _thread_names()}

        def named(thread: threading.Thread) -> None:
            native_id = _native.native_id()
            if native_id in self._named:  # a green thread: its native thread has a name
                bootstrap(thread)
                return
            self._named.add(native_id)
            _native.name_thread(native_id, thread.name)
            try:
                bootstrap(thread)
            finally:
                self._named.discard(native_id)
                _native.name_thread(native_id, thread.name)
                if sampler := self._sampler:
                    sampler.thread_ends(native_id)

        threading.Thread._bootstrap_inner = named  # type: ignore[attr-defined]


_threads = _Threads()
# After the threads have forgotten the parent's state, which happens in the order of registration.
os.register_at_fork(after_in_child=_begin_again)
