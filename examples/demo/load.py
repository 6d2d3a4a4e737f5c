"""Measure how long a server takes to answer with a page while other clients ask it for reports."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

PAGE_CLIENTS = 3
PAUSE = 0.01
"""Seconds for which a client reads a page."""


@dataclass
class Answers:
    """What the clients saw in `seconds`."""

    seconds: float
    pages: list[float] = field(default_factory=list)
    """How long each page took, in ms."""
    reports: list[float] = field(default_factory=list)
    """How long each report took, in ms."""
    texts: set[tuple[str, bytes]] = field(default_factory=set)
    """All different answers, with their paths."""

    def percentile(self, share: float) -> float:
        """Return the percentile `share` (0 to 1) of the pages, in ms."""
        ordered = sorted(self.pages)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def load(port: int, seconds: float, report_clients: int) -> Answers:
    """Ask for pages for some seconds, while `report_clients` clients ask for one report after the other."""
    answers, end = Answers(seconds), time.perf_counter() + seconds
    pages = [ask(port, "/page", end, answers, answers.pages, PAUSE) for _ in range(PAGE_CLIENTS)]
    reports = [ask(port, "/report", end, answers, answers.reports, 0) for _ in range(report_clients)]
    await asyncio.gather(*pages, *reports)
    return answers


async def ask(port: int, path: str, end: float, answers: Answers, times: list[float], pause: float) -> None:
    """Send one request after the other until `end`."""
    while (start := time.perf_counter()) < end:
        answers.texts.add((path, await get(port, path)))
        times.append((time.perf_counter() - start) * 1000)
        await asyncio.sleep(pause)


async def get(port: int, path: str) -> bytes:
    """Send a request on a new connection and return the body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{path}: {head.decode()}")
    return body
