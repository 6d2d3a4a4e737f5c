"""Measures what tracing costs servers under load: script/bench servers

- Puma with five threads, gunicorn with five threads (gthread), and uvicorn serve two pages on loopback: a light one, and
  one that computes for some milliseconds (in uvicorn in a thread of its pool).
- In each generation there is one server for each mode, all at the same time. wrk asks one after the other, in another order
  each round, with one thread and eight connections that stay open, each of which asks again as soon as it is answered.
- A figure is the median over all rounds and generations; a generation has processes of its own. Throughput is that of a
  mode as a multiple of the untraced one's of the same round, and so is processor time, that of the server's processes for
  one request. Percentiles of the time that a page takes are wrk's.
- The standard error of a median is that of normally distributed logarithms, and a second untraced server shows what differs
  without any cause.
- wrk and the server share the processors, and the traces are written to the disk. How often threads hand the lock over
  for one request depends on where the system runs them, which changes from second to second, so throughput of an untraced
  server varies by a factor of two; processor time, by less.
"""

from __future__ import annotations

import math
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
APPS = HERE / "apps"
sys.path.insert(0, str(HERE.parent))
import bench  # noqa: E402

WRK = os.environ.get("WRK", "wrk")


@dataclass(frozen=True)
class Mode:
    """How a server is run: the arguments of `offlock`, if that starts it, and whether `offlock top` watches it."""

    arguments: tuple[str, ...] = ()
    watched: bool = False


TRACE = ("trace", "--no-summary", "--output", "{port}.offlock")
UNTRACED = "untraced"
MODES = {
    UNTRACED: Mode(),
    "untraced again": Mode(),
    "trace with stacks": Mode(TRACE),
    "flight recorder": Mode((*TRACE, "--keep", "30s")),
    "live": Mode(("run",)),
    "live, watched": Mode(("run",), watched=True),
}

SERVERS = {
    "Puma": [
        os.environ.get("RUBY", "ruby"), os.environ.get("PUMA", "puma"),
        *("--threads", "5:5", "--bind", "tcp://127.0.0.1:{port}", "app.ru"),
    ],
    "gunicorn": [
        *(sys.executable, "-m", "gunicorn", "--worker-class", "gthread", "--threads", "5"),
        *("--bind", "127.0.0.1:{port}", "--log-level", "error", "wsgi_app:app"),
    ],
    "uvicorn": [
        *(sys.executable, "-m", "uvicorn", "--port", "{port}", "--log-level", "error", "--no-access-log"),
        "asgi_app:app",
    ],
}  # fmt: skip

PAGES = {"light": sum(number * number for number in range(10)), "computing": 8999550005000}
"""The pages, and their answers."""


