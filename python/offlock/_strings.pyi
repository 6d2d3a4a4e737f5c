"""The types of `offlock._offlock.strings`."""

from collections.abc import Iterable, Sequence
from typing import final

from typing_extensions import Buffer

from ._offlock import Cancel
from ._types import Release, StringOptions
from .strings import Kind

@final
class Arena:
    """Strings that have been found, checked and stored, but whose Python objects have not been made.

    The operations of offlock.strings return it with ``into=Arena``. `list` and `tuple` make the objects, at any time
    and any number of times, without a new search. Immutable; can be shared between threads.
    """

    def __len__(self) -> int:
        """The number of strings, including nulls."""

    @property
    def nbytes(self) -> int:
        """The number of bytes that the stored strings take."""

    def tuple(
        self, kind: Kind = "view", *, release: Release = "auto", cancel: Cancel | None = None
    ) -> tuple[str, ...]:
        """Returns the strings in a new tuple."""

    def list(
        self, kind: Kind = "view", *, release: Release = "auto", cancel: Cancel | None = None
    ) -> list[str]:
        """Returns the strings in a new list."""

def view_class() -> type[str]: ...
def lines(buffer: Buffer, newline: str | None, keepends: bool, options: StringOptions) -> object: ...
def split(buffer: Buffer, separator: str | Buffer, options: StringOptions) -> object: ...
def columns(buffer: Buffer, separator: str | Buffer, options: StringOptions) -> object: ...
def from_offsets(buffer: Buffer, offsets: Buffer | Sequence[int], options: StringOptions) -> object: ...
def from_arrow(array: object, options: StringOptions) -> object: ...
def decode_many(items: Iterable[Buffer], options: StringOptions) -> object: ...
def unavailable() -> tuple[tuple[Kind, str | None], ...]: ...
def enable_blocks() -> None: ...
def compact(strings: Iterable[str], into: type[object]) -> object: ...
def retained(strings: Iterable[str]) -> int: ...
def blocks() -> tuple[int, int, int]: ...
