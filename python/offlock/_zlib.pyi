"""The types of `offlock._offlock.zlib`."""

from collections.abc import Iterable
from typing import Any, Self, final

from typing_extensions import Buffer

from ._offlock import Cancel
from ._types import Progress, Release

def compress(
    data: Buffer,
    /,
    level: int = -1,
    wbits: int = 15,
    *,
    progress: Progress | None = None,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> bytes: ...
def decompress(
    data: Buffer,
    /,
    wbits: int = 15,
    bufsize: int = 16384,
    *,
    max_output: int | None = None,
    progress: Progress | None = None,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> bytes: ...
def compressobj(
    level: int = -1,
    method: int = 8,
    wbits: int = 15,
    memLevel: int = 8,
    strategy: int = 0,
    zdict: Buffer | None = None,
) -> Compress: ...
def decompressobj(
    wbits: int = 15, zdict: Buffer | None = None, *, max_output: int | None = None
) -> Decompress: ...
def deflate_all(
    data: Iterable[Buffer],
    /,
    level: int = -1,
    wbits: int = 15,
    *,
    threads: int = 0,
    progress: Progress | None = None,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> list[bytes]: ...
def inflate_all(
    data: Iterable[Buffer],
    /,
    wbits: int = 15,
    *,
    max_output: int | None = None,
    threads: int = 0,
    progress: Progress | None = None,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> list[bytes]: ...
def crc32(data: Buffer, value: int = 0, /, *, release: Release = "auto") -> int: ...
def adler32(data: Buffer, value: int = 1, /, *, release: Release = "auto") -> int: ...
def crc32_combine(crc1: int, crc2: int, len2: int, /) -> int: ...
def adler32_combine(adler1: int, adler2: int, len2: int, /) -> int: ...
def gunzip(
    data: Buffer,
    /,
    *,
    threads: int = 1,
    max_output: int | None = None,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> bytes: ...
def gzip(
    data: Buffer,
    level: int,
    mtime: int,
    threads: int,
    /,
    *,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> bytes: ...
def joined(parts: Iterable[bytes], /) -> bytes: ...
def quick_readline(class_: type, otherwise: object, /) -> Any: ...
def gzip_header(mtime: int, level: int, name: bytes | None, /) -> bytes: ...

@final
class Compress:
    def compress(self, data: Buffer, /) -> bytes: ...
    def flush(self, mode: int = 4, /) -> bytes: ...
    def copy(self) -> Compress: ...
    def __copy__(self) -> Compress: ...
    def __deepcopy__(self, _memo: object, /) -> Compress: ...

@final
class Decompress:
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: Buffer, /, max_length: int = 0) -> bytes: ...
    def flush(self, length: int = 16384, /) -> bytes: ...
    def copy(self) -> Decompress: ...
    def __copy__(self) -> Decompress: ...
    def __deepcopy__(self, _memo: object, /) -> Decompress: ...

@final
class _ZlibDecompressor:
    def __new__(cls, wbits: int = 15, zdict: Buffer | None = None) -> Self: ...
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: Buffer, max_length: int = -1) -> bytes: ...

@final
class GzipDecompress:
    def __new__(cls, *, threads: int = 1, max_output: int | None = None) -> Self: ...
    def decompress(self, data: Buffer, max_length: int, /) -> bytes: ...
    def check_end(self) -> None: ...
    @property
    def window(self) -> int | None: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def mtime(self) -> int | None: ...

@final
class BlockCompress:
    def __new__(cls, level: int, threads: int, /) -> Self: ...
    def compress(self, data: Buffer, /) -> bytes: ...
    def flush(self, mode: int = 4, /) -> bytes: ...
