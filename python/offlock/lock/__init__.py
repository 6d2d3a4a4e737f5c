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

from typing import TYPE_CHECKING

from ._flight_recorder import Alarm, FlightRecorder
from ._mark import mark
from ._metrics import GlobalTimer, LocalTimer, WaitingThreads
from ._obstacle import obstacle, stacks_obstacle
from ._own_trace import start, stop
from ._publish import publish, unpublish
from ._summary import Stats, Summary
from ._trace import Trace, measure, trace

if TYPE_CHECKING:
    from ._watch_lock import LockWatch, watch_lock
    from ._watch_loop import LateCount, LateEvent, LoopWatch, watch_loop

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

_LATER = {
    "LockWatch": "_watch_lock",
    "watch_lock": "_watch_lock",
    "LateCount": "_watch_loop",
    "LateEvent": "_watch_loop",
    "LoopWatch": "_watch_loop",
    "watch_loop": "_watch_loop",
}
"""The modules of names that few programs use. They import others, such as `logging`, which every traced program would
pay for."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
