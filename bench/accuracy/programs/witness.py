"""What a program does with the lock, noted by itself with the monotonic clock: no tool takes part."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

clock = time.monotonic_ns


class Times(ctypes.Structure):
    """From when to when a function in C ran. The interpreter may let go of the lock before and after it."""

    _fields_ = (("begin", ctypes.c_int64), ("end", ctypes.c_int64))
    begin: int
    end: int


_library = os.environ["ACCURACY_LIBRARY"]
hold = ctypes.PyDLL(_library).hold  # keeps the lock
hold.argtypes, hold.restype = [ctypes.c_int64], Times
_rest = ctypes.CDLL(_library).rest  # lets go of it
_rest.argtypes, _rest.restype = [ctypes.c_int64], ctypes.c_int64

GAP = 500_000
"""Between two steps that take this long, in ns, the thread may have lost the lock."""


Place = tuple[str, str, int, int]
"""A function, its file, and its first and last line that held the lock."""


class _Notes(threading.local):
    """One thread's notes."""

    def __init__(self) -> None:
        self.holds: list[tuple[int, int, Place]] = []
        self.waits: list[tuple[int, int]] = []
        self.others: list[tuple[int, int]] = []
        self.loops: list[tuple[list[int], Place]] = []
        self.gaps: list[tuple[int, int, Place]] = []
        self.acquired = clock()
        _all.append((self.holds, self.waits, self.others, self.loops, self.gaps))


_all: list[Any] = []
_notes = _Notes()
_working = 0
_changing = threading.Lock()


def note(times: Times) -> None:
    """Note that the caller's line held the lock in this time. Afterwards another thread may have been let in."""
    now = clock()
    _note(times.begin, times.end, sys._getframe(1))
    if now - times.end > GAP:
        _notes.gaps.append((times.end, now, _notes.holds[-1][2]))


def note_between(begin: int, _: object, end: int) -> None:
    """The same where the interpreter keeps the lock, because its switch interval is long."""
    _note(begin, end, sys._getframe(1))


def _note(begin: int, end: int, frame: FrameType) -> None:
    code, line = frame.f_code, frame.f_lineno
    _notes.holds.append((begin, end, (code.co_qualname, code.co_filename, line, line)))


def note_loop(times: list[int], lines: int) -> None:
    """Note that a loop of the caller's, which ends so many lines before, held the lock at these times."""
    frame = sys._getframe(1)
    code, last = frame.f_code, frame.f_lineno - 1
    _notes.loops.append((times, (code.co_qualname, code.co_filename, last - lines + 1, last)))


def _told(notes: Any) -> dict[str, Any]:
    """One thread's notes, with loops cut where they may have lost the lock. That takes time, so it is done at the end."""
    holds, waits, others, loops, gaps = notes
    for times, place in loops:
        begin = times[0]
        for before, after in itertools.pairwise(times):
            if after - before > GAP:
                holds.append((begin, before, place))
                gaps.append((before, after, place))
                begin = after
        holds.append((begin, times[-1], place))
    flat = [[(begin, end, *place) for begin, end, place in spans] for spans in (holds, gaps)]
    return {"holds": flat[0], "waits": waits, "gaps": flat[1], "others": others}


def rest(milliseconds: float) -> None:
    """Let go of the lock for so long, and note the wait for it that follows."""
    notes = _notes
    notes.others.append((notes.acquired, clock()))
    woke = _rest(round(milliseconds * 1e6))
    notes.acquired = clock()
    notes.waits.append((woke, notes.acquired))


def light() -> None:
    """Want the lock every millisecond, until the others are done."""
    while _working:
        rest(1)


def run(*bodies: Callable[[], None], lights: int = 2) -> None:
    """Run each body in a thread, beside threads that want the lock often."""
    global _working
    _working = len(bodies)

    def work(body: Callable[[], None]) -> None:
        global _working
        rest(20)
        body()
        rest(0)
        with _changing:
            _working -= 1

    threads = [threading.Thread(target=work, args=(body,), name=body.__name__) for body in bodies]
    threads += [threading.Thread(target=light, name=f"light {number}") for number in range(lights)]
    begun = clock()
    for thread in threads:
        thread.start()
    while _working:
        rest(5)
    elapsed = clock() - begun
    for thread in threads:
        thread.join()
    notes = {"elapsed": elapsed, "threads": [_told(each) for each in _all]}
    Path(os.environ["ACCURACY_NOTES"]).write_text(json.dumps(notes), encoding="utf-8")
