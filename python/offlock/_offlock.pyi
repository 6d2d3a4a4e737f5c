from collections.abc import Collection, Iterable, Sequence, Set
from os import PathLike
from types import ModuleType
from typing import Literal, Self, TypeAlias, final

from typing_extensions import Buffer

from . import _zlib

Release: TypeAlias = Literal["auto", "always", "never"]

zlib = _zlib

__VERSION__: str
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

class Tokenizer:
    def __new__(cls, *args: object, **kwargs: object) -> Self: ...
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
        allowed_special: Literal["all"] | Set[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[int]: ...
    def encode_packed(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Set[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> PackedTokens: ...
    def count(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Set[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> int: ...
    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        allowed_special: Literal["all"] | Set[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> str: ...
    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Literal["all"] | Set[str] = ...,
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
        allowed_special: Literal["all"] | Set[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        release: Release = "auto",
        cancel: Cancel | None = None,
    ) -> list[int]: ...
    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Set[str] = ...,
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

@final
class lock:
    @final
    class Recorder:
        def __new__(
            cls,
            path: str | PathLike[str] | None,
            about: Sequence[tuple[str, str]],
            threads: Sequence[tuple[int, str]],
            limit: int | None = None,
        ) -> Self: ...
        def stop(self, threads: Sequence[tuple[int, str]]) -> tuple[int, int, int] | None: ...
        @staticmethod
        def from_environment(
            about: Sequence[tuple[str, str]], threads: Sequence[tuple[int, str]]
        ) -> lock.Recorder | None: ...
        def summary(self) -> tuple[str, str] | None: ...
        @property
        def is_running(self) -> bool: ...

    @final
    class Sampler:
        def __new__(cls, has_lock: bool) -> Self: ...
        def round(self, seconds: float, ended: dict[int, int]) -> None: ...

    @staticmethod
    def obstacle() -> str | None: ...
    @staticmethod
    def name_thread(native_id: int, name: str) -> None: ...
    @staticmethod
    def on_gc(phase: str, info: dict[str, int], /) -> None: ...
    @staticmethod
    def mark_begin(name: str) -> None: ...
    @staticmethod
    def mark_end() -> None: ...
    @staticmethod
    def enable(name: str) -> str | None: ...
    @staticmethod
    def disable(name: str) -> None: ...
    @staticmethod
    def is_enabled(name: str) -> bool: ...
    @staticmethod
    def global_numbers() -> tuple[int, int]: ...
    @staticmethod
    def reset_global() -> None: ...
    @staticmethod
    def waiting() -> int: ...
    @staticmethod
    def reset_waiting() -> None: ...
    @staticmethod
    def local_numbers(native_id: int) -> tuple[int, int, int]: ...
    @staticmethod
    def reset_local(native_id: int) -> None: ...
    @staticmethod
    def waits(native_id: int | None = None) -> list[tuple[int, int]]: ...

StringKind: TypeAlias = Literal["str", "block", "view"]
StringOptions: TypeAlias = tuple[StringKind, type[object], Release, Cancel | None]

@final
class strings:
    @final
    class Arena:
        """Strings that are found, checked and stored, but not made yet.

        Comes from the operations of offlock.strings with ``into=Arena``. To make the same strings again, or some
        time later, costs only the making. Immutable; to be shared between threads.
        """

        def __len__(self) -> int:
            """How many strings there are, nulls included."""

        @property
        def nbytes(self) -> int:
            """How many bytes they take."""

        def tuple(
            self, kind: StringKind = "view", *, release: Release = "auto", cancel: Cancel | None = None
        ) -> tuple[str, ...]:
            """The strings in a new tuple."""

        def list(
            self, kind: StringKind = "view", *, release: Release = "auto", cancel: Cancel | None = None
        ) -> list[str]:
            """The strings in a new list."""

    @staticmethod
    def view_class() -> type[str]: ...
    @staticmethod
    def lines(buffer: Buffer, newline: str | None, keepends: bool, options: StringOptions, /) -> object: ...
    @staticmethod
    def split(buffer: Buffer, separator: str | Buffer, options: StringOptions, /) -> object: ...
    @staticmethod
    def columns(buffer: Buffer, separator: str | Buffer, options: StringOptions, /) -> object: ...
    @staticmethod
    def from_offsets(
        buffer: Buffer, offsets: Buffer | Sequence[int], options: StringOptions, /
    ) -> object: ...
    @staticmethod
    def from_arrow(array: object, options: StringOptions, /) -> object: ...
    @staticmethod
    def decode_many(items: Iterable[Buffer], options: StringOptions, /) -> object: ...
    @staticmethod
    def unavailable() -> list[tuple[StringKind, str | None]]: ...
    @staticmethod
    def enable_blocks() -> None: ...
    @staticmethod
    def compact(strings: Iterable[str], into: type[object], /) -> object: ...
    @staticmethod
    def retained(strings: Iterable[str], /) -> int: ...
    @staticmethod
    def blocks() -> tuple[int, int, int]: ...
