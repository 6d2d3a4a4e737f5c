"""tiktoken's API, with the work done off the interpreter lock.

``import offlock.tiktoken as tiktoken`` keeps a program that uses tiktoken working: the same names, arguments,
defaults, token ids and exception classes. The vocabularies are part of the package; nothing is downloaded.

Beyond tiktoken's interface, an :class:`Encoding` counts, truncates and cuts texts into chunks without making lists of
ids, encodes texts that arrive in pieces (:class:`Stream`), and has awaitable methods for asyncio. Methods that may release
the lock take ``release=``. :func:`num_tokens_from_messages` counts the tokens of a chat.
"""

from offlock._chunks import Chunk as Chunk
from offlock._offlock import Stream as Stream

from .chat import num_tokens_from_messages as num_tokens_from_messages
from .core import Encoding as Encoding
from .model import encoding_for_model as encoding_for_model
from .model import encoding_name_for_model as encoding_name_for_model
from .registry import get_encoding as get_encoding
from .registry import list_encoding_names as list_encoding_names

__version__ = "0.14.0"
"""The version of tiktoken whose API and models this module provides."""
