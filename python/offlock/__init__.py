"""Traces CPython's interpreter lock, and offers drop-in libraries that work without it.

- `offlock.lock` records which threads hold the lock and which wait for it.
- `offlock.tiktoken`, `offlock.zlib`, `offlock.gzip` and `offlock.msgpack` have the interfaces of the originals.
- `offlock.tokenizer` has the tokenizers of models, and `offlock.pipeline` counts and encodes compressed shards of documents.
- `offlock.strings` makes many ``str`` at once.
- `replace` and `restore` exchange the originals for offlock's modules in the whole program.
"""

from os import environ as _environ

try:
    from ._offlock import __VERSION__ as __version__
except ModuleNotFoundError as _error:
    from ._missing import explain as _explain

    raise ModuleNotFoundError(_explain(), name=_error.name, path=_error.path) from None
from ._offlock import Cancel as Cancel
from ._offlock import InternalError as InternalError
from ._replace import Replacement as Replacement
from ._replace import replace as replace
from ._replace import restore as restore

if _environ.get("OFFLOCK_LIVE"):
    from .lock._publish import publish_if_requested

    publish_if_requested()

__all__ = ["Cancel", "InternalError", "Replacement", "__version__", "replace", "restore"]
