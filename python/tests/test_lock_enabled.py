"""An interpreter that was built to run without the lock, and has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from processes import run

from offlock import _offlock

needs_free_threading = pytest.mark.skipif("t" not in sys.abiflags, reason="about free-threaded builds")

PROGRAM = """
from offlock import lock
with lock.measure() as measured:
    pass
print(*(found["text"] for found in measured.summary.to_dict()["findings"] if found["kind"] == "lock_enabled"))
"""

EXTENSION = """
#include <Python.h>
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "undeclared", NULL, 0, NULL, slots};
PyMODINIT_FUNC PyInit_undeclared(void) { return PyModuleDef_Init(&module); }
"""

LIMITED = (
    "This interpreter was built to run without a lock, but has one, so that one thread computes at a time:"
)


@needs_free_threading
def test_modules_that_declare_to_run_without_the_lock_are_not_listed() -> None:
    names = _offlock.lock.modules_that_need_lock()
    assert not {"threading", "offlock", "offlock._offlock", "_json"} & {*names}


def test_without_the_lock_or_with_no_choice_there_is_nothing_to_say() -> None:
    assert run(PROGRAM, prelude="") == "\n"


@needs_free_threading
def test_the_environment_may_ask_for_the_lock() -> None:
    program = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "PYTHON_GIL": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{LIMITED} PYTHON_GIL=1 or -X gil=1 asks for it.\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Returns variables with which a program can import ``undeclared``, an extension that declares nothing."""
    source = tmp_path / "undeclared.c"
    source.write_text(EXTENSION)
    include = sysconfig.get_path("include")
    target = tmp_path / f"undeclared{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(target)], check=True)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}


@needs_free_threading
@pytest.mark.skipif(not shutil.which("cc"), reason="there is no compiler here")
def test_the_module_whose_import_enabled_the_lock_is_named(environment: dict[str, str]) -> None:
    program = [sys.executable, "-W", "ignore", "-c", "import undeclared\n" + PROGRAM]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{LIMITED} undeclared was imported, not declared to run without.\n"


IMPORTED_LATER = """
import time
from offlock import lock
with lock.measure() as measured:
    time.sleep(0.1)
    import undeclared
    time.sleep(0.2)
print(*(mark["name"] for mark in measured.summary.to_dict()["marks"]))
"""


@needs_free_threading
@pytest.mark.skipif(not shutil.which("cc"), reason="there is no compiler here")
def test_a_mark_says_when_an_import_enabled_the_lock(environment: dict[str, str]) -> None:
    program = [sys.executable, "-W", "ignore", "-c", IMPORTED_LATER]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "the lock was enabled: undeclared was imported, not declared to run without\n"
