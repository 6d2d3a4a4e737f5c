"""Zstandard off the interpreter lock, with the interface of CPython 3.14's `compression.zstd`.

    import offlock.zstd as zstd

Beyond the original:

- `max_output` limits the output of a decoder, in bytes; `OutputLimitError` is raised beyond it.
- `release` sets whether the lock is released: "auto", "always" or "never".
- `cancel` takes an `offlock.Cancel`, with which another thread can end the call.
"""

from __future__ import annotations

import builtins
import enum
import io
import os

from ._offlock import zstd as _native

TYPE_CHECKING = False
if TYPE_CHECKING:

    class ZstdError(Exception): ...

else:
    try:  # so that code that catches it for the original also catches offlock's errors
        from compression.zstd import ZstdError
    except ImportError:

        class ZstdError(Exception):
            """An error of the Zstandard library."""


if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import IO, Any, overload

    from typing_extensions import Buffer

    from ._types import BinaryMode, StrOrBytesPath, TextMode

    _Options = dict[int, int]
    _Dict = _native.ZstdDict | tuple[_native.ZstdDict, int]

__all__ = (
    "COMPRESSION_LEVEL_DEFAULT",
    "CompressionParameter",
    "DecompressionParameter",
    "OutputLimitError",
    "Strategy",
    "ZstdCompressor",
    "ZstdDecompressor",
    "ZstdDict",
    "ZstdError",
    "ZstdFile",
    "compress",
    "decompress",
    "finalize_dict",
    "get_frame_info",
    "get_frame_size",
    "open",
    "train_dict",
    "zstd_version",
    "zstd_version_info",
)


class OutputLimitError(ZstdError):
    """Raised when the output would be larger than `max_output`."""


compress = _native.compress
decompress = _native.decompress
get_frame_size = _native.get_frame_size
ZstdCompressor = _native.ZstdCompressor
ZstdDecompressor = _native.ZstdDecompressor
ZstdDict = _native.ZstdDict

for _function in compress, decompress, get_frame_size:
    _function.__module__ = __name__  # where `pickle` looks for it
del _function

