"""Tables counted, read in batches and written, compared with lines of JSON of the same texts."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from offlock import pipeline, tiktoken

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ENCODING = tiktoken.get_encoding("gpt2")
VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "parquet" / "files.jsonl"
TEXTS = [None if number % 9 == 4 else f"row {number} {'of many ' * (number % 90)}é" for number in range(2000)]


def table(folder: Path, **options: Any) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table({"text": TEXTS, "number": range(len(TEXTS))}), path, **options)
    return path


def test_the_vectors(tmp_path: Path) -> None:
    for line in VECTORS.read_text().splitlines():
        case = json.loads(line)
        path = tmp_path / "part"
        path.write_bytes(bytes.fromhex(case["bytes"]))
        texts = [text for text in case["texts"] if text is not None]
        tokens = pipeline.read(path, on_error="skip").tokens("gpt2")
        lists = [ids for batch in tokens for ids in batch.lists()]
        assert lists == [ENCODING.encode(text) for text in texts], case["name"]
        summary = tokens.count()
        assert (summary.documents, summary.failed) == (len(texts), len(case["texts"]) - len(texts)), case[
            "name"
        ]


@pytest.mark.parametrize("num_threads", [1, 3])
def test_batches(tmp_path: Path, num_threads: int) -> None:
    path = table(tmp_path, row_group_size=700)
    batches = list(pipeline.read(path, on_error="skip", num_threads=num_threads).tokens("gpt2"))
    lists = [ids for batch in batches for ids in batch.lists()]
    records = [record for batch in batches for record in memoryview(batch.records).cast("Q").tolist()]
    there = [(number, text) for number, text in enumerate(TEXTS, 1) if text is not None]
    assert records == [number for number, _ in there]
    assert lists == [ENCODING.encode(text) for _, text in there]


def test_rows_that_fail(tmp_path: Path) -> None:
    path = table(tmp_path)
    for run in (pipeline.read(path).tokens("gpt2").count, lambda: list(pipeline.read(path).tokens("gpt2"))):
        with pytest.raises(pipeline.RecordError, match=r"record 5 .* does not have the field") as caught:
            run()
        error = pickle.loads(pickle.dumps(caught.value))
        assert (error.path, error.record) == (str(path), 5)
        assert 0 < error.offset < path.stat().st_size
    with pytest.raises(pipeline.RecordError, match="there is no column body, but text, number") as caught:
        pipeline.read(path).field("body").tokens("gpt2").count()
    assert (caught.value.record, caught.value.offset) == (None, None)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(pipeline.RecordError, match="does not end as Parquet does"):
        pipeline.read(path).tokens("gpt2").count()
    assert pipeline.read(path, on_error="report").tokens("gpt2").count().failed == 1


def test_columns_are_kept_beside_the_tokens(tmp_path: Path) -> None:
    tokens = pipeline.read(table(tmp_path), on_error="skip").tokens("gpt2")
    tokens.write(tmp_path / "out", output="parquet", eos="none")
    written = pq.read_table(tmp_path / "out" / "a.parquet")
    there = [(number, text) for number, text in enumerate(TEXTS) if text is not None]
    assert written.column_names == ["number", "input_ids"]
    assert written["number"].to_pylist() == [number for number, _ in there]
    assert written["input_ids"].to_pylist() == [ENCODING.encode(text) for _, text in there]
    assert tokens.write(tmp_path / "out", output="parquet", eos="none", resume=True).resumed == 1
    # What is written can be read again, by its other columns.
    assert pipeline.read(tmp_path / "out", format="parquet").paths == (str(tmp_path / "out" / "a.parquet"),)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4"])
def test_signals_end_a_run_within_a_large_page(tmp_path: Path, compression: str) -> None:
    """A page of 400 MB, of which most of the time is decompression."""
    path = tmp_path / "a.parquet"
    text = "0123456789abcdef" * 1_600_000
    pq.write_table(pa.table({"text": [text] * 16}), path, compression=compression, use_dictionary=False)
    tokens = pipeline.read(path, num_threads=1, max_doc_bytes=100).tokens("gpt2")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        began = time.perf_counter()
        with pytest.raises((KeyboardInterrupt, pipeline.RecordError)):
            tokens.count()
        assert time.perf_counter() - began < 0.6
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_memory_does_not_grow_with_the_shards(tmp_path: Path) -> None:
    rows = [f"{number} {'of many ' * 900}" for number in range(20_000)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": rows, "copy": rows}), path, row_group_size=20_000, use_dictionary=False)
    program = """
import sys
from offlock import pipeline
tokens = pipeline.read(sys.argv[1], num_threads=2).tokens("gpt2")
if sys.argv[2] == "write":
    tokens.write(sys.argv[3], output="parquet")
else:
    for batch in tokens: pass
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""
    for what, most in (("read", 150), ("write", 250)):
        arguments = [str(path), what, str(tmp_path / "out")]
        run = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, check=True)
        assert int(run.stdout) < most << 10, what
