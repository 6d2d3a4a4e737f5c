"""A mutex that a forked child can take."""

from __future__ import annotations

import os
import threading


class Mutex:
    """Has a reentrant lock, which is new in a forked child, where another thread's would stay locked.

    Attributes:
        lock: the lock, for a ``with`` block: one that a fork interrupts releases the lock that it took.
    """

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.lock = threading.RLock()
