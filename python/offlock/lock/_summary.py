"""The results of a trace."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True)
class Stats:
    """The size of a trace, and how much of it is missing.

    Attributes:
        events: the number of events recorded.
        lost: the number of events missing, because threads filled the buffers faster than the writer emptied
            them, or because the trace reached its limit.
        bytes: the size of the trace in bytes.
    """

    events: int
    lost: int
    bytes: int


class Summary:
    """The results of a trace: times per thread, which threads made which others wait, and findings."""

    def __init__(self, text: str, json_text: str) -> None:
        self._text = text
        self._json = json_text

    def to_dict(self) -> dict[str, Any]:
        """Returns all numbers, times in nanoseconds. The keys are those of ``offlock export --format json``."""
        return cast(dict[str, Any], json.loads(self._json))

    def to_json(self) -> str:
        """Returns the contents of `to_dict` as JSON."""
        return self._json

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        numbers = self.to_dict()
        counts = (f"{len(numbers[kind])} {kind}" for kind in ("threads", "locks", "findings"))
        return f"<Summary: {numbers['length'] / 1e9:.3g} s, {numbers['events']} events, {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        return f'<pre style="overflow-x: auto; white-space: pre">{html.escape(self._text)}</pre>'
