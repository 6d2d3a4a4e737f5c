"""Threads that work in offlock's operations. Load: threads."""

import random
import sys

from work import goes_on, run

import offlock.zlib

data = random.Random(1).randbytes(1 << 16) * 64


def compress() -> None:
    while goes_on():
        offlock.zlib.compress(data)


run(*[compress] * int(sys.argv[1]), name="packer")
