"""Fails a test when the lock was held too long: pytest loads this plugin where offlock is installed.

For a part of a test, the fixture::

    def test_index_lets_others_run(lock_held_at_most):
        with lock_held_at_most(20):
            index(documents)

For a whole test, the marker::

    @pytest.mark.lock_held_at_most(20)
    def test_index_lets_others_run(): ...

Both take milliseconds of wall time, and look at the holds of all threads. A hold ends when the thread gives the
lock up: when it blocks, or after a time slice if another thread wants the lock. A thread that computes alone is asked by
nobody, and holds the lock for as long as it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

__all__ = ["lock_held_at_most"]


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    text = "lock_held_at_most(milliseconds): fail the test when a thread held the lock longer"
    config.addinivalue_line("markers", text)


@pytest.fixture
def lock_held_at_most() -> Callable[[float], AbstractContextManager[None]]:
    """A context manager that takes milliseconds, and fails the test when a thread held the lock longer in its block.

    The test is skipped, and told why, where the lock cannot be watched exactly.
    """
    return _lock_held_at_most


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Watch a test that bears the marker."""
    marker = item.get_closest_marker("lock_held_at_most")
    if marker is None:
        return (yield)
    with _lock_held_at_most(*marker.args, **marker.kwargs):
        return (yield)


@contextmanager
def _lock_held_at_most(milliseconds: float) -> Iterator[None]:
    __tracebackhide__ = True
    from . import lock

    if reason := lock.obstacle():
        pytest.skip(f"how long the lock is held cannot be seen here: {reason}")
    with lock.measure() as trace:
        yield
    assert trace.summary is not None
    if excess := _excess(trace.summary.to_dict()["threads"], milliseconds):
        pytest.fail(f"the lock was held for more than {milliseconds:g} ms: {excess}")


def _excess(threads: list[dict[str, Any]], milliseconds: float) -> str:
    """The threads that held the lock longer, worst first, each with its longest hold."""
    held = sorted(((thread["longest_hold"] / 1e6, thread["name"]) for thread in threads), reverse=True)
    return ", ".join(f"{name!r} held it for {time:.1f} ms" for time, name in held if time > milliseconds)
