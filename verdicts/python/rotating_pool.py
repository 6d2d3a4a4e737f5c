"""A pool whose members compute in turn, one at a time, so that none has half of the lock; a light thread beside it.

Load: members.
"""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from work import compute, goes_on


def light() -> None:
    while goes_on():
        time.sleep(0.002)
        compute(0.00005)


threads = int(sys.argv[1])
turns = [threading.Semaphore(0) for _ in range(threads)]


def member(number: int) -> None:
    while goes_on():
        turns[number].acquire()
        compute(0.02)
        turns[(number + 1) % threads].release()
    turns[(number + 1) % threads].release()


beside = threading.Thread(target=light, name="light")
beside.start()
turns[0].release()
with ThreadPoolExecutor(threads, thread_name_prefix="member") as pool:
    list(pool.map(member, range(threads)))
beside.join()
