"""Calls every public operation while the interpreter's allocators fail.

    python nomemory.py SEED SECONDS

Each operation runs in a child of its own, again and again: its first allocation fails, then its second, and so on; once only
that one, once also those after it. A call must raise MemoryError or return its usual result, and the next call, with memory,
must return the right result. Prints a line for every other outcome.
"""

from __future__ import annotations

import faulthandler
import gc
import mmap
import os
import random
import re
import signal
import struct
import sys
import tempfile
import time
from _testcapi import remove_mem_hooks, set_nomemory  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from typing import Any

import msgpackcases
import operations
from interpreter import HAS_GIL

from offlock import gzip, jsonl, msgpack, strings, tiktoken, zlib

Call = Callable[[], object]
Prepare = Callable[[], Call]

PATIENCE = 20
"""Seconds after which a child is considered hung."""

MOST_ENDS = 3
"""The number of times that an operation may end its process before the test skips the rest of it."""

WINDOW = 30
"""The number of allocations that fail in a row: enough for the exception of the first failure. (CPython itself loops for ever
if an exception meets a `finally` and no allocation ever succeeds.)"""

ALONE, ALL = "alone", f"and {WINDOW} in a row"

OF_CPYTHON = (
    "SystemError('error return without exception set')",
    'RuntimeError("can\'t allocate read lock")',
)
"""Exceptions that the interpreter itself raises when one allocation fails in its own code, as in that of `int("one")`."""


def prepared() -> Iterator[tuple[str, Callable[[], Prepare]]]:
    """Returns each operation and a function that makes its inputs. Those that change their inputs get new ones for each call."""
    for name, make in operations.LARGE.items():
        yield name, lambda make=make: always(make())  # type: ignore[misc]
    for name, case in msgpackcases.CASES.items():
        yield f"msgpack.{name}", lambda case=case: lambda: world_of(case)  # type: ignore[misc]
    for name in tiktoken.list_encoding_names():
        yield f"loading {name}", lambda name=name: lambda: lambda: tiktoken.Encoding._open(name)  # type: ignore[misc]
    for class_ in SUBCLASSES:
        yield f"subclass of {class_.__name__}", lambda class_=class_: lambda: lambda: bool(class_())  # type: ignore[misc]
    for name, call in WRONG.items():
        yield f"wrong: {name}", lambda call=call: lambda: call  # type: ignore[misc]


def always(call: Call) -> Prepare:
    return lambda: call


def world_of(case: Callable[[msgpackcases.World], object]) -> Call:
    world = msgpackcases.World(1, 3)
    return lambda: case(world)


class Packer(msgpack.Packer):
    pass


class Unpacker(msgpack.Unpacker):
    pass


SUBCLASSES = (Packer, Unpacker)
"""Classes whose objects have a dict, which may fail to be allocated."""

WRONG: dict[str, Call] = {
    "text that is no UTF-8": lambda: strings.lines(b"one\n\xff\ntwo"),
    "separator": lambda: strings.split(b"one", ""),
    "key of a view": lambda: msgpack.view(b"\x80")["none"],
    "offsets": lambda: strings.from_offsets(b"one", [3, 1]),
    "token": lambda: operations.enc().decode([1 << 30]),
    "no token": lambda: operations.enc().decode(["one"]),  # type: ignore[list-item]
    "special token": lambda: operations.enc().encode("<|endoftext|>"),
    "single token": lambda: operations.enc().encode_single_token("no such token"),
    "batch": lambda: operations.enc().encode_batch([1]),  # type: ignore[list-item]
    "packed": lambda: zlib.decompress(b"one"),
    "packed and cut": lambda: zlib.decompress(zlib.compress(b"one")[:-1]),
    "level": lambda: zlib.compress(b"one", 77),
    "message": lambda: msgpack.unpackb(b"\xc1"),
    "message and more": lambda: msgpack.unpackb(b"\x01\x02"),
    "message and cut": lambda: msgpack.unpackb(b"\xdc"),
    "key": lambda: msgpack.unpackb(b"\x81\x01\x02", strict_map_key=True),
    "object": lambda: msgpack.packb(object()),
    "number": lambda: msgpack.packb(1 << 70),
    "encoding": lambda: tiktoken.Encoding._open("none"),
    "line": lambda: jsonl.extract(b"{}\n{", "a"),
    "record": lambda: jsonl.extract(b"{}\n7", "a"),
    "field": lambda: jsonl.extract(b"{}", ["a", 7]),  # type: ignore[list-item]
}


def starved(call: Call, start: int, stop: int) -> object:
    """Returns the outcome of `call` when its allocations after the first `start` fail, up to number `stop`."""
    try:
        set_nomemory(start, stop)
        made = call()
        remove_mem_hooks()
    except MemoryError:
        remove_mem_hooks()
        return MemoryError
    except BaseException as error:
        remove_mem_hooks()
        return repr(error)
    return comparable(made)


def usual(call: Call) -> object:
    try:
        return comparable(call())
    except Exception as error:
        return repr(error)


