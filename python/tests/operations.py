"""Every operation of strings, tiktoken, tokenizers, the pipeline, zlib, gzip and zstd on an input so large that a long hold of
the lock would show.

`LARGE` has one or more entries for each public name. Entries of the same name differ in the text after a blank. Each
entry makes its input and returns the call. `public_names` reads the names from the stubs and modules, so that none is
forgotten.
"""

from __future__ import annotations

import ast
import atexit
import base64
import functools
import io
import itertools
import json
import os
import random
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from interpreter import HAS_GIL

import offlock
from offlock import gzip, jsonl, pipeline, strings, tiktoken, zlib, zstd
from offlock.tokenizer import Tokenizer

Call = Callable[[], object]

LARGE: dict[str, Callable[[], Call]] = {}

MANY = 1_000_000
"""Short items of a large input."""


def large(name: str) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Registers a function that makes the input and returns the call."""

    def register(make: Callable[[], Call]) -> Callable[[], Call]:
        assert name not in LARGE
        LARGE[name] = make
        return make

    return register


def public_names() -> set[str]:
    """Returns `module.function` and `module.Class.method` for everything public that does work."""
    names = {f"strings.{name}" for name in strings.__all__} - {"strings.View", "strings.Capability"}
    names |= {"strings.Arena.tuple", "strings.Arena.list"} | _functions_of_stub("_zlib.pyi", "zlib")
    names |= {f"gzip.{name}" for name in gzip.__all__} | {
        f"gzip.GzipFile.{name}" for name in _own(gzip.GzipFile)
    }
    names |= {f"jsonl.{name}" for name in jsonl.__all__}
    names |= _functions_of_stub("_zstd.pyi", "zstd") | {f"zstd.{name}" for name in zstd.__all__}
    names |= {f"Encoding.{name}" for name in _own(tiktoken.Encoding) | _own(offlock._offlock.Tokenizer)}
    names |= {f"Stream.{name}" for name in _own(tiktoken.Stream)}
    names |= {f"Tokenizer.{name}" for name in _own(Tokenizer) | _own(offlock._offlock.ModelTokenizer)}
    names |= {f"pipeline.{name}" for name in pipeline.__all__}
    for class_ in (
        pipeline.Corpus,
        pipeline.Batches,
        pipeline.Batch,
        pipeline.Summary,
        pipeline.ShardSummary,
    ):
        names |= {f"pipeline.{class_.__name__}.{name}" for name in _own(class_)}
    names |= {
        f"pipeline.Tokens.{name}" for name in _own(pipeline.Tokens) | _own(offlock._offlock.pipeline.Tokens)
    }
    return names - NO_WORK


NO_WORK = {
    # Constant time with any arguments.
    "strings.Arena", "strings.capabilities", "strings.enable_blocks",
    "zlib.compressobj", "zlib.decompressobj", "zlib.adler32_combine", "zlib.crc32_combine", "zlib.gzip_header",
    "zlib.Compress", "zlib.Decompress", "zlib._ZlibDecompressor", "zlib.GzipDecompress", "zlib.BlockCompress",
    "zlib.GzipDecompress.check_end", "zlib.GzipDecompress.window", "zlib.GzipDecompress.needs_input",
    "zlib.GzipDecompress.mtime", "zlib.Decompress.eof", "zlib._ZlibDecompressor.eof",
    "zlib._ZlibDecompressor.needs_input", "zlib.Compress.copy", "zlib.Decompress.copy",
    "zlib._ZlibDecompressor.unused_data",
    "gzip.BadGzipFile", "gzip.GzipFile", "gzip.open",
    "gzip.GzipFile.close", "gzip.GzipFile.closed", "gzip.GzipFile.fileno", "gzip.GzipFile.mtime",
    "gzip.GzipFile.myfileobj", "gzip.GzipFile.readable", "gzip.GzipFile.writable", "gzip.GzipFile.seekable",
    "gzip.GzipFile.tell", "gzip.GzipFile.flush", "gzip.GzipFile.rewind", "gzip.GzipFile.peek", "gzip.GzipFile.read1",
    "gzip.GzipFile.readinto1",
    "Encoding.encode_single_token", "Encoding.decode_single_token_bytes", "Encoding.eot_token", "Encoding.n_vocab",
    "Encoding.is_special_token", "Encoding.special_tokens_set", "Encoding.stream", "Tokenizer.stream",
    "Stream.final_count", "Stream.pending",
    # Methods for asyncio, which call the others.
    "Encoding.aencode", "Encoding.aencode_batch", "Encoding.acount", "Encoding.acount_batch", "Encoding.atruncate", "Encoding.achunks",
    "Encoding.adecode",
    "Tokenizer.aencode", "Tokenizer.aencode_batch", "Tokenizer.acount", "Tokenizer.acount_batch", "Tokenizer.atruncate",
    "Tokenizer.achunks", "Tokenizer.adecode",
    "Tokenizer.id_to_token",
    # The package jinja2 renders templates, with the lock held.
    "Tokenizer.apply_chat_template", "Tokenizer.num_tokens_from_messages",
    "pipeline.Tokens.acount", "pipeline.Tokens.awrite",
    # The pipeline's classes, what they were made with, and numbers.
    "pipeline.Batch", "pipeline.Batches", "pipeline.Corpus", "pipeline.RecordError", "pipeline.ShardSummary",
    "pipeline.Summary", "pipeline.Tokens", "pipeline.Tokens.corpus", "pipeline.Tokens.name",
    *(f"pipeline.Corpus.{name}" for name in ("field", "paths", "size")),
    *(f"pipeline.Batches.{name}" for name in ("bytes_read", "bytes_total")),
    *(f"pipeline.Batch.{name}" for name in ("bytes", "failed", "offsets", "path", "records", "tokens")),
    *(
        f"pipeline.Summary.{name}"
        for name in ("bytes", "documents", "failed", "longest", "percentile", "resumed", "shards", "tokens")
    ),
    *(f"pipeline.ShardSummary.{name}" for name in ("bytes", "documents", "failed", "files", "path", "tokens")),
    "jsonl.DecodeError",
    "zstd.COMPRESSION_LEVEL_DEFAULT", "zstd.CompressionParameter", "zstd.DecompressionParameter", "zstd.Strategy",
    "zstd.OutputLimitError", "zstd.ZstdError", "zstd.zstd_version", "zstd.zstd_version_info", "zstd.bounds",
    "zstd.get_frame_info", "zstd.frame_info", "zstd.ZstdFile", "zstd.open", "zstd.ZstdCompressor", "zstd.ZstdDecompressor",
    "zstd.ZstdCompressor.last_mode", "zstd.ZstdCompressor.set_pledged_input_size", "zstd.ZstdDecompressor.eof",
    "zstd.ZstdDecompressor.needs_input", "zstd.ZstdDict.dict_id", "zstd.ZstdDict.as_digested_dict",
    "zstd.ZstdDict.as_undigested_dict", "zstd.ZstdDict.as_prefix",
    # Parts of the public functions.
    "zlib.gzip", "zlib.gunzip", "zlib.joined", "zlib.quick_readline", "zlib.BlockCompress.compress", "zlib.BlockCompress.flush",
    "zlib.GzipDecompress.decompress",
}  # fmt: skip
"""Operations that are left out, by reason."""


def _functions_of_stub(file: str, module: str) -> set[str]:
    """Returns the functions, classes and methods that a stub declares."""
    tree = ast.parse((Path(offlock.__file__).parent / file).read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(f"{module}.{node.name}")
        if isinstance(node, ast.ClassDef):
            methods = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
            names |= {f"{module}.{node.name}.{method}" for method in methods if not method.startswith("__")}
    return names


def _own(class_: type) -> set[str]:
    return {name for name in vars(class_) if not name.startswith("_")}


def text_lines(count: int, *, wide: bool = False) -> bytes:
    """Returns `count` different short lines."""
    ending = "—ж" if wide else ""
    return "".join(f"line number {number}{ending}\n" for number in range(count)).encode()


def words(count: int) -> list[str]:
    return [f"word {number}" for number in range(count)]


def shrink(many: int = 70_000, size: int = 4 << 20) -> None:
    """Makes all inputs smaller, for tests that do not measure time."""
    global MANY, SIZE
    MANY, SIZE = many, size


SIZE = 48 << 20
"""The usual size of data to compress, in bytes."""


@functools.cache
def plain(size: int | None = None) -> bytes:
    """Returns compressible content, and makes it quickly."""
    size = SIZE if size is None else size
    some = random.Random(1).randbytes(min(size, 600_000)).hex().encode()
    return (some * (size // len(some) + 1))[:size]


@functools.cache
def packed(wbits: int = 15) -> bytes:
    return zlib.compress(plain(), 1, wbits)


def enc() -> tiktoken.Encoding:
    return tiktoken.get_encoding("cl100k_base")


@functools.cache
def prose() -> str:
    return "".join(f"The quick brown fox {n % 5000} jumps over the lazy dog. " for n in range(MANY // 25))


def ids() -> list[int]:
    return enc().encode_ordinary(prose()) * 8


def ignore(done: int, total: int) -> None:
    """Takes reports of progress."""


# strings


def _of_lines(name: str, call: Callable[..., object], **options: Any) -> None:
    for kind in strings.capabilities():
        for into in (list, tuple, strings.Arena):
            if (into is strings.Arena and kind != "str") or (kind == "block" and not HAS_GIL):
                continue

            def make(kind: Any = kind, into: Any = into) -> Call:
                if kind == "block":
                    strings.enable_blocks()
                text = text_lines(MANY)
                return lambda: call(text, kind=kind, into=into, **options)

            large(f"strings.{name} {kind} {into.__name__}")(make)


_of_lines("lines", strings.lines)


@large("strings.lines wide")
def _() -> Call:
    text = text_lines(MANY, wide=True)
    return lambda: strings.lines(text)


@large("strings.lines bytearray")
def _() -> Call:
    text = bytearray(text_lines(MANY) * 2)
    return lambda: strings.lines(text, into=strings.Arena)


@large("strings.lines one long line")
def _() -> Call:
    text = b"x" * (2 * SIZE)
    return lambda: strings.lines(text)


@large("strings.split")
def _() -> Call:
    text = text_lines(MANY)
    return lambda: strings.split(text, "\n", into=tuple)


@large("strings.columns")
def _() -> Call:
    text = b"".join(b"%d\t%d\n" % (number, -number) for number in range(MANY // 2))
    return lambda: strings.columns(text)


@large("strings.from_offsets")
def _() -> Call:
    text, offsets = bytes(range(128)) * (MANY // 64 + 1), list(range(0, 2 * MANY, 2))
    return lambda: strings.from_offsets(text, offsets)


@large("strings.from_offsets nothing between")
def _() -> Call:
    offsets = [0] * (2 * MANY)
    return lambda: strings.from_offsets(b"", offsets)


@large("strings.from_arrow")
def _() -> Call:
    pa: Any = pytest.importorskip("pyarrow")
    array = pa.array([None if number % 3 == 0 else f"element {number}" for number in range(MANY)])
    return lambda: strings.from_arrow(array)


@large("strings.from_arrow nulls")
def _() -> Call:
    pa: Any = pytest.importorskip("pyarrow")
    array = pa.nulls(8 * MANY)
    return lambda: strings.from_arrow(array, into=tuple)


@large("strings.from_arrow dictionary")
def _() -> Call:
    pa: Any = pytest.importorskip("pyarrow")
    array = pa.array([f"element {number % 1000}" for number in range(2 * MANY)]).dictionary_encode()
    return lambda: strings.from_arrow(array)


@large("strings.from_arrow one string behind nulls")
def _() -> Call:
    pa: Any = pytest.importorskip("pyarrow")
    count = 16 * MANY
    present, ends = bytearray(count // 8 + 1), bytearray(4 * count) + (1).to_bytes(4, sys.byteorder)
    present[(count - 1) // 8] = 1 << (count - 1) % 8
    buffers = [pa.py_buffer(bytes(part)) for part in (present, ends, b"x")]
    array = pa.Array.from_buffers(pa.string(), count, buffers, count - 1)
    return lambda: strings.from_arrow(array)


@large("strings.from_arrow few long strings")
def _() -> Call:
    pa: Any = pytest.importorskip("pyarrow")
    length = SIZE // 64
    view = struct.pack("=i4sii", length, b"long", 0, 0)
    buffers = [None, pa.py_buffer(view * 128), pa.py_buffer(b"long" + bytes(length))]
    array = pa.Array.from_buffers(pa.string_view(), 128, buffers)
    return lambda: strings.from_arrow(array)


@large("strings.decode_many")
def _() -> Call:
    items = text_lines(MANY).split(b"\n")
    return lambda: strings.decode_many(items)


@large("strings.decode_many bytearrays")
def _() -> Call:
    items = [bytearray(b"item %d" % number) for number in range(MANY // 4)]
    return lambda: strings.decode_many(items)


@large("strings.decode_many empty")
def _() -> Call:
    items = [b""] * (2 * MANY)
    return lambda: strings.decode_many(items)


@large("strings.Arena.tuple")
def _() -> Call:
    arena = strings.lines(text_lines(MANY), into=strings.Arena)
    return lambda: arena.tuple("view")


@large("strings.Arena.list")
def _() -> Call:
    arena = strings.lines(text_lines(MANY), into=strings.Arena)
    return lambda: arena.list("str")


@large("strings.compact")
def _() -> Call:
    views = strings.lines(text_lines(MANY), kind="view", into=tuple)
    return lambda: strings.compact(views)


@large("strings.compact plain")
def _() -> Call:
    plain = words(MANY)
    return lambda: strings.compact(plain)


@large("strings.retained")
def _() -> Call:
    views = strings.lines(text_lines(MANY), kind="view") + words(MANY // 4)
    return lambda: strings.retained(views)


# tiktoken


@large("Encoding.encode")
def _() -> Call:
    text, encoding = prose() * 8, enc()
    return lambda: encoding.encode(text)


@large("Encoding.encode wide")
def _() -> Call:
    text, encoding = ("Съешь же ещё этих мягких французских булок. " * (MANY // 16)), enc()
    return lambda: encoding.count(text)


@large("Encoding.encode_ordinary")
def _() -> Call:
    text, encoding = prose() * 8, enc()
    return lambda: encoding.encode_ordinary(text)


@large("Encoding.encode_packed")
def _() -> Call:
    text, encoding = prose() * 8, enc()
    return lambda: encoding.encode_packed(text)


@large("Encoding.encode_to_numpy")
def _() -> Call:
    text, encoding = prose() * 8, enc()
    return lambda: encoding.encode_to_numpy(text)


@large("Encoding.count")
def _() -> Call:
    text, encoding = prose() * 8, enc()
    return lambda: encoding.count(text)


@large("Encoding.truncate")
def _() -> Call:
    text, encoding = prose() * 8, enc()
    return lambda: encoding.truncate(text, 10**9)


@large("Encoding.chunks")
def _() -> Call:
    text, encoding = prose() * 8, enc()
    return lambda: encoding.chunks(text, 100, overlap=10, boundary="sentence")


@large("Stream.feed")
def _() -> Call:
    text, encoding = prose() * 4, enc()
    return lambda: encoding.stream().feed(text)


@large("Stream.feed bytes")
def _() -> Call:
    text, encoding = bytearray(prose().encode() * 4), enc()
    return lambda: encoding.stream().feed(text)


@large("Stream.count")
def _() -> Call:
    text, encoding = prose() * 8, enc()
    return lambda: encoding.stream().count(text)


def fed(letters: str) -> tiktoken.Stream:
    """Return a stream that keeps all of these letters back."""
    stream = enc().stream()
    stream.count(letters)
    return stream


@large("Stream.finish")
def _() -> Call:
    letters = "ab" * (SIZE // 2)
    return lambda: fed(letters).finish()


@large("Stream.total")
def _() -> Call:
    letters = "ab" * (SIZE // 2)
    return lambda: fed(letters).total()


@large("Encoding.encode_batch")
def _() -> Call:
    texts, encoding = words(MANY // 4), enc()
    return lambda: encoding.encode_batch(texts)


@large("Encoding.encode_batch empty")
def _() -> Call:
    texts, encoding = [""] * (MANY // 2), enc()
    return lambda: encoding.encode_batch(texts)


@large("Encoding.encode_ordinary_batch")
def _() -> Call:
    texts, encoding = words(MANY // 4), enc()
    return lambda: encoding.encode_ordinary_batch(texts)


@large("Encoding.count_batch")
def _() -> Call:
    texts, encoding = words(MANY // 2), enc()
    return lambda: encoding.count_batch(texts)


@large("Encoding.encode_with_unstable")
def _() -> Call:
    text, encoding = prose() * 4, enc()
    return lambda: encoding.encode_with_unstable(text)


@large("Encoding.decode")
def _() -> Call:
    tokens, encoding = ids(), enc()
    return lambda: encoding.decode(tokens)


@large("Encoding.decode broken")
def _() -> Call:
    encoding = enc()
    tokens = [*encoding.encode_ordinary("😀")[:1], *ids()]
    return lambda: encoding.decode(tokens)


@large("Encoding.decode wide")
def _() -> Call:
    encoding = enc()
    tokens = encoding.encode_ordinary("Съешь же ещё этих мягких булок. " * 2000) * 60
    return lambda: encoding.decode(tokens)


@large("Encoding.decode_bytes")
def _() -> Call:
    tokens, encoding = ids(), enc()
    return lambda: encoding.decode_bytes(tokens)


@large("Encoding.decode_bytes numpy")
def _() -> Call:
    import numpy as np

    tokens, encoding = np.array(ids() * 2, dtype=np.int64), enc()
    return lambda: encoding.decode_bytes(tokens)


@large("Encoding.decode_bytes tuple")
def _() -> Call:
    tokens, encoding = tuple(ids()), enc()
    return lambda: encoding.decode_bytes(tokens)


@large("Encoding.decode_bytes packed")
def _() -> Call:
    encoding = enc()
    tokens = encoding.encode_packed(prose() * 16)
    return lambda: encoding.decode_bytes(tokens)


@large("Encoding.decode_with_offsets")
def _() -> Call:
    tokens, encoding = ids(), enc()
    return lambda: encoding.decode_with_offsets(tokens)


@large("Encoding.decode_tokens_bytes")
def _() -> Call:
    tokens, encoding = ids(), enc()
    return lambda: encoding.decode_tokens_bytes(tokens)


def batches() -> list[list[int]]:
    encoding = enc()
    return [encoding.encode_ordinary(word) for word in words(MANY // 4)]


@large("Encoding.decode_batch")
def _() -> Call:
    batch, encoding = batches(), enc()
    return lambda: encoding.decode_batch(batch)


@large("Encoding.decode_batch broken")
def _() -> Call:
    encoding = enc()
    batch = [*batches(), encoding.encode_ordinary("😀")[:1]]
    return lambda: encoding.decode_batch(batch)


@large("Encoding.decode_bytes_batch")
def _() -> Call:
    batch, encoding = batches(), enc()
    return lambda: encoding.decode_bytes_batch(batch)


@large("Encoding.token_byte_values")
def _() -> Call:
    encoding = enc()
    return lambda: encoding.token_byte_values()


@large("Encoding of one's own")
def _() -> Call:
    ranks = enc()._mergeable_ranks
    return lambda: tiktoken.Encoding("own", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens={})


@large("Encoding, its ranks")
def _() -> Call:
    encoding = enc()
    return lambda: encoding._ranks()


# Tokenizers of models


@functools.cache
def model() -> Tokenizer:
    """Returns a tokenizer with the vocabulary of an encoding and 1000 added tokens."""
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in enc()._mergeable_ranks.items())
    added = {f"<added {number}>": 200_000 + number for number in range(1000)}
    return Tokenizer(b"".join(lines), pattern=enc()._pat_str, special_tokens=added)


@functools.cache
def model_file() -> bytes:
    """Returns a `tokenizer.json` with random merges, as many as the input is large."""
    dice, letters = (
        random.Random(4),
        [*map(chr, [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x144)])],
    )
    tokens, merges = dict.fromkeys(letters), []
    for _ in range(MANY // 20):
        left, right = dice.choice(letters), dice.choice(letters)
        if len(left + right) <= 24 and left + right not in tokens:
            merges.append([left, right])
            letters.append(left + right)
            tokens[left + right] = None
    file = {
        "added_tokens": [{"content": f"<added {number}>", "special": True} for number in range(1000)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {token: id for id, token in enumerate(tokens)}, "merges": merges},
    }
    return json.dumps(file).encode()


def _of_a_text(name: str, *arguments: object) -> None:
    @large(f"Tokenizer.{name}")
    def _() -> Call:
        text, call = prose() * 8, getattr(model(), name)
        return lambda: call(text, *arguments)


for method in ["encode", "encode_packed", "encode_to_numpy", "count"]:
    _of_a_text(method)
_of_a_text("truncate", 10**9)


@large("Tokenizer.chunks")
def _() -> Call:
    text = prose() * 8
    return lambda: model().chunks(text, 100, overlap=10, boundary="sentence")


@large("Tokenizer.encode_with_offsets")
def _() -> Call:
    text = prose() * 3
    return lambda: model().encode_with_offsets(text)


@large("Tokenizer.encode_with_offsets wide")
def _() -> Call:
    text = "Съешь же ещё этих мягких булок. " * (MANY // 64)
    return lambda: model().encode_with_offsets(text)


@large("Tokenizer.encode_batch")
def _() -> Call:
    texts = words(MANY // 4)
    return lambda: model().encode_batch(texts)


@large("Tokenizer.count_batch")
def _() -> Call:
    texts = words(MANY // 2)
    return lambda: model().count_batch(texts)


@large("Tokenizer.encode_batch_to_numpy")
def _() -> Call:
    texts = words(MANY // 4)
    return lambda: model().encode_batch_to_numpy(texts, pad_to_multiple_of=4)[0]


def _of_ids(name: str) -> None:
    @large(f"Tokenizer.{name}")
    def _() -> Call:
        tokens, call = ids(), getattr(model(), name)
        return lambda: call(tokens)


_of_ids("decode")
_of_ids("decode_bytes")


@large("Tokenizer.decode_batch")
def _() -> Call:
    batch = batches()
    return lambda: model().decode_batch(batch)


@large("Tokenizer.decode_bytes_batch")
def _() -> Call:
    batch = batches()
    return lambda: model().decode_bytes_batch(batch)


@large("Tokenizer.token_to_id")
def _() -> Call:
    return lambda: [model().token_to_id(f"<added {number}>") for number in range(900, 1000)]


@large("Tokenizer.added_tokens")
def _() -> Call:
    return lambda: model().added_tokens


@large("Tokenizer.vocab_size")
def _() -> Call:
    return lambda: model().vocab_size


@large("Tokenizer, loading merges")
def _() -> Call:
    content = model_file()
    return lambda: Tokenizer(content).vocab_size


# Shards


def temporary(purpose: str) -> str:
    """Returns a new folder that is removed at exit."""
    folder = tempfile.mkdtemp(prefix=f"offlock-{purpose}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def outputs() -> str:
    """Returns a folder for what the operations write."""
    return temporary("outputs")


@functools.cache
def shards() -> str:
    """Returns a folder with a shard of many documents, and one whose records all fail.

    A `str`, because `os.fspath` raises `TypeError` for a `Path` when there is no memory to find its method.
    """
    folder = temporary("shards")
    lines = (json.dumps({"text": f"document {number} {'of many ' * 50}"}) for number in range(MANY // 20))
    Path(folder, "shard.jsonl").write_text("\n".join(lines))
    Path(folder, "failing").write_text("{}\n" * (MANY // 10))
    return folder


def tokens() -> pipeline.Tokens:
    return pipeline.read(f"{shards()}/shard.jsonl").tokens("gpt2")


def table() -> pipeline.Tokens:
    return pipeline.read(tables()).field("id").tokens("gpt2")


@functools.cache
def tables() -> str:
    """Returns a folder with the texts of the shard as a table: the names of documents are kept in one."""
    folder = shards()
    lines = (json.dumps({"text": "", "id": f"{number} {'of many ' * 50}"}) for number in range(MANY // 20))
    Path(folder, "named").write_text("\n".join(lines))
    named = pipeline.read(f"{folder}/named", format="jsonl").tokens("gpt2")
    named.write(f"{folder}/tables", output="parquet")
    return f"{folder}/tables/named.parquet"


def failing() -> pipeline.Tokens:
    return pipeline.read(f"{shards()}/failing", format="jsonl", on_error="report").tokens("gpt2")


class NewFolder:
    """A folder that is removed at the end. (`shutil.rmtree` of CPython 3.12 corrupts memory when an allocation in it fails.)"""

    numbers = itertools.count()

    def __enter__(self) -> str:
        self.path = f"{outputs()}/{os.getpid()}-{next(self.numbers)}"
        os.mkdir(self.path)
        return self.path

    def __exit__(self, *_: object) -> None:
        remove(self.path)


def remove(folder: str) -> None:
    for name in os.listdir(folder):
        path = f"{folder}/{name}"
        try:
            os.unlink(path)
        except IsADirectoryError:
            remove(path)
    os.rmdir(folder)


@large("pipeline.read")
def _() -> Call:
    folder = shards()
    return lambda: pipeline.read(folder).paths


@large("pipeline.Corpus.tokens")
def _() -> Call:
    path = f"{shards()}/tokenizer"
    Path(path).write_bytes(model_file())
    return lambda: pipeline.read(shards()).tokens(tokenizer=path).name


@large("pipeline.Tokens.count")
def _() -> Call:
    made = tokens()
    return lambda: made.count().tokens


@large("pipeline.Tokens.write")
def _() -> Call:
    made = tokens()

    def write() -> object:
        with NewFolder() as folder:
            return made.write(folder, output="llmc").tokens

    return write


@large("pipeline.Tokens.count of a table")
def _() -> Call:
    made = table()
    return lambda: made.count().tokens


@large("pipeline.Tokens.write of a table")
def _() -> Call:
    made = table()

    def write() -> object:
        with NewFolder() as folder:
            return made.write(folder, output="parquet").tokens

    return write


@large("pipeline.Tokens.prepare")
def _() -> Call:
    path = f"{shards()}/shard.jsonl"
    made = pipeline.read([path], num_threads=1).tokens("gpt2")

    def prepare() -> None:
        with NewFolder() as folder:
            made.prepare(folder, output="llmc")

    return prepare


@large("pipeline.Tokens.batches")
def _() -> Call:
    made = tokens()
    return lambda: sum(map(len, made))


@large("pipeline.Batches.next")
def _() -> Call:
    made = tokens()

    def first() -> object:
        with made.batches() as batches:
            batch = batches.next()
            return batch and batch.bytes

    return first


@large("pipeline.Batches.close")
def _() -> Call:
    made = tokens()
    return lambda: made.batches().close()


@large("pipeline.Batch.lists")
def _() -> Call:
    batch = next(iter(tokens()))
    return lambda: batch.lists()


@large("pipeline.Batch.to_numpy")
def _() -> Call:
    batch = next(iter(tokens()))
    return lambda: [array.tobytes() for array in batch.to_numpy()]


@large("pipeline.Batch.failures")
def _() -> Call:
    batch = next(iter(failing()))
    return lambda: len(batch.failures)


@large("pipeline.Summary.failures")
def _() -> Call:
    summary = failing().count()
    return lambda: len(summary.failures)


# zlib


@large("zlib.compress")
def _() -> Call:
    data = plain()
    return lambda: zlib.compress(data, 0)


@large("zlib.compress bytearray")
def _() -> Call:
    data = bytearray(plain())
    return lambda: zlib.compress(data, 0)


@large("zlib.decompress")
def _() -> Call:
    data = packed()
    return lambda: zlib.decompress(data)


@large("zlib.decompress more than expected")
def _() -> Call:
    data = zlib.compress(random.Random(2).randbytes(SIZE // 48) + bytes(SIZE), 1)
    return lambda: zlib.decompress(data)


@large("zlib.decompress far more than expected")
def _() -> Call:
    # So many zeros need more room than is lent. What was lent and is full by then is not to be freed with the lock held.
    data = zlib.compress(random.Random(3).randbytes(1 << 20) * 60 + bytes(60 << 20), 1)
    return lambda: zlib.decompress(data)


@large("zlib.decompress reporting")
def _() -> Call:
    data = packed()
    # Not a function made in each call: CPython 3.12 itself crashes if it cannot allocate one (see nomemory.py).
    return lambda: zlib.decompress(data, progress=ignore)


@large("zlib.Compress.compress")
def _() -> Call:
    data = plain()
    return lambda: zlib.compressobj(0).compress(data)


@large("zlib.Compress.flush")
def _() -> Call:
    compressor = zlib.compressobj(1)
    compressor.compress(plain())
    return lambda: compressor.copy().flush()


@large("zlib.Decompress.decompress")
def _() -> Call:
    data = packed()
    return lambda: zlib.decompressobj().decompress(data)


@large("zlib.Decompress.decompress the beginning")
def _() -> Call:
    data = packed()
    return lambda: zlib.decompressobj().decompress(data, 1000)


@large("zlib.Decompress.flush")
def _() -> Call:
    data = packed()

    def rest() -> bytes:
        decompressor = zlib.decompressobj()
        decompressor.decompress(data, 1000)
        return decompressor.flush()

    return rest


@large("zlib.Decompress.unconsumed_tail")
def _() -> Call:
    decompressor = zlib.decompressobj()
    decompressor.decompress(packed(), 1000)
    return lambda: decompressor.copy().unconsumed_tail


@large("zlib.Decompress.unused_data")
def _() -> Call:
    data = zlib.compress(b"x") + plain()

    def unused() -> bytes:
        decompressor = zlib.decompressobj()
        decompressor.decompress(data)
        return decompressor.unused_data

    return unused


@large("zlib._ZlibDecompressor.decompress")
def _() -> Call:
    data = packed()
    return lambda: zlib._ZlibDecompressor().decompress(data)


@large("zlib.deflate_all")
def _() -> Call:
    data = [b"item %d" % number for number in range(MANY // 10)]
    return lambda: zlib.deflate_all(data, 1, -15)


@large("zlib.inflate_all")
def _() -> Call:
    data = zlib.deflate_all([b"item %d" % number for number in range(MANY // 4)], 1, -15)
    return lambda: zlib.inflate_all(data, -15)


@large("zlib.inflate_all large")
def _() -> Call:
    data = zlib.deflate_all([bytes(SIZE // 48)] * 48, 1)
    return lambda: zlib.inflate_all(data)


@large("zlib.crc32")
def _() -> Call:
    data = plain()
    return lambda: zlib.crc32(data)


@large("zlib.adler32")
def _() -> Call:
    data = bytearray(plain())
    return lambda: zlib.adler32(data)


# gzip


@large("gzip.compress")
def _() -> Call:
    data = plain()
    return lambda: gzip.compress(data, 0)


@large("gzip.compress threads")
def _() -> Call:
    data = plain()
    return lambda: gzip.compress(data, 1, threads=2)


@large("gzip.decompress")
def _() -> Call:
    data = packed(31)
    return lambda: gzip.decompress(data)


@large("gzip.decompress threads")
def _() -> Call:
    data = b"".join(gzip.compress(plain(SIZE // 4), 1) for _ in range(4))
    return lambda: gzip.decompress(data, threads=2)


def reader() -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=io.BytesIO(packed(31)))


@large("gzip.GzipFile.read")
def _() -> Call:
    packed(31)
    return lambda: reader().read()


@large("gzip.GzipFile.read the rest")
def _() -> Call:
    packed(31)

    def rest() -> bytes:
        file = reader()
        file.read(10)
        return file.read()

    return rest


@large("gzip.GzipFile.read so many")
def _() -> Call:
    packed(31)
    return lambda: reader().read(SIZE // 2)


@large("gzip.GzipFile.readinto")
def _() -> Call:
    packed(31)
    room = bytearray(SIZE // 2)
    return lambda: reader().readinto(room)


@large("gzip.GzipFile.readline")
def _() -> Call:
    packed(31)
    return lambda: [reader().readline(1000) for _ in range(100)]


@large("gzip.GzipFile.seek")
def _() -> Call:
    packed(31)
    return lambda: reader().seek(SIZE // 2)


@large("gzip.GzipFile.write")
def _() -> Call:
    data = plain()
    return lambda: gzip.GzipFile(fileobj=io.BytesIO(), mode="wb", compresslevel=1).write(data)


@large("gzip.GzipFile.write threads")
def _() -> Call:
    data = plain()
    return lambda: gzip.GzipFile(fileobj=io.BytesIO(), mode="wb", compresslevel=1, threads=2).write(data)


# jsonl


def _json_lines() -> bytes:
    return b"".join(b'{"id":%d,"text":"a\\u00e9 %d"}\n' % (number, number) for number in range(MANY))


@large("jsonl.extract")
def _() -> Call:
    data = _json_lines()
    return lambda: jsonl.extract(data, ["text", "id"])


@large("jsonl.extract from a str")
def _() -> Call:
    text = "".join(f'{{"id":{number},"text":"é—{number}"}}\n' for number in range(MANY))
    return lambda: jsonl.extract(text, "id")


@large("jsonl.extract of long strings")
def _() -> Call:
    data = b'{"text":"' + plain(SIZE // 4) + b'"}\n' + b'{"text":"\\n' + plain(SIZE // 4) + b'"}\n'
    return lambda: jsonl.extract(data, "text")


# zstd


@functools.cache
def packed_frame() -> bytes:
    return zstd.compress(plain(), 1)


@large("zstd.compress")
def _() -> Call:
    data = plain()
    return lambda: zstd.compress(data, 1)


@large("zstd.compress slowly")
def _() -> Call:
    data = plain(SIZE // 16)
    return lambda: zstd.compress(data, 13)


@large("zstd.decompress")
def _() -> Call:
    data = packed_frame()
    return lambda: zstd.decompress(data)


@large("zstd.decompress zeros")
def _() -> Call:
    data = zstd.compress(bytes(SIZE), 1)
    return lambda: zstd.decompress(data)


@large("zstd.get_frame_size")
def _() -> Call:
    data = packed_frame()
    return lambda: zstd.get_frame_size(data)


@large("zstd.ZstdCompressor.compress")
def _() -> Call:
    data = plain()
    return lambda: zstd.ZstdCompressor(1).compress(data)


@large("zstd.ZstdCompressor.flush")
def _() -> Call:
    data = plain(100_000)

    def end() -> bytes:
        compressor = zstd.ZstdCompressor(1)
        compressor.compress(data)
        return compressor.flush()

    return end


@large("zstd.ZstdDecompressor.decompress")
def _() -> Call:
    data = packed_frame()
    return lambda: zstd.ZstdDecompressor().decompress(data)


@large("zstd.ZstdDecompressor.decompress the beginning")
def _() -> Call:
    data = packed_frame()
    return lambda: zstd.ZstdDecompressor().decompress(data, 1000)


@large("zstd.ZstdDecompressor.unused_data")
def _() -> Call:
    data = zstd.compress(b"x") + plain()

    def unused() -> bytes:
        decompressor = zstd.ZstdDecompressor()
        decompressor.decompress(data)
        return decompressor.unused_data

    return unused


@large("zstd.ZstdDict")
def _() -> Call:
    data = plain()
    return lambda: len(zstd.ZstdDict(data, is_raw=True))


@large("zstd.ZstdDict.dict_content")
def _() -> Call:
    dictionary = zstd.ZstdDict(plain(), is_raw=True)
    return lambda: dictionary.dict_content


def samples() -> list[bytes]:
    return [b"sample number %d of many" % number for number in range(max(MANY // 50, 1000))]


@large("zstd.train_dict")
def _() -> Call:
    data = samples()
    return lambda: zstd.train_dict(data, 4000).dict_content


@large("zstd.finalize_dict")
def _() -> Call:
    data = samples()
    dictionary = zstd.ZstdDict(b"".join(data[:100]), is_raw=True)
    return lambda: zstd.finalize_dict(dictionary, data, 8000, 3).dict_content


def covered() -> Iterator[str]:
    """Returns the public names that have an entry."""
    return (name.split(" ")[0].rstrip(",") for name in LARGE)
