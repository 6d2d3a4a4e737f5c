"""From compressed shards of documents to token counts, batches or files, without the interpreter lock.

:func:`read` names shards of JSON lines, MessagePack maps or text, which may be compressed with gzip or Zstandard, or of
Parquet. They are read, decompressed, parsed and encoded in one pass on several threads, while the threads of the program
run. No Python object is made of a document, and memory does not grow with the size of the shards::

    tokens = pipeline.read("corpus/").field("text").tokens("o200k_base")
    tokens.count().tokens
    tokens.write("out/", output="megatron")
    for batch in tokens:
        ids, offsets = batch.to_numpy()

The command ``offlock tokens`` does the same from a shell. :mod:`offlock.ray` and :mod:`offlock.datatrove` write the files of
one run on many machines; ``part`` of :meth:`Tokens.write` does that with any other engine.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from offlock import _aio
from offlock._offlock import pipeline as _native

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from typing import Self

    from offlock._types import Eos, TokenFiles
    from offlock.tokenizer import Tokenizer

Batch = _native.Batch
Batches = _native.Batches
ShardSummary = _native.ShardSummary
Summary = _native.Summary

__all__ = ["Batch", "Batches", "Corpus", "RecordError", "ShardSummary", "Summary", "Tokens", "read"]

ANY_SIZE = 1 << 62
"""The size of shards for ``_aio``: reading files takes long enough for another thread."""


class _Options(NamedTuple):
    """How shards are read."""

    format: str | None
    max_doc_bytes: int
    on_error: str
    num_threads: int


class _Encoder(NamedTuple):
    """What encodes the texts: one of these."""

    encoding: str | None
    model: str | None
    tokenizer: str | os.PathLike[str] | Tokenizer | None


class RecordError(ValueError):
    """A record or a shard that cannot be read."""

    path: str
    """The shard's file."""
    record: int | None
    """The number of the record, the first being 1; in formats of lines, that of the line. ``None`` when it is not known
    which record failed."""
    offset: int | None
    """The offset of the record's first byte in the decompressed data; for Parquet, that of the page with its text in the file."""

    def __init__(self, message: str, path: str, record: int | None, offset: int | None) -> None:
        super().__init__(message)
        self.path, self.record, self.offset = path, record, offset

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.path, self.record, self.offset)


class Tokens(_native.Tokens):
    """The tokens of the documents in shards: counted, written to files, or in batches. Immutable.

    :meth:`Corpus.tokens` makes it. Iterating over it starts threads that encode ahead, see :meth:`batches`. They end with
    the iterator; ``async for`` waits for a batch without blocking the event loop. It can be pickled, for other processes:
    they read the same shards, also if the folders have changed.
    """

    _corpus: Corpus
    _encoder: _Encoder

    def __new__(cls, corpus: Corpus, encoder: _Encoder) -> Self:
        options = corpus._options._asdict() | encoder._asdict()
        self = super().__new__(cls, corpus._shards, field=corpus._field, **options)
        self._corpus, self._encoder = corpus, encoder
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._corpus, self._encoder)

    @property
    def corpus(self) -> Corpus:
        """The shards."""
        return self._corpus

    def __iter__(self) -> Iterator[Batch]:
        with self.batches() as batches:
            yield from batches

    async def __aiter__(self) -> AsyncIterator[Batch]:
        with self.batches() as batches:
            while (batch := await _aio.run(ANY_SIZE, lambda cancel: batches.next(cancel=cancel))) is not None:
                yield batch

    async def acount(self) -> Summary:
        """``count`` for asyncio: the event loop runs meanwhile. Cancelling the await ends the work."""
        return await _aio.run(ANY_SIZE, lambda cancel: self.count(cancel=cancel))

    async def awrite(
        self,
        folder: str | os.PathLike[str],
        *,
        output: TokenFiles,
        eos: Eos | None = None,
        eos_token: str = "<|endoftext|>",
        resume: bool = False,
        part: tuple[int, int] | None = None,
    ) -> Summary:
        """``write`` for asyncio; see :meth:`acount`."""
        return await _aio.run(
            ANY_SIZE,
            lambda cancel: self.write(
                folder, output=output, eos=eos, eos_token=eos_token, resume=resume, part=part, cancel=cancel
            ),
        )


class Corpus:
    """Shards, and which of their fields has the text. Immutable; made by :func:`read`."""

    def __init__(self, shards: _native.Shards, field: tuple[str, ...], options: _Options) -> None:
        self._shards, self._field, self._options = shards, field, options

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, in the order in which they are read."""
        return self._shards.paths

    @property
    def size(self) -> int:
        """The size of the files in bytes."""
        return self._shards.size

    def field(self, *keys: str) -> Corpus:
        """Takes the text from another field: ``field("data", "text")`` is the field ``text`` of the map in ``data``.

        Of equal keys the last one counts. Formats without records have no fields.
        """
        if not keys or not all(isinstance(key, str) for key in keys):
            raise TypeError("field takes the keys that lead to the text, as str")
        return Corpus(self._shards, keys, self._options)

    def tokens(
        self,
        encoding: str | None = None,
        *,
        model: str | None = None,
        tokenizer: str | os.PathLike[str] | Tokenizer | None = None,
    ) -> Tokens:
        """Chooses what encodes the texts.

        ``encoding`` is the name of a public encoding (default: ``"o200k_base"``). Instead of it, ``model`` is the name of
        an OpenAI model, or ``tokenizer`` a :class:`~offlock.tokenizer.Tokenizer`, the ``tokenizer.json`` or
        ``tekken.json`` of a model, or the folder that has one. The texts of special tokens are ordinary text, and a tokenizer's template is not applied.

        Raises ``ValueError`` for an unknown name and for a tokenizer that cannot be used, and ``OSError``.
        """
        return Tokens(self, _Encoder(encoding, model, tokenizer))

    def _with_threads(self, num_threads: int) -> Corpus:
        return Corpus(self._shards, self._field, self._options._replace(num_threads=num_threads))

    def __reduce__(self) -> tuple[object, ...]:
        return _unpacked, (self._shards.packed(), self._field, self._options)

    def __repr__(self) -> str:
        return f"<Corpus of {len(self.paths)} shards, {self.size} bytes>"


def _unpacked(packed: bytes, field: tuple[str, ...], options: _Options) -> Corpus:
    """Unpickles a corpus."""
    return Corpus(_native.Shards.unpacked(packed), field, options)


def read(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: Literal["jsonl", "msgpack", "lines", "text", "parquet"] | None = None,
    max_doc_bytes: int = 64 << 20,
    on_error: Literal["fail", "skip", "report"] = "fail",
    num_threads: int | None = None,
) -> Corpus:
    """Finds the shards to read: files, or the shards below folders. Their content is read later.

    ``format`` is what the shards hold; by default their names tell that, or else their contents. ``max_doc_bytes`` is the
    greatest length of a record: a longer one fails. ``on_error`` says what happens to records that fail: the first one
    raises :class:`RecordError` (``"fail"``), they are left out and counted (``"skip"``), or the results have their errors
    as well (``"report"``). ``num_threads`` is the most threads that work; by default, one for each processor.

    Raises ``OSError`` for a path that is not there, and ``ValueError`` for a folder without shards.
    """
    if max_doc_bytes < 1:
        raise ValueError(f"max_doc_bytes must be at least 1, it is {max_doc_bytes}")
    if num_threads is not None and num_threads < 1:
        raise ValueError(f"num_threads must be at least 1, it is {num_threads}")
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    options = _Options(format, max_doc_bytes, on_error, num_threads or 0)
    return Corpus(_native.Shards(listed), ("text",), options)
