"""Shards that pyarrow writes, counted by `offlock tokens`, and tables that the command writes, read by pyarrow.

The environment variable `OFFLOCK` is the path of the command.
"""

import datetime
import decimal
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

EOS = 50256


def offlock(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [os.environ["OFFLOCK"], "tokens", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def count(path: Path, *options: object) -> dict[str, Any]:
    made = offlock("count", path, "--encoding", "gpt2", "--json", *options)
    assert made.returncode == 0, made.stderr
    counted: dict[str, Any] = json.loads(made.stdout)
    for other in ("shards", "seconds"):
        counted.pop(other)
    return counted


def texts(count: int, longest: int = 3000) -> list[str | None]:
    chosen = random.Random(count)
    words = ["off", "the", "lock", "naïve", "日本語", "🙂", "\n", "1234", '"', "\\"]
    long = [" ".join(chosen.choices(words, k=chosen.randrange(longest // 4))) for _ in range(count // 3)]
    # Some of them again, for dictionaries.
    all = [*long, *chosen.choices(long, k=count - len(long) - count // 10), *[None] * (count // 10)]
    chosen.shuffle(all)
    return all


def as_lines(path: Path, texts: list[str | None]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", ["PLAIN", "dictionary", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_tables_count_as_lines_do(tmp_path: Path, codec: str, version: str, encoding: str) -> None:
    rows = texts(900)
    options: dict[str, Any] = {"use_dictionary": True}
    if encoding != "dictionary":
        options = {"use_dictionary": False, "column_encoding": {"text": encoding}}
    pq.write_table(
        pa.table({"text": rows}),
        tmp_path / "a.parquet",
        compression=codec,
        data_page_version=version,
        row_group_size=400,
        data_page_size=20_000,
        dictionary_pagesize_limit=50_000,
        write_page_checksum=True,
        **options,
    )
    expected = count(as_lines(tmp_path / "a.jsonl", rows), "--on-error=skip")
    assert expected["documents"] == 810
    assert count(tmp_path / "a.parquet", "--on-error=skip") == expected
    assert count(tmp_path / "a.parquet", "--on-error=skip", "-j1") == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view(), None])
def test_kinds_of_strings(tmp_path: Path, kind: pa.DataType | None) -> None:
    rows = texts(300)
    column = pa.array(rows, kind) if kind else pa.array(rows).dictionary_encode()
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    expected = count(as_lines(tmp_path / "a.jsonl", rows), "--on-error=skip")
    assert count(tmp_path / "a.parquet", "--on-error=skip") == expected


def test_long_documents(tmp_path: Path) -> None:
    rows: list[str | None] = ["a long one " * 400_000, "short", "another " * 300_000]
    expected = count(as_lines(tmp_path / "a.jsonl", rows))
    for codec in ("snappy", "zstd", "lz4", "gzip"):
        pq.write_table(pa.table({"text": rows}), tmp_path / "a.parquet", compression=codec)
        assert count(tmp_path / "a.parquet") == expected
    limited = offlock("count", tmp_path / "a.parquet", "--max-doc-bytes", "1m")
    assert "record 1 (in the page at byte " in limited.stderr
    assert "longer than 1048576 bytes" in limited.stderr


def test_members_of_groups(tmp_path: Path) -> None:
    rows = [{"a": {"b": "off the lock"}}, {"a": {"b": None}}, {"a": None}, None, {"a": {"b": "🙂"}}]
    pq.write_table(pa.table({"data": rows, "text": ["x"] * 5}), tmp_path / "a.parquet")
    lines = "".join(json.dumps({"data": row}) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines)
    options = ("--field=data.a.b", "--on-error=skip")
    expected = count(tmp_path / "a.jsonl", *options)
    assert (expected["documents"], expected["errors"]) == (2, 3)
    assert count(tmp_path / "a.parquet", *options) == expected


def test_what_is_not_supported_is_named(tmp_path: Path) -> None:
    for name, table, options, problem in [
        (
            "brotli",
            {"text": ["a"]},
            {"compression": "brotli"},
            "compressed with Brotli, which is not supported",
        ),
        ("number", {"text": [1]}, {}, "the field is not a string but a number"),
        ("list", {"text": [["a"]]}, {}, "the field is not a string but a group or a list"),
        ("missing", {"body": ["a"], "id": [1]}, {}, "there is no column text, but body, id"),
    ]:
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(table), path, **options)
        made = offlock("count", path)
        assert made.returncode == 1
        assert f"{path}: " in made.stderr
        assert problem in made.stderr


def kept_columns(count: int) -> dict[str, pa.Array]:
    """A column of each type that is in no group, with some values missing."""
    chosen = random.Random(count)
    zone = datetime.UTC

    def column(make: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([make() if chosen.random() < 0.8 else None for _ in range(count)], kind)

    def moment() -> datetime.datetime:
        return datetime.datetime.fromtimestamp(chosen.randrange(2**31), zone)

    integers = {
        str(kind): column(lambda kind=kind: chosen.randrange(2**kind.bit_width) - signed(kind), kind)
        for kind in (
            pa.int8(),
            pa.int16(),
            pa.int32(),
            pa.int64(),
            pa.uint8(),
            pa.uint16(),
            pa.uint32(),
            pa.uint64(),
        )
    }
    return integers | {
        "bool": column(lambda: chosen.random() < 0.5, pa.bool_()),
        "float": column(lambda: float(np.float32(chosen.random())), pa.float32()),
        "half": column(lambda: float(np.float16(chosen.random())), pa.float16()),
        "double": column(chosen.random, pa.float64()),
        "string": column(lambda: "é" * chosen.randrange(9), pa.string()),
        "binary": column(lambda: chosen.randbytes(chosen.randrange(9)), pa.binary()),
        "fixed": column(lambda: chosen.randbytes(5), pa.binary(5)),
        "decimal": column(lambda: decimal.Decimal(chosen.randrange(10**20)) / 100, pa.decimal128(25, 2)),
        "date": column(lambda: moment().date(), pa.date32()),
        "timestamp": column(moment, pa.timestamp("us", "UTC")),
        "time": column(lambda: moment().time(), pa.time64("us")),
        "nothing": pa.nulls(count),
        "url": pa.array([f"https://example.com/{number}" for number in range(count)]),
    }


def signed(kind: pa.DataType) -> int:
    return 2 ** (kind.bit_width - 1) if pa.types.is_signed_integer(kind) else 0


def ids(shard: Path, out: Path, *options: object) -> list[list[int]]:
    """The tokens of each document, as llm.c's plain format has them."""
    made = offlock("write", shard, "--encoding", "gpt2", "-o", out, "--output=llmc", "--eos=append", *options)
    assert made.returncode == 0, made.stderr
    (path,) = out.glob("*.bin")
    tokens = np.fromfile(path, np.uint16, offset=1024)
    ends = np.flatnonzero(tokens == EOS) + 1
    return [list(map(int, document)) for document in np.split(tokens, ends[:-1])]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", ["dictionary", "PLAIN", "others"])
def test_columns_are_kept(tmp_path: Path, version: str, encoding: str) -> None:
    rows = texts(900, 400)
    kept = kept_columns(len(rows))
    others = {"meta": pa.array([{"a": 1}] * len(rows)), "tags": pa.array([["a"]] * len(rows))}
    table = pa.table(kept | {"text": rows} | others)
    options: dict[str, Any] = {"use_dictionary": encoding == "dictionary"}
    if encoding == "others":
        options["column_encoding"] = {
            **dict.fromkeys(("int8", "int16", "int32", "int64", "uint64", "date"), "DELTA_BINARY_PACKED"),
            **dict.fromkeys(("float", "half", "double", "uint32", "fixed", "decimal"), "BYTE_STREAM_SPLIT"),
            "bool": "RLE",
            "string": "DELTA_BYTE_ARRAY",
            "binary": "DELTA_LENGTH_BYTE_ARRAY",
        }
    shard = tmp_path / "part.parquet"
    pq.write_table(
        table, shard, row_group_size=250, data_page_size=5000, data_page_version=version, **options
    )
    out = tmp_path / "out"
    write = ("write", shard, "--encoding", "gpt2", "-o", out, "--output=parquet", "--on-error=skip")
    made = offlock(*write)
    assert made.returncode == 0, made.stderr
    written = pq.read_table(out / "part.parquet", page_checksum_verification=True)
    assert written.column_names == [*kept, "input_ids"]
    there = table.filter(pc.is_valid(table["text"]))
    assert written.select(list(kept)).to_pydict() == there.select(list(kept)).to_pydict()
    assert written.schema.field("input_ids").type == pa.list_(pa.uint32())
    assert written["input_ids"].to_pylist() == ids(shard, tmp_path / "plain", "--on-error=skip")
    resumed = offlock(*write, "--resume", "--json")
    assert json.loads(resumed.stdout)["resumed"] == 1


def test_lines_get_the_columns_of_ids_and_tokens(tmp_path: Path) -> None:
    rows = [{"text": "off the lock", "id": "a", "url": "x"}, {"text": "", "id": 7}, {"text": "🙂"}]
    shard = tmp_path / "part.jsonl"
    shard.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = offlock(
        "write", shard, "--encoding=gpt2", "-o", tmp_path / "out", "--output=parquet", "--eos=none"
    )
    assert made.returncode == 0, made.stderr
    written = pq.read_table(tmp_path / "out" / "part.parquet")
    tokens = [document[:-1] for document in ids(shard, tmp_path / "plain")]
    assert written.to_pydict() == {"id": ["a", "7", None], "input_ids": tokens}
    assert written.schema == pa.schema({"id": pa.string(), "input_ids": pa.list_(pa.uint32())})


def test_a_folder_of_tables_is_a_dataset(tmp_path: Path) -> None:
    """As `datasets`, Spark and others open it: all files of the folder together, a column, a batch at a time."""
    for number in range(3):
        pq.write_table(pa.table({"text": texts(90), "n": [number] * 90}), tmp_path / f"{number}.parquet")
    out = tmp_path / "out"
    made = offlock("write", tmp_path, "-o", out, "--output=parquet", "--on-error=skip")
    assert made.returncode == 0, made.stderr
    dataset = pyarrow.dataset.dataset(sorted(out.glob("*.parquet")))
    assert dataset.count_rows() == 3 * 81
    batches = dataset.to_batches(columns=["input_ids"], filter=pyarrow.dataset.field("n") == 1)
    tokens = sum(len(list) for batch in batches for list in batch["input_ids"].to_pylist())
    shard = json.loads((out / "manifest.json").read_text())["shards"][1]
    assert tokens == shard["totals"]["tokens"]


def test_rows_are_in_several_groups(tmp_path: Path) -> None:
    count = 2**20 + 100
    (tmp_path / "part.txt").write_text("off the\n" * count)
    arguments = (
        "-o",
        tmp_path / "out",
        "--output=parquet",
        "--format=lines",
        "--encoding=gpt2",
        "--eos=none",
    )
    made = offlock("write", tmp_path / "part.txt", *arguments)
    assert made.returncode == 0, made.stderr
    file = pq.ParquetFile(tmp_path / "out" / "part.parquet")
    assert (file.num_row_groups, file.metadata.num_rows) == (2, count)
    last = file.read_row_group(1)["input_ids"].to_pylist()
    assert last == [last[0]] * 100
    lengths = pc.list_value_length(file.read()["input_ids"])
    assert pc.unique(lengths).to_pylist() == [len(last[0])]
