"""Work on real documents with 1, 2 and 4 threads while a probe simulates a web request.

The probe is a thread that sleeps for one millisecond at a time. Its wake-up delay is the delay of a request handler in
the same process. All libraries get the same documents, the same number of seconds and the same number of threads.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import offlock
import offlock.lock
import offlock.msgpack
import offlock.tiktoken
import offlock.zlib

try:
    import tiktoken
except ImportError:
    tiktoken = None
try:
    import msgpack
except ImportError:
    msgpack = None

PROBE_INTERVAL_NS = 1_000_000
MESSAGES = 20
MESSAGE_DOCUMENTS = 50


@dataclass(frozen=True)
class Way:
    """One way to do an operation: its name in files, its name in the table, and the call."""

    key: str
    name: str
    call: Callable[[Any], Any]


@dataclass(frozen=True)
class Operation:
    """An operation on each document, the ways to do it, and the seconds of one measurement."""

    name: str
    inputs: Sequence[str] | Sequence[bytes]
    sizes: Sequence[int]
    ways: Sequence[Way]
    seconds: float
    answer: Callable[[Any], Any] = lambda result: result
    """Returns the part of the result in which all ways must agree."""
    traces: Path | None = None
    """The folder for traces of the lock; None for no traces."""


@dataclass(frozen=True)
class Result:
    """The figures of one way with one number of threads."""

    operation: str
    way: str
    threads: int
    mb_per_s: float
    late_p50_ms: float
    late_p99_ms: float
    late_max_ms: float


def main() -> None:
    """Run the comparison and print it as a table."""
    args = parse_arguments()
    documents = list(read_documents(args.documents))
    if not documents:
        sys.exit(f"{args.documents}: lists no document that is UTF-8 text")
    size = sum(len(text.encode()) for text in documents) / 1e6
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}: {len(documents):,} documents, {size:.1f} MB\n")
    results = []
    for operation in [tokenizing(documents, args), compressing(documents, args), unpacking(documents, args)]:
        check_answers(operation)
        of_operation = [
            measure(operation, way, threads) for way in operation.ways for threads in args.threads
        ]
        print_table(operation.name, of_operation)
        results += of_operation
    if args.json:
        args.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("documents", type=Path, help="a file with the path of one document per line")
    parser.add_argument(
        "--encoding", default="o200k_base", help="name of the encoding (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="seconds per row of the first table (default: %(default)s)"
    )
    parser.add_argument(
        "--threads",
        type=thread_counts,
        default=[1, 2, 4],
        help="numbers of threads (default: 1,2,4)",
        metavar="N,N",
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--traces", type=Path, help="also record traces of the lock in this folder")
    return parser.parse_args()


def thread_counts(text: str) -> list[int]:
    """Parse "1,2,4"."""
    counts = [int(part) for part in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("a count of threads is 1 or more")
    return counts


def read_documents(listing: Path) -> Iterator[str]:
    """Yield the text of each listed file that is UTF-8."""
    for name in listing.read_text().splitlines():
        try:
            yield Path(name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def tokenizing(documents: list[str], args: argparse.Namespace) -> Operation:
    """Tokenizing, in offlock also with a call that holds the lock."""
    ours = offlock.tiktoken.get_encoding(args.encoding)
    ways = [
        *tiktoken_itself(ours),
        Way("holding", "offlock, holding the lock", lambda text: ours.encode_ordinary(text, release="never")),
        Way("off", "offlock, off the lock", ours.encode_ordinary),
    ]
    sizes = [len(text.encode()) for text in documents]
    return Operation(f"tokens, {args.encoding}", documents, sizes, ways, args.seconds, traces=args.traces)


def tiktoken_itself(ours: offlock.tiktoken.Encoding) -> list[Way]:
    """The original tiktoken, if it is installed."""
    if tiktoken is None:
        return []
    theirs = tiktoken.Encoding(
        ours.name,
        pat_str=ours._pat_str,
        mergeable_ranks=ours._mergeable_ranks,
        special_tokens=ours._special_tokens,
    )
    return [Way("peer", f"tiktoken {tiktoken.__version__}", theirs.encode_ordinary)]


def compressing(documents: list[str], args: argparse.Namespace) -> Operation:
    """Compression in zlib's format, at its default level."""
    inputs = [text.encode() for text in documents]
    ways = [
        Way("zlib", "Python's zlib", zlib.compress),
        Way("off", "offlock, off the lock", offlock.zlib.compress),
    ]
    return Operation(
        "zlib.compress", inputs, [len(data) for data in inputs], ways, args.seconds / 3, zlib.decompress
    )


