"""Measures the overhead of tracing the lock in Python: script/python bench/lock/python_bench.py [--json FILE]

- Each workload runs untraced, with the three metrics enabled, and with a trace into a file, without stacks and with
  them, in one process and in turn. A ratio is the median over the rounds of a time as a multiple of the untraced time of the same round.
- Each workload runs in processes that have and have not imported offlock.lock.

Two workloads consist of lock switches only: two pairs of threads pass a token. The third has few: four threads compute.
"""

from __future__ import annotations

import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Workload = Callable[[int], None]
ROUNDS = 31
ENOUGH = 0.2
PROCESSES = 5


def run_all(bodies: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pipes(rounds: int) -> None:
    """Two pairs of threads that pass a byte through pipes."""
    ends = [os.pipe() for _ in range(4)]

    def play(source: int, target: int) -> None:
        for _ in range(rounds):
            os.write(target, os.read(source, 1))

    bodies = []
    for there, back in ((ends[0], ends[1]), (ends[2], ends[3])):
        bodies += [lambda a=there[0], b=back[1]: play(a, b), lambda a=back[0], b=there[1]: play(a, b)]
        os.write(there[1], b"x")
    run_all(bodies)
    for pair in ends:
        for end in pair:
            os.close(end)


def queues(rounds: int) -> None:
    """Two pairs of threads that pass a token through queues."""

    def play(source: queue.SimpleQueue[int], target: queue.SimpleQueue[int]) -> None:
        for _ in range(rounds):
            target.put(source.get())

    bodies = []
    for _ in range(2):
        there, back = queue.SimpleQueue[int](), queue.SimpleQueue[int]()
        bodies += [lambda a=there, b=back: play(a, b), lambda a=back, b=there: play(a, b)]
        there.put(0)
    run_all(bodies)


def fibonacci(size: int) -> int:
    return size if size < 2 else fibonacci(size - 1) + fibonacci(size - 2)


def computing(rounds: int) -> None:
    """Four threads that compute."""

    def compute() -> None:
        for _ in range(rounds):
            fibonacci(12)

    run_all([compute] * 4)


WORKLOADS: dict[str, Workload] = {"pipe": pipes, "queue": queues, "computing": computing}


def seconds(workload: Workload, rounds: int) -> float:
    start = time.perf_counter()
    workload(rounds)
    return time.perf_counter() - start


def enough_rounds(workload: Workload) -> int:
    """Returns a number of rounds that takes about `ENOUGH` seconds, much longer than start and stop of a trace."""
    rounds = 100
    while (taken := seconds(workload, rounds)) < ENOUGH / 4:
        rounds *= 2
    return round(rounds * ENOUGH / taken)


def watched(workload: Workload) -> dict[str, Any]:
    """Returns the untraced time, the other times as its multiples, and the size of a trace."""
    from offlock import lock

    rounds = enough_rounds(workload)
    stats: list[lock.Stats] = []
    metrics = (lock.GlobalTimer, lock.LocalTimer, lock.WaitingThreads)

    def plain() -> None:
        workload(rounds)

    def measured() -> None:
        for metric in metrics:
            metric.enable()
        workload(rounds)
        for metric in metrics:
            metric.disable()

    def traced(stacks: float | None) -> None:
        with (
            tempfile.NamedTemporaryFile(suffix=".offlock") as file,
            lock.trace(file.name, stacks=stacks) as trace,
        ):
            workload(rounds)
            ended = trace.stop()
            assert ended is not None
            stats.append(ended)

    ways: dict[str, Callable[[], None]] = {
        "off": plain,
        "metrics": measured,
        "tracing": lambda: traced(None),
        "stacks": lambda: traced(0.001),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for turn in range(ROUNDS):
        names = list(ways)
        for name in names[turn % 4 :] + names[: turn % 4]:
            start = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - start)
    off = times.pop("off")
    events = sum(one.events for one in stats)
    return {
        "seconds": round(statistics.median(off), 4),
        "ratio": {
            name: round(statistics.median(a / b for a, b in zip(values, off, strict=True)), 3)
            for name, values in times.items()
        },
        "events": stats[-1].events,
        "lost": sum(one.lost for one in stats),
        "bytes_per_event": round(sum(one.bytes for one in stats) / events, 2),
    }


def loaded(name: str) -> float:
    """Returns the untraced time with offlock.lock imported, as a multiple of the time without the import."""
    times: dict[str, list[float]] = {"without": [], "with": []}
    for turn in range(PROCESSES):
        for way in list(times)[:: 1 if turn % 2 else -1]:
            command = [sys.executable, __file__, "--alone", name, way]
            times[way].append(float(subprocess.run(command, capture_output=True, check=True).stdout))
    return round(statistics.median(times["with"]) / statistics.median(times["without"]), 3)


def run_alone(name: str, way: str) -> None:
    if way == "with":
        import offlock.lock  # noqa: F401 - to see what having imported it costs
    workload = WORKLOADS[name]
    print(seconds(workload, 5_000) and seconds(workload, 5_000))


def main() -> None:
    # `bench` imports offlock, which a process that runs a workload alone must not do.
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from bench import by_figure, keep, make_parser

    options = make_parser().parse_args()
    results = {}
    for name, workload in WORKLOADS.items():
        results[name] = {**watched(workload), "loaded": loaded(name)}
        print(f"{name}: {json.dumps(results[name])}")
    keep(options.json, by_figure(results))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        run_alone(*sys.argv[2:])
    else:
        main()
