"""Forks children from a process with four busy threads until its time is up.

    python prefork.py SECONDS SEED

Each child does one kind of work, and exits in one of several ways. A child that has not ended after a long time is
considered hung. Prints a line for each child: its process id, its work, and how it ended.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable

import offlock.lock
import offlock.tiktoken

PATIENCE = 60


def compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def be_busy() -> None:
    """Threads that acquire and release the lock all the time, so that forks happen at every stage of it."""
    items: queue.Queue[int] = queue.Queue()
    reading, writing = os.pipe()
    encoding = offlock.tiktoken.get_encoding("r50k_base")

    def compute_and_sleep() -> None:
        compute(0.0002)
        time.sleep(0.0001)

    def queue_up() -> None:
        items.put(1)
        items.get()

    def encode() -> None:
        os.write(writing, b"x")
        os.read(reading, 1)
        encoding.encode("some words and more " * 200, release="always")

    def for_ever(work: Callable[[], object]) -> None:
        while True:
            work()

    for work in (compute_and_sleep, lambda: time.sleep(0.0001), queue_up, encode):
        threading.Thread(target=for_ever, args=(work,), daemon=True).start()


def with_threads() -> None:
    threads = [threading.Thread(target=compute, args=(0.003,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure() -> None:
    with offlock.lock.measure() as trace:
        compute(0.002)
    assert trace.summary is not None
    assert trace.summary.to_dict()["threads"]


def start_and_stop() -> None:
    assert offlock.lock.start(os.devnull)
    assert offlock.lock.stop() is not None


def numbers() -> None:
    offlock.lock.GlobalTimer.enable()
    compute(0.002)
    offlock.lock.GlobalTimer.disable()


def encode() -> None:
    assert offlock.tiktoken.get_encoding("r50k_base").encode("hello") == [31373]


def fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def in_pool() -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]


def run() -> None:
    subprocess.run([sys.executable, "-S", "-c", ""], check=True)
    os.waitpid(os.posix_spawnp("true", ["true"], os.environ), 0)


def work() -> None:
    compute(0.001)


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


WAYS: list[Callable[[], None]] = [
    with_threads,
    measure,
    start_and_stop,
    numbers,
    encode,
    fork,
    in_pool,
    run,
    be_killed,
    work,
]


def forked(way: Callable[[], object]) -> int:
    """A child of os.fork, which exits as most such children do."""
    child = os.fork()
    if child:
        return child
    try:
        way()
        os._exit(0)
    except BaseException as error:
        os.write(2, f"{way.__name__}: {error!r}\n".encode())
        os._exit(1)


def ended(child: int) -> int | None:
    """Returns the child's wait status; None if it hangs."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.001)
    return None


def start_child(way: Callable[[], object], chance: random.Random) -> tuple[int, Callable[[], int | None]]:
    if way is not be_killed and chance.random() < 0.5:
        process = multiprocessing.get_context("fork").Process(target=way)
        process.start()
        assert process.pid

        def end() -> int | None:
            process.join(PATIENCE)
            return process.exitcode

        return process.pid, end
    child = forked(way)
    return child, lambda: ended(child)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks with threads
    seconds, chance = float(sys.argv[1]), random.Random(int(sys.argv[2]))
    be_busy()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ways = [chance.choice(WAYS) for _ in range(chance.randint(1, 3))]
        children = []
        for way in ways:
            time.sleep(chance.random() * 0.003)
            children.append((way, *start_child(way, chance)))
        for way, pid, end in children:
            status = end()
            if status is None:
                os.kill(pid, signal.SIGKILL)
            expected = signal.SIGTERM if way is be_killed else 0
            print(
                pid, way.__name__, "ended" if status == expected else ("hung" if status is None else status)
            )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
