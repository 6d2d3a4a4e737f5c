"""No operation makes others wait long: offlock itself measures the holds of the lock beside a thread that sleeps."""

from __future__ import annotations

import contextlib
import gc
import io
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator

import msgpackoperations
import operations
import pytest
from interpreter import HAS_GIL
from processes import crowd

from offlock import gzip, lock

pytestmark = pytest.mark.timing

Call = Callable[[], object]

LONGEST = 2.0
"""The limit in milliseconds, beside the time that the system takes to provide 1 MB of memory."""

MEGABYTES = {
    "Encoding of one's own": 16,  # copies a dict of 100,000 entries
    "Encoding, its ranks": 12,  # a dict of 100,000 entries grows
    "gzip.GzipFile.write": 12,  # an `io.BytesIO` moves its contents when it grows
    "gzip.GzipFile.write threads": 12,
    "msgpack.unpackb map": 16,  # allocates a dict for 300,000 entries
    "msgpack.packb array": 8,  # numpy makes lists of its rows
}
"""How many megabytes a function of CPython or of another library writes at once, in operations that call it."""

ATTEMPTS = 12
"""Attempts. The best one counts, because the system may suspend a thread while it holds the lock."""

LARGE = operations.LARGE | {f"msgpack.{name}": make for name, make in msgpackoperations.LARGE.items()}


def test_no_public_name_is_forgotten() -> None:
    assert set(operations.covered()) - {"Encoding", "Tokenizer"} == operations.public_names()
    assert set(msgpackoperations.covered()) == msgpackoperations.public_names()


watched = pytest.mark.skipif(
    not HAS_GIL or lock.obstacle() is not None, reason="needs a lock that can be watched"
)


@contextlib.contextmanager
def undisturbed() -> Iterator[float]:
    """Asks the system to run this process before all others.

    The value is a factor for time limits: 1, or the load of the machine if the system refuses.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield crowd()
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        yield crowd()
        return
    try:
        yield 1.0
    finally:
        os.sched_setscheduler(0, *before)


def longest_hold(call: Call) -> float:
    """Returns the longest hold of a thread that repeats a call, in milliseconds, without garbage collection."""
    results, over = [], threading.Event()

    def work() -> None:
        time.sleep(0.002)
        results.append(call())  # kept, because freeing it is CPython's own work

    def sleep() -> None:
        while not over.is_set():
            time.sleep(0.001)

    sleeper, worker = threading.Thread(target=sleep), threading.Thread(target=work, name="worker")
    sleeper.start()
    gc.disable()
    try:
        with lock.measure() as measured:
            worker.start()
            worker.join()
    finally:
        gc.enable()
        over.set()
        sleeper.join()
    assert measured.summary is not None
    threads = measured.summary.to_dict()["threads"]
    return next(float(thread["longest_hold"]) for thread in threads if thread["name"] == "worker") / 1e6


@watched
@pytest.mark.filterwarnings("ignore:unclosed GzipFile:ResourceWarning")
@pytest.mark.parametrize("name", LARGE)
def test_the_lock_is_held_for_two_milliseconds_at_most(name: str) -> None:
    assert_holds_are_short(LARGE[name](), MEGABYTES.get(name, 1))


@watched
def test_the_parts_of_a_large_file_are_freed_a_few_at_a_time() -> None:
    packed = gzip.compress(bytes(160 << 20), 1)
    # The C library may give up to 64 MB at the end of the heap back to the system when one part is freed.
    assert_holds_are_short(lambda: gzip.GzipFile(fileobj=io.BytesIO(packed)).read(), 32)


def memory_time() -> float:
    """Returns how long the system takes to provide 1 MB of memory, at worst in 50 ms, in milliseconds.

    A quarter of a millisecond, and several milliseconds on a virtual machine that gets each page from its host.
    """
    longest, end = 0.0, time.perf_counter() + 0.05
    while (start := time.perf_counter()) < end:
        with mmap.mmap(-1, 1 << 20) as memory:
            memory[:: mmap.PAGESIZE] = bytes(len(memory) // mmap.PAGESIZE)
            longest = max(longest, time.perf_counter() - start)
    return longest * 1e3


def assert_holds_are_short(call: Call, megabytes: int) -> None:
    attempts: list[tuple[float, float]] = []
    with undisturbed() as slower:
        while len(attempts) < ATTEMPTS:
            limit = LONGEST * slower + megabytes * memory_time()
            hold = longest_hold(call)
            if hold <= limit:
                return
            attempts.append((hold, limit))
    pytest.fail(f"holds and their limits in milliseconds: {attempts}")
