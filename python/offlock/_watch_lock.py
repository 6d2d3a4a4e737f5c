"""Logs what keeps the lock for too long: `offlock.lock.watch_lock`."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

_log = logging.getLogger("offlock.lock")


class _Recorder(Protocol):
    @property
    def is_running(self) -> bool: ...
    def stop(self) -> object: ...


class LockWatch:
    """A watch of the lock, made by `offlock.lock.watch_lock`. Stops at the end of a ``with`` block."""

    def __init__(
        self, interval: float, record: Callable[[Callable[[object], None]], _Recorder | None]
    ) -> None:
        if not interval >= 0:
            raise ValueError(f"interval={interval} is not a number of seconds")
        self._interval = interval
        self._number = self._left_out = 0
        self._next = 0.0
        self._changing = threading.Lock()
        self._recorder = record(self._found)
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

    def __enter__(self) -> LockWatch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<LockWatch: {'running' if self.is_running else 'stopped'}, {self._number} too long>"


_watches: weakref.WeakSet[LockWatch] = weakref.WeakSet()


def _begin_in_child() -> None:
    for watch in list(_watches):
        watch._begin_in_child()


os.register_at_fork(after_in_child=_begin_in_child)
