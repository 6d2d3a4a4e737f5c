"""Zstandard against the original: `compression.zstd`, or its backport."""

import io
import pickle
import random
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alarms import Alarm, alarms, interrupted_calls, needs_alarms
from hypothesis import given, settings
from hypothesis import strategies as st

from offlock import zstd

if sys.version_info >= (3, 14):
    original = pytest.importorskip("compression.zstd")
else:
    original = pytest.importorskip("backports.zstd")

PLAIN = b"".join(b"word%d " % random.Random(1).randrange(900) for _ in range(3)) + b"".join(
    b"word%d " % n for n in random.Random(2).choices(range(900), k=60_000)
)


@pytest.mark.parametrize("level", [-5, 1, 3, 9, 12, 13, 19, 22])
def test_each_reads_what_the_other_writes(level: int) -> None:
    assert original.decompress(zstd.compress(PLAIN, level)) == PLAIN
    assert zstd.decompress(original.compress(PLAIN, level)) == PLAIN


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.binary(max_size=3000), st.sampled_from([0, 1, 2])), max_size=8),
    st.integers(1, 5000),
    st.integers(1, 3000),
)
def test_streams(pieces: list[tuple[bytes, int]], piece: int, most: int) -> None:
    ours = zstd.ZstdCompressor()
    packed = b"".join(ours.compress(data, mode) for data, mode in pieces) + ours.flush()
    plain = b"".join(data for data, _ in pieces)
    assert original.decompress(packed) == plain
    made, rest = [], packed
    while rest:
        results = []
        for module in zstd, original:
            decompressor, out, at = module.ZstdDecompressor(), [], 0
            while not decompressor.eof:
                data = b""
                if decompressor.needs_input:
                    data, at = rest[at : at + piece], at + piece
                out.append(decompressor.decompress(data, most))
            results.append((b"".join(out), decompressor.unused_data + rest[at:], decompressor.needs_input))
        assert results[0] == results[1]
        made.append(results[0][0])
        rest = results[0][1]
    assert b"".join(made) == plain


def both(call: Callable[[Any], object]) -> list[object]:
    """The result of a call on either module, or the class and the beginning of the message of its exception."""
    results: list[object] = []
    for module in zstd, original:
        try:
            results.append(call(module))
        except Exception as error:
            results.append((type(error).__name__, str(error).partition(" (at byte")[0]))
    return results


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.compress(b"x", 23),
        lambda m: m.compress(b"x", 2**40),
        lambda m: m.compress(b"x", "3"),
        lambda m: m.compress("x"),
        lambda m: m.compress(b"x", 3, {}),
        lambda m: m.compress(b"x", options=[]),
        lambda m: m.compress(b"x", options={m.CompressionParameter.window_log: 99}),
        lambda m: m.compress(b"x", options={m.DecompressionParameter.window_log_max: 20}),
        lambda m: m.compress(b"x", options={12345: 1}),
        lambda m: m.compress(b"x", zstd_dict=b"x"),
        lambda m: m.decompress(b""),
        lambda m: m.decompress(b"not a frame"),
        lambda m: m.decompress(m.compress(PLAIN)[:-5]),
        lambda m: m.decompress(b"x", options={m.DecompressionParameter.window_log_max: 99}),
        lambda m: m.ZstdDict(b"short"),
        lambda m: m.ZstdDict(b"not a dictionary"),
        lambda m: m.ZstdCompressor().compress(b"", 3),
        lambda m: m.ZstdCompressor().flush(0),
        lambda m: m.ZstdCompressor().set_pledged_input_size(-1),
        lambda m: m.train_dict([], 100),
        lambda m: m.train_dict([b"x"] * 20, 0),
        lambda m: m.train_dict([b"x"], "x"),
        lambda m: [p.bounds() for p in m.CompressionParameter],
        lambda m: [p.bounds() for p in m.DecompressionParameter],
        lambda m: [(p.name, p.value) for e in (m.CompressionParameter, m.Strategy) for p in e],
        lambda m: m.get_frame_size(original.compress(PLAIN) + b"more"),
        lambda m: repr(m.get_frame_info(original.compress(PLAIN))),
        lambda m: m.COMPRESSION_LEVEL_DEFAULT,
        lambda m: m.ZstdFile(io.BytesIO(), "q"),
        lambda m: m.open(io.BytesIO(), "rb", encoding="utf-8"),
    ],
)
def test_arguments_and_errors(call: Callable[[Any], object]) -> None:
    ours, theirs = both(call)
    assert ours == theirs


def test_a_wrong_pledge_is_an_error() -> None:
    for module in zstd, original:
        compressor = module.ZstdCompressor()
        compressor.set_pledged_input_size(5)
        compressor.compress(b"ab")
        with pytest.raises(module.ZstdError, match="Src size is incorrect"):
            compressor.flush()


def test_dictionaries_are_those_of_the_original() -> None:
    samples = [PLAIN[start : start + 200] for start in range(0, 100_000, 200)]
    ours, theirs = zstd.train_dict(samples, 5000), original.train_dict(samples, 5000)
    assert (ours.dict_content, ours.dict_id, len(ours)) == (theirs.dict_content, theirs.dict_id, len(theirs))
    assert repr(ours) == repr(theirs)
    ours_final = zstd.finalize_dict(ours, samples, 6000, 3)
    assert ours_final.dict_content == original.finalize_dict(theirs, samples, 6000, 3).dict_content
    for form in "as_digested_dict", "as_undigested_dict", "as_prefix":
        packed = zstd.compress(samples[0], zstd_dict=getattr(ours, form))
        assert original.decompress(packed, getattr(theirs, form)) == samples[0]
        packed = original.compress(samples[0], zstd_dict=getattr(theirs, form))
        assert zstd.decompress(packed, getattr(ours, form)) == samples[0]


