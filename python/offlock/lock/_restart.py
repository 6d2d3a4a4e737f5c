"""Starts the recorders of a forked child."""

from __future__ import annotations

import os
from typing import Protocol

from . import _threads  # noqa: F401 - forgets the parent's state first, as it is registered first


class RestartsInChild(Protocol):
    """A recorder that a forked child has, too."""

    def _begin_again(self) -> None: ...


restarting: list[RestartsInChild] = []
"""The flight recorders and live traces that run, also in a forked child before they start again."""


def _begin_again() -> None:
    """Start the recorders of a forked child."""
    for recorder in list(restarting):
        recorder._begin_again()


os.register_at_fork(after_in_child=_begin_again)
