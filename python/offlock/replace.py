"""Runs a program with offlock's modules in place of the originals: `python -m offlock.replace app.py`."""

from __future__ import annotations

import argparse
import builtins
import importlib.util
import io
import os
import pkgutil
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import NoReturn

from ._replace import NAMES, Replacement, replace

_EPILOG = """\
All words after PROGRAM are the program's own arguments. Processes that the program forks have the replaced
modules, too. A new Python that the program starts has the originals.
"""


class _Callable(ModuleType):
    """The type of this module, which makes it callable.

    `import offlock.replace` binds the module to the name of the function `offlock.replace`.
    """

    def __call__(self, *names: str) -> Replacement:
        return replace(*names)


class _Program:
    """A program to run: its code, its path as in `sys.argv`, and its module's spec."""

    def __init__(self, code: CodeType, path: str, spec: ModuleSpec | None) -> None:
        self._code = code
        self._path = path
        self._spec = spec

    @classmethod
    def in_file(cls, path: str) -> _Program:
        """Finds a script, or a folder or archive with a module `__main__`."""
        place = os.path.abspath(path)
        if finder := pkgutil.get_importer(place):
            _set_first_on_path(place)
            spec = finder.find_spec("__main__")
            return cls(_code_of(spec) or _fail(f"can't find '__main__' module in {place!r}"), path, spec)
        _set_first_on_path(os.path.dirname(os.path.realpath(path)))
        try:
            with io.open_code(place) as file:
                source = file.read()
        except OSError as error:
            _fail(f"can't open file {place!r}: [Errno {error.errno}] {error.strerror}", 2)
        return cls(compile(source, place, "exec", dont_inherit=True), path, None)

    @classmethod
    def in_module(cls, name: str) -> _Program:
        spec = _find(name)
        if spec and spec.submodule_search_locations is not None:
            name, package = f"{name}.__main__", name
            spec = _find(name) or _fail(
                f"{package!r} is a package and cannot be executed: it has no __main__"
            )
        code = _code_of(spec) or _fail(f"No module named {name}")
        return cls(code, (spec and spec.origin) or name, spec)

    def run(self, arguments: list[str]) -> None:
        """Runs the program in a new module `__main__`.

        The module stays in `sys.modules` afterwards, for threads and exit handlers.
        """
        sys.argv[:] = [self._path, *arguments]
        module = ModuleType("__main__")
        module.__dict__.update(self._attributes(), __builtins__=builtins)
        sys.modules["__main__"] = module
        exec(self._code, module.__dict__)

    def _attributes(self) -> dict[str, object]:
        spec = self._spec
        if spec is None:
            place = os.path.abspath(self._path)
            return {
                "__file__": place,
                "__cached__": None,
                "__loader__": SourceFileLoader("__main__", place),
                "__package__": None,
                "__spec__": None,
            }
        return {
            "__file__": spec.origin,
            "__cached__": spec.cached,
            "__loader__": spec.loader,
            "__package__": spec.parent,
            "__spec__": spec,
        }


def _find(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # An import that fails inside one of the packages is an error of the program.
        if error.name and f"{name}.".startswith(f"{error.name}."):
            return None
        raise


def _code_of(spec: ModuleSpec | None) -> CodeType | None:
    """Returns the module's code; None for a missing module and for one in native code."""
    # Loaders of archives have the method without being an `InspectLoader`.
    get_code: Callable[[str], CodeType | None] | None = getattr(spec and spec.loader, "get_code", None)
    return get_code(spec.name) if spec and get_code else None


def _set_first_on_path(folder: str) -> None:
    """Replaces the first folder on `sys.path`, which `python -m` has put there unless Python runs in safe-path mode."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _fail(message: str, status: int = 1) -> NoReturn:
    print(f"{sys.executable}: {message}", file=sys.stderr)
    sys.exit(status)


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(f"choose from {', '.join(NAMES)}, not {name!r}")
    return names


def main() -> None:
    """Runs the command `python -m offlock.replace`."""
    parser = argparse.ArgumentParser(
        prog="python -m offlock.replace",
        usage="%(prog)s [-h] [--only NAMES] (PROGRAM | -m MODULE) [ARGUMENT ...]",
        description="Runs a program with offlock's modules in place of " + ", ".join(NAMES) + ".",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--only",
        metavar="NAMES",
        type=_names,
        default=[],
        help="replace only these modules, for example zlib,gzip",
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module, as python -m does")
    parser.add_argument(
        "program",
        metavar="PROGRAM",
        nargs=argparse.REMAINDER,
        help="a script, or a folder or archive with __main__",
    )
    options = parser.parse_args()
    if not options.program:
        parser.error("a program is missing: give the path of a script, or -m and the name of a module")
    name, *arguments = options.program
    replace(*options.only)
    program = _Program.in_module(name) if options.is_module else _Program.in_file(name)
    program.run(arguments)


if __name__ == "__main__":
    main()
else:
    sys.modules[__name__].__class__ = _Callable
