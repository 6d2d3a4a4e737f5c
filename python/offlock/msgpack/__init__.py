"""MessagePack off the lock, with the interface of the package msgpack.

`import offlock.msgpack as msgpack` keeps a program working. Beyond msgpack's interface there are:

- `view` reads single values of a large message without building the rest.
- `extract` returns one field of every record.
- `unpack_all` unpacks many messages with one release of the lock.
"""

from __future__ import annotations

from typing import IO, Any

from offlock._offlock import msgpack as _native

from .exceptions import (
    BufferFull,
    ExtraData,
    FormatError,
    OutOfData,
    PackException,
    PackOverflowError,
    PackValueError,
    StackError,
    UnpackException,
    UnpackValueError,
)
from .ext import ExtType, Timestamp

Packer = _native.Packer
Unpacker = _native.Unpacker
View = _native.View
extract = _native.extract
packb = _native.packb
unpackb = _native.unpackb
unpack_all = _native.unpack_all
view = _native.view
for _function in (extract, packb, unpackb, unpack_all, view):
    _function.__module__ = __name__  # where `pickle` looks for it
del _function

#: The version of msgpack whose interface this is.
version = (1, 2, 1)
__version__ = "1.2.1"


def pack(o: object, stream: IO[bytes], **kwargs: Any) -> None:
    """Packs an object and writes it to a stream. For the options see `Packer`."""
    stream.write(packb(o, **kwargs))


def unpack(stream: IO[bytes], **kwargs: Any) -> Any:
    """Unpacks the one object that is in a stream. For the options see `Unpacker`."""
    return unpackb(stream.read(), **kwargs)


load = unpack
loads = unpackb
dump = pack
dumps = packb

__all__ = [
    "BufferFull",
    "ExtType",
    "ExtraData",
    "FormatError",
    "OutOfData",
    "PackException",
    "PackOverflowError",
    "PackValueError",
    "Packer",
    "StackError",
    "Timestamp",
    "UnpackException",
    "UnpackValueError",
    "Unpacker",
    "View",
    "dump",
    "dumps",
    "extract",
    "load",
    "loads",
    "pack",
    "packb",
    "unpack",
    "unpack_all",
    "unpackb",
    "view",
]
