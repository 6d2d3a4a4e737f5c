"""gzip files, without the interpreter lock: everything that the standard library's `gzip` has, and more.

    import offlock.gzip as gzip

Beyond the original: `threads=` compresses on several threads (0: one per core) and decompresses
several members of a file at once. `max_output=` limits the bytes that a reader may produce. `progress=` is called
about every megabyte with the bytes done (of the file when reading, of the content when writing) and the
total bytes, or None where that is not known; an exception that it raises ends the work.
"""

from __future__ import annotations

import builtins
import errno
import io
import itertools
import os
import struct
import sys
import time
import warnings
import weakref
from gzip import BadGzipFile

from . import zlib
from ._gzip_reader import CHUNK, NO_REPORT, READ_BUFFER_SIZE, REPORT_EVERY, Reader, Report
from ._offlock import zlib as _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing these takes longer than everything else
    from collections.abc import Callable
    from typing import IO, Any, TypeVar, overload

    from typing_extensions import Buffer

    from ._types import BinaryMode, StrOrBytesPath, TextMode
    from ._types import FileProgress as Progress

    _Read = TypeVar("_Read")
    _Original = io.BufferedIOBase  # none of the original's additions are used
else:
    from gzip import GzipFile as _Original

__all__ = ["BadGzipFile", "GzipFile", "compress", "decompress", "open"]

FTEXT, FHCRC, FEXTRA, FNAME, FCOMMENT = 1, 2, 4, 8, 16

READ = "rb"
WRITE = "wb"

_WRITE_BUFFER_SIZE = 4 * io.DEFAULT_BUFFER_SIZE
_BEST = 9
_MTIME = 0 if sys.version_info >= (3, 14) else None
"""The default `mtime` of `compress`; None is the time of the call."""


if TYPE_CHECKING:

    @overload
    def open(
        filename: StrOrBytesPath | IO[bytes],
        mode: BinaryMode = "rb",
        compresslevel: int = _BEST,
        encoding: None = None,
        errors: None = None,
        newline: None = None,
        *,
        threads: int = 1,
        max_output: int | None = None,
        progress: Progress | None = None,
    ) -> GzipFile: ...

    @overload
    def open(
        filename: StrOrBytesPath | IO[bytes],
        mode: TextMode,
        compresslevel: int = _BEST,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        *,
        threads: int = 1,
        max_output: int | None = None,
        progress: Progress | None = None,
    ) -> io.TextIOWrapper: ...

    @overload
    def open(
        filename: StrOrBytesPath | IO[bytes],
        mode: str,
        compresslevel: int = _BEST,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        *,
        threads: int = 1,
        max_output: int | None = None,
        progress: Progress | None = None,
    ) -> GzipFile | io.TextIOWrapper: ...


def open(
    filename: StrOrBytesPath | IO[bytes],
    mode: str = "rb",
    compresslevel: int = _BEST,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *,
    threads: int = 1,
    max_output: int | None = None,
    progress: Progress | None = None,
) -> GzipFile | io.TextIOWrapper:
    """Open a gzip file in binary or (with "t" in `mode`) text mode, and return the file object.

    `filename` is a path, or a file object to read from or write to. `threads`, `max_output` and
    `progress` are as in `GzipFile`.
    """
    if "t" in mode:
        if "b" in mode:
            raise ValueError(f"Invalid mode: {mode!r}")
    else:
        for name, value in [("encoding", encoding), ("errors", errors), ("newline", newline)]:
            if value is not None:
                raise ValueError(f"Argument {name!r} not supported in binary mode")
    path: StrOrBytesPath | None = None
    fileobj: IO[bytes] | None = None
    if isinstance(filename, (str, bytes, os.PathLike)):
        path = filename
    elif hasattr(filename, "read") or hasattr(filename, "write"):
        fileobj = filename
    else:
        raise TypeError("filename must be a str or bytes object, or a file")
    binary = GzipFile(
        path,
        mode.replace("t", ""),
        compresslevel,
        fileobj,
        threads=threads,
        max_output=max_output,
        progress=progress,
    )
    if "t" in mode:
        return io.TextIOWrapper(binary, io.text_encoding(encoding), errors, newline)
    return binary


