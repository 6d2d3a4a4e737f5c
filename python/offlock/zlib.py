"""zlib off the interpreter lock, with the interface of the standard library's `zlib`.

    import offlock.zlib as zlib

Beyond the original:

- `deflate_all` and `inflate_all` work on many buffers at once, on all cores.
- `max_output` limits the output of a decoder, in bytes; `OutputLimitError` is raised beyond it.
- `progress` is called with the number of bytes done and the total number of bytes.
- `release` sets whether the lock is released: "auto", "always" or "never".
- `cancel` takes an `offlock.Cancel`, with which another thread can end the call.
"""

from zlib import error as error

from ._offlock import zlib as _native

compress = _native.compress
decompress = _native.decompress
compressobj = _native.compressobj
decompressobj = _native.decompressobj
adler32 = _native.adler32
crc32 = _native.crc32
adler32_combine = _native.adler32_combine
crc32_combine = _native.crc32_combine
deflate_all = _native.deflate_all
inflate_all = _native.inflate_all
_ZlibDecompressor = _native._ZlibDecompressor

for _function in (
    compress,
    decompress,
    compressobj,
    decompressobj,
    adler32,
    crc32,
    adler32_combine,
    crc32_combine,
    deflate_all,
    inflate_all,
):
    _function.__module__ = __name__  # where `pickle` looks for it
del _function


class OutputLimitError(error):
    """Raised when the output would be larger than `max_output`."""


__version__ = "1.0"
# The interface is that of zlib 1.3.1. The engines that do the work are others.
ZLIB_VERSION = "1.3.1"
ZLIB_RUNTIME_VERSION = "1.3.1"

DEFLATED = 8
DEF_BUF_SIZE = 16384
DEF_MEM_LEVEL = 8
MAX_WBITS = 15

Z_NO_COMPRESSION = 0
Z_BEST_SPEED = 1
Z_BEST_COMPRESSION = 9
Z_DEFAULT_COMPRESSION = -1

Z_DEFAULT_STRATEGY = 0
Z_FILTERED = 1
Z_HUFFMAN_ONLY = 2
Z_RLE = 3
Z_FIXED = 4

Z_NO_FLUSH = 0
Z_PARTIAL_FLUSH = 1
Z_SYNC_FLUSH = 2
Z_FULL_FLUSH = 3
Z_FINISH = 4
Z_BLOCK = 5
Z_TREES = 6
