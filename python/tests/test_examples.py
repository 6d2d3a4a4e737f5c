"""The programs in `examples/pipeline` do what they say."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from offlock import tiktoken

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "pipeline"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
TEXTS = [f"document {number}: no two of them are equal, {number * number}" for number in range(5000)]


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    path = tmp_path / "shard.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in TEXTS)
        file.write('{"text": 7}\n')
    return path


def tokens() -> int:
    return sum(map(len, tiktoken.get_encoding("o200k_base").encode_batch(TEXTS)))


def test_a_corpus_becomes_megatron_files(shard: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "to_megatron.py"), str(shard), "--out", str(tmp_path / "out")]
    for _ in range(2):  # the second run finds everything done
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        # Each document has an end.
        assert f"in all 5000 documents, {tokens() + 5000} tokens" in done.stdout
        assert f"the first document of shard.idx: {TEXTS[0] + '<|endoftext|>'!r}"[:60] in done.stdout
    assert (tmp_path / "out" / "shard.bin").stat().st_size == 4 * (tokens() + 5000)


@pytest.fixture
def server(shard: Path) -> Iterator[str]:
    command = [sys.executable, str(EXAMPLES / "serve_and_tokenize.py"), str(shard), "--port", "0"]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        yield program.stdout.readline().strip()
        program.terminate()


def test_a_server_answers_while_it_tokenizes(server: str) -> None:
    def get(path: str, body: bytes | None = None) -> bytes:
        with urllib.request.urlopen(server + path, data=body, timeout=30) as answer:
            content: bytes = answer.read()
        return content

    assert get("/count", b"Hello, world!") == b"4"
    for _ in range(600):
        progress = json.loads(get("/progress"))
        if progress["done"]:
            break
        time.sleep(0.05)
    assert (progress["documents"], progress["tokens"]) == (5000, tokens())
    with pytest.raises(urllib.error.HTTPError) as missing:
        get("/elsewhere")
    missing.value.close()
