"""Starts the trace that `offlock trace` asked for, then runs the sitecustomize that this one hides.

Python imports it when it starts, because `offlock trace` puts its folder first on PYTHONPATH.
"""

import importlib.machinery
import importlib.util
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_PACKAGES = os.path.dirname(os.path.dirname(_FOLDER))


def _start_trace() -> None:
    """A program that cannot be traced runs all the same."""
    # The program may not see the package; what else lies beside it is none of the program's business.
    sys.path.append(_PACKAGES)
    try:
        from offlock.lock import Trace

        Trace.from_environment()
        os.register_at_fork(after_in_child=Trace.from_environment)
    except Exception as error:
        print(f"offlock: {sys.executable} is not traced: {error}", file=sys.stderr)
    finally:
        sys.path.remove(_PACKAGES)


def _run_hidden() -> None:
    others = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]
    finder = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if finder and finder.loader:
        hidden = importlib.util.module_from_spec(finder)
        sys.modules["sitecustomize"] = hidden
        finder.loader.exec_module(hidden)


_start_trace()
_run_hidden()
