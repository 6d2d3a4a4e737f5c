"""Makes many ``str`` at once from any buffer. Finding and checking the strings takes place off the interpreter lock.

Every operation takes the same keywords.

``kind`` selects the type of the strings and where their characters are stored:

- ``"str"``: exact ``str``, each with its own memory. Always available. These are made with the lock, which the operation
  releases every 2 ms unless ``release="never"``.
- ``"block"``: exact ``str`` as well, but made without the lock in blocks of 16 KB. :func:`enable_blocks` must have been
  called. A block stays allocated as long as one of its strings exists.
- ``"view"``: instances of :class:`View`, a subclass of ``str``, which share memory for their characters. They are the
  fastest to make and to free. One view keeps about 1 MiB of text allocated: see :func:`compact`.

When a call finds thousands of strings of which few are different, as in many columns of tables, equal strings are mostly
the same object.

``into`` selects the container: ``list``, ``tuple``, or :class:`Arena`, which makes the strings later.

``release`` sets whether the lock is released: ``"auto"``, ``"always"`` or ``"never"``. ``cancel`` takes an
:class:`offlock.Cancel`, with which another thread can end the operation.

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
    r"""Returns the lines of a text, as ``bytes(buffer).decode().splitlines(keepends)`` does.

    With ``newline="\n"`` only this character ends a line, as in a file opened with it. The text after the last
    newline is a line unless it is empty.
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
    """Returns the strings between the separators, as ``bytes(buffer).decode().split(sep)`` does.

    Raises ``ValueError`` if ``sep`` is empty or not UTF-8.
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
    r"""Returns the fields of delimited records as one container for each column.

    Records end with ``"\n"`` or ``"\r\n"``. Fields are separated by ``sep``, one ASCII character. Quotes have no
    meaning here; use the module csv for quoted fields. Raises ``ValueError`` if a record has more or fewer fields
    than the first one.
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
    """Returns the strings between each offset and the next one: one string fewer than there are offsets.

    ``offsets`` count bytes from the start of the buffer. A buffer of 32-bit or 64-bit integers is read fastest.
    Raises ``ValueError`` for an offset that is outside of the buffer or less than the one before it.
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
    """Returns the strings of an Arrow array, with ``None`` for null.

    Takes arrays and chunked arrays of string, large_string, string_view, dictionaries of these, and null, from any
    library that has the Arrow PyCapsule interface. Each element of a dictionary becomes one ``str``, however often it
    occurs.
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
    """Decodes each item, as ``[bytes(item).decode() for item in items]`` does."""
    options = (kind, into, release, cancel)
    return cast("Into", _native.decode_many(items, options))


class Capability(NamedTuple):
    """Whether strings of one kind can be made in this process now."""

    available: bool
    reason: str
    """The reason why not; empty for a kind that is available."""


def capabilities() -> dict[Kind, Capability]:
    """Returns, for each kind of string, whether it can be made in this process, and if not, the reason."""
    return {kind: Capability(reason is None, reason or "") for kind, reason in _native.unavailable()}


def enable_blocks() -> None:
    """Makes strings of ``kind="block"`` available in this process.

    Wraps CPython's object allocator until the process ends, which makes every other deallocation of an object a
    little slower. Raises ``RuntimeError`` with the reason where that would not be safe.
    """
    _native.enable_blocks()


def compact(strings: Strings) -> Strings:
    """Returns equal strings, of which none shares memory with other strings.

    Blocks and views are copied to exact ``str``; other strings stay the same objects. Use it when a program keeps a
    few of many strings. Returns a tuple for a tuple, and a list for anything else.
    """
    into = tuple if isinstance(strings, tuple) else list
    return cast("Strings", _native.compact(strings, into))


def retained(strings: Iterable[str]) -> int:
    """Returns how many bytes these strings keep allocated, including blocks and texts that they share with others."""
    return _native.retained(strings)
