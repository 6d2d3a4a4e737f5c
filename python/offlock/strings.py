"""Many ``str`` at once, from any buffer: found, checked and laid out off the interpreter lock.

Every operation takes the same keywords.

``kind`` says what the strings are:

- ``"str"``: exact ``str``, each with its own memory. Always there, always safe. Made with the lock, which other threads
  get every 2 ms, unless ``release="never"``.
- ``"block"``: exact ``str`` as well, but laid out in blocks of 16 KB without the lock. Call
  :func:`enable_blocks` once before. One string that is kept keeps its whole block.
- ``"view"``: instances of :class:`View`, a subclass of ``str`` whose characters are in memory that many share. The
  fastest to make and to drop. One view that is kept keeps about 1 MiB of text: see :func:`compact`.

Where a call finds thousands of strings and few different ones, as in many columns of tables, those that are equal are
one object, or two at times.

``into`` says what they are put into: ``list``, ``tuple``, or :class:`Arena` for strings to be made later.

``release`` says whether the lock is released: ``"auto"``, ``"always"`` or ``"never"``. ``cancel`` takes an
:class:`offlock.Cancel`, which ends the operation from another thread.

Input that is not UTF-8 raises the ``UnicodeDecodeError`` that ``bytes.decode`` raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, cast

from ._offlock import strings as _native

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Buffer

    from ._offlock import Cancel
    from ._types import Into, IntoOptional, Release, Strings

__all__ = [
    "Arena",
    "Capability",
    "View",
    "capabilities",
    "columns",
    "compact",
    "decode_many",
    "enable_blocks",
    "from_arrow",
    "from_offsets",
    "lines",
    "retained",
    "split",
]

Kind: TypeAlias = Literal["str", "block", "view"]


class ArrowArray(Protocol):
    """An array that exports itself through the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """A chunked array that exports itself through the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Arena = _native.Arena
View: type[str] = _native.view_class()
"""The class of the strings of kind ``"view"``."""

_LIST: Any = list


def lines(
    buffer: Buffer,
    *,
    newline: Literal["\n"] | None = None,
    keepends: bool = False,
    kind: Kind = "str",
    into: type[Into] = _LIST,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> Into:
    r"""The lines of a text, as ``bytes(buffer).decode().splitlines(keepends)`` returns them.

    With ``newline="\n"`` only this character ends a line, as in a file opened so; a last line without one
    counts, an empty one after the last does not.
    """
    options = (kind, into, release, cancel)
    return cast("Into", _native.lines(buffer, newline, keepends, options))


def split(
    buffer: Buffer,
    sep: str | Buffer,
    *,
    kind: Kind = "str",
    into: type[Into] = _LIST,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> Into:
    """What lies between the separators, as ``bytes(buffer).decode().split(sep)`` returns it.

    ``ValueError`` if ``sep`` is empty or not UTF-8.
    """
    options = (kind, into, release, cancel)
    return cast("Into", _native.split(buffer, sep, options))


def columns(
    buffer: Buffer,
    sep: str | Buffer = "\t",
    *,
    kind: Kind = "str",
    into: type[Into] = _LIST,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> tuple[Into, ...]:
    r"""The fields of delimited records, column by column.

    Records end with ``"\n"`` or ``"\r\n"``, fields with ``sep``, one ASCII character. Quotes mean nothing: for
    them there is the module csv. ``ValueError`` for a record with more or fewer fields than the first one.
    """
    options = (kind, into, release, cancel)
    return cast("tuple[Into, ...]", _native.columns(buffer, sep, options))


def from_offsets(
    buffer: Buffer,
    offsets: Buffer | Sequence[int],
    *,
    kind: Kind = "str",
    into: type[Into] = _LIST,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> Into:
    """The strings between each offset and the next one: one fewer than there are offsets.

    ``offsets`` are bytes; a buffer of 32-bit or 64-bit integers is read fastest. ``ValueError`` for one that is
    outside of the buffer or less than the one before it.
    """
    options = (kind, into, release, cancel)
    return cast("Into", _native.from_offsets(buffer, offsets, options))


def from_arrow(
    array: ArrowArray | ArrowStream,
    *,
    kind: Kind = "str",
    into: type[IntoOptional] = _LIST,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> IntoOptional:
    """The strings of an Arrow array, ``None`` for null.

    Takes arrays and chunked arrays of string, large_string, string_view, dictionaries of these, and null,
    from any library that has the Arrow PyCapsule interface. Elements of a dictionary share their ``str``.
    """
    options = (kind, into, release, cancel)
    return cast("IntoOptional", _native.from_arrow(array, options))


def decode_many(
    items: Iterable[Buffer],
    *,
    kind: Kind = "str",
    into: type[Into] = _LIST,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> Into:
    """Each item decoded, as ``[bytes(item).decode() for item in items]``."""
    options = (kind, into, release, cancel)
    return cast("Into", _native.decode_many(items, options))


class Capability(NamedTuple):
    """Whether strings of one kind can be made now."""

    available: bool
    reason: str
    """Why not; empty for a kind that is available."""


def capabilities() -> dict[Kind, Capability]:
    """Which kinds of string can be made in this process, and why the others cannot."""
    return {kind: Capability(reason is None, reason or "") for kind, reason in _native.unavailable()}


def enable_blocks() -> None:
    """Lets strings be made with ``kind="block"`` from now on.

    Wraps CPython's object allocator for as long as the process lives, which makes every other freeing of an
    object a little slower. ``RuntimeError`` with the reason where that would not be safe.
    """
    _native.enable_blocks()


def compact(strings: Strings) -> Strings:
    """The same strings, those that share memory with others replaced by exact ``str`` that do not.

    For the few that are kept of many. Returns a tuple for a tuple, a list for anything else.
    """
    into = tuple if isinstance(strings, tuple) else list
    return cast("Strings", _native.compact(strings, into))


def retained(strings: Iterable[str]) -> int:
    """How many bytes these strings keep alive, with the blocks and the text that they share with others."""
    return _native.retained(strings)
