"""What offlock says about programs whose truth is known.

Each program runs at the middle one of its loads for a second, or with ``VERDICTS=all`` at all of them, for three.
"""

from __future__ import annotations

import os

import pytest
from suite import Case, cases, mistakes, run

ATTEMPTS = 3
"""Other programs that use the machine for a moment change what is true of a recording of a second."""

ALL = os.environ.get("VERDICTS") == "all"
CASES = [
    case for loads in cases() for case in (loads if ALL else loads[len(loads) // 2 : len(loads) // 2 + 1])
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_verdict_is_right(case: Case) -> None:
    if case.language == "ruby" and "RUBY" not in os.environ:
        pytest.skip("RUBY names no Ruby")
    for _ in range(ATTEMPTS):
        found = run(case, 3.0 if ALL else 1.0)
        wrong = mistakes(case, found)
        if not wrong:
            return
    pytest.fail(f"{wrong}\n{found.text}")
