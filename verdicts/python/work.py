"""What the programs have in common: how long they run, and work that computes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

SECONDS = float(os.environ.get("SECONDS", "3"))
END = time.monotonic() + SECONDS


def goes_on() -> bool:
    return time.monotonic() < END


def compute(seconds: float) -> None:
    """Holds the lock, but for the time slices of others, until the thread has used this much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def run(*bodies: Callable[[], None], name: str | None = None) -> None:
    """Runs each function in a thread, named `name 1` and so on, or after the function."""
    threads = [
        threading.Thread(target=body, name=f"{name} {number}" if name else body.__name__)
        for number, body in enumerate(bodies, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
