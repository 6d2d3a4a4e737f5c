"""See the interpreter lock of Python programs, and get off it."""

from ._offlock import __VERSION__ as __version__
from ._offlock import Cancel as Cancel
from ._offlock import InternalError as InternalError

__all__ = ["Cancel", "InternalError", "__version__"]
