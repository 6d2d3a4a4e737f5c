"""Compares calls that programs make once a line or once a response: offlock's gzip and zlib and the standard library's."""

import gc
import gzip as their_gzip
import inspect
import io
import os
import subprocess
import sys
import zlib as theirs
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offlock import gzip as our_gzip
from offlock import zlib as ours

LINES = [b"one\n", b"\n", b"three\r\n", b"four"]
PACKED = their_gzip.compress(b"".join(LINES))


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("mode", ["rb", "rt"])
def test_lines_come_as_from_the_original(mode: str) -> None:
    def lines(module: Any) -> list[Any]:
        with module.open(io.BytesIO(PACKED), mode) as file:
            return list(file)

    assert lines(our_gzip) == lines(their_gzip)


def test_lines_and_reads_go_on_from_each_other() -> None:
    with our_gzip.GzipFile(fileobj=io.BytesIO(PACKED)) as file:
        assert iter(file) is file
        assert (next(file), file.readline(), file.readline(3)) == (b"one\n", b"\n", b"thr")
        assert list(file) == [b"ee\r\n", b"four"]
        assert next(file, None) is None


READ_LINE: dict[str, Callable[[Any], object]] = {
    "no argument": lambda file: file.readline(),
    "a size": lambda file: [file.readline(2) for _ in range(9)],
    "by name": lambda file: [file.readline(size=2), file.readline(size=-1)],
    "all sizes": lambda file: [file.readline(size) for size in (0, -1, 1, True, 100)],
    "none": lambda file: file.readline(None),
    "too many": lambda file: file.readline(1, 2),
    "twice": lambda file: file.readline(1, size=2),
    "another name": lambda file: file.readline(length=2),
    "no number": lambda file: file.readline("2"),
    "of the class": lambda file: type(file).readline(file, 2),
    "kept": lambda file: list(iter(file.readline, b"")),
    "signature": lambda file: str(inspect.signature(file.readline)),
    "name": lambda file: file.readline.__name__,
}


@pytest.mark.parametrize("call", READ_LINE.values(), ids=READ_LINE)
def test_a_line_is_read_as_by_the_original(call: Callable[[Any], object]) -> None:
    def told(module: Any) -> object:
        with module.open(io.BytesIO(PACKED)) as file:
            given = outcome(lambda: call(file))
        return given[0] if isinstance(given, tuple) else given  # of an exception only the class

    assert told(our_gzip) == told(their_gzip)


def test_a_file_lives_as_long_as_its_method() -> None:
    assert our_gzip.open(io.BytesIO(PACKED)).readline() == b"one\n"
    readline = our_gzip.open(io.BytesIO(PACKED)).readline
    gc.collect()
    assert list(iter(readline, b"")) == LINES


def test_a_method_for_files_takes_nothing_else() -> None:
    with pytest.raises(TypeError):
        our_gzip.GzipFile.readline(io.BytesIO(PACKED))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["rb", "wb"])
def test_a_closed_file_has_no_lines(mode: str) -> None:
    def told(module: Any) -> list[object]:
        file = module.GzipFile(fileobj=io.BytesIO(PACKED), mode=mode)
        before = file.closed
        file.close()
        return [before, outcome(lambda: next(file)), outcome(file.readline), file.closed]

    assert told(our_gzip) == told(their_gzip)


def test_what_is_written_has_no_lines() -> None:
    def kind(module: Any) -> object:
        with module.GzipFile(fileobj=io.BytesIO(), mode="wb") as file:
            failure = outcome(lambda: next(file))
        assert isinstance(failure, tuple)
        return failure[0]

    # In Python 3.11 the original raises another exception, because only reading sets an attribute that it uses.
    theirs = io.UnsupportedOperation if sys.version_info < (3, 12) else kind(their_gzip)
    assert kind(our_gzip) == theirs


def test_a_line_is_what_a_subclass_says() -> None:
    class Counted(our_gzip.GzipFile):
        count = 0

        def readline(self, size: int | None = -1) -> bytes:
            self.count += 1
            return super().readline(size)

    with Counted(fileobj=io.BytesIO(PACKED)) as file:
        assert list(file) == LINES
        assert file.count == len(LINES) + 1


