"""A call that cannot allocate memory raises MemoryError, and the program continues."""

from __future__ import annotations

import base64
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from interpreter import objects_are_limited
from processes import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are read and set as on Linux")

PRELUDE = """
import array, io, os, resource
import offlock.gzip as gzip, offlock.msgpack as msgpack, offlock.strings as strings, offlock.zlib as zlib
import offlock.tiktoken

enc = offlock.tiktoken.get_encoding("cl100k_base")

def bomb(wbits):
    "A stream of 1 GB, whose checksum is never reached."
    maker = zlib.compressobj(wbits=-15)
    part = maker.compress(bytes(1 << 24)) + maker.flush(zlib.Z_FULL_FLUSH)
    header = {-15: b"", 15: b"\\x78\\x9c", 31: b"\\x1f\\x8b\\x08" + bytes(7)}[wbits]
    return header + part * 64 + b"\\x03\\x00" + bytes(8)

def raises(call, spare, usual):
    "Calls with a limit of `spare` bytes above the current size; then `usual` must work without a limit."
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + spare, hard))
    try:
        call()
        end = "no exception"
    except MemoryError:
        end = "MemoryError"
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    usual()
    print(end)
"""

MEGABYTE = 1 << 20


def ends(setup: str, call: str, spare: int, usual: str) -> str:
    program = f"{textwrap.dedent(setup)}\nraises(lambda: {call}, {spare}, lambda: {usual})"
    return run(program, prelude=PRELUDE).strip()


@pytest.mark.parametrize(
    ("wbits", "call"),
    [
        (15, "zlib.decompress(packed)"),
        (15, "zlib.decompress(packed, release='never')"),
        (15, "zlib.decompress(packed, progress=lambda done, size: None)"),
        (-15, "zlib.decompress(packed, -15)"),
        (15, "zlib.decompressobj().decompress(packed)"),
        (15, "zlib._ZlibDecompressor().decompress(packed)"),
        (15, "zlib.inflate_all([packed, packed], threads=2)"),
        (15, "zlib.inflate_all([packed] * 3, threads=1)"),
        (31, "gzip.decompress(packed)"),
        (31, "gzip.decompress(packed, threads=2)"),
        (31, "gzip.decompress(gzip.compress(bytes(1000)) * 2000 + packed, threads=2)"),
        (31, "gzip.GzipFile(fileobj=io.BytesIO(packed)).read()"),
        (31, "gzip.GzipFile(fileobj=io.BytesIO(packed), threads=2).read()"),
    ],
)
def test_decompressing(wbits: int, call: str) -> None:
    usual = "zlib.decompress(zlib.compress(bytes(100_000)))"
    assert ends(f"packed = bomb({wbits})", call, 300 * MEGABYTE, usual) == "MemoryError"


@pytest.mark.parametrize(
    "call",
    [
        "zstd.decompress(packed)",
        "zstd.decompress(packed, release='never')",
        "zstd.decompress(packed, max_output=1 << 30)",
        "zstd.ZstdFile(io.BytesIO(packed)).read()",
    ],
)
def test_decompressing_zstandard(call: str) -> None:
    setup = "from offlock import zstd; packed = zstd.compress(bytes(1 << 24), 1) * 64"
    usual = "zstd.decompress(zstd.compress(bytes(100_000)))"
    assert ends(setup, call, 300 * MEGABYTE, usual) == "MemoryError"


@pytest.mark.parametrize(
    "call",
    [
        "zlib.compress(data, 0)",
        "zlib.compressobj(0).compress(data)",
        "zlib.deflate_all([data, data], 0, threads=2)",
        "gzip.compress(data, 0)",
        "gzip.compress(data, 0, threads=2)",
        "zlib.crc32(changing)",
    ],
)
def test_compressing(call: str) -> None:
    setup = "data = bytes(100 << 20); changing = bytearray(data)"
    assert ends(setup, call, 64 * MEGABYTE, "zlib.compress(bytes(100_000))") == "MemoryError"


