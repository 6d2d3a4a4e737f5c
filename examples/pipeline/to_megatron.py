"""Tokenize a corpus for Megatron-LM, in one process, on all processors, and read the first document back.

Usage: to_megatron.py SHARD_OR_FOLDER... --out FOLDER [--encoding o200k_base] [--field text]

The shards are JSON lines or MessagePack maps, which may be compressed. A run that was killed is continued by the next one.
"""

from __future__ import annotations

import argparse
import struct
import sys
from pathlib import Path

from offlock import pipeline, tiktoken

HEADER = struct.Struct("<9sQBQQ")  # magic, version, code of the type, sequences, documents + 1
TYPES = {4: "i", 8: "H"}  # the codes of Megatron's file: int32 and uint16


def first_document(index: Path) -> list[int]:
    """The tokens of the first sequence of an index and the file of tokens beside it."""
    with index.open("rb") as file:
        magic, version, code, sequences, _ = HEADER.unpack(file.read(HEADER.size))
        assert (magic, version) == (b"MMIDIDX\0\0", 1), index
        length = struct.unpack("<i", file.read(4))[0] if sequences else 0
    with index.with_suffix(".bin").open("rb") as file:
        form = f"<{length}{TYPES[code]}"
        return list(struct.unpack(form, file.read(struct.calcsize(form))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", nargs="+")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--encoding", default="o200k_base")
    parser.add_argument("--field", default="text")
    options = parser.parse_args()

    corpus = pipeline.read(options.shards, on_error="report").field(options.field)
    summary = corpus.tokens(options.encoding).write(options.out, output="megatron", resume=True)

    for shard in summary.shards:
        print(f"{shard.path}: {shard.documents} documents, {shard.tokens} tokens")
    print(
        f"in all {summary.documents} documents, {summary.tokens} tokens, half of them at most {summary.percentile(50)} tokens"
    )
    for failure in summary.failures:
        print(f"left out: {failure}", file=sys.stderr)

    indexes = sorted(options.out.rglob("*.idx"))
    if indexes:
        text = tiktoken.get_encoding(options.encoding).decode(first_document(indexes[0]))
        print(f"the first document of {indexes[0].name}: {text[:60]!r}")


if __name__ == "__main__":
    main()
