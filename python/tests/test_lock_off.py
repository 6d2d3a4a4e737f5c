"""With ``OFFLOCK_LOCK=off`` nothing that traces or measures hooks anything, starts a thread or writes a file.

`CALLS` has a call for each public name of `offlock.lock` and of the native module below it, which the modules and the
stub list, so that none is forgotten. They run in a process of their own, which looks after each call.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offlock import lock, middleware, pytest_plugin
from offlock._offlock import lock as native
from offlock.lock import _own_trace, _publish, _restart, _trace

pytest_plugins = ["pytester"]

PACKAGES = Path(lock.__file__).parents[2]
REASON = "tracing is switched off by OFFLOCK_LOCK=off"

RESULTS = {"lock.Alarm", "lock.LateCount", "lock.LateEvent", "lock.Stats"}
"""Classes of results, without methods that do anything."""
INTERNAL = {"native.Watch", "native.Watch.next", "native.Sampler", "native.Sampler.round"}
"""What only a recorder that runs makes, or a sampler that a trace that runs has started."""

CALLS: dict[tuple[str, ...], Callable[[str], None]] = {}


def calls(*names: str) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    """Registers a function that calls these names and checks what they return. It gets a folder."""

    def register(call: Callable[[str], None]) -> Callable[[str], None]:
        CALLS[names] = call
        return call

    return register


def public_names() -> set[str]:
    """Returns `lock.function`, `lock.Class.method`, and the same of the middleware, the plugin and the native module."""
    names = {f"middleware.{name}" for name in middleware.__all__}
    names |= {f"pytest_plugin.{name}" for name in pytest_plugin.__all__}
    for name in lock.__all__:
        names.add(f"lock.{name}")
        thing = getattr(lock, name)
        if inspect.isclass(thing) and f"lock.{name}" not in RESULTS:
            bases = [base for base in thing.__mro__ if base.__module__.startswith(f"{lock.__name__}.")]
            names |= {f"lock.{name}.{own}" for base in bases for own in vars(base) if own[0] != "_"}
    stub = ast.parse((PACKAGES / "offlock" / "_lock.pyi").read_text())
    for node in stub.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(f"native.{node.name}")
        if isinstance(node, ast.ClassDef):
            methods = [own.name for own in node.body if isinstance(own, ast.FunctionDef)]
            names |= {f"native.{node.name}.{own}" for own in methods if own[0] != "_"}
    return names - RESULTS - INTERNAL


def test_no_entry_point_is_forgotten() -> None:
    assert {name for names in CALLS for name in names} == public_names()


# The calls


def is_of_nothing(trace: lock.Trace) -> None:
    assert not trace.is_running
    assert trace.stop() is None
    assert not trace.is_running


@calls("lock.Trace", "lock.Trace.is_running", "lock.Trace.stop", "lock.Trace.summary")
def _(folder: str) -> None:
    for name in ["a.offlock", "a.pftrace", "a.gvl.json"]:
        trace = lock.Trace(os.path.join(folder, name), limit=1, arguments=True)
        assert repr(trace) == "<Trace: switched off>"
        is_of_nothing(trace)
        assert trace.summary is None
    with pytest.raises(ValueError, match="stacks"):
        lock.Trace(stacks=-1)


@calls("lock.trace")
def _(folder: str) -> None:
    with lock.trace(os.path.join(folder, "a.offlock")) as trace:
        assert not trace.is_running


@calls("lock.measure", "lock.Summary", "lock.Summary.to_dict", "lock.Summary.to_json")
def _(folder: str) -> None:
    with lock.measure() as measured:
        threading.Thread(target=sum, args=([],)).start()
    assert measured.summary is not None
    assert measured.summary.to_dict()["threads"] == []
    assert measured.summary.to_json().startswith("{")
    assert f"Nothing was recorded, because {REASON}." in " ".join(str(measured.summary).split())
    assert "0 threads" in repr(measured.summary)


@calls("lock.start", "lock.stop")
def _(folder: str) -> None:
    assert lock.start(os.path.join(folder, "a.offlock")) is False
    assert lock.stop() is None
    _own_trace.start_or_stop()
    _own_trace.dump_kept()
    _trace.complete_all()


@calls("lock.Trace.from_environment", "lock.FlightRecorder.from_environment")
def _(folder: str) -> None:
    os.environ["OFFLOCK_TRACE"] = os.path.join(folder, "asked.offlock")
    assert lock.Trace.from_environment() is None
    os.environ["OFFLOCK_TRACE_KEEP"] = "1s"
    assert lock.FlightRecorder.from_environment() is None
    del os.environ["OFFLOCK_TRACE"], os.environ["OFFLOCK_TRACE_KEEP"]


@calls(
    "lock.FlightRecorder",
    *(
        f"lock.FlightRecorder.{name}"
        for name in ("dump", "memory", "on_wait", "on_hold", "is_running", "stop")
    ),
    "lock.FlightRecorder.summary",
)
def _(folder: str) -> None:
    path = os.path.join(folder, "last.offlock")
    recorder = lock.FlightRecorder(path=path, dump_on_wait=0, dump_on_hold=0)
    assert repr(recorder) == "<FlightRecorder: switched off, 0 bytes>"
    recorder.on_wait(0, lambda alarm: os._exit(1))
    recorder.on_hold(0, lambda alarm: os._exit(1))
    assert (recorder.dump(path), recorder.memory, recorder.summary) == (None, 0, None)
    if (child := os.fork()) == 0:
        os._exit(int(recorder.is_running or bool(change())))
    assert os.waitpid(child, 0)[1] == 0
    is_of_nothing(recorder)
    assert _restart.restarting == []


@calls(
    "lock.obstacle",
    "lock.stacks_obstacle",
    "native.obstacle",
    "native.stacks_obstacle",
    "native.switched_off",
)
def _(folder: str) -> None:
    assert lock.obstacle() == lock.stacks_obstacle() == native.switched_off() == REASON


@calls("lock.publish", "lock.unpublish", "native.is_live_requested", "native.Recorder.publish")
def _(folder: str) -> None:
    os.environ["OFFLOCK_LIVE"] = "1"
    assert native.is_live_requested()
    _publish.publish_if_requested()
    del os.environ["OFFLOCK_LIVE"]
    assert lock.publish() is lock.unpublish() is False
    assert not native.Recorder.publish([], [], None).is_running


@calls(
    "lock.watch_lock",
    "lock.LockWatch",
    "lock.LockWatch.is_running",
    "lock.LockWatch.number",
    "lock.LockWatch.stop",
)
def _(folder: str) -> None:
    with lock.watch_lock(hold=0, wait=0, interval=0) as watch:
        assert repr(watch) == "<LockWatch: stopped, 0 too long>"
        assert (watch.is_running, watch.number) == (False, 0)
    watch.stop()


@calls(
    "lock.watch_loop",
    "lock.LoopWatch",
    "lock.LoopWatch.counts",
    "lock.LoopWatch.is_running",
    "lock.LoopWatch.nanoseconds",
    "lock.LoopWatch.number",
    "lock.LoopWatch.stop",
)
def _(folder: str) -> None:
    async def main() -> None:
        with lock.watch_loop(0.001) as watch:
            time.sleep(0.01)
            await asyncio.sleep(0)
            assert (watch.is_running, watch.number, watch.nanoseconds) == (False, 0, 0)
        watch.stop()
        assert set(watch.counts.values()) == {lock.LateCount()}

    asyncio.run(main())


@calls("lock.mark", "native.mark_begin", "native.mark_end", "native.on_gc", "native.name_thread")
def _(folder: str) -> None:
    with lock.mark("work"):
        lock.mark("inner")(sum)([])
    native.on_gc("start", {})
    native.name_thread(native.native_id(), "main")


@calls(
    *(f"lock.{metric}" for metric in ("GlobalTimer", "LocalTimer", "WaitingThreads")),
    *(
        f"lock.{metric}.{name}"
        for metric in ("GlobalTimer", "LocalTimer", "WaitingThreads")
        for name in ("enable", "disable", "enabled", "reset")
    ),
    *(
        f"lock.{timer}.{name}"
        for timer in ("GlobalTimer", "LocalTimer")
        for name in ("monotonic_time", "acquisitions", "histogram")
    ),
    *("lock.LocalTimer.releases", "lock.WaitingThreads.count", "native.native_id"),
    "native.modules_that_need_lock",
    *("native.enable", "native.disable", "native.is_enabled", "native.global_numbers", "native.reset_global"),
    *("native.waiting", "native.reset_waiting", "native.local_numbers", "native.reset_local", "native.waits"),
    *("native.thread_number", "native.frame_of"),
)
def _(folder: str) -> None:
    metrics: list[Any] = [lock.GlobalTimer, lock.LocalTimer, lock.WaitingThreads]
    assert native.modules_that_need_lock()
    assert native.frame_of(native.thread_number()) is sys._getframe()
    for metric in metrics:
        metric.enable()  # no warning either: they are errors here
        assert not metric.enabled()
    for _ in range(10):
        os.stat(folder)
    for timer in (lock.GlobalTimer, lock.LocalTimer()):
        assert (timer.monotonic_time(), timer.acquisitions()) == (0, 0)
        assert sum(count for _, count in timer.histogram()) == 0
    assert (lock.LocalTimer().releases(), lock.WaitingThreads.count()) == (0, 0)
    lock.GlobalTimer.reset()
    lock.LocalTimer().reset()
    lock.WaitingThreads.reset()
    for metric in metrics:
        metric.disable()


@calls(
    "native.Recorder",
    *(f"native.Recorder.{name}" for name in ("from_environment", "keep", "dump", "dump_beside", "watch")),
    *(f"native.Recorder.{name}" for name in ("memory", "stop", "summary", "is_running")),
)
def _(folder: str) -> None:
    path = os.path.join(folder, "native.offlock")
    assert native.Recorder.from_environment([], []) is None
    for recorder in [
        native.Recorder(path, [], []),
        native.Recorder(None, [], [], None, 0.001),
        native.Recorder.keep([], [], 0.001, (1, 1 << 20), (path, 0, 0, 0, 1)),
    ]:
        results = (recorder.dump(path, []), recorder.dump_beside([]), recorder.watch("wait", 0, False))
        assert (*results, recorder.memory, recorder.stop([])) == (None,) * 5
        assert not recorder.is_running
        recorder.summary()


@calls("middleware.WSGI")
def _(folder: str) -> None:
    app = middleware.WSGI(lambda environ, start: [b"answer"])
    assert app({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, None) == [b"answer"]


@calls("middleware.ASGI")
def _(folder: str) -> None:
    async def answer(*_: object) -> None:
        pass

    call: Any = middleware.ASGI(answer)({"type": "http", "method": "GET", "path": "/"}, answer, answer)  # type: ignore[arg-type]
    with pytest.raises(StopIteration):
        call.send(None)


@calls("pytest_plugin.lock_held_at_most")
def _(folder: str) -> None:
    with pytest_plugin._lock_held_at_most(0):
        sum(range(100_000))


# What they must not do


def slots() -> list[int]:
    """The targets of the interpreter's calls that a trace redirects."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return []
    from imports import slot_of, word

    return [word(slot_of(name)) for name in (b"pthread_cond_signal", b"pthread_mutex_unlock")]


