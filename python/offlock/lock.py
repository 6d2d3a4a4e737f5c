"""See CPython's lock: who holds it, who waits for it, for how long and behind whom.

Record a file for ``offlock summary`` and ``offlock report``::

    with offlock.lock.trace("app.trace"):
        serve()

Or keep live numbers in production::

    offlock.lock.GlobalTimer.enable()
    ...
    statsd.gauge("lock.waited_ns", offlock.lock.GlobalTimer.monotonic_time())

Recording is exact: every time a thread asks for, gets or gives up the lock, from an ordinary extension
module. That needs CPython 3.11 to 3.14 with a GIL on Linux. Elsewhere `obstacle` says what is missing; a
trace is then an estimate from samples, and labelled as one wherever it is shown, and live numbers stay zero.
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
from typing import Any, ClassVar, cast

from ._offlock import lock as _native

__all__ = [
    "GlobalTimer",
    "LocalTimer",
    "Stats",
    "Summary",
    "Trace",
    "WaitingThreads",
    "mark",
    "measure",
    "obstacle",
    "start",
    "stop",
    "trace",
]


def obstacle() -> str | None:
    """Why the lock cannot be watched in this process, as a sentence; None when it can.

    With ``OFFLOCK_FEED=samples`` in the environment it never is: traces are estimates then.
    """
    return _native.obstacle()


@dataclass(frozen=True)
class Stats:
    """How a trace went.

    Attributes:
        events: the number of events recorded.
        lost: the number of events missing, because threads were faster than the writer for longer than
            the buffers last, or because the trace reached its limit.
        bytes: the size of the trace.
    """

    events: int
    lost: int
    bytes: int


class Summary:
    """What a trace amounts to: times per thread, who kept whom waiting, findings."""

    def __init__(self, text: str, json_text: str) -> None:
        self._text = text
        self._json = json_text

    def to_dict(self) -> dict[str, Any]:
        """All numbers, times in nanoseconds; the keys are those of ``offlock export --format json``."""
        return cast(dict[str, Any], json.loads(self._json))

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return self._json

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        numbers = self.to_dict()
        counts = (f"{len(numbers[kind])} {kind}" for kind in ("threads", "locks", "findings"))
        return f"<Summary: {numbers['length'] / 1e9:.3g} s, {numbers['events']} events, {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        tables, title, findings = self._text.partition("\nFindings\n")
        return (
            f'<pre style="overflow-x: auto; white-space: pre">{html.escape(tables)}</pre>'
            f'<pre style="white-space: pre-wrap">{html.escape(title.strip() + chr(10) + findings)}</pre>'
        )


class Trace:
    """A recording of what all threads do with the lock.

    Several may run at the same time. A trace that runs when the program ends is stopped and complete; after
    a kill the file can be read up to the last flush, some milliseconds before. A forked child writes
    nothing to its parent's trace.

    The file can be read by its owner only. It tells the program's name; its arguments, which may be secret,
    only if that is asked for.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        limit: int | None = None,
        arguments: bool = False,
    ) -> None:
        """Start recording into the file at `path`, or into memory without one.

        Args:
            path: a regular file that is there is replaced, a link refused. A name that stands for another
                tool's format (``app.pftrace``, for Perfetto, ``app.gvl.json``, ``app.firefox.json``,
                ``app.json`` for the summary) gets that at the end, from a trace beside it (``app.offlock``, or
                ``app-2.offlock`` where that is there, and so on).
            limit: the most bytes to write; what comes after is counted in `Stats.lost`.
            arguments: whether to keep the program's arguments.

        Raises:
            OSError: the file cannot be written.
        """
        self._record(lambda: _native.Recorder(path, _about(arguments), _thread_names(), limit))

    @classmethod
    def from_environment(cls) -> Trace | None:
        """Start the trace that ``offlock trace`` asked for; None when the program was started otherwise."""
        if "OFFLOCK_TRACE" not in os.environ:
            return None
        running = cls.__new__(cls)
        about = _about(arguments=bool(os.environ.get("OFFLOCK_TRACE_ARGUMENTS")))
        running._record(lambda: _native.Recorder.from_environment(about, _thread_names()))
        return running

    def _record(self, start: Callable[[], _native.Recorder | None]) -> None:
        _threads.enter()
        try:
            recorder = start()
            if recorder is None:
                raise RuntimeError("OFFLOCK_TRACE names no trace")
        except BaseException:
            _threads.leave()
            raise
        _threads.sample()
        self._recorder = recorder
        self._stats: Stats | None = None
        self._summary: Summary | None = None
        _running.append(self)
        atexit.register(self.stop)

    @property
    def is_running(self) -> bool:
        """Whether this process is recording it."""
        return self._recorder.is_running

    def stop(self) -> Stats | None:
        """Stop recording and complete the file. A second call changes nothing.

        Returns:
            How the trace went; None in a process that was forked from the one that records.

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
        """What a stopped trace into memory amounts to; None for one into a file."""
        if self._summary is None and not self.is_running and (texts := self._recorder.summary()):
            self._summary = Summary(*texts)
        return self._summary

    def __repr__(self) -> str:
        if self._stats is not None:
            return f"<Trace: stopped, {self._stats.events} events>"
        return f"<Trace: {'running' if self.is_running else 'of another process'}>"

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


_running: list[Trace] = []
"""The traces that this process records, and those that its parent did."""


def _complete_all() -> None:
    """Complete all files, just before the process leaves without running its exit handlers.

    It may do so at any point: no lock of Python's is taken.
    """
    for running in list(_running):
        if running.is_running:
            running._recorder.stop([])


@contextmanager
def trace(
    path: str | os.PathLike[str], *, limit: int | None = None, arguments: bool = False
) -> Iterator[Trace]:
    """Record what happens in the block into the file at `path`. See `Trace`."""
    with Trace(path, limit=limit, arguments=arguments) as running:
        yield running


def measure() -> Trace:
    """Record a block to look at its summary::

    with offlock.lock.measure() as measured:
        work()
    print(measured.summary)
    """
    return Trace()


_started: Trace | None = None
_starting = threading.RLock()
_has_turn = False


@contextmanager
def _turn() -> Iterator[bool]:
    """One thread at a time. A signal handler that interrupts its own thread's turn gets False."""
    global _has_turn
    with _starting:
        if _has_turn:
            yield False
            return
        _has_turn = True
        try:
            yield True
        finally:
            _has_turn = False


