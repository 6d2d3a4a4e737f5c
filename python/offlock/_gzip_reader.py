"""The content of a gzip file as a raw file, and reports of progress: what the readers of `offlock.gzip` are made of."""

from __future__ import annotations

import io
import os

from ._offlock import zlib as _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing these takes longer than everything else
    from collections.abc import Iterator
    from typing import IO

    from typing_extensions import Buffer

    from ._types import FileProgress as Progress

READ_BUFFER_SIZE = 128 * 1024
CHUNK = 1 << 20
"""The bytes of content that are made at once when a whole file is read."""
REPORT_EVERY = 1 << 20
"""The bytes between two reports."""


class Report:
    """Reports progress to a callback: about every megabyte, and at the end."""

    def __init__(self, progress: Progress | None, total: int | None) -> None:
        self._progress = progress
        self._total = total
        self._told = 0

    @property
    def is_wanted(self) -> bool:
        return self._progress is not None

    def at(self, done: int) -> None:
        if self._progress is not None and done - self._told >= REPORT_EVERY:
            self._told = done
            self._progress(done, self._total)

    def end(self, done: int) -> None:
        if self._progress is not None and (done == 0 or done != self._told):
            self._told = done
            self._progress(done, self._total)


NO_REPORT = Report(None, None)


def file_size(file: IO[bytes]) -> int | None:
    """The size of a file, if it has one."""
    if isinstance(file, io.BytesIO):
        return file.getbuffer().nbytes
    try:
        return os.fstat(file.fileno()).st_size or None
    except (AttributeError, OSError):
        return None


class Reader(io.RawIOBase):
    """The raw file of a `BufferedReader`: the content of a gzip file."""

    def __init__(
        self, fp: IO[bytes], threads: int, max_output: int | None, progress: Progress | None
    ) -> None:
        self._fp = fp
        self._report = NO_REPORT if progress is None else Report(progress, file_size(fp))
        self._threads = threads
        self._max_output = max_output
        self._last_mtime: int | None = None
        self._size = -1
        self._begin()

    def _begin(self) -> None:
        self._decoder = _native.GzipDecompress(threads=self._threads, max_output=self._max_output)
        self._pos = self._packed = self._behind = 0
        self._lost = False

    def return_to(self, pos: int) -> bool:
        """Return to the start of an interrupted read, whose content is lost. False if the file is not seekable.

        The content before `pos` is decompressed again only by the next read.
        """
        try:
            self._fp.seek(0)
        except (AttributeError, OSError):
            self._lost = True
            return False
        self._begin()
        self._pos = self._behind = pos
        return True

    def _catch_up(self) -> None:
        if self._lost:
            raise OSError("a read was interrupted, and the file cannot be read again from its beginning")
        while self._behind:
            self._behind -= len(self._decode(min(self._behind, CHUNK)))

    closed = False  # Not a property: a `BufferedReader` reads it at every line.

    def close(self) -> None:
        self.closed = True
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True  # forwards, even if the file is not seekable

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return self.readall()
        if self._behind or self._lost:
            self._catch_up()
        if not size or self._pos == self._size:
            return b""
        plain = self._decode(size)
        if not plain:
            self._finish()
            return b""
        self._last_mtime = self._decoder.mtime
        self._pos += len(plain)
        return plain

    def _decode(self, size: int) -> bytes:
        """Decompress up to `size` bytes; none at the end."""
        while True:
            needed = self._decoder.needs_input
            packed = self._read_packed() if needed else b""
            plain = self._decoder.decompress(packed, size)
            if plain or (needed and not packed):
                return plain

    def _read_packed(self) -> bytes:
        # Report before the next read: if the callback raises, nothing is lost.
        self._report.at(self._packed)
        packed = self._fp.read(self._decoder.window or READ_BUFFER_SIZE)
        self._packed += len(packed)
        return packed

    def _finish(self) -> None:
        self._decoder.check_end()
        self._size = self._pos
        self._last_mtime = self._decoder.mtime
        self._report.end(self._packed)

    def readinto(self, buffer: Buffer) -> int:
        with memoryview(buffer) as view, view.cast("B") as octets:
            plain = self.read(min(len(octets), READ_BUFFER_SIZE))
            octets[: len(plain)] = plain
        return len(plain)

    def readall(self) -> bytes:
        return _native.joined(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Yield the rest, in pieces. Each is copied with the lock held, which takes well below a millisecond."""
        while chunk := self.read(CHUNK):
            yield chunk

    def tell(self) -> int:
        return self._pos

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_CUR:
            offset += self._pos
        elif whence == io.SEEK_END:
            if self._size < 0:
                while self.read(io.DEFAULT_BUFFER_SIZE):
                    pass
            offset += self._size
        elif whence != io.SEEK_SET:
            raise ValueError(f"Invalid value for whence: {whence}")
        if offset < self._pos or self._lost:
            self._fp.seek(0)
            self._begin()
        while self._pos < offset and self.read(min(io.DEFAULT_BUFFER_SIZE, offset - self._pos)):
            pass
        return self._pos
