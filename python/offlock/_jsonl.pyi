"""The types of `offlock._offlock.jsonl`."""

from collections.abc import Sequence
from typing import TypeAlias, overload

from typing_extensions import Buffer

from ._offlock import Cancel
from ._types import Release

_Column: TypeAlias = list[str | int | float | bool | None]

@overload
def extract(  # type: ignore[overload-overlap]  # a str is a sequence of str
    data: Buffer | str,
    fields: str,
    *,
    max_doc_bytes: int = 67108864,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> _Column: ...
@overload
def extract(
    data: Buffer | str,
    fields: Sequence[str | Sequence[str]],
    *,
    max_doc_bytes: int = 67108864,
    release: Release = "auto",
    cancel: Cancel | None = None,
) -> tuple[_Column, ...]: ...
