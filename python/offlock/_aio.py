"""Native calls from asyncio programs: small ones run at once, larger ones on another thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ._offlock import Cancel

T = TypeVar("T")

INLINE = 16 << 10
"""The size of an input, in characters, below which a call takes less time than a switch to another thread."""


async def run(size: int, call: Callable[[Cancel | None], T]) -> T:
    """Returns the result of ``call``, whose input has ``size`` characters.

    A call with a large input runs in the default executor of the running event loop. Cancelling the await ends it
    within about a millisecond; what is made of a result by then is freed first.
    """
    import asyncio  # here, so that programs without asyncio do not load it

    if size < INLINE:
        return call(None)
    cancel = Cancel()
    try:
        return await asyncio.get_running_loop().run_in_executor(None, call, cancel)
    except asyncio.CancelledError:
        cancel.cancel()
        raise
