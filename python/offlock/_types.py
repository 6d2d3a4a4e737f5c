"""Types that signatures name. Only type checkers load this module."""

import os
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from typing_extensions import TypeVar

from . import strings
from ._offlock import Cancel

Release: TypeAlias = Literal["auto", "always", "never"]

# What is called with the bytes done and the bytes in all; of a file these may not be known.
Progress: TypeAlias = Callable[[int, int], object]
FileProgress: TypeAlias = Callable[[int, int | None], object]

StrOrBytesPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

# How a gzip file is opened: with one of these, what `open` returns is known.
BinaryMode: TypeAlias = Literal["r", "rb", "a", "ab", "w", "wb", "x", "xb"]
TextMode: TypeAlias = Literal["rt", "at", "wt", "xt"]

StringOptions: TypeAlias = tuple[strings.Kind, type[object], Release, Cancel | None]

Strings = TypeVar("Strings", bound=Sequence[str])
Into = TypeVar("Into", list[str], tuple[str, ...], strings.Arena, default=list[str])
IntoOptional = TypeVar(
    "IntoOptional", list[str | None], tuple[str | None, ...], strings.Arena, default=list[str | None]
)
