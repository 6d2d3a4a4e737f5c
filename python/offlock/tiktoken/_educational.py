"""Byte pair encoding in plain Python, for teaching. It has the names of tiktoken's educational module.

Encoding: a regular expression splits the text into words. Each word starts as a list of single bytes. The pair of
adjacent parts whose concatenation is the token of the lowest rank is merged, again and again, until no pair is a
token. For example, "hello" with the tokens "l" + "l" (256), "h" + "e" (257) and "he" + "ll" (258) becomes
`h e l l o`, `h e ll o`, `he ll o`, `hell o`.

Training: the pair of adjacent parts that is most frequent in all words becomes the next token, until the vocabulary
has the wanted size.

Each merge looks at all pairs of a word, so a word of n bytes takes O(n²) steps. Training looks at the whole text for
every token. The encodings of `offlock.tiktoken` give the same tokens about a thousand times as fast.

Splitting text needs the package `regex`.
"""

from __future__ import annotations

import importlib
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .core import Encoding
from .registry import get_encoding

# The background colours of successive tokens, of the 256 colours of a terminal.
_COLOURS = (167, 179, 185, 77, 80, 68, 134)
_SHOWN_WORDS = 50


class SimpleBytePairEncoding:
    """An encoding in plain Python, which prints its merges unless `visualise` is None."""

    def __init__(self, *, pat_str: str, mergeable_ranks: dict[bytes, int]) -> None:
        self.pat_str = pat_str
        self.mergeable_ranks = mergeable_ranks
        self._pat = _regex().compile(pat_str)
        self._decoder = {token: token_bytes for token_bytes, token in mergeable_ranks.items()}

    def encode(self, text: str, visualise: str | None = "colour") -> list[int]:
        """Returns the tokens of `text`. `visualise` is "colour", "simple" or None, as in `bpe_encode`."""
        tokens: list[int] = []
        for word in self._pat.findall(text):
            tokens += bpe_encode(self.mergeable_ranks, word.encode(), visualise)
        return tokens

    def decode_bytes(self, tokens: list[int]) -> bytes:
        """Returns the bytes of `tokens`. Raises `KeyError` for an id that is not a token."""
        return b"".join(self.decode_tokens_bytes(tokens))

    def decode(self, tokens: list[int]) -> str:
        """Returns the text of `tokens`, with U+FFFD where their bytes are not UTF-8."""
        return self.decode_bytes(tokens).decode("utf-8", errors="replace")

    def decode_tokens_bytes(self, tokens: list[int]) -> list[bytes]:
        """Returns the bytes of each token."""
        return [self._decoder[token] for token in tokens]

    @staticmethod
    def train(training_data: str, vocab_size: int, pat_str: str) -> SimpleBytePairEncoding:
        """Trains an encoding on a text, as `bpe_train` does."""
        ranks = bpe_train(data=training_data, vocab_size=vocab_size, pat_str=pat_str)
        return SimpleBytePairEncoding(pat_str=pat_str, mergeable_ranks=ranks)

    @staticmethod
    def from_tiktoken(encoding: str | Encoding) -> SimpleBytePairEncoding:
        """Returns an encoding with the vocabulary of `encoding`, an encoding or the name of a public one."""
        known = get_encoding(encoding) if isinstance(encoding, str) else encoding
        return SimpleBytePairEncoding(pat_str=known._pat_str, mergeable_ranks=known._mergeable_ranks)


def bpe_encode(
    mergeable_ranks: dict[bytes, int], input: bytes, visualise: str | None = "colour"
) -> list[int]:
    """Returns the tokens of one word.

    Prints the parts before every merge unless `visualise` is None: "colour" prints for a terminal, "simple" prints
    a list. Raises `KeyError` when a byte is not a token.
    """
    parts = [bytes([byte]) for byte in input]
    while True:
        if visualise:
            _show(parts, visualise)
        place = _best_merge(mergeable_ranks, parts)
        if place is None:
            break
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    if visualise:
        print()
    return [mergeable_ranks[part] for part in parts]


