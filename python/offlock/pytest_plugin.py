"""A pytest plugin that fails a test when a thread held the lock too long. pytest loads it where offlock is installed.

Use the fixture for a part of a test::

    def test_index_lets_others_run(lock_held_at_most):
        with lock_held_at_most(20):
            index(documents)

Use the marker for a whole test::

    @pytest.mark.lock_held_at_most(20)
    def test_index_lets_others_run(): ...

Both take milliseconds of wall time and apply to all threads. A hold ends when the thread releases the lock: when it
blocks, or after a time slice if another thread waits for the lock. A thread that computes alone holds the lock for
as long as it computes. With ``OFFLOCK_LOCK=off`` in the environment, tests run without these limits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

__all__ = ["lock_held_at_most"]


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    text = "lock_held_at_most(milliseconds): fail the test when a thread held the lock longer"
    config.addinivalue_line("markers", text)


@pytest.fixture
def lock_held_at_most() -> Callable[[float], AbstractContextManager[None]]:
    """A context manager that takes milliseconds, and fails the test when a thread held the lock longer in its block.

    Where the lock cannot be traced exactly, the test is skipped with the reason.
    """
    return _lock_held_at_most


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Trace a test that has the marker."""
    marker = item.get_closest_marker("lock_held_at_most")
    if marker is None:
        return (yield)
    with _lock_held_at_most(*marker.args, **marker.kwargs):
        return (yield)


@contextmanager
def _lock_held_at_most(milliseconds: float) -> Iterator[None]:
    __tracebackhide__ = True
    from . import lock
    from ._offlock import lock as native

    if native.switched_off():
        yield
        return
    if reason := lock.obstacle():
        pytest.skip(f"how long the lock is held cannot be seen here: {reason}")
    with lock.measure() as trace:
        yield
    assert trace.summary is not None
    if excess := _excess(trace.summary.to_dict()["threads"], milliseconds):
        pytest.fail(f"the lock was held for more than {milliseconds:g} ms: {excess}")


def _excess(threads: list[dict[str, Any]], milliseconds: float) -> str:
    """Describes the threads that held the lock longer, worst first, each with its longest hold."""
    held = sorted(((thread["longest_hold"] / 1e6, thread["name"]) for thread in threads), reverse=True)
    return ", ".join(f"{name!r} held it for {time:.1f} ms" for time, name in held if time > milliseconds)
