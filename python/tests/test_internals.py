"""What is relied on of CPython's insides, and that all works where nothing is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from interpreter import HAS_GIL

from offlock import _offlock

ALL = [
    "str header",
    "bytes size",
    "item arrays",
    "private functions",
    "immortal ints",
    "str objects",
    "import slots",
]

SUITES = [
    "test_msgpack.py",
    "test_msgpack_packing.py",
    "test_msgpack_differential.py",
    "test_strings.py",
    "test_strings_arrow.py",
    "test_tiktoken_differential.py",
    "test_zlib_small.py",
    "test_ints.py",
]

OTHERS = "test_tiktoken_differential and (gpt2 or r50k or p50k or cl100k or harmony)"
"""Tests of encodings whose ids become objects in the same way as those of o200k_base."""


def without_internals(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OFFLOCK_INTERNALS": "0"}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.skipif(sys.version_info >= (3, 16), reason="not known yet")
def test_this_interpreter_is_as_expected() -> None:
    relied_on = list(_offlock.INTERNALS)
    assert relied_on == ([] if os.environ.get("OFFLOCK_INTERNALS") == "0" else ALL)


PROGRAM = """
import offlock
from offlock import lock, strings
print(offlock._offlock.INTERNALS)
print(lock.obstacle())
for kind, reason in offlock._offlock.strings.unavailable():
    print(kind, reason)
try:
    strings.enable_blocks()
except RuntimeError as error:
    print(error)
"""


@pytest.mark.skipif(not HAS_GIL or sys.platform != "linux", reason="other reasons come first")
def test_what_has_no_public_function_says_why_it_is_refused() -> None:
    done = without_internals("-c", PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    unknown = "the layout of str is not understood: OFFLOCK_INTERNALS=0 forbids to rely on it"
    assert done.stdout.splitlines() == [
        "[]",
        "OFFLOCK_INTERNALS=0 forbids redirecting the interpreter's calls",
        "str None",
        f"block {unknown}",
        f"view {unknown}",
        f"strings cannot be built in blocks: {unknown}",
    ]


def test_the_public_functions_give_the_same_results() -> None:
    suites = [str(Path(__file__).parent / suite) for suite in SUITES]
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "not timing",
        "-k",
        f"not in_blocks and not ({OTHERS})",
    ]
    done = without_internals("-m", "pytest", *options, *suites)
    assert done.returncode == 0, done.stdout[-4000:]
