"""The class :class:`Encoding`."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from offlock import _aio, _offlock
from offlock._chunks import Chunk, placed
from offlock._offlock import Cancel, Tokenizer

from . import plugins

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    import numpy.typing as npt

    from offlock._types import Boundary, Release


T = TypeVar("T")


class _kept(Generic[T]):
    """An attribute that is computed at its first use.

    Up to Python 3.11 ``functools.cached_property`` has one lock for all objects. If a thread holds it when another
    thread forks, the child waits forever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, encoding: Any, owner: object = None) -> T:
        if encoding is None:
            return cast("T", self)
        return cast("T", encoding.__dict__.setdefault(self.compute.__name__, self.compute(encoding)))


class Encoding(Tokenizer):
    """A tokenizer: converts text to token ids and back.

    It has a vocabulary, a pattern that splits text into pieces, and special tokens.

    :func:`offlock.tiktoken.get_encoding` returns the public encodings. Immutable; can be shared between threads.
    """

    def __new__(cls, *_arguments: object, **_keywords: object) -> Self:
        return super().__new__(cls)

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        """Makes a custom encoding.

        ``pat_str`` is the regular expression that matches one piece of text. ``mergeable_ranks`` maps the bytes of
        tokens to their ids, whose order is also the order of merges. ``special_tokens`` maps the texts of special
        tokens to their ids. ``explicit_n_vocab`` is the expected number of tokens. Raises ``AssertionError`` when the
        encoding has another number of tokens, and ``ValueError`` for an invalid pattern or vocabulary.
        """
        self.name = name
        self._pat_str = pat_str
        self._mergeable_ranks = mergeable_ranks
        self._special_tokens = special_tokens
        self._build(name, pat_str, mergeable_ranks, special_tokens)
        self.max_token_value = self._max_token()
        if explicit_n_vocab:
            self._check_n_vocab(explicit_n_vocab)

    @classmethod
    def _named(cls, name: str) -> Encoding:
        """Returns the encoding of that name, always the same object. Raises ``ValueError`` when there is none."""
        encoding = ENCODINGS.get(name)
        # Two threads may both make it; `setdefault` keeps the first. A lock could stay locked forever in a forked child.
        return encoding if encoding is not None else ENCODINGS.setdefault(name, cls._make(name))

    @classmethod
    def _make(cls, name: str) -> Encoding:
        if name in _offlock.ENCODING_NAMES:
            return cls._open(name)
        constructors = plugins.constructors()
        if name not in constructors:
            raise ValueError(
                f"Unknown encoding {name}.\n"
                f"Known encodings: {[*_offlock.ENCODING_NAMES, *constructors]}\n"
                f"Plugins found: {list(plugins.names())}"
            )
        return cls(**constructors[name]())

    @classmethod
    def _open(cls, name: str) -> Self:
        """Loads the public encoding ``name``."""
        encoding = cls.__new__(cls)
        encoding._load(name)
        encoding.name = name
        encoding._pat_str = encoding._pattern()
        encoding._special_tokens = encoding._specials()
        encoding.max_token_value = encoding._max_token()
        return encoding

    @_kept
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return self._ranks()

    def _check_n_vocab(self, expected: int) -> None:
        count = len(self._mergeable_ranks) + len(self._special_tokens)
        if count != expected:
            raise AssertionError(f"explicit_n_vocab is {expected}, but there are {count} tokens")
        if self.max_token_value != expected - 1:
            raise AssertionError(
                f"explicit_n_vocab is {expected}, but the greatest token is {self.max_token_value}"
            )

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Set[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
    ) -> npt.NDArray[np.uint32]:
        """Like ``encode``, but returns a read-only numpy array, without a copy of the ids."""
        import numpy as np

        packed = self.encode_packed(
            text, allowed_special=allowed_special, disallowed_special=disallowed_special, release=release
        )
        return np.frombuffer(packed, dtype=np.uint32)

    async def aencode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Set[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """``encode`` for asyncio.

        A long text is encoded on another thread while the event loop runs. Cancelling the await ends that work.
        """
        return await _aio.run(
            len(text),
            lambda cancel: self.encode(
                text, allowed_special=allowed_special, disallowed_special=disallowed_special, cancel=cancel
            ),
        )

    async def aencode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Literal["all"] | Set[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[list[int]]:
        """``encode_batch`` for asyncio; see :meth:`aencode`."""
        texts = list(text)
        return await _aio.run(
            sum(map(len, texts)),
            lambda cancel: self.encode_batch(
                texts,
                num_threads=num_threads,
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
                cancel=cancel,
            ),
        )

    async def acount(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Set[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> int:
        """``count`` for asyncio; see :meth:`aencode`."""
        return await _aio.run(
            len(text),
            lambda cancel: self.count(
                text, allowed_special=allowed_special, disallowed_special=disallowed_special, cancel=cancel
            ),
        )

    async def acount_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Literal["all"] | Set[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """``count_batch`` for asyncio; see :meth:`aencode`."""
        texts = list(text)
        return await _aio.run(
            sum(map(len, texts)),
            lambda cancel: self.count_batch(
                texts,
                num_threads=num_threads,
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
                cancel=cancel,
            ),
        )

    async def atruncate(
        self,
        text: str,
        max_tokens: int,
        *,
        allowed_special: Literal["all"] | Set[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> str:
        """``truncate`` for asyncio; see :meth:`aencode`."""
        return await _aio.run(
            len(text),
            lambda cancel: self.truncate(
                text,
                max_tokens,
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
                cancel=cancel,
            ),
        )

    def chunks(
        self,
        text: str,
        max_tokens: int,
        *,
        overlap: int = 0,
        boundary: Boundary = "token",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[Chunk]:
        """Cuts ``text`` into chunks of at most ``max_tokens`` tokens, each as long as it can be.

        The number of tokens of a chunk is that of its text encoded by itself, with special tokens treated as any
        other text. Without an overlap, the chunks joined are ``text``.

        ``boundary`` says where chunks end and begin: at a ``"token"`` that ends a piece of the encoding's pattern; a
        ``"word"``, so that words such as ``don't`` and numbers stay whole; a ``"sentence"`` (``.``, ``!``, ``?``, ``…``
        and closing quotes and brackets with white space behind, ``。``, ``！``, ``？``, or a blank line); a ``"line"``;
        or a ``"paragraph"``, which a blank line ends. Where a chunk has none of these, it ends at the next finer one,
        and within a piece only if that alone is too long.

        ``overlap`` is the largest number of tokens at the end of a chunk that the next one begins with.

        Raises ``ValueError`` when a number or ``boundary`` is out of range, or when one character has more than
        ``max_tokens`` tokens.
        """
        chunks = self._chunks(
            text, max_tokens, Chunk, overlap=overlap, boundary=boundary, release=release, cancel=cancel
        )
        return placed(text, chunks)

    async def achunks(
        self, text: str, max_tokens: int, *, overlap: int = 0, boundary: Boundary = "token"
    ) -> list[Chunk]:
        """``chunks`` for asyncio; see :meth:`aencode`."""
        return await _aio.run(
            len(text),
            lambda cancel: self.chunks(text, max_tokens, overlap=overlap, boundary=boundary, cancel=cancel),
        )

    async def adecode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """``decode`` for asyncio; see :meth:`aencode`."""
        return await _aio.run(len(tokens), lambda cancel: self.decode(tokens, errors, cancel=cancel))

    @property
    def eot_token(self) -> int:
        """The id of ``<|endoftext|>``. Raises ``KeyError`` when the encoding has none."""
        return self._special_tokens["<|endoftext|>"]

    @_kept
    def special_tokens_set(self) -> set[str]:
        """The texts of the special tokens."""
        return set(self._special_tokens)

    @_kept
    def _special_token_values(self) -> set[int]:
        return set(self._special_tokens.values())

    def is_special_token(self, token: int) -> bool:
        """Whether ``token`` is the id of a special token. Raises ``AssertionError`` when it is not an ``int``."""
        if not isinstance(token, int):
            raise AssertionError(f"token must be an int, not {token!r}")
        return token in self._special_token_values

    @property
    def n_vocab(self) -> int:
        """One more than the greatest id."""
        return self.max_token_value + 1

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """The same as ``encode_ordinary``; tiktoken has two implementations, offlock has one."""
        return self.encode_ordinary(text)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles with ``__getstate__`` in every protocol; protocols 0 and 1 would not support the native base class."""
        return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]

    def __getstate__(self) -> object:
        """Returns the name of an encoding of the registry; of any other, the arguments of ``__init__``."""
        if self is ENCODINGS.get(self.name):
            return self.name
        return {
            "name": self.name,
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
        }

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            Encoding.__init__(self, **state)
            return
        assert isinstance(state, str)
        original = Encoding._named(state)
        self._adopt(original)
        self.__dict__ = original.__dict__


ENCODINGS: dict[str, Encoding] = {}
"""The encodings that have been loaded by name, one object of each."""
