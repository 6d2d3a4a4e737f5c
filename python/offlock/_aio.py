"""Native calls from asyncio programs: small ones at once, others on a thread while the event loop goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ._offlock import Cancel

T = TypeVar("T")

INLINE = 16 << 10
"""Below this size, in characters, a call takes less time than going through another thread."""


async def run(size: int, call: Callable[[Cancel | None], T]) -> T:
    """What ``call`` returns for an input of ``size`` characters.

    A large call runs in the running loop's default executor; cancelling the await ends it within about a
    millisecond.
    """
    import asyncio  # the caller has; other programs need not wait for it

    if size < INLINE:
        return call(None)
    cancel = Cancel()
    try:
        return await asyncio.get_running_loop().run_in_executor(None, call, cancel)
    except asyncio.CancelledError:
        cancel.cancel()
        raise
