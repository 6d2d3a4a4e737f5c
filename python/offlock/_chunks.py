"""Parts of texts, as ``Encoding.chunks`` and ``Tokenizer.chunks`` cut them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Chunk(NamedTuple):
    """A part of a text: ``text[start:end]``.

    Attributes:
        text: the part itself.
        start: the index of its first character.
        end: the index behind its last character.
        tokens: the number of its tokens.
    """

    text: str
    start: int
    end: int
    tokens: int


def placed(text: str, chunks: list[Chunk]) -> list[Chunk]:
    """Returns chunks with the places in ``text``, whose surrogates of UTF-16 were counted as the characters they make."""
    if not chunks or chunks[-1].end == len(text):
        return chunks
    places = [*_characters(text), len(text)]
    return [
        Chunk(text[places[start] : places[end]], places[start], places[end], tokens)
        for _, start, end, tokens in chunks
    ]


def _characters(text: str) -> Iterator[int]:
    """Yields where characters begin in a text, in which two surrogates of UTF-16 may be one character."""
    is_high = False
    for index, character in enumerate(text):
        if not (is_high and "\udc00" <= character <= "\udfff"):
            yield index
            is_high = "\ud800" <= character <= "\udbff"
        else:
            is_high = False
