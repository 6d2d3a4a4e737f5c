"""A pool of workers that take tasks from a queue, as Celery's threads do: mails wait for the network, reports compute.

Load: reports in ten tasks.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from work import compute, goes_on

from offlock import lock

reports = int(sys.argv[1])


@lock.mark("reports.build")
def build_report() -> None:
    compute(0.02)


@lock.mark("mails.send")
def send_mail() -> None:
    for _ in range(4):
        time.sleep(0.002)
        compute(0.0001)


def worker(number: int) -> None:
    at = number
    while goes_on():
        (build_report if at % 10 < reports else send_mail)()
        at += 3


with ThreadPoolExecutor(6, thread_name_prefix="worker") as pool:
    list(pool.map(worker, range(6)))
