"""Compares the files of `offlock tokens write` with those of the programs that they are for, and reads them with these.

The environment variable `OFFLOCK` is the path of the command, `MEGATRON_INDEXED_DATASET` that of Megatron-LM's
`indexed_dataset.py`, for which a pretended PyTorch is enough.
"""

import csv
import gzip
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datatrove.pipeline.tokens.merger import load_doc_ends
from datatrove.pipeline.tokens.tokenizer import TokenizedFile

TEXTS = ["off the lock", "", "naïve 日本語 🙂", "a longer one " * 400]
IDS = ['name "0", 0', "1", None, "3"]
WIDTHS = [("gpt2", np.uint16, 50256), ("o200k_base", np.int32, 199999)]


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shards") / "part.jsonl.gz"
    records = [{"text": text, "id": id} for text, id in zip(TEXTS, IDS, strict=True)]
    path.write_bytes(gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode()))
    return path


def write(shard: Path, out: Path, output: str, encoding: str) -> list[list[int]]:
    """Writes the shard's tokens; returns those of each document, as nanoGPT's and llm.c's plain formats have them."""
    command = [os.environ["OFFLOCK"], "tokens", "write", shard, "--encoding", encoding, "--json"]
    made = subprocess.run([*command, "-o", out, "--output", output], check=True, stdout=subprocess.PIPE)
    assert json.loads(made.stdout)["documents"] == len(TEXTS)
    plain = out.with_name(out.name + "-plain")
    subprocess.run(
        [*command, "-o", plain, "--output", "llmc", "--eos", "append"], check=True, stdout=subprocess.PIPE
    )
    dtype, eos = next(
        (np.uint16 if width == np.uint16 else np.uint32, eos)
        for name, width, eos in WIDTHS
        if name == encoding
    )
    tokens = np.fromfile(plain / "part.bin", dtype, offset=1024)
    ends = np.flatnonzero(tokens == eos) + 1
    return [list(map(int, document)) for document in np.split(tokens, ends[:-1])]


@pytest.mark.parametrize(("encoding", "dtype", "eos"), WIDTHS)
def test_megatron_reads_and_would_write_the_same(
    shard: Path, tmp_path: Path, encoding: str, dtype: type, eos: int
) -> None:
    documents = write(shard, tmp_path / "out", "megatron", encoding)
    ours, module = tmp_path / "out" / "part", megatron()
    dataset = module.IndexedDataset(str(ours))
    assert [list(document) for document in dataset] == documents
    assert all(document[-1] == eos for document in documents)
    assert dataset[0].dtype == dtype == module.DType.optimal_dtype(eos + 1)
    builder = module.IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=dtype)
    for document in documents:
        builder.add_document(Tensor(document), [len(document)])
    builder.finalize(str(tmp_path / "theirs.idx"))
    for suffix in (".bin", ".idx"):
        assert ours.with_suffix(suffix).read_bytes() == (tmp_path / "theirs").with_suffix(suffix).read_bytes()


class Tensor(list[int]):
    """As much of a tensor as Megatron-LM's writer needs."""

    def numpy(self) -> Any:
        return np.array(self)


def megatron() -> Any:
    """Megatron-LM's module, with something in place of PyTorch and of its own modules."""
    pretend("torch", utils=types.SimpleNamespace(data=types.SimpleNamespace(Dataset=object)), Tensor=object)
    for name in ("megatron", "megatron.core", "megatron.core.datasets"):
        pretend(name)
    storage = ("ObjectStorageConfig", "cache_index_file", "dataset_exists", "get_index_cache_path")
    storage += ("S3Config", "get_object_storage_access", "is_object_storage_path", "parse_s3_path")
    on_disk = {**dict.fromkeys(storage, lambda *_: False), "dataset_exists": lambda *_: True}
    pretend("megatron.core.datasets.object_storage_utils", **on_disk)
    disabled = types.SimpleNamespace(is_enabled=lambda: False)
    pretend(
        "megatron.core.msc_utils",
        MultiStorageClientFeature=disabled,
        maybe_msc=types.SimpleNamespace(open=open),
    )
    pretend("megatron.core.utils", log_single_rank=lambda *_: None)
    spec = importlib.util.spec_from_file_location("indexed_dataset", os.environ["MEGATRON_INDEXED_DATASET"])
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pretend(name: str, **contents: Any) -> None:
    module = types.ModuleType(name)
    module.__dict__.update(contents)
    sys.modules[name] = module


@pytest.mark.parametrize(("encoding", "dtype", "eos"), WIDTHS)
def test_datatrove_reads_and_would_write_the_same(
    shard: Path, tmp_path: Path, encoding: str, dtype: type, eos: int
) -> None:
    documents = write(shard, tmp_path / "out", "datatrove", encoding)
    ours, theirs = tmp_path / "out", tmp_path / "theirs"
    size = np.dtype(dtype).itemsize
    name = f"{encoding}|{size}"
    file = TokenizedFile(str(theirs), "part.ds", token_size=size)
    for document in documents:
        file.write(document, None)
    file.close()
    file.tokenizer_name_or_path = name
    file.write_final_metadata(len(file))
    for extension in ("ds", "ds.index"):
        assert (ours / f"part.{extension}").read_bytes() == (theirs / f"part.{extension}").read_bytes()
    # datatrove appends the size to the name itself, which depends on where its tokenizer comes from.
    theirs_metadata = (theirs / "part.ds.metadata").read_text().replace(f"{name}|{size}", name)
    assert (ours / "part.ds.metadata").read_text() == theirs_metadata
    with open(ours / "part.ds.index", "rb") as index:
        assert list(load_doc_ends(index)) == list(np.cumsum([len(document) for document in documents]))


@pytest.mark.parametrize(("encoding", "dtype", "eos"), WIDTHS)
def test_dolma_would_write_the_same(
    shard: Path, tmp_path: Path, encoding: str, dtype: type, eos: int
) -> None:
    documents = write(shard, tmp_path / "out", "dolma", encoding)
    tokens = np.memmap(
        tmp_path / "out" / "part.npy", mode="r", dtype=np.uint16 if dtype == np.uint16 else np.uint32
    )
    with gzip.open(tmp_path / "out" / "part.csv.gz", "rt", newline="") as file:
        text = file.read()
    rows = list(csv.reader(text.splitlines(keepends=True)))
    sum256 = hashlib.sha256(str(shard).encode()).hexdigest()
    assert [row[2:] for row in rows] == [
        [id or f"{sum256}-{at + 1}", str(shard), str(at + 1)] for at, id in enumerate(IDS)
    ]
    assert [list(tokens[int(start) : int(end)]) for start, end, *_ in rows] == documents
    again = tmp_path / "again.csv"
    with open(again, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    with open(again, newline="") as file:
        assert file.read() == text


def test_nanogpt_maps_the_file(shard: Path, tmp_path: Path) -> None:
    documents = write(shard, tmp_path / "out", "nanogpt", "gpt2")
    tokens = np.memmap(tmp_path / "out" / "part.bin", dtype=np.uint16, mode="r")
    assert list(tokens) == [token for document in documents for token in document]


def test_the_manifest_lists_checksums(shard: Path, tmp_path: Path) -> None:
    write(shard, tmp_path / "out", "megatron", "gpt2")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    (listed,) = manifest["shards"]
    for file in listed["files"]:
        assert hashlib.sha256((tmp_path / "out" / file["name"]).read_bytes()).hexdigest() == file["sha256"]
