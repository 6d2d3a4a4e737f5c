"""Runs a program of the suite under `offlock trace`, and says what offlock finds."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "python"
SERVERS_START_WITHIN = 60
LIGHT_CLIENTS = 2
# What Puma 5.6 ends with now and then on Ruby 3.4, also without offlock, while it waits for its threads.
FALSE_DEADLOCK = "No live threads left. Deadlock?"
VERDICTS = {"unused", "too_short", "not_the_lock", "machine_full", "lock", "waits"}


@dataclass(frozen=True)
class Case:
    """A program at one load, and the truth about it.

    Attributes:
        verdict: the kinds of verdict that are right, separated by ``|``; usually one.
        strength: the same for the strength, if the lock is the problem.
        waits: the name of the group that loses most.
        causes: findings that there must be, each with its kind and perhaps group and mark; ``|`` as above.
        absent: kinds of findings that there must not be.
    """

    name: str
    language: str
    command: list[str]
    load: int
    is_server: bool
    verdict: str
    strength: str | None
    waits: str | None
    causes: list[dict[str, str]]
    absent: list[str]

    def __str__(self) -> str:
        return f"{self.language}-{self.name}-{self.load}"


def cases() -> list[list[Case]]:
    """Returns the programs of the table, each at every load."""
    table = tomllib.loads((HERE / "table.toml").read_text())
    return [
        [_case(program, number, load) for number, load in enumerate(program["loads"])]
        for program in table["program"]
    ]


def _case(program: dict[str, Any], number: int, load: int) -> Case:
    def at(key: str, default: Any = None) -> Any:
        value = program.get(key, default)
        return value[number] if isinstance(value, list) else value

    is_problem = at("verdict") == "lock"
    return Case(
        name=program["name"],
        language=program["language"],
        command=program.get("command")
        or [f"{program['name']}.{'py' if program['language'] == 'python' else 'rb'}"],
        load=load,
        is_server=program.get("server", False),
        verdict=at("verdict"),
        strength=at("strength"),
        waits=at("waits") if is_problem else None,
        causes=program.get("causes", []) if is_problem else program.get("otherwise", []),
        absent=program.get("absent", []),
    )


@dataclass
class Found:
    """What offlock says about a program.

    Attributes:
        summary: the numbers of the process that lost most.
        text: the summary of all processes for people.
        light: how long the light requests to a server took, in seconds, sorted.
    """

    summary: dict[str, Any]
    text: str
    light: list[float]

    @property
    def verdict(self) -> dict[str, Any]:
        return next(finding for finding in self.findings if finding["kind"] in VERDICTS)

    @property
    def findings(self) -> list[dict[str, Any]]:
        return list(self.summary["findings"])


def mistakes(case: Case, found: Found) -> list[str]:
    """Returns what offlock says that is not the truth, and what it does not say."""
    verdict, wrong = found.verdict, []
    right = case.verdict.split("|")
    # Other programs, or the clients of a server, may use all processors.
    if "not_the_lock" in right and (found.summary["machine_busy"] or 0) >= 0.7:
        right.append("machine_full")
    if verdict["kind"] not in right:
        return [f"the verdict is {verdict['kind']}, not {case.verdict}"]
    is_lock = verdict["kind"] == "lock"
    if is_lock and case.strength and verdict["strength"] not in case.strength.split("|"):
        wrong.append(f"the strength is {verdict['strength']}, not {case.strength}")
    if case.waits and verdict["group"] not in case.waits.split("|"):
        wrong.append(f"{verdict['group']} waits, not {case.waits}")
    for cause in case.causes:
        if not any(_fits(cause, finding) for finding in found.findings):
            wrong.append(f"this is not found: {cause}")
    wrong += [
        f"there is a finding {kind}" for kind in case.absent if kind in {f["kind"] for f in found.findings}
    ]
    return wrong


def _fits(cause: dict[str, str], finding: dict[str, Any]) -> bool:
    return all(finding[key] in value.split("|") for key, value in cause.items())


def run(case: Case, seconds: float) -> Found:
    """Runs a program for about this long."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "run.offlock")
        light: list[float] = []
        if case.is_server:
            with _traced(case, trace, seconds, port := _free_port()) as process:
                light = _use(port, case.load, seconds, process)
        else:
            with _traced(case, trace, seconds, None):
                pass
        traces = [str(path) for path in sorted(Path(folder).glob("*.offlock"))]
        result = json.loads(_offlock("summary", "--json", *traces))
        worst = result["processes"][0]["summary"] if "processes" in result else result
        return Found(worst, _offlock("summary", *traces), light)


