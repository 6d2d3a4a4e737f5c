"""`offlock.lock.watch_lock` logs holds and waits that are too long, but not too often."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import time

import pytest

from offlock import lock

pytestmark = pytest.mark.skipif(lock.obstacle() is not None, reason=f"{lock.obstacle()}")

keep = ctypes.PyDLL(None).usleep


def hold(seconds: float, times: int = 1) -> None:
    """Keep the lock while another thread wants it."""
    is_done = threading.Event()

    def want() -> None:
        while not is_done.wait(0.001):
            pass

    waiter = threading.Thread(target=want, name="waiter")
    waiter.start()
    for _ in range(times):
        time.sleep(0.02)
        keep(int(seconds * 1e6))  # keeps the lock
    is_done.set()
    waiter.join()


def await_lines(caplog: pytest.LogCaptureFixture, number: int) -> list[str]:
    """Return the lines, once there are so many: the recorder looks every 10 ms."""
    deadline = time.monotonic() + 10
    while len(caplog.messages) < number and time.monotonic() < deadline:
        time.sleep(0.01)
    return caplog.messages


def test_a_long_hold_is_logged_with_thread_time_and_line(caplog: pytest.LogCaptureFixture) -> None:
    with lock.watch_lock(hold=0.1) as watch:
        assert watch.is_running
        hold(0.15)
        [line] = await_lines(caplog, 1)
    assert '"MainThread" ' in line
    assert " the lock for 1" in line
    assert 'while "waiter" waited' in line
    code = hold.__code__
    assert f" in hold ({code.co_filename}:{code.co_firstlineno + 12})" in line
    assert caplog.records[0].name == "offlock.lock"
    assert caplog.records[0].levelno == logging.WARNING
    assert (watch.number, watch.is_running) == (1, False)
    assert repr(watch) == "<LockWatch: stopped, 1 too long>"


def test_a_long_wait_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with lock.watch_lock(hold=None, wait=0.1):
        hold(0.15)
        [line] = await_lines(caplog, 1)
    assert line.startswith('"waiter" ')
    assert '"MainThread" held it in hold (' in line


def test_what_is_left_out_within_the_interval_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    watch = lock.watch_lock(hold=0.03, interval=60)
    hold(0.05, times=3)
    deadline = time.monotonic() + 10
    while watch.number < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(caplog.messages) == 1
    watch.stop()
    watch.stop()
    assert caplog.messages[1:] == ["2 more left out since the last line"]

    caplog.clear()
    with lock.watch_lock(hold=0.03, interval=0.0) as watch:
        hold(0.05, times=2)
        assert len(await_lines(caplog, 2)) == 2


def test_a_later_line_says_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with lock.watch_lock(interval=0.2) as watch:
        for text in ("first", "second", "third"):
            watch._found(text)
        time.sleep(0.25)
        watch._found("fourth")
    assert caplog.messages == ["first", "fourth (2 more left out before)"]


def test_short_holds_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with lock.watch_lock(hold=2, wait=2) as watch:
        hold(0.05)
        time.sleep(0.05)
    assert (watch.number, caplog.messages) == (0, [])


@pytest.mark.parametrize(
    "options", [{"hold": -1}, {"wait": float("nan")}, {"interval": -1}, {"hold": None}], ids=str
)
def test_what_makes_no_sense_is_refused(options: dict[str, float | None]) -> None:
    threads = threading.active_count()
    with pytest.raises(ValueError, match=r"number|neither|seconds"):
        lock.watch_lock(**options)  # type: ignore[arg-type]
    deadline = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= threads


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_watches_too() -> None:
    reading, writing = os.pipe()
    with lock.watch_lock(hold=0.05) as watch:
        child = os.fork()
        if child == 0:
            handler = logging.StreamHandler(os.fdopen(writing, "w"))
            logging.getLogger("offlock.lock").addHandler(handler)
            hold(0.1)
            deadline = time.monotonic() + 10
            while not watch.number and time.monotonic() < deadline:
                time.sleep(0.01)
            handler.flush()
            os._exit(0 if watch.is_running else 1)
        os.close(writing)
        _, status = os.waitpid(child, 0)
    assert status == 0
    with os.fdopen(reading) as file:
        assert " the lock for " in file.read()
