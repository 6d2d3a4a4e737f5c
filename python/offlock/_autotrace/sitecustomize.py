"""Starts the trace that `offlock trace` asked for, then runs the `sitecustomize` that this module hides.

Python imports this module at startup, because `offlock trace` puts its folder first on PYTHONPATH.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # every traced program would pay for these imports
    from collections.abc import Callable
    from typing import Any, NoReturn

# `signal` has the same functions, but takes a millisecond to import.
_signal: Any = importlib.import_module("_signal")

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_PACKAGES = os.path.dirname(os.path.dirname(_FOLDER))


def _start_trace() -> None:
    """Starts the trace. A program that cannot be traced runs without one."""
    # The program may not find the package by itself, and must not find the other packages beside it.
    sys.path.append(_PACKAGES)
    try:
        from offlock._offlock import lock as native
        from offlock.lock import Trace
        from offlock.lock._own_trace import dump_kept, start_or_stop
        from offlock.lock._trace import complete_all

        if native.switched_off():
            return
        name, keeps = os.environ.get("OFFLOCK_SIGNAL"), "OFFLOCK_TRACE_KEEP" in os.environ
        if name:
            _call_at_signal(name, dump_kept if keeps else start_or_stop)
        if keeps or not name:
            Trace.from_environment()
            os.register_at_fork(after_in_child=lambda: _start_in_child(Trace.from_environment))
    except Exception as error:
        _warn(sys.executable, error)
    else:
        _complete_before_leaving(complete_all)
    finally:
        sys.path.remove(_PACKAGES)


def _call_at_signal(name: str, call: Callable[..., None]) -> None:
    """Makes the signal call a function. Forked children inherit this."""
    import signal

    def handle(*_: object) -> None:
        try:
            call()
        except Exception as error:
            _warn(f"process {os.getpid()}", error)

    signal.signal(signal.Signals[f"SIG{name.removeprefix('SIG')}"], handle)


def _warn(what: str, error: Exception) -> None:
    # Not through sys.stderr: another thread may have held its lock when the parent forked.
    os.write(2, f"offlock: {what} is not traced: {error}\n".encode(errors="replace"))


def _start_in_child(start: Callable[[], object]) -> None:
    try:
        start()
    except Exception as error:
        _warn(f"process {os.getpid()}", error)


def _complete_before_leaving(complete: Callable[[], None]) -> None:
    """Completes the traces before what ends a process without running exit handlers: `os._exit`, which many forked
    processes call, and a signal that it sends to itself, as uvicorn does after it has handled it."""
    leave, kill, raise_signal = os._exit, os.kill, _signal.raise_signal

    def _exit(status: int) -> NoReturn:
        """Exit to the system with specified status, without normal exit processing."""
        try:
            complete()
        finally:
            leave(status)

    def _kill(pid: int, signal: int, /) -> None:
        """Kill a process with a signal."""
        try:
            if pid == os.getpid() and _ends_process(signal):
                complete()
        finally:
            kill(pid, signal)

    def _raise_signal(signalnum: int, /) -> None:
        """Send a signal to the executing process."""
        try:
            if _ends_process(signalnum):
                complete()
        finally:
            raise_signal(signalnum)

    os._exit, os.kill, _signal.raise_signal = _exit, _kill, _raise_signal
    imported: Any = sys.modules.get("signal")
    if imported:
        imported.raise_signal = _raise_signal


def _ends_process(signal: int) -> bool:
    """Whether it is one of the signals with which programs end, and the program does not handle it."""
    ends = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGABRT, _signal.SIGTERM)
    return signal == _signal.SIGKILL or (signal in ends and _signal.getsignal(signal) == _signal.SIG_DFL)


def _run_hidden() -> None:
    others = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]
    finder = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if finder and finder.loader:
        hidden = importlib.util.module_from_spec(finder)
        sys.modules["sitecustomize"] = hidden
        finder.loader.exec_module(hidden)


_start_trace()
_run_hidden()
