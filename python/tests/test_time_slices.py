"""A thread that loops over small calls releases the lock about every millisecond, not after the switch interval."""

from __future__ import annotations

import contextlib
import gzip as original_gzip
import re
import sysconfig
import threading
import time
import zlib as original_zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow  # type: ignore[import-untyped]
import pytest

from offlock import gzip, jsonl, msgpack, strings, tiktoken, zlib, zstd

SOURCES = Path(__file__).parents[1] / "src"
ENCODING = tiktoken.get_encoding("o200k_base")
SIZES = (16, 1500)
Make = Callable[[int], Callable[[], object]]
WORDS = "The quick brown fox's 1234 jumps, naïve café 日本語. "

pytestmark = [
    pytest.mark.timing,
    pytest.mark.skipif(
        bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="no thread waits for a lock"
    ),
]


def text_of(size: int) -> str:
    return (WORDS * (size // len(WORDS) + 1))[:size]


def codec(pack: Callable[[bytes], bytes], unpack: Callable[[bytes], object]) -> Make:
    return lambda size: partial(unpack, pack(text_of(size).encode()))


def of_text(call: Callable[..., object], *arguments: object) -> Make:
    return lambda size: partial(call, text_of(size), *arguments)


def fed(text: str) -> tiktoken.Stream:
    stream = ENCODING.stream()
    stream.count(text)
    return stream


def unpack_from(packed: bytes) -> object:
    unpacker = msgpack.Unpacker()
    unpacker.feed(packed)
    return unpacker.unpack()


# For each operation in the sources: its calls, each made from a size.
CALLS: dict[str, list[Make]] = {
    "tokens.encode": [of_text(ENCODING.encode)],
    "tokens.count": [of_text(ENCODING.count)],
    "tokens.truncate": [of_text(ENCODING.truncate, 5)],
    "tokens.chunks": [of_text(ENCODING.chunks, 20)],
    "tokens.stream": [
        of_text(ENCODING.stream().feed),
        of_text(ENCODING.stream().count),
        of_text(lambda text: fed(text).finish()),
        of_text(lambda text: fed(text).total()),
    ],
    "tokens.encode_batch": [lambda size: partial(ENCODING.encode_batch, [text_of(size)])],
    "tokens.count_batch": [lambda size: partial(ENCODING.count_batch, [text_of(size)])],
    "tokens.decode": [lambda size: partial(ENCODING.decode, ENCODING.encode(text_of(size)))],
    "zlib.deflate": [lambda size: partial(zlib.compress, text_of(min(size, 400)).encode())],
    "zlib.inflate": [
        codec(original_zlib.compress, zlib.decompress),
        codec(original_gzip.compress, gzip.decompress),
        codec(original_zlib.compress, lambda data: zlib.decompressobj().decompress(data)),
    ],
    "zlib.checksum": [codec(bytes, zlib.crc32), codec(bytes, zlib.adler32)],
    "zstd.compress": [
        lambda size: partial(zstd.compress, text_of(size).encode()),
        lambda size: partial(zstd.ZstdCompressor().compress, text_of(size).encode()),
    ],
    "zstd.decompress": [
        codec(zstd.compress, zstd.decompress),
        codec(zstd.compress, lambda data: zstd.ZstdDecompressor().decompress(data)),
    ],
    "zstd.frames": [codec(zstd.compress, zstd.get_frame_size)],
    "msgpack.decode": [
        lambda size: partial(msgpack.unpackb, msgpack.packb(list(range(size)))),
        lambda size: partial(msgpack.unpack_all, [msgpack.packb(list(range(size)))]),
        lambda size: partial(unpack_from, msgpack.packb(list(range(size)))),
    ],
    "msgpack.encode": [
        lambda size: partial(msgpack.packb, list(range(size))),
        lambda size: partial(msgpack.Packer().pack, list(range(size))),
    ],
    "msgpack.extract": [lambda size: partial(msgpack.extract, msgpack.packb([{"a": "b"}] * size), "a")],
    "jsonl.extract": [lambda size: partial(jsonl.extract, b'{"a":"b"}\n' * size, "a")],
    "strings.lines": [codec(bytes, lambda data: strings.lines(data))],
    "strings.split": [codec(bytes, lambda data: strings.split(data, " "))],
    "strings.columns": [lambda size: partial(strings.columns, b"a\tb\n" * size)],
    "strings.from_offsets": [lambda size: partial(strings.from_offsets, bytes(size), [0, 5, size])],
    "strings.from_arrow": [lambda size: partial(strings.from_arrow, pyarrow.array([WORDS] * (size // 16)))],
    "strings.build": [lambda size: strings.lines(text_of(size).encode(), into=strings.Arena).list],
    "strings.decode_many": [lambda size: partial(strings.decode_many, [text_of(size).encode()])],
}
# Called once, or parts of other operations, and only with long inputs; those of the pipeline read files, and release the lock
# for input of any size.
OTHERS = {
    "pipeline.find",
    "pipeline.count",
    "pipeline.write",
    "pipeline.prepare",
    "pipeline.pack",
    "pipeline.next",
    "pipeline.close",
    "zstd.train",
    "tokens.load",
    "bytes.copy",
    "strings.long",
    "strings.look",
    "msgpack.copy",
    "msgpack.feed",
    "msgpack.find",
    "msgpack.skip",
}


def operations() -> set[str]:
    declared = re.compile(r'Operation \{\s*name: "([a-z_.]+)"')
    found = {name for file in SOURCES.rglob("*.rs") for name in declared.findall(file.read_text())}
    return {name for name in found if not name.startswith("test.")}


def test_every_operation_has_its_calls() -> None:
    assert operations() <= CALLS.keys() | OTHERS


@contextlib.contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """A thread that repeats `work`."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def repeat(call: Callable[[], object], seconds: float) -> int:
    """Returns the number of calls in this time."""
    calls, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(10):
            call()
        calls += 10
    return calls


def lateness_beside(call: Callable[[], object]) -> float:
    """Returns the median delay in seconds with which a thread wakes up beside one that loops over `call`."""
    late: list[float] = []

    def sleep() -> None:
        began = time.perf_counter()
        time.sleep(0.001)
        late.append(time.perf_counter() - began - 0.001)

    with beside(sleep):
        repeat(call, 0.2)
    return sorted(late)[len(late) // 2]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operation", sorted(CALLS))
def test_others_do_not_wait_for_the_switch_interval(operation: str, size: int) -> None:
    for make in CALLS[operation]:
        call = make(size)
        # The best of many, because another process may have used the processor.
        assert any(lateness_beside(call) < 0.002 for _ in range(30)), operation


def test_a_caller_can_keep_the_lock() -> None:
    text = text_of(1500)
    assert any(lateness_beside(lambda: ENCODING.encode(text, release="never")) > 0.003 for _ in range(3))


def calls_beside_a_computing_thread(call: Callable[[], object]) -> int:
    with beside(lambda: sum(range(1000))):
        return repeat(call, 0.3)


def test_a_thread_that_yields_keeps_its_share_beside_one_that_computes() -> None:
    # A thread that yielded every millisecond to one that computes for 5 ms would reach a fifth. The limit leaves room for what
    # else runs on the machine; `bench/region` measures the share.
    text = text_of(1500)
    shares = []
    for _ in range(5):
        keeps = calls_beside_a_computing_thread(lambda: ENCODING.encode(text, release="never"))
        yields = calls_beside_a_computing_thread(lambda: ENCODING.encode(text))
        shares.append(yields / keeps)
    assert sorted(shares)[2] > 0.35, shares
