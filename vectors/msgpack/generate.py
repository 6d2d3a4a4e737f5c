"""Writes the vectors beside it, with the package msgpack: python generate.py"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import msgpack

HERE = Path(__file__).parent


def tagged(value: Any) -> Any:
    """A value as JSON can hold it."""
    match value:
        case None | bool():
            return value
        case int():
            return {"int": str(value)}
        case float():
            return {"float": struct.pack(">d", value).hex()}
        case str():
            return {"str": value}
        case bytes():
            return {"bin": value.hex()}
        case list():
            return {"array": [tagged(item) for item in value]}
        case Pairs():
            return {"map": [[tagged(key), tagged(item)] for key, item in value.pairs]}
        case msgpack.Timestamp():
            return {"timestamp": [value.seconds, value.nanoseconds]}
        case Ext():
            return {"ext": [value.kind, value.payload.hex()]}
    raise TypeError(type(value))


class Pairs:
    """A map, with its duplicate keys."""

    def __init__(self, pairs: list[tuple[Any, Any]]) -> None:
        self.pairs = pairs


class Ext:
    """An extension of any type, also of those below 0 that `msgpack.ExtType` refuses."""

    def __init__(self, kind: int, payload: bytes) -> None:
        self.kind = kind
        self.payload = payload


def decoded(message: bytes) -> Any:
    options = {"strict_map_key": False, "object_pairs_hook": Pairs, "ext_hook": Ext}
    return msgpack.unpackb(message, **options)


def shortest() -> list[bytes]:
    """Messages as packing writes them: each type on both sides of every boundary."""
    values: list[Any] = [None, True, False, 0.0, -0.0, 1.5, float("inf"), float("-inf"), 5e-324]
    edges = [0, 5, 7, 8, 15, 16, 31, 32, 63]
    integers = {
        sign * 2**edge + near for sign in (1, -1) for edge in edges for near in (-33, -32, -2, -1, 0, 1)
    }
    values += sorted(n for n in integers | {2**64 - 1, 2**64 - 2} if -(2**63) <= n < 2**64)
    values += ["x" * length for length in (0, 1, 31, 32, 255, 256, 65535, 65536)]
    values += ["é", "日本", "😀", "\0", "a\u0301"]
    values += [b"x" * length for length in (0, 1, 255, 256, 65535, 65536)]
    values += [[0] * length for length in (0, 1, 15, 16, 65535, 65536)]
    values += [{str(key): key for key in range(length)} for length in (0, 1, 15, 16, 300)]
    values += [
        msgpack.ExtType(5, b"y" * n) for n in (0, 1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 255, 256, 65535, 65536)
    ]
    values += [msgpack.ExtType(0, b"a"), msgpack.ExtType(127, b"ab")]
    seconds = [0, 1, 2**32 - 1, 2**32, 2**34 - 1, 2**34, -1, -(2**63), 2**63 - 1]
    values += [msgpack.Timestamp(second, nano) for second in seconds for nano in (0, 1, 999_999_999)]
    values += [{"compact": True, "schema": 0}, [[[[]]]], {"a": {"b": [1, {"c": None}]}}]
    return [msgpack.packb(value) for value in values]


def longer() -> list[bytes]:
    """Messages that mean the same as shorter ones, and what packing never writes."""
    return [
        bytes.fromhex(text)
        for text in [
            "cc00",
            "cd0001",
            "ce00000001",
            "cf0000000000000001",
            "d001",
            "d10001",
            "d200000001",
            "d30000000000000001",
            "d0ff",
            "d1ffff",
            "d2ffffffff",
            "d3ffffffffffffffff",
            "ca3fc00000",
            "ca80000000",
            "ca7f800000",
            "caff800000",
            "d90161",
            "da000161",
            "db0000000161",
            "c5000161",
            "c60000000161",
            "dc000101",
            "dd0000000101",
            "de000101c0",
            "df0000000101c0",
            "c7010561",
            "c800010561",
            "c9000000010561",
            "d48061",
            "d5fe6162",
            "c703fd616263",
            "82a16101a16102",
            "83a16101a16202a16103",
            "8290c0910102",
            "81c0c3",
            "8101a162",
            "81c3c2",
            "81c40161a162",
        ]
    ]


def broken() -> list[dict[str, str]]:
    """Messages that are none."""
    samples = [b"\x93\x01\x02\x03", b"\x82\xa1a\x93\x01\xc0\x90\xa1b\xcb" + bytes(8), msgpack.packb("x" * 40)]
    samples += [msgpack.packb(msgpack.ExtType(5, b"y" * n)) for n in (1, 3, 16, 300)]
    samples += [msgpack.packb(value) for value in (2**40, -(2**40), 1.5, b"x" * 300, {"a": [{"b": "c"}]})]
    cases = [
        {"bytes": sample[:end].hex(), "error": "truncated"}
        for sample in samples
        for end in range(min(len(sample), 40))
    ]
    huge = ["ddffffffff", "dfffffffff01", "dbffffffff61", "c6ffffffff61", "c9ffffffff0561", "dd7fffffffc0"]
    cases += [{"bytes": text, "error": "truncated"} for text in huge]
    cases += [{"bytes": text, "error": "reserved"} for text in ("c1", "91c1", "81a161c1", "92c0c1")]
    cases += [{"bytes": text, "error": "extra"} for text in ("0102", "c0c1", "90ff", "a16161")]
    cases += [{"bytes": (b"\x91" * 3000 + b"\xc0").hex(), "error": "deep"}]
    return cases


def main() -> None:
    cases = [
        {"bytes": message.hex(), "value": tagged(decoded(message)), "packs": True} for message in shortest()
    ]
    cases += [
        {"bytes": message.hex(), "value": tagged(decoded(message)), "packs": False} for message in longer()
    ]
    nan = [
        {"bytes": text, "value": {"float": "nan"}, "packs": False}
        for text in ("cb7ff8000000000000", "ca7fc00000")
    ]
    text = [
        {"bytes": text, "value": {"raw": text[2:]}, "packs": False} for text in ("a1ff", "a2c328", "a3eda080")
    ]
    write("values.jsonl", cases + nan + text)
    write("broken.jsonl", broken())


def write(name: str, cases: list[Any]) -> None:
    lines = (
        json.dumps(case, ensure_ascii=True, separators=(",", ":"))
        for case in cases
        if len(str(case)) < 20_000
    )
    (HERE / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
