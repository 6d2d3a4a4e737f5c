from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, ClassVar, Literal, TypeAlias, final, overload

from typing_extensions import Buffer, disjoint_base

from .exceptions import BufferFull as BufferFull
from .exceptions import ExtraData as ExtraData
from .exceptions import FormatError as FormatError
from .exceptions import OutOfData as OutOfData
from .exceptions import PackException as PackException
from .exceptions import PackOverflowError as PackOverflowError
from .exceptions import PackValueError as PackValueError
from .exceptions import StackError as StackError
from .exceptions import UnpackException as UnpackException
from .exceptions import UnpackValueError as UnpackValueError
from .ext import ExtType as ExtType
from .ext import Timestamp as Timestamp

_Release: TypeAlias = Literal["auto", "always", "never"]

version: tuple[int, int, int]
__version__: str

def packb(
    o: Any,
    /,
    *,
    default: Callable[[Any], Any] | None = None,
    use_single_float: bool = False,
    autoreset: bool = True,
    use_bin_type: bool = True,
    strict_types: bool = False,
    datetime: bool | Literal["iso"] = False,
    unicode_errors: str | None = None,
    buf_size: int = 262144,
    dataclasses: bool = False,
    numpy: bool = False,
    uuid: bool = False,
    enum: bool = False,
    release: _Release = "auto",
) -> bytes: ...
def pack(o: object, stream: IO[bytes], **kwargs: Any) -> None: ...
def unpackb(
    packed: Buffer,
    /,
    *,
    object_hook: Callable[[dict[Any, Any]], Any] | None = None,
    list_hook: Callable[[Any], Any] | None = None,
    use_list: bool = True,
    raw: bool = False,
    timestamp: int = 0,
    strict_map_key: bool = True,
    unicode_errors: str | None = None,
    object_pairs_hook: Callable[[list[tuple[Any, Any]]], Any] | None = None,
    ext_hook: Callable[[int, bytes], Any] | None = None,
    max_str_len: int = -1,
    max_bin_len: int = -1,
    max_array_len: int = -1,
    max_map_len: int = -1,
    max_ext_len: int = -1,
    release: _Release = "auto",
) -> Any: ...
def unpack(stream: IO[bytes], **kwargs: Any) -> Any: ...
def unpack_all(packed: Iterable[Buffer], **options: Any) -> list[Any]: ...
def view(packed: Buffer, **options: Any) -> Any: ...
def extract(packed: Buffer, *path: str, release: _Release = "auto") -> list[str | float | None]: ...

load = unpack
loads = unpackb
dump = pack
dumps = packb

@disjoint_base
class Packer(Buffer):
    def __init__(
        self,
        *,
        default: Callable[[Any], Any] | None = None,
        use_single_float: bool = False,
        autoreset: bool = True,
        use_bin_type: bool = True,
        strict_types: bool = False,
        datetime: bool | Literal["iso"] = False,
        unicode_errors: str | None = None,
        buf_size: int = 262144,
        dataclasses: bool = False,
        numpy: bool = False,
        uuid: bool = False,
        enum: bool = False,
        release: _Release = "auto",
    ) -> None: ...
    def pack(self, obj: Any) -> Any: ...
    def pack_ext_type(self, typecode: int, data: Buffer) -> Any: ...
    def pack_array_header(self, size: int) -> Any: ...
    def pack_map_header(self, size: int) -> Any: ...
    def pack_map_pairs(self, pairs: Any) -> Any: ...
    def reset(self) -> None: ...
    def bytes(self) -> bytes: ...
    def getbuffer(self) -> memoryview: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@disjoint_base
class Unpacker:
    def __init__(
        self,
        file_like: Any = None,
        *,
        read_size: int = 0,
        max_buffer_size: int = 104857600,
        object_hook: Callable[[dict[Any, Any]], Any] | None = None,
        list_hook: Callable[[Any], Any] | None = None,
        use_list: bool = True,
        raw: bool = False,
        timestamp: int = 0,
        strict_map_key: bool = True,
        unicode_errors: str | None = None,
        object_pairs_hook: Callable[[list[tuple[Any, Any]]], Any] | None = None,
        ext_hook: Callable[[int, bytes], Any] | None = None,
        max_str_len: int = -1,
        max_bin_len: int = -1,
        max_array_len: int = -1,
        max_map_len: int = -1,
        max_ext_len: int = -1,
        release: _Release = "auto",
    ) -> None: ...
    def feed(self, next_bytes: Buffer) -> None: ...
    def unpack(self) -> Any: ...
    def skip(self) -> None: ...
    def read_bytes(self, nbytes: int) -> bytes: ...
    def read_array_header(self) -> int: ...
    def read_map_header(self) -> int: ...
    def tell(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...

@final
class View:
    @overload
    def __getitem__(self, key: slice, /) -> list[Any]: ...
    @overload
    def __getitem__(self, key: Any, /) -> Any: ...
    def get(self, key: Any, default: Any = None) -> Any: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __iter__(self) -> Iterator[Any]: ...
    def keys(self) -> list[Any]: ...
    def values(self) -> list[Any]: ...
    def items(self) -> list[tuple[Any, Any]]: ...
    def build(self) -> Any: ...

__all__ = [
    "BufferFull",
    "ExtType",
    "ExtraData",
    "FormatError",
    "OutOfData",
    "PackException",
    "PackOverflowError",
    "PackValueError",
    "Packer",
    "StackError",
    "Timestamp",
    "UnpackException",
    "UnpackValueError",
    "Unpacker",
    "View",
    "dump",
    "dumps",
    "extract",
    "load",
    "loads",
    "pack",
    "packb",
    "unpack",
    "unpack_all",
    "unpackb",
    "view",
]
