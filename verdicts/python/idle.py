"""A program whose threads wait for something that does not come. Load: threads."""

import sys
import threading

from work import SECONDS, run

never = threading.Event()
run(*[lambda: bool(never.wait(SECONDS)) and None] * int(sys.argv[1]), name="listener")