zstd_version: str = _native.zstd_version
zstd_version_info = (*divmod(_native.zstd_version_number // 100, 100), _native.zstd_version_number % 100)
COMPRESSION_LEVEL_DEFAULT = 3

_READ_SIZE = 128 * 1024


class FrameInfo:
    """What a frame's header says: the size of its content, or None, and the number of its dictionary."""

    __slots__ = ("decompressed_size", "dictionary_id")

    decompressed_size: int | None
    dictionary_id: int

    def __init__(self, decompressed_size: int | None, dictionary_id: int) -> None:
        object.__setattr__(self, "decompressed_size", decompressed_size)
        object.__setattr__(self, "dictionary_id", dictionary_id)

    def __repr__(self) -> str:
        return f"FrameInfo(decompressed_size={self.decompressed_size}, dictionary_id={self.dictionary_id})"

    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"can't set attribute {name!r}")


def get_frame_info(frame_buffer: Buffer) -> FrameInfo:
    """Read the header of the frame at the beginning of `frame_buffer`."""
    return FrameInfo(*_native.frame_info(frame_buffer))


def train_dict(samples: Iterable[Buffer], dict_size: int) -> ZstdDict:
    """Train a dictionary of at most `dict_size` bytes for content like `samples`."""
    if not isinstance(dict_size, int):
        raise TypeError(f"dict_size must be an int object, not {type(dict_size).__qualname__!r}.")
    return ZstdDict(_native.train_dict(samples, dict_size))


def finalize_dict(zstd_dict: ZstdDict, /, samples: Iterable[Buffer], dict_size: int, level: int) -> ZstdDict:
    """Make a dictionary from the content of `zstd_dict`, with a header for content like `samples`."""
    if not isinstance(zstd_dict, ZstdDict):
        raise TypeError("zstd_dict argument should be a ZstdDict object.")
    for name, value in [("dict_size", dict_size), ("level", level)]:
        if not isinstance(value, int):
            raise TypeError(f"{name} argument should be an int object.")
    return ZstdDict(_native.finalize_dict(zstd_dict, samples, dict_size, level))


class CompressionParameter(enum.IntEnum):
    """The parameters of a compressor."""

    compression_level = 100
    window_log = 101
    hash_log = 102
    chain_log = 103
    search_log = 104
    min_match = 105
    target_length = 106
    strategy = 107
    enable_long_distance_matching = 160
    ldm_hash_log = 161
    ldm_min_match = 162
    ldm_bucket_size_log = 163
    ldm_hash_rate_log = 164
    content_size_flag = 200
    checksum_flag = 201
    dict_id_flag = 202
    nb_workers = 400
    job_size = 401
    overlap_log = 402

    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value."""
        return _native.bounds(self.value, True)


class DecompressionParameter(enum.IntEnum):
    """The parameters of a decompressor."""

    window_log_max = 100

    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value."""
        return _native.bounds(self.value, False)


class Strategy(enum.IntEnum):
    """How a compressor searches, from the fastest to the strongest."""

    fast = 1
    dfast = 2
    greedy = 3
    lazy = 4
    lazy2 = 5
    btlazy2 = 6
    btopt = 7
    btultra = 8
    btultra2 = 9


class _Reader(io.RawIOBase):
    """The raw file of a `BufferedReader`: the content of all frames of a file."""

    def __init__(self, fp: IO[bytes], zstd_dict: _Dict | None, options: _Options | None) -> None:
        self._fp = fp
        self._settings = (zstd_dict, options)
        self._begin()

    def _new(self) -> ZstdDecompressor:
        return ZstdDecompressor(*self._settings)

    def _begin(self) -> None:
        self._decompressor = self._new()
        self._pos = 0
        self._ended = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._fp.seekable()

    def readinto(self, b: Any) -> int:
        with memoryview(b) as view, view.cast("B") as target:
            data = self.read(len(target))
            target[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return self.readall()
        data = b""
        while size and not data and not self._ended:
            data = self._more(size)
        self._pos += len(data)
        return data

    def _more(self, size: int) -> bytes:
        if self._decompressor.eof:
            packed = self._decompressor.unused_data or self._fp.read(_READ_SIZE)
            if not packed:
                self._ended = True
                return b""
            self._decompressor = self._new()
        elif self._decompressor.needs_input:
            packed = self._fp.read(_READ_SIZE)
            if not packed:
                raise EOFError("Compressed file ended before the end-of-stream marker was reached")
        else:
            packed = b""
        return self._decompressor.decompress(packed, size)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(1 << 30), b""))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_CUR:
            offset += self._pos
        elif whence == io.SEEK_END:
            while self.read(_READ_SIZE):
                pass
            offset += self._pos
        elif whence != io.SEEK_SET:
            raise ValueError(f"Invalid value for whence: {whence}")
        if offset < self._pos:
            self._fp.seek(0)
            self._begin()
        while offset > self._pos and self.read(min(_READ_SIZE, offset - self._pos)):
            pass
        return self._pos

    def tell(self) -> int:
        return self._pos


