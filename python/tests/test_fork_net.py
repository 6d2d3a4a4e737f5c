"""Forks at random moments of every operation: see `forking`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import msgpackcases
import operations
import pytest

SECONDS = float(os.environ.get("OFFLOCK_SOAK_SECONDS", "10"))
"""How long to fork children; the environment may set a longer time."""


def test_the_operations_are_all_there() -> None:
    assert operations.public_names() <= {*operations.covered()}
    assert msgpackcases.CASES


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_children_forked_at_any_moment_work() -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"python tests/forking.py {seed} {SECONDS}")
    program = Path(__file__).with_name("forking.py")
    command = [sys.executable, str(program), str(seed), str(SECONDS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS + 300, check=False
    )
    assert (run.stdout, run.stderr, run.returncode) == ("done\n", "", 0)
