"""Threads that wait for a mutex of the program, whose holder waits for the network. Load: threads."""

import sys
import threading
import time

from work import compute, goes_on, run

mutex = threading.Lock()


def client() -> None:
    while goes_on():
        with mutex:
            time.sleep(0.005)
        compute(0.00002)


run(*[client] * int(sys.argv[1]), name="client")
