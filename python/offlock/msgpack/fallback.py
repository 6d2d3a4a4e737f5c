"""The native classes, for programs that import msgpack's pure-Python classes from `msgpack.fallback`."""

from . import Packer as Packer
from . import Unpacker as Unpacker
from . import unpackb as unpackb
from .exceptions import BufferFull as BufferFull
from .exceptions import ExtraData as ExtraData
from .exceptions import FormatError as FormatError
from .exceptions import OutOfData as OutOfData
from .exceptions import StackError as StackError
from .ext import ExtType as ExtType
from .ext import Timestamp as Timestamp
