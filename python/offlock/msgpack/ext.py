"""Types for the MessagePack values without a counterpart in Python: extensions and timestamps."""

from __future__ import annotations

import datetime
from typing import NamedTuple

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_NANO = 10**9


class _Ext(NamedTuple):
    code: int
    data: bytes


class ExtType(_Ext):
    """An extension: its type, 0 to 127, and its payload."""

    __slots__ = ()

    def __new__(cls, code: int, data: bytes) -> ExtType:
        if not isinstance(code, int):
            raise TypeError("code must be int")
        if not isinstance(data, bytes):
            raise TypeError("data must be bytes")
        if not 0 <= code <= 127:
            raise ValueError(f"code must be 0~127, not {code}")
        return super().__new__(cls, code, data)


class Timestamp:
    """A point in time with a resolution of 1 ns.

    `seconds` counts from 1970-01-01 UTC and may be negative; `nanoseconds`, 0 to 999,999,999, are added to it.
    Timestamps are hashable, so do not assign to the attributes.
    """

    __slots__ = ("nanoseconds", "seconds")

    seconds: int
    nanoseconds: int

    def __init__(self, seconds: int, nanoseconds: int = 0) -> None:
        if not isinstance(seconds, int):
            raise TypeError("seconds must be an integer")
        if not isinstance(nanoseconds, int):
            raise TypeError("nanoseconds must be an integer")
        if not 0 <= nanoseconds < _NANO:
            raise ValueError(
                f"nanoseconds must be a non-negative integer less than {_NANO}, not {nanoseconds}"
            )
        self.seconds = seconds
        self.nanoseconds = nanoseconds

    def __repr__(self) -> str:
        return f"Timestamp(seconds={self.seconds}, nanoseconds={self.nanoseconds})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return self.seconds == other.seconds and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanoseconds))

    @staticmethod
    def from_bytes(b: bytes) -> Timestamp:
        """Returns the timestamp in the payload of an extension of type -1."""
        if len(b) == 4:
            return Timestamp(int.from_bytes(b, "big"))
        if len(b) == 8:
            both = int.from_bytes(b, "big")
            return Timestamp(both & (1 << 34) - 1, both >> 34)
        if len(b) == 12:
            return Timestamp(int.from_bytes(b[4:], "big", signed=True), int.from_bytes(b[:4], "big"))
        raise ValueError(f"a timestamp takes 4, 8 or 12 bytes, not {len(b)}")

    def to_bytes(self) -> bytes:
        """Returns the payload of an extension of type -1, in its shortest form."""
        if self.seconds >> 34:
            return self.nanoseconds.to_bytes(4, "big") + self.seconds.to_bytes(8, "big", signed=True)
        both = self.nanoseconds << 34 | self.seconds
        return both.to_bytes(8 if both >> 32 else 4, "big")

    @staticmethod
    def from_unix(unix_sec: float) -> Timestamp:
        """Returns the timestamp of a POSIX time in seconds."""
        return Timestamp(int(unix_sec // 1), int(unix_sec % 1 * _NANO))

    def to_unix(self) -> float:
        """Returns the POSIX time in seconds, rounded to a float."""
        return self.seconds + self.nanoseconds / 1e9

    @staticmethod
    def from_unix_nano(unix_ns: int) -> Timestamp:
        """Returns the timestamp of a POSIX time in nanoseconds."""
        return Timestamp(*divmod(unix_ns, _NANO))

    def to_unix_nano(self) -> int:
        """Returns the POSIX time in nanoseconds."""
        return self.seconds * _NANO + self.nanoseconds

    def to_datetime(self) -> datetime.datetime:
        """Returns the datetime in UTC, truncated to microseconds."""
        return EPOCH + datetime.timedelta(seconds=self.seconds, microseconds=self.nanoseconds // 1000)

    @staticmethod
    def from_datetime(dt: datetime.datetime) -> Timestamp:
        """Returns the timestamp of a datetime. A datetime without a time zone is taken as local time."""
        if dt.tzinfo is None:
            dt = dt.astimezone()
        delta = dt - EPOCH
        return Timestamp(delta.days * 86400 + delta.seconds, delta.microseconds * 1000)
