"""The place of msgpack's classes in plain Python: for programs that import them from here. These are the native ones."""

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
