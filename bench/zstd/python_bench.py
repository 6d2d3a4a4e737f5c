"""Compares offlock.zstd with backports.zstd, or compression.zstd: script/python bench/zstd/python_bench.py [--json FILE]

Every answer is compared before anything is timed. Times are medians of runs that alternate. A row works through 1 MB of
different data, or one larger piece. `times_original` above 1 says that offlock is faster; `two_threads` is the speed of
two threads as a multiple of that of one. The texts come from the folder OFFLOCK_DATA or .cache/corpora.
"""

from __future__ import annotations

import gzip
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from offlock import zstd as ours

if sys.version_info >= (3, 14):
    from compression import zstd as original
else:
    from backports import zstd as original

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import by_figure, keep, make_parser

Call = Callable[[bytes], bytes]

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("OFFLOCK_DATA", ROOT / ".cache/corpora"))
SIZES = {"100 bytes": 100, "1 KB": 1_000, "10 KB": 10_000, "100 KB": 100_000, "10 MB": 10_000_000}
MODULES: dict[str, Any] = {"offlock": ours, "original": original}


def samples() -> dict[str, dict[str, list[bytes]]]:
    """Returns text and random bytes in pieces of each size: 1 MB in all, or one larger piece."""
    text = gzip.decompress((DATA / "prose.txt.gz").read_bytes()) * 3
    noise = random.Random(42).randbytes(10_000_000)

    def pieces(data: bytes, size: int) -> list[bytes]:
        return [data[at : at + size] for at in range(0, max(size, 1_000_000 // size * size), size)]

    return {
        kind: {name: pieces(data, size) for name, size in SIZES.items()}
        for kind, data in {"text": text[200_000:], "random": noise}.items()
    }


def measure(calls: dict[str, Call], inputs: Sequence[bytes], rounds: int) -> dict[str, float]:
    """Returns the median seconds for all inputs for each contestant. The contestants take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        names = list(calls)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            call = calls[name]
            start = time.perf_counter()
            for data in inputs:
                call(data)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def row(calls: dict[str, Call], inputs: Sequence[bytes], plain_bytes: int) -> dict[str, Any]:
    times = measure(calls, inputs, rounds=9 if plain_bytes < 10**7 else 5)
    return {
        "times_original": round(times["original"] / times["offlock"], 2),
        "MB_per_s": {name: round(plain_bytes / 1e6 / seconds, 1) for name, seconds in times.items()},
    }


def decompressing(pieces: list[bytes]) -> dict[str, Any]:
    packed = [original.compress(plain) for plain in pieces]
    calls: dict[str, Call] = {name: module.decompress for name, module in MODULES.items()}
    for name, call in calls.items():
        assert [call(data) for data in packed] == pieces, name
    return row(calls, packed, sum(map(len, pieces)))


def compressing(pieces: list[bytes], level: int) -> dict[str, Any]:
    calls: dict[str, Call] = {
        name: lambda plain, module=module: module.compress(plain, level)  # type: ignore[misc]
        for name, module in MODULES.items()
    }
    packed = {name: [call(plain) for plain in pieces] for name, call in calls.items()}
    for name, made in packed.items():
        assert [original.decompress(data) for data in made] == pieces, name
    sizes = {name: sum(map(len, made)) for name, made in packed.items()}
    ratio = round(sizes["offlock"] / sizes["original"], 4)
    return row(calls, pieces, sum(map(len, pieces))) | {"size_to_originals": ratio}


def seconds_of(work: Call, items: Sequence[bytes], threads: int) -> float:
    """Returns the seconds that `threads` threads take for all of `items` together."""

    def work_through(share: Sequence[bytes]) -> None:
        for item in share:
            work(item)

    workers = [
        threading.Thread(target=work_through, args=(items[number::threads],)) for number in range(threads)
    ]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def two_threads(work: Call, inputs: Sequence[bytes]) -> float:
    """Returns the speed of two threads as a multiple of that of one."""
    once = measure({"": work}, inputs, rounds=1)[""]
    items = list(inputs) * 2 * max(1, round(0.15 / once))
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(5):
        for threads, taken in times.items():
            taken.append(seconds_of(work, items, threads))
    one, two = map(statistics.median, times.values())
    return round(one / two, 2)


def main() -> None:
    options = make_parser().parse_args()
    data = samples()
    rows: dict[str, Any] = {}
    for kind, by_size in data.items():
        for size, pieces in by_size.items():
            rows[f"decompress, {kind}, {size}"] = decompressing(pieces)
            for level in (1, 3, 9, 19) if size == "100 KB" else (1, 3, 9):
                rows[f"compress level {level}, {kind}, {size}"] = compressing(pieces, level)
    for size, pieces in data["text"].items():
        if size == "10 MB":
            continue
        packed = [original.compress(plain) for plain in pieces]
        gains = {}
        for name, module in MODULES.items():
            gains[f"compress, {name}"] = two_threads(module.compress, pieces)
            gains[f"decompress, {name}"] = two_threads(module.decompress, packed)
        rows[f"two threads, text, {size}"] = {"two_threads": gains}
    for name, figures in rows.items():
        print(f"{name:45} {figures}")
    keep(options.json, by_figure(rows), "backports.zstd", zstd=ours.zstd_version)


if __name__ == "__main__":
    main()
