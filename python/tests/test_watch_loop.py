"""Watches of event loops: each cause of lateness, provoked by construction, in asyncio and in uvloop."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import gc
import inspect
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from asyncio.events import Handle
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from interpreter import HAS_GIL

from offlock import lock
from offlock.lock import _restart
from offlock.lock._watch_loop import watch as watch_module

uvloop: Any
try:
    import uvloop
except ImportError:  # no wheel for this interpreter
    uvloop = None

KINDS = [
    "asyncio",
    pytest.param("uvloop", marks=pytest.mark.skipif(uvloop is None, reason="uvloop is not installed")),
]
THRESHOLD = 0.05
CAUSES = ("computed", "blocked", "gc", "lock", "not_run")
CAN_TRACE = HAS_GIL and lock.obstacle() is None
needs_lock = pytest.mark.skipif(not CAN_TRACE, reason="the lock cannot be traced")
pytestmark = [
    pytest.mark.timing,
    pytest.mark.filterwarnings(
        "ignore:waits for the lock count as blocked:RuntimeWarning",
        "ignore:.*use of fork.. may lead to deadlocks:DeprecationWarning",
    ),
]


def run(kind: str, main: Callable[[], Coroutine[Any, Any, object]]) -> None:
    factory = uvloop.new_event_loop if kind == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


def watched(kind: str, work: Callable[[], Coroutine[Any, Any, object]]) -> list[lock.LateEvent]:
    """Returns what is told of the loop while it does that."""
    events: list[lock.LateEvent] = []

    async def main() -> None:
        with lock.watch_loop(THRESHOLD, on_late=events.append) as watch:
            await asyncio.sleep(0.03)
            await work()
            await asyncio.sleep(0.03)
        assert watch.number == len(events)
        assert watch.nanoseconds == sum(event.nanoseconds for event in events)

    run(kind, main)
    for event in events:
        assert sum(parts_of(event)) == event.nanoseconds > THRESHOLD * 1e9
        assert event.is_exact == (kind == "asyncio")
    return events


def parts_of(event: lock.LateEvent) -> list[int]:
    return [event.computed_ns, event.blocked_ns, event.gc_ns, event.lock_ns, event.not_run_ns]


def the(events: list[lock.LateEvent], cause: str) -> lock.LateEvent:
    """Returns the only event of which that is the largest part, apart from what a busy machine adds to `not_run`."""

    def is_it(event: lock.LateEvent) -> bool:
        times = dict(zip(CAUSES, parts_of(event), strict=True))
        part, not_run = times.pop(cause), times.pop("not_run", 0)
        return (
            part > THRESHOLD * 1e9 and part > max(times.values()) and (cause == event.cause or not_run > part)
        )

    found = [event for event in events if is_it(event)]
    assert len(found) == 1, [str(event) for event in events]
    return found[0]


def line_in(function: Callable[..., object], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def compute() -> None:
    end = time.thread_time() + 0.15
    while time.thread_time() < end:
        pass


def compute_in_c() -> int:
    before = time.thread_time()
    while time.thread_time() - before < 0.15:
        sum(range(4_000_000))
    return 0


def sleep() -> None:
    time.sleep(0.2)


async def handler() -> None:
    await asyncio.sleep(0)
    compute()
    await asyncio.sleep(0)


async def soon(callback: Callable[[], object]) -> None:
    """Let the loop call it, and go on."""
    asyncio.get_running_loop().call_soon(callback)
    await asyncio.sleep(0.001)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("callback", [compute, compute_in_c])
def test_a_callback_that_computes_is_named(kind: str, callback: Callable[[], object]) -> None:
    event = the(watched(kind, lambda: soon(callback)), "computed")
    assert (event.function, event.file) == (callback.__qualname__, __file__)
    assert event.line == callback.__code__.co_firstlineno
    assert event.computed_ns > 100e6
    function, file, line = event.stack[0]
    assert (function, file) == (callback.__qualname__, __file__)
    assert event.line < line <= event.line + 4
    assert (event.thread, event.task) == ("MainThread", "")
    # The watch takes the stack with the lock; on a busy machine it may be suspended meanwhile.
    assert event.holder in ("", "offlock loop watch")
    assert event.kind == ("callback" if kind == "asyncio" else "beat")
    assert f"{callback.__qualname__} ({__file__}:{event.line})" in str(event)
    assert "computed" in str(event)


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_is_named_with_its_coroutine_and_the_line_where_it_was(kind: str) -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_task(handler(), name="the handler")

    event = the(watched(kind, work), "computed")
    assert (event.function, event.line) == ("handler", handler.__code__.co_firstlineno)
    assert event.task == "the handler"
    assert event.stack[1] == ("handler", __file__, line_in(handler, "compute()"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_that_blocks_is_told_from_one_that_computes(kind: str) -> None:
    event = the(watched(kind, lambda: soon(sleep)), "blocked")
    assert event.stack[0] == ("sleep", __file__, line_in(sleep, "time.sleep"))
    assert event.function == "sleep"
    assert event.blocked_ns > 100e6


@pytest.mark.parametrize("kind", KINDS)
def test_a_garbage_collection_is_told_from_the_callback_in_which_it_runs(kind: str) -> None:
    gc.disable()
    try:
        big: Any = [[number] for number in range(2_500_000)]

        def collect() -> None:
            gc.collect()

        event = the(watched(kind, lambda: soon(collect)), "gc")
    finally:
        gc.enable()
    del big
    assert event.gc_ns > 0.8 * event.nanoseconds
    assert event.function.endswith("collect")


def hold(begun: threading.Event) -> None:
    """Hold the lock without letting it go, as a C extension does, once the other thread has begun its wait."""
    usleep = ctypes.PyDLL(None).usleep
    begun.set()
    time.sleep(0.02)
    usleep(200_000)


async def wake_beside_a_holder() -> None:
    begun = threading.Event()
    keeper = threading.Thread(target=hold, args=(begun,), name="the keeper")
    keeper.start()
    while keeper.is_alive():
        await asyncio.sleep(0.002)
    keeper.join()


@needs_lock
@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_for_the_lock_is_told_with_the_holder_and_its_line(kind: str) -> None:
    event = the(watched(kind, wake_beside_a_holder), "lock")
    assert event.kind == ("wakeup" if kind == "asyncio" else "beat")
    assert event.lock_ns > 120e6
    assert event.holder == "the keeper"
    assert ("hold", __file__, line_in(hold, "usleep(200_000)")) in event.holder_stack
    assert "held by 'the keeper', hold (" in str(event)


@needs_lock
def test_waits_for_the_lock_within_a_callback_are_told_from_computing() -> None:
    def let_go() -> None:
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            time.sleep(0.001)

    async def work() -> None:
        begun = threading.Event()
        keeper = threading.Thread(target=hold, args=(begun,), name="the keeper")
        keeper.start()
        begun.wait()
        await soon(let_go)
        keeper.join()

    event = the(watched("asyncio", work), "lock")
    assert event.kind == "callback"
    assert event.function.endswith("let_go")
    assert (event.holder, event.lock_ns > 120e6) == ("the keeper", True)


@needs_lock
@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_process_is_told_from_a_callback_that_blocks(kind: str) -> None:
    """Python releases the lock in `sleep`, so the watch's thread sleeps, too, when the process is stopped."""
    script = f"echo; read go; sleep 0.1; kill -STOP {os.getpid()}; sleep 0.5; kill -CONT {os.getpid()}"

    async def work() -> None:
        with subprocess.Popen(
            ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as stopper:
            assert stopper.stdin is not None
            assert stopper.stdout is not None
            stopper.stdout.readline()  # it has started
            stopper.stdin.write("go\n")
            stopper.stdin.flush()
            await soon(lambda: time.sleep(0.3))

    event = the(watched(kind, work), "not_run")
    assert event.not_run_ns > 350e6
    assert "not run by the system" in str(event)


def test_a_loop_that_wakes_late_although_nothing_holds_the_lock_was_not_run() -> None:
    """The system cannot be made to leave a thread alone, so the selector sleeps for longer than it was told to."""

    async def main() -> list[lock.LateEvent]:
        events: list[lock.LateEvent] = []
        selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
        select, late = selector.select, [0.2]

        def late_select(timeout: float | None) -> Any:
            found = select(timeout)
            if timeout:
                time.sleep(late.pop() if late else 0)
            return found

        selector.select = late_select
        with lock.watch_loop(THRESHOLD, on_late=events.append):
            await asyncio.sleep(0.1)
        assert selector.select is late_select or selector.select == select
        return events

    events = asyncio.run(main())
    event = the(events, "not_run")
    assert (event.kind, event.function) == ("wakeup", "")
    assert 190e6 < event.nanoseconds < 400e6


def test_many_short_callbacks_are_a_late_iteration() -> None:
    async def work() -> None:
        for _ in range(20):
            asyncio.get_running_loop().call_soon(time.sleep, 0.01)
        await asyncio.sleep(0.3)

    event = the(watched("asyncio", work), "blocked")
    assert event.kind == "iteration"
    assert event.nanoseconds >= 200e6


@pytest.mark.parametrize("kind", KINDS)
def test_the_callback_in_which_the_watch_begins_and_stops_is_told_too(kind: str) -> None:
    events: list[lock.LateEvent] = []

    async def main() -> None:
        with lock.watch_loop(THRESHOLD, on_late=events.append):
            time.sleep(0.2)

    run(kind, main)
    assert the(events, "blocked").nanoseconds > 150e6


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_callback_behind_the_one_that_begins_the_watch_is_named(kind: str) -> None:
    events: list[lock.LateEvent] = []

    async def main() -> None:
        with lock.watch_loop(THRESHOLD, on_late=events.append):
            asyncio.get_running_loop().call_soon(compute)
            await asyncio.sleep(0.3)

    run(kind, main)
    assert (events[0].function, events[0].file) == ("compute", __file__), [str(event) for event in events]


def test_callbacks_of_all_kinds_are_named() -> None:
    class Called:
        def __call__(self) -> None:
            sleep()

        def method(self) -> None:
            sleep()

    async def work() -> None:
        for callback in (functools.partial(time.sleep, 0.1), Called(), Called().method):
            await soon(callback)

    names = [event.function.rpartition(".<locals>.")[2] for event in watched("asyncio", work)]
    assert names == ["sleep", "Called.__call__", "Called.method"]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_told_of_a_loop_that_is_in_time(kind: str) -> None:
    async def work() -> None:
        for _ in range(200):
            await asyncio.sleep(0)

    assert [event for event in watched(kind, work) if event.cause != "not_run"] == []


def test_late_events_are_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> lock.LoopWatch:
        with lock.watch_loop(THRESHOLD) as watch:
            await soon(sleep)
            await soon(sleep)
        return watch

    with caplog.at_level(logging.WARNING, logger="offlock.lock"):
        watch = asyncio.run(main())
    assert watch.counts["blocked"].number == 2
    assert watch.counts["blocked"].nanoseconds > 300e6
    assert watch.counts["gc"] == lock.LateCount(0, watch.counts["gc"].nanoseconds)
    assert sum(f"sleep ({__file__}" in message for message in caplog.messages) == 2
    assert {record.levelname for record in caplog.records if record.name == "offlock.lock"} == {"WARNING"}


def test_an_exception_of_on_late_is_logged_and_the_watch_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> lock.LoopWatch:
        def refuse(event: lock.LateEvent) -> None:
            raise ValueError("not today")

        with lock.watch_loop(THRESHOLD, on_late=refuse) as watch:
            await soon(sleep)
            await soon(sleep)
        return watch

    assert asyncio.run(main()).counts["blocked"].number == 2
    assert sum(record.exc_info is not None for record in caplog.records) == 2


@needs_lock
def test_a_trace_that_runs_gets_a_mark() -> None:
    with lock.measure() as trace:
        watched("asyncio", lambda: soon(sleep))
    assert trace.summary is not None
    assert "late: sleep" in trace.summary.to_json()


@pytest.fixture(autouse=True)
def no_thread_of_another_test() -> None:
    eventually(lambda: not any(thread.name.startswith("offlock") for thread in threading.enumerate()))


def state() -> tuple[object, ...]:
    return (
        Handle._run,
        list(gc.callbacks),
        lock.LocalTimer.enabled(),
        list(_restart.restarting),
        threading.active_count(),
    )


def eventually(is_true: Callable[[], bool]) -> None:
    """The thread of the alarms ends soon after its recorder."""
    end = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("kind", KINDS)
def test_stop_restores_everything(kind: str) -> None:
    before = state()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        selector = getattr(loop, "_selector", None)
        watch = lock.watch_loop()
        assert watch.is_running
        assert "running" in repr(watch)
        assert gc.callbacks != before[1]
        assert (Handle._run is not before[0]) == (kind == "asyncio")
        await asyncio.sleep(0.01)
        watch.stop()
        watch.stop()
        assert not watch.is_running
        assert "select" not in vars(selector or object)
        eventually(lambda: state() == before)
        await asyncio.sleep(0.02)
        with lock.watch_loop():  # another one may begin
            await asyncio.sleep(0.01)
        eventually(lambda: state() == before)

    run(kind, main)


@pytest.mark.parametrize("kind", KINDS)
def test_a_watch_ends_with_its_loop(kind: str) -> None:
    before = state()
    watches = []

    async def main() -> None:
        watches.append(lock.watch_loop())
        await asyncio.sleep(0.01)

    run(kind, main)
    eventually(lambda: not watches[0].is_running and state() == before)


def test_a_wrapper_of_another_tool_stays() -> None:
    original = Handle._run

    async def main() -> None:
        with lock.watch_loop():
            ours = Handle._run
            Handle._run = lambda self: ours(self)  # type: ignore[method-assign]
            theirs = Handle._run
        assert Handle._run is theirs
        await asyncio.sleep(0.01)
        Handle._run = ours  # type: ignore[method-assign]
        assert [event.function for event in await events_of_a_sleep()] == ["sleep"]

    async def events_of_a_sleep() -> list[lock.LateEvent]:
        events: list[lock.LateEvent] = []
        with lock.watch_loop(THRESHOLD, on_late=events.append):
            await soon(sleep)
            await asyncio.sleep(0.01)
        return events

    asyncio.run(main())
    assert Handle._run is original


@pytest.mark.parametrize("kind", KINDS)
def test_two_loops_in_two_threads_are_told_apart(kind: str) -> None:
    told: dict[str, list[lock.LateEvent]] = {}
    together = threading.Barrier(2)

    def work(callback: Callable[[], object]) -> None:
        async def main() -> None:
            events = told[threading.current_thread().name] = []
            with lock.watch_loop(THRESHOLD, on_late=events.append):
                await asyncio.sleep(0.02)
                together.wait(10)
                await soon(callback)
                await asyncio.sleep(0.02)
                together.wait(10)

        run(kind, main)

    def other_sleep() -> None:
        time.sleep(0.3)

    threads = [
        threading.Thread(target=work, args=(callback,), name=name)
        for name, callback in (("one", sleep), ("two", other_sleep))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = {
        thread: {
            (event.thread, event.function.rpartition(".")[2]) for event in events if "sleep" in event.function
        }
        for thread, events in told.items()
    }
    assert names == {"one": {("one", "sleep")}, "two": {("two", "other_sleep")}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_is_watched_from_another_thread(kind: str) -> None:
    events: list[lock.LateEvent] = []
    loop = uvloop.new_event_loop() if kind == "uvloop" else asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="the loop's")
    thread.start()
    watch = lock.watch_loop(THRESHOLD, loop=loop, on_late=events.append)
    with pytest.raises(RuntimeError, match="watched already"):
        lock.watch_loop(loop=loop)
    time.sleep(0.05)
    loop.call_soon_threadsafe(sleep)
    eventually(lambda: bool(events))
    watch.stop()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    event = the(events, "blocked")
    assert (event.thread, event.function) == ("the loop's", "sleep")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("kind", KINDS)
def test_a_forked_child_is_not_watched(kind: str) -> None:
    before = state()

    async def main() -> None:
        with lock.watch_loop(THRESHOLD) as watch:
            await asyncio.sleep(0.01)
            if not (child := os.fork()):
                signal.alarm(20)
                is_restored = state()[:4] == before[:4] and not watch.is_running and not watch_module._watches
                watch.stop()
                os._exit(0 if is_restored else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert watch.is_running

    run(kind, main)


@pytest.mark.parametrize("threshold", [0, -1, 0.0001, float("nan"), float("inf")])
def test_impossible_thresholds_are_refused(threshold: float) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="threshold"):
            lock.watch_loop(threshold)

    asyncio.run(main())


def test_without_a_loop_one_must_be_running() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        lock.watch_loop()


@pytest.mark.skipif(sys.platform != "linux", reason="samples can be asked for on Linux only")
def test_where_the_lock_cannot_be_traced_the_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLOCK_FEED", "samples")

    async def main() -> list[lock.LateEvent]:
        events: list[lock.LateEvent] = []
        with pytest.warns(RuntimeWarning, match="count as blocked"):
            watch = lock.watch_loop(THRESHOLD, on_late=events.append)
        with watch:
            await soon(compute)
        return events

    event = the(asyncio.run(main()), "computed")
    assert (event.function, event.lock_ns) == ("compute", 0)


@pytest.mark.parametrize(
    ("named", "error", "message"),
    [
        ({"threshold": "x"}, TypeError, "threshold='x' is not a number of seconds"),
        (
            {"threshold": 0.0005},
            ValueError,
            "threshold=0.0005 is not a number of seconds from 0.001 to 86,400",
        ),
        ({"threshold": 1e30}, ValueError, r"threshold=1e\+30 is not"),
        ({"threshold": float("nan")}, ValueError, "threshold=nan is not"),
        ({"loop": 3}, TypeError, "loop=3 is not an event loop"),
        ({"on_late": 3}, TypeError, "on_late=3 cannot be called"),
    ],
)
def test_wrong_arguments_are_named(named: dict[str, Any], error: type[Exception], message: str) -> None:
    async def main() -> None:
        with pytest.raises(error, match=message):
            lock.watch_loop(**named)

    asyncio.run(main())


BESIDE_INTERPRETERS = """
import asyncio, sys, threading, time
import offlock.lock
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters
COMPUTE = '''
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
f(22)
import time; time.sleep(0.001)
'''

def guest():
    other = interpreters.create()
    for _ in range(6):
        interpreters.run_string(other, COMPUTE)
    interpreters.destroy(other)

async def main():
    functions = set()
    with offlock.lock.watch_loop(0.02, on_late=lambda event: functions.add(event.stack[0][0] if event.stack else "")):
        threads = [threading.Thread(target=guest) for _ in range(3)]
        for thread in threads: thread.start()
        for _ in range(15):
            await asyncio.sleep(0.005)
            late()
        for thread in threads: thread.join()
    assert "late" in functions, functions

def late(): time.sleep(0.05)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters have a lock of their own from 3.12 on")
@pytest.mark.skipif(not HAS_GIL, reason="CPython stops the threads of one interpreter to read their frames")
def test_interpreters_that_run_meanwhile_are_left_alone() -> None:
    outcome = subprocess.run(
        [sys.executable, "-c", BESIDE_INTERPRETERS], capture_output=True, text=True, timeout=120
    )
    assert outcome.returncode == 0, outcome.stderr
