"""Compares offlock.tiktoken with other tokenizers in Python.

Each round has other documents of 1 to 20 KB, so that caches of pieces do not distort the figures. Answers are checked
first: a peer with other ids is named, with the number of documents that differ, and still timed. The libraries take
turns within each round. Each is warmed up with the documents of the round before, as in a program that tokenizes one
document after the other. The figures are medians over the rounds, in MB of text per second and as a ratio to tiktoken.

    script/python bench/tokens/python_bench.py [--encoding NAME] [--json FILE] [FOLDER WITH prose, code, multi .txt.gz]

Peers that are not installed are left out: pip install tiktoken fastokens gigatoken quicktok-v1 toktok-rs
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import os
import queue
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import offlock.tiktoken
from offlock.tiktoken.load import dump_tiktoken_bpe

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import Row, keep, make_parser, make_row

DATA = Path(os.environ.get("OFFLOCK_DATA", Path(__file__).parents[2] / ".cache/corpora"))
ROUNDS = 9
CHARACTERS = 250_000
"""Characters of a text in a round."""
THREAD_ROUNDS = 3
"""Few but long rounds, of all texts, so that cold starts of threads and time slices of 5 ms have little influence."""
KINDS = ["list", "numpy", "count"]
TEXTS = ["prose", "code", "multi"]
THREADS = [1, 2, 4]
Encode = Callable[[str], object]


@dataclass
class Way:
    """A library, and its functions for `KINDS`."""

    name: str
    list: Encode | None = None
    numpy: Encode | None = None
    count: Encode | None = None


def main() -> None:
    parser = make_parser()
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument("--encoding", action="append", help="cl100k_base and o200k_base if not given")
    args = parser.parse_args()
    results = []
    for encoding in args.encoding or ["cl100k_base", "o200k_base"]:
        ways = list(all_ways(encoding))
        for name in TEXTS:
            rounds = documents(args.folder / f"{name}.txt.gz", ROUNDS, CHARACTERS)
            check(ways, rounds[0], f"{encoding} {name}")
            results += [{"encoding": encoding, "text": name, **row} for row in compare(ways, rounds)]
            show(f"{encoding}, {name}", chosen(results, encoding, name), [(kind, 0) for kind in KINDS])
        results += [
            {"encoding": encoding, "text": "all", **row}
            for row in compare_threads(ways, all_texts(args.folder))
        ]
        show(
            f"{encoding}, all texts", chosen(results, encoding, "all"), [("list", count) for count in THREADS]
        )
    peers = ["tiktoken", "fastokens", "gigatoken", "quicktok-v1", "toktok-rs", "numpy"]
    keep(args.json, [kept(result) for result in results], *peers)


def kept(result: dict[str, Any]) -> Row:
    """Makes a row of the result."""
    case = f"{result['encoding']}, {result['text']}, {result['kind']}"
    if result["threads"]:
        case += f", {result['threads']} threads"
    return make_row(case, {"MB_per_s": result["mb_s"]}, result["name"])


# The libraries.


def all_ways(encoding: str) -> Iterator[Way]:
    ours = offlock.tiktoken.get_encoding(encoding)
    yield Way(
        "offlock",
        ours.encode_ordinary,
        lambda text: ours.encode_to_numpy(text, disallowed_special=()),
        lambda text: ours.count(text, disallowed_special=()),
    )
    with tempfile.TemporaryDirectory() as folder:
        ranks = os.path.join(folder, f"{encoding}.tiktoken")
        dump_tiktoken_bpe(ours._mergeable_ranks, ranks)
        for peer in (tiktoken_way, fastokens_way, gigatoken_way, quicktok_way, toktok_way):
            try:
                yield peer(ours, ranks)
            except ImportError as error:
                print(f"left out: {error}", file=sys.stderr)


def tiktoken_way(ours: offlock.tiktoken.Encoding, ranks: str) -> Way:
    enc = importlib.import_module("tiktoken").Encoding(
        ours.name,
        pat_str=ours._pat_str,
        mergeable_ranks=ours._mergeable_ranks,
        special_tokens=ours._special_tokens,
    )
    return Way(
        "tiktoken",
        enc.encode_ordinary,
        lambda text: enc.encode_to_numpy(text, disallowed_special=()),
        lambda text: len(enc.encode_ordinary(text)),
    )


def fastokens_way(ours: offlock.tiktoken.Encoding, ranks: str) -> Way:
    enc = importlib.import_module("fastokens").Tokenizer.from_tiktoken(ranks, encoding=ours.name)
    return Way("fastokens", lambda text: enc.encode_ordinary(text).ids)


def gigatoken_way(ours: offlock.tiktoken.Encoding, ranks: str) -> Way:
    tokenizer = importlib.import_module("gigatoken").Tokenizer.from_tiktoken(ranks)
    return Way("gigatoken", tokenizer.as_tiktoken().encode_ordinary, tokenizer.encode)


def quicktok_way(ours: offlock.tiktoken.Encoding, ranks: str) -> Way:
    enc = importlib.import_module("quicktok").get_encoding(ours.name)
    return Way("quicktok-v1", enc.encode_ordinary, count=enc.count)


def toktok_way(ours: offlock.tiktoken.Encoding, ranks: str) -> Way:
    count = importlib.import_module("toktok").batch_count
    return Way("toktok-rs", count=lambda text: count([text], ours.name, threads=1)[0])


# The texts.


def documents(file: Path, count: int, characters: int) -> list[list[str]]:
    """Returns documents for each of `count` rounds. No document is in two rounds."""
    with gzip.open(file, "rt", encoding="utf-8") as opened:
        text = opened.read()
    chance, at, rounds = random.Random(file.name), 0, []
    for _ in range(count):
        end, cut = at + min(characters, len(text) // count), []
        while at < end:
            size = min(chance.randint(1_000, 20_000), end - at)
            cut.append(text[at : at + size])
            at += size
        rounds.append(cut)
    return rounds


def all_texts(folder: Path) -> list[list[str]]:
    """Returns rounds of documents of every kind, each round three times."""
    kinds = [documents(folder / f"{name}.txt.gz", THREAD_ROUNDS, sys.maxsize) for name in TEXTS]
    rounds = [[text for texts in kinds for text in texts[number]] for number in range(THREAD_ROUNDS)]
    for texts in rounds:
        random.Random(len(texts)).shuffle(texts)
    return rounds * 3


def megabytes(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


# Measuring.


def check(ways: list[Way], texts: list[str], where: str) -> None:
    """Prints which libraries return other ids than offlock."""
    for way in ways:
        wrong = sum(not agrees(way, text, ways[0]) for text in texts)
        if wrong:
            print(f"{way.name}: other ids than offlock in {wrong} of {len(texts)} documents ({where})")


def agrees(way: Way, text: str, ours: Way) -> bool:
    assert ours.list
    expected = ours.list(text)
    assert isinstance(expected, list)
    return (
        (way.list is None or way.list(text) == expected)
        and (way.numpy is None or list(way.numpy(text)) == expected)  # type: ignore[call-overload]
        and (way.count is None or way.count(text) == len(expected))
    )


def compare(ways: list[Way], rounds: list[list[str]]) -> list[dict[str, object]]:
    """Compares the libraries in one thread, for each kind of result."""
    rows = []
    for kind in KINDS:
        calls = {way.name: getattr(way, kind) for way in ways if getattr(way, kind)}
        speeds = alternate(calls, rounds, lambda call, texts: run(call, texts))
        rows += [{"kind": kind, "threads": 0, "name": name, "mb_s": speed} for name, speed in speeds.items()]
    return rows


def compare_threads(ways: list[Way], rounds: list[list[str]]) -> list[dict[str, object]]:
    """Compares the libraries in threads that take documents from one queue. The results are lists."""
    rows = []
    for threads in THREADS:
        calls = {way.name: way.list for way in ways if way.list}
        speeds = alternate(calls, rounds, lambda call, texts: run_threads(call, texts, threads))  # noqa: B023
        rows += [
            {"kind": "list", "threads": threads, "name": name, "mb_s": speed}
            for name, speed in speeds.items()
        ]
    return rows


def alternate(
    calls: dict[str, Encode], rounds: list[list[str]], measure: Callable[[Encode, list[str]], None]
) -> dict[str, float]:
    """Returns the median MB/s of each call.

    The calls take turns on the documents of each round, each time in another order. Before it is timed, each call works
    on the documents of another round.
    """
    speeds: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for number, texts in enumerate(rounds):
        size = megabytes(texts)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            measure(calls[name], rounds[number - 1])
            start = time.perf_counter()
            measure(calls[name], texts)
            speeds[name].append(size / (time.perf_counter() - start))
    return {name: round(statistics.median(values), 1) for name, values in speeds.items()}


def run(call: Encode, texts: list[str]) -> None:
    for text in texts:
        call(text)


def run_threads(call: Encode, texts: list[str], count: int) -> None:
    left = queue.SimpleQueue[str]()
    for text in texts:
        left.put(text)

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                call(left.get_nowait())

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# Printing.


def chosen(rows: list[dict[str, object]], encoding: str, text: str) -> list[dict[str, object]]:
    return [row for row in rows if (row["encoding"], row["text"]) == (encoding, text)]


def show(title: str, rows: list[dict[str, object]], columns: list[tuple[str, int]]) -> None:
    heads = [f"{kind}, {threads} thr." if threads else kind for kind, threads in columns]
    print(f"\n{title}: MB/s (and times tiktoken)\n{'':14}" + "".join(f"{head:>16}" for head in heads))
    for name in dict.fromkeys(row["name"] for row in rows):
        print(f"{name:14}" + "".join(f"{cell(rows, name, *column):>16}" for column in columns), flush=True)


def cell(rows: list[dict[str, object]], name: object, kind: str, threads: int) -> str:
    speeds = {row["name"]: row["mb_s"] for row in rows if (row["kind"], row["threads"]) == (kind, threads)}
    mine, theirs = speeds.get(name), speeds.get("tiktoken")
    if not isinstance(mine, float):
        return "-"
    return f"{mine:.0f} ({mine / theirs:.1f})" if isinstance(theirs, float) else f"{mine:.0f}"


if __name__ == "__main__":
    main()
