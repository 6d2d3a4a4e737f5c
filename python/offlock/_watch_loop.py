"""Tells why an event loop is late: `offlock.lock.watch_loop`.

A loop of asyncio is measured where it runs its callbacks (`Handle._run`) and where it sleeps (its selector). Another
loop, such as uvloop's, is measured by a timer that it runs in short intervals. What the loop's thread did meanwhile is
the difference of two readings of its `_Gauges`. Only the loop's thread takes these; the watch's own thread samples
stacks, finds the holders of the lock, and tells the user, so that nobody's logging delays the loop.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import logging
import math
import os
import queue
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ._offlock import lock as _native

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_clock = time.monotonic_ns
_log = logging.getLogger("offlock.lock")

_MOST_SAMPLES = 100
_MOST_FRAMES = 64
_PATIENCE = 200_000_000
"""For how many ns the holder of the lock is waited for: a flight recorder looks every 10 ms, and then needs the lock."""

Stack = tuple[tuple[str, str, int], ...]


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

    def _times(self) -> _Parts:
        return _Parts(self.computed_ns, self.blocked_ns, self.gc_ns, self.lock_ns, self.not_run_ns)


@dataclass(frozen=True)
class LateCount:
    """How often and for how long one cause made a loop late.

    Attributes:
        number: the number of late events of which it was the largest part.
        nanoseconds: the sum of that part of all late events.
    """

    number: int = 0
    nanoseconds: int = 0


class _Parts(NamedTuple):
    computed: int
    blocked: int
    gc: int
    lock: int
    not_run: int


_WORDS = ("computed", "blocked", "garbage collection", "waited for the lock", "not run by the system")
_NONE = _Parts(0, 0, 0, 0, 0)


class _Reading(NamedTuple):
    """What a thread has used up to a time, in ns."""

    time: int
    processor: int
    lock: int
    delay: int
    gc: int
    gc_processor: int


class _Callback(NamedTuple):
    function: str = ""
    file: str = ""
    line: int = 0
    task: str = ""


_UNKNOWN = _Callback()


class _Late(NamedTuple):
    """What the loop's thread found."""

    kind: str
    begin: int
    end: int
    parts: _Parts
    waited: int  # for the lock, since a little before
    callback: _Callback
    stack: Stack


class _Recorder(Protocol):
    def stop(self) -> object: ...


class _WaitAlarm(Protocol):
    @property
    def holder(self) -> str: ...
    @property
    def waiting(self) -> str: ...
    @property
    def nanoseconds(self) -> int: ...
    @property
    def stack(self) -> Stack: ...


RecordWaits = Callable[[float, Callable[[_WaitAlarm], object]], _Recorder | None]
"""Calls the function with an alarm for each wait for the lock of at least so many seconds; None if it cannot."""


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"


def _place(file: str, line: int) -> str:
    return f"{file}:{line}"


