"""Tests the extraction of fields from JSON lines against `json`."""

from __future__ import annotations

import gc
import json
import math
import pickle
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import pytest

import offlock
from offlock import jsonl

RELEASES: list[Any] = ["always", "never"]


def lines_of(records: list[Any]) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def slow(record: Any, path: tuple[str, ...]) -> Any:
    """The value by way of the whole record."""
    for key in path:
        record = None if record is None else record.get(key)
    return record


@pytest.mark.parametrize("release", RELEASES)
def test_values_are_those_of_json(release: Any) -> None:
    records: list[Any] = [
        {"text": "one", "id": 1, "meta": {"id": "x", "ok": True}},
        {"text": 'tab\t quote" \\ / é 😀 \u2028 \x00', "id": -1, "meta": None},
        {"id": 18446744073709551615, "meta": {"id": 0.1, "ok": False}},
        None,
        {"text": None, "id": -9223372036854775808, "other": [{"text": 1}], "meta": {}},
    ]
    data = lines_of(records)
    for path in [("text",), ("id",), ("meta", "id"), ("meta", "ok"), ("none",), ("none", "none")]:
        (found,) = jsonl.extract(data, [path], release=release)
        assert found == [slow(record, path) for record in records]
        assert list(map(type, found)) == [type(slow(record, path)) for record in records]
    texts, ids = jsonl.extract(data, ["text", ("meta", "id")], release=release)
    assert (texts, ids) == (jsonl.extract(data, "text"), ["x", None, 0.1, None, None])


def test_what_json_accepts_beyond_its_usual_form() -> None:
    for text in [
        "1e400",
        "-1E400",
        "-0",
        "-0.0",
        "1E+2",
        "0.1e-3",
        '"\\u00e9\\ud83d\\ude00"',
        '"\\/"',
        " true ",
    ]:
        (found,) = jsonl.extract(f'{{"a":{text}}}', "a")
        wanted = json.loads(text)
        assert found == wanted
        assert type(found) is type(wanted)
    (zero,) = jsonl.extract('{"a":-0.0}', "a")
    assert math.copysign(1, zero) == -1  # type: ignore[arg-type]


def test_blank_lines_line_ends_and_the_byte_order_mark() -> None:
    data = b'\xef\xbb\xbf{"a":1}\r\n\n \t\r\n{"a":2}'
    assert jsonl.extract(data, "a") == [1, 2]
    assert jsonl.extract(b"", "a") == []
    assert jsonl.extract(b"", ["a", "b"]) == ([], [])
    assert jsonl.extract(b'{"a":1}', []) == ()


def test_data_of_any_kind() -> None:
    data = lines_of([{"a": "é"}, {"a": "b"}])
    givens: list[Any] = [data, bytearray(data), memoryview(data), data.decode()]
    for given in givens:
        assert jsonl.extract(given, "a") == ["é", "b"]
    with pytest.raises(TypeError):
        jsonl.extract(7, "a")  # type: ignore[call-overload]
    with pytest.raises(UnicodeEncodeError):
        jsonl.extract('{"a":"\ud800"}', "a")


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (b'{"a":"x"} y', jsonl.DecodeError, "trailing characters: line 3 column 11 (byte 14)"),
        (b'{"a":01}', jsonl.DecodeError, "invalid number: line 3 column 7 (byte 10)"),
        (b'{"a":NaN}', jsonl.DecodeError, "expected value: line 3 column 6 (byte 9)"),
        (
            '{"é":"'.encode() + b'\xff"}',
            jsonl.DecodeError,
            "the line is not valid UTF-8: line 3 column 7 (byte 11)",
        ),
        (
            b'{"a":"\\ud800"}',
            jsonl.DecodeError,
            "a surrogate that is not one of a pair: line 3 column 6 (byte 9)",
        ),
        (
            b'{"a":"' + b"x" * 64 + b'"}',
            jsonl.DecodeError,
            "the line is longer than 64 bytes, the limit: line 3 column 1 (byte 4)",
        ),
        (
            b'{"a":[1]}',
            TypeError,
            "expected a string, a number or a boolean, found an array: line 3 column 6 (byte 9)",
        ),
        (b"[1]", TypeError, "expected an object, found an array: line 3 column 1 (byte 4)"),
        (
            b'{"a":18446744073709551616}',
            OverflowError,
            "an integer of more than 64 bits: line 3 column 6 (byte 9)",
        ),
    ],
)
@pytest.mark.parametrize("release", RELEASES)
def test_a_bad_line_is_named(line: bytes, kind: type[Exception], message: str, release: Any) -> None:
    data = b"{}\n\n" + line
    with pytest.raises(kind) as caught:
        jsonl.extract(data, "a", max_doc_bytes=64, release=release)
    assert str(caught.value) == message
    if isinstance(caught.value, jsonl.DecodeError):
        error = caught.value
        assert isinstance(error, json.JSONDecodeError)
        assert error.lineno == 3
        assert error.doc == line.decode(errors="backslashreplace")
        assert error.colno == error.pos + 1
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.offset, again.doc) == (str(error), error.offset, error.doc)


