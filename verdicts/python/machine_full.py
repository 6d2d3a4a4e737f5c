"""More threads compute off the lock than there are processors, and others take the lock briefly.

Load: threads for each processor.
"""

import os
import sys
import zlib

from work import compute, goes_on, run

data = os.urandom(1 << 12) * 16


def compressor() -> None:
    while goes_on():
        zlib.compress(data)
        compute(0.00002)


run(*[compressor] * int(sys.argv[1]) * len(os.sched_getaffinity(0)), name="compressor")
