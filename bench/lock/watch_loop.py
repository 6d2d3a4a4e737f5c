"""What `offlock.lock.watch_loop` costs a loop that is never late: ns per callback and per iteration, alternating.

    python bench/lock/watch_loop.py [asyncio|uvloop]

A callback does nothing but schedule the next one, so each is also an iteration of the loop; in the second figure, a
hundred callbacks are scheduled for each iteration.
"""

import asyncio
import contextlib
import statistics
import sys
import time

from offlock import lock

ROUNDS = 15
CALLBACKS = 50_000


async def per_callback(batch: int) -> float:
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    left = CALLBACKS // batch

    def nothing() -> None:
        pass

    def turn() -> None:
        nonlocal left
        left -= 1
        if not left:
            over.set_result(None)
            return
        for _ in range(batch - 1):
            loop.call_soon(nothing)
        loop.call_soon(turn)

    begun = time.perf_counter_ns()
    turn()
    await over
    return (time.perf_counter_ns() - begun) / CALLBACKS


async def main() -> None:
    for batch in (1, 100):
        times: dict[bool, list[float]] = {False: [], True: []}
        for number in range(2 * ROUNDS):
            is_watched = bool(number % 2)
            with lock.watch_loop() if is_watched else contextlib.nullcontext():
                await asyncio.sleep(0.01)
                times[is_watched].append(await per_callback(batch))
        without, watched = (statistics.median(times[each]) for each in (False, True))
        print(
            f"{batch} callbacks per iteration: {without:.0f} ns per callback, watched {watched:.0f} ns,"
            f" difference {watched - without:.0f} ns"
        )


if sys.argv[1:] == ["uvloop"]:
    import uvloop

    uvloop.run(main())
else:
    asyncio.run(main())
