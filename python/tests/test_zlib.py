"""Compares offlock.zlib with the standard library's zlib, and tests its additions."""

import functools
import inspect
import pickle
import random
import threading
import time
import zlib as theirs
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest
from alarms import interrupted_calls, needs_alarms

from offlock import Cancel, _offlock
from offlock import zlib as ours

FORMATS = [15, -15, 31, 9, -9, 25]
TEXT = (__doc__ + " ".join(dir(theirs)) * 3).encode()


def samples(seed: int) -> list[bytes]:
    rng = random.Random(seed)
    text = b" ".join(rng.choices(TEXT.split(), k=rng.randrange(1, 20_000)))
    return [b"", b"x", bytes(rng.randrange(100_000)), rng.randbytes(rng.randrange(100_000)), text]


@pytest.mark.parametrize("wbits", FORMATS)
@pytest.mark.parametrize("level", [-1, 0, 1, 6, 9])
def test_each_reads_the_other(level: int, wbits: int) -> None:
    for plain in samples(level * 100 + wbits):
        assert theirs.decompress(ours.compress(plain, level, wbits), wbits) == plain
        packer = theirs.compressobj(level, wbits=wbits)
        assert ours.decompress(packer.compress(plain) + packer.flush(), wbits) == plain


@pytest.mark.parametrize("strategy", range(5))
def test_streams_in_any_chunks(strategy: int) -> None:
    rng = random.Random(strategy)
    pairs: list[tuple[Any, Any]]
    for plain in samples(strategy):
        pairs = [
            (ours.compressobj(rng.randrange(10), strategy=strategy), theirs.decompressobj()),
            (theirs.compressobj(rng.randrange(10), strategy=strategy), ours.decompressobj()),
        ]
        for packer, unpacker in pairs:
            packed, rest = b"", plain
            while rest:
                size = rng.randrange(1, 40_000)
                packed += packer.compress(rest[:size]) + packer.flush(rng.choice([0, 1, 2, 3, 5]))
                rest = rest[size:]
            packed += packer.flush()
            unpacked = b""
            while packed:
                size = rng.randrange(1, 5_000)
                unpacked += unpacker.decompress(packed[:size], rng.randrange(1, 20_000))
                packed = unpacker.unconsumed_tail + packed[size:]
            unpacked += unpacker.flush()
            assert unpacked == plain
            assert unpacker.eof


def outcome(module: object, packed: bytes, wbits: int) -> object:
    try:
        return module.decompress(packed, wbits)  # type: ignore[attr-defined]
    except theirs.error as error:
        return str(error).split(" (")[0]


@pytest.mark.parametrize("wbits", FORMATS)
def test_damaged_data_is_the_same_error(wbits: int) -> None:
    rng = random.Random(wbits)
    packer = theirs.compressobj(6, wbits=wbits)
    packed = packer.compress(TEXT) + packer.flush()
    for _ in range(500):
        damaged = bytearray(packed)
        damaged[rng.randrange(min(len(damaged), 60))] ^= 1 << rng.randrange(8)
        cut = bytes(damaged[: rng.randrange(len(damaged) + 1)])
        expected = outcome(theirs, cut, wbits)
        if isinstance(expected, bytes):
            assert outcome(ours, cut, wbits) == expected
        else:
            found = outcome(ours, cut, wbits)
            assert isinstance(found, str), (cut.hex(), expected)
            assert found[:9] == str(expected)[:9]


def test_an_error_names_its_place() -> None:
    with pytest.raises(
        theirs.error, match=r"^Error -3 .*: incorrect header check \(at byte 2 of the input\)$"
    ):
        ours.decompress(b"nonsense")


def test_checksums_and_their_combinations() -> None:
    for plain in samples(1):
        assert ours.crc32(plain) == theirs.crc32(plain)
        assert ours.adler32(plain, 2**70 + 5) == theirs.adler32(plain, 5)
        assert ours.crc32(plain, -3) == theirs.crc32(plain, -3)
        both = plain + b"more"
        assert ours.crc32_combine(ours.crc32(plain), ours.crc32(b"more"), 4) == theirs.crc32(both)
        assert ours.adler32_combine(ours.adler32(plain), ours.adler32(b"more"), 4) == theirs.adler32(both)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_batches(threads: int) -> None:
    plain = samples(2) * 20
    packed = ours.deflate_all(plain, threads=threads)
    assert [theirs.decompress(each) for each in packed] == plain
    assert ours.inflate_all(map(memoryview, packed), threads=threads) == plain
    packed[7] = b"bad"
    with pytest.raises(ours.error, match="input 7: incorrect header check"):
        ours.inflate_all(packed, threads=threads)


