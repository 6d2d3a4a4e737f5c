"""A pool whose threads wait for other machines, and compute next to nothing. Load: threads."""

import sys
import time

from work import compute, goes_on, run


def fetch() -> None:
    while goes_on():
        time.sleep(0.02)
        compute(0.00002)


run(*[fetch] * int(sys.argv[1]), name="fetcher")
