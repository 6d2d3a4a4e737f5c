"""Every public operation of strings, tiktoken, tokenizers, zlib and gzip under adverse conditions: inputs that call back or change, too
little memory, interrupts, CPython's debug mode."""

from __future__ import annotations

import contextlib
import functools
import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from operations import LARGE, enc, model, public_names, text_lines
from processes import run

from offlock import gzip, strings, zlib

PRELUDE = f"""
import os, random, signal, sys, threading, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import operations
"""

WORDS = [f"word {number}" for number in range(3000)]
TEXT = text_lines(3000)


# Inputs that call back


class Sequence:
    """A sequence that runs `meanwhile` before each of its items."""

    def __init__(self, items: Any, meanwhile: Callable[[], object]) -> None:
        self.items, self.meanwhile = items, meanwhile

    def __len__(self) -> int:
        self.meanwhile()
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        self.meanwhile()
        return self.items[index]

    def __iter__(self) -> Iterator[Any]:
        self.meanwhile()
        for item in self.items:
            self.meanwhile()
            yield item


class Index:
    """A number that runs `meanwhile` when it is converted."""

    def __init__(self, value: int, meanwhile: Callable[[], object]) -> None:
        self.value, self.meanwhile = value, meanwhile

    def __index__(self) -> int:
        self.meanwhile()
        return self.value


ITERABLES: dict[str, tuple[list[Any], Callable[[Any], Any]]] = {
    "strings.decode_many": ([word.encode() for word in WORDS], strings.decode_many),
    "strings.compact": (strings.lines(TEXT, kind="view"), strings.compact),
    "strings.retained": (strings.lines(TEXT, kind="view"), strings.retained),
    "strings.from_offsets": (list(range(3000)), lambda offsets: strings.from_offsets(bytes(3000), offsets)),
    "Encoding.encode_batch": (WORDS, enc().encode_batch),
    "Encoding.encode_ordinary_batch": (WORDS, enc().encode_ordinary_batch),
    "Encoding.count_batch": (WORDS, enc().count_batch),
    "Encoding.decode": (list(range(3000)), enc().decode),
    "Encoding.decode_bytes": (list(range(3000)), enc().decode_bytes),
    "Encoding.decode_with_offsets": (list(range(60)) * 50, enc().decode_with_offsets),
    "Encoding.decode_tokens_bytes": (list(range(3000)), enc().decode_tokens_bytes),
    "Encoding.decode_batch": ([[1, 2, 3]] * 3000, enc().decode_batch),
    "Encoding.decode_bytes_batch": ([[1, 2, 3]] * 3000, enc().decode_bytes_batch),
    "Tokenizer.encode_batch": (WORDS, model().encode_batch),
    "Tokenizer.count_batch": (WORDS, model().count_batch),
    "Tokenizer.encode_batch_to_numpy": (
        WORDS,
        lambda texts: model().encode_batch_to_numpy(texts)[0].tolist(),
    ),
    "Tokenizer.decode": (list(range(3000)), model().decode),
    "Tokenizer.decode_bytes": (list(range(3000)), model().decode_bytes),
    "Tokenizer.decode_batch": ([[1, 2, 3]] * 3000, model().decode_batch),
    "Tokenizer.decode_bytes_batch": ([[1, 2, 3]] * 3000, model().decode_bytes_batch),
    "zlib.deflate_all": ([word.encode() for word in WORDS], zlib.deflate_all),
    "zlib.inflate_all": ([zlib.compress(word.encode()) for word in WORDS], zlib.inflate_all),
}
"""The operations that take many objects, with these objects."""


def may_decrease(name: str) -> contextlib.AbstractContextManager[None]:
    """Accepts a `ValueError`: changed offsets may not ascend."""
    return contextlib.suppress(ValueError) if name == "strings.from_offsets" else contextlib.nullcontext()