def test_output_is_limited() -> None:
    bomb = ours.compress(bytes(10_000_000))
    assert len(ours.decompress(bomb, max_output=10_000_000)) == 10_000_000
    with pytest.raises(ours.OutputLimitError):
        ours.decompress(bomb, max_output=9_999_999)
    with pytest.raises(ours.OutputLimitError, match="input 1"):
        ours.inflate_all([ours.compress(b"small"), bomb], max_output=1000)
    stream = ours.decompressobj(max_output=100)
    assert stream.decompress(bomb, 90) == bytes(90)
    with pytest.raises(ours.OutputLimitError):
        stream.decompress(stream.unconsumed_tail)
    with pytest.raises(ours.OutputLimitError):
        ours.decompress(bomb, max_output=5_000_000, progress=lambda done, of: None)


def test_progress_is_told() -> None:
    plain = random.Random(3).randbytes(3_500_000)
    reported: list[tuple[int, int]] = []
    packed = ours.compress(plain, progress=lambda done, of: reported.append((done, of)))
    assert reported == [(n << 20, len(plain)) for n in (1, 2, 3)] + [(len(plain), len(plain))]
    reported.clear()
    assert ours.decompress(packed, progress=lambda done, of: reported.append((done, of))) == plain
    assert reported[-1] == (len(packed), len(packed))
    with pytest.raises(ZeroDivisionError):
        ours.decompress(packed, progress=lambda done, of: 1 // 0)
    with pytest.raises(ours.error, match="incomplete or truncated"):
        ours.decompress(packed[:-1], progress=lambda done, of: None)


@pytest.mark.parametrize("release", ["always", "never"])
def test_a_call_is_cancelled(release: str) -> None:
    bomb = ours.compress(bytes(1 << 30), 1)
    cancel = Cancel()
    cancel.cancel()
    start = time.monotonic()
    with pytest.raises(CancelledError):
        ours.decompress(bomb, release=release, cancel=cancel)  # type: ignore[arg-type]
    assert time.monotonic() - start < 5


def test_other_threads_run_meanwhile() -> None:
    plain = random.Random(4).randbytes(20_000_000)
    ran = 0
    done = threading.Event()

    def count() -> None:
        nonlocal ran
        while not done.is_set():
            ran += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = ran
    ours.compress(plain, 6)
    after = ran
    done.set()
    thread.join()
    assert after > before + 100


def test_threads_take_turns_on_a_stream() -> None:
    packer = ours.compressobj()
    piece = TEXT * 50
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: packer.compress(piece), range(40)))
    # The order of the threads is not defined, but the bytes of the output must be one valid stream.
    assert sum(map(len, made)) + len(packer.flush()) > 0
    unpacker = ours.decompressobj()
    packed = ours.compress(piece * 40)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: unpacker.decompress(b""), range(8)))
    assert b"".join(parts) == b""
    assert unpacker.decompress(packed) == piece * 40


def test_any_contiguous_buffer() -> None:
    packed = theirs.compress(TEXT)
    buffers: list[Any] = [packed, bytearray(packed), memoryview(packed), memoryview(bytearray(packed))]
    for buffer in buffers:
        assert ours.decompress(buffer) == TEXT
    with pytest.raises(BufferError):
        ours.decompress(memoryview(packed)[::2])
    with pytest.raises(TypeError):
        ours.decompress("text")  # type: ignore[arg-type]


def test_the_surface_is_the_originals() -> None:
    missing = {name for name in dir(theirs) if not name.startswith("_")} - set(dir(ours))
    assert missing <= {"ZLIBNG_VERSION"}
    for name in dir(theirs):
        if name.startswith(("Z_", "DEF", "MAX")):
            assert getattr(ours, name) == getattr(theirs, name)