def comparable(made: Any) -> Any:
    """Converts a result to a value that is the same for the same content."""
    if isinstance(made, strings.Arena):
        return made.list("str")
    if isinstance(made, tiktoken.Encoding):
        return made.name, made.encode("some words")
    if isinstance(made, (msgpack.Packer, msgpack.Unpacker)):
        return type(made)
    if isinstance(made, bytes) and made.startswith(b"\x1f\x8b"):
        return gzip.decompress(made)  # the header has the time
    if type(made).__name__ in ("ndarray", "PackedTokens"):
        return bytes(made)
    return made


def allocations(prepare: Prepare, expected: object) -> int:
    """Returns the number of allocations of a call."""
    most = 16
    while starved(prepare(), most, most + WINDOW) != expected and most < 1 << 20:
        most *= 2
    least = 0
    while most - least > 1:
        middle = (least + most) // 2
        if starved(prepare(), middle, middle + WINDOW) == expected:
            most = middle
        else:
            least = middle
    return most


def alike(made: object, expected: object) -> bool:
    """Whether two outcomes are equal. An exception may lack its message, or a part of it."""
    if isinstance(made, str) and isinstance(expected, str):
        return made.split("(")[0] == expected.split("(")[0]
    return made == expected


class Place:
    """Memory in which a child records its progress, for the parent if the child ends early."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 16)

    def write(self, number: int, alone: bool) -> None:
        struct.pack_into("qq", self.memory, 0, number, alone)

    def read(self) -> tuple[int, str]:
        number, alone = struct.unpack_from("qq", self.memory)
        return number, ALONE if alone else ALL


def sweep(name: str, make: Callable[[], Prepare], dice: random.Random, seconds: float, place: Place) -> None:
    """Lets each allocation of an operation fail, or as many of them as the time allows."""
    prepare = make()
    expected = usual(prepare())
    if usual(prepare()) != expected:
        expected = usual(prepare())
    gc.disable()
    number = allocations(prepare, expected)
    ways = [(start, alone) for start in range(number + 2) for alone in (True, False)]
    dice.shuffle(ways)
    end = time.monotonic() + seconds
    seen = set()
    for start, alone in ways:
        if time.monotonic() > end:
            break
        place.write(start, alone)
        made = starved(prepare(), start, start + 1 if alone else start + WINDOW)
        if made is not MemoryError and made not in OF_CPYTHON and not alike(made, expected):
            finding = made if isinstance(made, str) else f"{made!r} instead of {expected!r}"
            if finding not in seen:
                seen.add(finding)
                say(name, place, finding[:300])
        again = usual(prepare())
        if again != expected:
            say(name, place, f"and then {again!r}"[:300])
            break


TRACEBACK = r"(?:Traceback .*\n(?: .*\n)*)?"
UNCLOSED = re.compile(
    rf"Exception ignored (?:in: |while finalizing file |while calling deallocator <function GzipFile\.).*\n{TRACEBACK}"
    rf"(?:MemoryError\n\nThe above exception was the direct cause of .*\n\n{TRACEBACK})?"
    r"(?:MemoryError: ?|ValueError: (?:write\(\) on a GzipFile that is gone|I/O operation on closed file\.)"
    r"|MemoryError|SystemError: <class 'ResourceWarning'> returned a result with an exception set)\n"
)
"""What CPython writes when a file that nobody closed cannot be finished, or its warning not be made, for want of memory."""


def say(name: str, place: Place, finding: str) -> None:
    number, way = place.read()
    print(f"{name}: allocation {number} {way}: {finding}", flush=True)


def in_child(name: str, make: Callable[[], Prepare], seed: int, seconds: float) -> bool:
    """Whether the child has reached its end."""
    place = Place()
    with tempfile.TemporaryFile() as errors:
        pid = os.fork()
        if not pid:
            os.dup2(errors.fileno(), 2)
            faulthandler.register(signal.SIGALRM, chain=True)
            signal.alarm(int(seconds + PATIENCE))
            try:
                sweep(name, make, random.Random(seed), seconds, place)
            except BaseException as error:
                say(name, place, f"failed with {error!r}")
                os._exit(1)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        errors.seek(0)
        written = UNCLOSED.sub("", errors.read().decode(errors="replace"))
    if status:
        say(name, place, f"status {status}")
    if written:
        say(name, place, f"writes {written[:2000]!r}")
    return status == 0


def main(seed: int, seconds: float, wanted: str = "") -> None:
    """Runs with small inputs, for which the lock is held, and with some that are large enough to release it."""
    dice = random.Random(seed)
    operations.outputs()  # children end without removing theirs
    names = [(name, make) for name, make in prepared() if wanted in name]
    for size in ((40, 3000), (5000, 300_000)):
        operations.shrink(*size)
        for shared in (
            operations.plain,
            operations.packed,
            operations.prose,
            operations.packed_frame,
            operations.model,
            operations.shards,
            operations.tables,
        ):
            shared.cache_clear()
            shared()  # so that not every child makes it
        for name, make in names:
            for _ in range(MOST_ENDS):
                if in_child(name, make, dice.randrange(1 << 30), seconds / len(names) / 2):
                    break


if __name__ == "__main__":
    if HAS_GIL:
        strings.enable_blocks()
    main(int(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