def test_wrong_arguments() -> None:
    wrong: list[Any] = [7, None, ["a", 7], [("a", 7)], {"a"}, [b"a"], b"a"]
    for fields in wrong:
        with pytest.raises(TypeError, match="fields must be"):
            jsonl.extract(b"{}", fields)
    wrong = [[()], [("a",) * 65]]
    for fields in wrong:
        with pytest.raises(ValueError, match="named by 1 to 64 keys"):
            jsonl.extract(b"{}", fields)
    with pytest.raises(ValueError, match="max_doc_bytes must be at least 1"):
        jsonl.extract(b"{}", "a", max_doc_bytes=0)


def random_value(dice: random.Random, depth: int) -> Any:
    scalars: list[Callable[[], Any]] = [
        lambda: None,
        lambda: dice.choice([True, False]),
        lambda: dice.randrange(-(2**63), 2**64),
        lambda: dice.uniform(-1e9, 1e9),
        lambda: "".join(dice.choices('ab"\\\n\x00é€😀', k=dice.randrange(8))),
    ]
    if depth == 0 or dice.random() < 0.4:
        return dice.choice(scalars)()
    if dice.random() < 0.2:
        return [random_value(dice, depth - 1) for _ in range(dice.randrange(3))]
    return {dice.choice("abt"): random_value(dice, depth - 1) for _ in range(dice.randrange(4))}


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the kind of its error. What the slow way does not find in a list, or has no name for, is
    another type."""
    try:
        return call()
    except (TypeError, AttributeError):
        return TypeError


def scalar(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        raise TypeError
    return value


def test_random_records() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    for _ in range(2000):
        records = [random_value(dice, 3) for _ in range(dice.randrange(5))]
        text = "\n".join(json.dumps(record, ensure_ascii=dice.random() < 0.5) for record in records)
        for path in [("t",), ("a", "b"), ("a", "t"), ("b", "a", "t")]:
            compare(records, text, path)


def compare(records: list[Any], text: str, path: tuple[str, ...]) -> None:
    wanted = outcome(lambda: [scalar(slow(record, path)) for record in records])
    assert outcome(lambda: jsonl.extract(text, [path])[0]) == wanted


def test_strings_that_repeat_often_are_one_object() -> None:
    data = lines_of([{"a": f"name {number % 10}"} for number in range(20_000)])
    found = jsonl.extract(data, "a")
    assert found == [f"name {number % 10}" for number in range(20_000)]
    assert len({id(name) for name in found}) == 10


def test_threads() -> None:
    records = [{"a": f"a\n{number}", "n": number} for number in range(20_000)]
    data = lines_of(records)
    failed: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(5):
                texts, numbers = jsonl.extract(data, ["a", "n"])
                assert texts == [record["a"] for record in records]
                assert numbers == list(range(20_000))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_cancelling() -> None:
    cancel = offlock.Cancel()
    cancel.cancel()
    with pytest.raises(CancelledError):
        jsonl.extract(b'{"a":1}\n' * 100_000, "a", cancel=cancel)


def test_nothing_is_leaked() -> None:
    data = b'{"a":"text %d"}\n' * 1000
    broken = data + b"{"

    def some() -> None:
        for _ in range(50):
            jsonl.extract(data, ["a", ("a",)])
            with pytest.raises(jsonl.DecodeError):
                jsonl.extract(broken, "a")

    some()
    gc.collect()
    before = sys.getallocatedblocks()
    some()
    gc.collect()
    assert sys.getallocatedblocks() - before < 100
