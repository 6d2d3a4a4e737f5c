"""Fields of JSON lines, without building the records::

    texts = jsonl.extract(data, "text")
    texts, ids = jsonl.extract(data, ["text", ("meta", "id")])

The lines are parsed without the interpreter lock when they are large, and only the wanted values become Python objects:
strings, numbers, booleans, and ``None`` where a record lacks the field. :func:`extract` takes ``bytes``, other objects with
the buffer protocol, and ``str``. To turn compressed files of such lines into tokens, see :mod:`offlock.pipeline`.
"""

from __future__ import annotations

from json import JSONDecodeError
from typing import Any

from ._offlock import jsonl as _native

__all__ = ["DecodeError", "extract"]


class DecodeError(JSONDecodeError):
    """A line that is not JSON, or is too long.

    ``doc`` is the line (of a long one the first MiB), ``pos`` the index in it, ``lineno`` and ``colno`` the place in the
    data, both from 1, and ``offset`` the byte of the data.
    """

    offset: int

    def __init__(self, msg: str, line: bytes, lineno: int, start: int, column: int) -> None:
        pos = len(line[:column].decode(errors="backslashreplace"))
        super().__init__(msg, line.decode(errors="backslashreplace"), pos)
        self.lineno, self.colno, self.offset = lineno, pos + 1, start + column
        self.args = (f"{msg}: line {lineno} column {self.colno} (byte {self.offset})",)
        self._made_of = msg, line, lineno, start, column

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of


extract = _native.extract
