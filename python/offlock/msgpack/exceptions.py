"""What decoding raises, with msgpack's names. Decoding may raise other exceptions, too: those of hooks, for instance."""


class UnpackException(Exception):
    """The base of the exceptions of decoding."""


class BufferFull(UnpackException):
    """More bytes are waiting than `max_buffer_size` allows."""


class OutOfData(UnpackException):
    """The next object is not complete yet."""


class FormatError(ValueError, UnpackException):
    """The bytes are not MessagePack."""


class StackError(ValueError, UnpackException):
    """The nesting is too deep."""


#: Kept for programs that use msgpack's old name.
UnpackValueError = ValueError


class ExtraData(UnpackValueError):
    """Bytes follow after the message; `unpacked` is the object, `extra` are the bytes."""

    def __init__(self, unpacked: object, extra: bytes) -> None:
        self.unpacked = unpacked
        self.extra = extra

    def __str__(self) -> str:
        return f"unpack(b) received extra data: {len(self.extra)} bytes."


#: Kept for programs that use msgpack's old names.
PackException = Exception
PackValueError = ValueError
PackOverflowError = OverflowError
