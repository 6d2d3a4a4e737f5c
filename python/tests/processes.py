"""Runs programs in processes of their own, for tests that interrupt, fork, or leave threads running."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator


def crowd() -> float:
    """Returns the load per processor of this machine, at least 1, as a factor for time limits.

    With AddressSanitizer (`script/asan`), allocating and freeing take many times as long.
    """
    sanitized = 20.0 if "libasan" in os.environ.get("LD_PRELOAD", "") else 1.0
    return sanitized * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


PRELUDE = """
import os, random, signal, sys, threading, time
import offlock.tiktoken
enc = offlock.tiktoken.get_encoding("cl100k_base")
text = random.Random(1).randbytes(500_000).hex() * 100  # so many different pieces that caches do not help

def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def say(*words):
    print(*words, flush=True)
"""


@contextlib.contextmanager
def started(
    program: str, *flags: str, prelude: str = PRELUDE, stdin: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Runs `program` after `prelude` during the block, with pipes for its output (and input)."""
    command = [sys.executable, *flags, "-c", prelude + textwrap.dedent(program)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        stdin=pipe if stdin else None,
        stdout=pipe,
        stderr=pipe,
        text=True,
        preexec_fn=_default_interrupts,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run(program: str, *flags: str, prelude: str = PRELUDE) -> str:
    """Returns the output of `program`, which must succeed and write nothing to stderr."""
    with started(program, *flags, prelude=prelude) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, ""), (process.returncode, out, err)
    return out


def _default_interrupts() -> None:
    """Resets SIGINT: Python raises KeyboardInterrupt only if SIGINT was not ignored when it started."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
