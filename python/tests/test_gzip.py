"""Compares offlock.gzip with the standard library's gzip, and tests its additions."""

import gzip as theirs
import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import pytest

from offlock import gzip as ours
from offlock import zlib

TEXT = " ".join(dir(theirs) + dir(io)).encode()
PLAIN = b"\n".join(random.Random(0).choices(TEXT.split(), k=300_000))


@pytest.mark.parametrize("threads", [1, 0, 3])
def test_each_reads_the_other(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a.gz"
    for plain in [b"", b"x", PLAIN]:
        with ours.open(path, "wb", threads=threads) as file:
            assert isinstance(file, ours.GzipFile)
            for start in range(0, len(plain), 77_777):
                file.write(plain[start : start + 77_777])
        with theirs.open(path) as file:
            assert file.read() == plain
        with theirs.open(path, "wb") as file:
            file.write(plain)
        with ours.open(path, threads=threads) as file:
            assert file.read() == plain
        assert theirs.decompress(ours.compress(plain, threads=threads)) == plain
        assert ours.decompress(theirs.compress(plain), threads=threads) == plain


@pytest.mark.parametrize("threads", [1, 2])
def test_members_in_one_file(threads: int) -> None:
    parts = [PLAIN[:400_000], b"", PLAIN[400_000:]]
    packed = b"".join(theirs.compress(part) + bytes(n) for n, part in enumerate(parts))
    assert ours.decompress(packed, threads=threads) == PLAIN
    with ours.GzipFile(fileobj=io.BytesIO(packed), threads=threads) as file:
        assert file.read() == PLAIN
    with ours.GzipFile(fileobj=io.BytesIO(packed), threads=threads) as file:
        assert b"".join(file) == PLAIN


def many_members() -> tuple[bytes, bytes]:
    """Returns a gzip file with members of many sizes, as in BGZF and in concatenated files, and its contents."""
    sizes = [0, 1, 500, 60_000, 300_000]
    parts = [PLAIN[n * 1000 : n * 1000 + sizes[n % 5]] for n in range(60)]
    return b"".join(theirs.compress(part, 1) for part in parts), b"".join(parts)


def read_all(packed: bytes, threads: int, size: int) -> tuple[bytes, object]:
    """Returns the contents of a file up to the first error, and the error."""
    made = []
    with ours.GzipFile(fileobj=io.BytesIO(packed), threads=threads) as file:
        try:
            while chunk := file.read1(size):
                made.append(chunk)
        except (OSError, EOFError, zlib.error) as error:
            return b"".join(made), (type(error), str(error))
    return b"".join(made), None


def test_members_on_threads_are_what_they_are_in_order() -> None:
    packed, plain = many_members()
    for threads in [0, 2, 5]:
        assert read_all(packed, threads, 10_000) == (plain, None)
        with ours.GzipFile(fileobj=io.BytesIO(packed), threads=threads) as file:
            assert file.readlines() == plain.splitlines(keepends=True)
            file.seek(1000)
            assert file.read() == plain[1000:]
    for at in range(100, len(packed), len(packed) // 15):
        bad = packed[:at] + bytes([packed[at] ^ 0x10]) + packed[at + 1 :]
        for damaged in [bad, packed[:at]]:
            assert read_all(damaged, 2, 10_000) == read_all(damaged, 1, 10_000)


def test_progress_is_reported(tmp_path: Path) -> None:
    plain = random.Random(7).randbytes(3_500_000)
    reported: list[tuple[int, int | None]] = []

    def progress(done: int, of: int | None) -> None:
        reported.append((done, of))

    packed = ours.compress(plain, progress=progress)
    assert reported[-1] == (len(plain), len(plain))
    assert len(reported) > 3
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    for threads in [1, 2]:
        reported.clear()
        assert ours.decompress(packed, threads=threads, progress=progress) == plain
        assert reported[-1] == (len(packed), len(packed))
        with ours.open(path, threads=threads, progress=progress) as file:
            assert file.read() == plain
        assert reported[-1] == (len(packed), len(packed))
    reported.clear()
    with ours.open(path, "wb", threads=2, progress=progress) as file:
        assert isinstance(file, ours.GzipFile)
        file.write(plain)
    assert reported[-1][0] == len(plain)
    assert reported[-1][1] is None
    with pytest.raises(ZeroDivisionError):
        ours.decompress(packed, progress=lambda done, of: 1 // 0)


def test_reading_on_threads_takes_bounded_memory(tmp_path: Path) -> None:
    # Resident memory is measured in a new process, because earlier tests would contribute to it.
    path = tmp_path / "big.gz"
    member = theirs.compress(PLAIN[:1_000_000], 1)
    path.write_bytes(member * 200)
    program = (
        "import resource, sys\n"
        "from offlock import gzip\n"
        "rss = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before, total = rss(), 0\n"
        "with gzip.open(sys.argv[1], threads=2) as file:\n"
        "    while chunk := file.read(100_000):\n"
        "        total += len(chunk)\n"
        "assert total == 200_000_000, total\n"
        "print((rss() - before) // (1 if sys.platform == 'darwin' else 1024))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < (60 << (20 if sys.platform == "darwin" else 0))


def test_threads_cost_little_size() -> None:
    assert len(ours.compress(PLAIN, 6, threads=2)) < len(theirs.compress(PLAIN, 6)) * 1.02


@pytest.mark.parametrize("threads", [1, 2])
def test_flush_gives_out_everything(threads: int) -> None:
    buffer = io.BytesIO()
    with ours.GzipFile(fileobj=buffer, mode="wb", threads=threads) as file:
        file.write(b"early")
        file.flush()
        unpacker = zlib.decompressobj(31)
        assert unpacker.decompress(buffer.getvalue()) == b"early"
        file.write(b" and late")
    assert theirs.decompress(buffer.getvalue()) == b"early and late"


@pytest.mark.parametrize("threads", [1, 2])
def test_output_is_limited(threads: int) -> None:
    bomb = theirs.compress(bytes(5_000_000))
    with pytest.raises(zlib.OutputLimitError):
        ours.decompress(bomb, threads=threads, max_output=4_999_999)
    assert len(ours.decompress(bomb, threads=threads, max_output=5_000_000)) == 5_000_000
    with (
        ours.GzipFile(fileobj=io.BytesIO(bomb), threads=threads, max_output=1000) as file,
        pytest.raises(zlib.OutputLimitError),
    ):
        file.read()


def test_a_whole_read_needs_no_more_memory_than_asked() -> None:
    bomb = io.BytesIO(theirs.compress(bytes(50_000_000)))
    with ours.GzipFile(fileobj=bomb) as file:
        assert file.read(10) == bytes(10)
        assert file._buffer.raw.tell() <= 2 * io.DEFAULT_BUFFER_SIZE


def outcome(read: Callable[[bytes], bytes], data: bytes) -> Any:
    """Returns the result, or the class of the exception."""
    try:
        return read(data)
    except (OSError, EOFError, zlib.error) as error:
        return type(error)


def test_damage_is_the_same_class_of_error() -> None:
    packed = theirs.compress(TEXT)
    rng = random.Random(1)
    for _ in range(300):
        damaged = bytearray(packed)
        damaged[rng.choice([*range(4), *range(10, len(packed))])] ^= 1 << rng.randrange(8)
        cut = bytes(damaged[: rng.choice([len(damaged), rng.randrange(1, len(damaged))])])
        assert outcome(ours.decompress, cut) == outcome(theirs.decompress, cut), cut.hex()


@pytest.mark.parametrize("member", [b"", theirs.compress(b"before")], ids=["first", "second"])
@pytest.mark.parametrize("start", [b"\x1f\x8b\x08", b"\x1f\x8b\x07", b"\x1f\x9d", b"PK"], ids=repr)
def test_a_header_that_is_cut_off_is_the_same_class_of_error(start: bytes, member: bytes) -> None:
    def outcomes(module: Any, data: bytes) -> list[Any]:
        from_file = outcome(lambda data: module.GzipFile(fileobj=io.BytesIO(data)).read(), data)
        return [outcome(module.decompress, data), from_file]

    header = start.ljust(10, b"\0")
    for cut in range(len(header) + 1):
        data = member + header[:cut]
        assert outcomes(ours, data) == outcomes(theirs, data), data


def test_text_mode_and_seeking(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    with ours.open(path, "wt", encoding="utf-8") as file:
        file.write("größe\n" * 1000)
    with ours.open(path, "rt", encoding="utf-8") as file:
        assert list(file) == ["größe\n"] * 1000
    with ours.open(path) as file:
        file.seek(4000)
        rest = file.read()
        file.seek(4000)
        assert file.read() == rest == ("größe\n" * 1000).encode()[4000:]


class _EndedError(Exception):
    """An exception that the callback raises."""


def raising_after(calls: int) -> Callable[[int, int | None], None]:
    reported = []

    def progress(done: int, _: int | None) -> None:
        reported.append(done)
        if len(reported) == calls:
            raise _EndedError

    return progress


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [-1, 12_000_000])
def test_a_read_that_was_interrupted_can_be_done_again(threads: int, size: int) -> None:
    plain = random.Random(1).randbytes(12_000_000)
    file = io.BytesIO(theirs.compress(plain, 1))
    for calls in (1, 2):
        with ours.GzipFile(fileobj=file, threads=threads, progress=raising_after(calls)) as reader:
            file.seek(0)
            assert reader.read(7) == plain[:7]
            with pytest.raises(_EndedError):
                reader.read(size)
            assert reader.tell() == 7
            assert reader.read() == plain[7:]


def test_an_interrupted_read_of_what_cannot_be_read_again_is_no_end() -> None:
    packed = io.BytesIO(theirs.compress(random.Random(1).randbytes(3_000_000), 1))
    with ours.GzipFile(fileobj=cast(IO[bytes], Once(packed)), progress=raising_after(2)) as reader:
        with pytest.raises(_EndedError):
            reader.read()
        with pytest.raises(OSError, match="cannot be read again"):
            reader.read()


class Once(io.RawIOBase):
    """A file that can only be read once, forwards."""

    def __init__(self, file: io.BytesIO) -> None:
        self.file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self.file.readinto(buffer)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_write_that_was_interrupted_leaves_a_whole_file(threads: int) -> None:
    plain = random.Random(2).randbytes(5_000_000)
    for calls in range(1, 5):
        packed = io.BytesIO()
        writer = ours.GzipFile(fileobj=packed, mode="wb", threads=threads, progress=raising_after(calls))
        with pytest.raises(_EndedError):
            writer.write(plain)
        writer.close()
        assert theirs.decompress(packed.getvalue()) == plain[: calls << 20]


def test_one_long_write_is_told_of_step_by_step() -> None:
    reported: list[int] = []
    with ours.GzipFile(
        fileobj=io.BytesIO(), mode="wb", progress=lambda done, _: reported.append(done)
    ) as writer:
        writer.write(bytes(5 << 20))
    assert reported == [n << 20 for n in range(1, 6)]


def test_the_time_of_an_empty_member_is_known() -> None:
    with ours.GzipFile(fileobj=io.BytesIO(theirs.compress(b"", mtime=5))) as reader:
        assert (reader.read(), reader.mtime) == (b"", 5)


def test_the_module_is_a_command(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(PLAIN)
    command = [sys.executable, "-m", "offlock.gzip"]
    subprocess.run([*command, "--best", path], check=True)
    assert theirs.decompress(path.with_suffix(".gz").read_bytes()) == PLAIN
    path.unlink()
    subprocess.run([*command, "-d", path.with_suffix(".gz")], check=True)
    assert path.read_bytes() == PLAIN
    packed = subprocess.run(command, input=PLAIN, check=True, capture_output=True).stdout
    assert subprocess.run([*command, "-d"], input=packed, check=True, capture_output=True).stdout == PLAIN
    assert subprocess.run([*command, "-d", path], check=False, capture_output=True).returncode == 1