def start(path: str | os.PathLike[str], *, limit: int | None = None, arguments: bool = False) -> bool:
    """Start the process's own trace, from any thread or a signal handler, until `stop`. See `Trace`.

    Returns:
        False, and nothing changes, when it is running already, or when a signal handler interrupts this very
        function or `stop`.
    """
    global _started
    with _turn() as is_ours:
        if not is_ours or (_started is not None and _started.is_running):
            return False
        _started = Trace(path, limit=limit, arguments=arguments)
        return True


def stop() -> Stats | None:
    """Stop what `start` started, from any thread or a signal handler.

    Returns:
        How the trace went; None when nothing was running, or when a signal handler interrupts this very function or
        `start`.
    """
    global _started
    with _turn() as is_ours:
        if not is_ours:
            return None
        running, _started = _started, None
        return running.stop() if running else None


class mark(ContextDecorator):
    """Name what the calling thread does in a block, or in each call of a decorated function, for the report.

    Costs next to nothing while no trace is running.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> mark:
        _native.mark_begin(self.name)
        return self

    def __exit__(self, *_: object) -> None:
        _native.mark_end()


class _Metric:
    """What the three kinds of live numbers have in common."""

    _name: ClassVar[str]

    @classmethod
    def enable(cls) -> None:
        """Start measuring. Where the lock cannot be watched the numbers stay zero, as a `RuntimeWarning` says."""
        if _native.is_enabled(cls._name):
            return
        if reason := _native.enable(cls._name):
            warnings.warn(f"the numbers of {cls.__name__} stay zero: {reason}", RuntimeWarning, stacklevel=2)

    @classmethod
    def disable(cls) -> None:
        """Stop measuring; the numbers stay."""
        _native.disable(cls._name)

    @classmethod
    def enabled(cls) -> bool:
        """Whether it is being measured."""
        return _native.is_enabled(cls._name)


class GlobalTimer(_Metric):
    """How long all threads together have waited for the lock. Reading never blocks."""

    _name = "global"

    @staticmethod
    def monotonic_time() -> int:
        """Nanoseconds waited since the last `reset`, in waits that are over."""
        return _native.global_numbers()[0]

    @staticmethod
    def acquisitions() -> int:
        """How often a thread got the lock since the last `reset`."""
        return _native.global_numbers()[1]

    @staticmethod
    def histogram() -> list[tuple[int, int]]:
        """Pairs of a duration in ns (at most 1/32 off) and how many waits took that long, shortest first."""
        return _native.waits()

    @staticmethod
    def reset() -> None:
        """Set the numbers back to zero."""
        _native.reset_global()


class LocalTimer(_Metric):
    """How long one thread has waited for the lock: the calling one or the given one. Reading never blocks."""

    _name = "local"

    def __init__(self, thread: threading.Thread | None = None) -> None:
        """Look at `thread`, which has started; at the calling one when None."""
        self._native_id = _native.native_id() if thread is None else _native_id_of(thread) or 0

    def monotonic_time(self) -> int:
        """Nanoseconds the thread has waited since the last `reset`, in waits that are over."""
        return _native.local_numbers(self._native_id)[0]

    def acquisitions(self) -> int:
        """How often the thread got the lock since the last `reset`."""
        return _native.local_numbers(self._native_id)[1]

    def releases(self) -> int:
        """How often the thread gave up the lock since the last `reset`."""
        return _native.local_numbers(self._native_id)[2]

    def histogram(self) -> list[tuple[int, int]]:
        """Pairs of a duration in ns (at most 1/32 off) and how many waits took that long, shortest first."""
        return _native.waits(self._native_id)

    def reset(self) -> None:
        """Set the thread's numbers back to zero."""
        _native.reset_local(self._native_id)


