"""Helpers for the tests of offlock.strings: every way to make strings, and texts with all kinds of characters."""

from __future__ import annotations

import contextlib

from hypothesis import strategies as st

from offlock import strings

# Blocks are not available without a GIL; their tests then run with the other kinds.
with contextlib.suppress(RuntimeError):
    strings.enable_blocks()

KINDS: list[strings.Kind] = [kind for kind, found in strings.capabilities().items() if found.available]

WIDTHS = [
    "plain ASCII",
    "Latin-1: naïve café",
    "UCS-2: día—noche, жизнь",
    "UCS-4: a 𐩡 letter",
    "",
    "x",
    "é",
    "ж",
    "𐩡",
]
"""Texts of every width in which CPython stores characters, and the shortest texts."""

MANY = [word + number for number in map(str, range(2000)) for word in WIDTHS] + WIDTHS
"""The same, most of them different from each other."""

LINE_ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]

_LOOKALIKES = ["\x0e", "\x1b", "\x1f", "\x84", "\x86", "\xa8", "\xa9", "\u2027", "\u202a", "\u0085\u2028"]

texts = st.lists(st.sampled_from(LINE_ENDS + _LOOKALIKES + WIDTHS) | st.text(max_size=80), max_size=30).map(
    "".join
)
"""Texts with many line ends, and with characters that have bytes in common with line ends."""


def view(text: str) -> str:
    """Returns the same text as a view."""
    encoded = text.encode()
    [made] = strings.from_offsets(encoded, [0, len(encoded)], kind="view")
    assert type(made) is strings.View
    return made
