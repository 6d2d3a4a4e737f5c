"""Measures from which size of the input on it pays to release the lock.

For each operation and size, calls that hold the lock (`release="never"`) are compared with calls that release it
(`"always"`), in four situations: alone; beside a thread that computes in Python; in two threads; in four threads.
The calls alternate, the figures are medians, and a run during which other programs use the machine is repeated.

    script/python bench/region/break_even.py [--only tokens|zlib.inflate|zstd|...] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import offlock.gzip
import offlock.tiktoken
import offlock.zlib
import offlock.zstd

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import Row, keep, make_parser, make_row

SIZES = [64, 256, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]
ZLIB_SIZES = [512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10]
SUM_SIZES = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20]
ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("OFFLOCK_DATA", ROOT / ".cache/corpora"))
SENTENCE = (
    "The quick brown fox jumps over the lazy dog; 12,345 times it did so, and then (naturally) it slept. "
)
ROUNDS = 3
SLICE = 0.06
"""Seconds of one measurement."""

Call = Callable[[str], object]


def main() -> None:
    parser = make_parser()
    parser.add_argument("--encoding", default="o200k_base")
    parser.add_argument("--only", default="", help="only operations whose names begin with this")
    args = parser.parse_args()
    results = {
        name: table(name, sizes, operation)
        for name, (sizes, operation) in operations(args.encoding).items()
        if name.startswith(args.only)
    }
    keep(
        args.json,
        [kept(name, args.encoding, figures) for name, table in results.items() for figures in table],
    )


def kept(operation: str, encoding: str, figures: dict[str, float]) -> Row:
    """Makes a row of the result from a line of a table."""
    case = f"{operation}, {encoding}" if operation.startswith("tokens") else operation
    return make_row(
        f"{case}, {figures['bytes']} bytes", {name: figures[name] for name in figures if name != "bytes"}
    )


def operations(encoding: str) -> dict[str, tuple[Sequence[int], Callable[[int], Call]]]:
    """Returns, for each operation, sizes and a function from a size to a call. The call takes the value of `release=`."""
    tokens = {name: (SIZES, operation) for name, operation in token_operations(encoding).items()}
    return tokens | zlib_operations() | zstd_operations()


def token_operations(encoding: str) -> dict[str, Callable[[int], Call]]:
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


def zlib_operations() -> dict[str, tuple[Sequence[int], Callable[[int], Call]]]:
    """Returns zlib's operations on real text. For decompression the size is that of the compressed data."""
    zlib = offlock.zlib
    prose = offlock.gzip.decompress((DATA / "prose.txt.gz").read_bytes())[200_000:]

    def deflate(size: int) -> Call:
        return lambda release: zlib.compress(prose[:size], 6, release=release)

    def inflate(size: int) -> Call:
        packed = zlib.compress(prose[: size * 5 // 2])
        return lambda release: zlib.decompress(packed, release=release)

    def gunzip(size: int) -> Call:
        packed = offlock.gzip.compress(prose[: size * 5 // 2], 6)
        return lambda release: zlib.decompress(packed, 31, release=release)

    def crc32(size: int) -> Call:
        data = prose[:size]
        return lambda release: zlib.crc32(data, release=release)

    def adler32(size: int) -> Call:
        data = prose[:size]
        return lambda release: zlib.adler32(data, release=release)

    return {
        "zlib.deflate": (ZLIB_SIZES, deflate),
        "zlib.inflate": (ZLIB_SIZES, inflate),
        "zlib.gunzip": ([2 << 10, 8 << 10], gunzip),
        "zlib.crc32": (SUM_SIZES, crc32),
        "zlib.adler32": (SUM_SIZES, adler32),
    }


def zstd_operations() -> dict[str, tuple[Sequence[int], Callable[[int], Call]]]:
    """Returns Zstandard's operations on real text. For decompression the size is that of the compressed data."""
    zstd = offlock.zstd
    prose = offlock.gzip.decompress((DATA / "prose.txt.gz").read_bytes())[200_000:]

    def compress(size: int) -> Call:
        return lambda release: zstd.compress(prose[:size], release=release)

    def decompress(size: int) -> Call:
        packed = zstd.compress(prose[: size * 5 // 2])
        return lambda release: zstd.decompress(packed, release=release)

    return {
        "zstd.compress": (ZLIB_SIZES, compress),
        "zstd.decompress": ([*ZLIB_SIZES[1:], 32 << 10], decompress),
    }


def table(name: str, sizes: Sequence[int], operation: Callable[[int], Call]) -> list[dict[str, float]]:
    print(f"\n{name}: speed of calls that release the lock, relative to calls that hold it")
    print(
        f"{'bytes':>9} {'us a call':>10} {'alone':>8} {'beside a computing thread':>28} {'two threads':>13}"
        f"{'four':>7}"
    )
    rows = []
    for size in sizes:
        row = measure(size, operation(size))
        rows.append(row)
        beside = f"{row['beside']:.3f} (it: {row['other']:.2f})"
        print(
            f"{size:>9} {row['us']:>10.2f} {row['alone']:>8.3f} {beside:>28} {row['two']:>13.3f}"
            f"{row['four']:>7.3f}",
            flush=True,
        )
    return rows


def measure(size: int, call: Call) -> dict[str, float]:
    """Returns speeds when releasing the lock as multiples of those when holding it.

    `other` is the speed of the computing thread.
    """
    rounds = [undisturbed(lambda: one_round(call)) for _ in range(ROUNDS)]
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
        "two": threads(2, call, "always") / threads(2, call, "never"),
        "four": threads(4, call, "always") / threads(4, call, "never"),
    }


def rate(call: Call, release: str) -> float:
    """Returns the calls per second of one thread."""
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
    """Returns the rate of the calls and that of the computing thread."""
    rounds, stop = 0, False

    def compute() -> None:
        nonlocal rounds
        while not stop:
            rounds += 1

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        start, before = time.perf_counter(), rounds
        calls = rate(call, release)
        return calls, (rounds - before) / (time.perf_counter() - start)
    finally:
        stop = True
        thread.join()


def threads(count: int, call: Call, release: str) -> float:
    """Returns the calls per second of all threads together."""
    rates: list[float] = []
    workers = [threading.Thread(target=lambda: rates.append(rate(call, release))) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(rates)


def undisturbed(run: Callable[[], dict[str, float]], tries: int = 3) -> dict[str, float]:
    """Repeats the run until other programs use little processor time, at most `tries` times; returns the last result."""
    while True:
        others, start = cpu_of_others(), time.perf_counter()
        result = run()
        tries -= 1
        if not tries or cpu_of_others() - others < 0.1 * (time.perf_counter() - start):
            return result
        time.sleep(0.1)


def cpu_of_others() -> float:
    """Returns the processor time in seconds that other programs have used; 0 if unknown."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except FileNotFoundError:
        return 0.0
    user, nice, system, _idle, _wait, *interrupts = map(int, fields)
    return (user + nice + system + sum(interrupts[:3])) / 100 - time.process_time()


if __name__ == "__main__":
    main()
