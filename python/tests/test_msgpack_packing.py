"""Packing of unusual objects, the exceptions, and changes that other threads make during a call."""

from __future__ import annotations

import collections
import enum
import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest
from interpreter import HAS_GIL
from processes import run

from offlock import msgpack

original = pytest.importorskip("msgpack")


class Odd: ...


class Loop(enum.Enum):
    A = 1

    @property
    def value(self) -> Any:
        return self


class Pair(enum.Enum):
    A = Odd()


def outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


FLOATS = [0.0, 1.5, 3.4028235e38, 3.4028235677973366e38, 1e39, 1e300, 1e-300, float("inf"), float("nan")]


@pytest.mark.parametrize("value", [*FLOATS, *(-value for value in FLOATS), np.float64(1e300)], ids=repr)
def test_single_floats_as_with_the_original(value: float) -> None:
    expected = outcome(lambda: original.packb(value, use_single_float=True))
    assert outcome(lambda: msgpack.packb(value, use_single_float=True)) == expected
    array = outcome(lambda: msgpack.packb(np.array([value]), use_single_float=True, numpy=True))
    if isinstance(expected, bytes):
        assert array == b"\x91" + expected
    else:
        assert array == (expected[0], f"{expected[1]} (at [0])")


def self_containing() -> Any:
    array = np.empty(1, object)
    array[0] = array
    return array


def self_holding() -> Any:
    array = np.array(None, object)
    array[()] = array
    return array


class Array(np.ndarray):
    """A class with a name of numpy's."""

    __module__ = "numpy"

    def tolist(self) -> Any:
        return self

    def view(self, *_: Any) -> Any:  # type: ignore[override]
        return self

    def __getitem__(self, _: Any) -> Any:
        return self


