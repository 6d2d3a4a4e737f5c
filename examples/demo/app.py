"""A web application (ASGI): pages, and a report that reads a large MessagePack message.

The demo serves it twice: as it is, and with offlock's MessagePack in place of msgpack's.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgpack

import offlock.middleware
from offlock.lock import mark

CHANCE = random.Random(1)
EVENTS = msgpack.packb(
    [
        {
            "time": 1_764_000_000 + number / 50,
            "method": CHANCE.choice(["GET", "POST", "PUT"]),
            "path": f"/api/v2/orders/{CHANCE.randrange(1000)}",
            "agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "status": CHANCE.choice([200, 200, 200, 304, 404, 500]),
            "bytes": CHANCE.randrange(100, 100_000),
        }
        for number in range(100_000)
    ]
)


@mark("GET /report")
def report() -> str:
    """Add up the sizes of all responses in the message."""
    events = msgpack.unpackb(EVENTS)
    return f"{len(events)} responses, {sum(event['bytes'] for event in events)} bytes\n"


async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer `/page` at once. `/report` is made on another thread, so that the event loop could go on."""
    text = await asyncio.to_thread(report) if scope["path"] == "/report" else "a page\n"
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


app = offlock.middleware.ASGI(answer)
