"""Forks children at random moments while threads run one of the public operations.

    python forking.py SEED SECONDS

Two threads repeat one operation, and the main thread forks. A child calls that operation or another one. It must return
the right result in time, although locks that the other threads held at the fork are never released in the child. The
results in the parent must stay right, too. Prints a line for every failure.
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator

import msgpackcases
import operations
from interpreter import HAS_GIL
from nomemory import comparable

from offlock import gzip, lock, strings, tiktoken

Call = Callable[[], object]

PATIENCE = 30
"""Seconds after which a child is considered hung."""


def calls() -> dict[str, Call]:
    """Returns every operation, on inputs large enough to release the lock."""
    operations.shrink()
    made = {name: make() for name, make in operations.LARGE.items()}
    made |= {f"msgpack.{name}": on_a_world(case) for name, case in msgpackcases.CASES.items()}
    made |= {f"{name} for the first time": on_a_new_object(name) for name in tiktoken.list_encoding_names()}
    return made | {"lock.measure": measure, "lock.GlobalTimer": count, "Encoding._mergeable_ranks": ranks}


def on_a_world(case: Callable[[msgpackcases.World], object]) -> Call:
    """Makes a world for each call: like the originals', packers and unpackers must not be shared between threads."""

    def call() -> None:
        world = msgpackcases.World(1, 30)
        with contextlib.suppress(*msgpackcases.ALLOWED):
            case(world)
        assert msgpackcases.is_sound(world)

    return call


def on_a_new_object(name: str) -> Call:
    return lambda: tiktoken.Encoding._open(name).encode("some words")


def measure() -> bool:
    with lock.measure() as trace:
        time.sleep(0.001)
    return trace.summary is None or bool(trace.summary.to_dict())


def count() -> None:
    lock.GlobalTimer.enable()
    lock.GlobalTimer.disable()


def ranks() -> int:
    """Opens a new encoding, because an encoding keeps its ranks once they are computed."""
    encoding = tiktoken.Encoding._open("r50k_base")
    return len(encoding._mergeable_ranks)


class Busy:
    """Two threads that repeat one operation until the end of the block."""

    def __init__(self, call: Call, expected: object) -> None:
        # Without a GIL, comparing two lists locks both: a child would wait for ever for a list that a thread compared.
        self.call, self.expected = call, expected if HAS_GIL else copy.deepcopy(expected)
        self.over = threading.Event()
        self.wrong: list[str] = []
        self.threads = [threading.Thread(target=self.work) for _ in range(2)]

    def work(self) -> None:
        while not self.over.is_set():
            if found := fault(self.call, self.expected):
                self.wrong.append(found)

    def __enter__(self) -> Busy:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()


def fault(call: Call, expected: object) -> str:
    """Returns a description of the failure of `call`, or None."""
    try:
        made = comparable(call())
    except BaseException as error:
        return f"raises {error!r}"[:300]
    return "" if made == expected else f"makes {made!r}"[:300]


def forked(call: Call, expected: object, patience: int = PATIENCE) -> int:
    """Forks a child that calls the operation."""
    pid = os.fork()
    if not pid:
        faulthandler.register(
            signal.SIGALRM, chain=True
        )  # not its watchdog thread, which a second fork would lose
        signal.alarm(patience)
        wrong = fault(call, expected)
        if wrong:
            os.write(1, f"in a child: {wrong}\n".encode())
        os._exit(bool(wrong))
    return pid


def ended(pid: int) -> int:
    """Returns the status of a child. Kills the child if it hangs and does not end by itself."""
    until = time.monotonic() + 3 * PATIENCE
    while time.monotonic() < until:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def forks_beside(name: str, made: dict[str, Call], known: dict[str, object], dice: random.Random) -> None:
    """Forks two children of a process with two threads in `name`."""
    with Busy(made[name], known[name]) as busy:
        for other in (name, dice.choice([*made])):
            time.sleep(dice.uniform(0, 0.02))
            if status := ended(forked(made[other], known[other])):
                print(f"{other}, forked beside {name}: status {status}", flush=True)
    for found in busy.wrong[:1]:
        print(f"{name} in the parent: {found}", flush=True)


def use_blocks() -> object:
    strings.enable_blocks()
    return strings.lines(b"one\ntwo\n" * 50_000, kind="block")


FIRST: list[Call] = [
    lambda: tiktoken.Encoding._open("r50k_base").encode("hello"),
    lambda: tiktoken.Encoding._open("p50k_base").encode_batch(["hello " * 20_000] * 4),
    lambda: len(tiktoken.Encoding._open("r50k_base")._mergeable_ranks),
    lambda: strings.lines(b"one\ntwo\n" * 50_000, kind="view"),
    *([use_blocks] if HAS_GIL else []),
    lambda: gzip.compress(b"some content" * 300_000, 1, threads=2),
    lambda: tiktoken.Encoding._open("r50k_base").decode([31373] * 100_000),
    lambda: msgpackcases.CASES["unpackb"](msgpackcases.World(1, 300)),
]
"""Operations that make objects for the whole process at their first use."""


def forks_at_first_use(dice: random.Random) -> None:
    """Forks children while threads use parts of offlock for the first time in their process."""
    chosen = dice.sample(FIRST, 3)

    def scenario() -> None:
        threads = [threading.Thread(target=call, daemon=True) for call in chosen[:2]]
        for thread in threads:
            thread.start()
        time.sleep(dice.uniform(0, 0.03))
        pids = [forked(lambda call=call: call() is None, False) for call in chosen]  # type: ignore[misc]
        assert [ended(pid) for pid in pids] == [0] * len(pids)

    if status := ended(forked(scenario, None, 2 * PATIENCE)):
        numbers = [FIRST.index(call) for call in chosen]
        print(f"first uses {numbers}: status {status}", flush=True)


def turns(names: list[str], dice: random.Random, seconds: float) -> Iterator[str]:
    """Yields names in random order, again and again, until the time is up.

    The order is random so that short runs, which do not reach all names, differ.
    """
    until = time.monotonic() + seconds
    while True:
        dice.shuffle(names)
        for name in names:
            if time.monotonic() > until:
                return
            yield name


def main(seed: int, seconds: float) -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks with threads
    warnings.filterwarnings("ignore", "the numbers of GlobalTimer stay zero")  # in free-threaded builds
    dice = random.Random(seed)
    until = time.monotonic() + seconds / 4
    while time.monotonic() < until:
        forks_at_first_use(dice)
    if HAS_GIL:
        strings.enable_blocks()
    made = calls()
    known = {name: comparable(call()) for name, call in made.items()}
    for name in turns([*made], dice, seconds * 3 / 4):
        forks_beside(name, made, known, dice)
    print("done")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
