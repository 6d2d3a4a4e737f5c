"""Tests MessagePack: messages round-trip, and hostile messages do no harm."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import gc
import io
import json
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import uuid
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interpreter import with_gil

from offlock import msgpack

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "msgpack"
RELEASES = ["always", "never"]


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / name).read_text().splitlines()]


class Pairs:
    def __init__(self, pairs: list[tuple[Any, Any]]) -> None:
        self.pairs = pairs


class Ext:
    def __init__(self, kind: int, payload: bytes) -> None:
        self.kind = kind
        self.payload = payload


def tagged(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            return {"int": str(value)}
        case float():
            return {"float": "nan" if value != value else struct.pack(">d", value).hex()}
        case str():
            raw = value.encode("utf-8", "surrogateescape")
            is_text = raw.decode("utf-8", "replace") == value
            return {"str": value} if is_text else {"raw": raw.hex()}
        case bytes():
            return {"bin": value.hex()}
        case list():
            return {"array": [tagged(item) for item in value]}
        case Pairs():
            return {"map": [[tagged(key), tagged(item)] for key, item in value.pairs]}
        case msgpack.Timestamp():
            return {"timestamp": [value.seconds, value.nanoseconds]}
        case Ext():
            return {"ext": [value.kind, value.payload.hex()]}
    raise TypeError(type(value))


def untagged(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, value),) = value.items()
    match kind:
        case "int":
            return int(value)
        case "float":
            return struct.unpack(">d", bytes.fromhex(value))[0]
        case "str":
            return value
        case "bin":
            return bytes.fromhex(value)
        case "array":
            return [untagged(item) for item in value]
        case "map":
            return {untagged(key): untagged(item) for key, item in value}
        case "timestamp":
            return msgpack.Timestamp(*value)
        case "ext":
            return msgpack.ExtType(value[0], bytes.fromhex(value[1]))
    raise ValueError(kind)


OPTIONS: dict[str, Any] = {
    "strict_map_key": False,
    "object_pairs_hook": Pairs,
    "ext_hook": Ext,
    "unicode_errors": "surrogateescape",
}


@pytest.mark.parametrize("release", RELEASES)
def test_values(release: Any) -> None:
    for case in cases("values.jsonl"):
        assert (
            tagged(msgpack.unpackb(bytes.fromhex(case["bytes"]), release=release, **OPTIONS)) == case["value"]
        )


def test_values_in_pieces() -> None:
    for case in cases("values.jsonl"):
        unpacker = msgpack.Unpacker(**OPTIONS)
        message = bytes.fromhex(case["bytes"])
        for byte in message[:-1]:
            unpacker.feed(bytes([byte]))
            with pytest.raises(msgpack.OutOfData):
                unpacker.unpack()
        unpacker.feed(message[-1:])
        assert tagged(unpacker.unpack()) == case["value"]
        assert unpacker.tell() == len(message)


def test_packing() -> None:
    for case in cases("values.jsonl"):
        if case["packs"]:
            assert msgpack.packb(untagged(case["value"])).hex() == case["bytes"]


@pytest.mark.parametrize("release", RELEASES)
def test_broken_messages(release: Any) -> None:
    classes = {
        "truncated": ValueError,
        "reserved": msgpack.FormatError,
        "extra": msgpack.ExtraData,
        "deep": msgpack.StackError,
    }
    for case in cases("broken.jsonl"):
        with pytest.raises(classes[case["error"]]):
            msgpack.unpackb(bytes.fromhex(case["bytes"]), release=release, strict_map_key=False)


def test_errors_name_the_value_and_its_place() -> None:
    with pytest.raises(ValueError, match="offset 1"):
        msgpack.unpackb(b"\x92\xa3a")
    with pytest.raises(msgpack.FormatError, match="0xc1 at offset 2"):
        msgpack.unpackb(b"\x92\x01\xc1")
    with pytest.raises(ValueError, match=r"3 exceeds max_str_len\(2\) at offset 1"):
        msgpack.unpackb(b"\x91\xa3abc", max_str_len=2)
    with pytest.raises(ValueError, match="int is not allowed for map key when strict_map_key=True: 5"):
        msgpack.unpackb(b"\x81\x05\x06")
    with pytest.raises(TypeError, match="can not serialize 'object' object"):
        msgpack.packb(object())


@pytest.fixture
def peak_memory() -> Iterator[Callable[[], int]]:
    """Returns the largest number of bytes that Python has allocated at once since the test began."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def test_a_declared_length_allocates_nothing(peak_memory: Callable[[], int]) -> None:
    unpacker = msgpack.Unpacker(max_array_len=2**32, max_map_len=2**32)
    for head in (b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff"):
        with pytest.raises(ValueError, match="incomplete"):
            msgpack.unpackb(head, max_array_len=2**32, max_map_len=2**32)
        unpacker.feed(head)
        with pytest.raises(msgpack.OutOfData):
            unpacker.unpack()
    assert peak_memory() < 1_000_000


@pytest.mark.parametrize("head", [b"\xdd", b"\xdf"], ids=["arrays", "maps"])
def test_containers_in_containers_take_no_multiple_of_the_message(
    head: bytes, peak_memory: Callable[[], int]
) -> None:
    length = 200_000
    declared = length if head == b"\xdd" else length // 2
    key = b"" if head == b"\xdd" else b"\xa0"
    message = (head + declared.to_bytes(4, "big") + key) * 500 + b"\xc0" * length
    for release in ("always", "never"):
        with pytest.raises(ValueError, match=r"incomplete|not allowed"):
            msgpack.unpackb(message, release=release)
    unpacker = msgpack.Unpacker()
    unpacker.feed(message)
    with pytest.raises((msgpack.OutOfData, ValueError)):
        unpacker.unpack()
    assert peak_memory() < 60 * len(message)


def test_depth_has_msgpacks_limit_both_ways() -> None:
    nested: Any = None
    for _ in range(1024):
        nested = [nested]
    assert msgpack.unpackb(msgpack.packb(nested)) is not None
    with pytest.raises(ValueError, match="recursion limit exceeded"):
        msgpack.packb([[nested]])
    with pytest.raises(msgpack.StackError, match="1024 levels"):
        msgpack.unpackb(b"\x91" * 1025 + b"\xc0")
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="recursion limit exceeded"):
        msgpack.packb(loop)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("depth", [1, 62, 63, 64, 65, 66, 200])
