"""`offlock.Cancel` ends every call that takes one, whatever the call does at that moment: reading its arguments, working off
the lock, or making its result."""

from __future__ import annotations

import ast
import functools
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import operations
import pytest
from processes import crowd

import offlock
from offlock import jsonl, strings, tiktoken, zlib, zstd

Call = Callable[..., object]

CALLS: dict[str, Callable[[], Call]] = {}
"""For each function of the stubs with an argument `cancel`, what makes its input and returns the call of it."""


def calls(*names: str) -> Callable[[Callable[..., Call]], Callable[..., Call]]:
    """Registers what makes the calls of these functions: a function that gets the last part of a name."""

    def register(make: Callable[..., Call]) -> Callable[..., Call]:
        for name in names:
            CALLS[name] = functools.partial(make, name.rpartition(".")[2])
        return make

    return register


def texts() -> list[str]:
    return operations.words(operations.MANY // 4)


def sequences() -> list[list[int]]:
    ids = operations.ids()
    return [ids[start : start + 20] for start in range(0, len(ids), 20)]


def of_encoding(name: str, *arguments: object) -> Call:
    return functools.partial(getattr(operations.enc(), name), *arguments)


def of_model(name: str, *arguments: object) -> Call:
    return functools.partial(getattr(operations.model(), name), *arguments)


OF_TEXT = ["encode", "encode_ordinary", "encode_packed", "encode_with_unstable", "count"]


@calls(*(f"Tokenizer.{name}" for name in OF_TEXT))
def _(name: str) -> Call:
    return of_encoding(name, operations.prose() * 3)


@calls("ModelTokenizer.encode", "ModelTokenizer.encode_packed", "ModelTokenizer.count")
def _(name: str) -> Call:
    return of_model(name, operations.prose() * 3)


@calls("ModelTokenizer.encode_with_offsets")
def _(name: str) -> Call:
    return of_model(name, operations.prose())


@calls("Tokenizer.truncate")
def _(name: str) -> Call:
    return of_encoding(name, operations.prose() * 3, 10**9)


@calls("ModelTokenizer.truncate")
def _(name: str) -> Call:
    return of_model(name, operations.prose() * 3, 10**9)


@calls("Tokenizer._chunks")
def _(name: str) -> Call:
    return of_encoding(name, operations.prose(), 10, tiktoken.Chunk)


@calls("ModelTokenizer._chunks")
def _(name: str) -> Call:
    return of_model(name, operations.prose(), 10, tiktoken.Chunk)


@calls("Tokenizer.encode_batch", "Tokenizer.encode_ordinary_batch", "Tokenizer.count_batch")
def _(name: str) -> Call:
    return of_encoding(name, texts())


@calls("ModelTokenizer.encode_batch", "ModelTokenizer.count_batch")
def _(name: str) -> Call:
    return of_model(name, texts())


@calls("ModelTokenizer._encode_padded")
def _(_: str) -> Call:
    layout: dict[str, Any] = {"max_length": None, "length": None, "multiple_of": 1, "pad_token": 0}
    sides = {"truncation_side": "right", "padding_side": "right"}
    other = {"num_threads": 8, "add_special_tokens": True, "split_special_tokens": False, "release": "auto"}
    call = functools.partial(of_model("_encode_padded", texts()), **layout, **sides, **other)
    return lambda cancel=None: call(cancel=cancel)


@calls("Tokenizer.decode", "Tokenizer.decode_bytes")
def _(name: str) -> Call:
    return of_encoding(name, operations.ids() * 2)


@calls("ModelTokenizer.decode", "ModelTokenizer.decode_bytes")
def _(name: str) -> Call:
    return of_model(name, operations.ids() * 2)


@calls("Tokenizer.decode_batch", "Tokenizer.decode_bytes_batch")
def _(name: str) -> Call:
    return of_encoding(name, sequences())


@calls("ModelTokenizer.decode_batch", "ModelTokenizer.decode_bytes_batch")
def _(name: str) -> Call:
    return of_model(name, sequences())


@calls("Stream.feed", "Stream.count")
def _(name: str) -> Call:
    text = operations.prose() * 3
    return lambda **named: getattr(operations.enc().stream(), name)(text, **named)


@calls("Stream.finish", "Stream.total")
def _(name: str) -> Call:
    letters = "ab" * (operations.SIZE // 12)
    return lambda **named: getattr(operations.fed(letters), name)(**named)


@calls("Arena.list", "Arena.tuple")
def _(name: str) -> Call:
    return functools.partial(
        getattr(strings.lines(operations.text_lines(operations.MANY), into=strings.Arena), name), "str"
    )


@calls("strings.lines")
def _(_: str) -> Call:
    return functools.partial(strings.lines, operations.text_lines(operations.MANY), kind="str")


@calls("strings.split")
def _(_: str) -> Call:
    return functools.partial(strings.split, operations.text_lines(operations.MANY), "\n", kind="str")


@calls("strings.columns")
def _(_: str) -> Call:
    return functools.partial(strings.columns, operations.text_lines(operations.MANY), " ", kind="str")


@calls("strings.from_offsets")
def _(_: str) -> Call:
    return functools.partial(
        strings.from_offsets, b"abc" * operations.MANY, range(0, 3 * operations.MANY, 3), kind="str"
    )


@calls("strings.from_arrow")
def _(_: str) -> Call:
    pa: Any = pytest.importorskip("pyarrow")
    return functools.partial(strings.from_arrow, pa.array(operations.words(operations.MANY)), kind="str")


@calls("strings.decode_many")
def _(_: str) -> Call:
    return functools.partial(
        strings.decode_many, operations.text_lines(operations.MANY).split(b"\n"), kind="str"
    )


@calls("zlib.compress")
def _(_: str) -> Call:
    return functools.partial(zlib.compress, operations.plain(operations.SIZE // 4))


@calls("zlib.decompress")
def _(_: str) -> Call:
    return functools.partial(zlib.decompress, operations.packed())


@calls("zlib.gzip")
def _(_: str) -> Call:
    return functools.partial(offlock._offlock.zlib.gzip, operations.plain(operations.SIZE // 4), 6, 0, 1)


@calls("zlib.gunzip")
def _(_: str) -> Call:
    return functools.partial(offlock._offlock.zlib.gunzip, operations.packed(31))


@calls("zlib.deflate_all")
def _(_: str) -> Call:
    return functools.partial(zlib.deflate_all, [text.encode() for text in texts()[::8]])


@calls("zlib.inflate_all")
def _(_: str) -> Call:
    return functools.partial(zlib.inflate_all, zlib.deflate_all([text.encode() for text in texts()[::4]]))


@calls("jsonl.extract")
def _(_: str) -> Call:
    lines = b"".join(b'{"a":"text %d","b":1}\n' % number for number in range(operations.MANY))
    return functools.partial(jsonl.extract, lines, ["a", "b"])


@calls("zstd.compress")
def _(_: str) -> Call:
    return functools.partial(zstd.compress, operations.plain(), 6)


@calls("zstd.decompress")
def _(_: str) -> Call:
    return functools.partial(zstd.decompress, zstd.compress(operations.plain(), 1))


@calls("zstd.train_dict")
def _(_: str) -> Call:
    samples = [text.encode() * 8 for text in texts()[::8]]
    return functools.partial(offlock._offlock.zstd.train_dict, samples, 10_000)


@calls("zstd.finalize_dict")
def _(_: str) -> Call:
    samples = [text.encode() * 8 for text in texts()]
    content = zstd.train_dict(samples[:1000], 1000)
    return functools.partial(offlock._offlock.zstd.finalize_dict, content, samples, 100_000, 3)


@calls("Tokens.count")
def _(_: str) -> Call:
    return operations.tokens().count


@calls("Tokens.write")
def _(_: str) -> Call:
    made = operations.tokens()

    def write(**named: Any) -> None:
        with operations.NewFolder() as folder:
            made.write(folder, output="llmc", **named)

    return write


@calls("Batches.next")
def _(_: str) -> Call:
    made = operations.tokens()

    def read(**named: Any) -> None:
        with made.batches() as batches:
            while batches.next(**named):
                pass

    return read


def functions_with_cancel() -> Iterator[str]:
    """Yields the functions of the stubs that take `cancel`, by itself or in the options of all operations on strings."""
    for stub in Path(offlock.__file__).parent.glob("_*.pyi"):
        for holder in ast.walk(ast.parse(stub.read_text())):
            if isinstance(holder, (ast.Module, ast.ClassDef)):
                prefix = holder.name if isinstance(holder, ast.ClassDef) else stub.stem.removeprefix("_")
                for node in holder.body:
                    if isinstance(node, ast.FunctionDef) and takes_cancel(node):
                        yield f"{prefix}.{node.name}"


def takes_cancel(function: ast.FunctionDef) -> bool:
    names = {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]}
    return "cancel" in names or "StringOptions" in ast.dump(function.args)


def test_every_function_that_takes_cancel_is_tried() -> None:
    assert sorted(CALLS) == sorted(set(functions_with_cancel()))


@pytest.mark.timing
@pytest.mark.parametrize("name", CALLS)
def test_cancel_ends_a_call_at_once(name: str) -> None:
    """At random moments of its work. The machine may be busy with other things: half of the answers in time show what the
    call does."""
    call = CALLS[name]()
    whole = min(duration(call) for _ in range(2))
    seed = random.randrange(2**32)
    print(f"seed {seed}, the call takes {whole:.3f} s")
    dice, delays = random.Random(seed), list[float]()
    for _ in range(40):
        delay = cancelled_after(call, dice.uniform(0, whole))
        if delay is not None:
            delays.append(delay)
            if len(delays) >= 6 and are_short(delays):
                return
    pytest.fail(f"it ended after {delays} seconds")


def duration(call: Call) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def are_short(delays: list[float]) -> bool:
    return sorted(delays)[len(delays) // 2] < 0.05 * crowd()


def cancelled_after(call: Call, seconds: float) -> float | None:
    """Cancels a call after so many seconds and returns how many it took to end; `None` if it had ended before."""
    cancel, sent = offlock.Cancel(), list[float]()

    def send() -> None:
        sent.append(time.monotonic())
        cancel.cancel()

    timer = threading.Timer(seconds, send)
    timer.start()
    try:
        call(cancel=cancel)
        ended = None
    except CancelledError:
        ended = time.monotonic()
    timer.cancel()
    timer.join()
    return ended - sent[0] if ended else None


class Cancels:
    """An id or an item that cancels the call that reads it."""

    def __init__(self, cancel: offlock.Cancel) -> None:
        self.cancel = cancel

    def __index__(self) -> int:
        self.cancel.cancel()
        return 1


@pytest.mark.parametrize("kind", [list, tuple])
def test_no_more_ids_are_read_once_the_call_is_cancelled(kind: type) -> None:
    read = 0

    class Counts:
        def __index__(self) -> int:
            nonlocal read
            read += 1
            return 1

    for decode in (operations.enc().decode, operations.model().decode):
        read, cancel = 0, offlock.Cancel()
        with pytest.raises(CancelledError):
            decode(kind([Cancels(cancel), *[Counts()] * 100_000]), cancel=cancel)
        assert read < 1000
    for decode_batch in (operations.enc().decode_batch, operations.model().decode_batch):
        read, cancel = 0, offlock.Cancel()
        with pytest.raises(CancelledError):
            decode_batch(kind([[Cancels(cancel)], *[[Counts()]] * 100_000]), cancel=cancel)
        assert read < 1000
