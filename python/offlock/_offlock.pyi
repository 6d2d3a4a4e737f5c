"""The types of `offlock._offlock`."""

from collections.abc import Callable, Collection, Iterable, Sequence
from types import ModuleType
from typing import Literal, Self, TypeVar, final

from typing_extensions import Buffer, disjoint_base

from . import _jsonl, _lock, _pipeline, _strings, _zlib, _zstd
from ._types import Release

_Made = TypeVar("_Made")

jsonl = _jsonl
lock = _lock
pipeline = _pipeline
strings = _strings
zlib = _zlib
zstd = _zstd

__VERSION__: str
INTERNALS: list[str]
msgpack: ModuleType
ENCODING_NAMES: list[str]
MODELS: list[tuple[str, str]]
MODEL_PREFIXES: list[tuple[str, str]]

def run_cli(arguments: Sequence[str]) -> int: ...

class InternalError(RuntimeError): ...

@final
class Cancel:
    def __new__(cls) -> Self: ...
    def cancel(self) -> None: ...
    @property
    def cancelled(self) -> bool: ...

@final
class PackedTokens(Buffer):
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...

@final
class PackedIntegers(Buffer):
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Stream:
    def feed(
        self, piece: str | Buffer, *, release: Release = "auto", cancel: Cancel | None = None
    ) -> list[int]: ...
    def count(
        self, piece: str | Buffer, *, release: Release = "auto", cancel: Cancel | None = None
    ) -> int: ...
    def finish(self, *, release: Release = "auto", cancel: Cancel | None = None) -> list[int]: ...
    def total(self, *, release: Release = "auto", cancel: Cancel | None = None) -> int: ...
    @property
    def final_count(self) -> int: ...
    @property
    def pending(self) -> int: ...

@disjoint_base
class Tokenizer:
    def __new__(cls) -> Self: ...
    def _load(self, name: str) -> None: ...
    def _build(
        self, name: str, pat_str: str, mergeable_ranks: dict[bytes, int], special_tokens: dict[str, int]
    ) -> None: ...
    def _adopt(self, other: Tokenizer) -> None: ...
    def _pattern(self) -> str: ...
    def _ranks(self) -> dict[bytes, int]: ...
    def _specials(self) -> dict[str, int]: ...
    def _max_token(self) -> int: ...
    def encode_ordinary(
        self, text: str, *, release: Release = "auto", cancel: Cancel | None = None
    ) -> list[int]: ...
    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Collection[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[int]: ...
    def encode_packed(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Collection[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> PackedTokens: ...
    def count(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Collection[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> int: ...
    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        allowed_special: Literal["all"] | Collection[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> str: ...
    def _chunks(
        self,
        text: str,
        max_tokens: int,
        make: Callable[[str, int, int, int], _Made],
        *,
        overlap: int = 0,
        boundary: str = "token",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[_Made]: ...
    def stream(
        self, *, allowed_special: Literal["all"] | Collection[str] = ..., limit: int | None = None
    ) -> Stream: ...
    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Literal["all"] | Collection[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[list[int]]: ...
    def encode_ordinary_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[list[int]]: ...
    def count_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Literal["all"] | Collection[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[int]: ...
    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Collection[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> tuple[list[int], list[list[int]]]: ...
    def encode_single_token(self, text_or_bytes: str | bytes) -> int: ...
    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]: ...
    def _encode_bytes(self, text: bytes) -> list[int]: ...
    def decode_bytes(
        self, tokens: Sequence[int] | Buffer, *, release: Release = "auto", cancel: Cancel | None = None
    ) -> bytes: ...
    def decode(
        self,
        tokens: Sequence[int] | Buffer,
        errors: str = "replace",
        *,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> str: ...
    def decode_with_offsets(self, tokens: Iterable[int] | Buffer) -> tuple[str, list[int]]: ...
    def decode_batch(
        self,
        batch: Iterable[Sequence[int] | Buffer],
        *,
        errors: str = "replace",
        num_threads: int | None = 8,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[str]: ...
    def decode_bytes_batch(
        self,
        batch: Iterable[Sequence[int] | Buffer],
        *,
        num_threads: int | None = 8,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[bytes]: ...
    def decode_single_token_bytes(self, token: int) -> bytes: ...
    def decode_tokens_bytes(self, tokens: Iterable[int] | Buffer) -> list[bytes]: ...
    def token_byte_values(self) -> list[bytes]: ...

@disjoint_base
class ModelTokenizer:
    def __new__(
        cls, content: bytes, pattern: str | None = None, special_tokens: dict[str, int] | None = None
    ) -> Self: ...
    def stream(
        self,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        limit: int | None = None,
    ) -> Stream: ...
    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[int]: ...
    def encode_packed(
        self,
        text: str,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> PackedTokens: ...
    def encode_with_offsets(
        self,
        text: str,
        *,
        unit: Literal["characters", "bytes"] = "characters",
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> tuple[list[int], list[tuple[int, int]]]: ...
    def count(
        self,
        text: str,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> int: ...
    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> str: ...
    def _chunks(
        self,
        text: str,
        max_tokens: int,
        make: Callable[[str, int, int, int], _Made],
        *,
        overlap: int = 0,
        boundary: str = "token",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[_Made]: ...
    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        num_threads: int | None = 8,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[list[int]]: ...
    def count_batch(
        self,
        texts: Iterable[str],
        *,
        num_threads: int | None = 8,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[int]: ...
    def _encode_padded(
        self,
        texts: Iterable[str],
        *,
        max_length: int | None,
        truncation_side: str,
        length: int | None,
        multiple_of: int,
        pad_token: int,
        padding_side: str,
        num_threads: int | None,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Cancel | None,
    ) -> tuple[PackedIntegers, PackedIntegers, int, int]: ...
    def decode_bytes(
        self,
        tokens: Sequence[int] | Buffer,
        *,
        skip_special_tokens: bool = True,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> bytes: ...
    def decode(
        self,
        tokens: Sequence[int] | Buffer,
        errors: str = "replace",
        *,
        skip_special_tokens: bool = True,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> str: ...
    def decode_batch(
        self,
        batch: Iterable[Sequence[int] | Buffer],
        *,
        errors: str = "replace",
        skip_special_tokens: bool = True,
        num_threads: int | None = 8,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[str]: ...
    def decode_bytes_batch(
        self,
        batch: Iterable[Sequence[int] | Buffer],
        *,
        skip_special_tokens: bool = True,
        num_threads: int | None = 8,
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[bytes]: ...
    def token_to_id(self, token: str) -> int | None: ...
    def id_to_token(self, id: int) -> str | None: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def added_tokens(self) -> dict[str, int]: ...