@pytest.mark.parametrize(
    ("thing", "error", "message"),
    [
        (np.longdouble(1.5), TypeError, "can not serialize 'numpy.longdouble' object"),
        (
            np.array([1.5], np.longdouble),
            TypeError,
            r"can not serialize 'numpy.longdouble' object \(at \[0\]\)",
        ),
        (np.array(1.5, np.longdouble), TypeError, "can not serialize 'numpy.ndarray' object"),
        (np.array([[1 + 2j]]), TypeError, r"can not serialize 'complex' object \(at \[0\]\[0\]\)"),
        (np.complex64(1), TypeError, "can not serialize 'complex' object"),
        (np.array([Odd()], object), TypeError, "can not serialize '.*Odd' object"),
        (self_containing(), ValueError, "recursion limit exceeded"),
        (self_holding(), TypeError, "can not serialize 'numpy.ndarray' object"),
        (np.zeros((2, 2), ">f4").view(Array), (TypeError, RuntimeError, ValueError), "."),
        (np.ma.array([1]), TypeError, "MaskedArray"),
        (Loop.A, ValueError, "recursion limit exceeded"),
        ([Loop.A], ValueError, r"recursion limit exceeded. \(at \[0\]\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_stands_for_itself_is_refused(thing: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        msgpack.packb(thing, numpy=True, enum=True)
    made = msgpack.packb([np.longdouble(1.5)], numpy=True, default=float)
    assert made == b"\x91\xcb\x3f\xf8" + bytes(6)


@pytest.mark.parametrize("default", [lambda odd: odd, lambda _: Odd()], ids=["the same", "another"])
def test_a_default_that_does_not_help_is_asked_once(default: Any) -> None:
    expected = outcome(lambda: original.packb(Odd(), default=default))
    assert expected[0] is TypeError
    assert outcome(lambda: msgpack.packb(Odd(), default=default))[0] is TypeError
    with pytest.raises(ValueError, match="recursion limit exceeded"):
        msgpack.packb(Odd(), default=lambda odd: [odd])
    with pytest.raises(ValueError, match="recursion limit exceeded"):
        msgpack.packb(Odd(), default=lambda _: Pair.A, enum=True)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(20_000, dtype=">i4"),
        np.arange(30_000, dtype=">f8").reshape(3, 10_000),
        np.arange(30_000, dtype=">u2").reshape(10_000, 3),
        np.arange(24, dtype="float16").reshape(2, 3, 4),
        np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
        np.zeros((3, 0), ">i4"),
        np.zeros((0, 3), "float16"),
        np.array([(1, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)]),
        np.array(["a", "bc"]),
        np.array([b"a", b"bc"]),
        np.array([1, "a", None], object),
        np.arange(4, dtype=">i2").reshape(2, 2).view(np.matrix),
        np.arange(5000, dtype="int16"),
        np.array([True, False] * 1000),
        np.arange(6000, dtype="float32").reshape(2, 3, 1000),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_are_written_as_their_lists(array: Any) -> None:
    unpacked = msgpack.unpackb(msgpack.packb(array, numpy=True))
    assert unpacked == msgpack.unpackb(msgpack.packb(array.tolist()))


def test_subclasses_that_lie_about_their_length() -> None:
    class Tuple(tuple[Any, ...]):
        def __len__(self) -> int:
            return 100

    class Dict(dict[Any, Any]):
        def __len__(self) -> int:
            return 100

    assert msgpack.packb(Tuple((1, 2))) == b"\x92\x01\x02"
    with pytest.raises(RuntimeError, match="dictionary changed size"):
        msgpack.packb(Dict(a=1))


nested: Any = Odd()
for _ in range(200):
    nested = [1, nested]


@pytest.mark.parametrize(
    ("thing", "place"),
    [
        (Odd(), None),
        ([1, Odd()], "[1]"),
        ((1, (2, 3, Odd())), "[1][2]"),
        ({"users": [1, 2, 3, {"when": Odd(), "x": 1}]}, '["users"][3]["when"]'),
        ({1: {b"b": {None: {1.5: Odd()}}}}, "[1][b'b'][None][1.5]"),
        ({(1, Odd()): 2}, "{<tuple>}[1]"),
        ([{Odd(): 2}], "[0]{<"),
        ({(1, 2): Odd()}, "[<tuple>]"),
        (collections.OrderedDict(a=1, b=[Odd()]), '["b"][0]'),
        ([{'k"é\n' + "y" * 100: Odd()}], '[0]["k\\"é\\n' + "y" * 36 + '…"]'),
        (nested, "[1]" * 10 + "…" + "[1]" * 10),
        ([0, 2**70], "[1]"),
        ({"a": "\udc80"}, '["a"]'),
        ({"\udc80": 1}, "{'\\udc80'}"),
        (np.array([[1], [Odd()]], object), "[1][0]"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_errors_say_where(thing: Any, place: str | None) -> None:
    with pytest.raises((TypeError, OverflowError, UnicodeEncodeError)) as raised:
        msgpack.packb(thing, numpy=True)
    (said,) = [raised.value.args[0], *getattr(raised.value, "__notes__", [])][-1:]
    if place is None:
        assert "at" not in said.split()
    else:
        assert place in said
    if not isinstance(thing, np.ndarray):
        kind, message = outcome(lambda: original.packb(thing))
        assert isinstance(raised.value, kind)
        assert kind is not OverflowError or str(raised.value).startswith(message)
    for packer in (msgpack.Packer(numpy=True), msgpack.Packer(numpy=True, autoreset=False)):
        with pytest.raises(type(raised.value)):
            packer.pack(thing)


def test_what_a_callback_raises_gets_a_note() -> None:
    def refuse(_: Any) -> Any:
        raise LookupError("no")

    with pytest.raises(LookupError) as raised:
        msgpack.packb({"a": [Odd()]}, default=refuse)
    assert raised.value.args == ("no",)
    assert raised.value.__notes__ == ['while packing ["a"][0]']


def test_a_list_that_grows_is_packed_as_it_was() -> None:
    items: list[Any] = [Odd(), 1]
    assert msgpack.packb([items, 2], default=lambda _: items.append(3)) == b"\x92\x92\xc0\x01\x02"
    entries: dict[Any, Any] = {"a": Odd(), "b": 1}
    if not HAS_GIL:  # where a dict is copied before it is packed
        assert (
            msgpack.packb([entries], default=lambda _: entries.update(c=3)) == b"\x91\x82\xa1a\xc0\xa1b\x01"
        )
        return
    with pytest.raises(RuntimeError, match=r"^dictionary changed size during iteration \(at \[0\]\)$"):
        msgpack.packb([entries], default=lambda _: entries.update(c=3))


def test_threads_share_a_packer_and_an_unpacker() -> None:
    """Other threads get the lock in the middle of a call, and their calls on the same packer wait."""
    records: Any = [{"id": number, "name": "x" * (number % 30)} for number in range(60_000)]
    message = msgpack.packb(records)
    packer, keeper, unpacker = (
        msgpack.Packer(),
        msgpack.Packer(autoreset=False),
        msgpack.Unpacker(max_buffer_size=0),
    )
    failures: list[Any] = []

    def work() -> None:
        try:
            for _ in range(4):
                assert packer.pack(records) == message
                keeper.pack(records)
                unpacker.feed(message)
                assert unpacker.unpack() == records
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert keeper.bytes() == message * 16


def test_keys_of_messages_do_not_pile_up() -> None:
    """Some versions of CPython never free interned strings."""
    out = run(
        """
        from offlock import msgpack
        unpacker = msgpack.Unpacker()
        def message(round):
            return msgpack.packb([{f"key {round} {number}": 1} for number in range(10_000)])
        def read(round):
            one = message(round)
            for release in ("always", "never"):
                msgpack.unpackb(one, release=release)
            unpacker.feed(one)
            unpacker.unpack()
        for round in range(5):
            read(round)
        before = rss()
        for round in range(5, 45):
            read(round)
        say(rss() - before)
        """,
        prelude="import os\ndef say(*words): print(*words, flush=True)\n"
        "def rss(): return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE')\n",
    )
    # If they were kept, 400,000 keys would take 39 MB.
    assert int(out) < 12 << 20


def test_the_value_of_a_long_key_that_another_thread_replaces() -> None:
    """Other threads may get the lock while a long key is written, and may free the value."""
    keys = [f"key {number} " * 30_000 for number in range(100)]
    entries = dict.fromkeys(keys, b"value %16d" % 0)
    over = threading.Event()

    def replace() -> None:
        others: list[bytes] = []
        for number in itertools.count():
            for key in keys:
                entries[key] = b"value %16d" % number
                others += [b"other %16d" % number, b"other %16d" % -number]
            if over.is_set():
                return
            del others[:-5000]

    replacing = threading.Thread(target=replace)
    replacing.start()
    try:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            packed = msgpack.unpackb(msgpack.packb(entries))
            assert {value[:6] for value in packed.values()} == {b"value "}
    finally:
        over.set()
        replacing.join()


@pytest.mark.parametrize("release", ["auto", "never"])
@pytest.mark.parametrize("ending", ["", "\ud83d\ude00", "\ud83d", "😀"], ids=ascii)
@pytest.mark.parametrize("size", [7, 1_000, 10_000, 2_000_000])
def test_long_text_of_wide_characters(size: int, ending: str, release: Any) -> None:
    def packed(pack: Any, **options: Any) -> Any:
        # A separate string, because CPython keeps the UTF-8 of a string once it has been asked for.
        result = outcome(lambda: pack("é—"[size % 2] * size + ending, **options))
        return result if isinstance(result, bytes) else result[0]

    assert packed(msgpack.packb, release=release) == packed(original.packb)


FINALIZER_CLEARS_WHAT_IS_PACKED = """
import gc
from offlock import msgpack

class Cycle:
    def __init__(self, container):
        self.container, self.itself = container, self
    def __del__(self):
        self.container.clear()
        kept.append([bytes([255]) * size for size in range(8, 300, 4) for _ in range(20)])

kept = []
containers = [lambda: [2**70 + 1], lambda: {2**70 + 1: [b"value", 1]}, lambda: {chr(0xD800): [b"value", 1]}]
for make in containers:
    for threshold in range(1, 60):
        container = make()
        gc.disable()
        gc.collect()
        gc.set_threshold(threshold, 1000, 1000)
        try:
            raise KeyError  # so that exceptions are made at once
        except KeyError:
            Cycle(container)
            gc.enable()
            try:
                msgpack.packb(container, default=lambda _: 0)
            except (RuntimeError, UnicodeEncodeError):
                pass
            gc.disable()
print("alive")
"""


def test_finalizers_that_change_what_is_packed() -> None:
    """Before CPython 3.12 making an exception may collect garbage, and finalizers free what is borrowed."""
    assert run(FINALIZER_CLEARS_WHAT_IS_PACKED) == "alive\n"