def compress(
    data: Buffer,
    compresslevel: int = _BEST,
    *,
    mtime: float | None = _MTIME,
    threads: int = 1,
    progress: Progress | None = None,
) -> bytes:
    """Compress `data` to a gzip file of one member, on `threads` threads (0: one per core).

    `mtime` is the time in its header, in seconds since the epoch, 0 for none; None is the current time. As in the
    original the default is None before CPython 3.14 and 0 since then.
    """
    if progress is not None:
        return _compress_reporting(memoryview(data).cast("B"), compresslevel, mtime, threads, progress)
    return _native.gzip(data, compresslevel, _seconds(mtime), threads)


def _compress_reporting(
    data: memoryview, level: int, mtime: float | None, threads: int, progress: Progress
) -> bytes:
    packed, size = io.BytesIO(), len(data)
    with GzipFile(
        None, WRITE, level, packed, mtime, threads=threads, progress=lambda done, _: progress(done, size)
    ) as file:
        for start in range(0, size, REPORT_EVERY):
            file.write(data[start : start + REPORT_EVERY])
    return packed.getvalue()


def decompress(
    data: Buffer,
    *,
    threads: int = 1,
    max_output: int | None = None,
    progress: Progress | None = None,
) -> bytes:
    """Decompress a gzip file of any number of members, `threads` of them at once (0: one per core).

    Raises `BadGzipFile`, `zlib.error` or `EOFError` for invalid or incomplete data, `zlib.OutputLimitError` when the
    content is longer than `max_output` bytes.
    """
    if progress is not None:
        file = io.BytesIO(data)
        with GzipFile(
            fileobj=file, mode=READ, threads=threads, max_output=max_output, progress=progress
        ) as reader:
            return reader.read()
    return _native.gunzip(data, threads=threads, max_output=max_output)


def _seconds(mtime: float | None) -> int:
    seconds = time.time() if mtime is None else mtime
    if sys.version_info >= (3, 14) and not 0 <= seconds < 2**32:
        return 0
    return int(seconds)


def _trailer(crc: int, size: int) -> bytes:
    return struct.pack("<LL", crc, size & 0xFFFFFFFF)


def write32u(output: IO[bytes], value: int) -> None:
    """Write `value` to `output` as 32 bits, least significant byte first."""
    output.write(struct.pack("<L", value))


class _Writer(io.RawIOBase):
    """The raw file of a `BufferedWriter`: passes data to a `GzipFile`, without a cycle that keeps it open."""

    def __init__(self, gzip_file: GzipFile) -> None:
        self._gzip_file = weakref.ref(gzip_file)

    def write(self, data: Buffer) -> int:
        gzip_file = self._gzip_file()
        if gzip_file is None:
            raise ValueError("write() on a GzipFile that is gone")
        return gzip_file._write_raw(data)

    def writable(self) -> bool:
        return True


class _NoLines:
    """The line iterator of a file that is not open."""

    def __next__(self) -> bytes:
        raise ValueError("I/O operation on closed file")


