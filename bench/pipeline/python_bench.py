"""Compares `offlock.pipeline` with the ways in which Python programs count the tokens of compressed shards.

The shards are two in each round, of documents of 1 to 20 KB: JSON lines, written with gzip and with Zstandard, and the same
as MessagePack with gzip and as Parquet with Zstandard. Each round has other documents, and each way a process of its own,
which sees each document once, after those of a first round that is not timed. The counts are compared. The ways take turns,
in another order each round; the figures are medians, in MB of text per second and as the ratio of its time to offlock's.
`parts` are offlock's modules called one after the other, on whole shards. The command `offlock tokens count` is a new process
each time, whose tables and caches are empty; its time is what it reports itself, without its start and the loading of the
vocabulary, as for the others.

Then the delay of a thread that wants to sleep for 1 ms while another thread counts with offlock, or by the
fastest of the other ways, against nothing besides: the 99th percentile, in ms.

    OFFLOCK=target/release/offlock script/python bench/pipeline/python_bench.py [--json FILE] [FOLDER]

Peers that are not installed are left out: pip install tiktoken orjson gigatoken msgpack pyarrow
"""

from __future__ import annotations

import functools
import gzip
import importlib
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import offlock.gzip
import offlock.jsonl
import offlock.msgpack
import offlock.pipeline
import offlock.tiktoken
from offlock.tiktoken.load import dump_tiktoken_bpe

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import Row, keep, make_parser, make_row

DATA = Path(os.environ.get("OFFLOCK_DATA", Path(__file__).parents[2] / ".cache/corpora"))
COMMAND = os.environ.get("OFFLOCK", "offlock")
ENCODING = "o200k_base"
SUFFIXES = {"gz": "jsonl.gz", "zst": "jsonl.zst", "msgpack": "msgpack.gz", "parquet": "parquet"}
ROUNDS = 6
NAPS = 400
FASTEST_BY_HAND = "gzip + orjson + gigatoken"
Way = Callable[[list[Path]], tuple[int, float]]
Maker = Callable[[], Way]


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
        rows += compare("1 thread, zst", {"offlock": lambda: offlock_on(1)}, "zst", rounds)
        longer = [rounds[0], together(rounds[1:4]), together(rounds[4:7])]
        rows += compare("2 threads, gz", ways_for_threads(), "gz", longer)
        rows += compare("1 thread, msgpack", ways_for_messages(), "msgpack", rounds)
        rows += compare("1 thread, parquet", ways_for_tables(), "parquet", rounds)
        rows += delays([shards.paths["gz"] for shards in rounds])
    keep(args.json, rows, "tiktoken", "orjson", "gigatoken", "msgpack", "pyarrow")


@dataclass
class Shards:
    """The shards of a round, by their packing, and the bytes of their texts."""

    paths: dict[str, list[Path]]
    size: int


def together(rounds: list[Shards]) -> Shards:
    """One round of all their shards: several threads are to have some time to work in."""
    paths = {packing: [path for shards in rounds for path in shards.paths[packing]] for packing in SUFFIXES}
    return Shards(paths, sum(shards.size for shards in rounds))


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
    return [made[at :: ROUNDS + 1] for at in range(ROUNDS + 1)]


def write_shards(folder: Path, texts: list[str]) -> Shards:
    """Writes two shards of records as datasets have them, and these packed in four ways."""
    folder.mkdir()
    paths: dict[str, list[Path]] = {"gz": [], "zst": [], "msgpack": [], "parquet": []}
    for part in range(2):
        records = [{"id": str(at), "text": text, "meta": {"n": at}} for at, text in enumerate(texts[part::2])]
        plain = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
        for packing, files in paths.items():
            files.append(folder / f"{part}.{SUFFIXES[packing]}")
        paths["gz"][-1].write_bytes(gzip.compress(plain, 6))
        subprocess.run(["zstd", "-q", "-", "-o", paths["zst"][-1]], input=plain, check=True)
        packed = b"".join(map(offlock.msgpack.packb, records))
        paths["msgpack"][-1].write_bytes(gzip.compress(packed, 6))
        if parquet := module("pyarrow.parquet"):
            table = module("pyarrow").Table.from_pylist(records)
            parquet.write_table(table, paths["parquet"][-1], compression="zstd")
    return Shards(paths, sum(len(text.encode()) for text in texts))


