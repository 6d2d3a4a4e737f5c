"""Lets the interpreter's allocator fail at any moment of any operation: see `nomemory`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from interpreter import HAS_GIL

SECONDS = float(os.environ.get("OFFLOCK_SOAK_SECONDS", "10"))
"""How long to let allocations fail; the environment may set a longer time."""


@pytest.mark.skipif(not HAS_GIL, reason="PyList_New of free-threaded CPython 3.14 frees a wild pointer then")
def test_no_memory_for_small_objects_is_an_exception() -> None:
    pytest.importorskip("_testcapi", reason="this Python was built without its test modules")
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"python tests/nomemory.py {seed} {SECONDS}")
    program = Path(__file__).with_name("nomemory.py")
    command = [sys.executable, str(program), str(seed), str(SECONDS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS + 300, check=False
    )
    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)
