"""Measure how long a server takes to answer quick requests while other clients ask it for reports."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

INTERVAL = 0.01
"""Seconds from one quick request to the next."""


@dataclass
class Answers:
    """What the clients saw in `seconds`."""

    seconds: float
    quick: list[float] = field(default_factory=list)
    """How long each quick request took, in ms, from the time at which it was due."""
    reports: list[float] = field(default_factory=list)
    """How long each report took, in ms."""
    texts: set[bytes] = field(default_factory=set)
    """All different reports."""

    def percentile(self, share: float) -> float:
        """Return the percentile `share` (0 to 1) of the quick requests, in ms."""
        ordered = sorted(self.quick)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    def reports_per_second(self) -> float:
        """Return how many reports the server made a second."""
        return len(self.reports) / self.seconds


async def get(port: int, path: str) -> bytes:
    """Ask for `path` on a new connection and return the body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{path}: {head.decode()}")
    return body


async def load(port: int, seconds: float, report_clients: int) -> Answers:
    """Send quick requests for some seconds, while `report_clients` clients ask for one report after the other."""
    answers, end = Answers(seconds), time.perf_counter() + seconds
    reports = [ask_for_reports(port, end, answers) for _ in range(report_clients)]
    await asyncio.gather(send_quick_requests(port, end, answers), *reports)
    return answers


async def ask_for_reports(port: int, end: float, answers: Answers) -> None:
    """Ask for reports until `end`."""
    while time.perf_counter() < end:
        start = time.perf_counter()
        answers.texts.add(await get(port, "/report"))
        answers.reports.append((time.perf_counter() - start) * 1000)


async def send_quick_requests(port: int, end: float, answers: Answers) -> None:
    """Send a quick request every INTERVAL, whether or not earlier ones have been answered."""
    due, running = time.perf_counter(), set[asyncio.Task[None]]()
    while due < end:
        await asyncio.sleep(due - time.perf_counter())
        task = asyncio.create_task(quick_request(port, due, answers))
        running.add(task)
        task.add_done_callback(running.discard)
        due += INTERVAL
    await asyncio.gather(*running)


async def quick_request(port: int, due: float, answers: Answers) -> None:
    """Send a quick request and note how long after `due` it was answered."""
    await get(port, "/hello")
    answers.quick.append((time.perf_counter() - due) * 1000)
