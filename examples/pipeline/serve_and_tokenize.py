"""An asyncio server that counts the tokens of texts, and tokenizes shards in the background meanwhile.

Usage: serve_and_tokenize.py SHARD_OR_FOLDER... [--port 8080]

    POST /count     the number of tokens of the body
    GET /progress   how far the shards are, and how late the event loop was at worst

The shards are read, decompressed, parsed and encoded by threads that hold no lock, so the server answers as if it did
nothing else. They wait while nobody takes their batches, so memory stays bounded.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time

from offlock import pipeline, tiktoken

ENCODING = tiktoken.get_encoding("o200k_base")
LATE = 0.01


class Progress:
    """What the background task has done so far."""

    def __init__(self) -> None:
        self.shard = ""
        self.documents = self.bytes = self.tokens = 0
        self.worst_delay = 0.0
        self.done = False

    def as_json(self) -> bytes:
        return json.dumps(vars(self)).encode()


async def tokenize(paths: list[str], progress: Progress) -> None:
    """Takes the batches one by one. A real program would store or send `batch.to_numpy()`."""
    async for batch in pipeline.read(paths, on_error="skip").tokens("o200k_base"):
        progress.shard = batch.path
        progress.documents += len(batch)
        progress.bytes += batch.bytes
        progress.tokens += len(batch.tokens)
    progress.done = True


async def watch(progress: Progress) -> None:
    """Measures how late the event loop is."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(LATE)
        progress.worst_delay = max(progress.worst_delay, time.perf_counter() - before - LATE)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, progress: Progress) -> None:
    """Answers one request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    if head.startswith("get /progress "):
        status, body = "200 OK", progress.as_json()
    elif head.startswith("post /count "):
        lengths = [line.split(":")[1] for line in head.split("\r\n") if line.startswith("content-length:")]
        text = await reader.readexactly(int(lengths[0]) if lengths else 0)
        # A text of megabytes takes a while: `acount` lets the loop run.
        status, body = "200 OK", str(await ENCODING.acount(text.decode(errors="replace"))).encode()
    else:
        status, body = "404 Not Found", b"POST /count or GET /progress\n"
    writer.write(
        f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
    )
    await writer.drain()
    writer.close()


async def serve(paths: list[str], port: int) -> None:
    progress = Progress()
    server = await asyncio.start_server(lambda *streams: answer(*streams, progress), "127.0.0.1", port)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await asyncio.gather(tokenize(paths, progress), watch(progress), server.serve_forever())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", nargs="+")
    parser.add_argument("--port", type=int, default=8080)
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.shards, options.port))


if __name__ == "__main__":
    main()
