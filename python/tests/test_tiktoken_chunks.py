"""`Encoding.chunks`: the parts of a text, and what they say about themselves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offlock import tiktoken

CL100K = tiktoken.get_encoding("cl100k_base")
CUSTOM = tiktoken.Encoding(
    "custom",
    pat_str=r"\w+|\s+",
    mergeable_ranks={bytes([byte]): byte for byte in range(256)},
    special_tokens={},
)
BOUNDARIES = ["token", "word", "sentence", "line", "paragraph"]
PROSE = "One two. Three four!\n\nFünf, sechs 🙂 «sieben». 八九。十\n" * 30


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("text", ["", "a", PROSE, PROSE.replace("\n", " "), "x" * 5_000, "日本語" * 500])
@pytest.mark.parametrize("encoding", [CL100K, CUSTOM], ids=["cl100k", "custom"])
def test_chunks_joined_are_the_text(encoding: tiktoken.Encoding, text: str, boundary: str) -> None:
    chunks = encoding.chunks(text, 12, boundary=boundary)  # type: ignore[arg-type]
    assert "".join(chunk.text for chunk in chunks) == text
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.tokens == len(encoding.encode_ordinary(chunk.text)) <= 12


@given(
    st.text(st.sampled_from("ab .,!?'\n\t1äß漢。ก🙂\u200d\u0301")),
    st.integers(4, 30),
    st.sampled_from(BOUNDARIES),
    st.data(),
)
@settings(deadline=None)
def test_overlapping_chunks(text: str, most: int, boundary: str, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, most - 1))
    chunks = CL100K.chunks(text, most, overlap=overlap, boundary=boundary)  # type: ignore[arg-type]
    start = end = 0
    for index, chunk in enumerate(chunks):
        assert index == 0 or chunk.start > start
        assert chunk.start <= end < chunk.end
        assert CL100K.count(text[chunk.start : end], disallowed_special=()) <= overlap
        assert chunk.tokens == CL100K.count(chunk.text, disallowed_special=()) <= most
        start, end = chunk.start, chunk.end
    assert end == len(text)


def test_sentences() -> None:
    chunks = CL100K.chunks("One two. Three four. Five six.", 7, overlap=3, boundary="sentence")
    assert chunks == [
        tiktoken.Chunk("One two. Three four.", 0, 20, 6),
        tiktoken.Chunk(" Three four. Five six.", 8, 30, 6),
    ]


def test_special_tokens_are_ordinary_text() -> None:
    [chunk] = CL100K.chunks("<|endoftext|>", 20)
    assert chunk.tokens == len(CL100K.encode_ordinary("<|endoftext|>")) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be at least 1, it is 0"),
        ({"max_tokens": -1}, "max_tokens must be at least 1, it is -1"),
        ({"max_tokens": 5, "overlap": 5}, "overlap must be from 0 to less than max_tokens=5, it is 5"),
        ({"max_tokens": 5, "overlap": -1}, "overlap must be from 0 to less than max_tokens=5, it is -1"),
        ({"max_tokens": 5, "boundary": "page"}, 'boundary must be .*, it is "page"'),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CL100K.chunks("text", **arguments)  # type: ignore[arg-type]


def test_a_character_with_too_many_tokens_is_named() -> None:
    with pytest.raises(ValueError, match=r"a chunk needs at least 3 tokens for one character \(at byte 2\)"):
        CL100K.chunks("ab🫠", 2)


def test_wrong_types() -> None:
    with pytest.raises(TypeError):
        CL100K.chunks(b"text", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        CL100K.chunks("text", "5")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["a\ud800b" * 20, "a\ud83d\ude00b " * 20, "\ud83d\ud83d\ude00\ude00" * 20, "🙂\ud83d\ude42"]
)
def test_surrogates(text: str) -> None:
    chunks = CL100K.chunks(text, 7)
    assert "".join(chunk.text for chunk in chunks) == text
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.tokens == len(CL100K.encode_ordinary(chunk.text)) <= 7
