"""An event loop that answers quickly, and computes in an executor. Load: jobs at a time."""

import asyncio
import sys

from work import compute, goes_on


def job() -> None:
    while goes_on():
        compute(0.02)


async def main() -> None:
    loop = asyncio.get_running_loop()
    jobs = [loop.run_in_executor(None, job) for _ in range(int(sys.argv[1]))]
    while goes_on():
        await asyncio.sleep(0.002)
    await asyncio.gather(*jobs)


asyncio.run(main())
