"""Live numbers for production."""

from __future__ import annotations

import threading
import warnings
from typing import ClassVar

from .._offlock import lock as _native
from ._about import native_id_of


class _Metric:
    """The switch that the three kinds of live numbers share."""

    _name: ClassVar[str]

    @classmethod
    def enable(cls) -> None:
        """Start measuring.

        Where the lock cannot be traced exactly, the numbers stay zero and a `RuntimeWarning` gives the reason. With
        ``OFFLOCK_LOCK=off`` in the environment nothing is measured, and nothing said.
        """
        if _native.is_enabled(cls._name):
            return
        if reason := _native.enable(cls._name):
            warnings.warn(f"the numbers of {cls.__name__} stay zero: {reason}", RuntimeWarning, stacklevel=2)

    @classmethod
    def disable(cls) -> None:
        """Stop measuring. The numbers remain readable."""
        _native.disable(cls._name)

    @classmethod
    def enabled(cls) -> bool:
        """Whether measuring is on."""
        return _native.is_enabled(cls._name)


class GlobalTimer(_Metric):
    """The time that all threads together have waited for the lock. Reading never blocks."""

    _name = "global"

    @staticmethod
    def monotonic_time() -> int:
        """Returns the nanoseconds that threads have waited since the last `reset`, without waits that go on."""
        return _native.global_numbers()[0]

    @staticmethod
    def acquisitions() -> int:
        """Returns how many times a thread has acquired the lock since the last `reset`."""
        return _native.global_numbers()[1]

    @staticmethod
    def histogram() -> list[tuple[int, int]]:
        """Returns pairs of a duration in ns (off by 1/32 at most) and the number of such waits, shortest first."""
        return _native.waits()

    @staticmethod
    def reset() -> None:
        """Set the numbers back to zero."""
        _native.reset_global()


class LocalTimer(_Metric):
    """The time that one thread has waited for the lock. Reading never blocks."""

    _name = "local"

    def __init__(self, thread: threading.Thread | None = None) -> None:
        """Read the numbers of `thread`, which must have started; without one, of the calling thread."""
        self._native_id = _native.native_id() if thread is None else native_id_of(thread) or 0

    def monotonic_time(self) -> int:
        """Returns the nanoseconds that the thread has waited since the last `reset`, without a wait that goes on."""
        return _native.local_numbers(self._native_id)[0]

    def acquisitions(self) -> int:
        """Returns how many times the thread has acquired the lock since the last `reset`."""
        return _native.local_numbers(self._native_id)[1]

    def releases(self) -> int:
        """Returns how many times the thread has released the lock since the last `reset`."""
        return _native.local_numbers(self._native_id)[2]

    def histogram(self) -> list[tuple[int, int]]:
        """Returns pairs of a duration in ns (off by 1/32 at most) and the number of such waits, shortest first."""
        return _native.waits(self._native_id)

    def reset(self) -> None:
        """Set the thread's numbers back to zero."""
        _native.reset_local(self._native_id)


class WaitingThreads(_Metric):
    """The number of threads that wait for the lock at this moment. Reading never blocks."""

    _name = "waiting"

    @staticmethod
    def count() -> int:
        """Returns the number of threads that wait, or that waited when `disable` was called."""
        return _native.waiting()

    @staticmethod
    def reset() -> None:
        """Set the number back to zero and count from there. `enable` does so, too."""
        _native.reset_waiting()
