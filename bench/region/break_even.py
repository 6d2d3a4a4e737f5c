"""From what size on is leaving the lock worth it?

For each operation and size, calls that hold the lock (`release="never"`) and calls that leave it (`"always"`) in
three situations: alone; beside a thread that computes in Python; and in two threads at once. Alternating, medians.

    script/python bench/region/break_even.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import threading
import time
from collections.abc import Callable

import offlock
import offlock.tiktoken

SIZES = [64, 256, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]
SENTENCE = (
    "The quick brown fox jumps over the lazy dog; 12,345 times it did so, and then (naturally) it slept. "
)
ROUNDS = 7
SLICE = 0.06
"""Seconds of one measurement."""

Call = Callable[[str], object]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoding", default="o200k_base")
    parser.add_argument("--json", help="write the results to this file")
    args = parser.parse_args()
    results = {name: table(name, operation) for name, operation in operations(args.encoding).items()}
    if args.json:
        with open(args.json, "w") as file:
            json.dump(
                {"versions": versions(), "encoding": args.encoding, "operations": results}, file, indent=1
            )


def versions() -> dict[str, str]:
    return {"offlock": offlock.__version__, "python": sys.version.split()[0], "machine": platform.machine()}


def operations(encoding: str) -> dict[str, Callable[[int], Call]]:
    """For each operation, what makes a call of a given size; the call takes the value of `release=`."""
    enc = offlock.tiktoken.get_encoding(encoding)

    def text(size: int) -> str:
        return (SENTENCE * (size // len(SENTENCE) + 1))[:size]

    def encode(size: int) -> Call:
        input = text(size)
        return lambda release: enc.encode_ordinary(input, release=release)

    def count(size: int) -> Call:
        input = text(size)
        return lambda release: enc.count(input, release=release)

    def decode(size: int) -> Call:
        ids = enc.encode_packed(text(size))
        input = enc.encode_ordinary(text(size))
        assert len(ids) == len(input)
        return lambda release: enc.decode(input, release=release)

    return {"tokens.encode": encode, "tokens.count": count, "tokens.decode": decode}


def table(name: str, operation: Callable[[int], Call]) -> list[dict[str, float]]:
    print(f"\n{name}: calls that leave the lock against calls that hold it")
    print(
        f"{'bytes':>9} {'us a call':>10} {'alone':>8} {'beside a computing thread':>28} {'two threads':>13}"
    )
    rows = []
    for size in SIZES:
        row = measure(size, operation(size))
        rows.append(row)
        beside = f"{row['beside']:.3f} (it: {row['other']:.2f})"
        print(
            f"{size:>9} {row['us']:>10.2f} {row['alone']:>8.3f} {beside:>28} {row['two']:>13.3f}", flush=True
        )
    return rows


def measure(size: int, call: Call) -> dict[str, float]:
    """Ratios of speeds, leaving the lock : holding it. `other` is what the computing thread gets on with."""
    rounds = [one_round(call) for _ in range(ROUNDS)]
    ratios = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
    return {"bytes": size, **ratios}


def one_round(call: Call) -> dict[str, float]:
    hold, leave = alone(call, "never"), alone(call, "always")
    beside_hold, other_hold = beside_computing(call, "never")
    beside_leave, other_leave = beside_computing(call, "always")
    return {
        "us": 1e6 / hold,
        "alone": leave / hold,
        "beside": beside_leave / beside_hold,
        "other": other_leave / other_hold,
        "two": two_threads(call, "always") / two_threads(call, "never"),
    }


def rate(call: Call, release: str) -> float:
    """Calls per second."""
    calls, start = 0, time.perf_counter()
    end = start + SLICE
    while True:
        call(release)
        calls += 1
        now = time.perf_counter()
        if now >= end:
            return calls / (now - start)


def alone(call: Call, release: str) -> float:
    return rate(call, release)


def beside_computing(call: Call, release: str) -> tuple[float, float]:
    """The calls' rate, and that of the thread that computes."""
    turns, stop = 0, False

    def compute() -> None:
        nonlocal turns
        while not stop:
            turns += 1

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        start, before = time.perf_counter(), turns
        calls = rate(call, release)
        return calls, (turns - before) / (time.perf_counter() - start)
    finally:
        stop = True
        thread.join()


def two_threads(call: Call, release: str) -> float:
    """Both threads' calls per second."""
    rates: list[float] = []
    threads = [threading.Thread(target=lambda: rates.append(rate(call, release))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


if __name__ == "__main__":
    main()
