"""Every operation of offlock.msgpack on an input so large that a long hold of the lock would show.

`operations` has those of the other modules.
"""

from __future__ import annotations

import ast
import functools
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import offlock
from offlock import msgpack

Call = Callable[[], object]

LARGE: dict[str, Callable[[], Call]] = {}

MANY = 600_000
"""The number of small values in a large message."""
MEGABYTES = 48
"""The size of one long value."""


def large(name: str) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Registers a function that makes the input and returns the call."""

    def register(make: Callable[[], Call]) -> Callable[[], Call]:
        assert name not in LARGE
        LARGE[name] = make
        return make

    return register


NO_WORK = {
    # Constant time with any arguments.
    "Packer.pack_array_header", "Packer.pack_map_header", "Packer.getbuffer",
    "Unpacker.read_array_header", "Unpacker.read_map_header", "Unpacker.tell", "View.__len__",
    # Other names of functions, and functions that call another one and a file.
    "pack", "unpack",
}  # fmt: skip
"""Operations that are left out, by reason."""


def public_names() -> set[str]:
    """Returns `function` and `Class.method` for everything in the stub that does work."""
    tree = ast.parse((Path(offlock.__file__).parent / "msgpack" / "__init__.pyi").read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
            names |= {f"{node.name}.{method}" for method in methods}
    return names - NO_WORK - {f"{name}.__init__" for name in ("Packer", "Unpacker")} - {"Packer.__buffer__"}


def covered() -> Iterator[str]:
    """Returns the public names that have an entry."""
    return (name.split(" ")[0] for name in LARGE)


@functools.cache
def records() -> list[dict[str, Any]]:
    return [
        {"id": number, "name": f"user {number}", "score": number * 1.5, "tags": ["a", "bb"]}
        for number in range(MANY // 8)
    ]


@functools.cache
def packed() -> bytes:
    return msgpack.packb(records())


@functools.cache
def packed_map() -> bytes:
    return msgpack.packb({f"key {number}": number for number in range(MANY // 2)})


@functools.cache
def blob() -> bytes:
    return bytes(MEGABYTES << 20)


def values() -> dict[str, Callable[[], object]]:
    """Returns a value to pack and unpack."""
    return {
        "records": records,
        "ints": lambda: list(range(MANY)),
        "floats": lambda: [number * 0.5 for number in range(MANY)],
        "strings": lambda: [f"text {number}" for number in range(MANY)],
        "wide strings": lambda: [f"—{number}—" for number in range(MANY // 2)],
        "nothing": lambda: [None] * (4 * MANY),
        "empty lists": lambda: [[] for _ in range(MANY)],
        "map": lambda: {number: str(number) for number in range(MANY // 2)},
        "bytes": blob,
        "text": lambda: "x" * (MEGABYTES << 20),
        "wide text": lambda: "—" * (MEGABYTES << 18),
    }


def _of_values() -> None:
    for name, make in values().items():

        def make_pack(make: Callable[[], object] = make) -> Call:
            value = make()
            return lambda: msgpack.packb(value)

        def make_unpack(make: Callable[[], object] = make) -> Call:
            message = msgpack.packb(make())
            return lambda: msgpack.unpackb(message, strict_map_key=False)

        large(f"packb {name}")(make_pack)
        large(f"unpackb {name}")(make_unpack)


_of_values()


@large("packb tuple")
def _() -> Call:
    value = tuple(range(MANY))
    return lambda: msgpack.packb(value)


@large("packb array")
def _() -> Call:
    import numpy as np

    value = np.arange(4 * MANY).reshape(-1, 4)
    return lambda: msgpack.packb(value, numpy=True)


@large("unpackb bytearray")
def _() -> Call:
    message = bytearray(packed())
    return lambda: msgpack.unpackb(message)


@large("unpackb tuples")
def _() -> Call:
    message = packed()
    return lambda: msgpack.unpackb(message, use_list=False)


@large("unpack_all")
def _() -> Call:
    messages = [msgpack.packb(record) for record in records()]
    return lambda: msgpack.unpack_all(messages)


@large("extract")
def _() -> Call:
    message = packed()
    return lambda: msgpack.extract(message, "name")


@large("view")
def _() -> Call:
    message = bytearray(packed() * 4)[: len(packed())]
    return lambda: msgpack.view(message)


@large("Packer.pack")
def _() -> Call:
    value, packer = records(), msgpack.Packer()
    return lambda: packer.pack(value)


@large("Packer.pack kept")
def _() -> Call:
    value = records()
    return lambda: msgpack.Packer(autoreset=False).pack(value)


@large("Packer.pack_ext_type")
def _() -> Call:
    packer, data = msgpack.Packer(), blob()
    return lambda: packer.pack_ext_type(1, data)


@large("Packer.pack_map_pairs")
def _() -> Call:
    pairs, packer = [(number, number) for number in range(MANY // 2)], msgpack.Packer()
    return lambda: packer.pack_map_pairs(pairs)


@large("Packer.bytes")
def _() -> Call:
    packer = msgpack.Packer(autoreset=False)
    packer.pack(blob())
    return packer.bytes


@large("Packer.reset")
def _() -> Call:
    packer, data = msgpack.Packer(autoreset=False), blob()

    def reset() -> None:
        packer.pack(data)
        packer.reset()

    return reset


def unpacker() -> msgpack.Unpacker:
    made = msgpack.Unpacker(max_buffer_size=0)
    made.feed(packed())
    return made


@large("Unpacker.feed")
def _() -> Call:
    data = blob()
    return lambda: msgpack.Unpacker(max_buffer_size=0).feed(data)


@large("Unpacker.feed pieces")
def _() -> Call:
    data = blob()[: 1 << 20]

    def feed() -> None:
        made = msgpack.Unpacker(max_buffer_size=0)
        for _ in range(MEGABYTES):
            made.feed(data)

    return feed


@large("Unpacker.unpack")
def _() -> Call:
    packed()
    return lambda: unpacker().unpack()


@large("Unpacker.unpack file")
def _() -> Call:
    message = packed()
    return lambda: msgpack.Unpacker(io.BytesIO(message), max_buffer_size=0).unpack()


@large("Unpacker.skip")
def _() -> Call:
    packed()
    return lambda: unpacker().skip()


@large("Unpacker.read_bytes")
def _() -> Call:
    size = len(packed())
    return lambda: unpacker().read_bytes(size)


@large("Unpacker.__next__")
def _() -> Call:
    packed()
    return lambda: next(unpacker())


@large("Unpacker.__iter__")
def _() -> Call:
    messages = b"".join(msgpack.packb(record) for record in records())

    def iterate() -> list[Any]:
        made = msgpack.Unpacker(max_buffer_size=0)
        made.feed(messages)
        return list(made)

    return iterate


def _of_view(name: str, call: Callable[[Any], object], message: Callable[[], bytes] = packed) -> None:
    def make() -> Call:
        data = message()
        return lambda: call(msgpack.view(data))

    large(f"View.{name}")(make)


_of_view("__getitem__", lambda view: view[-1])
_of_view("__getitem__ slice", lambda view: view[::2])
_of_view("__getitem__ key", lambda view: view["key 1"], packed_map)
_of_view("get", lambda view: view.get("none"), packed_map)
_of_view("__contains__", lambda view: None in view)
_of_view("__eq__", lambda view: view == msgpack.view(packed()))
_of_view("__iter__", list)
_of_view("keys", lambda view: view.keys(), packed_map)
_of_view("values", lambda view: view.values(), packed_map)
_of_view("items", lambda view: view.items(), packed_map)
_of_view("build", lambda view: view.build())