def environment() -> dict[str, str]:
    package = str(HERE.parents[1] / "python")
    ours = {
        "PYTHONPATH": os.pathsep.join([package, str(APPS)]),
        "OFFLOCK_RUBYLIB": os.environ.get("RUBYLIB", ""),
    }
    return os.environ | ours | {"NIO4R_PURE": "true"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Ends the process at the end of the block."""
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()


@contextmanager
def serving(server: str, mode: Mode, folder: Path) -> Iterator[tuple[str, int]]:
    """Runs a server, and gives the address of its pages and the process that was started."""
    port = free_port()
    command = [sys.executable, "-m", "offlock", *mode.arguments, "--"] if mode.arguments else []
    command = [word.format(port=folder / str(port)) for word in command]
    command += [word.format(port=port) for word in SERVERS[server]]
    process = subprocess.Popen(
        command, cwd=APPS, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    with ended(process), ExitStack() as watching:
        address = f"http://127.0.0.1:{port}"
        check(address, process)
        if mode.watched:
            watching.enter_context(watched(process.pid))
        yield address, process.pid
        if mode.arguments == TRACE and not list(folder.glob(f"{port}*.offlock")):
            raise AssertionError(f"{server} was not traced")


@contextmanager
def watched(pid: int) -> Iterator[None]:
    """Watches the process and its children with `offlock top`."""
    command = [sys.executable, "-m", "offlock", "top", "--batch", str(pid)]
    top = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with ended(top):
        if not top.stdout or not top.stdout.readline():
            raise AssertionError(f"offlock top shows nothing: {top.communicate(timeout=5)}")
        threading.Thread(target=top.stdout.read, daemon=True).start()
        yield
        if top.poll() is not None:
            raise AssertionError("offlock top has ended")


def check(address: str, process: subprocess.Popen[str]) -> None:
    """Waits until the server answers, and compares its answers."""
    deadline = time.monotonic() + 60
    while True:
        try:
            for page, answer in PAGES.items():
                with urllib.request.urlopen(f"{address}/{page}") as response:
                    body = response.read().decode()
                assert body == str(answer), (page, body)
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                _, errors = process.communicate(timeout=5)
                raise AssertionError(f"the server does not answer: {errors}") from None
            time.sleep(0.05)


def processor_time(pid: int) -> float:
    """Returns the processor time of a process and those that it has started, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return own + sum(processor_time(int(child)) for task in tasks for child in task.read_text().split())


@dataclass(frozen=True)
class Load:
    """What wrk measured: requests a second, and percentiles in ms; and the server's processor time for a request in ms."""

    throughput: float
    p50: float
    p99: float
    processor: float


def load(address: str, pid: int, page: str, seconds: int) -> Load:
    before = processor_time(pid)
    command = [WRK, "--threads", "1", "--connections", "8", "--latency", "--duration", f"{seconds}s"]
    output = subprocess.run(
        [*command, f"{address}/{page}"], check=True, capture_output=True, text=True
    ).stdout
    if failed := re.search(r"Non-2xx.*|Socket errors: .*[1-9].*", output):
        raise AssertionError(failed[0])
    throughput = re.search(r"Requests/sec:\s+([\d.]+)", output)
    times = [re.search(rf"{share}%\s+([\d.]+)(us|ms|s)", output) for share in (50, 99)]
    requests = re.search(r"(\d+) requests in", output)
    if not throughput or not requests or not all(times):
        raise AssertionError(output)
    units = {"us": 1e-3, "ms": 1.0, "s": 1e3}
    p50, p99 = (float(time[1]) * units[time[2]] for time in times if time)
    processor = 1e3 * (processor_time(pid) - before) / int(requests[1])
    return Load(float(throughput[1]), p50, p99, processor)


Loads = dict[tuple[str, str], list[Load]]


def measure(server: str, generations: int, rounds: int, seconds: int) -> Loads:
    """Returns the loads by page and mode, one for each round."""
    loads: Loads = {(page, mode): [] for page in PAGES for mode in MODES}
    for _ in range(generations):
        with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
            addresses = {
                name: running.enter_context(serving(server, mode, Path(folder)))
                for name, mode in MODES.items()
            }
            for address, pid in addresses.values():
                for page in PAGES:
                    load(address, pid, page, 1)
            for turn in range(rounds):
                names = list(MODES)
                order = names[turn % len(names) :] + names[: turn % len(names)]
                for page in PAGES:
                    for name in order if turn % 2 else reversed(order):
                        loads[page, name].append(load(*addresses[name], page, seconds))
    return loads


def standard_error(ratios: list[float]) -> float:
    """Returns the standard error of the median of ratios, relative to it."""
    return 1.2533 * statistics.stdev(map(math.log, ratios)) / math.sqrt(len(ratios))


def rows(server: str, loads: Loads) -> Iterator[bench.Row]:
    for page in PAGES:
        for mode in MODES:
            own, without = loads[page, mode], loads[page, UNTRACED]
            pairs = list(zip(own, without, strict=True))
            throughputs = [a.throughput / b.throughput for a, b in pairs]
            processor_times = [a.processor / b.processor for a, b in pairs]
            figures = {
                "throughput": statistics.median(throughputs),
                "throughput_error": standard_error(throughputs),
                "processor_time": statistics.median(processor_times),
                "processor_time_error": standard_error(processor_times),
                "p99": statistics.median(a.p99 / b.p99 for a, b in pairs),
                "rounds": len(own),
                "requests_per_s": statistics.median(each.throughput for each in own),
                "processor_ms": statistics.median(each.processor for each in own),
                "p50_ms": statistics.median(each.p50 for each in own),
                "p99_ms": statistics.median(each.p99 for each in own),
            }
            yield bench.make_row(f"{server}, {page} page", figures, mode)


def version_of(*command: str) -> str:
    output = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    return (output.stdout or output.stderr).splitlines()[0].strip()


def main() -> None:
    parser = bench.make_parser()
    parser.add_argument("--servers", nargs="*", default=list(SERVERS), help="some of: %(default)s")
    parser.add_argument(
        "--generations", type=int, default=3, help="how often the servers start (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=12, help="rounds of each (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=1, help="the time of a load (default: %(default)s)")
    arguments = parser.parse_args()
    all_rows: list[bench.Row] = []
    print(
        "server, page, mode: throughput and its standard error, processor time and its, and p99, as multiples of the "
        "untraced one's; requests a second; processor time, p50 and p99 in ms"
    )
    for server in arguments.servers:
        found = list(
            rows(server, measure(server, arguments.generations, arguments.rounds, arguments.seconds))
        )
        for row in found:
            figures = row["figures"]
            print(
                f"{row['case']:28}{row['contestant']:20}{figures['throughput']:6.3f} ±{figures['throughput_error']:.3f}"
                f"{figures['processor_time']:7.3f} ±{figures['processor_time_error']:.3f}{figures['p99']:7.2f}{figures['requests_per_s']:9.0f}{figures['processor_ms']:8.3f}{figures['p50_ms']:8.2f}{figures['p99_ms']:8.2f}",
                flush=True,
            )
        all_rows += found
    versions = {"wrk": version_of(WRK, "-v")}
    if "Puma" in arguments.servers:
        ruby, puma, *_ = SERVERS["Puma"]
        versions |= {"ruby": version_of(ruby, "-v"), "puma": version_of(ruby, puma, "--version")}
    bench.keep(arguments.json, all_rows, "gunicorn", "uvicorn", **versions)


if __name__ == "__main__":
    main()
