"""Measures every callback of a loop of asyncio: where it runs them (`Handle._run`) and where it sleeps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from .callback import UNKNOWN, Callback, current_task, described, frames, of_code, of_task, running_loop
from .event import NONE, Parts
from .gauges import changing, clock, split
from .meter import Meter

_watched: dict[Any, CallbackMeter] = {}
"""The watched loops of asyncio."""
_run_codes: set[CodeType] = set()
"""The code of what runs a callback in asyncio, outside of which the stack is not the callback's."""
_original_run: Any = None


class CallbackMeter(Meter):
    """Measures every callback of a loop of asyncio."""

    is_exact = True

    def begin(self) -> None:
        self._woke = 0
        self._woke_base = self.base
        self._told = NONE
        self._first: Callback | None = None
        self._selector: Any = self.loop._selector  # type: ignore[attr-defined]
        self._select = self._selector.select
        if running_loop() is self.loop:
            now = clock()
            self.read(now)
            task = current_task(self.loop)
            self._first = of_task(task) if task else UNKNOWN
            self.begun = now
            self.stale = 0
        _watched[self.loop] = self
        _wrap_run()
        self._wrapped = self._wrap_select()
        self._selector.select = self._wrapped

    def end(self) -> None:
        if self.begun and self.is_in_its_thread():
            self._callback_that_ends_the_watch()
        self._restore()

    def after_fork(self) -> None:
        self._restore()

    def _restore(self) -> None:
        self.limit = sys.maxsize  # for the frames that are still on the stack
        _watched.pop(self.loop, None)
        _unwrap_run()
        if vars(self._selector).get("select") is self._wrapped:
            del self._selector.select

    def is_outside(self, frame: FrameType) -> bool:
        return frame.f_code in _run_codes

    def _callback_that_ends_the_watch(self) -> None:
        now, begun = clock(), self.begun
        self.begun = 0
        if now - begun > self.limit:
            task = current_task(self.loop)
            _, code = frames(sys._getframe(), self.is_outside)
            callback = of_task(task) if task else of_code(code) if code else UNKNOWN
            self._callback_took(begun, now, self._first or callback)

    def refresh(self, now: int) -> None:
        """Take a reading between two callbacks."""
        if self._first is not None:
            self._first_ends(now)
        self.read(now)

    def _first_ends(self, now: int) -> None:
        """The callback that began the watch is over. It was running before, so nothing was told of its end."""
        first, begun = self._first, self.begun
        self._first, self.begun = None, 0
        if first is not None and now - begun > self.limit:
            self._callback_took(begun, now, first)

    def callback_is_late(self, begun: int, ended: int, callback: Any) -> None:
        self._callback_took(begun, ended, described(callback))

    def _callback_took(self, begun: int, ended: int, callback: Callback) -> None:
        base = self.base
        parts = split(base, self.read(ended), ended - begun)
        self._told = Parts(*(told + part for told, part in zip(self._told, parts, strict=True)))
        self.tell("callback", begun, base, parts, callback)

    def _sleeps(self, now: int) -> None:
        """The loop is about to sleep: an iteration is over."""
        took = now - self._woke - sum(self._told)
        if self._woke and took > self.limit:
            base = self._woke_base
            whole = split(base, self.read(now), now - self._woke)
            parts = Parts(*(max(0, part - told) for part, told in zip(whole, self._told, strict=True)))
            self.tell("iteration", now - sum(parts), base, parts)

    def _slept(self, begun: int, ended: int, timeout: float | None) -> None:
        base = self.base
        end = self.read(ended)
        slept = ended - begun
        lock = max(0, end.lock - base.lock)
        known = min(slept, lock + max(0, end.delay - base.delay))
        late = max(known, 0 if timeout is None else slept - round(max(0, timeout) * 1e9))
        if late > self.limit:
            lock = min(late, lock)
            self.tell("wakeup", ended - late, base, Parts(0, 0, 0, lock, late - lock))

    def _wrap_select(self) -> Callable[[float | None], Any]:
        select = self._select

        def watched_select(timeout: float | None = None) -> Any:
            begun = clock()
            if self._first is not None:
                self._first_ends(begun)
            if begun - self._woke > self.limit:
                self._sleeps(begun)
            if begun > self.stale:
                self.read(begun)
            events = select(timeout)
            ended = clock()
            if ended - begun > self.limit:
                self._slept(begun, ended, timeout)
            elif ended > self.stale:
                self.read(ended)
            self._woke = ended
            self._woke_base = self.base
            self._told = NONE
            return events

        return watched_select


def _wrap_run() -> None:
    """Measure the callbacks of watched loops."""
    global _original_run
    from asyncio.events import Handle

    with changing.lock:
        if _original_run is None:
            run = _original_run = Handle._run
            wrapper = _wrapper_of(run)
            _run_codes.update(each.__code__ for each in (run, wrapper) if hasattr(each, "__code__"))
            Handle._run = wrapper  # type: ignore[method-assign]


def _unwrap_run() -> None:
    global _original_run
    from asyncio.events import Handle

    with changing.lock:
        # Another tool may have wrapped the wrapper, which then stays and calls on.
        if not _watched and getattr(Handle._run, "_offlock_wraps", None) is _original_run is not None:
            Handle._run = _original_run  # type: ignore[method-assign]
            _original_run = None


def _wrapper_of(run: Callable[[Any], None]) -> Any:
    watched, now = _watched, clock

    def watched_run(self: Any) -> None:
        meter = watched.get(self._loop)
        if meter is None:
            run(self)
            return
        callback = self._callback
        begun = now()
        if begun > meter.stale:
            meter.refresh(begun)
        meter.begun = begun
        try:
            run(self)
        finally:
            ended = now()
            meter.begun = 0
            if ended - begun > meter.limit:
                meter.callback_is_late(begun, ended, callback)

    watched_run._offlock_wraps = run  # type: ignore[attr-defined]
    return watched_run
