"""A script of some milliseconds, with threads. Load: threads."""

import sys

from work import compute, run

run(*[lambda: compute(0.001)] * int(sys.argv[1]), name="worker")
