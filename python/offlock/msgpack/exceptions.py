"""The exceptions of decoding, with msgpack's names. Exceptions that hooks raise pass through unchanged."""


class UnpackException(Exception):
    """The base of the exceptions of decoding."""


class BufferFull(UnpackException):
    """The unpacker's buffer would hold more bytes than `max_buffer_size` allows."""


class OutOfData(UnpackException):
    """The next object is not complete yet."""


class FormatError(ValueError, UnpackException):
    """The bytes are not MessagePack."""


class StackError(ValueError, UnpackException):
    """The nesting is too deep."""


#: Kept for programs that use msgpack's old name.
UnpackValueError = ValueError


class ExtraData(UnpackValueError):
    """Bytes follow the message: `unpacked` is the object of the message, `extra` are the bytes."""

    def __init__(self, unpacked: object, extra: bytes) -> None:
        self.unpacked = unpacked
        self.extra = extra

    def __str__(self) -> str:
        return f"unpack(b) received extra data: {len(self.extra)} bytes."


#: Kept for programs that use msgpack's old names.
PackException = Exception
PackValueError = ValueError
PackOverflowError = OverflowError
