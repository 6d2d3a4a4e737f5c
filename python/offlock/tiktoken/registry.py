"""The encodings with a name: the public ones, and those of ``tiktoken_ext`` plugins."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

from offlock import _offlock

from .core import Encoding

ENCODINGS: dict[str, Encoding] = {}
"""The encodings that have been loaded, one object of each."""


def get_encoding(encoding_name: str) -> Encoding:
    """Returns the encoding of that name, always the same object.

    Raises ``ValueError`` when there is none, or when ``encoding_name`` is not a string.
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"Expected a string in get_encoding, got {type(encoding_name)}")
    encoding = ENCODINGS.get(encoding_name)
    # Two threads may both make it; `setdefault` keeps the first. A lock could stay locked forever in a forked child.
    return encoding if encoding is not None else ENCODINGS.setdefault(encoding_name, _make(encoding_name))


def list_encoding_names() -> list[str]:
    """Returns the names that :func:`get_encoding` accepts."""
    return [*_offlock.ENCODING_NAMES, *_plugin_constructors()]


def _make(name: str) -> Encoding:
    if name in _offlock.ENCODING_NAMES:
        return Encoding._open(name)
    constructor = _plugin_constructors().get(name)
    if constructor is None:
        raise ValueError(
            f"Unknown encoding {name}.\n"
            f"Known encodings: {list_encoding_names()}\n"
            f"Plugins found: {list(_plugin_names())}"
        )
    return Encoding(**constructor())


def _plugin_names() -> Iterator[str]:
    """Yields the modules of the namespace package ``tiktoken_ext``, except the one with the public encodings."""
    try:
        plugins = importlib.import_module("tiktoken_ext")
    except ImportError:
        return
    for module in pkgutil.iter_modules(plugins.__path__, "tiktoken_ext."):
        if module.name != "tiktoken_ext.openai_public":
            yield module.name


def _plugin_constructors() -> dict[str, Callable[[], dict[str, Any]]]:
    constructors: dict[str, Callable[[], dict[str, Any]]] = {}
    for plugin in _plugin_names():
        for name, constructor in _constructors_of(plugin).items():
            if name in constructors or name in _offlock.ENCODING_NAMES:
                raise ValueError(f"Duplicate encoding name {name} in tiktoken plugin {plugin}")
            constructors[name] = constructor
    return constructors


def _constructors_of(plugin: str) -> dict[str, Callable[[], dict[str, Any]]]:
    try:
        constructors: dict[str, Callable[[], dict[str, Any]]] = importlib.import_module(
            plugin
        ).ENCODING_CONSTRUCTORS
    except AttributeError as error:
        raise ValueError(f"tiktoken plugin {plugin} does not define ENCODING_CONSTRUCTORS") from error
    return constructors
