"""Invalid Arrow arrays raise an exception that describes the error, and do no other harm."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from arrowstructs import Array, Exporter, Schema, int32s, int64s, octets
from processes import run

from offlock import strings

INT64_MAX = 2**63 - 1


def good(format: bytes = b"u", **fields: Any) -> Exporter:
    """Returns an array of two strings, "ab" and "c", with some fields replaced."""
    offsets = int64s(0, 2, 3) if format == b"U" else int32s(0, 2, 3)
    return Exporter(format, [None, offsets, octets(b"abc")], **({"length": 2} | fields))


def views(lengths: Any = None, **fields: Any) -> Exporter:
    """Returns an array with a string of 3 bytes in its view, and one of 16 bytes in a buffer."""
    text = octets(b"0123456789abcdef")
    in_buffer = int32s(16, int.from_bytes(b"0123", "little"), 0, 0)
    both = (ctypes.c_int32 * 8)(3, int.from_bytes(b"xyz", "little"), 0, 0, *in_buffer)
    return Exporter(b"vu", [None, both, text, lengths or int64s(16)], **({"length": 2} | fields))


def indexed(indices: Any = None, **fields: Any) -> Exporter:
    """Returns a dictionary of "ab" and "c", with the given indices."""
    exporter = Exporter(b"i", [None, indices or int32s(1, 0)], **({"length": 2} | fields))
    values = good()
    exporter.kept.append(values)
    exporter.dictionary(values.schema, values.array)
    return exporter


def changed(exporter: Exporter, change: Callable[[Exporter], object]) -> Exporter:
    change(exporter)
    return exporter


def loop(exporter: Exporter) -> None:
    exporter.schema.dictionary = ctypes.pointer(exporter.schema)
    exporter.array.dictionary = ctypes.pointer(exporter.array)


def nested(exporter: Exporter) -> None:
    values, deeper = exporter.schema.dictionary.contents, exporter.struct(Schema, format=b"u")
    values.dictionary = ctypes.pointer(deeper)


def nested_array(exporter: Exporter) -> None:
    exporter.array.dictionary.contents.dictionary = ctypes.pointer(exporter.struct(Array))


def released(exporter: Exporter, part: str, *, dictionary: bool = False) -> None:
    struct = getattr(exporter, part)
    (struct.dictionary.contents if dictionary else struct).release = None


HOSTILE: dict[str, Callable[[], Exporter]] = {
    "no format": lambda: good(None),  # type: ignore[arg-type]
    "an empty format": lambda: good(b""),
    "another format": lambda: good(b"+s"),
    "a negative length": lambda: good(length=-1),
    "the least length": lambda: good(length=-(2**63)),
    "the greatest length": lambda: good(length=INT64_MAX),
    "the greatest length of large strings": lambda: good(b"U", length=INT64_MAX),
    "a length beyond memory": lambda: good(length=2**60),
    "a negative offset": lambda: good(offset=-1),
    "the greatest offset": lambda: good(offset=INT64_MAX),
    "length and offset that overflow": lambda: good(length=2**62, offset=2**62),
    "a null count of -2": lambda: good(null_count=-2),
    "the least null count": lambda: good(null_count=-(2**63)),
    "nulls without bits": lambda: good(null_count=1),
    "no buffers": lambda: good(n_buffers=0),
    "negative buffers": lambda: good(n_buffers=-(2**63)),
    "too many buffers": lambda: good(n_buffers=4),
    "no addresses": lambda: good(buffers=None),
    "no offsets": lambda: Exporter(b"u", [None, None, octets(b"abc")], length=2),
    "no text": lambda: Exporter(b"u", [None, int32s(0, 2, 3), None], length=2),
    "decreasing offsets": lambda: Exporter(b"u", [None, int32s(0, 3, 2), octets(b"abc")], length=2),
    "negative offsets": lambda: Exporter(b"u", [None, int32s(-1, 2, 3), octets(b"abc")], length=2),
    "a negative end": lambda: Exporter(b"u", [None, int32s(0, 2, -3), octets(b"abc")], length=2),
    "an end that wraps": lambda: Exporter(b"U", [None, int64s(0, 2, INT64_MAX), octets(b"abc")], length=2),
    "offsets beyond the end": lambda: Exporter(b"u", [None, int32s(0, 9, 3), octets(b"abc")], length=2),
    "children": lambda: good(n_children=1),
    "negative children": lambda: good(n_children=-1),
    "a released array": lambda: changed(good(), lambda made: released(made, "array")),
    "a released schema": lambda: changed(good(), lambda made: released(made, "schema")),
    "views without buffers": lambda: views(n_buffers=2),
    "views with endless buffers": lambda: views(n_buffers=2**62),
    "views with a negative buffer": lambda: views(int64s(-1)),
    "views with a short buffer": lambda: views(int64s(15)),
    "views with a buffer that wraps": lambda: views(int64s(INT64_MAX)),
    "views without lengths": lambda: Exporter(b"vu", [None, (ctypes.c_int32 * 8)(), octets(b"a"), None], length=2),
    "views of no memory": lambda: views(length=2**59),
    "a view of another buffer": lambda: Exporter(b"vu", [None, int32s(16, 0, 7, 0), int64s()], length=1),
    "a negative view": lambda: Exporter(b"vu", [None, int32s(-1, 0, 0, 0), int64s()], length=1),
    "nulls that no memory holds": lambda: Exporter(b"n", [], length=INT64_MAX),
    "nulls that this memory does not hold": lambda: Exporter(b"n", [], length=2**40),
    "negative nulls": lambda: Exporter(b"n", [], length=-1),
    "indices without a dictionary": lambda: changed(indexed(), lambda made: setattr(made.array, "dictionary", None)),
    "a dictionary without indices": lambda: changed(indexed(), lambda made: setattr(made.schema, "dictionary", None)),
    "a dictionary in itself": lambda: changed(indexed(), loop),
    "a dictionary in a dictionary": lambda: changed(indexed(), nested),
    "an array's dictionary in a dictionary": lambda: changed(indexed(), nested_array),
    "a released dictionary": lambda: changed(indexed(), lambda made: released(made, "array", dictionary=True)),
    "a released dictionary's schema": lambda: changed(
        indexed(), lambda made: released(made, "schema", dictionary=True)
    ),
    "no format of indices": lambda: changed(indexed(), lambda made: setattr(made.schema, "format", None)),
    "no format of values": lambda: changed(
        indexed(), lambda made: setattr(made.schema.dictionary.contents, "format", None)
    ),
    "an index outside": lambda: indexed(int32s(0, 2)),
    "a negative index": lambda: indexed(int32s(0, -1)),
    "indices that are missing": lambda: indexed(length=2**58),
    "a dictionary of endless nulls": lambda: changed(indexed(), endless_values),
}  # fmt: skip


def endless_values(exporter: Exporter) -> None:
    exporter.schema.dictionary.contents.format = b"n"
    values = exporter.array.dictionary.contents
    values.n_buffers, values.length = 0, 2**40


ERRORS: dict[str, type[Exception]] = dict.fromkeys(HOSTILE, ValueError) | {
    "an empty format": TypeError,
    "another format": TypeError,
    "nulls that no memory holds": MemoryError,
    "nulls that this memory does not hold": MemoryError,
    "a dictionary of endless nulls": MemoryError,
    "indices that are missing": MemoryError,
    "a dictionary without indices": TypeError,
}


def test_what_they_are_made_from_is_good() -> None:
    found: list[tuple[Callable[[], Exporter], list[str]]] = [
        (good, ["ab", "c"]),
        (functools.partial(good, b"U"), ["ab", "c"]),
        (views, ["xyz", "0123456789abcdef"]),
        (indexed, ["c", "ab"]),
    ]
    for make, expected in found:
        assert strings.from_arrow(make()) == expected
        assert strings.from_arrow(make(), into=tuple) == tuple(expected)
        assert strings.from_arrow(make(), into=strings.Arena).list() == expected


def limited_memory() -> None:
    """Limits the address space of the process. The rest is enough for all valid arrays."""
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20),) * 2)


def attempt(name: str) -> str:
    """Returns the name of the exception that an array raises, with its message."""
    try:
        return f"made {strings.from_arrow(HOSTILE[name]())!r}"[:100]
    except (ValueError, TypeError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"


def test_each_raises_what_says_so() -> None:
    names = list(HOSTILE)
    out = run(
        f"""
        import test_strings_arrow_hostile as hostile
        hostile.limited_memory()
        for name in {names!r}:
            print(name, end=" -> ", flush=True)
            print(hostile.attempt(name), flush=True)
        """,
        prelude=f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n",
    )
    found = dict(line.split(" -> ") for line in out.splitlines())
    wrong = [f"{name}: {found[name]}" for name in names if not found[name].startswith(ERRORS[name].__name__)]
    assert not wrong, "\n".join(wrong)
    assert list(found) == names


def test_random_fields_end_in_an_exception_or_in_strings() -> None:
    """Random values for the fields that can be checked. A length beyond the end of the buffers, for example, cannot."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    for _ in range(2000):
        exporter = dice.choice([good, views, indexed, lambda: Exporter(b"n", [], length=3)])()
        for _ in range(dice.randint(1, 3)):
            fields: dict[str, list[Any]] = {
                "null_count": [-(2**63), -2, -1, 0, 1, 2**40],
                "n_children": [-1, 0, 1],
                "n_buffers": [-1, 0, 1, 2, 2**40],
                "length": [-1, 0, 1, 2, 2**62, INT64_MAX],
                "offset": [-(2**63), -1, 0, 2**62, INT64_MAX],
                "release": [None],
                "dictionary": [None, exporter.array],
            }
            field = dice.choice(list(fields))
            value = dice.choice(fields[field])
            setattr(exporter.array, field, ctypes.pointer(value) if isinstance(value, Array) else value)
        # The new formats have other numbers of buffers.
        own = exporter.schema.format
        exporter.schema.format = dice.choice([None, b"", b"n", b"z", own, own, own])
        with contextlib.suppress(ValueError, TypeError, MemoryError):
            strings.from_arrow(exporter, into=strings.Arena)


@pytest.mark.parametrize("given", [None, 1, (), (1,), (1, 2, 3), "ab", [1, 2]])
def test_what_is_no_pair_of_capsules_is_refused(given: Any) -> None:
    class Other:
        def __arrow_c_array__(self) -> object:
            return given

    with pytest.raises((TypeError, ValueError)):
        strings.from_arrow(Other())  # type: ignore[arg-type]
