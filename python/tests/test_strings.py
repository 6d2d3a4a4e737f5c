"""Compares the operations of offlock.strings with Python's own."""

from __future__ import annotations

import array
import concurrent.futures
import gc
import itertools
import mmap
import random
import re
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreter import HAS_GIL
from stringmaking import KINDS, LINE_ENDS, WIDTHS, texts

import offlock
from offlock import strings

pytestmark = pytest.mark.parametrize("kind", KINDS)
untyped: Any = strings
releases = st.sampled_from(["always", "never", "auto"])


@given(text=texts, keepends=st.booleans(), release=releases)
def test_lines(kind: Any, text: str, keepends: bool, release: Any) -> None:
    found = strings.lines(text.encode(), keepends=keepends, kind=kind, release=release)
    assert found == text.splitlines(keepends)


@given(text=texts, keepends=st.booleans())
def test_lines_that_end_with_newline_only(kind: Any, text: str, keepends: bool) -> None:
    expected = text.split("\n")
    last = expected.pop()
    if keepends:
        expected = [line + "\n" for line in expected]
    expected += [last] if last else []
    assert strings.lines(text.encode(), newline="\n", keepends=keepends, kind=kind) == expected


@given(
    text=texts,
    sep=st.sampled_from([*LINE_ENDS, "a", "é", "ж", "𐩡", "aï", ", "]) | st.text(min_size=1, max_size=3),
)
def test_split(kind: Any, text: str, sep: str) -> None:
    for separator in (sep, sep.encode(), memoryview(sep.encode())):
        assert strings.split(text.encode(), separator, kind=kind) == text.split(sep)


@given(pieces=st.lists(st.text(max_size=40) | st.sampled_from(WIDTHS)), release=releases)
def test_from_offsets(kind: Any, pieces: list[str], release: Any) -> None:
    encoded = [piece.encode() for piece in pieces]
    offsets = np.cumsum([3, *map(len, encoded)])
    buffer = b"xyz" + b"".join(encoded) + b"\xff not looked at"
    for form in (
        offsets,
        offsets.astype(np.int32),
        offsets.astype(np.uint64),
        offsets.astype(">i4"),
        offsets.astype(">u8"),
        offsets.tolist(),
        tuple(offsets.tolist()),
    ):
        assert strings.from_offsets(buffer, form, kind=kind, release=release) == pieces


@given(pieces=st.lists(st.text(max_size=40) | st.sampled_from(WIDTHS)))
def test_decode_many(kind: Any, pieces: list[str]) -> None:
    for convert in (bytes, bytearray, memoryview):
        assert strings.decode_many([convert(piece.encode()) for piece in pieces], kind=kind) == pieces
    assert strings.decode_many((piece.encode() for piece in pieces), kind=kind, into=tuple) == tuple(pieces)


fields = st.text(st.characters(exclude_characters="\n\r;", exclude_categories=["Cs"]), max_size=9)
tables = st.integers(1, 5).flatmap(lambda width: st.lists(st.lists(fields, min_size=width, max_size=width)))


@given(table=tables, end=st.sampled_from(["\n", "\r\n"]), ended=st.booleans())
def test_columns(kind: Any, table: list[list[str]], end: str, ended: bool) -> None:
    text = end.join(";".join(record) for record in table)
    if ended or text.endswith(end) or not text:
        text += end if table else ""
    found = strings.columns(text.encode(), ";", kind=kind, into=tuple)
    assert found == tuple(zip(*table, strict=True))


@pytest.mark.skipif(not HAS_GIL, reason="there is no lock to wait for")
def test_other_threads_run_while_many_strings_are_made(kind: Any) -> None:
    text = "\n".join(f"line {number}" for number in range(1_000_000)).encode()
    arena = strings.lines(text, into=strings.Arena)
    turns, done = 0, False

    def count() -> None:
        nonlocal turns
        while not done:
            time.sleep(0.0002)
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        made = [arena.list("str"), arena.list("str")]
    finally:
        done = True
        thread.join()
    assert turns > 10
    assert made[0] == made[1] == arena.list(kind)
    assert gc.is_tracked(made[0])


