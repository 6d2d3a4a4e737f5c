"""Structs of the Arrow C data interface with arbitrary contents, in the capsules in which Python passes them."""

from __future__ import annotations

import ctypes
from typing import Any

_pointer = ctypes.POINTER
_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Schema(ctypes.Structure):
    """`struct ArrowSchema`"""


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", _pointer(Schema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class Array(ctypes.Structure):
    """`struct ArrowArray`"""


Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", _pointer(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", _pointer(Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

_release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _release_schema(address: int) -> None:
    Schema.from_address(address).release = None


def _release_array(address: int) -> None:
    Array.from_address(address).release = None


_RELEASE = {Schema: _release(_release_schema), Array: _release(_release_array)}


class Exporter:
    """Exports an array whose fields may have any values. It keeps all of its memory alive."""

    def __init__(self, format: bytes | None, memory: list[Any], **fields: Any) -> None:
        self.kept: list[Any] = []
        self.schema = self.struct(Schema, format=format)
        self.array = self.struct(Array, **(self.with_buffers(memory) | fields))

    def struct(self, kind: Any, **fields: Any) -> Any:
        """Returns a struct that is not released, unless the fields say so."""
        made = kind(**({"release": ctypes.cast(_RELEASE[kind], ctypes.c_void_p).value} | fields))
        self.kept.append(made)
        return made

    def with_buffers(self, buffers: list[Any]) -> dict[str, Any]:
        """Returns the fields for buffers, each of which is memory or None."""
        self.kept.append(buffers)
        places = [None if buffer is None else ctypes.addressof(buffer) for buffer in buffers]
        addresses = (ctypes.c_void_p * len(buffers))(*places)
        self.kept.append(addresses)
        return {"n_buffers": len(buffers), "buffers": ctypes.cast(addresses, _pointer(ctypes.c_void_p))}

    def dictionary(self, schema: Any, array: Any) -> None:
        """Sets the dictionary of the array."""
        self.kept += [schema, array]
        if schema is not None:
            self.schema.dictionary = ctypes.pointer(schema)
        if array is not None:
            self.array.dictionary = ctypes.pointer(array)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return (
            _python.PyCapsule_New(ctypes.addressof(self.schema), b"arrow_schema", None),
            _python.PyCapsule_New(ctypes.addressof(self.array), b"arrow_array", None),
        )


def int32s(*numbers: int) -> Any:
    return (ctypes.c_int32 * len(numbers))(*numbers)


def int64s(*numbers: int) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def octets(content: bytes) -> Any:
    return (ctypes.c_char * len(content)).from_buffer_copy(content)
