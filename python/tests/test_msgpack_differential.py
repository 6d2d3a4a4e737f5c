"""Compares MessagePack with the original: the same bytes, the same objects, the same errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offlock import msgpack

original = pytest.importorskip("msgpack")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.builds(original.ExtType, st.integers(0, 127), st.binary(max_size=40))
    | st.builds(original.Timestamp, st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**9 - 1))
)
keys = st.text(max_size=8) | st.binary(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(keys, inner, max_size=20),
    max_leaves=60,
)


def ours(value: Any) -> Any:
    """Returns the value with offlock's classes in place of the original's."""
    match value:
        case original.ExtType():
            return msgpack.ExtType(*value)
        case original.Timestamp():
            return msgpack.Timestamp(value.seconds, value.nanoseconds)
        case list():
            return [ours(item) for item in value]
        case dict():
            return {key: ours(item) for key, item in value.items()}
    return value


@given(values)
@settings(max_examples=80, deadline=None)
def test_the_same_bytes_and_objects(value: Any) -> None:
    message = original.packb(value)
    assert msgpack.packb(ours(value)) == message
    for release in ("always", "never"):
        assert msgpack.unpackb(message, release=release) == ours(original.unpackb(message))


def outcome(module: Any, message: bytes, **options: Any) -> Any:
    try:
        return repr(module.unpackb(message, **options))
    except Exception as error:
        return classes(error)


def classes(error: Exception) -> list[str]:
    """Returns the names of the exception's class and of its base classes."""
    return [base.__name__ for base in type(error).__mro__ if base is not object]


options = st.fixed_dictionaries(
    {},
    optional={
        "use_list": st.booleans(),
        "raw": st.booleans(),
        "strict_map_key": st.booleans(),
        "timestamp": st.integers(0, 3),
        "unicode_errors": st.sampled_from(["strict", "replace", "surrogateescape"]),
        "max_str_len": st.integers(0, 5),
        "max_array_len": st.integers(0, 5),
    },
)


def same(message: bytes, chosen: dict[str, Any]) -> None:
    expected = outcome(original, message, **chosen)
    assert outcome(msgpack, message, release="never", **chosen) == expected
    # offlock scans the structure first, so it may find another one of several errors.
    indexed = outcome(msgpack, message, release="always", **chosen)
    assert isinstance(indexed, list) == isinstance(expected, list)
    if not isinstance(expected, list):
        assert indexed == expected


@given(st.binary(max_size=60), options)
@settings(max_examples=200, deadline=None)
def test_the_same_for_any_bytes(message: bytes, chosen: dict[str, Any]) -> None:
    same(message, chosen)


@given(values, st.data(), options)
@settings(max_examples=80, deadline=None)
def test_the_same_for_damaged_messages(value: Any, data: st.DataObject, chosen: dict[str, Any]) -> None:
    message = bytearray(original.packb(value))
    place = data.draw(st.integers(0, len(message) - 1))
    message[place] = data.draw(st.integers(0, 255))
    same(bytes(message), chosen)


@given(st.lists(values, max_size=5), st.data())
@settings(max_examples=40, deadline=None)
def test_the_same_from_a_stream(many: list[Any], data: st.DataObject) -> None:
    stream = b"".join(original.packb(value) for value in many)
    unpacker = msgpack.Unpacker()
    unpacked = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        unpacker.feed(stream[:size])
        stream = stream[size:]
        unpacked += list(unpacker)
    assert unpacked == [ours(original.unpackb(original.packb(value))) for value in many]


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("nanoseconds", [0, 999_999_999, 1_000_000_000, 2**30 - 1, 2**32 - 1])
def test_the_same_of_timestamps_with_too_many_nanoseconds(mode: int, nanoseconds: int) -> None:
    for head, place, length in ((b"\xd7\xff", 34, 8), (b"\xc7\x0c\xff", 64, 12)):
        payload = nanoseconds << place | 5
        if payload.bit_length() <= 8 * length:
            same(head + payload.to_bytes(length, "big"), {"timestamp": mode})


KEYS = [b"\xa1a", b"\xc4\x01b", b"\x01", b"\x91\x01", b"\x81\x02\x03", b"\xc0", b"\xa1\xff"]
VALUES = [b"\xc0", b"\xa1\xff", b"\xc1", b"", b"\x81\x01\xc1", b"\x91\xa1\xff", b"\x92\x01\x02"]


def streamed(module: Any, message: bytes, **options: Any) -> Any:
    """Returns the results of an unpacker that is fed byte by byte."""
    unpacker = module.Unpacker(**options)
    unpacked = []
    try:
        for byte in message:
            unpacker.feed(bytes([byte]))
            unpacked += list(unpacker)
    except Exception as error:
        return unpacked, classes(error)
    return repr(unpacked)


@pytest.mark.parametrize("chosen", [{}, {"strict_map_key": False}, {"object_pairs_hook": list}], ids=str)
def test_the_same_of_several_errors_in_a_map(chosen: dict[str, Any]) -> None:
    entries = [key + value for key, value in itertools.product(KEYS, VALUES)]
    messages = [b"\x81" + entry for entry in entries]
    messages += [b"\x82" + one + other for one, other in itertools.product(entries, entries)]
    for message in messages:
        same(message, chosen)
        assert streamed(msgpack, message, **chosen) == streamed(original, message, **chosen), message
