"""Compares `offlock tokens count` with the ways in which Python programs count the tokens of compressed shards.

The shards are JSON lines of documents of 1 to 20 KB, of which none repeats; there are two, each written
with gzip and with Zstandard. The counts are compared first. The ways take turns, in another order each round; the figures are
medians, in MB of text per second and as the ratio of its time to offlock's. offlock is a process of its own, whose time is what it
reports itself, without its start and the loading of the vocabulary, as for the others.

    OFFLOCK=target/release/offlock script/python bench/pipeline/python_bench.py [--json FILE] [FOLDER]

Peers that are not installed are left out: pip install tiktoken orjson gigatoken
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import Row, keep, make_parser, make_row

DATA = Path(os.environ.get("OFFLOCK_DATA", Path(__file__).parents[2] / ".cache/corpora"))
COMMAND = os.environ.get("OFFLOCK", "offlock")
ENCODING = "o200k_base"
ROUNDS = 5
Way = Callable[[list[Path]], tuple[int, float]]


def main() -> None:
    parser = make_parser()
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        texts = documents(args.folder)
        size = sum(len(text.encode()) for text in texts)
        for packing in ("gz", "zst"):
            shards = write_shards(Path(folder), texts, packing)
            rows += compare(f"1 thread, {packing}", ways(packing), shards, size)
        rows += compare("2 threads, gz", {"offlock": offlock_on(2)}, write_shards(Path(folder), texts, "gz"), size)
    keep(args.json, rows, "tiktoken", "orjson", "gigatoken")


def documents(folder: Path) -> list[str]:
    """Cuts the texts into documents of 1 to 20 KB, and mixes these."""
    chance = random.Random(1)
    made = []
    for name in ("prose", "code", "multi"):
        text = gzip.decompress((folder / f"{name}.txt.gz").read_bytes()).decode(errors="ignore")
        at = 0
        while at < len(text):
            length = int(1000 * 20 ** chance.random())
            made.append(text[at : at + length])
            at += length
    chance.shuffle(made)
    return made


def write_shards(folder: Path, texts: list[str], packing: str) -> list[Path]:
    """Writes two shards of records as datasets have them."""
    paths = []
    for part in range(2):
        records = ({"id": str(at), "text": text, "meta": {"n": at}} for at, text in enumerate(texts[part::2]))
        plain = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
        path = folder / f"{packing}-{part}.jsonl.{packing}"
        if packing == "gz":
            path.write_bytes(gzip.compress(plain, 6))
        else:
            subprocess.run(["zstd", "-q", "-f", "-", "-o", path], input=plain, check=True)
        paths.append(path)
    return paths


def ways(packing: str) -> dict[str, Way]:
    """The ways of one thread, the first of which is what the others are compared with."""
    found: dict[str, Way] = {"offlock": offlock_on(1)}
    tiktoken, orjson, gigatoken = map(module, ("tiktoken", "orjson", "gigatoken"))
    if packing == "gz" and tiktoken:
        encoding = tiktoken.get_encoding(ENCODING)
        encode = lambda text: len(encoding.encode_ordinary(text))
        found["gzip + json + tiktoken"] = by_hand(json.loads, encode)
        if orjson:
            found["gzip + orjson + tiktoken"] = by_hand(orjson.loads, encode)
    if packing == "gz" and gigatoken and orjson:
        tokenizer = gigatoken.Tokenizer.from_tiktoken(ENCODING) if hasattr(gigatoken, "Tokenizer") else None
        if tokenizer:
            found["gzip + orjson + gigatoken"] = by_hand(orjson.loads, lambda text: len(tokenizer.encode(text)))
    return found


def module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed", file=sys.stderr)
        return None


def offlock_on(threads: int) -> Way:
    def run(shards: list[Path]) -> tuple[int, float]:
        command = [COMMAND, "tokens", "count", "--encoding", ENCODING, "--json", f"-j{threads}", *shards]
        counted = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return counted["tokens"], counted["seconds"]

    return run


def by_hand(loads: Callable[[bytes], Any], count: Callable[[str], int]) -> Way:
    def run(shards: list[Path]) -> tuple[int, float]:
        start = time.perf_counter()
        tokens = 0
        for shard in shards:
            with gzip.open(shard) as lines:
                tokens += sum(count(loads(line)["text"]) for line in lines)
        return tokens, time.perf_counter() - start

    return run


def compare(case: str, ways: dict[str, Way], shards: list[Path], size: int) -> Iterator[Row]:
    """Lets the ways take turns."""
    counts = {name: way(shards)[0] for name, way in ways.items()}
    if len(set(counts.values())) > 1:
        print(f"{case}: the counts differ: {counts}", file=sys.stderr)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name in random.sample(list(ways), len(ways)):
            times[name].append(ways[name](shards)[1])
    ours = times["offlock"]
    for name, taken in times.items():
        rate = size / statistics.median(taken) / 1e6
        ratio = statistics.median(theirs / mine for theirs, mine in zip(taken, ours, strict=True))
        print(f"{case:16} {name:28} {rate:7.1f} MB/s   {ratio:5.2f} times offlock's time")
        yield make_row(case, {"MB_per_s": rate, "ratio": ratio}, name)


if __name__ == "__main__":
    main()