def test_depth_changes_nothing_below_the_limit(depth: int, release: Any) -> None:
    value: Any = ["bottom", 1]
    for level in range(depth):
        value = {"a": 1, "b": value, "c": [level]} if level % 2 else [level, value, "x", {}]
    message = msgpack.packb(value)
    assert msgpack.unpackb(message, release=release) == value
    seen: list[Any] = []

    def hook(items: Any) -> Any:
        seen.append(items)
        return items

    assert msgpack.unpackb(message, release=release, object_hook=hook, list_hook=hook) == value
    assert seen[-1] == value
    assert len(seen) == 1 + 2 * depth
    pairs = msgpack.unpackb(message, release=release, object_pairs_hook=dict)
    assert pairs == value
    for end in (0, 1, depth // 2, depth, len(message) // 2, len(message) - 1):
        with pytest.raises(ValueError, match=r"incomplete|exceeds"):
            msgpack.unpackb(message[:end], release=release)


def test_containers_as_keys() -> None:
    message = b"\x82\x92\x01\x90\xa1a\x90\x02"  # {(1, ()): "a", (): 2}
    assert msgpack.unpackb(message, use_list=False, strict_map_key=False) == {(1, ()): "a", (): 2}
    wrong: list[dict[str, Any]] = [{"use_list": False}, {"strict_map_key": False}]
    for options in wrong:
        with pytest.raises((ValueError, TypeError)):
            msgpack.unpackb(message, **options)


def test_each_thread_remembers_keys_of_its_own() -> None:
    message = msgpack.packb({"a key": 1, "ключ": 2, "": 3, "k" * 40: 4})
    expected = msgpack.unpackb(message)
    found: list[Any] = []

    def work() -> None:
        found.extend(
            msgpack.unpackb(message, object_hook=lambda _: msgpack.unpackb(message)) for _ in range(50)
        )

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 200


def test_a_value_that_its_key_removes_is_packed_all_the_same() -> None:
    class Key:
        pass

    for size in (10, 1000, 100_000):
        for key in ("key", ["key"]):
            values: dict[Any, Any] = {Key(): "v" * size}

            def default(_: Any, values: dict[Any, Any] = values, key: Any = key) -> Any:
                values.clear()
                return key

            message = msgpack.packb(values, default=default)
            unpacked = msgpack.unpackb(message, object_pairs_hook=list, strict_map_key=False)
            assert unpacked == [(key, "v" * size)]


IN_BLOCKS = """
import msgpack as original
from offlock import msgpack, strings

records = [{"text": f"record {n}", "more": ["", "a", "é" * n, "—", "\\U0001f600" + "x" * n, n]} for n in range(300)]
message = msgpack.packb(records)
strings.enable_blocks()
before = strings._native.blocks()[0]
for _ in range(3):
    built = msgpack.unpackb(message, release="always")
    assert built == records and strings._native.blocks()[0] > before
    assert msgpack.extract(message, "text", release="always") == [record["text"] for record in records]
    assert msgpack.unpackb(message, release="always", raw=True) == original.unpackb(message, raw=True)
broken = msgpack.packb([{"text": "é"}, {"text": b"\\xff"}, {"text": "end"}], use_bin_type=False)
assert msgpack.unpackb(broken, release="always", unicode_errors="replace")[1] == {"text": "\\ufffd"}
for decode in (msgpack.unpackb, lambda message, release: msgpack.extract(message, "text", release=release)):
    try:
        decode(broken, release="always")
    except UnicodeDecodeError:
        continue
    raise AssertionError("no UnicodeDecodeError")
try:
    msgpack.unpackb(message, release="always", object_hook=lambda _: 1 / 0)
except ZeroDivisionError:
    pass
del built, decode
assert strings._native.blocks()[0] == before
print("done")
"""


@with_gil
def test_strings_of_large_messages_in_blocks() -> None:
    run = subprocess.run([sys.executable, "-c", IN_BLOCKS], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("done\n", "")


def test_long_messages_end_where_they_end() -> None:
    for length in [1000, 1024, 1025, 100_000, 131_064, 131_072, 131_073, 200_000, 1_000_000]:
        message = msgpack.packb(["x" * 1000] * (length // 1000) + ["y" * (length % 1000)])
        assert message == bytes(bytearray(message))
        assert msgpack.unpackb(message)[-1] == "y" * (length % 1000)


@with_gil  # without a GIL, buffers are copied before they are packed
def test_objects_that_change_while_they_are_packed() -> None:
    class Odd: ...

    items: list[Any] = [Odd(), 1, 2]
    with pytest.raises(RuntimeError, match="list changed size"):
        msgpack.packb(items, default=lambda _: items.pop() and None)
    entries: dict[Any, Any] = {"a": Odd(), "b": 1, "c": 2}
    with pytest.raises(RuntimeError, match="dictionary changed size"):
        msgpack.packb(entries, default=lambda _: entries.pop("c") and None)
    entries = {(): Odd(), "b": 1}
    with pytest.raises(RuntimeError, match="dictionary changed size"):
        msgpack.packb(entries, default=lambda _: entries.clear())


CHANGES: dict[str, Callable[[list[Any]], object]] = {
    "append": lambda items: items.append("more"),
    "extend": lambda items: items.extend(range(1000)),
    "pop": lambda items: items.pop(),
    "clear": lambda items: items.clear(),
    "sort": lambda items: items.sort(key=id),
}


@with_gil  # without a GIL, `gc.get_objects` stops the threads, and takes seconds
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("length", [100, 200_000])
def test_lists_that_a_hook_finds_and_changes_while_they_are_filled(length: int, change: str) -> None:
    marker = object()
    finds = []

    def hook(entries: dict[Any, Any]) -> object:
        if 2 in entries:
            for each in gc.get_objects():
                if type(each) is list and len(each) > 1 and each[0] is marker:
                    finds.append(list(each[:2]))
                    CHANGES[change](each)
        return marker

    message = msgpack.packb([{1: 1}, "text", {2: 2}, *range(length)])
    if change == "sort":
        assert len(msgpack.unpackb(message, object_hook=hook, strict_map_key=False)) == length + 3
    else:
        with pytest.raises(RuntimeError, match="the list changed size while it was filled"):
            msgpack.unpackb(message, object_hook=hook, strict_map_key=False)
    assert finds == [[marker, "text"]]


def test_exceptions_in_callbacks_leave_everything_usable() -> None:
    def fail(*_: object) -> Any:
        raise LookupError

    packer = msgpack.Packer(default=fail, autoreset=False)
    with pytest.raises(LookupError):
        packer.pack([1, object()])
    packer.pack(1)
    assert packer.bytes() == b"\x01"
    unpacker = msgpack.Unpacker(ext_hook=fail, list_hook=fail, object_hook=fail)
    for message in (b"\x92\x01\xd4\x05a", b"\x91\x01", b"\x81\xa1a\x01"):
        unpacker.feed(message)
        with pytest.raises(LookupError):
            unpacker.unpack()
        list(unpacker.read_bytes(100))
        unpacker.feed(b"\x07")
        assert unpacker.unpack() == 7


def test_callbacks_that_use_the_same_object() -> None:
    packer = msgpack.Packer(default=lambda _: msgpack.ExtType(1, packer.pack([1])))
    assert packer.pack([object(), 2]) == b"\x92\xd5\x01\x91\x01\x02"
    assert packer.pack(2) == b"\x02"
    keeper = msgpack.Packer(default=lambda _: keeper.pack(1), autoreset=False)
    with pytest.raises(RuntimeError, match="in progress"):
        keeper.pack(object())
    assert keeper.pack(2) is None
    assert keeper.bytes() == b"\x02"
    unpacker = msgpack.Unpacker(ext_hook=lambda *_: (unpacker.tell(), unpacker.feed(b"\x01")))  # type: ignore[func-returns-value]
    unpacker.feed(b"\xd4\x05a")
    with pytest.raises(RuntimeError, match="in progress"):
        unpacker.unpack()
    assert msgpack.unpackb(b"\xd4\x05\x07", ext_hook=lambda _, data: msgpack.unpackb(data)) == 7


def test_hooks_see_each_object_once_however_it_arrives() -> None:
    seen = []
    unpacker = msgpack.Unpacker(ext_hook=lambda kind, data: seen.append(data) or data)  # type: ignore[func-returns-value]
    for byte in msgpack.packb([msgpack.ExtType(1, b"a"), msgpack.ExtType(1, b"b")]):
        unpacker.feed(bytes([byte]))
        list(unpacker)
    assert seen == [b"a", b"b"]


@pytest.mark.parametrize("size", [0, 10, 5000, 200_000])
def test_nothing_leaks(size: int) -> None:
    class Marker: ...

    refs = []

    def hook(code: int, data: bytes) -> Marker:
        marker = Marker()
        refs.append(weakref.ref(marker))
        return marker

    bad = b"\x92" + msgpack.packb("x" * size) + b"\xc1"
    for release in RELEASES:
        with pytest.raises(msgpack.FormatError):
            msgpack.unpackb(b"\x92\xd4\x01a" + bad, ext_hook=hook, release=release)  # type: ignore[arg-type]
    unpacker = msgpack.Unpacker(ext_hook=hook)
    unpacker.feed(b"\x92\xd4\x01a")
    with pytest.raises(msgpack.OutOfData):
        unpacker.unpack()
    del unpacker
    gc.collect()
    assert refs
    assert all(ref() is None for ref in refs)


def test_references_are_balanced() -> None:
    value = {"key-of-its-own": [1.5, "text-of-its-own", b"bytes", None, True, -(2**40)]}
    keys = list(value)

    def cycle() -> None:
        message = msgpack.packb(value)
        for release in RELEASES:
            msgpack.unpackb(message, release=release)  # type: ignore[arg-type]
            msgpack.view(message, release=release)["key-of-its-own"].build()

    cycle()
    before = [sys.getrefcount(thing) for thing in (keys[0], None, value)]
    for _ in range(100):
        cycle()
    after = [sys.getrefcount(thing) for thing in (keys[0], None, value)]
    assert all(abs(now - then) < 50 for then, now in zip(before, after, strict=True))


def test_file_likes() -> None:
    message = b"".join(msgpack.packb({"n": n, "text": "x" * n}) for n in range(50))
    for read_size in (1, 7, 1000):
        unpacked = list(msgpack.Unpacker(io.BytesIO(message), read_size=read_size))
        assert [entry["n"] for entry in unpacked] == list(range(50))
    with pytest.raises(msgpack.BufferFull):
        msgpack.Unpacker(max_buffer_size=3).feed(b"\x00" * 4)
    stream = io.BytesIO()
    msgpack.pack([1], stream)
    stream.seek(0)
    assert msgpack.unpack(stream) == [1]


def test_extra_types() -> None:
    class Color(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Point:
        x: int
        y: float

    assert msgpack.unpackb(msgpack.packb([Point(1, 2.5)], dataclasses=True)) == [{"x": 1, "y": 2.5}]
    assert msgpack.unpackb(msgpack.packb(Color.RED, enum=True)) == "red"
    name = uuid.UUID(int=5)
    assert msgpack.unpackb(msgpack.packb(name, uuid=True)) == str(name)
    moment = datetime.datetime(2026, 11, 21, 7, tzinfo=datetime.UTC)
    assert msgpack.unpackb(msgpack.packb(moment, datetime=True), timestamp=3) == moment
    assert msgpack.unpackb(msgpack.packb([moment, moment.date()], datetime="iso")) == [
        "2026-11-21T07:00:00+00:00",
        "2026-11-21",
    ]
    for thing in (Point(1, 2), Color.RED, name, moment):
        with pytest.raises(TypeError):
            msgpack.packb(thing)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(-5, 5, dtype=kind).reshape(2, 5) if kind[0] != "u" else np.arange(10, dtype=kind)
        for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float64")
    ]
    + [
        np.array([True, False]),
        np.zeros((2, 0)),
        np.arange(12).reshape(3, 4).T,
        np.float64(1.5),
        np.array(3),
    ],
    ids=repr,
)
def test_numpy(array: Any) -> None:
    assert msgpack.unpackb(msgpack.packb(array, numpy=True)) == array.tolist()


def test_views() -> None:
    value = [{"id": n, "name": f"é{n}", "tags": ["a", {"deep": n}], 5: None} for n in range(50)]
    for release in RELEASES:
        view = msgpack.view(msgpack.packb(value), strict_map_key=False, release=release)
        assert len(view) == 50
        assert view[3]["name"] == "é3"
        assert view[-1]["tags"][1]["deep"] == 49
        assert list(view[0]) == ["id", "name", "tags", 5]
        assert "id" in view[0]
        assert "none" not in view[0]
        assert view[0][5] is None
        assert view[0].get("none", 7) == 7
        assert [entry.build() for entry in view] == value
        assert view.build() == value
        with pytest.raises(IndexError, match="50"):
            view[50]
        with pytest.raises(KeyError):
            view[0]["none"]
        for places in (slice(2, 7), slice(None, None, -9), slice(40, 99), slice(-3, None), slice(5, 2)):
            assert view[places] == value[places]
        assert view == value == msgpack.view(msgpack.packb(value), strict_map_key=False)
        assert view[3] == value[3]
        assert view != value[1:]
        assert view[3] != value[4]
        assert view[3] != list(value[3])
        assert view[3]["tags"] != {}
        assert repr(view[0]) == "View({'id': 0, 'name': 'é0', 'tags': [...], 5: None})"
        assert repr(view).startswith("View([{...}, {...}, ")
        assert repr(view).endswith(", ...])")
        with pytest.raises(TypeError, match="unhashable"):
            hash(view)
        with pytest.raises(TypeError, match="no keys"):
            view.get(0)
    assert msgpack.view(b"\x07") == 7
    with pytest.raises(msgpack.ExtraData):
        msgpack.view(b"\x90\x01")


@pytest.mark.parametrize("release", RELEASES)
def test_extract(release: Any) -> None:
    records = [{"text": f"é{n}" if n % 2 else "a" * n, "user": {"name": "n"}, "n": n} for n in range(100)]
    message = msgpack.packb([*records, {}, {"text": None}])
    assert msgpack.extract(message, "text", release=release) == [r["text"] for r in records] + [None, None]
    assert msgpack.extract(message, "user", "name", release=release) == ["n"] * 100 + [None, None]
    assert msgpack.extract(message, "n", release=release) == [*range(100), None, None]
    mixed = [1, -1, 2**64 - 1, -(2**63), 1.5, True, False, None, "text"]
    mixed_message = msgpack.packb([{"v": value} for value in mixed])
    found = msgpack.extract(mixed_message, "v", release=release)
    assert [(type(value), value) for value in found] == [(type(value), value) for value in mixed]
    with pytest.raises(TypeError, match=r"expected a string, a number or a boolean at offset \d+, found map"):
        msgpack.extract(message, "user", release=release)
    with pytest.raises(ValueError, match="more than 1024 keys"):
        msgpack.extract(message, *["a"] * 1025, release=release)
    with pytest.raises(ValueError, match="incomplete"):
        msgpack.extract(message[:-1], "text", release=release)


@pytest.mark.parametrize("release", RELEASES)
def test_extracted_strings_that_repeat_often_are_made_once(release: Any) -> None:
    names = ["one", "zwei", "três", None]
    records = [{"name": names[n % 4], "id": str(n)} if n % 7 else {} for n in range(20_000)]
    message = msgpack.packb(records)
    found = msgpack.extract(message, "name", release=release)
    assert found == [record.get("name") for record in records]
    assert len({id(name) for name in found if name}) == 3
    assert msgpack.extract(message, "id", release=release) == [record.get("id") for record in records]
    broken = msgpack.packb([*records, {"name": b"\xff"}], use_bin_type=False)
    with pytest.raises(UnicodeDecodeError):
        msgpack.extract(broken, "name", release=release)


@pytest.mark.parametrize("release", RELEASES)
def test_unpack_all(release: Any) -> None:
    values = [[n, "x" * n, {"k": n}] for n in range(100)]
    assert msgpack.unpack_all([msgpack.packb(value) for value in values], release=release) == values
    with pytest.raises(ValueError, match="incomplete"):
        msgpack.unpack_all([b"\x01", b"\x91"], release=release)


def test_other_threads_get_the_lock_while_a_large_message_is_built() -> None:
    message = msgpack.packb([{"id": number, "name": f"name {number}"} for number in range(200_000)])
    turns: list[float] = []
    stop = threading.Event()

    def beat() -> None:
        while not stop.is_set():
            time.sleep(0.0002)
            turns.append(time.monotonic())

    thread = threading.Thread(target=beat)
    thread.start()
    start = time.monotonic()
    msgpack.unpackb(message)
    end = time.monotonic()
    stop.set()
    thread.join()
    # The index is made without the lock in less than a third of the time. Only turns during building count.
    building = [turn for turn in turns if start + (end - start) / 2 < turn < end]
    assert len(building) >= 5, f"{len(building)} turns in the second half of {end - start:.3f} s"


def test_threads_share_packers_and_large_messages() -> None:
    value = [{"id": n, "name": "x" * (n % 50)} for n in range(20_000)]
    message = msgpack.packb(value)
    outcomes: list[bool] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(msgpack.unpackb(message) == value)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [True] * 4


LARGE = """
import signal, sys, threading
import msgpack as original
from offlock import msgpack

if "beside" in sys.argv:
    stop = threading.Event()
    threading.Thread(target=stop.wait, daemon=True).start()
records = [{"id": n, "text": f"record {n} é", "more": [n, None, 0.5]} for n in range(20_000)]
message = original.packb(records)
assert msgpack.unpackb(message) == records
assert msgpack.unpackb(bytearray(message), use_list=False) == tuple({**r, "more": tuple(r["more"])} for r in records)
for wrong, error in [(message[:-1], ValueError), (message + b"\\x01", msgpack.ExtraData), (message[:-9] + b"\\xc1", msgpack.FormatError)]:
    try:
        msgpack.unpackb(wrong)
    except error:
        continue
    raise AssertionError(error)

def alarm(*_):
    raise TimeoutError

signal.signal(signal.SIGALRM, alarm)
many = b"\\xdd" + (5_000_000).to_bytes(4, "big") + b"\\x91\\x01" * 5_000_000
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    msgpack.unpackb(many)
except TimeoutError:
    print("done")
"""


@pytest.mark.parametrize("other_threads", [[], ["beside"]])
def test_large_messages_with_and_without_other_threads(other_threads: list[str]) -> None:
    command = [sys.executable, "-c", LARGE, *other_threads]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("done\n", "", 0)