@pytest.mark.parametrize("where", ["file", "subclass", "class"])
def test_a_line_is_what_was_put_in_the_place_of_readline_later(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(module: Any) -> list[object]:
        class Sub(module.GzipFile):  # type: ignore[misc]
            pass

        answers = iter([b"first\n", "second", b""])
        other = module.GzipFile(fileobj=io.BytesIO(PACKED))
        with Sub(fileobj=io.BytesIO(PACKED)) as file:
            before = next(file)
            target = {"file": file, "subclass": Sub, "class": module.GzipFile}[where]
            monkeypatch.setattr(target, "readline", lambda *_: next(answers))
            replaced = list(file)
            monkeypatch.setattr(target, "readline", lambda *_: None)
            not_a_line = outcome(lambda: next(file))
            monkeypatch.undo()
            monkeypatch.setattr(file, "readline", other.readline)
            return [before, replaced, not_a_line, next(file), next(file), other.readline()]

    assert lines(our_gzip) == lines(their_gzip)


def test_a_file_is_one_of_the_original_kind() -> None:
    with our_gzip.open(io.BytesIO(PACKED)) as file:
        assert isinstance(file, their_gzip.GzipFile)
    # Nothing is left to the original: it would look for fields that ours does not have.
    inherited = {name for name in vars(their_gzip.GzipFile) if not name.startswith("_")}
    assert inherited - vars(our_gzip.GzipFile).keys() <= {"filename"}


def test_a_file_lives_as_long_as_its_iterator() -> None:
    lines = iter(our_gzip.open(io.BytesIO(PACKED)))
    gc.collect()
    assert list(lines) == LINES


def test_what_was_not_opened_is_closed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        our_gzip.GzipFile(tmp_path / "none.gz")
    assert our_gzip.GzipFile.__new__(our_gzip.GzipFile).closed


def test_every_public_method_has_a_docstring() -> None:
    public = {name: value for name, value in vars(our_gzip.GzipFile).items() if not name.startswith("_")}
    methods = {
        name: value for name, value in public.items() if callable(value) or isinstance(value, property)
    }
    assert len(methods) > 15
    assert [name for name, value in methods.items() if not value.__doc__] == []


def test_importing_it_imports_little() -> None:
    program = (
        "import sys, gzip; before = set(sys.modules); import offlock.gzip;"
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('offlock')))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    heavy = {"typing", "argparse", "asyncio", "numpy", "shutil", "inspect", "subprocess", "dataclasses"}
    assert heavy.isdisjoint(done.stdout.split()), done.stdout


@pytest.mark.parametrize("wbits", [15, -15, 31, 9, -9])
@pytest.mark.parametrize("level", [-1, 0, 1, 9])
def test_small_pieces_come_out_as_the_originals_do(wbits: int, level: int) -> None:
    pieces = [f"piece {number} of many\n".encode() * (number % 30) for number in range(400)]

    def through(module: Any) -> list[object]:
        stream = module.compressobj(level, 8, wbits)
        out = [stream.compress(piece) for piece in pieces[:100]]
        copy = stream.copy()
        assert copy.flush()
        header = [len(piece) for piece in out[:2]]
        out.append(stream.flush(theirs.Z_SYNC_FLUSH))
        so_far = theirs.decompressobj(wbits).decompress(b"".join(out))
        out += [stream.compress(piece) for piece in pieces[100:]]
        whole = theirs.decompress(b"".join([*out, stream.flush()]), wbits)
        return [header, so_far, whole]

    assert through(ours)[1:] == through(theirs)[1:]
    if level != 0:
        assert through(ours)[0] == through(theirs)[0]


@pytest.mark.parametrize("plain", [b"", b"x", b"some text " * 100])
@pytest.mark.parametrize("wbits", [15, -15, 31])
def test_a_stream_of_nothing_or_little_is_complete(plain: bytes, wbits: int) -> None:
    stream = ours.compressobj(wbits=wbits)
    assert theirs.decompress(stream.compress(plain) + stream.flush(), wbits) == plain
    with pytest.raises(theirs.error):
        stream.flush()
    with pytest.raises(theirs.error):
        stream.compress(b"more")


@pytest.mark.parametrize("size", [0, 1, 20, 8192, 8193, 100_000])
def test_checksums_of_small_and_large_bytes_agree(size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    for value in (0, 1, 12345, 0xFFFFFFFF, -1, 2**40 + 5):
        for name in ("crc32", "adler32"):
            expected = getattr(theirs, name)(data, value & 0xFFFFFFFF)
            assert getattr(ours, name)(data, value) == expected
            assert getattr(ours, name)(bytearray(data), value) == expected
            assert getattr(ours, name)(data, value, release="always") == expected
