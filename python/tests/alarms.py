"""Calls of streams that are interrupted at random moments, to show that no byte is lost."""

from __future__ import annotations

import contextlib
import itertools
import operator
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

needs_alarms = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms")


class Alarm(Exception):
    """What the handler of the alarm raises."""


@contextlib.contextmanager
def alarms() -> Iterator[None]:
    """A handler that raises :class:`Alarm`."""

    def ring(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupted_calls(
    call: Callable[..., bytes],
    inputs: list[tuple[Any, ...]],
    dice: random.Random,
    again: Callable[[], object] = lambda: b"",
) -> tuple[list[bytes], int]:
    """The results of a call on each of `inputs` while a handler raises at random moments, and how often one began and was
    interrupted. It is then finished by calls whose first argument is what `again` returns.

    A C function takes the arguments and stores the result, so that no handler runs between these and the call.
    """
    outputs: list[bytes] = []
    interrupts = 0
    with alarms():
        for number, (first, *others) in enumerate(inputs):
            while len(outputs) == number:
                arguments = iter([(first, *others)])
                try:
                    signal.setitimer(signal.ITIMER_REAL, dice.uniform(0.0005, 0.01) * (1 + interrupts / 5))
                    outputs.extend(itertools.starmap(call, arguments))
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Alarm:
                    if len(outputs) == number and not operator.length_hint(arguments):
                        first, interrupts = again(), interrupts + 1
    return outputs, interrupts
