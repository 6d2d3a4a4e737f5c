"""Measures what the advice of findings is worth: script/python bench/lock/advice.py [--json FILE]

- Each program runs under a trace, which must have the finding, and again as the finding's advice says.
- Then both run without a trace, in turn. A figure is the median over the rounds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgpack

from offlock import lock
from offlock import msgpack as offlock_msgpack

ROUNDS = 5
SECONDS = 1.0
ATTEMPTS = 10
MESSAGE = msgpack.packb(
    [{"id": number, "name": f"name {number}", "tags": ["a", "b"]} for number in range(40_000)]
)

Body = Callable[[float], int]
"""Works until a time of the monotonic clock, and returns how often it did."""


def repeat(work: Callable[[], object], end: float) -> int:
    count = 0
    while time.monotonic() < end:
        work()
        count += 1
    return count


def compute(end: float) -> int:
    return repeat(lambda: sum(range(10_000)), end)


def in_threads(bodies: Sequence[Body]) -> list[int]:
    """Runs each body in a thread, all of them at once."""
    end, counts = time.monotonic() + SECONDS, [0] * len(bodies)

    def run(index: int) -> None:
        counts[index] = bodies[index](end)

    threads = [
        threading.Thread(target=run, args=(index,), name=body.__name__) for index, body in enumerate(bodies)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts


class InProcess:
    """Runs a body in another process, which is ready before the time counts."""

    def __init__(self, body: Body) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process = context.Process(target=self.serve, args=(body, theirs), daemon=True)
        self.process.start()
        self.ours.recv()

    @staticmethod
    def serve(body: Body, pipe: multiprocessing.connection.Connection) -> None:
        pipe.send(None)
        pipe.send(body(time.monotonic() + pipe.recv()))

    def start(self) -> None:
        self.ours.send(SECONDS)

    def result(self) -> int:
        count: int = self.ours.recv()
        self.process.join()
        return count


def answer(delays: list[float]) -> Body:
    """A thread that has something to do every millisecond, and notes by how much it is late."""

    def web(end: float) -> int:
        def once() -> None:
            due = time.perf_counter() + 0.001
            time.sleep(0.001)
            delays.append((time.perf_counter() - due) * 1e3)

        return repeat(once, end)

    return web


def lateness(beside: Sequence[Body], processes: Sequence[InProcess] = ()) -> float:
    """Returns by how many milliseconds a thread is late, at the 99th percentile, beside other work."""
    delays: list[float] = []
    for process in processes:
        process.start()
    in_threads([answer(delays), *beside])
    for process in processes:
        process.result()
    return statistics.quantiles(delays, n=100)[98]


def unpack_usually(end: float) -> int:
    return repeat(lambda: msgpack.unpackb(MESSAGE), end)


def unpack_off_the_lock(end: float) -> int:
    return repeat(lambda: offlock_msgpack.unpackb(MESSAGE), end)


def computes_in_threads() -> float:
    return sum(in_threads([compute] * 4)) / SECONDS


def computes_in_processes() -> float:
    processes = [InProcess(compute) for _ in range(len(os.sched_getaffinity(0)))]
    for process in processes:
        process.start()
    return sum(process.result() for process in processes) / SECONDS


def writes(lines: int) -> float:
    """Returns how many lines four threads write in a second, so many at a time."""
    text = b"a line of a log\n" * lines
    with ExitStack() as files:

        def writer(end: float) -> int:
            file = files.enter_context(open(os.devnull, "wb", buffering=0))
            return repeat(lambda: file.write(text), end)

        return sum(in_threads([writer] * 4)) * lines / SECONDS


def allocates(*, in_cycles: bool) -> float:
    """Returns how many thousand lists two threads make in a second, beside many live objects."""
    alive = [{"number": number, "self": []} for number in range(200_000)]

    def allocate(end: float) -> int:
        def once() -> None:
            for _ in range(1_000):
                made: list[object] = []
                made.append(made if in_cycles else None)

        return repeat(once, end)

    made = sum(in_threads([allocate] * 2)) / SECONDS
    del alive
    return made


@dataclass(frozen=True)
class Proof:
    """A program, the finding about it, and the program as the advice says."""

    finding: str
    advice: str
    figure: str
    before: Callable[[], float]
    after: Callable[[], float]


PROOFS = [
    Proof(
        "main_holder",
        "move that work off the lock: offlock.msgpack for msgpack",
        "late_ms",
        lambda: lateness([unpack_usually]),
        lambda: lateness([unpack_off_the_lock]),
    ),
    Proof(
        "brief_users",
        "take the computing threads out of this process",
        "late_ms",
        lambda: lateness([compute]),
        lambda: lateness([], [InProcess(compute)]),
    ),
    Proof(
        "saturated",
        "move work to other processes, one per processor, instead of four threads",
        "items_per_s",
        computes_in_threads,
        computes_in_processes,
    ),
    Proof(
        "hand_over",
        "batch small operations: 100 lines a write",
        "items_per_s",
        lambda: writes(1),
        lambda: writes(100),
    ),
    Proof(
        "garbage",
        "allocate less in the hot paths: no cycles",
        "items_per_s",
        lambda: allocates(in_cycles=True),
        lambda: allocates(in_cycles=False),
    ),
]


def find(proof: Proof) -> None:
    """Checks that the program has the finding, which other programs on the machine may hide for a while."""
    text = ""
    for _ in range(ATTEMPTS):
        with lock.measure(stacks=None) as trace:
            proof.before()
        assert trace.summary is not None
        if proof.finding in {finding["kind"] for finding in trace.summary.to_dict()["findings"]}:
            return
        text = str(trace.summary)
    sys.exit(f"{proof.finding} is not among the findings:\n{text}")


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from bench import keep, make_parser, make_row

    options = make_parser().parse_args()
    rows = []
    for proof in PROOFS:
        find(proof)
        rounds = [(proof.before(), proof.after()) for _ in range(ROUNDS)]
        before, after = (statistics.median(column) for column in zip(*rounds, strict=True))
        figures = {f"before_{proof.figure}": round(before, 3), f"after_{proof.figure}": round(after, 3)}
        rows.append(make_row(f"{proof.finding}: {proof.advice}", figures))
        print(f"{proof.finding}: {proof.advice}: {json.dumps(figures)}")
    keep(options.json, rows, "msgpack")


if __name__ == "__main__":
    main()
