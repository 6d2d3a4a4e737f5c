"""The process's own trace: `start` and `stop`, and the trace that ``offlock trace`` asks for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ._about import thread_names
from ._mutex import Mutex
from ._summary import Stats
from ._trace import STACKS, Trace, running_traces

_started: Trace | None = None
_changing = Mutex()
_is_changing = False


@contextmanager
def _change_alone() -> Iterator[bool]:
    """Run the block in one thread at a time.

    The value is False in a signal handler that interrupts such a block of its own thread.
    """
    global _is_changing
    with _changing.lock:
        if _is_changing:
            yield False
            return
        _is_changing = True
        try:
            yield True
        finally:
            _is_changing = False


def _forget_in_child() -> None:
    """Another thread of the parent may have been in such a block."""
    global _is_changing
    _is_changing = False


os.register_at_fork(after_in_child=_forget_in_child)


def start(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    arguments: bool = False,
    stacks: float | None = STACKS,
) -> bool:
    """Start the process's own trace. It runs until `stop`. See `Trace` for the arguments.

    May be called from any thread and from a signal handler.

    Returns:
        True; False, without any change, if the trace is running already, in a signal handler that interrupts this
        function or `stop`, or with ``OFFLOCK_LOCK=off`` in the environment.

    Raises:
        OSError: the file cannot be written.
    """
    global _started
    with _change_alone() as is_alone:
        if not is_alone or (_started is not None and _started.is_running):
            return False
        _started = Trace(path, limit=limit, arguments=arguments, stacks=stacks)
        return _started.is_running


def stop() -> Stats | None:
    """Stop the trace that `start` started.

    May be called from any thread and from a signal handler.

    Returns:
        The numbers of the trace; None if no trace was running, or in a signal handler that interrupts this function
        or `start`.

    Raises:
        OSError: the end of the file could not be written.
    """
    global _started
    with _change_alone() as is_alone:
        if not is_alone:
            return None
        running, _started = _started, None
        return running.stop() if running else None


def start_or_stop(*_: object) -> None:
    """Start the trace that ``offlock trace`` asked for or, if it is running, stop it: a signal handler."""
    global _started
    with _change_alone() as is_alone:
        if not is_alone:
            return
        running, _started = _started, None
        if running is not None and running.is_running:
            running.stop()
        else:
            _started = Trace.from_environment()


def dump_kept(*_: object) -> None:
    """Write the last seconds that ``offlock trace --keep`` asked for: a signal handler."""
    for running in list(running_traces):
        if running.is_running:
            running._recorder.dump_beside(thread_names())
