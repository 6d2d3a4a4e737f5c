"""Live traces: a process that ``offlock record``, ``top`` and ``dump`` can look into."""

from __future__ import annotations

import os

from .._offlock import lock as _native
from ._about import about_program, thread_names
from ._restart import restarting
from ._trace import STACKS, Trace


class _Live(Trace):
    """Publishes this process, and those that are forked from it; see `publish`."""

    def __init__(self, stacks: float | None) -> None:
        self._stacks = stacks
        self._begin()
        if self.is_running:
            restarting.append(self)

    def _begin(self) -> None:
        about = about_program(arguments=False)
        self._record(lambda: _native.Recorder.publish(about, thread_names(), self._stacks))

    def _begin_again(self) -> None:
        """Start again in a forked child, which goes on if it cannot be published."""
        try:
            self._begin()
        except OSError as error:
            _warn_unpublished(error)

    def stop(self) -> None:
        """End the recordings of connected clients, and take no more."""
        if self in restarting:
            restarting.remove(self)
        super().stop()


def _warn_unpublished(error: OSError) -> None:
    # Not through sys.stderr: another thread may have held its lock when the parent forked.
    os.write(2, f"offlock: process {os.getpid()} is not published: {error}\n".encode(errors="replace"))


_live: _Live | None = None
"""The live traces of this process, or of the one that it was forked from."""


def publish(*, stacks: float | None = STACKS) -> bool:
    """Publish this process, so that ``offlock record`` can take traces from it while it runs, without root.

    So do ``OFFLOCK_LIVE=1`` in the environment once offlock is imported, and ``offlock attach``. ``offlock top`` and
    ``offlock dump`` can look at the process as well. Nothing is recorded until a command connects. The socket lies in a
    folder that only this user can enter, and forked children get one of their own.

    Args:
        stacks: whether traces have stacks: None for none. ``offlock record --stacks`` says from which wait on.

    Returns:
        Whether it published the process: False if it is published already, or with ``OFFLOCK_LOCK=off`` in the
        environment.

    Raises:
        OSError: the socket cannot be made.
    """
    global _live
    if _live is not None and _live.is_running:
        return False
    _live = _Live(stacks)
    return _live.is_running


def unpublish() -> bool:
    """End the recordings of ``offlock record``, and allow no more.

    Returns:
        Whether the process was published.
    """
    global _live
    live, _live = _live, None
    if live is None or not live.is_running:
        return False
    live.stop()
    return True


def publish_if_requested() -> None:
    """Publish the process if the environment asks for it. A process that cannot be published goes on."""
    if _native.is_live_requested():
        try:
            publish()
        except OSError as error:
            _warn_unpublished(error)
