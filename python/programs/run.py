"""Runs one program with offlock's modules in place of the originals: `run.py first|after PROGRAM.py`.

"first" replaces the originals before the program imports its library, "after" replaces them afterwards. Then the
originals are made to fail, so that the program succeeds only if offlock does the work, and its function `main` is
called.
"""

from __future__ import annotations

import gzip
import importlib.util
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import msgpack
import tiktoken

import offlock

# `offlock.replace` rebinds the names of this module, too, but not the items of a tuple.
ORIGINALS = (gzip, zlib, msgpack, tiktoken)


def broken(*_: object, **__: object) -> NoReturn:
    raise NotImplementedError("the original was called")


def break_originals() -> None:
    for original in ORIGINALS:
        for name, value in list(vars(original).items()):
            if not name.startswith("__") and callable(value) and not is_exception(value):
                setattr(original, name, broken)


def is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    order, path = sys.argv[1:]
    if order == "first":
        offlock.replace()
        break_originals()
        program = load(Path(path))
    else:
        program = load(Path(path))
        offlock.replace()
        break_originals()
    program.main()
