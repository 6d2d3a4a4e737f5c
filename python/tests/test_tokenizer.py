"""The tokenizer of a model, on a small file that is made here. Real ones are in `test_tokenizer_models.py`."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import pickle
import threading
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import offlock
from offlock.tokenizer import Tokenizer

PRINTABLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
LETTERS = [chr(byte) if byte in PRINTABLE else chr(0x100 + OTHERS.index(byte)) for byte in range(256)]


def token(text: str) -> str:
    return "".join(LETTERS[byte] for byte in text.encode())


def added(text: str, number: int, special: bool = True) -> dict[str, Any]:
    flags = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
    return {"id": number, "content": text, "special": special, **flags}


FILE: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [added("<s>", 258), added("<tool>", 259, special=False)],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [258], "tokens": ["<s>"]}},
    },
    "decoder": {"type": "ByteLevel"},
    "model": {
        "type": "BPE",
        "vocab": {letter: byte for byte, letter in enumerate(LETTERS)} | {token("ab"): 256, token(" c"): 257},
        "merges": [["a", "b"], [token(" "), "c"]],
    },
}
CONTENT = json.dumps(FILE).encode()
TOKENIZER = Tokenizer(CONTENT)
TEXT = "ab c<s>é<tool>"
BOUNDARIES: list[Literal["token", "word", "sentence", "line", "paragraph"]] = [
    "token", "word", "sentence", "line", "paragraph",
]  # fmt: skip
IDS = [258, 256, 257, 258, 0xC3, 0xA9, 259]


def test_a_text_and_back() -> None:
    assert TOKENIZER.encode(TEXT) == IDS
    assert TOKENIZER.encode("ab c<s>é<tool>".replace("é", "e\u0301")) == IDS
    assert TOKENIZER.encode(TEXT, add_special_tokens=False) == IDS[1:]
    assert TOKENIZER.encode("<s><tool>", split_special_tokens=True) == [258, *b"<s>", 259]
    assert bytes(TOKENIZER.encode_packed("a")) == np.array([258, 97], np.uint32).tobytes()
    assert TOKENIZER.encode_to_numpy("a").tolist() == [258, 97]
    assert TOKENIZER.count(TEXT) == 7
    assert TOKENIZER.decode(IDS) == "ab cé<tool>"
    assert TOKENIZER.decode(IDS, skip_special_tokens=False) == "<s>ab c<s>é<tool>"
    assert TOKENIZER.decode([0xC3, 97, 9999]) == "\ufffda"
    with pytest.raises(UnicodeDecodeError):
        TOKENIZER.decode([0xC3], "strict")
    assert TOKENIZER.decode_bytes([0xC3, 258]) == b"\xc3"


def test_offsets() -> None:
    ids, places = TOKENIZER.encode_with_offsets("é<s>ab")
    assert (ids, places) == ([258, 0xC3, 0xA9, 258, 256], [(0, 0), (0, 1), (0, 1), (1, 4), (4, 6)])
    assert TOKENIZER.encode_with_offsets("éa", unit="bytes", add_special_tokens=False)[1] == [
        (0, 2),
        (0, 2),
        (2, 3),
    ]
    with pytest.raises(ValueError, match="unit must be"):
        TOKENIZER.encode_with_offsets("a", unit="words")  # type: ignore[arg-type]


def test_prefixes() -> None:
    assert [TOKENIZER.truncate("ab cd", most) for most in range(5)] == ["", "", "ab", "ab c", "ab cd"]
    assert TOKENIZER.truncate("ab cd", 1, add_special_tokens=False) == "ab"
    with pytest.raises(ValueError, match="max_tokens must not be negative"):
        TOKENIZER.truncate("a", -1)


def test_chunks() -> None:
    text = "ab cd 🙂 ab. " * 50
    for boundary, overlap in itertools.product(BOUNDARIES, [0, 3]):
        chunks = TOKENIZER.chunks(text, 9, boundary=boundary, overlap=overlap)
        for chunk in chunks:
            assert text[chunk.start : chunk.end] == chunk.text
            assert chunk.tokens == TOKENIZER.count(chunk.text, add_special_tokens=False) <= 9
        assert overlap or "".join(chunk.text for chunk in chunks) == text
    surrogates = "a\ud83d\ude42b" * 9
    chunks = TOKENIZER.chunks(surrogates, 6)
    assert "".join(chunk.text for chunk in chunks) == surrogates
    assert all(surrogates[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    for arguments, message in [((0,), "max_tokens must be at least 1"), ((1,), "at least 4 tokens")]:
        with pytest.raises(ValueError, match=message):
            TOKENIZER.chunks("🙂", *arguments)


def test_many_texts() -> None:
    texts = [TEXT, "", "ab"] * 50
    assert TOKENIZER.encode_batch(iter(texts)) == [IDS, [258], [258, 256]] * 50
    assert TOKENIZER.count_batch(texts, add_special_tokens=False, num_threads=2) == [6, 0, 1] * 50
    assert TOKENIZER.decode_batch([IDS, [0xC3], []]) == ["ab cé<tool>", "\ufffd", ""]
    assert TOKENIZER.decode_bytes_batch([IDS, [0xC3]], skip_special_tokens=False) == [
        "<s>ab c<s>é<tool>".encode(),
        b"\xc3",
    ]
    with pytest.raises(TypeError, match="text 1 of the batch must be str"):
        TOKENIZER.encode_batch(["a", b"b"])  # type: ignore[list-item]


def test_rows() -> None:
    ids, mask = TOKENIZER.encode_batch_to_numpy(
        ["abab", "a"], max_length=2, pad_to_multiple_of=4, pad_token_id=9
    )
    assert ids.tolist() == [[258, 256, 9, 9], [258, 97, 9, 9]]
    assert mask.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0]]
    assert [ids.dtype.name, mask.dtype.name] == ["int64", "int64"]
    ids, mask = TOKENIZER.encode_batch_to_numpy(
        ["xyz", ""], max_length=3, truncation_side="left", padding_side="left", pad_to=4
    )
    assert ids.tolist() == [[0, 258, 121, 122], [0, 0, 0, 258]]
    assert mask.tolist() == [[0, 1, 1, 1], [0, 0, 0, 1]]
    assert TOKENIZER.encode_batch_to_numpy([])[0].shape == (0, 0)
    ids[0, 0], mask[0, 0] = -100, 0  # as trainers do with labels
    with pytest.raises(ValueError, match="padding_side must be 'left' or 'right'"):
        TOKENIZER.encode_batch_to_numpy(["a"], padding_side="up")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_length must not be negative"):
        TOKENIZER.encode_batch_to_numpy(["a"], max_length=-1)


def test_names_of_tokens() -> None:
    assert TOKENIZER.token_to_id("Ġc") == TOKENIZER.token_to_id(token(" c")) == 257
    assert TOKENIZER.token_to_id("<s>") == 258
    assert TOKENIZER.token_to_id("nothing") is None
    assert [TOKENIZER.id_to_token(number) for number in (257, 259, 260)] == ["Ġc", "<tool>", None]
    assert (TOKENIZER.vocab_size, TOKENIZER.added_tokens) == (260, {"<s>": 258, "<tool>": 259})
    assert repr(TOKENIZER) == "<Tokenizer with 260 tokens>"


def test_with_asyncio() -> None:
    async def ask() -> None:
        for times in (1, 10_000):
            text = TEXT * times
            assert await TOKENIZER.aencode(text) == TOKENIZER.encode(text)
            assert await TOKENIZER.aencode_batch([text, "a"]) == TOKENIZER.encode_batch([text, "a"])
            assert await TOKENIZER.acount(text, add_special_tokens=False) == 6 * times
            assert await TOKENIZER.acount_batch([text]) == [6 * times + 1]
            assert await TOKENIZER.atruncate(text, 3) == "ab c"
            assert await TOKENIZER.achunks(text, 2) == TOKENIZER.chunks(text, 2)
            assert await TOKENIZER.adecode(IDS * times) == TOKENIZER.decode(IDS * times)

    asyncio.run(ask())


def test_a_call_is_cancelled() -> None:
    cancel = offlock.Cancel()
    cancel.cancel()
    with pytest.raises(CancelledError):
        TOKENIZER.count("ab c " * 1_000_000, cancel=cancel, release="always")


def test_files_and_folders(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    with pytest.raises(FileNotFoundError, match="is empty"):
        Tokenizer("")
    with pytest.raises(FileNotFoundError, match=r"neither tokenizer\.json nor tekken\.json"):
        Tokenizer(tmp_path)
    file.write_bytes(CONTENT)
    for source in (file, str(file), tmp_path, bytearray(CONTENT), memoryview(CONTENT)):
        tokenizer = Tokenizer(source)
        assert tokenizer.encode(TEXT) == IDS
        assert pickle.loads(pickle.dumps(tokenizer)).encode(TEXT) == IDS
    ranks = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
    with pytest.raises(FileNotFoundError, match=r"0 \.tiktoken files, not one"):
        Tokenizer(tmp_path, pattern=".")
    (tmp_path / "small.tiktoken").write_bytes(ranks + b"YWI= 256")
    tokenizer = Tokenizer(tmp_path, pattern=r"\p{L}+|\P{L}+", special_tokens={"<end>": 257})
    assert tokenizer.encode("ab<end>") == [256, 257]
    assert pickle.loads(pickle.dumps(tokenizer)).encode("ab<end>") == [256, 257]


def test_what_is_not_here_is_named() -> None:
    with pytest.raises(
        ValueError, match="only byte-level byte pair encoding is supported, not the model Unigram"
    ):
        Tokenizer(json.dumps(FILE | {"model": {"type": "Unigram", "vocab": [["a", 0.5]]}}).encode())
    with pytest.raises(ValueError, match="not a SentencePiece model"):
        Tokenizer(b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02")
    with pytest.raises(ValueError, match="the normalizer Lowercase"):
        Tokenizer(json.dumps(FILE | {"normalizer": {"type": "Lowercase"}}).encode())
    with pytest.raises(ValueError, match="the file is not a tokenizer's"):
        Tokenizer(b"{")
    with pytest.raises(ValueError, match=r"special_tokens are for \.tiktoken files"):
        Tokenizer(CONTENT, special_tokens={"<s>": 1})
    with pytest.raises(ValueError, match="invalid pattern"):
        Tokenizer(b"YQ== 0", pattern="(")


def test_threads_share_a_tokenizer() -> None:
    results: list[list[int]] = []
    text = TEXT * 1000

    def work() -> None:
        results.extend(TOKENIZER.encode(text, release="always") for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = TOKENIZER.encode(text)
    assert results == [expected] * 20
