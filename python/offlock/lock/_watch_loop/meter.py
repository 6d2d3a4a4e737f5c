"""What both ways of measuring an event loop share."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from ..._offlock import lock as _native
from .callback import UNKNOWN, Callback, current_task, frames, of_code
from .event import Parts, Stack
from .gauges import Gauges, Reading, by_thread

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_MOST_SAMPLES = 100


class Late(NamedTuple):
    """What the loop's thread found."""

    kind: str
    begin: int
    end: int
    parts: Parts
    waited: int  # for the lock, since a little before
    callback: Callback
    stack: Stack


class Meter(ABC):
    """What both ways of measuring share. All but `sample` runs in the loop's thread."""

    is_exact: bool

    def __init__(self, loop: AbstractEventLoop, limit: int, tell: Callable[[Late], None]) -> None:
        self.loop = loop
        self.limit = limit
        self.resolution = min(1_000_000, limit // 50)
        self.gauges: Gauges | None = None
        self.base = Reading(0, 0, 0, 0, 0, 0)
        self.stale = 0
        self.begun = 0  # what runs now, or the beat that is due; 0 for nothing
        self._tell = tell
        self._samples: tuple[int, list[tuple[Stack, Callback]]] = (0, [])

    @abstractmethod
    def begin(self) -> None:
        """Start to measure."""

    @abstractmethod
    def end(self) -> None:
        """Tell of what is late now, and restore everything."""

    @abstractmethod
    def after_fork(self) -> None:
        """Restore everything in a forked child."""

    @abstractmethod
    def is_outside(self, frame: FrameType) -> bool:
        """Whether the frame is of what runs the callbacks."""

    def is_in_its_thread(self) -> bool:
        return self.gauges is not None and self.gauges.ident == threading.get_ident()

    def read(self, now: int) -> Reading:
        """Take a reading, from which the next parts are counted."""
        ident = threading.get_ident()
        gauges = self.gauges
        if gauges is None or gauges.ident != ident:
            if gauges is not None:
                self.release()
            self.gauges = gauges = Gauges()
        by_thread[ident] = gauges
        self.base = gauges.read(now)
        self.stale = now + self.resolution
        return self.base

    def release(self) -> None:
        if gauges := self.gauges:
            if by_thread.get(gauges.ident) is gauges:
                del by_thread[gauges.ident]
            gauges.close()

    def tell(self, kind: str, begin: int, base: Reading, parts: Parts, callback: Callback = UNKNOWN) -> None:
        """Tell of a delay from `begin` to the last reading. `base` is the reading before it."""
        stack: Stack = ()
        key, samples = self._samples
        if key == begin and samples:
            (stack, sampled), _ = Counter(samples).most_common(1)[0]
            callback = callback if callback != UNKNOWN else sampled
        _native.mark_begin(f"late: {callback.function or kind}")
        _native.mark_end()
        end = self.base
        self._tell(Late(kind, begin, end.time, parts, max(0, end.lock - base.lock), callback, stack))

    def sample(self, now: int) -> None:
        """Look where a callback is that takes long already. Runs in the watch's threads."""
        begun, gauges = self.begun, self.gauges
        if not begun or gauges is None or now - begun < self.limit // 2:
            return
        stack, code = frames(gauges.frame(), self.is_outside)
        if code is None:
            return
        task = current_task(self.loop)
        if self.begun != begun:
            return
        if self._samples[0] != begun:
            self._samples = (begun, [])
        if len(self._samples[1]) < _MOST_SAMPLES:
            self._samples[1].append((stack, of_code(code, task.get_name() if task else "")))
