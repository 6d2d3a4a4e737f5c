"""Threads that compress with the standard library, which releases the lock. Load: threads."""

import os
import sys
import zlib

from work import goes_on, run

data = os.urandom(1 << 17) * 8


def compress() -> None:
    while goes_on():
        zlib.compress(data)


run(*[compress] * int(sys.argv[1]), name="compressor")
