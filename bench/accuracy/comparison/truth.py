"""The truth about a program, from its own notes: how long others waited for each line."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

LONG = 5_000_000
"""Waits of more ns than this are to have a stack."""


class Frame(NamedTuple):
    """A line that was executed; the function without its class or module."""

    function: str
    file: str
    line: int

    @classmethod
    def of(cls, function: str, file: str, line: int) -> Frame:
        bare = re.sub(r"^(?:(?:block|rescue|ensure)(?: \(\d+ levels\))? in )+", "", function)
        return cls(re.split(r"[.#]", bare)[-1], file, line)


class Place(NamedTuple):
    """The lines of a function that held the lock."""

    function: str
    file: str
    first: int
    last: int

    def is_function_of(self, frame: Frame) -> bool:
        return (self.function, self.file) == frame[:2]

    def is_line_of(self, frame: Frame) -> bool:
        return self.is_function_of(frame) and self.first <= frame.line <= self.last


class Span(NamedTuple):
    """A time in ns of the monotonic clock."""

    begin: int
    end: int

    def within(self, other: Span) -> Span | None:
        begin, end = max(self.begin, other.begin), min(self.end, other.end)
        return Span(begin, end) if begin < end else None


class Waiting:
    """How long all threads together have waited up to a time."""

    def __init__(self, waits: Iterable[Span]) -> None:
        edges = sorted(edge for wait in waits for edge in ((wait.begin, 1), (wait.end, -1)))
        self._times = [time for time, _ in edges]
        self._counts = list(accumulate(step for _, step in edges))
        steps = (
            count * (after - before)
            for count, before, after in zip(self._counts, self._times, self._times[1:], strict=False)
        )
        self._sums = list(accumulate(steps, initial=0))

    def during(self, span: Span) -> int:
        return self._until(span.end) - self._until(span.begin)

    def _until(self, time: int) -> int:
        at = bisect_right(self._times, time) - 1
        return 0 if at < 0 else self._sums[at] + self._counts[at] * (time - self._times[at])


@dataclass
class Truth:
    """What happened: which place held the lock when, and who waited."""

    elapsed: int
    span: Span
    holds: list[tuple[Span, Place]]
    waits: list[Span]
    waiting: Waiting
    lost: Mapping[Place, int]
    """How long others waited for each place."""
    held: Mapping[Place, int]

    @classmethod
    def read(cls, path: Path) -> Truth:
        notes = json.loads(path.read_text(encoding="utf-8"))
        threads = [_Thread(each) for each in notes["threads"]]
        for thread in threads:
            if thread.gaps:
                thread.settle([other for other in threads if other is not thread])
        holds = sorted(hold for thread in threads for hold in thread.holds if hold[0].begin < hold[0].end)
        waits = sorted(wait for thread in threads for wait in thread.waits)
        waiting = Waiting(waits)
        lost: dict[Place, int] = defaultdict(int)
        held: dict[Place, int] = defaultdict(int)
        for span, place in holds:
            lost[place] += waiting.during(span)
            held[place] += span.end - span.begin
        span = Span(holds[0][0].begin, holds[-1][0].end)
        return cls(notes["elapsed"], span, holds, waits, waiting, lost, held)

    def has_line(self, frame: Frame, place: Place) -> bool:
        """Whether a frame is on a line of a place, be it of a function in C that has the line of its caller."""
        return frame.file == place.file and place.first <= frame.line <= place.last

    def place_of(self, frame: Frame) -> Place | None:
        """The place with this line, otherwise one of the function."""
        places = [place for place in self.held if place.is_function_of(frame)]
        return next((place for place in places if place.is_line_of(frame)), places[0] if places else None)

    def holders_during(self, span: Span) -> Mapping[Place, int]:
        """For how long each place held the lock in a time."""
        times: dict[Place, int] = defaultdict(int)
        for hold, place in self.holds:
            if common := hold.within(span):
                times[place] += common.end - common.begin
        return times


class _Thread:
    """The notes of a thread."""

    def __init__(self, notes: Mapping[str, list[list[object]]]) -> None:
        self.holds = [(Span(begin, end), _place(where)) for begin, end, *where in notes["holds"]]  # type: ignore[arg-type]
        self.waits = [Span(*wait) for wait in notes["waits"]]  # type: ignore[arg-type]
        self.gaps = [(Span(begin, end), _place(where)) for begin, end, *where in notes["gaps"]]  # type: ignore[arg-type]
        self.others = [Span(*other) for other in notes["others"]]  # type: ignore[arg-type]
        self._own = [span for span, _ in self.holds]

    def settle(self, threads: list[_Thread]) -> None:
        """Tell the gaps of loops: the thread held the lock until another one did, and then waited."""
        begins = [span.begin for thread in threads for span in thread.uses()]
        for gap, place in self.gaps:
            lost = min((begin for begin in begins if gap.begin <= begin < gap.end), default=gap.end)
            self.holds.append((Span(gap.begin, lost), place))
            if lost < gap.end:
                self.waits.append(Span(lost, gap.end))

    def uses(self) -> list[Span]:
        """When it held the lock for certain."""
        has_hold = (any(other.begin <= span.begin < other.end for span in self._own) for other in self.others)
        return self._own + [other for other, has in zip(self.others, has_hold, strict=True) if not has]


def _place(where: list[object]) -> Place:
    function, file, first, last = where
    return Place(Frame.of(str(function), "", 0).function, str(file), int(str(first)), int(str(last)))