class ZstdFile(io.BufferedIOBase):
    """A file whose content is compressed with Zstandard: a path, or a file object that is not closed with it."""

    FLUSH_BLOCK = ZstdCompressor.FLUSH_BLOCK
    FLUSH_FRAME = ZstdCompressor.FLUSH_FRAME

    def __init__(
        self,
        file: StrOrBytesPath | IO[bytes],
        /,
        mode: str = "r",
        *,
        level: int | None = None,
        options: _Options | None = None,
        zstd_dict: _Dict | None = None,
    ) -> None:
        self._fp: Any = None
        self._owns_fp = False
        self._reader: io.BufferedReader | None = None
        self._compressor: ZstdCompressor | None = None
        self._pos = 0
        if not isinstance(mode, str):
            raise ValueError("mode must be a str")
        if options is not None and not isinstance(options, dict):
            raise TypeError("options must be a dict or None")
        kind = mode.removesuffix("b")
        if kind == "r":
            if level is not None:
                raise TypeError("level is illegal in read mode")
        elif kind in ("w", "a", "x"):
            if level is not None and not isinstance(level, int):
                raise TypeError("level must be int or None")
            self._compressor = ZstdCompressor(level, options, zstd_dict)
        else:
            raise ValueError(f"Invalid mode: {mode!r}")
        if isinstance(file, (str, bytes, os.PathLike)):
            self._fp = builtins.open(file, f"{kind}b")  # noqa: SIM115
            self._owns_fp = True
        elif hasattr(file, "read" if kind == "r" else "write"):
            self._fp = file
        else:
            raise TypeError("file must be a file-like object or a str, bytes, or PathLike object")
        if kind == "r":
            self._reader = io.BufferedReader(_Reader(self._fp, zstd_dict, options))

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _reading(self) -> io.BufferedReader:
        self._check_open()
        if self._reader is None:
            raise io.UnsupportedOperation("File not open for reading")
        return self._reader

    def _writing(self) -> ZstdCompressor:
        self._check_open()
        if self._compressor is None:
            raise io.UnsupportedOperation("File not open for writing")
        return self._compressor

    def close(self) -> None:
        """Write the end of the frame, and close the file if it was opened here."""
        fp = self._fp
        if fp is None:
            return
        try:
            if self._reader is not None:
                self._reader.close()
            elif self._compressor is not None:
                self.flush(self.FLUSH_FRAME)
        finally:
            self._fp = self._reader = self._compressor = None
            if self._owns_fp:
                fp.close()

    @property
    def closed(self) -> bool:
        return self._fp is None

    def write(self, data: Buffer, /) -> int:
        """Compress `data`; returns its length in bytes."""
        compressor = self._writing()
        with memoryview(data) as view:
            length = view.nbytes
        self._fp.write(compressor.compress(data))
        self._pos += length
        return length

    def flush(self, mode: int = FLUSH_BLOCK) -> None:
        """Write what was compressed so far, as a block or as the end of a frame."""
        if self._reader is not None:
            return
        compressor = self._writing()
        if mode not in (self.FLUSH_BLOCK, self.FLUSH_FRAME):
            raise ValueError(
                "Invalid mode argument, expected either ZstdFile.FLUSH_FRAME or ZstdFile.FLUSH_BLOCK"
            )
        if compressor.last_mode == mode:
            return
        self._fp.write(compressor.flush(mode))
        if hasattr(self._fp, "flush"):
            self._fp.flush()

    def read(self, size: int | None = -1) -> bytes:
        return self._reading().read(-1 if size is None else size)

    def read1(self, size: int = -1) -> bytes:
        return self._reading().read1(_READ_SIZE if size < 0 else size)

    def readinto(self, b: Any) -> int:
        return self._reading().readinto(b)

    def readinto1(self, b: Any) -> int:
        return self._reading().readinto1(b)

    def readline(self, size: int | None = -1) -> bytes:
        return self._reading().readline(size)

    def peek(self, size: int = -1) -> bytes:
        return self._reading().peek(size)

    def __next__(self) -> bytes:
        if line := self._reading().readline():
            return line
        raise StopIteration

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._reading().seek(offset, whence)

    def tell(self) -> int:
        self._check_open()
        return self._pos if self._reader is None else self._reader.tell()

    def fileno(self) -> int:
        self._check_open()
        return int(self._fp.fileno())

    @property
    def name(self) -> Any:
        self._check_open()
        return self._fp.name

    @property
    def mode(self) -> str:
        return "rb" if self._compressor is None else "wb"

    def readable(self) -> bool:
        self._check_open()
        return self._reader is not None

    def writable(self) -> bool:
        self._check_open()
        return self._compressor is not None

    def seekable(self) -> bool:
        return self.readable() and self._reading().seekable()


if TYPE_CHECKING:

    @overload
    def open(
        file: StrOrBytesPath | IO[bytes],
        /,
        mode: BinaryMode = "rb",
        *,
        level: int | None = None,
        options: _Options | None = None,
        zstd_dict: _Dict | None = None,
        encoding: None = None,
        errors: None = None,
        newline: None = None,
    ) -> ZstdFile: ...

    @overload
    def open(
        file: StrOrBytesPath | IO[bytes],
        /,
        mode: TextMode,
        *,
        level: int | None = None,
        options: _Options | None = None,
        zstd_dict: _Dict | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> io.TextIOWrapper: ...

    @overload
    def open(
        file: StrOrBytesPath | IO[bytes],
        /,
        mode: str,
        *,
        level: int | None = None,
        options: _Options | None = None,
        zstd_dict: _Dict | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> ZstdFile | io.TextIOWrapper: ...


def open(
    file: StrOrBytesPath | IO[bytes],
    /,
    mode: str = "rb",
    *,
    level: int | None = None,
    options: _Options | None = None,
    zstd_dict: _Dict | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> ZstdFile | io.TextIOWrapper:
    """Open a file in binary or (with "t" in `mode`) text mode."""
    if "t" in mode:
        if "b" in mode:
            raise ValueError(f"Invalid mode: {mode!r}")
    else:
        for name, value in [("encoding", encoding), ("errors", errors), ("newline", newline)]:
            if value is not None:
                raise ValueError(f'Argument "{name}" not supported in binary mode')
    binary = ZstdFile(file, mode.replace("t", ""), level=level, options=options, zstd_dict=zstd_dict)
    return io.TextIOWrapper(binary, encoding, errors, newline) if "t" in mode else binary
