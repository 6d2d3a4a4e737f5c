"""What a thread has used up: time, processor, waits for the lock, garbage collection, delays by the system."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from types import FrameType
from typing import NamedTuple

from ..._offlock import lock as _native
from .._mutex import Mutex
from .event import Parts

clock = time.monotonic_ns
changing = Mutex()
"""Held while a watch begins or ends."""
by_thread: dict[int, Gauges] = {}
"""The gauges of the loops' threads."""


class Reading(NamedTuple):
    """What a thread has used up to a time, in ns."""

    time: int
    processor: int
    lock: int
    delay: int
    gc: int
    gc_processor: int


class Gauges:
    """The numbers that the interpreter and the system keep of the calling thread."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self.name = threading.current_thread().name
        self._native_id = threading.get_native_id()
        self._number = _native.thread_number()
        self._collected = self._collected_processor = 0
        self._collection: tuple[int, int, int] | None = None
        self._schedstat = -1
        with contextlib.suppress(OSError):  # Linux only, and not in every kernel
            self._schedstat = os.open(
                f"/proc/self/task/{self._native_id}/schedstat", os.O_RDONLY | os.O_CLOEXEC
            )

    def read(self, now: int) -> Reading:
        lock = _native.local_numbers(self._native_id)[0]
        return Reading(
            now, time.thread_time_ns(), lock, self._delay(), self._collected, self._collected_processor
        )

    def frame(self) -> FrameType | None:
        """What the thread executes; called by another thread."""
        return _native.frame_of(self._number)

    def _delay(self) -> int:
        """For how long the thread could have run, but had no processor."""
        if self._schedstat < 0:
            return 0
        try:
            return int(os.pread(self._schedstat, 80, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return 0

    def collection_begins(self) -> None:
        lock = _native.local_numbers(self._native_id)[0]
        self._collection = (clock(), time.thread_time_ns(), lock)

    def collection_ends(self) -> None:
        if self._collection is None:
            return
        begun, processor, lock = self._collection
        self._collection = None
        waited = max(0, _native.local_numbers(self._native_id)[0] - lock)
        self._collected += max(0, clock() - begun - waited)
        self._collected_processor += time.thread_time_ns() - processor

    def close(self) -> None:
        descriptor, self._schedstat = self._schedstat, -1
        if descriptor >= 0:
            os.close(descriptor)


def split(base: Reading, end: Reading, length: int) -> Parts:
    """Divides so many ns before `end` into parts.

    `base` may be a little older than that, so each part is limited by what is left.
    """
    lock = min(length, max(0, end.lock - base.lock))
    collected = min(length - lock, end.gc - base.gc)
    processor = end.processor - base.processor - (end.gc_processor - base.gc_processor)
    computed = min(length - lock - collected, max(0, processor))
    left = length - lock - collected - computed
    not_run = min(left, max(0, end.delay - base.delay))
    return Parts(computed, left - not_run, collected, lock, not_run)


def _on_gc(phase: str, _info: dict[str, int]) -> None:
    if gauges := by_thread.get(threading.get_ident()):
        if phase == "start":
            gauges.collection_begins()
        else:
            gauges.collection_ends()


class Sources:
    """What all watches share: the metric of waits, and the times of garbage collections."""

    def __init__(self) -> None:
        self._users = 0
        self._has_enabled = False

    def enter(self) -> None:
        with changing.lock:
            self._users += 1
            if self._users == 1:
                gc.callbacks.append(_on_gc)
                if not _native.is_enabled("local"):
                    self._has_enabled = _native.enable("local") is None

    def leave(self) -> None:
        with changing.lock:
            self._users -= 1
            if self._users == 0:
                self.end()

    def end(self) -> None:
        self._users = 0
        if _on_gc in gc.callbacks:
            gc.callbacks.remove(_on_gc)
        if self._has_enabled:
            self._has_enabled = False
            _native.disable("local")


sources = Sources()
