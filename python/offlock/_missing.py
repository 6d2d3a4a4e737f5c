"""Explains why the extension module cannot be imported."""

from __future__ import annotations

import glob
import importlib.machinery
import os
import sys


def explain() -> str:
    """Returns one line: the file that this Python looks for, the files that exist, and the command that fixes it."""
    folder = os.path.dirname(os.path.abspath(__file__))
    names = (os.path.basename(path) for path in glob.glob(os.path.join(glob.escape(folder), "_offlock.*")))
    present = sorted(name for name in names if name.endswith((".so", ".pyd")))
    wanted = f"_offlock{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    version = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"
    if wanted in present:
        return f"{wanted} in {folder} cannot be loaded"
    found = f"holds the one for {', '.join(map(_tag, present))}" if present else "holds none"
    return (
        f"offlock's extension module for {version} ({wanted}) is missing: {folder} {found}. Each version of "
        f"Python needs an offlock of its own: {sys.executable} -m pip install --force-reinstall offlock"
    )


def _tag(name: str) -> str:
    return name.removeprefix("_offlock.").rpartition(".")[0] or name
