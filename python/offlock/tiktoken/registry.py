"""The encodings with a name: the public ones, and those of ``tiktoken_ext`` plugins."""

from __future__ import annotations

from offlock import _offlock

from . import plugins
from .core import ENCODINGS as ENCODINGS
from .core import Encoding


def get_encoding(encoding_name: str) -> Encoding:
    """Returns the encoding of that name, always the same object.

    Raises ``ValueError`` when there is none, or when ``encoding_name`` is not a string.
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"Expected a string in get_encoding, got {type(encoding_name)}")
    return Encoding._named(encoding_name)


def list_encoding_names() -> list[str]:
    """Returns the names that :func:`get_encoding` accepts."""
    return [*_offlock.ENCODING_NAMES, *plugins.constructors()]
