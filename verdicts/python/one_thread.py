"""A program with one thread, which computes. Load: the length of its loop's steps in ms."""

import sys

from work import compute, goes_on

while goes_on():
    compute(int(sys.argv[1]) / 1000)
