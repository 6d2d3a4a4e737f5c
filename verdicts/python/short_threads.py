"""A thread for each small job that computes, several at a time. Load: at a time."""

import sys
import threading

from work import compute, goes_on

at_a_time = int(sys.argv[1])
free = threading.Semaphore(at_a_time)


def job() -> None:
    compute(0.003)
    free.release()


threads = []
while goes_on():
    free.acquire()
    threads.append(threading.Thread(target=job))
    threads[-1].start()
for thread in threads:
    thread.join()
