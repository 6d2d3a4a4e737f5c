"""Properties of the interpreter that runs the tests."""

from __future__ import annotations

import sys

import pytest

HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
IS_DEBUG_BUILD = hasattr(sys, "gettotalrefcount")

with_gil = pytest.mark.skipif(not HAS_GIL, reason="about builds with a GIL")
objects_are_limited = pytest.mark.skipif(
    not HAS_GIL, reason="free-threaded builds make objects in memory that is reserved in advance"
)
"""For tests in which objects take memory up to a limit of the address space."""
