"""Names for the work of a thread."""

from __future__ import annotations

from contextlib import ContextDecorator

from .._offlock import lock as _native


class mark(ContextDecorator):
    """Name the work of the calling thread in a block, or in each call of a decorated function, for the report.

    Costs almost nothing while no trace is running.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> mark:
        _native.mark_begin(self.name)
        return self

    def __exit__(self, *_: object) -> None:
        _native.mark_end()
