"""An ASGI application: /light answers at once, /computing computes in a thread, as endpoints that are not async do."""

from __future__ import annotations

import asyncio
from typing import Any


def squares(count: int) -> bytes:
    """Returns the sum of the squares below a number."""
    return str(sum(number * number for number in range(count))).encode()


async def app(scope: dict[str, Any], _receive: Any, send: Any) -> None:
    """Answers with that sum."""
    if scope["type"] != "http":
        return
    body = await asyncio.to_thread(squares, 30_000) if scope["path"] == "/computing" else squares(10)
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
