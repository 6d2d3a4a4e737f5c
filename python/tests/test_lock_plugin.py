"""Tests the pytest plugin in a separate run of pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

from offlock import lock

pytest_plugins = ["pytester"]

PROGRAM = """
    import time
    import pytest

    def compute(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    def test_block(lock_held_at_most):
        compute(0.3)
        with lock_held_at_most(200):
            time.sleep(0.3)

    def test_long_block(lock_held_at_most):
        with lock_held_at_most(milliseconds=50):
            compute(0.2)

    @pytest.mark.lock_held_at_most(200)
    def test_marked():
        time.sleep(0.3)

    @pytest.mark.lock_held_at_most(50)
    def test_long_marked():
        compute(0.2)

    @pytest.mark.lock_held_at_most(50)
    def test_own_failure():
        compute(0.2)
        raise ValueError("comes first")
"""


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.RunResult:
    monkeypatch.setenv("PYTHONPATH", str(Path(lock.__file__).parents[2]))
    pytester.makepyfile(PROGRAM)
    return pytester.runpytest_subprocess("-p", "offlock.pytest_plugin", "--strict-markers")


@pytest.mark.skipif(lock.obstacle() is not None, reason=f"{lock.obstacle()}")
def test_who_held_the_lock_too_long_is_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, monkeypatch)
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.re_match_lines(
        [
            r".*the lock was held for more than 50 ms: 'MainThread' held it for \d+\.\d ms",
            r".*ValueError: comes first",
        ]
    )


def test_without_exact_figures_tests_are_skipped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLOCK_FEED", "samples")
    result = run(pytester, monkeypatch)
    result.assert_outcomes(skipped=5)
