"""The types of `offlock._offlock.pipeline`."""

from collections.abc import Callable
from os import PathLike
from types import TracebackType
from typing import Self, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, disjoint_base

from ._offlock import Cancel, ModelTokenizer, PackedTokens
from ._types import Eos, TokenFiles
from .pipeline import RecordError

@final
class Shards:
    def __new__(cls, paths: list[str | PathLike[str]]) -> Self: ...
    @property
    def paths(self) -> tuple[str, ...]: ...
    @property
    def size(self) -> int: ...
    @classmethod
    def unpacked(cls, packed: bytes) -> Self: ...
    def packed(self) -> bytes: ...

@disjoint_base
class Tokens:
    def __new__(
        cls,
        shards: Shards,
        *,
        field: tuple[str, ...],
        format: str | None,
        max_doc_bytes: int,
        on_error: str,
        num_threads: int,
        encoding: str | None,
        model: str | None,
        tokenizer: str | PathLike[str] | ModelTokenizer | None,
    ) -> Self: ...
    @property
    def name(self) -> str:
        """The name of the encoding, or the path of the tokenizer."""

    def count(
        self, *, progress: Callable[[int, int], object] | None = None, cancel: Cancel | None = None
    ) -> Summary:
        """Counts the documents and their tokens.

        ``progress`` is called now and then, and at the end, with the bytes of the shards that have been read and those of
        all shards, on the calling thread; what it raises ends the call. ``cancel``, an ``offlock.Cancel``, ends the call
        from another thread.

        Raises ``RecordError`` for the first record that fails, unless they are left out, and ``OSError``.
        """

    def write(
        self,
        folder: str | PathLike[str],
        *,
        output: TokenFiles,
        eos: Eos | None = None,
        eos_token: str = "<|endoftext|>",
        resume: bool = False,
        part: tuple[int, int] | None = None,
        progress: Callable[[int, int], object] | None = None,
        cancel: Cancel | None = None,
    ) -> Summary:
        """Writes the tokens of each shard to files in a folder.

        ``output`` is ``"megatron"``, ``"datatrove"``, ``"llmc"``, ``"nanogpt"``, ``"dolma"``, ``"mds"`` or ``"parquet"``.
        The special token ``eos_token`` separates documents: ``eos`` is ``"append"``, ``"prepend"`` or ``"none"``, by
        default as the format's own writer does. A file gets its name when it is complete and on the disk; ``resume``
        continues an earlier run, and leaves the shards alone that it finished. ``progress`` and ``cancel`` are as for
        ``count``.

        ``part=(index, count)`` writes every ``count``-th shard only, from that of ``index`` on, beside other processes,
        which write the other parts. Finished shards are left alone. Once all parts are written, ``resume=True`` without
        ``part`` writes the list of all results.

        Raises ``RecordError`` for the first record that fails, unless they are left out; ``ValueError`` for a folder
        with other results, for one to which another run writes, and when the format cannot hold the vocabulary; and
        ``OSError``.
        """

    def prepare(
        self,
        folder: str | PathLike[str],
        *,
        output: TokenFiles,
        eos: Eos | None = None,
        eos_token: str = "<|endoftext|>",
        resume: bool = False,
    ) -> None:
        """Makes a folder ready for the parts of a run: checks everything that ``write`` would check before it reads a shard,
        with the same arguments, and removes what an earlier run has not finished.

        Raises ``ValueError`` and ``OSError`` as ``write`` does.
        """

    def batches(self) -> Batches:
        """Starts threads that encode the documents, and returns an iterator over batches of them, in order.

        The threads work ahead by a few batches of about 1 MB of records, and wait while nobody takes one.
        """

@final
class Batches:
    """An iterator over batches of documents, which threads of its own encode ahead. Threads can share it.

    As a context manager it ends these threads. They also end when the iterator is collected.
    """

    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
    def next(self, *, cancel: Cancel | None = None) -> Batch | None:
        """Returns the next batch; ``None`` behind the last one, after an error and after ``close``.

        ``cancel``, an ``offlock.Cancel``, ends the wait from another thread; no batch is lost.
        """

    def close(self) -> None:
        """Ends the threads. Batches that were not taken are dropped."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        type: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...
    @property
    def bytes_read(self) -> int:
        """The number of bytes of the shards that have been read so far, as they are on the disk."""

    @property
    def bytes_total(self) -> int:
        """The size of all shards in bytes."""

@final
class Batch:
    """The documents of about 1 MB of records of one shard. Immutable."""

    def __len__(self) -> int:
        """The number of documents."""

    @property
    def path(self) -> str:
        """The shard's file."""

    @property
    def tokens(self) -> PackedTokens:
        """The tokens of all documents, one document after the other: 4 bytes each in the machine's order, read-only,
        behind the buffer protocol."""

    @property
    def offsets(self) -> Buffer:
        """Where each document begins in ``tokens``, and the end of the last one: 8 bytes each."""

    @property
    def records(self) -> Buffer:
        """The number of each document's record in the shard, the first being 1; in formats of lines, that of the line: 8
        bytes each."""

    @property
    def bytes(self) -> int:
        """The bytes of the documents' texts."""

    @property
    def failed(self) -> int:
        """How many records between the documents failed and were left out."""

    @property
    def failures(self) -> tuple[RecordError, ...]:
        """What is wrong with them: a tuple of ``RecordError``, with ``on_error="report"``. At most 1,000 are kept."""

    def lists(self) -> list[list[int]]:
        """Returns the ids of each document, as a list of lists."""

    def to_numpy(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        """Returns ``tokens`` and ``offsets`` as read-only numpy arrays of ``uint32`` and ``uint64``, without a copy."""

@final
class Summary:
    """What a run over shards found out. Immutable."""

    @property
    def documents(self) -> int:
        """How many documents were encoded."""

    @property
    def bytes(self) -> int:
        """The bytes of their texts."""

    @property
    def tokens(self) -> int:
        """Their tokens, with those put before and after documents."""

    @property
    def failed(self) -> int:
        """How many records failed and were left out, and how many shards could not be read to their end."""

    @property
    def failures(self) -> tuple[RecordError, ...]:
        """What is wrong with them: a tuple of ``RecordError``, with ``on_error="report"``. At most 1,000 are kept."""

    def _written_elsewhere(self, resumed: int, failures: tuple[RecordError, ...]) -> Self: ...
    @property
    def resumed(self) -> int:
        """How many shards an earlier run had finished."""

    @property
    def longest(self) -> int:
        """The tokens of the longest document."""

    def percentile(self, percent: float) -> int:
        """Returns the least number of tokens that at least ``percent`` of the documents do not exceed; 0 without
        documents.

        Raises ``ValueError`` when ``percent`` is not between 0 and 100.
        """

    @property
    def shards(self) -> tuple[ShardSummary, ...]:
        """The shards in their order: a tuple of ``ShardSummary``."""

@final
class ShardSummary:
    """What became of one shard. Immutable."""

    @property
    def path(self) -> str:
        """The file that was read."""

    @property
    def documents(self) -> int:
        """How many documents were encoded."""

    @property
    def bytes(self) -> int:
        """The bytes of their texts."""

    @property
    def tokens(self) -> int:
        """Their tokens, with those put before and after documents."""

    @property
    def failed(self) -> int:
        """How many records failed and were left out."""

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files that were written, below the folder."""
