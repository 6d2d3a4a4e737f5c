"""What the user learns of a late loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Stack = tuple[tuple[str, str, int], ...]


class Parts(NamedTuple):
    computed: int
    blocked: int
    gc: int
    lock: int
    not_run: int


NONE = Parts(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class LateEvent:
    """Why an event loop was late. The five parts, in nanoseconds, add up to `nanoseconds`.

    Attributes:
        kind: what was late: ``"callback"``, one callback took long; ``"iteration"``, one round of the loop did, in
            callbacks of which none did; ``"wakeup"``, the loop slept longer than it had to; ``"beat"``, a timer of
            the watch came late, in a loop that is not asyncio's.
        cause: the largest of the parts: ``"computed"``, ``"blocked"``, ``"gc"``, ``"lock"`` or ``"not_run"``.
        nanoseconds: how long the callback or the iteration took, or by how much the loop woke late.
        computed_ns: processor time of the loop's thread, without garbage collection.
        blocked_ns: the callback waited without the processor, as in ``time.sleep``, a file or a mutex.
        gc_ns: garbage collection in the loop's thread.
        lock_ns: waiting for the interpreter lock; 0 where `offlock.lock.obstacle` has a reason.
        not_run_ns: the system did not run the thread, though it could have run: too few processors, or a stopped
            process.
        thread: the name of the loop's thread.
        function: the callback; of a task, its coroutine. Empty if it is unknown.
        file: where that is defined; empty if it is unknown, as for functions in C.
        line: the first line of its definition; 0 if it is unknown.
        task: the name of the task; empty for other callbacks.
        stack: where the callback was, innermost call first: function, file and line. Of several samples the most
            frequent one; empty without samples.
        holder: the name of the thread that held the lock in the longest wait; empty if that is unknown.
        holder_stack: that thread's stack, as `stack`.
        is_exact: whether `nanoseconds` and `function` are measured; of a beat they are sampled.
    """

    kind: str
    cause: str
    nanoseconds: int
    computed_ns: int
    blocked_ns: int
    gc_ns: int
    lock_ns: int
    not_run_ns: int
    thread: str
    function: str
    file: str
    line: int
    task: str
    stack: Stack
    holder: str
    holder_stack: Stack
    is_exact: bool

    @property
    def text(self) -> str:
        """All of this in a sentence."""
        return f"the event loop of {self.thread!r} was late: {self._what()}: {', '.join(self._parts())}"

    def __str__(self) -> str:
        return self.text

    def _what(self) -> str:
        took = _milliseconds(self.nanoseconds)
        if self.kind == "wakeup":
            return f"it woke {took} too late"
        if self.kind == "iteration":
            return f"a round of short callbacks took {took}"
        where = f" ({_place(self.file, self.line)})" if self.file else ""
        task = f" of task {self.task!r}" if self.task else ""
        inner = self.stack[0] if self.stack else None
        at = f", in {inner[0]} ({_place(inner[1], inner[2])})," if inner else ""
        name = f"{self.function or 'a callback'}{where}{task}{at}"
        return f"{name} took {took}" if self.kind == "callback" else f"{name} delayed it by {took}"

    def _parts(self) -> list[str]:
        parts = sorted(zip(self._times(), _WORDS, strict=True), reverse=True)
        said = [f"{words} {_milliseconds(part)}" for part, words in parts if part * 100 >= self.nanoseconds]
        if self.holder:
            line = (
                f", {self.holder_stack[0][0]} ({_place(*self.holder_stack[0][1:])})"
                if self.holder_stack
                else ""
            )
            said = [text + f" (held by {self.holder!r}{line})" * text.startswith(_WORDS[3]) for text in said]
        return said

    def _times(self) -> Parts:
        return Parts(self.computed_ns, self.blocked_ns, self.gc_ns, self.lock_ns, self.not_run_ns)


@dataclass(frozen=True)
class LateCount:
    """How often and for how long one cause made a loop late.

    Attributes:
        number: the number of late events of which it was the largest part.
        nanoseconds: the sum of that part of all late events.
    """

    number: int = 0
    nanoseconds: int = 0


_WORDS = ("computed", "blocked", "garbage collection", "waited for the lock", "not run by the system")


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"


def _place(file: str, line: int) -> str:
    return f"{file}:{line}"
