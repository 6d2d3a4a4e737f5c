"""Threads that release the lock after every few microseconds: the lock is handed over all the time. Load: threads."""

import os
import sys

from work import goes_on, run


def writer() -> None:
    with open(os.devnull, "wb", buffering=0) as file:
        while goes_on():
            for _ in range(100):
                file.write(b"a line of a log\n")


run(*[writer] * int(sys.argv[1]), name="writer")