class _Gauges:
    """The numbers that the interpreter and the system keep of the calling thread."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self.name = threading.current_thread().name
        self._native_id = threading.get_native_id()
        self._collected = self._collected_processor = 0
        self._collection: tuple[int, int, int] | None = None
        self._schedstat = -1
        with contextlib.suppress(OSError):  # Linux only, and not in every kernel
            self._schedstat = os.open(
                f"/proc/self/task/{self._native_id}/schedstat", os.O_RDONLY | os.O_CLOEXEC
            )

    def read(self, now: int) -> _Reading:
        lock = _native.local_numbers(self._native_id)[0]
        return _Reading(
            now, time.thread_time_ns(), lock, self._delay(), self._collected, self._collected_processor
        )

    def _delay(self) -> int:
        """For how long the thread could have run, but had no processor."""
        if self._schedstat < 0:
            return 0
        try:
            return int(os.pread(self._schedstat, 80, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return 0

    def collection_begins(self) -> None:
        lock = _native.local_numbers(self._native_id)[0]
        self._collection = (_clock(), time.thread_time_ns(), lock)

    def collection_ends(self) -> None:
        if self._collection is None:
            return
        begun, processor, lock = self._collection
        self._collection = None
        waited = max(0, _native.local_numbers(self._native_id)[0] - lock)
        self._collected += max(0, _clock() - begun - waited)
        self._collected_processor += time.thread_time_ns() - processor

    def close(self) -> None:
        descriptor, self._schedstat = self._schedstat, -1
        if descriptor >= 0:
            os.close(descriptor)


def _split(base: _Reading, end: _Reading, length: int) -> _Parts:
    """Divides so many ns before `end` into parts.

    `base` may be a little older than that, so each part is limited by what is left.
    """
    lock = min(length, max(0, end.lock - base.lock))
    collected = min(length - lock, end.gc - base.gc)
    processor = end.processor - base.processor - (end.gc_processor - base.gc_processor)
    computed = min(length - lock - collected, max(0, processor))
    left = length - lock - collected - computed
    not_run = min(left, max(0, end.delay - base.delay))
    return _Parts(computed, left - not_run, collected, lock, not_run)


def _of_code(code: CodeType, task: str = "") -> _Callback:
    return _Callback(code.co_qualname, code.co_filename, code.co_firstlineno, task)


def _described(callback: Any) -> _Callback:
    """Names a callback of a loop; the step of a task by the task's coroutine."""
    while isinstance(callback, functools.partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if hasattr(owner, "get_coro"):
        return _of_task(owner)
    function = getattr(callback, "__func__", callback)
    # Of an object that is called like a function.
    call = type(function).__call__ if callable(function) else None
    code = getattr(function, "__code__", getattr(call, "__code__", None))
    if code is not None:
        return _of_code(code)
    return _Callback(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _of_task(task: Any) -> _Callback:
    coroutine = task.get_coro()
    for attribute in ("cr_code", "gi_code", "ag_code"):
        if code := getattr(coroutine, attribute, None):
            return _of_code(code, task.get_name())
    return _Callback(getattr(coroutine, "__qualname__", ""), task=task.get_name())


def _current_task(loop: AbstractEventLoop) -> Any:
    import asyncio

    try:
        return asyncio.current_task(loop)
    except RuntimeError:
        return None


def _frames(
    frame: FrameType | None, is_outside: Callable[[FrameType], bool]
) -> tuple[Stack, CodeType | None]:
    """Returns the stack within the loop's callback, and the callback's own code."""
    stack: list[tuple[str, str, int]] = []
    code = None
    while frame is not None and not is_outside(frame):
        if frame.f_code.co_filename != __file__:  # a garbage collection calls into this file
            code = frame.f_code
            if len(stack) < _MOST_FRAMES:
                stack.append((code.co_qualname, code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(stack), code


class _Meter(ABC):
    """What both ways of measuring share. All but `sample` runs in the loop's thread."""

    is_exact: bool

    def __init__(self, loop: AbstractEventLoop, limit: int, tell: Callable[[_Late], None]) -> None:
        self.loop = loop
        self.limit = limit
        self.resolution = min(1_000_000, limit // 50)
        self.gauges: _Gauges | None = None
        self.base = _Reading(0, 0, 0, 0, 0, 0)
        self.stale = 0
        self.begun = 0  # what runs now, or the beat that is due; 0 for nothing
        self._tell = tell
        self._samples: tuple[int, list[tuple[Stack, _Callback]]] = (0, [])

    @abstractmethod
    def begin(self) -> None:
        """Start to measure."""

    @abstractmethod
    def end(self) -> None:
        """Tell of what is late now, and restore everything."""

    @abstractmethod
    def after_fork(self) -> None:
        """Restore everything in a forked child."""

    @abstractmethod
    def is_outside(self, frame: FrameType) -> bool:
        """Whether the frame is of what runs the callbacks."""

    def is_in_its_thread(self) -> bool:
        return self.gauges is not None and self.gauges.ident == threading.get_ident()

    def read(self, now: int) -> _Reading:
        """Take a reading, from which the next parts are counted."""
        ident = threading.get_ident()
        gauges = self.gauges
        if gauges is None or gauges.ident != ident:
            if gauges is not None:
                self.release()
            self.gauges = gauges = _Gauges()
        _by_thread[ident] = gauges
        self.base = gauges.read(now)
        self.stale = now + self.resolution
        return self.base

    def release(self) -> None:
        if gauges := self.gauges:
            if _by_thread.get(gauges.ident) is gauges:
                del _by_thread[gauges.ident]
            gauges.close()

    def tell(
        self, kind: str, begin: int, base: _Reading, parts: _Parts, callback: _Callback = _UNKNOWN
    ) -> None:
        """Tell of a delay from `begin` to the last reading. `base` is the reading before it."""
        stack: Stack = ()
        key, samples = self._samples
        if key == begin and samples:
            (stack, sampled), _ = Counter(samples).most_common(1)[0]
            callback = callback if callback != _UNKNOWN else sampled
        _native.mark_begin(f"late: {callback.function or kind}")
        _native.mark_end()
        end = self.base
        self._tell(_Late(kind, begin, end.time, parts, max(0, end.lock - base.lock), callback, stack))

    def sample(self, now: int) -> None:
        """Look where a callback is that takes long already. Runs in the watch's threads."""
        begun, gauges = self.begun, self.gauges
        if not begun or gauges is None or now - begun < self.limit // 2:
            return
        stack, code = _frames(sys._current_frames().get(gauges.ident), self.is_outside)
        if code is None:
            return
        task = _current_task(self.loop)
        if self.begun != begun:
            return
        if self._samples[0] != begun:
            self._samples = (begun, [])
        if len(self._samples[1]) < _MOST_SAMPLES:
            self._samples[1].append((stack, _of_code(code, task.get_name() if task else "")))


class _Callbacks(_Meter):
    """Measures every callback of a loop of asyncio."""

    is_exact = True

    def begin(self) -> None:
        self._woke = 0
        self._woke_base = self.base
        self._told = _NONE
        self._first: _Callback | None = None
        self._selector: Any = self.loop._selector  # type: ignore[attr-defined]
        self._select = self._selector.select
        if _running_loop() is self.loop:
            now = _clock()
            self.read(now)
            task = _current_task(self.loop)
            self._first = _of_task(task) if task else _UNKNOWN
            self.begun = now
            self.stale = 0
        _watched[self.loop] = self
        _wrap_run()
        self._wrapped = self._wrap_select()
        self._selector.select = self._wrapped

    def end(self) -> None:
        if self.begun and self.is_in_its_thread():
            self._callback_that_ends_the_watch()
        self._restore()

    def after_fork(self) -> None:
        self._restore()

    def _restore(self) -> None:
        self.limit = sys.maxsize  # for the frames that are still on the stack
        _watched.pop(self.loop, None)
        _unwrap_run()
        if vars(self._selector).get("select") is self._wrapped:
            del self._selector.select

    def is_outside(self, frame: FrameType) -> bool:
        return frame.f_code in _run_codes

    def _callback_that_ends_the_watch(self) -> None:
        now, begun = _clock(), self.begun
        self.begun = 0
        if now - begun > self.limit:
            task = _current_task(self.loop)
            _, code = _frames(sys._getframe(), self.is_outside)
            callback = _of_task(task) if task else _of_code(code) if code else _UNKNOWN
            self._callback_took(begun, now, self._first or callback)

    def refresh(self, now: int) -> None:
        """Take a reading between two callbacks."""
        if self._first is not None:
            self._first_ends(now)
        self.read(now)

    def _first_ends(self, now: int) -> None:
        """The callback that began the watch is over. It was running before, so nothing was told of its end."""
        first, begun = self._first, self.begun
        self._first, self.begun = None, 0
        if first is not None and now - begun > self.limit:
            self._callback_took(begun, now, first)

    def callback_is_late(self, begun: int, ended: int, callback: Any) -> None:
        self._callback_took(begun, ended, _described(callback))

    def _callback_took(self, begun: int, ended: int, callback: _Callback) -> None:
        base = self.base
        parts = _split(base, self.read(ended), ended - begun)
        self._told = _Parts(*(told + part for told, part in zip(self._told, parts, strict=True)))
        self.tell("callback", begun, base, parts, callback)

    def _sleeps(self, now: int) -> None:
        """The loop is about to sleep: an iteration is over."""
        took = now - self._woke - sum(self._told)
        if self._woke and took > self.limit:
            base = self._woke_base
            whole = _split(base, self.read(now), now - self._woke)
            parts = _Parts(*(max(0, part - told) for part, told in zip(whole, self._told, strict=True)))
            self.tell("iteration", now - sum(parts), base, parts)

    def _slept(self, begun: int, ended: int, timeout: float | None) -> None:
        base = self.base
        end = self.read(ended)
        slept = ended - begun
        lock = max(0, end.lock - base.lock)
        known = min(slept, lock + max(0, end.delay - base.delay))
        late = max(known, 0 if timeout is None else slept - round(max(0, timeout) * 1e9))
        if late > self.limit:
            lock = min(late, lock)
            self.tell("wakeup", ended - late, base, _Parts(0, 0, 0, lock, late - lock))

    def _wrap_select(self) -> Callable[[float | None], Any]:
        select = self._select

        def watched_select(timeout: float | None = None) -> Any:
            begun = _clock()
            if self._first is not None:
                self._first_ends(begun)
            if begun - self._woke > self.limit:
                self._sleeps(begun)
            if begun > self.stale:
                self.read(begun)
            events = select(timeout)
            ended = _clock()
            if ended - begun > self.limit:
                self._slept(begun, ended, timeout)
            elif ended > self.stale:
                self.read(ended)
            self._woke = ended
            self._woke_base = self.base
            self._told = _NONE
            return events

        return watched_select


class _Beats(_Meter):
    """Measures a loop of any kind by a timer that it runs in short intervals."""

    is_exact = False

    def begin(self) -> None:
        self._is_over = False
        self._interval = max(0.002, self.limit / 4e9)
        self._timer: Any = None
        self._outside = 0
        if _running_loop() is self.loop:
            self._schedule()
        else:
            self.loop.call_soon_threadsafe(self._schedule)

    def end(self) -> None:
        if self.begun and self.is_in_its_thread():
            self._look(_clock())
        self.after_fork()
        if (timer := self._timer) is not None:
            if self.is_in_its_thread():
                timer.cancel()
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self.loop.call_soon_threadsafe(timer.cancel)

    def after_fork(self) -> None:
        self._is_over, self.begun = True, 0

    def is_outside(self, frame: FrameType) -> bool:
        return id(frame) == self._outside

    def _schedule(self) -> None:
        if self._is_over:
            return
        now = _clock()
        self.read(now)
        self.begun = now + round(self._interval * 1e9)
        self._timer = self.loop.call_later(self._interval, self._beat)

    def _beat(self) -> None:
        if self._is_over:
            return
        caller = sys._getframe(1)  # what runs the loop, as there are no frames of C code
        self._outside = id(caller)
        self._look(_clock())
        self._schedule()

    def _look(self, now: int) -> None:
        begun = self.begun
        if now - begun > self.limit:
            base = self.base
            self.tell("beat", begun, base, _split(base, self.read(now), now - begun))


_watched: dict[Any, _Callbacks] = {}
"""The watched loops of asyncio."""
_by_thread: dict[int, _Gauges] = {}
"""The gauges of the loops' threads."""
_run_codes: set[CodeType] = set()
"""The code of what runs a callback in asyncio, outside of which the stack is not the callback's."""
_original_run: Any = None
_changing = threading.RLock()


def _running_loop() -> AbstractEventLoop | None:
    import asyncio

    return asyncio._get_running_loop()


def _wrap_run() -> None:
    """Measure the callbacks of watched loops."""
    global _original_run
    from asyncio.events import Handle

    with _changing:
        if _original_run is None:
            run = _original_run = Handle._run
            wrapper = _wrapper_of(run)
            _run_codes.update(each.__code__ for each in (run, wrapper) if hasattr(each, "__code__"))
            Handle._run = wrapper  # type: ignore[method-assign]


def _unwrap_run() -> None:
    global _original_run
    from asyncio.events import Handle

    with _changing:
        # Another tool may have wrapped the wrapper, which then stays and calls on.
        if not _watched and getattr(Handle._run, "_offlock_wraps", None) is _original_run is not None:
            Handle._run = _original_run  # type: ignore[method-assign]
            _original_run = None


def _wrapper_of(run: Callable[[Any], None]) -> Any:
    watched, clock = _watched, _clock

    def watched_run(self: Any) -> None:
        meter = watched.get(self._loop)
        if meter is None:
            run(self)
            return
        callback = self._callback
        begun = clock()
        if begun > meter.stale:
            meter.refresh(begun)
        meter.begun = begun
        try:
            run(self)
        finally:
            ended = clock()
            meter.begun = 0
            if ended - begun > meter.limit:
                meter.callback_is_late(begun, ended, callback)

    watched_run._offlock_wraps = run  # type: ignore[attr-defined]
    return watched_run


def _on_gc(phase: str, _info: dict[str, int]) -> None:
    if gauges := _by_thread.get(threading.get_ident()):
        if phase == "start":
            gauges.collection_begins()
        else:
            gauges.collection_ends()


class _Sources:
    """What all watches share: the metric of waits, and the times of garbage collections."""

    def __init__(self) -> None:
        self._users = 0
        self._has_enabled = False

    def enter(self) -> None:
        with _changing:
            self._users += 1
            if self._users == 1:
                gc.callbacks.append(_on_gc)
                if not _native.is_enabled("local"):
                    self._has_enabled = _native.enable("local") is None

    def leave(self) -> None:
        with _changing:
            self._users -= 1
            if self._users == 0:
                self.end()

    def end(self) -> None:
        self._users = 0
        if _on_gc in gc.callbacks:
            gc.callbacks.remove(_on_gc)
        if self._has_enabled:
            self._has_enabled = False
            _native.disable("local")


_sources = _Sources()


class LoopWatch:
    """A watch of an event loop, made by `offlock.lock.watch_loop`. Stops at the end of a ``with`` block."""

    def __init__(
        self,
        threshold: float,
        loop: AbstractEventLoop | None,
        on_late: Callable[[LateEvent], object] | None,
        record_waits: RecordWaits,
    ) -> None:
        import asyncio
        from asyncio.base_events import BaseEventLoop

        if not (threshold >= 0.001 and math.isfinite(threshold)):
            raise ValueError(f"threshold={threshold} is not a number of seconds of at least 0.001")
        self._loop = loop = asyncio.get_running_loop() if loop is None else loop
        self._counts = {cause: LateCount() for cause in _Parts._fields}
        self._is_running = False
        if _native.switched_off():
            return
        with _changing:
            if any(watch._loop is loop for watch in _watches):
                raise RuntimeError("the loop is being watched already")
            _watches.add(self)
        self._limit = round(threshold * 1e9)
        self._on_late = on_late
        self._found: queue.SimpleQueue[_Late | None] = queue.SimpleQueue()
        self._alarms: deque[tuple[int, _WaitAlarm]] = deque(maxlen=256)
        self._stops: deque[tuple[int, int, int]] = deque(maxlen=64)
        self._is_running = True
        self._recorder: _Recorder | None = None
        is_selecting = isinstance(loop, BaseEventLoop) and hasattr(getattr(loop, "_selector", None), "select")
        meter = _Callbacks if is_selecting else _Beats
        self._meter: _Meter = meter(loop, self._limit, self._found.put)
        _sources.enter()
        self._least = max(self._limit // 5, 1_000_000)
        try:
            self._recorder = record_waits(self._least / 1e9, self._waited)
            self._meter.begin()
        except BaseException:
            self._forget()
            raise
        self._thread = threading.Thread(target=self._run, name="offlock loop watch", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @property
    def is_running(self) -> bool:
        """Whether the loop is being watched, by this process."""
        return self._is_running

    @property
    def number(self) -> int:
        """How often the loop was late."""
        return sum(count.number for count in self._counts.values())

    @property
    def nanoseconds(self) -> int:
        """By how much the loop was late in all."""
        return sum(count.nanoseconds for count in self._counts.values())

    @property
    def counts(self) -> dict[str, LateCount]:
        """How often and for how long by cause: the keys are those of `LateEvent.cause`."""
        return dict(self._counts)

    def stop(self) -> None:
        """Stop watching, and restore the loop. A second call changes nothing.

        What was found is told before it returns, if that takes no longer than a second.
        """
        with _changing:
            is_running, self._is_running = self._is_running, False
        if not is_running:
            return
        atexit.unregister(self.stop)
        self._meter.end()
        self._found.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(1)
        self._forget()

    def _forget(self) -> None:
        self._is_running = False
        if self._recorder is not None:
            self._recorder.stop()
        self._meter.release()
        _watches.discard(self)
        _sources.leave()

    def _forget_in_child(self) -> None:
        """Have no effect in a forked child, in which the watch's thread does not exist."""
        self._is_running = False
        atexit.unregister(self.stop)
        self._meter.after_fork()
        self._meter.release()
        if self._recorder is not None:
            self._recorder.stop()

    def __enter__(self) -> LoopWatch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<LoopWatch: {'running' if self._is_running else 'stopped'}, {self.number} late>"

    def _waited(self, alarm: _WaitAlarm) -> None:
        now = _clock()
        # If a callback has kept the lock, one thread of the watch gets it first: this or the other.
        self._meter.sample(now)
        self._alarms.append((now, alarm))

    def _run(self) -> None:
        """Sample stacks, and tell what was found: the watch's own thread."""
        own = _Gauges()
        interval = max(2_000_000, self._limit // 4)
        pending: list[_Late] = []
        is_over = False
        while not is_over or pending:
            before = own.read(_clock())
            with contextlib.suppress(queue.Empty):
                found = self._found.get(timeout=interval / 1e9)
                is_over = found is None
                if found is not None:
                    pending.append(found)
            now = _clock()
            self._meter.sample(now)  # first, as a reading lets go of the lock
            self._notice_stop(before, own.read(now), interval)
            pending = [late for late in pending if not self._told(late, now)]
            if self._is_running and self._loop.is_closed():
                self.stop()
        own.close()

    def _notice_stop(self, before: _Reading, after: _Reading, interval: int) -> None:
        """This thread slept too long, and neither the lock nor a lack of processors explains it: all were stopped."""
        if self._recorder is None:
            return
        explained = interval + (after.lock - before.lock) + (after.delay - before.delay)
        stopped = after.time - before.time - explained
        if stopped > self._limit // 4:
            self._stops.append((before.time, after.time, stopped))

    def _told(self, late: _Late, now: int) -> bool:
        """Tell what was found, unless the holder of the lock is not known yet."""
        holder = self._holder(late)
        is_awaited = self._recorder is not None and late.parts.lock >= self._least
        if holder is None and is_awaited and now < late.end + _PATIENCE:
            return False
        parts = self._with_stops(late)
        times = dict(zip(_Parts._fields, parts, strict=True))
        cause = max(times, key=times.__getitem__)
        for name, part in times.items():
            count = self._counts[name]
            self._counts[name] = LateCount(count.number + (name == cause), count.nanoseconds + part)
        gauges = self._meter.gauges
        event = LateEvent(
            late.kind,
            cause,
            late.end - late.begin,
            *parts,
            gauges.name if gauges else "",
            *late.callback,
            late.stack,
            holder.holder if holder else "",
            holder.stack if holder else (),
            self._meter.is_exact,
        )
        _log.warning("%s", event)
        self._call(event)
        return True

    def _call(self, event: LateEvent) -> None:
        if self._on_late is not None:
            try:
                self._on_late(event)
            except Exception:
                _log.exception("on_late raised an exception")

    def _holder(self, late: _Late) -> _WaitAlarm | None:
        """Returns the alarm of the longest wait of the loop's thread in that time."""
        gauges = self._meter.gauges
        if gauges is None or late.parts.lock < self._least:
            return None
        waits = [
            alarm
            for time, alarm in self._alarms
            if alarm.waiting == gauges.name
            and late.begin <= time <= late.end + _PATIENCE
            and alarm.nanoseconds <= late.waited + 1_000_000
        ]
        return max(waits, key=lambda alarm: alarm.nanoseconds, default=None)

    def _with_stops(self, late: _Late) -> _Parts:
        """Takes the time in which the whole process was stopped out of what looks like blocking."""
        stopped = 0
        for begin, end, most in self._stops:
            stopped += max(0, min(most, min(end, late.end) - max(begin, late.begin)))
        moved = min(late.parts.blocked, stopped)
        parts = late.parts
        return parts._replace(blocked=parts.blocked - moved, not_run=parts.not_run + moved)


_watches: set[LoopWatch] = set()


def _after_fork_in_child() -> None:
    global _changing
    _changing = threading.RLock()  # another thread's would stay locked
    for watch in list(_watches):
        watch._forget_in_child()
    _watches.clear()
    _by_thread.clear()
    _sources.end()


os.register_at_fork(after_in_child=_after_fork_in_child)
