"""The types of `offlock._offlock.zstd`."""

from collections.abc import Iterable
from typing import Final, Self, final

from typing_extensions import Buffer

from ._offlock import Cancel
from ._types import Release

zstd_version: Final[str]
zstd_version_number: Final[int]

def compress(
    data: Buffer,
    level: int | None = None,
    options: dict[int, int] | None = None,
    zstd_dict: ZstdDict | tuple[ZstdDict, int] | None = None,
    *,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> bytes: ...
def decompress(
    data: Buffer,
    zstd_dict: ZstdDict | tuple[ZstdDict, int] | None = None,
    options: dict[int, int] | None = None,
    *,
    max_output: int | None = None,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> bytes: ...
def train_dict(samples: Iterable[Buffer], dict_size: int, *, cancel: Cancel | None = None) -> bytes: ...
def finalize_dict(
    zstd_dict: ZstdDict,
    samples: Iterable[Buffer],
    dict_size: int,
    level: int,
    *,
    cancel: Cancel | None = None,
) -> bytes: ...
def get_frame_size(frame_buffer: Buffer) -> int: ...
def frame_info(frame_buffer: Buffer) -> tuple[int | None, int]: ...
def bounds(parameter: int, is_compress: bool) -> tuple[int, int]: ...

@final
class ZstdCompressor:
    CONTINUE: Final = 0
    FLUSH_BLOCK: Final = 1
    FLUSH_FRAME: Final = 2
    def __new__(
        cls,
        level: int | None = None,
        options: dict[int, int] | None = None,
        zstd_dict: ZstdDict | tuple[ZstdDict, int] | None = None,
    ) -> Self: ...
    def compress(self, data: Buffer, mode: int = 0) -> bytes: ...
    def flush(self, mode: int = 2) -> bytes: ...
    def set_pledged_input_size(self, size: int | None, /) -> None: ...
    @property
    def last_mode(self) -> int: ...

@final
class ZstdDecompressor:
    def __new__(
        cls,
        zstd_dict: ZstdDict | tuple[ZstdDict, int] | None = None,
        options: dict[int, int] | None = None,
        *,
        max_output: int | None = None,
    ) -> Self: ...
    def decompress(self, data: Buffer, max_length: int = -1) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...

@final
class ZstdDict:
    def __new__(cls, dict_content: Buffer, /, *, is_raw: bool = False) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def dict_content(self) -> bytes: ...
    @property
    def dict_id(self) -> int: ...
    @property
    def as_digested_dict(self) -> tuple[Self, int]: ...
    @property
    def as_undigested_dict(self) -> tuple[Self, int]: ...
    @property
    def as_prefix(self) -> tuple[Self, int]: ...