def ways() -> dict[str, Maker]:
    """The ways to read JSON lines in gzip on one thread."""
    orjson, tiktoken, gigatoken = map(module, ("orjson", "tiktoken", "gigatoken"))
    found: dict[str, Maker] = {
        "offlock": lambda: offlock_on(1),
        "the command": lambda: command,
        "parts": lambda: parts,
    }
    if tiktoken:
        found["gzip + json + tiktoken"] = lambda: by_hand(json.loads, tiktoken_encode())
    if tiktoken and orjson:
        found["gzip + orjson + tiktoken"] = lambda: by_hand(orjson.loads, tiktoken_encode())
    if gigatoken and orjson:
        found[FASTEST_BY_HAND] = lambda: by_hand(orjson.loads, gigatoken_tokenizer().encode)
    if gigatoken:
        found["gigatoken.encode_files"] = lambda: by_files(gigatoken_tokenizer().encode_files)
    return found


def ways_for_threads() -> dict[str, Maker]:
    return {"offlock": lambda: offlock_on(1), "offlock, 2 threads": lambda: offlock_on(2)}


def ways_for_messages() -> dict[str, Maker]:
    """The ways to read MessagePack in gzip on one thread."""
    found: dict[str, Maker] = {"offlock": lambda: offlock_on(1)}
    msgpack = module("msgpack")
    if msgpack and module("tiktoken"):
        found["gzip + msgpack + tiktoken"] = lambda: by_messages(msgpack.Unpacker, tiktoken_encode())
    return found


def ways_for_tables() -> dict[str, Maker]:
    """The ways to read Parquet on one thread."""
    found: dict[str, Maker] = {"offlock": lambda: offlock_on(1)}
    parquet = module("pyarrow.parquet")
    if parquet and module("tiktoken"):
        found["pyarrow + tiktoken"] = lambda: by_pyarrow(parquet.ParquetFile, tiktoken_encode())
    return found if parquet else {}


def tiktoken_encode() -> Callable[[str], list[int]]:
    """Returns tiktoken's function, with offlock's vocabulary, as tiktoken would download it."""
    ours = offlock.tiktoken.get_encoding(ENCODING)
    encoding = module("tiktoken").Encoding(
        ENCODING,
        pat_str=ours._pat_str,
        mergeable_ranks=ours._mergeable_ranks,
        special_tokens=ours._special_tokens,
    )
    encode: Callable[[str], list[int]] = encoding.encode_ordinary
    return encode


def gigatoken_tokenizer() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        ranks = Path(folder) / f"{ENCODING}.tiktoken"
        dump_tiktoken_bpe(offlock.tiktoken.get_encoding(ENCODING)._mergeable_ranks, str(ranks))
        return module("gigatoken").Tokenizer.from_tiktoken(str(ranks))


@functools.cache
def module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed", file=sys.stderr)
        return None


def offlock_on(threads: int) -> Way:
    return lambda shards: timed(lambda: counted(shards, threads))


def counted(shards: list[Path], threads: int) -> int:
    return offlock.pipeline.read(shards, num_threads=threads).tokens(ENCODING).count().tokens


def command(shards: list[Path]) -> tuple[int, float]:
    words = [COMMAND, "tokens", "count", "--encoding", ENCODING, "--json", "-j1", *shards]
    found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    return found["tokens"], found["seconds"]


def timed(count: Callable[[], int]) -> tuple[int, float]:
    start = time.perf_counter()
    return count(), time.perf_counter() - start


def parts(shards: list[Path]) -> tuple[int, float]:
    """offlock's modules one after the other."""
    encoding = offlock.tiktoken.get_encoding(ENCODING)

    def tokens(shard: Path) -> int:
        texts = offlock.jsonl.extract(offlock.gzip.decompress(shard.read_bytes()), "text")
        return sum(map(encoding.count, texts))

    return timed(lambda: sum(map(tokens, shards)))


