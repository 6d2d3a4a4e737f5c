"""Measures what Ray adds to the time in which one process writes files of tokens.

A shard is 60 MB of documents of 1 to 20 KB in JSON lines, in gzip: prose, code and many scripts, the same ones in several
orders. All shards are links to one file. One process and Ray's actors, with as many processors, take turns; the figures are
medians. Ray runs already. The same with a thousand shards of one short document, where most of the time goes into what is done
once for each shard; and how long Ray takes to start, and to write one such shard.

    script/python bench/pipeline/scale_out.py [--json FILE] [FOLDER]

It needs Ray: pip install ray
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import offlock.ray
from offlock import pipeline

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import Row, keep, make_parser, make_row

DATA = Path(os.environ.get("OFFLOCK_DATA", Path(__file__).parents[2] / ".cache/corpora"))
ROUNDS = 3
LARGE, SMALL = 8, 1000
"""How many shards there are."""
Way = Callable[[Path, Path], pipeline.Summary]


def main() -> None:
    parser = make_parser()
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    args = parser.parse_args()
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        print("Ray is not installed")
        return
    with tempfile.TemporaryDirectory() as made:
        large, small, one = Path(made, "large"), Path(made, "small"), Path(made, "one")
        write_large(large, args.folder)
        write_small(small, SMALL)
        write_small(one, 1)
        rows = [start(ray, one)]
        for threads in (1, 2):
            ways = {"one process": in_one_process(threads), "Ray": on_ray(threads)}
            rows += compare(f"{LARGE} shards of 60 MB, {threads} processors", ways, large)
        rows += compare(f"{SMALL} shards of a document, 2 processors", ways, small)
    keep(args.json, rows, "ray")


def write_large(folder: Path, data: Path) -> None:
    chance = random.Random(1)
    documents = []
    for name in ("prose", "code", "multi"):
        text = gzip.decompress((data / f"{name}.txt.gz").read_bytes()).decode(errors="ignore")
        at = 0
        while at < len(text):
            length = int(1000 * 20 ** chance.random())
            documents.append(text[at : at + length])
            at += length
    folder.mkdir()
    texts = [text for _ in range(4) for text in chance.sample(documents, len(documents))]
    write_shard(folder / "0.jsonl.gz", texts)
    for number in range(1, LARGE):
        os.link(folder / "0.jsonl.gz", folder / f"{number}.jsonl.gz")


def write_small(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        write_shard(folder / f"{number}.jsonl.gz", [f"document {number}"])


def write_shard(path: Path, texts: list[str]) -> None:
    lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    path.write_bytes(gzip.compress(lines.encode(), 6))


def in_one_process(threads: int) -> Way:
    def run(shards: Path, out: Path) -> pipeline.Summary:
        return pipeline.read(shards, num_threads=threads).tokens("o200k_base").write(out, output="megatron")

    return run


def on_ray(actors: int) -> Way:
    def run(shards: Path, out: Path) -> pipeline.Summary:
        tokens = pipeline.read(shards).tokens("o200k_base")
        return offlock.ray.write(tokens, out, output="megatron", num_actors=actors)

    return run


def start(ray: Any, one: Path) -> Row:
    began = time.perf_counter()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    started = time.perf_counter()
    taken, _ = timed(on_ray(1), one)
    print(f"Ray starts in {started - began:.1f} s, and writes a first shard in {taken:.1f} s")
    return make_row("the first shard", {"start_s": started - began, "write_s": taken}, "Ray")


def timed(way: Way, shards: Path) -> tuple[float, pipeline.Summary]:
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        summary = way(shards, Path(out))
        return time.perf_counter() - began, summary


def compare(case: str, ways: dict[str, Way], shards: Path) -> list[Row]:
    """Lets the ways take turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        counted = set()
        for name in random.sample(list(ways), len(ways)):
            taken, summary = timed(ways[name], shards)
            times[name].append(taken)
            counted.add((summary.bytes, summary.tokens))
        [(size, _)] = counted
    rows = []
    for name, taken in times.items():
        seconds = statistics.median(taken)
        ratio = statistics.median(a / b for a, b in zip(taken, times["one process"], strict=True))
        print(
            f"{case:40} {name:12} {seconds:6.2f} s {size / seconds / 1e6:7.1f} MB/s {ratio:5.2f} times one process"
        )
        rows.append(
            make_row(case, {"seconds": seconds, "MB_per_s": size / seconds / 1e6, "ratio": ratio}, name)
        )
    return rows


if __name__ == "__main__":
    main()
