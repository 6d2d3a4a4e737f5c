"""A pool whose threads compute all the time. Load: threads."""

import sys
from concurrent.futures import ThreadPoolExecutor

from work import compute, goes_on


def job(_: int) -> None:
    while goes_on():
        compute(0.02)


threads = int(sys.argv[1])
with ThreadPoolExecutor(threads) as pool:
    list(pool.map(job, range(threads)))