def test_strings_that_repeat_often_are_made_once(kind: Any) -> None:
    words = [WIDTHS[number % len(WIDTHS)] + "x" for number in range(9000)]
    raw = [word.encode() for word in words]
    ends = list(itertools.accumulate(map(len, raw)))
    for made in (
        strings.lines("\n".join(words).encode(), kind=kind),
        strings.split("|".join(words).encode(), "|", kind=kind),
        strings.from_offsets(b"".join(raw), [0, *ends], kind=kind),
        strings.decode_many(raw, kind=kind),
        strings.columns("\n".join(words).encode(), kind=kind)[0],
    ):
        assert list(made) == words
        assert len(set(map(id, made))) == len(WIDTHS)


def test_what_seldom_repeats_is_made_each_time(kind: Any) -> None:
    words = [f"word {number}" for number in range(9000)] * 2
    made = strings.lines("\n".join(words).encode(), kind=kind)
    assert list(made) == words
    assert len(set(map(id, made))) == len(words)


@given(text=texts, kind_again=st.sampled_from(KINDS))
def test_an_arena_makes_the_same_strings_again_and_again(kind: Any, text: str, kind_again: Any) -> None:
    arena = strings.lines(text.encode(), into=strings.Arena)
    expected = text.splitlines()
    assert len(arena) == len(expected)
    assert arena.list(kind) == arena.list(kind_again) == expected
    assert arena.tuple(kind) == tuple(expected)
    assert arena.nbytes >= sum(len(line.encode()) + 1 for line in expected)


def everything(kind: Any, into: Any) -> list[object]:
    """Calls each operation once."""
    return [
        strings.lines(b"a\nb", kind=kind, into=into),
        strings.split(b"a,b", ",", kind=kind, into=into),
        strings.from_offsets(b"ab", [0, 1, 2], kind=kind, into=into),
        strings.decode_many([b"a", b"b"], kind=kind, into=into),
        *strings.columns(b"a\tc\nb\td", kind=kind, into=into)[:1],
    ]


def test_strings_are_put_into_what_was_asked_for(kind: Any) -> None:
    assert everything(kind, list) == [["a", "b"]] * 5
    assert everything(kind, tuple) == [("a", "b")] * 5
    assert [arena.list(kind) for arena in everything(kind, strings.Arena)] == [["a", "b"]] * 5  # type: ignore[attr-defined]


def test_any_buffer_will_do(kind: Any) -> None:
    text = "some plain\nand some día—noche\n" * 99
    encoded = text.encode()
    with tempfile.TemporaryFile() as file:
        file.write(encoded)
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        buffers: list[Any] = [
            bytearray(encoded),
            memoryview(encoded),
            memoryview(bytearray(encoded)),
            array.array("B", encoded),
            np.frombuffer(encoded, np.uint8),
            mapped,
        ]
        for buffer in buffers:
            assert strings.lines(buffer, kind=kind) == text.splitlines()
        mapped.close()  # fails if a buffer is still exported


def test_a_bytearray_may_change_afterwards(kind: Any) -> None:
    buffer = bytearray("first\nsecond\ndía—noche".encode())
    found = strings.lines(buffer, kind=kind)
    buffer[:] = b"something else, and longer than before"
    assert found == ["first", "second", "día—noche"]


def test_long_and_many(kind: Any) -> None:
    rng = random.Random(7)
    lines = [rng.choice("aé—𐩡") * int(10 ** rng.uniform(0, 5)) for _ in range(300)]
    lines += ["short"] * 100_000 + ["é" * 3_000_000]
    assert strings.lines("\n".join(lines).encode(), kind=kind) == lines


@pytest.mark.parametrize(
    "bad",
    [
        b"abc\xff",
        b"\xff",
        b"a\nb\n\xe2\x80",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"x" * 70_000 + b"\x80\n",
        b"\xe2\n\x80",
    ],
)
def test_what_is_not_utf8_raises_what_decode_raises(kind: Any, bad: bytes) -> None:
    with pytest.raises(UnicodeDecodeError) as expected:
        bad.decode()
    operations: list[Callable[[], object]] = [
        lambda: strings.lines(bad, kind=kind),
        lambda: strings.split(bad, "\n", kind=kind),
        lambda: strings.columns(bad, kind=kind),
        lambda: strings.decode_many([b"good", bad], kind=kind),
        lambda: strings.from_offsets(b"good" + bad, [0, 4, 4 + len(bad)], kind=kind),
        lambda: strings.lines(bad, into=strings.Arena),
    ]
    for operation in operations:
        with pytest.raises(UnicodeDecodeError) as found:
            operation()
        assert found.value.args == expected.value.args