@pytest.mark.parametrize("release", ["always", "never"])
@pytest.mark.parametrize(
    "lines",
    [
        "b'{\"a\":1}\\n' * 3_000_000",
        "b'{\"a\":\"' + b'a' * (50 << 20) + b'\"}'",
        'b\'{"a":"b"}\\n\' * 3_000_000',
    ],
)
def test_extracting_from_json_lines(lines: str, release: str) -> None:
    call = f"jsonl.extract(lines, 'a', release='{release}')"
    usual = "jsonl.extract(b'{}', 'a')"
    setup = f"from offlock import jsonl; lines = {lines}"
    assert ends(setup, call, 30 * MEGABYTE, usual) == "MemoryError"


@objects_are_limited
@pytest.mark.parametrize("release", ["always", "never"])
@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("nils", "msgpack.unpackb(message, {options})"),
        ("nils", "msgpack.unpackb(message, use_list=False, {options})"),
        ("nils", "msgpack.unpack_all([message] * 3, {options})"),
        ("nils", "unpacker(message, {options}).unpack()"),
        ("words", "msgpack.unpackb(message, {options})"),
        ("records", "msgpack.extract(message, 'a', {options})"),
        ("text", "msgpack.unpackb(message, {options})"),
    ],
)
def test_unpacking(message: str, call: str, release: str) -> None:
    if "unpacker" in call and release == "never":
        pytest.skip("it takes no such option")
    setup = """
        nils = b"\\xdd" + (30_000_000).to_bytes(4, "big") + b"\\xc0" * 30_000_000
        words = b"\\xdd" + (5_000_000).to_bytes(4, "big") + b"\\xa3abc" * 5_000_000
        text = b"\\xdb" + (80_000_000).to_bytes(4, "big") + b"a" * 80_000_000
        records = b"\\xdd" + (3_000_000).to_bytes(4, "big") + b"\\x81\\xa1a\\xa1b" * 3_000_000

        def unpacker(message):
            unpacker = msgpack.Unpacker(max_buffer_size=0)
            unpacker.feed(message)
            return unpacker
        """
    options = "" if "unpacker" in call else f"release='{release}'"
    call = call.replace("message", message).format(options=options).replace(", )", ")")
    usual = "msgpack.unpackb(msgpack.packb(list(range(1000))))"
    assert ends(setup, call, 60 * MEGABYTE, usual) == "MemoryError"


@objects_are_limited
@pytest.mark.parametrize(
    "call",
    [
        "msgpack.packb(large)",
        "msgpack.packb(large + odd, default=str)",
        "msgpack.packb([memoryview(large[0])] * 200)",
        "msgpack.packb(small)",
        "msgpack.Packer(default=str).pack(large + odd)",
        "msgpack.Packer(autoreset=False, default=str).pack(large + odd)",
    ],
)
def test_packing(call: str) -> None:
    # Much is left to be packed when memory runs out.
    setup = """
        large, small = [bytes(1 << 20)] * 200, ["a" * 20] * 5_000_000
        odd = [object(), "text", 1.5, {"key": b"bytes"}] * 1000
        """
    usual = "msgpack.packb(large[:3] + odd, default=str)"
    assert ends(setup, call, 60 * MEGABYTE, usual) == "MemoryError"


@pytest.mark.parametrize(
    "call",
    [
        "enc.encode_ordinary(text)",
        "enc.encode(text, release='never')",
        "enc.encode_packed(text)",
        "enc.encode_batch([text, text], num_threads=2)",
        "enc.decode_bytes(ids)",
        "enc.decode(ids)",
        "enc.decode_batch([ids, ids])",
        "enc.decode_bytes_batch([ids, ids])",
        "enc.encode_ordinary(spaced)",
        "enc._encode_single_piece(piece)",
    ],
)
def test_tokens(call: str) -> None:
    setup = """
        text = "\\x01\\x02\\x03" * 8_000_000
        spaced = " a" * 20_000_000
        piece = "ab" * 10_000_000
        ids = array.array("I", enc.encode_ordinary("-" * 64)) * 2_000_000
        enc.encode_ordinary("\\x01\\x02 a" * 50_000)
        """
    usual = "enc.decode(enc.encode('some words'))"
    assert ends(setup, call, 30 * MEGABYTE, usual) == "MemoryError"


