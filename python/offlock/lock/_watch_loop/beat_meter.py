"""Measures a loop of any kind, such as uvloop's, by a timer that it runs in short intervals."""

from __future__ import annotations

import contextlib
import sys
from types import FrameType
from typing import Any

from .callback import current_task, running_loop
from .gauges import clock, split
from .meter import Meter


def _caller_of(task: Any) -> FrameType | None:
    """Return the frame that called this step of a task, which is what runs the loop."""
    frame = getattr(task.get_coro(), "cr_frame", None) if task is not None else None
    return frame.f_back if frame is not None else None


class BeatMeter(Meter):
    """Measures a loop of any kind by a timer that it runs in short intervals."""

    is_exact = False

    def begin(self) -> None:
        self._is_over = False
        self._interval = max(0.002, self.limit / 4e9)
        self._timer: Any = None
        self._outside = 0
        if running_loop() is self.loop:
            self._outside = id(_caller_of(current_task(self.loop)))
            self._schedule()
            self.loop.call_soon(self._learn)
        else:
            self.loop.call_soon_threadsafe(self._start)

    def end(self) -> None:
        if self.begun and self.is_in_its_thread():
            self._look(clock())
        self.after_fork()
        if (timer := self._timer) is not None:
            if self.is_in_its_thread():
                timer.cancel()
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self.loop.call_soon_threadsafe(timer.cancel)

    def after_fork(self) -> None:
        self._is_over, self.begun = True, 0

    def is_outside(self, frame: FrameType) -> bool:
        return id(frame) == self._outside

    def _start(self) -> None:
        self._outside = id(sys._getframe(1))
        self._schedule()

    def _learn(self) -> None:
        self._outside = id(sys._getframe(1))  # what runs the loop, as there are no frames of C code

    def _schedule(self) -> None:
        if self._is_over:
            return
        now = clock()
        self.read(now)
        self.begun = now + round(self._interval * 1e9)
        self._timer = self.loop.call_later(self._interval, self._beat)

    def _beat(self) -> None:
        if self._is_over:
            return
        self._outside = id(sys._getframe(1))
        self._look(clock())
        self._schedule()

    def _look(self, now: int) -> None:
        begun = self.begun
        if now - begun > self.limit:
            base = self.base
            self.tell("beat", begun, base, split(base, self.read(now), now - begun))
