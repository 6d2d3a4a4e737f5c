"""Tests the awaitable methods: the event loop runs meanwhile, and cancelling the await ends the work."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import pytest
from reference import ours

CL100K = ours("cl100k_base")
SMALL = "hello world"
LARGE = "The quick brown fox jumps over the lazy dog, 12345 times.\n" * 2_000
# 32 MB of so many different pieces that caches do not help: the slowest text to encode.
HUGE = random.Random(1).randbytes(500_000).hex() * 32


def test_they_return_what_the_others_return() -> None:
    async def check(text: str) -> None:
        ids = CL100K.encode(text)
        assert await CL100K.aencode(text) == ids
        assert await CL100K.acount(text) == len(ids)
        assert await CL100K.aencode_batch([text, "a"]) == [ids, [64]]
        assert await CL100K.acount_batch([text, "a"]) == [len(ids), 1]
        assert await CL100K.aencode_batch(iter([text, "a"])) == [ids, [64]]
        assert await CL100K.acount_batch(iter([text, "a"])) == [len(ids), 1]
        assert await CL100K.atruncate(text, 1) == CL100K.truncate(text, 1)
        assert await CL100K.achunks(text, 5, overlap=1) == CL100K.chunks(text, 5, overlap=1)
        assert await CL100K.adecode(ids) == text

    asyncio.run(check(SMALL))
    asyncio.run(check(LARGE))


@pytest.mark.parametrize("text", [SMALL, LARGE])
def test_they_take_special_tokens(text: str) -> None:
    async def check() -> None:
        assert (await CL100K.aencode(text + "<|endoftext|>", allowed_special="all"))[-1] == 100257
        with pytest.raises(ValueError, match="disallowed"):
            await CL100K.aencode(text + "<|endoftext|>")
        with pytest.raises(ValueError, match="disallowed"):
            await CL100K.acount(text + "<|endoftext|>", disallowed_special={"<|endoftext|>"})

    asyncio.run(check())


def test_the_event_loop_goes_on() -> None:
    async def check() -> int:
        ticks = 0
        work = asyncio.create_task(CL100K.acount(HUGE))
        while not work.done():
            await asyncio.sleep(0.001)
            ticks += 1
        assert await work > 1_000_000
        return ticks

    assert asyncio.run(check()) > 10


@pytest.mark.parametrize(
    "start",
    [
        lambda: CL100K.aencode(HUGE),
        lambda: CL100K.acount(HUGE),
        lambda: CL100K.aencode_batch([HUGE, HUGE]),
        lambda: CL100K.atruncate(HUGE, 1 << 40),
        lambda: CL100K.achunks(HUGE, 100),
    ],
    ids=["aencode", "acount", "aencode_batch", "atruncate", "achunks"],
)
def test_cancelling_ends_the_work(start: Callable[[], Awaitable[object]]) -> None:
    async def check() -> float:
        work = asyncio.ensure_future(start())
        await asyncio.sleep(0.05)
        assert not work.done()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        cancelled = time.monotonic()
        await asyncio.get_running_loop().shutdown_default_executor()  # waits for the thread
        return time.monotonic() - cancelled

    # Without the cancellation the thread would be busy for longer. On a busy machine one attempt may be late, but not all.
    assert min(asyncio.run(check()) for _ in range(5)) < 0.05


def test_a_timeout_ends_the_work() -> None:
    async def check() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(CL100K.aencode(HUGE), 0.05)

    asyncio.run(check())