class GzipFile(_Original):
    """A gzip file as a file object in binary mode. A subclass of the original's, so that `isinstance` accepts it.

    `fileobj` is the compressed file; without it, `filename` is opened. `compresslevel` is 0 to
    9. `mtime` is the time in the header, in seconds since the epoch, by default the current one.

    `threads` other than 1 (0: one per core) compresses on that many threads, in blocks that every reader
    reads as one stream, and decompresses that many members of a file at once (BGZF, concatenated files).
    For each thread it then holds at most 2 MB of the file and 8 MB of its content, four times that where
    members are large, in addition to the requested bytes. Reading raises `zlib.OutputLimitError` when the
    content exceeds `max_output` bytes. `progress` is called about every megabyte, and at the end.
    """

    myfileobj: IO[bytes] | None = None
    closed = True
    """Whether `close` was called. Not a property: a `TextIOWrapper` reads it at every line."""
    _lines: Any = _NoLines()
    """The iterator over lines."""

    def __init__(
        self,
        filename: StrOrBytesPath | None = None,
        mode: str | None = None,
        compresslevel: int = _BEST,
        fileobj: IO[bytes] | None = None,
        mtime: float | None = None,
        *,
        threads: int = 1,
        max_output: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        if mode and ("t" in mode or "U" in mode):
            raise ValueError(f"Invalid mode: {mode!r}")
        if mode and "b" not in mode:
            mode += "b"
        if fileobj is None:
            if filename is None:
                raise TypeError("filename or fileobj must be given")
            opened: Any = builtins.open(filename, mode or "rb")  # noqa: SIM115 (closed by `close`)
            fileobj = self.myfileobj = opened
        self.fileobj: IO[bytes] | None = None
        try:
            self._open(filename, mode, compresslevel, fileobj, mtime, threads, max_output, progress)
        except BaseException:
            self._close_mine()
            raise

    def _open(
        self,
        filename: StrOrBytesPath | None,
        mode: str | None,
        compresslevel: int,
        fileobj: IO[bytes],
        mtime: float | None,
        threads: int,
        max_output: int | None,
        progress: Progress | None,
    ) -> None:
        self.name: str | bytes = _name(filename, fileobj)
        actual = getattr(fileobj, "mode", "rb") if mode is None else mode
        self._buffer: Any
        if actual.startswith("r"):
            self.mode: Any = READ
            self._buffer = io.BufferedReader(Reader(fileobj, threads, max_output, progress))
        elif actual.startswith(("w", "a", "x")):
            if mode is None:
                text = "GzipFile was opened for writing, because its file object is; say so with mode="
                warnings.warn(text, FutureWarning, 3)
            self.mode = WRITE
            self.crc = zlib.crc32(b"")
            self.size = 0
            self.offset = 0
            self.compress = _compressor(compresslevel, threads)
            self._report = NO_REPORT if progress is None else Report(progress, None)
            self._buffer = io.BufferedWriter(_Writer(self), _WRITE_BUFFER_SIZE)
            fileobj.write(_native.gzip_header(_seconds(mtime), compresslevel, _header_name(self.name)))
        else:
            raise ValueError(f"Invalid mode: {actual!r}")
        self.fileobj = fileobj
        self.closed = False
        self._lines = self._buffer

    @property
    def mtime(self) -> int | None:
        """The time in the header of the member read last, in seconds since the epoch; None before the first read."""
        mtime: int | None = self._buffer.raw._last_mtime
        return mtime

    def __repr__(self) -> str:
        return f"<gzip {repr(self.fileobj)[1:-1]} {id(self):#x}>"

    def _check_not_closed(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _check(self, mode: str, method: str) -> None:
        self._check_not_closed()
        if self.mode != mode:
            kind = "read" if mode == WRITE else "write"
            raise OSError(errno.EBADF, f"{method}() on {kind}-only GzipFile object")

    def write(self, data: Buffer) -> int:
        """Compress `data` into the file, and return its size in bytes. A part may stay in a buffer until `flush`."""
        if self.mode != WRITE or self.fileobj is None:
            self._check(WRITE, "write")
        written: int = self._buffer.write(data)
        return written

    def _write_raw(self, data: Buffer) -> int:
        with memoryview(data) as view:
            if not view.nbytes:
                return 0
            with view.cast("B") as octets:
                # An interrupt is delayed by at most one piece.
                for start in range(0, len(octets), CHUNK):
                    # Report before the write: if the callback raises, this piece was not written.
                    self._report.at(self.size)
                    self._write_piece(bytes(octets[start : start + CHUNK]))
                return len(octets)

    def _write_piece(self, octets: bytes) -> None:
        crc = zlib.crc32(octets, self.crc)
        # The compressor keeps its input, which cannot change, even if the call is interrupted: so count it first.
        self.crc, self.size, self.offset = crc, self.size + len(octets), self.offset + len(octets)
        self._fp.write(self.compress.compress(octets))

    @property
    def _fp(self) -> IO[bytes]:
        # None raises the original's AttributeError when the file was closed.
        file: Any = self.fileobj
        return file  # type: ignore[no-any-return]

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes of content, all of it if `size` is negative or None; b"" at the end."""
        if self.mode != READ or self.fileobj is None:
            self._check(READ, "read")
        if size is not None and 0 <= size <= READ_BUFFER_SIZE:
            plain: bytes = self._buffer.read(size)
            return plain
        if size is None or size < 0:
            return self._in_whole(self._read_rest, None)
        some: bytes = self._in_whole(self._buffer.read, size)
        return some

    def _read_rest(self, _: object) -> bytes:
        """Read the rest. The buffer's own `read` would copy all of it with the lock held."""
        buffer: Any = self._buffer
        buffered = buffer.read1()
        if not buffered:
            return b""
        rest = _native.joined(itertools.chain([buffered], buffer.raw.chunks()))
        buffer.seek(buffer.raw.tell())
        return rest

    def _in_whole(self, read: Callable[[Any], _Read], argument: object) -> _Read:
        """Return the result of a long read. After an interrupt, the next read begins where this one did."""
        begin = self._buffer.tell()
        try:
            return read(argument)
        except (EOFError, BadGzipFile, zlib.error):
            raise  # every later read raises it again
        except BaseException:
            if self._buffer.raw.return_to(begin):
                self._buffer.seek(begin)
            raise

    def read1(self, size: int = -1) -> bytes:
        """Read up to `size` bytes (a full buffer if negative), with as few reads of the file as possible."""
        if self.mode != READ or self.fileobj is None:
            self._check(READ, "read1")
        plain: bytes = self._buffer.read1(io.DEFAULT_BUFFER_SIZE if size < 0 else size)
        return plain

    def readinto(self, buffer: Buffer) -> int:
        """Read content until `buffer` is full or the content ends, and return the number of bytes."""
        self._check(READ, "readinto")
        count: int = self._in_whole(self._buffer.readinto, buffer)
        return count

    def readinto1(self, buffer: Buffer) -> int:
        """Read into `buffer` with as few reads of the file as possible, and return the number of bytes."""
        self._check(READ, "readinto1")
        size: int = self._buffer.readinto1(buffer)
        return size

    def peek(self, n: int) -> bytes:
        """Return buffered content without advancing: at least one byte, unless at the end. `n` is a hint."""
        self._check(READ, "peek")
        peeked: bytes = self._buffer.peek(n)
        return peeked

    def readline(self, size: int | None = -1) -> bytes:
        """Read up to and including the next line feed, at most `size` bytes if that is not negative; b"" at the end."""
        if self.closed:
            self._check_not_closed()
        line: bytes = self._buffer.readline(size)
        return line

    if sys.version_info >= (3, 14):

        def __del__(self) -> None:
            if getattr(self, "mode", None) == WRITE and not self.closed:
                warnings.warn("unclosed GzipFile", ResourceWarning, 2, self)
            io.BufferedIOBase.__del__(self)  # the original's would warn a second time

    def close(self) -> None:
        """Finish the gzip file, and close the underlying file if this object opened it."""
        fileobj = self.fileobj
        if fileobj is None or self._buffer.closed:
            return
        try:
            if self.mode == WRITE:
                self._buffer.flush()
                fileobj.write(self.compress.flush())
                fileobj.write(_trailer(self.crc, self.size))
                self._report.end(self.size)
            else:
                self._buffer.close()
        finally:
            self.fileobj = None
            self.closed = True
            self._lines = GzipFile._lines
            self._close_mine()

    def _close_mine(self) -> None:
        mine, self.myfileobj = self.myfileobj, None
        if mine is not None:
            mine.close()

    def flush(self, zlib_mode: int = zlib.Z_SYNC_FLUSH) -> None:
        """Compress the buffered content with the flush mode `zlib_mode`, and flush the underlying file."""
        self._check_not_closed()
        if self.mode == WRITE:
            self._buffer.flush()
            self._fp.write(self.compress.flush(zlib_mode))
            self._fp.flush()

    def fileno(self) -> int:
        """The file descriptor of the compressed file."""
        return self._fp.fileno()

    def rewind(self) -> None:
        """Return to the beginning of the content."""
        if self.mode != READ:
            raise OSError("Can't rewind in write mode")
        self._buffer.seek(0)

    def readable(self) -> bool:
        """Whether the file was opened for reading."""
        return bool(self.mode == READ)

    def writable(self) -> bool:
        """Whether the file was opened for writing."""
        return bool(self.mode == WRITE)

    def seekable(self) -> bool:
        """True: seeking backwards decompresses again; seeking forwards while writing writes zeros."""
        return True

    def tell(self) -> int:
        """The position in the content, in bytes."""
        self._check_not_closed()
        self._buffer.flush()
        place: int = self.offset if self.mode == WRITE else self._buffer.tell()
        return place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position in the content, in bytes, and return it. While writing, only forwards, with zeros."""
        self._check_not_closed()
        if self.mode == READ:
            place: int = self._buffer.seek(offset, whence)
            return place
        self._buffer.flush()
        if whence == io.SEEK_CUR:
            offset += self.offset
        elif whence != io.SEEK_SET:
            raise ValueError("Seek from end not supported")
        if offset < self.offset:
            raise OSError("Negative seek in write mode")
        zeros = bytes(_WRITE_BUFFER_SIZE)
        for _ in range((offset - self.offset) // len(zeros)):
            self._write_raw(zeros)
        self._write_raw(bytes(offset - self.offset))
        return self.offset


# A Python frame takes longer than reading a line. Iteration calls this method as well.
GzipFile.readline = _native.quick_readline(GzipFile, GzipFile.readline)  # type: ignore[method-assign]


def _name(filename: StrOrBytesPath | None, fileobj: IO[bytes]) -> str | bytes:
    if filename is not None:
        return os.fspath(filename)
    name = getattr(fileobj, "name", "")
    return name if isinstance(name, (str, bytes)) else ""


def _header_name(name: str | bytes) -> bytes | None:
    """The file's name without directory and ".gz"; None if it cannot be encoded in Latin-1, as the format requires."""
    base = os.path.basename(name)
    try:
        octets = base if isinstance(base, bytes) else base.encode("latin-1")
    except UnicodeEncodeError:
        return None
    return octets.removesuffix(b".gz") or None


def _compressor(level: int, threads: int) -> _native.Compress | _native.BlockCompress:
    if threads == 1:
        return zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, 0)
    return _native.BlockCompress(level, threads)


def main() -> None:
    """Compress files, or decompress them: `python -m offlock.gzip`, with the options of `python -m gzip`."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m offlock.gzip", description="Compress or decompress files."
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--fast", action="store_true", help="compress faster")
    how.add_argument("--best", action="store_true", help="compress better")
    how.add_argument("-d", "--decompress", action="store_true", help="act like gunzip instead of gzip")
    parser.add_argument(
        "args", nargs="*", default=["-"], metavar="file", help="standard input if none is given"
    )
    options = parser.parse_args()
    for path in options.args:
        if options.decompress:
            _unpack_file(path)
        else:
            _pack_file(path, 1 if options.fast else _BEST if options.best else 6)


def _pack_file(path: str, level: int) -> None:
    import shutil

    if path == "-":
        with GzipFile(filename="", mode=WRITE, fileobj=sys.stdout.buffer, compresslevel=level) as packed:
            shutil.copyfileobj(sys.stdin.buffer, packed, CHUNK)
        return
    with builtins.open(path, "rb") as plain, GzipFile(path + ".gz", WRITE, level) as packed:
        shutil.copyfileobj(plain, packed, CHUNK)


def _unpack_file(path: str) -> None:
    import shutil

    if path == "-":
        with GzipFile(fileobj=sys.stdin.buffer, mode=READ) as packed:
            shutil.copyfileobj(packed, sys.stdout.buffer, CHUNK)
        return
    if not path.endswith(".gz"):
        sys.exit(f"filename doesn't end in .gz: {path!r}")
    with GzipFile(path, READ) as packed, builtins.open(path.removesuffix(".gz"), "wb") as plain:
        shutil.copyfileobj(packed, plain, CHUNK)


if __name__ == "__main__":
    main()
