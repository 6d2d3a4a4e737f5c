"""See the interpreter lock of Python programs, and get off it."""

from ._offlock import __VERSION__ as __version__
from ._offlock import Cancel as Cancel
from ._offlock import InternalError as InternalError
from ._replace import Replacement as Replacement
from ._replace import replace as replace
from ._replace import restore as restore

__all__ = ["Cancel", "InternalError", "Replacement", "__version__", "replace", "restore"]