def state() -> dict[str, Any]:
    """What tracing changes while it is on."""
    tasks = Path("/proc/self/task")
    return {
        "slots": slots(),
        "threads": [name for task in tasks.glob("*/comm") if "offlock" in (name := task.read_text())],
        "names": [thread.name for thread in threading.enumerate()],
        "callbacks": list(gc.callbacks),
        "bootstrap": threading.Thread._bootstrap_inner,  # type: ignore[attr-defined]
        "to_thread": asyncio.to_thread,
    }


BEFORE: dict[str, Any] = {}


def change() -> list[str]:
    """The names of what differs from the state at first."""
    return [name for name, value in state().items() if value != BEFORE[name]]


def run_all(folder: str) -> None:
    """Runs all calls, and checks after each that nothing has changed."""
    BEFORE.update(state())
    for names, call in CALLS.items():
        call(folder)
        assert (change(), os.listdir(folder)) == ([], []), names
    print("unchanged")


def run_on(folder: str) -> None:
    """Prints what changes while something runs, where tracing is not switched off."""
    BEFORE.update(state())
    for start in (lock.Trace, lock.FlightRecorder):
        trace = start()
        time.sleep(0.1)  # a thread names itself
        print(*change())
        trace.stop()
        time.sleep(0.1)  # the system may show a thread for a moment after its end
    lock.GlobalTimer.enable()
    print(*change())


