"""Types for signatures. Only type checkers load this module."""

import os
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from typing_extensions import TypeVar

from ._offlock import Cancel
from ._offlock import strings as _strings

Release: TypeAlias = Literal["auto", "always", "never"]

# Callables that take the number of bytes done and the total number of bytes. A file's total may be unknown.
Progress: TypeAlias = Callable[[int, int], object]
FileProgress: TypeAlias = Callable[[int, int | None], object]

# Where `chunks` cuts a text.
Boundary: TypeAlias = Literal["token", "word", "sentence", "line", "paragraph"]

# Formats of files of tokens, and where the token that separates documents goes.
TokenFiles: TypeAlias = Literal["megatron", "datatrove", "llmc", "nanogpt", "dolma", "mds", "parquet"]
Eos: TypeAlias = Literal["append", "prepend", "none"]

StrOrBytesPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

# Modes for which the return type of `gzip.open` is known.
BinaryMode: TypeAlias = Literal["r", "rb", "a", "ab", "w", "wb", "x", "xb"]
TextMode: TypeAlias = Literal["rt", "at", "wt", "xt"]

StringOptions: TypeAlias = tuple[str, type[object], Release, Cancel | None]

Strings = TypeVar("Strings", bound=Sequence[str])
Into = TypeVar("Into", list[str], tuple[str, ...], _strings.Arena, default=list[str])
IntoOptional = TypeVar(
    "IntoOptional", list[str | None], tuple[str | None, ...], _strings.Arena, default=list[str | None]
)
