"""Measures a flight recorder: script/python bench/lock/flight.py [--json FILE]

- Four threads of tiny writes hand the lock over as fast as they can, and two threads compute and wait, for 30 s each.
- Throughput is that with a recorder, as a multiple of that without: medians of alternating seconds.
- The process's resident memory is read after one million events and after ten, of which 4 MiB are kept.
- A dump of the last 30 s is timed ten times, and by how much a thread that sleeps 1 ms is late meanwhile.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from offlock import lock

SECONDS = 30
EVENTS = 10_000_000


def write() -> None:
    for _ in range(100):
        os.write(OUT, b"x")


def compute() -> None:
    sum(range(20_000))
    time.sleep(0.0005)


OUT = os.open(os.devnull, os.O_WRONLY)
PROGRAMS: dict[str, tuple[Callable[[], None], int]] = {"hand-overs": (write, 4), "computing": (compute, 2)}


class Busy:
    """Threads that repeat some work until they are stopped."""

    def __init__(self, work: Callable[[], None], count: int) -> None:
        self.done = 0
        self.stopped = False
        self.threads = [threading.Thread(target=self.run, args=(work,)) for _ in range(count)]

    def run(self, work: Callable[[], None]) -> None:
        while not self.stopped:
            work()
            self.done += 1

    def __enter__(self) -> Busy:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = True
        for thread in self.threads:
            thread.join()

    def speed(self, seconds: float = 1.0) -> float:
        before, began = self.done, time.perf_counter()
        time.sleep(seconds)
        return (self.done - before) / (time.perf_counter() - began)


def resident() -> float:
    """Returns this process's resident memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def throughput(program: Busy) -> float:
    ratios = []
    for _ in range(15):
        without = program.speed()
        with lock.FlightRecorder(seconds=SECONDS):
            ratios.append(program.speed() / without)
    return statistics.median(ratios)


def memory() -> dict[str, float]:
    """Returns the memory after the first and after the last million events, in 4 MiB."""
    figures: dict[str, float] = {}
    with Busy(*PROGRAMS["hand-overs"]), lock.FlightRecorder(seconds=3600, memory=4 << 20) as recorder:
        assert isinstance(recorder, lock.FlightRecorder)
        before = lock.GlobalTimer.acquisitions()
        # Each hand-over is three events: a thread wants the lock, acquires it and releases it.
        while (events := 3 * (lock.GlobalTimer.acquisitions() - before)) < EVENTS:
            time.sleep(0.2)
            if events > EVENTS / 10:
                figures.setdefault("first_rss_mib", round(resident(), 1))
        figures["last_rss_mib"] = round(resident(), 1)
        figures["kept_mib"] = round(recorder.memory / (1 << 20), 2)
    return figures


def dumps(work: Callable[[], None], count: int, folder: str) -> dict[str, float]:
    """Times dumps, and how late a thread is beside them and without them."""
    late: list[float] = []

    def probe() -> None:
        began = time.perf_counter()
        time.sleep(0.001)
        late.append((time.perf_counter() - began - 0.001) * 1e3)

    with lock.FlightRecorder(seconds=SECONDS) as recorder, Busy(work, count), Busy(probe, 1):
        assert isinstance(recorder, lock.FlightRecorder)
        time.sleep(SECONDS)
        beside = late.copy()
        late.clear()
        times, stats = [], None
        for _ in range(10):
            began = time.perf_counter()
            stats = recorder.dump(f"{folder}/dump.offlock")
            times.append((time.perf_counter() - began) * 1e3)
            time.sleep(0.1)
        during = late.copy()
    assert stats is not None
    return {
        "events": stats.events,
        "dump_mib": round(stats.bytes / (1 << 20), 2),
        "dump_ms": round(statistics.median(times), 1),
        "late_ms": round(statistics.quantiles(beside, n=100)[98], 2),
        "late_during_dumps_ms": round(statistics.quantiles(during, n=100)[98], 2),
    }


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from bench import keep, make_parser, make_row

    options = make_parser().parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (work, count) in PROGRAMS.items():
            with Busy(work, count) as program:
                ratio = throughput(program)
            figures = {"throughput": round(ratio, 3), **dumps(work, count, folder)}
            rows.append(make_row(name, figures))
            print(name, figures, flush=True)
        lock.GlobalTimer.enable()
        figures = memory()
        rows.append(make_row("ten million events in 4 MiB", figures))
        print(figures)
    keep(options.json, rows)


if __name__ == "__main__":
    main()
