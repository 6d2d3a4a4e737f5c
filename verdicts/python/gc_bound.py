"""Threads that make objects in cycles beside many live ones, so that collections take much of the time. Load: threads."""

import gc
import sys

from work import goes_on, run

alive = [{"number": number, "self": []} for number in range(100_000)]
gc.set_threshold(2_000, 2, 1)


def allocate() -> None:
    while goes_on():
        for _ in range(100):
            cycle: list[object] = []
            cycle.append(cycle)
        gc.collect(0)
        gc.collect(2)


if (threads := int(sys.argv[1])) == 1:
    allocate()
else:
    run(*[allocate] * threads, name="allocator")
