"""Measures how a loop of small calls and other threads slow each other down.

The contestants alternate: offlock's call, the same with `release="never"` where the call takes it, and the original's.
There are four situations: alone; beside a thread that repeatedly sleeps for 1 ms (its wake-up delay: median and 99th
percentile); beside a thread that computes in Python (its rounds per second); in four threads at once. The figures are
medians of the rounds.

    script/python bench/region/neighbours.py [--only count|gunzip|...] [--rounds 5] [--json FILE]
"""

from __future__ import annotations

import gzip
import os
import statistics
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import offlock.gzip
import offlock.tiktoken
import offlock.zlib

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import by_contestant, keep, make_parser, make_row

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("OFFLOCK_DATA", ROOT / ".cache/corpora"))
NOVEL = next(
    (file for file in (DATA / "mobydick.txt", DATA / "lines.txt") if file.exists()), DATA / "lines.txt"
)
"""Moby Dick if its file exists, otherwise other prose."""
SECONDS = 0.4
Call = Callable[[], object]
FIGURES = ["alone", "sleeper", "late p50", "late p99", "computing", "its rounds", "four"]


def contestants() -> dict[str, dict[str, Call]]:
    """Returns the calls by operation and contestant."""
    text = NOVEL.read_text()[30_000:31_500]
    data = text.encode()
    packed, zipped = zlib.compress(data), gzip.compress(data)
    encoding = offlock.tiktoken.get_encoding("o200k_base")
    return {
        "count 13 bytes": {
            "offlock": lambda: encoding.count("Hello, world."),
            "never": lambda: encoding.count("Hello, world.", release="never"),
        },
        "encode 1.5 KB": {
            "offlock": lambda: encoding.encode(text),
            "never": lambda: encoding.encode(text, release="never"),
        },
        "decompress 0.9 KB": {
            "offlock": lambda: offlock.zlib.decompress(packed),
            "never": lambda: offlock.zlib.decompress(packed, release="never"),
            "zlib": lambda: zlib.decompress(packed),
        },
        "gunzip 0.9 KB": {
            "offlock": lambda: offlock.gzip.decompress(zipped),
            "gzip": lambda: gzip.decompress(zipped),
        },
        "compress 0.4 KB": {
            "offlock": lambda: offlock.zlib.compress(data[:400]),
            "zlib": lambda: zlib.compress(data[:400]),
        },
        "crc32 1.5 KB": {"offlock": lambda: offlock.zlib.crc32(data), "zlib": lambda: zlib.crc32(data)},
    }


class Neighbour:
    """A thread that repeats a call until the end of the block."""

    def __init__(self, work: Call) -> None:
        self.rounds = 0
        self._work = work
        self._ended = False
        self._thread = threading.Thread(target=self._loop)

    def _loop(self) -> None:
        while not self._ended:
            self._work()
            self.rounds += 1

    def __enter__(self) -> Neighbour:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._thread.join()


def loop(call: Call) -> float:
    """Returns the calls per second."""
    calls, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < began + SECONDS:
        call()
        calls += 1
    return calls / (now - began)


def beside_sleeper(call: Call) -> tuple[float, float, float]:
    late = []

    def sleep() -> None:
        began = time.perf_counter()
        time.sleep(0.001)
        late.append((time.perf_counter() - began - 0.001) * 1e3)

    with Neighbour(sleep):
        rate = loop(call)
    late.sort()
    return rate, late[len(late) // 2], late[len(late) * 99 // 100]


def in_four_threads(call: Call) -> float:
    neighbours = [Neighbour(call) for _ in range(4)]
    for neighbour in neighbours:
        neighbour.__enter__()
    time.sleep(SECONDS)
    for neighbour in neighbours:
        neighbour.__exit__()
    return sum(neighbour.rounds for neighbour in neighbours) / SECONDS


def measure(call: Call) -> list[float]:
    alone = loop(call)
    rate, p50, p99 = beside_sleeper(call)
    with Neighbour(lambda: sum(range(100))) as computing:
        beside = loop(call)
    return [alone, rate, p50, p99, beside, computing.rounds / SECONDS, in_four_threads(call)]


def main() -> None:
    parser = make_parser()
    parser.add_argument("--only", default="", help="only operations whose names begin with this")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    results = {}
    for operation, calls in contestants().items():
        if not operation.startswith(args.only):
            continue
        rounds = [{name: measure(call) for name, call in calls.items()} for _ in range(args.rounds)]
        results[operation] = {
            name: {
                figure: round(statistics.median(one[name][place] for one in rounds), 3)
                for place, figure in enumerate(FIGURES)
            }
            for name in calls
        }
        show(operation, results[operation])
    keep(args.json, [*by_contestant(results), make_row("each case", {"rounds": args.rounds})])


def show(operation: str, rows: dict[str, dict[str, float]]) -> None:
    print(f"{operation} (calls per second; delays in ms)")
    print(f"  {'':10}" + "".join(f"{figure:>12}" for figure in FIGURES))
    for name, row in rows.items():
        cells = (
            f"{row[figure]:12.2f}" if "late" in figure else f"{row[figure]:12,.0f}" for figure in FIGURES
        )
        print(f"  {name:10}" + "".join(cells))


if __name__ == "__main__":
    main()
