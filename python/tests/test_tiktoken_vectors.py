"""Runs the shared vectors of vectors/tokens; vectors/README.md describes their fields."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import ours

import offlock.tiktoken
from offlock.tiktoken import model

FOLDER = Path(__file__).parents[2] / "vectors" / "tokens"
EXCEPTIONS = {"ValueError": ValueError, "KeyError": KeyError, "UnicodeDecodeError": UnicodeDecodeError}

Case = dict[str, Any]


def cases(file: str, least: int) -> Iterator[Case]:
    """Returns the cases of a file, which must have at least this many."""
    lines = (FOLDER / file).read_text().splitlines()
    assert len(lines) >= least
    return map(json.loads, lines)


def crc(numbers: Iterable[int]) -> int:
    return zlib.crc32(np.fromiter(numbers, dtype="<u4"))


def chosen(choice: list[str] | str) -> Any:
    return choice if choice == "all" else set(choice)


def raises(error: Case) -> Any:
    return pytest.raises(EXCEPTIONS[error["class"]])


def test_encode() -> None:
    for case in cases("encode.jsonl", 1_500):
        encoding = ours(case["encoding"])
        assert encoding.encode_ordinary(case["text"]) == case["tokens"], case
        assert encoding.count(case["text"], disallowed_special=()) == len(case["tokens"]), case
        packed = encoding.encode_to_numpy(case["text"], disallowed_special=())
        assert packed.tolist() == case["tokens"], case


def test_runs() -> None:
    for case in cases("runs.jsonl", 100):
        tokens = ours(case["encoding"]).encode_ordinary(
            "".join(unit * count for unit, count in case["repeat"])
        )
        if "runs" in case:
            assert tokens == [token for token, count in case["runs"] for _ in range(count)], case
        else:
            assert (len(tokens), crc(tokens)) == (case["count"], case["crc"]), case


def test_specials() -> None:
    for case in cases("specials.jsonl", 400):
        encoding, special = ours(case["encoding"]), chosen(case["allowed"])
        arguments: Any = {"allowed_special": special, "disallowed_special": chosen(case["disallowed"])}
        if "error" in case:
            with raises(case["error"]) as raised:
                encoding.encode(case["text"], **arguments)
            assert any(name in str(raised.value) for name in case["error"]["names"]), case
        else:
            assert encoding.encode(case["text"], **arguments) == case["tokens"], case
            assert encoding.count(case["text"], **arguments) == len(case["tokens"]), case


def test_decode() -> None:
    for case in cases("decode.jsonl", 100):
        encoding, ids = ours(case["encoding"]), case["ids"]
        if "error" in case:
            with raises(case["error"]) as raised:
                encoding.decode(ids)
            assert all(name in str(raised.value) for name in case["error"]["names"]), case
            continue
        assert encoding.decode_bytes(ids).hex() == case["bytes"], case
        assert encoding.decode(ids) == case["text"], case
        assert [part.hex() for part in encoding.decode_tokens_bytes(ids)] == case["parts"], case
        if case["offsets"] is None:
            with pytest.raises(UnicodeDecodeError):
                encoding.decode_with_offsets(ids)
        else:
            assert encoding.decode_with_offsets(ids) == (case["text"], case["offsets"]), case


def test_single_tokens() -> None:
    for case in cases("single_tokens.jsonl", 50):
        encoding, piece = ours(case["encoding"]), bytes.fromhex(case["bytes"])
        if "error" in case:
            with raises(case["error"]) as raised:
                encoding.encode_single_token(piece)
            assert raised.value.args == (piece,)
        else:
            assert encoding.encode_single_token(piece) == case["token"], case
            assert encoding.decode_single_token_bytes(case["token"]) == piece, case


def test_pieces() -> None:
    for case in cases("pieces.jsonl", 20):
        assert ours(case["encoding"])._encode_single_piece(bytes.fromhex(case["bytes"])) == case["tokens"], (
            case
        )


def test_bytes() -> None:
    for case in cases("bytes.jsonl", 20):
        assert ours(case["encoding"])._encode_bytes(bytes.fromhex(case["bytes"])) == case["tokens"], case


def test_unstable() -> None:
    for case in cases("unstable.jsonl", 10):
        stable, ways = ours(case["encoding"]).encode_with_unstable(case["text"], allowed_special="all")
        assert stable == case["stable"], case
        if "completions" in case:
            assert ways == case["completions"], case
        else:
            separated = itertools.chain.from_iterable([*way, 0xFFFFFFFF] for way in ways)
            assert (len(ways), crc(separated)) == (case["count"], case["crc"]), case


def test_custom_encodings() -> None:
    for case in cases("custom.jsonl", 50):
        custom = case["custom"]
        more = {bytes.fromhex(token): rank for token, rank in custom["ranks"].items()}
        encoding = offlock.tiktoken.Encoding(
            "custom",
            pat_str=custom["pattern"],
            mergeable_ranks={bytes([byte]): byte for byte in range(256)} | more,
            special_tokens=dict(custom["specials"]),
        )
        tokens = encoding.encode(case["text"], allowed_special=chosen(case["allowed"]), disallowed_special=())
        assert tokens == case["tokens"], case


def test_encodings() -> None:
    names = []
    for case in cases("encodings.jsonl", 7):
        encoding = ours(case["name"])
        names.append(encoding.name)
        assert encoding._pat_str == case["pattern"]
        assert encoding.n_vocab == case["n_vocab"] == encoding.max_token_value + 1
        assert len(encoding._mergeable_ranks) == case["n_ranks"]
        assert len(encoding._special_tokens) == case["specials"]
        assert vocabulary_crc(encoding._mergeable_ranks) == case["ranks_crc"]
        specials = {text.encode(): token for text, token in encoding._special_tokens.items()}
        assert vocabulary_crc(specials) == case["specials_crc"]
    assert sorted(names) == sorted(offlock.tiktoken.list_encoding_names())


def vocabulary_crc(ranks: dict[bytes, int]) -> int:
    return crc(itertools.chain.from_iterable([*token, rank] for token, rank in sorted(ranks.items())))


def test_models() -> None:
    tables = json.loads((FOLDER / "models.json").read_text())
    assert tables["models"] == model.MODEL_TO_ENCODING
    assert [tuple(pair) for pair in tables["prefixes"]] == list(model.MODEL_PREFIX_TO_ENCODING.items())
    for name, encoding in tables["models"].items():
        assert offlock.tiktoken.encoding_name_for_model(name) == encoding
        assert offlock.tiktoken.encoding_for_model(name) is ours(encoding)
    for name in tables["unknown"]:
        with pytest.raises(KeyError, match=f"Could not automatically map {name} to a tokeniser"):
            offlock.tiktoken.encoding_for_model(name)