def test_no_operation_on_many_things_is_forgotten() -> None:
    singles = {name for name in public_names() if not name.startswith("gzip.") and name not in ITERABLES}
    for name in singles - {"Encoding.encode_to_numpy", "pipeline.Tokens.batches"}:
        assert not any(part in name for part in ("all", "many", "batch")), name


@pytest.mark.parametrize("name", ITERABLES)
def test_an_input_that_calls_back_is_read_as_it_is(name: str) -> None:
    items, call = ITERABLES[name]
    expected = call(items)
    assert call(Sequence(items[:50], lambda: call(items[:3]))) == call(items[:50])
    assert call(Sequence(items[:50], lambda: gc.collect(0))) == call(items[:50])
    assert call(items) == expected


@pytest.mark.parametrize("name", ITERABLES)
def test_what_an_input_raises_is_raised(name: str) -> None:
    class Own(Exception):
        pass

    items, call = ITERABLES[name]
    calls = iter(range(20))

    def raise_soon() -> None:
        if next(calls, None) is None:
            raise Own

    with pytest.raises(Own):
        call(Sequence(items, raise_soon))


@pytest.mark.parametrize("name", ITERABLES)
def test_an_input_that_shrinks_and_grows_while_it_is_read(name: str) -> None:
    items, call = ITERABLES[name]
    changing: list[Any] = []
    dice = random.Random(1)

    def change() -> None:
        if dice.random() < 0.5:
            del changing[len(changing) // 2 :]
        elif len(changing) < 1000:
            changing.extend(items[:20])

    for _ in range(20):
        changing[:] = items[:100]
        with may_decrease(name):
            call(Sequence(changing, change))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Encoding.decode",
            "Encoding.decode_bytes",
            "Encoding.decode_tokens_bytes",
            "Encoding.decode_batch",
        ),
        *("Tokenizer.decode", "Tokenizer.decode_bytes", "Tokenizer.decode_batch"),
    ],
)
def test_numbers_that_change_the_list_they_are_in(name: str) -> None:
    call = ITERABLES[name][1]
    for content in ([], [5] * 10_000, [5] * 3):
        tokens: list[Any] = [1] * 1000
        changing = functools.partial(tokens.__setitem__, slice(None), content)
        tokens[10] = Index(2, changing)
        call([tokens] if name.endswith("batch") else tokens)


@pytest.mark.parametrize("name", ITERABLES)
def test_lists_that_another_thread_changes(name: str) -> None:
    """While an operation releases the lock, other threads change the list that it reads."""
    items, call = ITERABLES[name]
    changing = items * 30
    over = threading.Event()

    def change() -> None:
        dice = random.Random(2)
        while not over.is_set():
            if len(changing) > 60_000 or dice.random() < 0.5:
                del changing[dice.randrange(len(changing) + 1) :]
            else:
                changing.extend(items * 10)
            time.sleep(0)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        until = time.monotonic() + 0.25
        while time.monotonic() < until:
            with may_decrease(name):
                call(changing)
    finally:
        over.set()
        changer.join()


def test_memory_that_another_thread_changes_is_read_once() -> None:
    """A result from a `bytearray` is a copy of its contents. Other threads may write to it, but not resize it."""
    memory = bytearray(text_lines(300_000))
    size, over = len(memory), threading.Event()

    def change() -> None:
        while not over.is_set():
            for at in range(0, size, 4096):
                memory[at] = 0x41 + at % 26
            with contextlib.suppress(BufferError):  # the operation is copying it
                memory.append(0)
                memory.pop()

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(5):
            assert sum(map(len, strings.lines(memory, keepends=True))) >= size
            assert len(zlib.decompress(zlib.compress(memory, 1))) >= size
            assert len(gzip.decompress(gzip.compress(memory, 1))) >= size
            zlib.crc32(memory)
    finally:
        over.set()
        changer.join()


