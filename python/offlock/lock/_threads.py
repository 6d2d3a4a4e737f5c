"""Reports names of threads and garbage collections to the recorder while a trace runs."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .._offlock import lock as _native
from ._about import lock_enabled, thread_names
from ._mutex import Mutex


class Sampler:
    """A thread that estimates from samples which threads hold the lock."""

    _PAUSE = 0.005

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._ended: dict[int, int] = {}
        self._thread = threading.Thread(target=self._run, name="offlock sampler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        has_lock = getattr(sys, "_is_gil_enabled", lambda: True)
        had_lock = has_lock()
        sampler = _native.Sampler(had_lock)
        while not self._stopped.is_set():
            sampler.round(self._PAUSE, self._ended)
            if has_lock() != had_lock:  # an import has enabled it for good
                had_lock, sampler = True, _native.Sampler(True)
                _native.mark_begin(f"the lock was enabled: {lock_enabled()}")
                _native.mark_end()

    def thread_ends(self, native_id: int) -> None:
        """Record the CPU time of the calling thread, which has this id and is about to end."""
        self._ended[native_id] = time.thread_time_ns()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


class Threads:
    """Reports the names of threads that start and end, and garbage collections, to the recorder while a trace runs."""

    def __init__(self) -> None:
        self._traces = 0
        self._sampler: Sampler | None = None
        self._changing = Mutex()
        self._bootstrap: Callable[[threading.Thread], Any] | None = None
        self._named: set[int] = set()
        os.register_at_fork(after_in_child=self._forget)

    def enter(self) -> None:
        with self._changing.lock:
            self._traces += 1
            if self._traces == 1:
                gc.callbacks.append(_native.on_gc)
                self._wrap_bootstrap()

    def sample(self) -> None:
        """Start the sampler, if the lock cannot be traced exactly and none runs. Called when a trace has begun."""
        with self._changing.lock:
            if self._sampler is None and _native.obstacle() is not None:
                self._sampler = Sampler()

    def leave(self) -> None:
        with self._changing.lock:
            self._traces -= 1
            if self._traces == 0:
                sampler, self._sampler = self._sampler, None
                if sampler:
                    sampler.stop()
                self._end()

    def _end(self) -> None:
        if self._traces:  # a signal handler has started another one
            return
        if _native.on_gc in gc.callbacks:
            gc.callbacks.remove(_native.on_gc)
        if self._bootstrap is not None:
            threading.Thread._bootstrap_inner = self._bootstrap  # type: ignore[attr-defined]
            self._bootstrap = None

    def _forget(self) -> None:
        """Reset the state in a forked child, where no trace runs."""
        self._traces = 0
        self._sampler = None
        self._end()

    def _wrap_bootstrap(self) -> None:
        """Make threads report their names when they start, and again when they end, as the name may have changed."""
        if self._bootstrap is not None:
            return
        self._bootstrap = bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
        self._named = {native_id for native_id, _ in thread_names()}

        def named(thread: threading.Thread) -> None:
            native_id = _native.native_id()
            if native_id in self._named:  # a green thread: its native thread has a name
                bootstrap(thread)
                return
            self._named.add(native_id)
            _native.name_thread(native_id, thread.name)
            try:
                bootstrap(thread)
            finally:
                self._named.discard(native_id)
                _native.name_thread(native_id, thread.name)
                if sampler := self._sampler:
                    sampler.thread_ends(native_id)

        threading.Thread._bootstrap_inner = named  # type: ignore[attr-defined]


threads = Threads()