def test_max_output() -> None:
    packed = zstd.compress(bytes(1000)) * 2
    assert zstd.decompress(packed, max_output=2000) == bytes(2000)
    with pytest.raises(zstd.OutputLimitError):
        zstd.decompress(packed, max_output=1999)


def test_files() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.zst"
        with zstd.open(path, "wb", level=5) as file:
            file.write(PLAIN)
        with zstd.open(path, "ab") as file:
            file.write(b"\nthe end\n")
        whole = PLAIN + b"\nthe end\n"
        with original.open(path) as theirs, zstd.open(path) as ours:
            assert ours.read(10) == theirs.read(10)
            assert ours.seek(-9, io.SEEK_END) == theirs.seek(-9, io.SEEK_END)
            assert ours.readline() == theirs.readline()
            assert ours.seek(3) == theirs.seek(3) == 3
            assert ours.read() == theirs.read() == whole[3:]
        with zstd.open(path, "rt", encoding="ascii") as text:
            assert text.read() == whole.decode()
        path.write_bytes(path.read_bytes()[:-3])
        with zstd.open(path) as cut, pytest.raises(EOFError):
            cut.read()


def test_functions_can_be_pickled() -> None:
    for function in zstd.compress, zstd.decompress:
        assert pickle.loads(pickle.dumps(function)) is function


@needs_alarms
@pytest.mark.parametrize("level", [1, 3, 9, 12, 19])
def test_interrupted_compression_loses_no_byte(level: int) -> None:
    # Some of it does not compress: its output takes long to copy.
    plain = PLAIN * {1: 400, 3: 300, 9: 40}.get(level, 2) + random.Random(3).randbytes(6 << 20)
    dice, interrupts, rounds = random.Random(5), 0, 0
    # An alarm may come too late for a call, so a machine may need some rounds.
    while rounds < 3 or (not interrupts and rounds < 50):
        rounds += 1
        compressor = zstd.ZstdCompressor(level)
        inputs = [(plain[: len(plain) // 2], 2), (plain[len(plain) // 2 :], 0), (b"", 1), (b"the end", 2)]
        outputs, count = interrupted_calls(compressor.compress, inputs, dice)
        interrupts += count
        assert compressor.last_mode == 2
        made = original.decompress(b"".join(outputs))
        assert made == plain + b"the end", (len(made), len(plain))
    assert interrupts


@needs_alarms
def test_a_call_after_an_interrupted_one_finishes_it_first() -> None:
    plain = random.Random(3).randbytes(40 << 20)
    for level in 3, 13:
        compressor = zstd.ZstdCompressor(level)
        with alarms():
            signal.setitimer(signal.ITIMER_REAL, 0.003)
            with pytest.raises(Alarm):
                compressor.compress(plain, compressor.FLUSH_FRAME)
        packed = compressor.compress(b"more") + compressor.flush()
        assert packed.count(b"\x28\xb5\x2f\xfd") == 2
        assert original.decompress(packed) == plain + b"more"


@needs_alarms
def test_interrupted_decompression_loses_no_byte() -> None:
    plain = PLAIN * 200
    packed = original.compress(plain, 1)
    pieces = [packed[: len(packed) // 2], packed[len(packed) // 2 :]]
    dice, interrupts, rounds = random.Random(6), 0, 0
    while not interrupts and rounds < 50:
        rounds += 1
        decompressor = zstd.ZstdDecompressor(max_output=len(plain))
        outputs, interrupts = interrupted_calls(decompressor.decompress, [(piece,) for piece in pieces], dice)
        assert decompressor.eof
        assert b"".join(outputs) == plain
    assert interrupts


def test_samples_of_a_few_bytes_are_refused() -> None:
    # The library crashes with these.
    for samples in (
        [b"abc"] * 2 + [b""] * 6 + [b"ab"],
        [b"a"] * 7 + [b""] * 10 + [b"b"] * 3,
        [b"x" * 4, *[b""] * 6, b"y" * 4],
    ):
        with pytest.raises(zstd.ZstdError, match="Src size is incorrect"):
            zstd.train_dict(samples, 300)


def test_calls_without_data_change_nothing() -> None:
    packed = original.compress(PLAIN)
    decompressor = zstd.ZstdDecompressor()
    plain = decompressor.decompress(packed[:100])
    for _ in range(40):
        assert decompressor.decompress(b"") == b""
        assert decompressor.needs_input
    assert plain + decompressor.decompress(packed[100:]) == PLAIN


def test_a_bomb_stops_at_its_limit() -> None:
    packed = zstd.compress(bytes(1 << 30), 1)
    calls: list[Callable[[], bytes]] = [
        lambda: zstd.decompress(packed, max_output=1 << 20),
        lambda: zstd.ZstdDecompressor(max_output=1 << 20).decompress(packed),
    ]
    for call in calls:
        with pytest.raises(zstd.OutputLimitError):
            call()