def test_progress_that_calls_back() -> None:
    data = bytes(3 << 20)
    packed = zlib.compress(data)
    calls: list[object] = []

    def again(*_: object) -> None:
        calls.append(zlib.decompress(zlib.compress(b"x")))

    assert zlib.decompress(zlib.compress(data, progress=again), progress=again) == data
    assert gzip.decompress(gzip.compress(data, progress=again), progress=again) == data
    assert zlib.inflate_all(zlib.deflate_all([data] * 3, progress=again), progress=again) == [data] * 3
    assert zlib.decompress(packed) == data
    assert len(calls) > 6


# Garbage collection


class Text(str):
    """A `str` that may have references to others."""


def test_the_collector_knows_a_tuple_that_holds_more_than_strings() -> None:
    own = Text("own")
    for many in (1, 100, 100_000):
        made = strings.compact((own, *["x"] * many))
        assert gc.is_tracked(made)
        assert made[0] is own
    assert strings.compact(()) == ()
    assert gc.is_tracked(strings.compact(["x"]))


def test_a_cycle_through_a_tuple_is_collected() -> None:
    import weakref

    class Watched:
        pass

    for many in (1, 100_000):
        own, watched = Text("own"), Watched()
        own.held = strings.compact((own, *["x"] * many))  # type: ignore[attr-defined]
        own.watched = watched  # type: ignore[attr-defined]
        gone = weakref.ref(watched)
        del own, watched
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize("many", [0, 1, 20, 21, 70_000])
@pytest.mark.parametrize("into", [list, tuple])
def test_results_of_every_size_are_ordinary_lists_and_tuples(many: int, into: type[Any]) -> None:
    made = strings.lines(b"a b\n" * many, into=into)
    assert made == into(["a b"] * many)
    assert type(made) is into
    if into is tuple:
        assert hash(made) == hash(("a b",) * many)
    if into is list:
        made.extend(["c"] * 10)
        made.sort()
        del made[: many // 2]
        made.insert(0, "d")
        assert len(made) == many - many // 2 + 11
        assert gc.is_tracked(made)
        made.append(made)
    assert list(reversed(made)) == [made[-1 - index] for index in range(len(made))]


# Memory

LIMITED = (
    PRELUDE
    + """
import resource
os.environ["RUST_BACKTRACE"] = "0"  # which would wait for ever where there is no memory to print one
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
dice = random.Random({seed})
operations.shrink()
# Spare memory for the interpreter's own small objects, without which it cannot even raise MemoryError.
SMALL = 2 << 20
for name in {names!r}:
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        print(name, "->", status, flush=True)
        continue
    try:
        call = operations.LARGE[name]()
        call()
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        for _ in range(3):
            most = used + SMALL + dice.randrange(1 << dice.randrange(18, 24))
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
            try:
                call()
            except MemoryError:
                pass
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        call()
        os._exit(0)
    except BaseException as error:
        print(name, repr(error)[:300], flush=True)
        os._exit(7)
"""
)


# Parts of the names of operations that work on several threads, or on one of their own.
STARTS_THREADS = ("arrow", "numpy", "threads", "atches", "_dict", "slowly")


def test_no_operation_ends_the_process_when_memory_is_short() -> None:
    """Each operation runs in a process whose limit allows a part of the memory that it needs.

    It runs on one thread, and without those that start some, because the C library ends a process that cannot allocate memory for a new thread.
    """
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    names = [name for name in LARGE if not any(part in name for part in STARTS_THREADS)]
    out = run(LIMITED.format(seed=seed, names=names), prelude="")
    assert out.splitlines() == [f"{name} -> 0" for name in names]


# CPython's debug mode

DEBUGGED = (
    PRELUDE
    + """
operations.shrink()
for name, make in operations.LARGE.items():
    make()()
print("done")
"""
)


def test_every_operation_under_the_debug_mode_of_the_interpreter() -> None:
    """Memory is filled with marks and checked, so that reads of uninitialized memory are found."""
    assert run(DEBUGGED, "-X", "dev", "-W", "ignore", prelude="") == "done\n"