class WaitingThreads(_Metric):
    """How many threads wait for the lock at this moment. Reading never blocks."""

    _name = "waiting"

    @staticmethod
    def count() -> int:
        """The number of threads that wait, or that waited when `disable` was called."""
        return _native.waiting()

    @staticmethod
    def reset() -> None:
        """Set the number back to zero, and count from there. `enable` does that, too."""
        _native.reset_waiting()


def _native_id_of(thread: threading.Thread) -> int | None:
    """What stands for a thread in a program that eventlet or gevent has patched may have no such number."""
    return getattr(thread, "native_id", None)


def _program(arguments: Sequence[str]) -> list[str]:
    """The interpreter and what it runs, without what may be secret: its arguments, and code after ``-c``."""
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
    """Native ids and names; a forked child's main thread may still bear its parent's id."""
    own = threading.current_thread()
    names = {_native.native_id(): own.name}
    for other in threading.enumerate():
        if other is not own and (native_id := _native_id_of(other)):
            names.setdefault(native_id, other.name)  # green threads share a native one
    return list(names.items())


class _Sampler:
    """The thread that estimates who holds the lock, where that cannot be watched."""

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

    def ends(self, native_id: int) -> None:
        """The calling thread, which has this id, does nothing more."""
        self._ended[native_id] = time.thread_time_ns()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


class _Threads:
    """While a trace runs: tells the recorder the names of threads that come and go, and of collections."""

    def __init__(self) -> None:
        self._traces = 0
        self._sampler: _Sampler | None = None
        self._changing = threading.RLock()
        self._bootstrap: Callable[[threading.Thread], Any] | None = None
        self._bearers: set[int] = set()
        os.register_at_fork(after_in_child=self._forget)

    def enter(self) -> None:
        with self._changing:
            self._traces += 1
            if self._traces == 1:
                gc.callbacks.append(_native.on_gc)
                self._wrap_bootstrap()

    def sample(self) -> None:
        """A trace has begun: sees to it that somebody samples, if need be."""
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
        """In a forked child no trace runs."""
        global _starting, _has_turn
        self._changing, _starting, _has_turn = threading.RLock(), threading.RLock(), False
        self._traces = 0
        self._sampler = None
        self._end()

    def _wrap_bootstrap(self) -> None:
        """A thread's name is known to the recorder from before its first line, and as it was at its end."""
        if self._bootstrap is not None:
            return
        self._bootstrap = bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
        self._bearers = {native_id for native_id, _ in _thread_names()}

        def named(thread: threading.Thread) -> None:
            native_id = _native.native_id()
            if native_id in self._bearers:  # a green thread, on a native one that has a name
                bootstrap(thread)
                return
            self._bearers.add(native_id)
            _native.name_thread(native_id, thread.name)
            try:
                bootstrap(thread)
            finally:
                self._bearers.discard(native_id)
                _native.name_thread(native_id, thread.name)
                if sampler := self._sampler:
                    sampler.ends(native_id)

        threading.Thread._bootstrap_inner = named  # type: ignore[attr-defined]


_threads = _Threads()