def child(call: str, folder: Path, value: str) -> subprocess.CompletedProcess[str]:
    program = f"import test_lock_off; test_lock_off.{call}({str(folder)!r})"
    path = os.pathsep.join([str(Path(__file__).parent), str(PACKAGES)])
    environment = os.environ | {"OFFLOCK_LOCK": value, "PYTHONPATH": path}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_nothing_is_hooked_started_or_written(tmp_path: Path) -> None:
    outcome = child("run_all", tmp_path, "off")
    assert (outcome.returncode, outcome.stdout) == (0, "unchanged\n"), outcome.stderr


@pytest.mark.skipif(lock.obstacle() is not None or not slots(), reason="the lock cannot be watched here")
def test_the_checks_see_what_runs_and_an_unknown_value_switches_nothing_off(tmp_path: Path) -> None:
    outcome = child("run_on", tmp_path, "of")
    assert outcome.returncode == 0, outcome.stderr
    trace, flight, timer = outcome.stdout.splitlines()
    assert trace == flight == "slots threads callbacks bootstrap"
    assert timer == "slots"


# Programs


def offlock(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(PACKAGES)} | variables
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


LOOK = """
import os, signal, sys, threading
print(type(os._exit).__name__, signal.getsignal(signal.SIGUSR1).name, threading.active_count())
print([name for name in os.environ if name.startswith("OFFLOCK_TRACE")])
sys.exit(7)
"""


