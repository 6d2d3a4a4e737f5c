"""A corpus, and what one process makes of it: the oracle of all engines."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from offlock import pipeline

SHARDS = 6


def add_shard(path: Path, documents: int, seed: int = 0) -> None:
    """Writes a shard of texts that do not repeat words, so that encoding them takes its time: 3 MB a second."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnop", k=9)) for _ in range(30_000)]
    lines = (json.dumps({"text": " ".join(chance.choices(words, k=100))}) for _ in range(documents))
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)


def everything(folder: Path) -> dict[str, bytes]:
    """Returns all files below a folder but the lock, with what a run keeps for itself, by name."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Shards in two folders, one of whose names has a blank, among them an empty one."""
    folder = tmp_path / "a corpus"
    for number in range(SHARDS - 1):
        add_shard(folder / f"part {number % 2}" / f"{number}.jsonl.gz", 20 + 10 * number, number)
    add_shard(folder / "empty.jsonl", 0)
    return folder


@pytest.fixture
def tokens(corpus: Path) -> pipeline.Tokens:
    return pipeline.read(corpus).tokens("gpt2")


@pytest.fixture
def whole(tokens: pipeline.Tokens, tmp_path: Path) -> Path:
    """The folder that one process writes."""
    tokens.write(tmp_path / "whole", output="megatron")
    return tmp_path / "whole"
