"""One thread computes; others need the lock briefly and often. Load: the others."""

import sys
import time

from work import compute, goes_on, run


def indexer() -> None:
    while goes_on():
        compute(0.05)


def web() -> None:
    while goes_on():
        time.sleep(0.001)
        compute(0.0001)


run(indexer, *[web] * int(sys.argv[1]))