def model_file() -> bytes:
    """A tokenizer.json of 6 MB."""
    letters = [*map(chr, [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x144)])]
    pairs = [(left, right) for left in letters for right in letters]
    more = [("".join(pairs[n]), "".join(pairs[n * 7 % 65536])) for n in range(65536)]
    tokens = dict.fromkeys(letters + [left + right for left, right in pairs + more])
    vocab = {token: id for id, token in enumerate(tokens)}
    model = {"type": "BPE", "merges": pairs + more, "vocab": vocab}
    level = {"type": "ByteLevel", "add_prefix_space": False}
    return json.dumps({"pre_tokenizer": level, "decoder": level, "model": model}).encode()


def ranks_file() -> bytes:
    """A .tiktoken file of 8 MB."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"token %d" % number for number in range(300_000)]
    return b"".join(b"%s %d\n" % (base64.b64encode(token), id) for id, token in enumerate(tokens))


@pytest.mark.parametrize(
    ("make", "call"), [(model_file, "Tokenizer(file)"), (ranks_file, "Tokenizer(file, pattern='.')")]
)
def test_loading_tokenizers_of_models(make: Callable[[], bytes], call: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(make())  # in this process, so that the other one has no memory left from that
    setup = f"""
        from offlock.tokenizer import Tokenizer
        with open({str(path)!r}, "rb") as opened:
            file = opened.read()
        """
    assert ends(setup, call, 4 * MEGABYTE, call) == "MemoryError"


@pytest.mark.parametrize(
    "call",
    [
        "model.encode_with_offsets(text)",
        "model.encode_batch([text, text], num_threads=2)",
        "model.encode_batch_to_numpy([text, ''], pad_to_multiple_of=1 << 20)",
        "model.encode_batch_to_numpy(['a', 'b'], pad_to=1 << 40)",
        "model.decode_batch([ids, ids])",
    ],
)
def test_tokenizers_of_models(call: str) -> None:
    setup = """
        import base64, numpy
        from offlock.tokenizer import Tokenizer

        tokens = [bytes([byte]) for byte in range(256)]
        ranks = b"".join(b"%s %d\\n" % (base64.b64encode(token), id) for id, token in enumerate(tokens))
        model = Tokenizer(ranks, pattern="(?s:.)")
        text = "\\x01\\x02\\x03" * 2_000_000
        ids = array.array("I", model.encode("-")) * 40_000_000
        """
    usual = "model.decode(model.encode('some words'))"
    assert ends(setup, call, 20 * MEGABYTE, usual) == "MemoryError"


@objects_are_limited
@pytest.mark.parametrize("kind", ["str", "block", "view"])
@pytest.mark.parametrize(
    "call",
    [
        "strings.lines(lines, {kind})",
        "strings.split(lines, ',', {kind})",
        "strings.columns(lines, ',', {kind})",
        "strings.from_offsets(lines, offsets, {kind})",
        "strings.decode_many([lines] * 3, {kind})",
        "strings.lines(lines, into=strings.Arena, {kind})",
    ],
)
def test_strings(call: str, kind: str) -> None:
    setup = """
        lines = b"a,1\\n" * 5_000_000
        strings.enable_blocks()
        offsets = array.array("q", range(6_000_000))
        """
    call = call.format(kind=f"kind='{kind}'")
    usual = "strings.lines(b'one\\ntwo', kind='str')"
    assert ends(setup, call, 40 * MEGABYTE, usual) == "MemoryError"
