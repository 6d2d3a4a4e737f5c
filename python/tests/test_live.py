"""Live traces: `offlock record` takes them from a process that runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interpreter import HAS_GIL
from published import OFFLOCK, WORK

from offlock import lock

pytestmark = [
    pytest.mark.skipif(
        not HAS_GIL or sys.platform != "linux" or lock.obstacle() is not None,
        reason="the lock cannot be traced",
    ),
    pytest.mark.usefixtures("socket_folder"),
]

SERVER = (
    WORK
    + """
threading.Thread(target=compute, name="computing", daemon=True).start()
threading.Thread(target=serve, name="serving", daemon=True).start()
time.sleep(0.1)
"""
)


def start(command: list[str], program: str) -> subprocess.Popen[str]:
    command = [*command, sys.executable, "-c", SERVER + textwrap.dedent(program)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    program = start([*OFFLOCK, "run", "--"], "print(os.getpid(), flush=True); sys.stdin.read()")
    assert program.stdout is not None
    assert program.stdout.readline() == f"{program.pid}\n", "the command is replaced by the program"
    yield program
    program.kill()
    program.wait(30)
    for stream in (program.stdin, program.stdout):
        assert stream is not None
        stream.close()


def record(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*OFFLOCK, "record", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


@contextlib.contextmanager
def recording(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Records the only process until something else ends the recording."""
    command = [*OFFLOCK, "record", "--for", "1h", "--no-summary", "-o", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "recording" in process.stderr.readline()
        time.sleep(0.5)
        yield process
        assert process.wait(30) == 0


def summary_of(path: Path) -> dict[str, Any]:
    command = [*OFFLOCK, "summary", "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def test_a_running_process_is_recorded_again_and_again(server: subprocess.Popen[str], tmp_path: Path) -> None:
    for _ in range(2):
        path = tmp_path / "web.offlock"
        done = record(str(server.pid), "--for", "0.5s", "-o", str(path))
        assert done.returncode == 0, done.stderr
        assert f"recording process {server.pid} for 500ms" in done.stderr
        assert "computing" in done.stdout, "the summary"
        summary = summary_of(path)
        threads = {thread["name"]: thread for thread in summary["threads"]}
        assert {"MainThread", "computing", "serving"} <= threads.keys()
        assert (summary["damage"], summary["lost"], summary["violations"]) == (None, 0, 0)
        assert threads["computing"]["times"]["running"] > 0.3e9
        assert threads["serving"]["contended"]["count"] > 10
        assert "compute" in str([line["function"] for line in summary["code"]["lines"]])
    assert server.poll() is None


def test_the_only_process_needs_no_number_and_files_stay(
    server: subprocess.Popen[str], tmp_path: Path
) -> None:
    for _ in range(2):
        done = record("--for", "0.1", "--report", "--no-summary", "--stacks", "off", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    names = ["record-2.html", "record-2.offlock", "record.html", "record.offlock"]
    assert sorted(path.name for path in tmp_path.glob("record*")) == names
    assert summary_of(tmp_path / "record.offlock")["code"]["lines"] == []


def test_an_interrupt_ends_the_recording_early(server: subprocess.Popen[str], tmp_path: Path) -> None:
    path = tmp_path / "early.offlock"
    with recording(path) as process:
        process.send_signal(signal.SIGINT)
    assert summary_of(path)["damage"] is None
    assert server.poll() is None


def test_the_end_of_the_process_completes_the_recording(
    server: subprocess.Popen[str], tmp_path: Path
) -> None:
    path = tmp_path / "end.offlock"
    assert server.stdin is not None
    with recording(path):
        server.stdin.close()
        assert server.wait(30) == 0
    assert summary_of(path)["damage"] is None
    assert list((tmp_path / "offlock").iterdir()) == []


def test_a_process_that_is_killed_leaves_what_was_received(
    server: subprocess.Popen[str], tmp_path: Path
) -> None:
    path = tmp_path / "killed.offlock"
    with recording(path):
        server.kill()
    summary = summary_of(path)
    assert summary["damage"] is not None
    assert summary["events"] > 10
    done = record(str(server.pid))
    assert done.returncode == 1
    assert f"process {server.pid}: no process of this user and number can be recorded" in done.stderr
    assert list((tmp_path / "offlock").iterdir()) == [], "the socket that it left is removed"


def test_forked_workers_are_recorded_by_their_own_numbers(tmp_path: Path) -> None:
    program = start(
        [*OFFLOCK, "run", "--"],
        """
        child = os.fork()
        if child == 0:
            threading.Thread(target=compute, name="worker", daemon=True).start()
            threading.Thread(target=serve, name="waiting", daemon=True).start()
            time.sleep(60)
        print(child, flush=True)
        sys.stdin.read()
        os.kill(child, 9)
        os.waitpid(child, 0)
        """,
    )
    assert program.stdout is not None
    child = int(program.stdout.readline())
    deadline = time.monotonic() + 20
    while not (tmp_path / "offlock" / f"{child}.sock").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    done = record("--for", "1s")
    assert done.returncode == 1
    assert f"  {program.pid} " in done.stderr
    assert f"  {child} " in done.stderr
    for pid, name in [(child, "worker"), (program.pid, "computing")]:
        path = tmp_path / f"{pid}.offlock"
        done = record(str(pid), "--for", "0.3s", "--no-summary", "-o", str(path))
        assert done.returncode == 0, done.stderr
        assert name in [thread["name"] for thread in summary_of(path)["threads"]]
    program.communicate(timeout=30)
    assert program.returncode == 0


def test_a_program_publishes_itself(tmp_path: Path) -> None:
    assert lock.publish() is True
    assert lock.publish() is False
    path = tmp_path / "own.offlock"
    try:
        done = record(str(os.getpid()), "--for", "0.2s", "--no-summary", "-o", str(path))
    finally:
        assert lock.unpublish() is True
    assert done.returncode == 0, done.stderr
    assert "MainThread" in [thread["name"] for thread in summary_of(path)["threads"]]
    assert lock.unpublish() is False
    assert "can be recorded" in record("--for", "1s").stderr


def test_the_environment_publishes_a_program_that_imports_offlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, expected in [("1", "False"), ("off", "True"), ("", "True")]:
        monkeypatch.setenv("OFFLOCK_LIVE", value)
        program = "import offlock.zlib; from offlock import lock; print(lock.publish())"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == (f"{expected}\n", "")


def test_a_socket_that_cannot_be_made_does_not_stop_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLOCK_LIVE", "1")
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    program = "import offlock; print('goes on')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "goes on\n"
    assert "is not published" in done.stderr


def test_what_cannot_be_recorded_is_explained(tmp_path: Path) -> None:
    nobody = record()
    assert nobody.returncode == 1
    assert "no process can be recorded. Start it with `offlock run -- PROGRAM`" in nobody.stderr
    exported = record("1", "-o", str(tmp_path / "a.pftrace"))
    assert "`offlock export` then writes it" in exported.stderr
    assert record("x").returncode == 2


def test_a_stopped_process_does_not_answer(server: subprocess.Popen[str]) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        done = record(str(server.pid))
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert done.returncode == 1
    assert "the process does not answer: is it stopped?" in done.stderr