def _best_merge(ranks: dict[bytes, int], parts: list[bytes]) -> int | None:
    """Returns the index of the first pair with the lowest rank; None when no pair is a token."""
    unions = (left + right for left, right in _neighbours(parts))
    merges = [(ranks[union], place) for place, union in enumerate(unions) if union in ranks]
    return min(merges)[1] if merges else None


def bpe_train(data: str, vocab_size: int, pat_str: str, visualise: str | None = "colour") -> dict[bytes, int]:
    """Trains a vocabulary on a text and returns its tokens with their ranks: the 256 bytes, then one for each merge.

    Prints every merge unless `visualise` is None. Raises `ValueError` when `vocab_size` is less than 256, or when the
    text has no more pairs to merge.
    """
    if vocab_size < 256:
        raise ValueError("vocab_size must be at least 256, so that we can encode all bytes")
    ranks = {bytes([byte]): byte for byte in range(256)}
    words = [[bytes([byte]) for byte in word.encode()] for word in _regex().findall(pat_str, data)]
    while len(ranks) < vocab_size:
        pairs = Counter(pair for word in words for pair in _neighbours(word))
        if not pairs:
            raise ValueError(
                f"the text gives {len(ranks)} tokens, not {vocab_size}: every word is one already"
            )
        # Among the most frequent, the one that comes first in the text.
        pair = max(pairs, key=lambda pair: pairs[pair])
        ranks[pair[0] + pair[1]] = len(ranks)
        words = [_merged(word, pair) for word in words]
        if visualise:
            _show_merge(pair, len(ranks) - 1, pairs[pair], words, visualise)
    return ranks


def _neighbours(parts: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return itertools.pairwise(parts)


def _merged(word: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """Returns the word with every occurrence of the pair merged, from left to right."""
    parts: list[bytes] = []
    place = 0
    while place < len(word):
        width = 2 if tuple(word[place : place + 2]) == pair else 1
        parts.append(b"".join(word[place : place + width]))
        place += width
    return parts


def visualise_tokens(token_values: list[bytes]) -> None:
    """Prints tokens side by side, each on its own background colour."""
    shown = ""
    colour = -1
    for token in token_values:
        text = token.decode("utf-8", errors="replace")
        # The position in the text selects the colour, so that a merge does not change the colours of later tokens.
        # Two adjacent tokens never have the same colour.
        step = _COLOURS[len(shown) % len(_COLOURS)]
        colour = step if step != colour else _COLOURS[(len(shown) + 1) % len(_COLOURS)]
        shown += text
        print(f"\x1b[48;5;{colour}m{text}", end="")
    print("\x1b[0m")


def _show(parts: list[bytes], visualise: str) -> None:
    if visualise == "simple":
        print(parts)
    else:
        visualise_tokens(parts)


def _show_merge(
    pair: tuple[bytes, bytes], rank: int, count: int, words: list[list[bytes]], visualise: str
) -> None:
    print(f"token {rank} is {pair[0]!r} + {pair[1]!r}, which stand side by side {count} times")
    print("the first words are now:")
    _show([part for word in words[:_SHOWN_WORDS] for part in word], visualise)
    print()


def train_simple_encoding() -> SimpleBytePairEncoding:
    """Trains an encoding of 600 tokens on this file, prints the merges, and returns it."""
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    with open(__file__, encoding="utf-8") as file:
        encoding = SimpleBytePairEncoding.train(file.read(), vocab_size=600, pat_str=pattern)
    print("the merges of 'hello world':")
    encoding.encode("hello world")
    return encoding


def _regex() -> Any:
    try:
        return importlib.import_module("regex")
    except ImportError as error:
        raise ImportError(
            "regex is not installed. Please install it by running `pip install regex`."
        ) from error
