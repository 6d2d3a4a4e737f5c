"""Logs what keeps the lock for too long: `offlock.lock.watch_lock`."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable

from .._offlock import lock as _native
from ._flight_recorder import WATCH, Alarm, FlightRecorder
from ._obstacle import obstacle
from ._stops_at_exit import StopsAtExit
from ._trace import STACKS

_log = logging.getLogger("offlock.lock")


class LockWatch(StopsAtExit):
    """A watch of the lock, made by `offlock.lock.watch_lock`. Stops at the end of a ``with`` block."""

    def __init__(self, hold: float | None, wait: float | None, interval: float) -> None:
        if not interval >= 0:
            raise ValueError(f"interval={interval} is not a number of seconds")
        self._interval = interval
        self._number = self._left_out = 0
        self._next = 0.0
        self._changing = threading.Lock()
        self._recorder = _record(hold, wait, self._found)
        _watches.add(self)

    @property
    def is_running(self) -> bool:
        """Whether the lock is being watched, by this process."""
        return self._recorder is not None and self._recorder.is_running

    @property
    def number(self) -> int:
        """How many holds and waits were too long, logged or not."""
        return self._number

    def stop(self) -> None:
        """Stop watching. A second call changes nothing.

        If holds and waits have been left out since the last line, a line says how many.
        """
        if self._recorder is not None:
            self._recorder.stop()
        with self._changing:
            left_out, self._left_out = self._left_out, 0
        if left_out:
            _log.warning("%d more left out since the last line", left_out)

    def _found(self, alarm: object) -> None:
        """Log an alarm, unless the last line is too recent. Called by the recorder's threads."""
        with self._changing:
            now = time.monotonic()
            self._number += 1
            if now < self._next:
                self._left_out += 1
                return
            self._next = now + self._interval
            left_out, self._left_out = self._left_out, 0
        if left_out:
            _log.warning("%s (%d more left out before)", alarm, left_out)
        else:
            _log.warning("%s", alarm)

    def _begin_in_child(self) -> None:
        """Count anew in a forked child, where another thread of the parent may have had the mutex."""
        self._changing = threading.Lock()
        self._number = self._left_out = 0

    def __repr__(self) -> str:
        return f"<LockWatch: {'running' if self.is_running else 'stopped'}, {self._number} too long>"


_watches: weakref.WeakSet[LockWatch] = weakref.WeakSet()


def _begin_in_child() -> None:
    for watch in list(_watches):
        watch._begin_in_child()


os.register_at_fork(after_in_child=_begin_in_child)


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
    return LockWatch(hold, wait, interval)


def _record(hold: float | None, wait: float | None, found: Callable[[Alarm], None]) -> FlightRecorder | None:
    """Call `found` for what takes too long; returns None where nothing is recorded."""
    limits = [limit for limit in (hold, wait) if limit is not None]
    if not limits:
        raise ValueError("neither hold nor wait is given")
    if _native.switched_off():
        return None
    if reason := obstacle():
        warnings.warn(f"the lock is not watched: {reason}", RuntimeWarning, stacklevel=4)
        return None
    recorder = FlightRecorder(seconds=1, memory=1 << 20, stacks=min(STACKS, min(limits) / 2))
    try:
        if hold is not None:
            recorder.on_hold(hold, found)
        if wait is not None:
            # The recorder's own threads wait, too, when they have something to tell.
            recorder.on_wait(wait, lambda alarm: found(alarm) if alarm.waiting != WATCH else None)
    except BaseException:
        recorder.stop()
        raise
    return recorder
