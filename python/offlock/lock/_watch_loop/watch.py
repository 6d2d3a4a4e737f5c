"""A watch: its thread samples stacks, finds the holders of the lock, and tells the user."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import queue
import threading
import warnings
from collections import deque
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING

from ..._offlock import lock as _native
from .._flight_recorder import Alarm, FlightRecorder
from .._obstacle import obstacle
from .._restart import restarting
from .._stops_at_exit import StopsAtExit
from .beat_meter import BeatMeter
from .callback_meter import CallbackMeter
from .event import LateCount, LateEvent, Parts
from .gauges import Gauges, Reading, by_thread, changing, clock, sources
from .meter import Late, Meter

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_log = logging.getLogger("offlock.lock")
_DAY = 24 * 60 * 60
_PATIENCE = 200_000_000
"""For how many ns the holder of the lock is waited for: a flight recorder looks every 10 ms, and then needs the lock."""


class LoopWatch(StopsAtExit):
    """A watch of an event loop, made by `offlock.lock.watch_loop`. Stops at the end of a ``with`` block."""

    def __init__(
        self,
        threshold: float,
        loop: AbstractEventLoop | None,
        on_late: Callable[[LateEvent], object] | None,
    ) -> None:
        import asyncio
        from asyncio.base_events import BaseEventLoop

        number: object = threshold
        if not isinstance(number, Real):
            raise TypeError(f"threshold={threshold!r} is not a number of seconds")
        if not 0.001 <= threshold <= _DAY:
            raise ValueError(f"threshold={threshold} is not a number of seconds from 0.001 to {_DAY:,}")
        if not (loop is None or hasattr(loop, "call_soon_threadsafe")):
            raise TypeError(f"loop={loop!r} is not an event loop")
        if on_late is not None and not callable(on_late):
            raise TypeError(f"on_late={on_late!r} cannot be called")
        self._loop = loop = asyncio.get_running_loop() if loop is None else loop
        self._counts = {cause: LateCount() for cause in Parts._fields}
        self._is_running = False
        if _native.switched_off():
            return
        with changing.lock:
            if any(watch._loop is loop for watch in _watches):
                raise RuntimeError("the loop is being watched already")
            _watches.add(self)
        self._limit = round(threshold * 1e9)
        self._on_late = on_late
        self._found: queue.SimpleQueue[Late | None] = queue.SimpleQueue()
        self._alarms: deque[tuple[int, Alarm]] = deque(maxlen=256)
        self._stops: deque[tuple[int, int, int]] = deque(maxlen=64)
        self._is_running = True
        self._recorder: FlightRecorder | None = None
        is_selecting = isinstance(loop, BaseEventLoop) and hasattr(getattr(loop, "_selector", None), "select")
        meter = CallbackMeter if is_selecting else BeatMeter
        self._meter: Meter = meter(loop, self._limit, self._found.put)
        sources.enter()
        self._least = max(self._limit // 5, 1_000_000)
        try:
            self._recorder = _record_waits(self._least / 1e9, self._waited)
            self._meter.begin()
        except BaseException:
            self._forget()
            raise
        self._thread = threading.Thread(target=self._run, name="offlock loop watch", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @property
    def is_running(self) -> bool:
        """Whether the loop is being watched, by this process."""
        return self._is_running

    @property
    def number(self) -> int:
        """How often the loop was late."""
        return sum(count.number for count in self._counts.values())

    @property
    def nanoseconds(self) -> int:
        """By how much the loop was late in all."""
        return sum(count.nanoseconds for count in self._counts.values())

    @property
    def counts(self) -> dict[str, LateCount]:
        """How often and for how long by cause: the keys are those of `LateEvent.cause`."""
        return dict(self._counts)

    def stop(self) -> None:
        """Stop watching, and restore the loop. A second call changes nothing.

        What was found is told before it returns, if that takes no longer than a second.
        """
        with changing.lock:
            is_running, self._is_running = self._is_running, False
        if not is_running:
            return
        atexit.unregister(self.stop)
        self._meter.end()
        self._found.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(1)
        self._forget()

    def _forget(self) -> None:
        self._is_running = False
        if self._recorder is not None:
            self._recorder.stop()
        self._meter.release()
        _watches.discard(self)
        sources.leave()

    def _forget_in_child(self) -> None:
        """Have no effect in a forked child, in which the watch's thread does not exist."""
        self._is_running = False
        atexit.unregister(self.stop)
        self._meter.after_fork()
        self._meter.release()
        if self._recorder is not None:
            self._recorder.stop()

    def __repr__(self) -> str:
        return f"<LoopWatch: {'running' if self._is_running else 'stopped'}, {self.number} late>"

    def _waited(self, alarm: Alarm) -> None:
        now = clock()
        # If a callback has kept the lock, one thread of the watch gets it first: this or the other.
        self._meter.sample(now)
        self._alarms.append((now, alarm))

    def _run(self) -> None:
        """Sample stacks, and tell what was found: the watch's own thread."""
        own = Gauges()
        interval = max(2_000_000, self._limit // 4)
        pending: list[Late] = []
        is_over = False
        while not is_over or pending:
            before = own.read(clock())
            with contextlib.suppress(queue.Empty):
                found = self._found.get(timeout=interval / 1e9)
                is_over = found is None
                if found is not None:
                    pending.append(found)
            now = clock()
            self._meter.sample(now)  # first, as a reading lets go of the lock
            self._notice_stop(before, own.read(now), interval)
            pending = [late for late in pending if not self._told(late, now)]
            if self._is_running and self._loop.is_closed():
                self.stop()
        own.close()

    def _notice_stop(self, before: Reading, after: Reading, interval: int) -> None:
        """This thread slept too long, and neither the lock nor a lack of processors explains it: all were stopped."""
        if self._recorder is None:
            return
        explained = interval + (after.lock - before.lock) + (after.delay - before.delay)
        stopped = after.time - before.time - explained
        if stopped > self._limit // 4:
            self._stops.append((before.time, after.time, stopped))

    def _told(self, late: Late, now: int) -> bool:
        """Tell what was found, unless the holder of the lock is not known yet."""
        holder = self._holder(late)
        is_awaited = self._recorder is not None and late.parts.lock >= self._least
        if holder is None and is_awaited and now < late.end + _PATIENCE:
            return False
        parts = self._with_stops(late)
        times = dict(zip(Parts._fields, parts, strict=True))
        cause = max(times, key=times.__getitem__)
        for name, part in times.items():
            count = self._counts[name]
            self._counts[name] = LateCount(count.number + (name == cause), count.nanoseconds + part)
        gauges = self._meter.gauges
        event = LateEvent(
            late.kind,
            cause,
            late.end - late.begin,
            *parts,
            gauges.name if gauges else "",
            *late.callback,
            late.stack,
            holder.holder if holder else "",
            holder.stack if holder else (),
            self._meter.is_exact,
        )
        _log.warning("%s", event)
        self._call(event)
        return True

    def _call(self, event: LateEvent) -> None:
        if self._on_late is not None:
            try:
                self._on_late(event)
            except Exception:
                _log.exception("on_late raised an exception")

    def _holder(self, late: Late) -> Alarm | None:
        """Returns the alarm of the longest wait of the loop's thread in that time."""
        gauges = self._meter.gauges
        if gauges is None or late.parts.lock < self._least:
            return None
        waits = [
            alarm
            for time, alarm in self._alarms
            if alarm.waiting == gauges.name
            and late.begin <= time <= late.end + _PATIENCE
            and alarm.nanoseconds <= late.waited + 1_000_000
        ]
        return max(waits, key=lambda alarm: alarm.nanoseconds, default=None)

    def _with_stops(self, late: Late) -> Parts:
        """Takes the time in which the whole process was stopped out of what looks like blocking."""
        stopped = 0
        for begin, end, most in self._stops:
            stopped += max(0, min(most, min(end, late.end) - max(begin, late.begin)))
        moved = min(late.parts.blocked, stopped)
        parts = late.parts
        return parts._replace(blocked=parts.blocked - moved, not_run=parts.not_run + moved)


_watches: set[LoopWatch] = set()


def _after_fork_in_child() -> None:
    for watch in list(_watches):
        watch._forget_in_child()
    _watches.clear()
    by_thread.clear()
    sources.end()


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
        threshold: a number of seconds, from 0.001 to a day.
        loop: the loop to watch, which may run in another thread, or later; without one, the running loop.
        on_late: is called with a `LateEvent` in a thread of the watch's own, some milliseconds after the delay; after
            up to 0.2 s, if the holder of the lock is not known before. An exception that it raises is logged.

    Where the lock cannot be traced exactly, a `RuntimeWarning` gives the reason. Waits for the lock then count as
    blocked. With ``OFFLOCK_LOCK=off`` in the environment nothing is watched.

    Raises:
        RuntimeError: without a loop, none is running; or the loop is being watched already.
        TypeError: an argument is of another type.
        ValueError: `threshold` is out of range.
    """
    return LoopWatch(threshold, loop, on_late)


def _record_waits(seconds: float, call: Callable[[Alarm], object]) -> FlightRecorder | None:
    """Call `call` for each wait for the lock of at least so many seconds; without effect where that is impossible."""
    if reason := obstacle():
        warnings.warn(f"waits for the lock count as blocked: {reason}", RuntimeWarning, stacklevel=4)
        return None
    recorder = FlightRecorder(seconds=1, memory=1 << 20, stacks=seconds / 2)
    recorder._on_any_wait(seconds, call)
    restarting.remove(recorder)
    return recorder


os.register_at_fork(after_in_child=_after_fork_in_child)
