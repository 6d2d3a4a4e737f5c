"""Runs CPython's own tests against offlock's modules. The tests are imported from the interpreter, not copied."""

import importlib.util
import sys
import unittest
from types import ModuleType
from unittest import mock

import pytest


def cases(name: str, swaps: dict[str, ModuleType], left_out: dict[str, str]) -> dict[str, type]:
    """Returns the test classes of `test.<name>` with the modules `swaps` in place.

    `left_out` has the classes or tests ("Class.test") that do not apply, with the reasons.
    """
    found = importlib.util.find_spec("test") and importlib.util.find_spec(f"test.{name}")
    if not found or not found.loader:
        pytest.skip(f"this Python comes without test.{name}", allow_module_level=True)
    module = importlib.util.module_from_spec(found)
    with mock.patch.dict(sys.modules, swaps):
        found.loader.exec_module(module)
    classes = {key: value for key, value in vars(module).items() if _is_case(value, module)}
    for label, reason in left_out.items():
        key, _, test = label.partition(".")
        owner = classes.get(key)
        if owner and not test:
            classes[key] = unittest.skip(reason)(owner)
        elif owner and hasattr(owner, test):  # other versions of Python may not have the test
            setattr(owner, test, unittest.skip(reason)(getattr(owner, test)))
    return classes


def _is_case(value: object, module: ModuleType) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, unittest.TestCase)
        and value.__module__ == module.__name__
    )