def by_files(encode_files: Any) -> Way:
    return lambda shards: timed(lambda: sum(map(len, encode_files(shards, parallel=False))))


def by_hand(loads: Callable[[bytes], Any], encode: Callable[[str], Any]) -> Way:
    def tokens(shard: Path) -> int:
        with gzip.open(shard) as lines:
            return sum(len(encode(loads(line)["text"])) for line in lines)

    return lambda shards: timed(lambda: sum(map(tokens, shards)))


def by_messages(unpacker: Any, encode: Callable[[str], Any]) -> Way:
    def tokens(shard: Path) -> int:
        with gzip.open(shard) as file:
            return sum(len(encode(record["text"])) for record in unpacker(file))

    return lambda shards: timed(lambda: sum(map(tokens, shards)))


def by_pyarrow(open_table: Any, encode: Callable[[str], Any]) -> Way:
    def tokens(shard: Path) -> int:
        batches = open_table(shard).iter_batches(columns=["text"], use_threads=False)
        return sum(len(encode(text)) for batch in batches for text in batch["text"].to_pylist())

    return lambda shards: timed(lambda: sum(map(tokens, shards)))


def compare(case: str, ways: dict[str, Maker], packing: str, rounds: list[Shards]) -> Iterator[Row]:
    """Lets the ways take turns, each in a process of its own."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    workers = {name: Worker(make) for name, make in ways.items()}
    for shards in rounds:
        counts = {}
        for name in random.sample(list(ways), len(ways)):
            counts[name], taken = workers[name](shards.paths[packing])
            if shards is not rounds[0]:
                times[name].append(taken)
        if len(set(counts.values())) > 1:
            print(f"{case}: the counts differ: {counts}", file=sys.stderr)
    if not ways:
        return
    size = statistics.mean(shards.size for shards in rounds[1:])
    ours = times["offlock"]
    for name, taken in times.items():
        rate = size / statistics.median(taken) / 1e6
        ratio = statistics.median(theirs / mine for theirs, mine in zip(taken, ours, strict=True))
        print(f"{case:16} {name:28} {rate:7.1f} MB/s   {ratio:5.2f} times offlock's time")
        yield make_row(case, {"MB_per_s": rate, "ratio": ratio}, name)


class Worker:
    """A process that counts in one way. The program that it is a copy of has encoded nothing."""

    def __init__(self, make: Maker) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, other = context.Pipe()
        context.Process(target=self.serve, args=(make, other), daemon=True).start()

    @staticmethod
    def serve(make: Maker, connection: multiprocessing.connection.Connection) -> None:
        way = make()
        while True:
            connection.send(way(connection.recv()))

    def __call__(self, shards: list[Path]) -> tuple[int, float]:
        self.connection.send(shards)
        found: tuple[int, float] = self.connection.recv()
        return found


def delays(rounds: list[list[Path]]) -> Iterator[Row]:
    """How late a thread wakes up beside one that counts, and beside none."""
    found = ways()
    counting: dict[str, Callable[[list[Path]], object]] = {
        "nothing": lambda _: time.sleep(NAPS / 1000),
        "offlock": lambda shards: counted(shards, 1),
    }
    if FASTEST_BY_HAND in found:
        counting[FASTEST_BY_HAND] = found[FASTEST_BY_HAND]()
    late: dict[str, list[float]] = {name: [] for name in counting}
    for shards in rounds:
        for name in random.sample(list(counting), len(counting)):
            late[name] += delays_beside(lambda count=counting[name], shards=shards: count(shards))
    for name, lateness in late.items():
        p99 = statistics.quantiles(lateness, n=100)[98] * 1000
        print(f"{'delay':16} {name:28} {p99:7.2f} ms (p99 of {len(lateness)})")
        yield make_row("delay of another thread", {"p99_ms": p99}, name)


def delays_beside(count: Callable[[], object]) -> list[float]:
    worker = threading.Thread(target=count)
    worker.start()
    late = []
    while worker.is_alive():
        start = time.perf_counter()
        time.sleep(0.001)
        late.append(time.perf_counter() - start - 0.001)
    return late


if __name__ == "__main__":
    main()