def test_the_command_runs_the_program_without_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "app.offlock"
    run = ("-m", "offlock", "trace", "--report", "--signal", "USR1", "-o", str(path), "--")
    outcome = offlock(*run, sys.executable, "-c", LOOK, OFFLOCK_LOCK="off")
    assert (outcome.returncode, outcome.stdout) == (7, "builtin_function_or_method SIG_DFL 1\n[]\n")
    assert outcome.stderr == f"offlock: {REASON}: the program runs without a trace\n"
    missing = offlock(*run, str(tmp_path / "none"), OFFLOCK_LOCK="off")
    assert missing.returncode == 127
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_asked_for_a_trace_runs_without_one(tmp_path: Path) -> None:
    path = os.pathsep.join([str(PACKAGES / "offlock" / "_autotrace"), str(PACKAGES)])
    asked = {"OFFLOCK_TRACE": str(tmp_path / "app.offlock"), "OFFLOCK_SIGNAL": "USR1", "PYTHONPATH": path}
    outcome = offlock("-c", LOOK, OFFLOCK_LOCK="off", **asked)
    assert (outcome.returncode, outcome.stderr, list(tmp_path.iterdir())) == (7, "", [])
    assert outcome.stdout.startswith("builtin_function_or_method SIG_DFL 1\n")
    if lock.obstacle() is None:
        outcome = offlock("-c", LOOK.replace(".name", ""), **asked, OFFLOCK_LOCK="on")
        assert not outcome.stdout.startswith("builtin_function_or_method SIG_DFL 1\n")


def test_tests_run_without_limits(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))
    monkeypatch.setenv("OFFLOCK_LOCK", "off")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.lock_held_at_most(0)
        def test_marked():
            sum(range(100_000))

        def test_block(lock_held_at_most):
            with lock_held_at_most(0):
                raise ValueError("is raised")
    """)
    result = pytester.runpytest_subprocess("-p", "offlock.pytest_plugin")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*ValueError: is raised"])