def _offlock(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "offlock", *arguments],
        env=_environment(),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def _environment(seconds: float = 0) -> dict[str, str]:
    """Ruby's libraries are in RUBYLIB already."""
    paths = [str(PACKAGE), str(HERE / "python")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "OFFLOCK_RUBYLIB": os.environ.get("RUBYLIB", ""),
        "NIO4R_PURE": "true",  # Puma's nio4r, whose C extension is not built for the tests
        "SECONDS": str(seconds),
    }


@contextmanager
def _traced(case: Case, trace: Path, seconds: float, port: int | None) -> Iterator[subprocess.Popen[str]]:
    """Runs a program; a server ends with the block."""
    interpreter = sys.executable if case.language == "python" else os.environ["RUBY"]
    words = [word.format(port=port, puma=os.environ.get("PUMA")) for word in case.command]
    words += [] if case.is_server else [str(case.load)]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "offlock",
            "trace",
            "--no-summary",
            "--output",
            str(trace),
            "--",
            interpreter,
            *words,
        ],
        cwd=HERE / case.language,
        env=_environment(seconds),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
        if case.is_server:
            process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    is_false_deadlock = case.is_server and FALSE_DEADLOCK in output
    if process.returncode not in (0, -signal.SIGTERM, 128 + signal.SIGTERM) and not is_false_deadlock:
        raise AssertionError(f"{case} ended with {process.returncode}:\n{output}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _use(port: int, heavy: int, seconds: float, process: subprocess.Popen[str]) -> list[float]:
    """Makes requests for this long: from some clients for /report, from others for /hello. Returns how long the latter
    took.
    """
    _wait_for(port, process)
    took: dict[str, list[float]] = {"/report": [], "/hello": []}
    end = time.monotonic() + seconds
    clients = [
        threading.Thread(target=_client, args=(port, "/report", 0.001, end, took)) for _ in range(heavy)
    ]
    clients += [
        threading.Thread(target=_client, args=(port, "/hello", 0.01, end, took)) for _ in range(LIGHT_CLIENTS)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return sorted(took["/hello"])


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + SERVERS_START_WITHIN
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"the server ended with {process.returncode}:\n{process.communicate()[0]}")
        try:
            return _get(port, "/hello")
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


def _get(port: int, path: str) -> None:
    """A connection of its own for each request, so that any thread of a pool may answer it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Connection": "close"})
    assert connection.getresponse().read() == b"ok"
    connection.close()


def _client(port: int, path: str, pause: float, end: float, took: dict[str, list[float]]) -> None:
    while (start := time.monotonic()) < end:
        _get(port, path)
        took[path].append(time.monotonic() - start)
        time.sleep(pause)


if __name__ == "__main__":
    wanted, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 3.0
    for case in [case for loads in cases() for case in loads if wanted in str(case)]:
        found = run(case, seconds)
        print(f"=== {case}: {mistakes(case, found) or 'right'}")
        print(found.text)
        if found.light:
            count = len(found.light)
            p50, p99 = (found.light[int(share * (count - 1))] * 1000 for share in (0.5, 0.99))
            print(f"{count} light requests: p50 {p50:.1f} ms, p99 {p99:.1f} ms\n")
