"""The encodings that ``tiktoken_ext`` plugins bring."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from offlock import _offlock

Constructor: TypeAlias = Callable[[], dict[str, Any]]
"""Returns the arguments of an encoding."""


def names() -> Iterator[str]:
    """Yields the modules of the namespace package ``tiktoken_ext``, except the one with the public encodings."""
    try:
        plugins = importlib.import_module("tiktoken_ext")
    except ImportError:
        return
    for module in pkgutil.iter_modules(plugins.__path__, "tiktoken_ext."):
        if module.name != "tiktoken_ext.openai_public":
            yield module.name


def constructors() -> dict[str, Constructor]:
    """Returns what makes the arguments of each encoding, by the encoding's name."""
    found: dict[str, Constructor] = {}
    for plugin in names():
        for name, constructor in _constructors_of(plugin).items():
            if name in found or name in _offlock.ENCODING_NAMES:
                raise ValueError(f"Duplicate encoding name {name} in tiktoken plugin {plugin}")
            found[name] = constructor
    return found


def _constructors_of(plugin: str) -> dict[str, Constructor]:
    try:
        constructors: dict[str, Constructor] = importlib.import_module(plugin).ENCODING_CONSTRUCTORS
    except AttributeError as error:
        raise ValueError(f"tiktoken plugin {plugin} does not define ENCODING_CONSTRUCTORS") from error
    return constructors
