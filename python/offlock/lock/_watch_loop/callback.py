"""Names callbacks of an event loop, and finds them on a stack."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from .event import Stack

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_MOST_FRAMES = 64
_HERE = str(Path(__file__).parent)


class Callback(NamedTuple):
    function: str = ""
    file: str = ""
    line: int = 0
    task: str = ""


UNKNOWN = Callback()


def of_code(code: CodeType, task: str = "") -> Callback:
    return Callback(code.co_qualname, code.co_filename, code.co_firstlineno, task)


def described(callback: Any) -> Callback:
    """Names a callback of a loop; the step of a task by the task's coroutine."""
    while isinstance(callback, functools.partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if hasattr(owner, "get_coro"):
        return of_task(owner)
    function = getattr(callback, "__func__", callback)
    # Of an object that is called like a function.
    call = type(function).__call__ if callable(function) else None
    code = getattr(function, "__code__", getattr(call, "__code__", None))
    if code is not None:
        return of_code(code)
    return Callback(getattr(function, "__qualname__", None) or type(function).__qualname__)


def of_task(task: Any) -> Callback:
    coroutine = task.get_coro()
    for attribute in ("cr_code", "gi_code", "ag_code"):
        if code := getattr(coroutine, attribute, None):
            return of_code(code, task.get_name())
    return Callback(getattr(coroutine, "__qualname__", ""), task=task.get_name())


def current_task(loop: AbstractEventLoop) -> Any:
    import asyncio

    try:
        return asyncio.current_task(loop)
    except RuntimeError:
        return None


def running_loop() -> AbstractEventLoop | None:
    import asyncio

    return asyncio._get_running_loop()


def frames(frame: FrameType | None, is_outside: Callable[[FrameType], bool]) -> tuple[Stack, CodeType | None]:
    """Returns the stack within the loop's callback, and the callback's own code."""
    stack: list[tuple[str, str, int]] = []
    code = None
    while frame is not None and not is_outside(frame):
        if not frame.f_code.co_filename.startswith(_HERE):  # a garbage collection calls into this package
            code = frame.f_code
            if len(stack) < _MOST_FRAMES:
                stack.append((code.co_qualname, code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(stack), code
