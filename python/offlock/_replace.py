"""Puts offlock's modules in the place of those that they stand in for: `offlock.replace` and `offlock.restore`."""

from __future__ import annotations

import importlib
import sys
from abc import ABCMeta
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType

# Each module that can be replaced, with ours for it and for what is imported from inside it.
_OURS = {
    "zlib": {"zlib": "offlock.zlib"},
    "gzip": {"gzip": "offlock.gzip"},
    "msgpack": {
        "msgpack": "offlock.msgpack",
        "msgpack.exceptions": "offlock.msgpack.exceptions",
        "msgpack.ext": "offlock.msgpack.ext",
        "msgpack.fallback": "offlock.msgpack.fallback",
        "msgpack._cmsgpack": "offlock.msgpack.fallback",
    },
    "tiktoken": {
        "tiktoken": "offlock.tiktoken",
        "tiktoken.core": "offlock.tiktoken.core",
        "tiktoken.load": "offlock.tiktoken.load",
        "tiktoken.model": "offlock.tiktoken.model",
        "tiktoken.registry": "offlock.tiktoken.registry",
        "tiktoken._educational": "offlock.tiktoken._educational",
    },
}
NAMES = tuple(_OURS)


class _Undo:
    """What brings one original back."""

    def __init__(self, modules: dict[str, ModuleType]) -> None:
        self.modules = modules
        # Where a name of a module meant the original's object: the module's names, the name, the original's object and ours.
        self.bindings: list[tuple[dict[str, object], str, object, object]] = []


_replaced: dict[str, _Undo] = {}


class Replacement(tuple[str, ...]):
    """The names of the modules that a call of `offlock.replace` replaced; used as a context, puts them back at its end."""

    __slots__ = ()

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, *_: object) -> None:
        _restore(self)


def replace(*names: str) -> Replacement:
    """Makes the whole program use offlock's modules in place of the originals.

    `names` are some of "zlib", "gzip", "msgpack" and "tiktoken"; all of them if none is given. The originals need not be
    installed. Importing them gives offlock's from now on. In modules that are loaded already, attributes that are the original
    module, or a function or class of it (`from zlib import crc32`), become offlock's. What is held elsewhere stays the
    original: objects that were made before, classes that derive from the original's, default values of parameters, attributes of
    objects. So it is best called first.

    Returns the names of what it replaced, without those that were replaced already. `restore` puts the originals
    back; so does leaving a `with` block of what is returned.

    Raises:
        ValueError: there is nothing to replace a module of that name.
    """
    _check(names)
    wanted = [name for name in dict.fromkeys(names or NAMES) if name not in _replaced]
    for name in wanted:
        _put(name)
    return Replacement(wanted)


def restore(*names: str) -> None:
    """Puts the originals back: of `names`, or all that `replace` replaced.

    Modules that were loaded in between keep what they imported.

    Raises:
        ValueError: there is nothing to replace a module of that name.
    """
    _check(names)
    _restore(names or NAMES)


def _check(names: tuple[str, ...]) -> None:
    for name in names:
        if name not in _OURS:
            raise ValueError(f"offlock replaces {', '.join(NAMES[:-1])} and {NAMES[-1]}, not {name!r}")


def _put(name: str) -> None:
    ours = {key: importlib.import_module(target) for key, target in _OURS[name].items()}
    # Whatever of the original is loaded goes, not to be mixed with ours.
    originals = {key: module for key, module in list(sys.modules.items()) if _belongs(key, name)}
    for key in originals:
        sys.modules.pop(key, None)
    sys.modules.update(ours)
    for key, module in ours.items():
        parent, _, child = key.rpartition(".")
        if parent:
            setattr(ours[parent], child, module)
    stand_ins: dict[int, tuple[object, object]] = {}
    for key, original in originals.items():
        if key in ours:
            stand_ins |= {id(old): (old, new) for old, new in _pairs(name, original, ours[key])}
    undo = _replaced[name] = _Undo(originals)
    if stand_ins:
        undo.bindings += _rebound(stand_ins)


def _belongs(module: str, name: str) -> bool:
    return module == name or module.startswith(f"{name}.")


def _pairs(name: str, original: ModuleType, ours: ModuleType) -> Iterator[tuple[object, object]]:
    """The original module and its functions and classes, each with ours."""
    yield original, ours
    for key, old in vars(original).items():
        new = getattr(ours, key, old)
        if new is old or not _is_made_by(name, old):
            continue
        if isinstance(old, ABCMeta) and isinstance(new, type):
            old.register(new)  # for whoever holds the class and asks `isinstance`
        yield old, new


def _is_made_by(name: str, value: object) -> bool:
    """Whether this is a function or class of the original: its numbers and texts may be anybody's."""
    is_native = type(value).__name__ == "cython_function_or_method"
    if not (is_native or isinstance(value, (type, FunctionType, BuiltinFunctionType))):
        return False
    return _belongs(getattr(value, "__module__", None) or "", name)


def _rebound(
    stand_ins: dict[int, tuple[object, object]],
) -> Iterator[tuple[dict[str, object], str, object, object]]:
    for key, module in list(sys.modules.items()):
        if _belongs(key, "offlock") or not issubclass(type(module), ModuleType):
            continue
        # Not through the module's own way, which may load what is to be loaded late.
        namespace = object.__getattribute__(module, "__dict__")
        for name, value in list(namespace.items()):
            if id(value) in stand_ins:
                ours = stand_ins[id(value)][1]
                namespace[name] = ours
                yield namespace, name, value, ours


def _restore(names: tuple[str, ...]) -> None:
    for name in names:
        undo = _replaced.pop(name, None)
        if undo is None:
            continue
        for key in [key for key in list(sys.modules) if _belongs(key, name)]:
            sys.modules.pop(key, None)
        sys.modules.update(undo.modules)
        for namespace, attribute, original, ours in undo.bindings:
            if namespace.get(attribute) is ours:  # nobody has changed it since
                namespace[attribute] = original
