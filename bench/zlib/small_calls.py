"""Compares calls that programs make once a line or once a response, in offlock and in the standard library:
script/python bench/zlib/small_calls.py [--json FILE]

Every answer is compared before anything is timed. Times are medians of runs that alternate.
"""

from __future__ import annotations

import gzip
import io
import os
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from offlock import gzip as our_gzip
from offlock import zlib as our_zlib

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import by_figure, keep, make_parser

Row = Callable[[Any, Any], object]

LINES = 200_000
CALLS = 5_000
ROUNDS = 9
PLAIN = b"".join(b"%d some line of text %d\n" % (number, number * 7919 % 10_007) for number in range(LINES))
PACKED = gzip.compress(PLAIN)
PIECES = [PLAIN[at : at + 100] for at in range(0, 1_000_000, 100)]
SMALL = gzip.compress(b"x" * 100)
DATA = Path(os.environ.get("OFFLOCK_DATA", Path(__file__).resolve().parents[2] / ".cache/corpora"))
PROSE = gzip.decompress((DATA / "prose.txt.gz").read_bytes())


def iterate(module: Any, mode: str) -> int:
    with module.open(io.BytesIO(PACKED), mode) as lines:
        return sum(1 for _ in lines)


def readlines(module: Any, mode: str) -> int:
    count = 0
    with module.open(io.BytesIO(PACKED), mode) as lines:
        while lines.readline():
            count += 1
    return count


def compressed(module: Any) -> int:
    stream = module.compressobj()
    return len(zlib.decompress(b"".join([*map(stream.compress, PIECES), stream.flush()])))


def written(module: Any) -> int:
    file = io.BytesIO()
    with module.GzipFile(fileobj=file, mode="wb") as packed:
        for piece in PIECES:
            packed.write(piece)
    return len(gzip.decompress(file.getvalue()))


def response(module: Any, text: bytes) -> int:
    file = io.BytesIO()
    with module.GzipFile(fileobj=file, mode="wb") as packed:
        packed.write(text)
    return len(text)


def times(count: int, call: Callable[[], object]) -> int:
    for _ in range(count):
        call()
    return count


ROWS: dict[str, tuple[int, Row]] = {
    "lines of 'rb'": (LINES, lambda gz, _: iterate(gz, "rb")),
    "lines of 'rt'": (LINES, lambda gz, _: iterate(gz, "rt")),
    "readline of 'rb'": (LINES, lambda gz, _: readlines(gz, "rb")),
    "readline of 'rt'": (LINES, lambda gz, _: readlines(gz, "rt")),
    "compressobj()": (CALLS, lambda _, z: times(CALLS, z.compressobj)),
    "compressobj().flush()": (CALLS, lambda _, z: times(CALLS, lambda: z.compressobj().flush())),
    "decompressobj()": (CALLS, lambda _, z: times(CALLS, z.decompressobj)),
    "GzipFile to write, closed": (
        CALLS,
        lambda gz, _: times(CALLS, lambda: gz.GzipFile(fileobj=io.BytesIO(), mode="wb").close()),
    ),
    "GzipFile to read, closed": (
        CALLS,
        lambda gz, _: times(CALLS, lambda: gz.GzipFile(fileobj=io.BytesIO(SMALL)).close()),
    ),
    "GzipFile: 1 KB": (
        CALLS,
        lambda gz, _: sum(response(gz, PROSE[at * 1000 : at * 1000 + 1000]) for at in range(CALLS)),
    ),
    "compress, 100 bytes": (len(PIECES), lambda _, z: compressed(z)),
    "GzipFile.write, 100 bytes": (len(PIECES), lambda gz, _: written(gz)),
    "crc32, 20 bytes": (CALLS * 4, lambda _, z: times(CALLS * 4, lambda: z.crc32(b"twenty bytes of text"))),
    "adler32, 20 bytes": (
        CALLS * 4,
        lambda _, z: times(CALLS * 4, lambda: z.adler32(b"twenty bytes of text")),
    ),
}


def measure(row: Row) -> dict[str, float]:
    """Returns the median seconds of both libraries, which take turns."""
    calls = {"offlock": (our_gzip, our_zlib), "zlib": (gzip, zlib)}
    answers = {row(*modules) for modules in calls.values()}
    assert len(answers) == 1, answers
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS):
        for name in list(calls)[:: 1 if turn % 2 else -1]:
            start = time.perf_counter()
            row(*calls[name])
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in taken.items()}


def main() -> None:
    options = make_parser().parse_args()
    rows = {}
    for name, (count, row) in ROWS.items():
        seconds = measure(row)
        rows[name] = {
            "times_zlib": round(seconds["zlib"] / seconds["offlock"], 2),
            "us_each": {module: round(taken / count * 1e6, 3) for module, taken in seconds.items()},
        }
        print(f"{name:30} x{rows[name]['times_zlib']:<6} {rows[name]['us_each']}")
    keep(options.json, by_figure(rows), zlib=zlib.ZLIB_RUNTIME_VERSION)


if __name__ == "__main__":
    main()
