"""Compares `offlock tokens count` with the ways in which Python programs count the tokens of compressed shards.

The shards are JSON lines of documents of 1 to 20 KB, two in each round, written with gzip and with Zstandard, and the same
as Parquet, with Zstandard as well. Each round has
other documents, so that caches of pieces do not distort the figures. The counts are compared. The ways take turns, in another order each round; the figures are
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import offlock.tiktoken
from offlock.tiktoken.load import dump_tiktoken_bpe

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
        rounds = [
            write_shards(Path(folder) / str(at), texts) for at, texts in enumerate(documents(args.folder))
        ]
        rows += compare("1 thread, gz", ways(), "gz", rounds)
        rows += compare("1 thread, zst", {"offlock": offlock_on(1)}, "zst", rounds)
        rows += compare(
            "2 threads, gz", {"offlock": offlock_on(1), "offlock, 2 threads": offlock_on(2)}, "gz", rounds
        )
        rows += compare("1 thread, parquet", ways_for_tables(), "parquet", rounds)
    keep(args.json, rows, "tiktoken", "orjson", "gigatoken", "pyarrow")


@dataclass
class Shards:
    """The shards of a round, by their packing, and the bytes of their texts."""

    paths: dict[str, list[Path]]
    size: int


def documents(folder: Path) -> list[list[str]]:
    """Cuts the texts into documents of 1 to 20 KB, mixes these, and deals them out to the rounds."""
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
    return [made[at::ROUNDS] for at in range(ROUNDS)]


def write_shards(folder: Path, texts: list[str]) -> Shards:
    """Writes two shards of records as datasets have them, and these packed in three ways."""
    folder.mkdir()
    paths: dict[str, list[Path]] = {"gz": [], "zst": [], "parquet": []}
    for part in range(2):
        records = [{"id": str(at), "text": text, "meta": {"n": at}} for at, text in enumerate(texts[part::2])]
        plain = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
        for packing, files in paths.items():
            files.append(folder / f"{part}.jsonl.{packing}")
        paths["gz"][-1].write_bytes(gzip.compress(plain, 6))
        subprocess.run(["zstd", "-q", "-", "-o", paths["zst"][-1]], input=plain, check=True)
        parquet = module("pyarrow.parquet")
        if parquet:
            table = module("pyarrow").Table.from_pylist(records)
            parquet.write_table(table, paths["parquet"][-1], compression="zstd")
    return Shards(paths, sum(len(text.encode()) for text in texts))


def ways() -> dict[str, Way]:
    """The ways to read gzip on one thread."""
    found: dict[str, Way] = {"offlock": offlock_on(1)}
    tiktoken, orjson, gigatoken = map(module, ("tiktoken", "orjson", "gigatoken"))
    ours = offlock.tiktoken.get_encoding(ENCODING)
    if tiktoken:
        encode = original(tiktoken).encode_ordinary
        found["gzip + json + tiktoken"] = by_hand(json.loads, encode)
        if orjson:
            found["gzip + orjson + tiktoken"] = by_hand(orjson.loads, encode)
    if gigatoken and orjson:
        with tempfile.TemporaryDirectory() as folder:
            ranks = Path(folder) / f"{ENCODING}.tiktoken"
            dump_tiktoken_bpe(ours._mergeable_ranks, str(ranks))
            encoder = gigatoken.Tokenizer.from_tiktoken(str(ranks))
        found["gzip + orjson + gigatoken"] = by_hand(orjson.loads, encoder.encode)
    return found


def ways_for_tables() -> dict[str, Way]:
    """The ways to read Parquet on one thread."""
    found: dict[str, Way] = {"offlock": offlock_on(1)}
    tiktoken, parquet = map(module, ("tiktoken", "pyarrow.parquet"))
    if tiktoken and parquet:
        found["pyarrow + tiktoken"] = by_pyarrow(parquet.ParquetFile, original(tiktoken).encode_ordinary)
    return found if parquet else {}


def original(tiktoken: Any) -> Any:
    """tiktoken's encoding, made of offlock's vocabulary, as tiktoken would download it."""
    ours = offlock.tiktoken.get_encoding(ENCODING)
    return tiktoken.Encoding(
        ENCODING,
        pat_str=ours._pat_str,
        mergeable_ranks=ours._mergeable_ranks,
        special_tokens=ours._special_tokens,
    )


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


def by_hand(loads: Callable[[bytes], Any], encode: Callable[[str], Any]) -> Way:
    def run(shards: list[Path]) -> tuple[int, float]:
        start = time.perf_counter()
        tokens = 0
        for shard in shards:
            with gzip.open(shard) as lines:
                tokens += sum(len(encode(loads(line)["text"])) for line in lines)
        return tokens, time.perf_counter() - start

    return run


def by_pyarrow(open_table: Any, encode: Callable[[str], Any]) -> Way:
    def run(shards: list[Path]) -> tuple[int, float]:
        start = time.perf_counter()
        tokens = 0
        for shard in shards:
            for batch in open_table(shard).iter_batches(columns=["text"], use_threads=False):
                tokens += sum(len(encode(text)) for text in batch["text"].to_pylist())
        return tokens, time.perf_counter() - start

    return run


def compare(case: str, ways: dict[str, Way], packing: str, rounds: list[Shards]) -> Iterator[Row]:
    """Lets the ways take turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for shards in rounds:
        counts = {}
        for name in random.sample(list(ways), len(ways)):
            counts[name], taken = ways[name](shards.paths[packing])
            times[name].append(taken)
        if len(set(counts.values())) > 1:
            print(f"{case}: the counts differ: {counts}", file=sys.stderr)
    if not ways:
        return
    size = statistics.mean(shards.size for shards in rounds)
    ours = times["offlock"]
    for name, taken in times.items():
        rate = size / statistics.median(taken) / 1e6
        ratio = statistics.median(theirs / mine for theirs, mine in zip(taken, ours, strict=True))
        print(f"{case:16} {name:28} {rate:7.1f} MB/s   {ratio:5.2f} times offlock's time")
        yield make_row(case, {"MB_per_s": rate, "ratio": ratio}, name)


if __name__ == "__main__":
    main()
