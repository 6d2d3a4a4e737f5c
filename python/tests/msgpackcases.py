"""Calls of every public function and method of offlock.msgpack for the tests under adverse conditions in test_msgpack_net.

A `World` has their inputs: objects, messages, packers and unpackers, whose callbacks all run `World.on_call`.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import offlock
from offlock import msgpack

FUNCTIONS = [
    "pack",
    "packb",
    "dump",
    "dumps",
    "unpack",
    "unpackb",
    "load",
    "loads",
    "unpack_all",
    "view",
    "extract",
]


class Odd:
    """An object that cannot be packed without `default`, and that can be a key."""

    def __init__(self, world: World, data: bytes) -> None:
        self.world = world
        self.data = data

    def __hash__(self) -> int:
        self.world.on_call()
        return hash(self.data[:1])

    def __eq__(self, other: object) -> bool:
        self.world.on_call()
        return isinstance(other, Odd) and self.data == other.data


class Stream(io.BytesIO):
    """A file whose methods are callbacks as well."""

    def __init__(self, world: World, data: bytes | bytearray = b"") -> None:
        super().__init__(data)
        self.world = world

    def read(self, size: int | None = -1, /) -> bytes:
        self.world.on_call()
        return super().read(size)

    def write(self, data: Any, /) -> int:
        self.world.on_call()
        return super().write(data)


class World:
    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.on_call: Callable[[], None] = lambda: None
        self.is_changing = False
        self.records: list[Any] = [self.record(number) for number in range(size)]
        self.pairs: list[Any] = [(f"key {number}", [number]) for number in range(size)]
        plain: Any = [
            {"id": number, "name": f"name {number}", "é": "ü" * (number % 50)} for number in range(size)
        ]
        self.plain = msgpack.packb(plain)
        extended = [{msgpack.ExtType(5, b"%d" % (number % 7)): [number, {}]} for number in range(size)]
        self.message = bytearray(msgpack.packb(extended))
        self.hooks: dict[str, Any] = {
            "object_hook": self.hook,
            "list_hook": self.hook,
            "ext_hook": self.ext,
            "strict_map_key": False,
        }
        self.packer = msgpack.Packer(default=self.default)
        self.keeper = msgpack.Packer(default=self.default, autoreset=False)
        self.unpacker = msgpack.Unpacker(**self.hooks)
        self.reader = msgpack.Unpacker(Stream(self, bytes(self.message) * 3), read_size=50, **self.hooks)
        self.view = msgpack.view(self.plain, object_hook=self.hook)
        self.odd_view = msgpack.view(bytes(self.message), **self.hooks)
        self.map_view = msgpack.view(msgpack.packb(dict(self.pairs)), object_hook=self.hook)

    def record(self, number: int) -> Any:
        odd = Odd(self, b"%d" % number)
        return {"id": number, "odd": odd, odd: (number, [odd]), "map": OrderedDict(a=1, b=odd)}

    def default(self, odd: Any) -> Any:
        self.on_call()
        return [1, "two"]

    def hook(self, made: Any) -> Any:
        self.on_call()
        return made

    def ext(self, code: int, data: bytes) -> Any:
        self.on_call()
        return Odd(self, data)

    def messages(self) -> Iterator[bytes]:
        for _ in range(3):
            self.on_call()
            yield bytes(self.message)

    def change(self) -> None:
        """Changes the inputs, as another thread might at any time."""
        if self.is_changing:
            return  # called for the hash of a new key
        self.is_changing = True
        try:
            self.change_one()
        finally:
            self.is_changing = False

    def change_one(self) -> None:
        with contextlib.suppress(RuntimeError, BufferError, IndexError, KeyError):
            match self.random.randrange(8):
                case 0:
                    self.records.append(self.record(1))
                case 1:
                    self.records.pop()
                case 2:
                    self.records[0][self.random.random()] = self.record(2)
                case 3:
                    self.records[-1].popitem()
                case 4:
                    del self.records[len(self.records) // 2 :]
                case 5:
                    self.records.extend(self.record(number) for number in range(20))
                case 6:
                    self.message[self.random.randrange(len(self.message))] = self.random.randrange(256)
                case 7:
                    self.pairs[self.random.randrange(len(self.pairs))] = ("another", Odd(self, b"x"))

    def fed(self, data: bytes | bytearray) -> msgpack.Unpacker:
        """Feeds the unpacker and returns it. Starts a new one first if it has read more than 1 MB."""
        if self.unpacker.tell() > 1 << 20:
            self.unpacker.__init__(**self.hooks)  # type: ignore[misc]
        self.unpacker.feed(data)
        return self.unpacker


CASES: dict[str, Callable[[World], object]] = {
    "pack": lambda w: msgpack.pack(w.records, Stream(w), default=w.default),
    "packb": lambda w: msgpack.packb(
        w.records, default=w.default, dataclasses=True, enum=True, numpy=True, uuid=True
    ),
    "dump": lambda w: msgpack.dump(w.records, Stream(w), default=w.default, strict_types=True),
    "dumps": lambda w: msgpack.dumps(
        w.records, default=w.default, use_bin_type=False, unicode_errors="replace"
    ),
    "unpack": lambda w: msgpack.unpack(Stream(w, w.message), **w.hooks),
    "unpackb": lambda w: msgpack.unpackb(w.message, **w.hooks, release=w.random.choice(["always", "never"])),
    "load": lambda w: msgpack.load(
        Stream(w, w.message), **{**w.hooks, "object_hook": None}, object_pairs_hook=w.hook
    ),
    "loads": lambda w: msgpack.loads(w.message, **w.hooks, raw=True, use_list=False),
    "unpack_all": lambda w: msgpack.unpack_all(w.messages(), **w.hooks),
    "view": lambda w: msgpack.view(w.message, **w.hooks),
    "extract": lambda w: msgpack.extract(w.plain, w.random.choice(["id", "name", "é", "none"])),
    "Packer.__init__": lambda w: w.packer.__init__(default=w.default),  # type: ignore[misc]
    "Packer.pack": lambda w: (w.packer.pack(w.records), w.keeper.pack(w.records)),
    "Packer.pack_ext_type": lambda w: (
        w.packer.pack_ext_type(5, w.message),
        w.keeper.pack_ext_type(5, w.message),
    ),
    "Packer.pack_array_header": lambda w: (w.packer.pack_array_header(70000), w.keeper.pack_array_header(3)),
    "Packer.pack_map_header": lambda w: (w.packer.pack_map_header(70000), w.keeper.pack_map_header(3)),
    "Packer.pack_map_pairs": lambda w: (w.packer.pack_map_pairs(w.pairs), w.keeper.pack_map_pairs(w.pairs)),
    "Packer.reset": lambda w: (w.packer.reset(), w.keeper.reset()),  # type: ignore[func-returns-value]
    "Packer.bytes": lambda w: (w.packer.bytes(), w.keeper.bytes()),
    "Packer.getbuffer": lambda w: bytes(w.keeper.getbuffer()),
    "Packer.__buffer__": lambda w: bytes(memoryview(w.keeper)),
    "Unpacker.__init__": lambda w: w.unpacker.__init__(**w.hooks),  # type: ignore[misc]
    "Unpacker.feed": lambda w: w.fed(w.message),
    "Unpacker.unpack": lambda w: (w.fed(w.message).unpack(), w.reader.unpack()),
    "Unpacker.skip": lambda w: (w.fed(w.message).skip(), w.reader.skip()),  # type: ignore[func-returns-value]
    "Unpacker.read_bytes": lambda w: (w.fed(w.message).read_bytes(100), w.reader.read_bytes(100)),
    "Unpacker.read_array_header": lambda w: (
        w.fed(w.message).read_array_header(),
        w.reader.read_array_header(),
    ),
    "Unpacker.read_map_header": lambda w: (w.fed(b"\x80").read_map_header(), w.reader.read_map_header()),
    "Unpacker.tell": lambda w: (w.unpacker.tell(), w.reader.tell()),
    "Unpacker.__iter__": lambda w: list(w.fed(w.message)),
    "Unpacker.__next__": lambda w: (next(w.fed(w.message)), next(w.reader)),
    "View.__getitem__": lambda w: (w.view[w.random.randrange(2)], w.view[::3], w.map_view["key 1"]),
    "View.get": lambda w: (w.map_view.get("key 0"), w.odd_view[0].get(Odd(w, b"0"))),
    "View.__len__": lambda w: len(w.view),
    "View.__contains__": lambda w: (Odd(w, b"1") in w.odd_view[0], 5 in w.view),
    "View.__eq__": lambda w: (
        w.view == w.odd_view,
        w.odd_view == w.odd_view.build(),
        w.map_view == dict(w.pairs),
    ),
    "View.__iter__": lambda w: (list(w.odd_view), list(w.odd_view[0])),
    "View.keys": lambda w: (w.map_view.keys(), w.odd_view[0].keys()),
    "View.values": lambda w: (w.view.values(), w.odd_view[0].values()),
    "View.items": lambda w: (w.map_view.items(), w.odd_view[0].items()),
    "View.build": lambda w: (w.view.build(), w.odd_view.build()),
}

ALLOWED = (
    RuntimeError,
    ValueError,
    TypeError,
    AssertionError,
    MemoryError,
    LookupError,
    BufferError,
    StopIteration,
    msgpack.OutOfData,
    msgpack.BufferFull,
)
"""The exceptions that a call may raise when its inputs change, or when it is called from its own callback."""


def attempt(name: str, world: World) -> None:
    """Calls the function, and accepts every exception that may occur."""
    try:
        CASES[name](world)
    except offlock.InternalError:
        raise
    except ALLOWED:
        pass


def is_sound(world: World) -> bool:
    """Whether new and old objects still work."""
    world.on_call = lambda: None
    for packer in (world.packer, world.keeper):
        packer.reset()
    world.keeper.pack([1, {"a": None}])
    world.unpacker.__init__()  # type: ignore[misc]
    world.unpacker.feed(b"\x92\x01\x81\xa1a\xc0")
    return bool(
        world.packer.pack([1, {"a": None}]) == world.keeper.bytes() == msgpack.packb([1, {"a": None}])
        and world.unpacker.unpack() == [1, {"a": None}]
        and world.view[1].build() == {"id": 1, "name": "name 1", "é": "ü"}
    )


def call_from_callbacks(seed: int, size: int = 3) -> None:
    """Calls each function from the callbacks of each other, and from its own."""
    rng = random.Random(seed)
    for outer in CASES:
        for inner in CASES:
            world = World(rng.randrange(1 << 30), size)
            left = 20

            def on_call(world: World = world, inner: str = inner) -> None:
                nonlocal left
                if left > 0:
                    left -= 1
                    attempt(inner, world)

            world.on_call = on_call
            attempt(outer, world)
            if not is_sound(world):
                sys.exit(f"{inner} inside {outer}, seed {seed}")


def change_from_callbacks(seed: int, size: int = 30) -> None:
    """Calls each function while each of its callbacks changes its inputs."""
    rng = random.Random(seed)
    for name in CASES:
        for _ in range(10):
            world = World(rng.randrange(1 << 30), size)
            world.on_call = world.change
            attempt(name, world)
            if not is_sound(world):
                sys.exit(f"{name}, seed {seed}")