def test_progress_of_a_batch_is_told() -> None:
    noise = random.Random(6)
    plain = [noise.randbytes(1_000_000) for _ in range(20)]
    reported: list[tuple[int, int]] = []
    packed = ours.deflate_all(plain, progress=lambda done, of: reported.append((done, of)))
    assert reported == [(done, 20_000_000) for done in (9_000_000, 18_000_000, 20_000_000)]
    assert ours.inflate_all(packed, progress=lambda done, of: reported.append((done, of))) == plain
    assert reported[-1][0] == sum(map(len, packed))
    with pytest.raises(ZeroDivisionError):
        ours.deflate_all(plain, progress=lambda done, of: 1 // 0)
    packed[15] = b"bad"
    with pytest.raises(ours.error, match="input 15:"):
        ours.inflate_all(packed, progress=lambda done, of: None)


def test_functions_can_be_pickled() -> None:
    functions = [ours.compress, ours.decompress, ours.crc32, ours.adler32, ours.compressobj, ours.deflate_all]
    assert pickle.loads(pickle.dumps(functions)) == functions


def test_signatures_tell_the_defaults() -> None:
    assert inspect.signature(ours.compress).parameters["level"].default == -1
    assert inspect.signature(ours.crc32).parameters["value"].default == 0
    assert inspect.signature(ours.deflate_all).parameters["release"].default == "auto"


def test_damage_is_told_in_the_words_of_the_original() -> None:
    packed = theirs.compress(" ".join(random.Random(3).choices(TEXT.decode().split(), k=3000)).encode())
    for at in range(2, len(packed) - 4):
        damaged = bytearray(packed)
        damaged[at] ^= 1 << at % 8
        expected, found = (words_of(zlib.decompress, bytes(damaged)) for zlib in (theirs, ours))
        assert found.startswith(expected)


def words_of(decompress: Any, data: bytes) -> str:
    try:
        decompress(data)
    except theirs.error as error:
        return str(error)
    return ""


def test_a_stream_that_has_failed_says_the_same_again() -> None:
    stream = ours.decompressobj()
    words = []
    for data in (b"\x78\x9c\xff", b"more"):
        with pytest.raises(ours.error) as failure:
            stream.decompress(data)
        words.append(str(failure.value))
    assert words[0] == words[1]
    assert "invalid block type" in words[0]


def test_odd_arguments() -> None:
    class Raises:
        def __index__(self) -> int:
            raise KeyError

    with pytest.raises(KeyError):
        ours.crc32(b"", Raises())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Invalid initialization option"):
        ours._ZlibDecompressor(99)
    assert ours.adler32(b"", 2**32 - 1) == theirs.adler32(b"", 2**32 - 1)
    with pytest.raises(ours.error, match="input 1: incomplete or truncated stream"):
        ours.inflate_all([theirs.compress(b"x"), theirs.compress(b"x")[:-1]])
    with pytest.raises(ours.error, match="Bad compression level"):
        ours.deflate_all([b"x"], 12)


@functools.cache
def long_text() -> bytes:
    """A text of which each half takes several times the time between two checks for signals, its copy as well."""
    dice = random.Random(3)
    letters = bytes(b"abcdefghijklmnopqrstuvwxyz etaoin"[number % 33] for number in range(256))
    return dice.randbytes(16 << 20).translate(letters) + bytes(48 << 20) + dice.randbytes(8 << 20)


MAKERS: dict[str, Callable[[], Any]] = {
    "compressobj": lambda: ours.compressobj(1),
    "BlockCompress": lambda: _offlock.zlib.BlockCompress(1, 2),
    "decompressobj": lambda: ours.decompressobj(max_output=len(long_text())),
    "_ZlibDecompressor": lambda: ours._ZlibDecompressor(),
    "GzipDecompress": lambda: _offlock.zlib.GzipDecompress(),
}


def with_interrupts(run: Callable[[random.Random], int]) -> None:
    """Calls `run` until there were interrupts, whose number it returns: an alarm may come too late."""
    dice, interrupts, rounds = random.Random(5), 0, 0
    while rounds < 2 or (not interrupts and rounds < 30):
        interrupts += run(dice)
        rounds += 1
    assert interrupts


@needs_alarms
@pytest.mark.parametrize("which", ["compressobj", "BlockCompress"])
def test_interrupted_compression_loses_no_byte(which: str) -> None:
    plain = long_text()
    pieces = [plain[: len(plain) // 2], plain[len(plain) // 2 :], *[b"small pieces"] * 50]

    def run(dice: random.Random) -> int:
        stream = MAKERS[which]()
        packed, interrupts = interrupted_calls(stream.compress, [(piece,) for piece in pieces], dice)
        end, more = interrupted_calls(stream.flush, [(ours.Z_FINISH,)], dice, lambda: ours.Z_FINISH)
        wbits = 15 if which == "compressobj" else -15
        assert theirs.decompress(b"".join(packed + end), wbits) == b"".join(pieces)
        return interrupts + more

    with_interrupts(run)


@needs_alarms
@pytest.mark.parametrize("most", [1 << 40, 40 << 20])
@pytest.mark.parametrize("which", ["decompressobj", "_ZlibDecompressor", "GzipDecompress"])
def test_interrupted_decompression_loses_no_byte(which: str, most: int) -> None:
    packed = theirs.compress(long_text(), 1, 31 if which == "GzipDecompress" else 15)
    halves = packed[: len(packed) // 2], packed[len(packed) // 2 :]

    def run(dice: random.Random) -> int:
        stream = MAKERS[which]()

        def tail() -> bytes:
            return stream.unconsumed_tail if which == "decompressobj" else b""

        plain, interrupts = interrupted_calls(stream.decompress, [(halves[0], most)], dice, tail)
        data = tail() + halves[1]
        while not getattr(stream, "eof", False):
            made, more = interrupted_calls(stream.decompress, [(data, most)], dice, tail)
            plain, interrupts, data = plain + made, interrupts + more, tail()
            if not made[0]:
                break
        assert b"".join(plain) == long_text()
        return interrupts

    with_interrupts(run)