def unpacking(documents: list[str], args: argparse.Namespace) -> Operation:
    """Unpacking messages with a record for each line of some documents, and extracting one field of all records."""
    inputs = list(messages(documents))
    theirs = [Way("peer", f"msgpack {version('msgpack')}", msgpack.unpackb)] if msgpack else []
    ways = [
        *theirs,
        Way("off", "offlock, off the lock", offlock.msgpack.unpackb),
        Way("field", "offlock, one field", lambda message: offlock.msgpack.extract(message, "text")),
    ]
    return Operation(
        "msgpack.unpackb", inputs, [len(message) for message in inputs], ways, args.seconds / 3, text_field
    )


def messages(documents: list[str]) -> Iterator[bytes]:
    """Pack the lines of the first documents."""
    for start in range(0, min(len(documents), MESSAGES * MESSAGE_DOCUMENTS), MESSAGE_DOCUMENTS):
        lines = [line for text in documents[start : start + MESSAGE_DOCUMENTS] for line in text.splitlines()]
        yield offlock.msgpack.packb([{"text": line, "size": len(line)} for line in lines])


def text_field(unpacked: list[Any]) -> list[str]:
    """Return the texts of unpacked records, or of an extracted field."""
    return [record["text"] if isinstance(record, dict) else record for record in unpacked]


def check_answers(operation: Operation) -> None:
    """Exit unless all ways return the same answers for some of the documents."""
    for input in operation.inputs[:: max(1, len(operation.inputs) // 50)]:
        answers = [operation.answer(way.call(input)) for way in operation.ways]
        if any(answer != answers[0] for answer in answers):
            sys.exit(f"{operation.name}: the ways disagree on the document that begins {input[:60]!r}")


def recorded(folder: Path | None, way: Way, threads: int) -> AbstractContextManager[object]:
    """Record a trace of the lock into a file named after the run."""
    return offlock.lock.trace(folder / f"python-{way.key}-{threads}.offlock") if folder else nullcontext()


def measure(operation: Operation, way: Way, threads: int) -> Result:
    """Do the operation on documents in turn on `threads` threads, while the probe runs."""
    with recorded(operation.traces, way, threads):
        return measure_traced(operation, way, threads)


def measure_traced(operation: Operation, way: Way, threads: int) -> Result:
    """Measure without starting a trace."""
    progress(f"Python: {operation.name}, {way.name}, {threads} thread{'s' * (threads > 1)} …")
    inputs, sizes = operation.inputs, operation.sizes
    turn = itertools.count()
    started = time.perf_counter()
    deadline = started + operation.seconds
    done = [0] * threads

    def work(slot: int) -> None:
        while time.perf_counter() < deadline:
            index = next(turn) % len(inputs)
            way.call(inputs[index])
            done[slot] += sizes[index]

    late: list[int] = []
    stop = threading.Event()
    probe = threading.Thread(target=run_probe, args=(late, stop), name="request")
    workers = [threading.Thread(target=work, args=(n,), name=f"worker {n + 1}") for n in range(threads)]
    for thread in [probe, *workers]:
        thread.start()
    for thread in workers:
        thread.join()
    elapsed = time.perf_counter() - started
    stop.set()
    probe.join()
    progress("")
    late.sort()
    return Result(
        operation.name,
        way.name,
        threads,
        sum(done) / elapsed / 1e6,
        percentile_ms(late, 0.50),
        percentile_ms(late, 0.99),
        percentile_ms(late, 1.0),
    )


def run_probe(late: list[int], stop: threading.Event) -> None:
    """Sleep for one millisecond at a time and record the delay of each wake-up in ns."""
    while not stop.is_set():
        asked = time.perf_counter_ns() + PROBE_INTERVAL_NS
        time.sleep(PROBE_INTERVAL_NS / 1e9)
        late.append(time.perf_counter_ns() - asked)


def percentile_ms(ordered: list[int], share: float) -> float:
    """Return the percentile `share` (0 to 1) of ordered nanoseconds, in milliseconds."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e6


def print_table(name: str, results: list[Result]) -> None:
    """Print the results of an operation; speed-up is against one thread of the same way."""
    print(f"{name:28}{'threads':>7}{'MB/s':>9}{'speed-up':>10}   a request is late by, ms")
    print(f"{'':54}{'p50':>9}{'p99':>9}{'max':>9}")
    for way, rows in itertools.groupby(results, key=lambda result: result.way):
        of_way = list(rows)
        for row in of_way:
            label = way if row is of_way[0] else ""
            speed_up = f"{row.mb_per_s / of_way[0].mb_per_s:.2f}x"
            print(
                f"{label:28}{row.threads:>7}{row.mb_per_s:>9.1f}{speed_up:>10}"
                f"{row.late_p50_ms:>9.2f}{row.late_p99_ms:>9.2f}{row.late_max_ms:>9.2f}"
            )
    print()


def progress(message: str) -> None:
    """Show the current measurement, on a terminal in its last line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{message}", end="", file=sys.stderr, flush=True)
    elif message:
        print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
