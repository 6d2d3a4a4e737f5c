"""What a trace says about the program: its command, its interpreter, and the names of its threads."""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Sequence

from .._offlock import lock as _native


def about_program(arguments: bool) -> list[tuple[str, str]]:
    command = " ".join(sys.orig_argv if arguments else _program(sys.orig_argv))
    return [
        ("language", "python"),
        ("runtime", f"{platform.python_implementation()} {platform.python_version()}"),
        ("command", command),
        ("switch_interval_ns", str(round(sys.getswitchinterval() * 1e9))),
        *([("lock_enabled", reason)] if (reason := lock_enabled()) else []),
    ]


def lock_enabled() -> str | None:
    """Returns why an interpreter that was built to run without the lock has it; None for all others."""
    is_enabled = getattr(sys, "_is_gil_enabled", lambda: True)
    if "t" not in sys.abiflags or not is_enabled():
        return None
    if os.environ.get("PYTHON_GIL") == "1" or sys._xoptions.get("gil") == "1":
        return "PYTHON_GIL=1 or -X gil=1 asks for it"
    names = [
        name
        for name in _native.modules_that_need_lock()
        if name.partition(".")[0] not in sys.stdlib_module_names
    ]
    if not names:
        return "a module was imported that has not declared that it can run without"
    return f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} imported, not declared to run without"


def _program(arguments: Sequence[str]) -> list[str]:
    """Returns the interpreter and the name of the program.

    Arguments, and code after ``-c``, may be secret and are left out.
    """
    words = iter(arguments[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
        elif word == "-" or not word.startswith("-"):
            return [arguments[0], word]
        elif not word.startswith("--"):
            for at, letter in enumerate(word[1:], 2):
                if letter == "c":
                    return [arguments[0], "-c"]
                if letter == "m":
                    return [arguments[0], "-m", word[at:] or next(words, "")]
                if letter in "WX":
                    if not word[at:]:
                        next(words, None)
                    break
    return list(arguments[:1])


def thread_names() -> list[tuple[int, str]]:
    """Returns the native id and name of every thread.

    The main thread of a forked child may still have its parent's `native_id`, so the calling thread's id is asked
    of the system.
    """
    own = threading.current_thread()
    names = {_native.native_id(): own.name}
    for other in threading.enumerate():
        if other is not own and (native_id := native_id_of(other)):
            names.setdefault(native_id, other.name)  # green threads share a native one
    return list(names.items())


def native_id_of(thread: threading.Thread) -> int | None:
    """Returns None for a green thread of eventlet or gevent that has no native id."""
    return getattr(thread, "native_id", None)
