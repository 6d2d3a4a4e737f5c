"""Why the lock of this process cannot be traced."""

from __future__ import annotations

from .._offlock import lock as _native


def obstacle() -> str | None:
    """Returns the reason why the lock cannot be traced exactly in this process; None when it can.

    ``OFFLOCK_FEED=samples`` in the environment makes all traces estimates; with ``OFFLOCK_LOCK=off`` nothing is
    traced at all.
    """
    return _native.obstacle()


def stacks_obstacle() -> str | None:
    """Returns the reason why traces of this process have no stacks; None when they can have them.

    Stacks are read from the interpreter's memory, whose layout is compared with ``sys._getframe`` first.
    """
    return _native.stacks_obstacle()