def test_the_item_that_is_not_utf8_is_named(kind: Any) -> None:
    with pytest.raises(UnicodeDecodeError) as error:
        strings.decode_many([b"a", "é".encode()[:1], b"b"], kind=kind)
    assert error.value.__notes__ == ["in item 1"]
    with pytest.raises(UnicodeDecodeError, match="position 2: unexpected end") as error:
        strings.from_offsets("abcdé".encode(), [0, 2, 5], kind=kind)
    assert error.value.__notes__ == ["in string 1, which begins at offset 2"]


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda kind: strings.from_offsets(b"abc", [0, 4], kind=kind), "offset 1 is 4, not in 0..=3"),
        (lambda kind: strings.from_offsets(b"abc", [0, -1], kind=kind), "offset 1 is -1, not in 0..=3"),
        (
            lambda kind: strings.from_offsets(b"abc", [2, 3, 1], kind=kind),
            "offset 2 is 1, less than the one before it, 3",
        ),
        (
            lambda kind: strings.columns(b"a\tb\nc\n", kind=kind),
            "record 1 at offset 4 has 1 field, the first one has 2",
        ),
        (
            lambda kind: strings.columns(b"a", ", ", kind=kind),
            "the separator of columns must be one ASCII character",
        ),
        (
            lambda kind: strings.columns(b"a", "é", kind=kind),
            "the separator of columns must be one ASCII character",
        ),
        (lambda kind: strings.split(b"a", "", kind=kind), "empty separator"),
        (lambda kind: strings.split(b"a", b"\xa9", kind=kind), "separator is not UTF-8"),
        (
            lambda kind: untyped.lines(b"a", newline="\r", kind=kind),
            "newline must be None or '\\n', not '\\r'",
        ),
    ],
)
def test_bad_values_are_named(kind: Any, operation: Callable[[Any], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        operation(kind)
    assert str(error.value) == message


def test_bad_types_are_named(kind: Any) -> None:
    operations: list[tuple[Callable[[], object], str]] = [
        (lambda: untyped.lines("text", kind=kind), "a bytes-like object is required, not 'str'"),
        (lambda: untyped.split(b"a", 3, kind=kind), "a bytes-like object is required, not 'int'"),
        (lambda: untyped.decode_many([b"a", "b"], kind=kind), "a bytes-like object is required, not 'str'"),
        (
            lambda: untyped.lines(b"a", kind=kind, into=set),
            "into must be tuple, list or Arena, not <class 'set'>",
        ),
    ]
    for operation, message in operations:
        with pytest.raises(TypeError) as error:
            operation()
        assert message in str(error.value)


def test_bad_keywords_are_named(kind: Any) -> None:
    with pytest.raises(ValueError, match="kind must be 'str', 'block' or 'view', not 'rope'"):
        untyped.lines(b"a", kind="rope")
    with pytest.raises(ValueError, match="release must be 'auto', 'always' or 'never', not 'sometimes'"):
        untyped.lines(b"a", kind=kind, release="sometimes")


def test_a_cancelled_operation_says_so(kind: Any) -> None:
    cancel = offlock.Cancel()
    cancel.cancel()
    arena = strings.lines(b"a\n" * 100_000, into=strings.Arena)
    operations: list[Callable[[], object]] = [
        lambda: arena.tuple(kind, cancel=cancel),
        lambda: strings.lines(b"a", kind=kind, cancel=cancel),
        lambda: strings.lines(b"a", into=strings.Arena, cancel=cancel),
        lambda: strings.split(b"a,b", ",", kind=kind, cancel=cancel),
        lambda: strings.decode_many([b"a"], kind=kind, cancel=cancel),
    ]
    for operation in operations:
        with pytest.raises(concurrent.futures.CancelledError):
            operation()


def test_offsets_of_any_width(kind: Any) -> None:
    for code in "iIlLqQ":
        assert strings.from_offsets(b"abc", array.array(code, [0, 1, 3]), kind=kind) == ["a", "bc"]
    assert strings.from_offsets(b"abc", [], kind=kind) == strings.from_offsets(b"abc", [1], kind=kind) == []
