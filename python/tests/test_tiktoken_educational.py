"""Compares the educational module with the original's."""

from __future__ import annotations

import itertools

import pytest

from offlock import tiktoken
from offlock.tiktoken import _educational as ours

theirs = pytest.importorskip("tiktoken._educational")

PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TEXT = (
    """
The quick brown fox jumps over the lazy dog; the dog's 1234 dreams were naïve, 日本語 aaaaaa.
She sells seashells by the sea shore, and the shells she sells are seashells, surely.
"""
    * 3
)
WORDS = ["", "a", "hello", "aaaaaaa", "seashells", "naïve 日本語", " the", "\r\n\t"]


@pytest.fixture
def quiet(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """Captures the output of the modules, so that it is not part of the test's own output."""
    return capsys


@pytest.mark.parametrize("size", [256, 257, 300, 340])
def test_training_makes_the_originals_tokens(quiet: pytest.CaptureFixture[str], size: int) -> None:
    assert list(ours.bpe_train(TEXT, size, PATTERN, None).items()) == list(
        theirs.bpe_train(TEXT, size, PATTERN, None).items()
    )


@pytest.mark.parametrize("visualise", ["colour", "simple", None])
@pytest.mark.parametrize("word", WORDS)
def test_encoding_is_the_originals(
    quiet: pytest.CaptureFixture[str], word: str, visualise: str | None
) -> None:
    ranks = ours.bpe_train(TEXT, 340, PATTERN, None)
    assert ours.bpe_encode(ranks, word.encode(), visualise) == theirs.bpe_encode(
        ranks, word.encode(), visualise
    )
    printed = quiet.readouterr().out
    assert bool(printed) == (visualise is not None)


def test_a_trained_encoding_gives_the_text_back(quiet: pytest.CaptureFixture[str]) -> None:
    encoding = ours.SimpleBytePairEncoding.train(TEXT, 320, PATTERN)
    tokens = encoding.encode(TEXT, visualise=None)
    assert encoding.decode(tokens) == TEXT
    assert b"".join(encoding.decode_tokens_bytes(tokens)) == TEXT.encode()
    assert tokens == theirs.SimpleBytePairEncoding.train(TEXT, 320, PATTERN).encode(TEXT, visualise=None)
    with pytest.raises(KeyError):
        encoding.decode_bytes([320])


@pytest.mark.parametrize("source", ["gpt2", tiktoken.get_encoding("cl100k_base")])
def test_public_encodings_are_shown(source: str | tiktoken.Encoding) -> None:
    known = tiktoken.get_encoding(source) if isinstance(source, str) else source
    shown = ours.SimpleBytePairEncoding.from_tiktoken(source)
    assert shown.encode(TEXT, visualise=None) == known.encode(TEXT)


def test_merges_are_seen(capsys: pytest.CaptureFixture[str]) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ll": 256, b"he": 257, b"hell": 258}
    ours.bpe_encode(ranks, b"hello", "simple")
    assert capsys.readouterr().out.splitlines() == [
        "[b'h', b'e', b'l', b'l', b'o']",
        "[b'h', b'e', b'll', b'o']",
        "[b'he', b'll', b'o']",
        "[b'hell', b'o']",
        "",
    ]
    ours.visualise_tokens([b"ab", b"c", "\N{SNOWMAN}".encode()[:2]])
    printed = capsys.readouterr().out
    colours = [part.partition("m")[0] for part in printed.split("\x1b[")[1:-1]]
    assert len(colours) == 3
    assert all(left != right for left, right in itertools.pairwise(colours))


def test_training_says_when_it_cannot() -> None:
    with pytest.raises(ValueError, match="at least 256"):
        ours.bpe_train("text", 255, PATTERN)
    with pytest.raises(ValueError, match="the text gives 259 tokens, not 300"):
        ours.bpe_train("abcd", 300, PATTERN, None)


def test_the_simple_encoding_trains_on_its_own_source(quiet: pytest.CaptureFixture[str]) -> None:
    encoding = ours.train_simple_encoding()
    assert len(encoding.mergeable_ranks) == 600
    assert encoding.decode(encoding.encode("hello world")) == "hello world"
