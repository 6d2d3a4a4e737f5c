"""A recording of the last seconds, and alarms while it runs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from .._offlock import lock as _native
from ._about import about_program, thread_names
from ._restart import restarting
from ._summary import Stats
from ._trace import STACKS, Trace

_log = logging.getLogger("offlock.lock")


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


WATCH = "offlock watch"
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
        stacks: float | None = STACKS,
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
        self._watches: list[tuple[str, float, Callable[[Alarm], object], bool]] = []
        self._begin()
        if not self._is_off:
            restarting.append(self)

    def _begin(self) -> None:
        arguments, stacks = self._options
        dumps = (self._path, *self._dumps)
        self._record(
            lambda: _native.Recorder.keep(about_program(arguments), thread_names(), stacks, self._keep, dumps)
        )

    def _begin_again(self) -> None:
        """Start again in a forked child."""
        if self._path is not None:
            root, extension = os.path.splitext(self._path)
            self._path = f"{root}.{os.getpid()}{extension}"
        watches, self._watches = self._watches, []
        self._begin()
        for watch in watches:
            self._watch(*watch)

    def dump(self, path: str | os.PathLike[str]) -> Stats | None:
        """Write the trace of the last seconds to the file at `path`. The recording goes on.

        Returns:
            The numbers of that trace; None if the recorder is stopped or switched off.

        Raises:
            OSError: the file cannot be written. An existing file then stays as it was.
        """
        numbers = self._recorder.dump(os.fspath(path), thread_names())
        return Stats(*numbers) if numbers else None

    @property
    def memory(self) -> int:
        """The number of bytes that the last seconds take now; 0 once it is stopped, and if it is switched off."""
        return self._recorder.memory or 0

    def on_wait(self, seconds: float, call: Callable[[Alarm], object]) -> None:
        """Call `call` with an `Alarm` soon after a thread has waited for the lock for this many seconds.

        It is called in a thread of its own, once for each such wait, also while the wait goes on. An exception that it
        raises is logged by the logger `offlock.lock`.
        """
        self._watch("wait", seconds, call)

    def _on_any_wait(self, seconds: float, call: Callable[[Alarm], object]) -> None:
        """As `on_wait`, also for offlock's own threads."""
        self._watch("wait", seconds, call, own=True)

    def on_hold(self, seconds: float, call: Callable[[Alarm], object]) -> None:
        """Call `call` with an `Alarm` soon after a thread has held the lock for this many seconds while another waited.

        As `on_wait`. While the lock is held, the thread that calls needs it, too: it calls as soon as it gets it.
        """
        self._watch("hold", seconds, call)

    def _watch(
        self, watched: str, seconds: float, call: Callable[[Alarm], object], own: bool = False
    ) -> None:
        if not callable(call):
            raise TypeError(f"what is to be called is not callable: {call!r}")
        if self._is_off:
            return
        watch = self._recorder.watch(watched, seconds, own)
        if watch is None:
            raise RuntimeError("the flight recorder is stopped")
        self._watches.append((watched, seconds, call, own))

        def run() -> None:
            while alarm := watch.next():
                try:
                    call(Alarm(*alarm))
                except Exception:
                    _log.exception("what on_%s was given raised an exception", watched)

        threading.Thread(target=run, name=WATCH, daemon=True).start()

    def stop(self) -> Stats | None:
        """Stop recording and forget what was kept. A second call changes nothing.

        Returns:
            The numbers of what was kept; None in a process that was forked from the one that records.
        """
        if self in restarting:
            restarting.remove(self)
        return super().stop()

    def __repr__(self) -> str:
        state = "running" if self.is_running else "switched off" if self._is_off else "stopped"
        return f"<FlightRecorder: {state}, {self.memory} bytes>"
