"""One thread calls C functions that keep the lock for long; others are light. Load: thousands of numbers to sort."""

import random
import sys
import time

from work import compute, goes_on, run

numbers = [random.random() for _ in range(int(sys.argv[1]) * 1000)]


def sorter() -> None:
    while goes_on():
        sorted(numbers)


def light() -> None:
    while goes_on():
        time.sleep(0.002)
        compute(0.00005)


run(sorter, light)
