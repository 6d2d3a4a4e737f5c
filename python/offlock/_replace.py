"""Replaces the original modules by offlock's in the whole program: `offlock.replace` and `offlock.restore`."""

from __future__ import annotations

import importlib
import sys
from abc import ABCMeta
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType

# For each module that can be replaced: offlock's modules for it and for its submodules.
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
    """The state that `restore` needs to put one original module back."""

    def __init__(self, modules: dict[str, ModuleType]) -> None:
        self.modules = modules
        # Attributes of modules that were rebound: the module's `__dict__`, the attribute's name, the original's
        # object and offlock's.
        self.bindings: list[tuple[dict[str, object], str, object, object]] = []


_replaced: dict[str, _Undo] = {}


class Replacement(tuple[str, ...]):
    """The names of the modules that a call of `offlock.replace` replaced.

    Used as a context manager, it puts the originals back at the end of the block.
    """

    __slots__ = ()

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, *_: object) -> None:
        _restore(self)


def replace(*names: str) -> Replacement:
    """Makes the whole program use offlock's modules in place of the originals.

    `names` are some of "zlib", "gzip", "msgpack" and "tiktoken"; without names all four are replaced. The originals
    need not be installed. From this call on, importing an original imports offlock's module. In modules that are
    loaded already, attributes that are the original module, or a function or class of it
    (`from zlib import crc32`), become offlock's. All other references keep the original: objects made before,
    classes that derive from the original's, default values of parameters, and attributes of objects. So call this
    function before other imports.

    Returns:
        The names of the modules that this call replaced, without those that were replaced already. `restore` puts
        the originals back; so does the end of a `with` block over the returned value.

    Raises:
        ValueError: offlock replaces no module of that name.
    """
    _check(names)
    wanted = [name for name in dict.fromkeys(names or NAMES) if name not in _replaced]
    for name in wanted:
        _put(name)
    return Replacement(wanted)


def restore(*names: str) -> None:
    """Puts the originals of `names` back; without names, all that `replace` replaced.

    Modules that were loaded in between keep offlock's modules, functions and classes that they imported.

    Raises:
        ValueError: offlock replaces no module of that name.
    """
    _check(names)
    _restore(names or NAMES)


def _check(names: tuple[str, ...]) -> None:
    for name in names:
        if name not in _OURS:
            raise ValueError(f"offlock replaces {', '.join(NAMES[:-1])} and {NAMES[-1]}, not {name!r}")


def _put(name: str) -> None:
    ours = {key: importlib.import_module(target) for key, target in _OURS[name].items()}
    # Remove every loaded submodule of the original, so that the program never mixes them with offlock's.
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
    """Yields the original module and its functions and classes, each with offlock's counterpart."""
    yield original, ours
    for key, old in vars(original).items():
        new = getattr(ours, key, old)
        if new is old or not _is_made_by(name, old):
            continue
        if isinstance(old, ABCMeta) and isinstance(new, type):
            old.register(new)  # `isinstance` against the original class accepts offlock's objects
        yield old, new


def _is_made_by(name: str, value: object) -> bool:
    """Whether the value is a function or class of the module.

    Other values, such as numbers and strings, are not replaced: unrelated modules may refer to equal ones.
    """
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
        # A module's own `__getattribute__` may import the modules that it loads lazily.
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
            if namespace.get(attribute) is ours:  # the program has not assigned it since
                namespace[attribute] = original
