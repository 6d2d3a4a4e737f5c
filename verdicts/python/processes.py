"""A program that gives its work to other processes. Load: processes."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from work import compute, goes_on


def job(_: int) -> None:
    while goes_on():
        compute(0.02)


if __name__ == "__main__":
    processes = int(sys.argv[1])
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        list(pool.map(job, range(processes)))
