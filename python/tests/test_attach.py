"""`offlock attach`: a process that runs publishes itself, and is recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interpreter import HAS_GIL

from offlock import lock

pytestmark = pytest.mark.skipif(
    not HAS_GIL or sys.platform != "linux" or lock.obstacle() is not None, reason="the lock cannot be traced"
)

from_3_14 = pytest.mark.skipif(sys.version_info < (3, 14), reason="CPython 3.14 brings remote execution")

PACKAGES = Path(lock.__file__).parents[2]

SERVER = """
import threading, time

def compute():
    while True:
        sum(i * i for i in range(1000))

threading.Thread(target=compute, name="computing", daemon=True).start()
print("ready", flush=True)
while True:
    time.sleep(0.001)
"""

WAITS = "import sys; print('ready', flush=True); sys.stdin.read(); print('goes on', sorted(globals()), flush=True)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sockets and one of scripts, in which the test is alone."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    monkeypatch.setenv("TMPDIR", str(scripts))
    return scripts


class Programs:
    """Programs that do not know of offlock, and do not find it."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []

    def start(self, program: str, *options: str, **variables: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
        process = subprocess.Popen(
            [sys.executable, *options, "-c", program],
            env=environment,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process


@pytest.fixture
def programs() -> Iterator[Programs]:
    programs = Programs()
    yield programs
    for process in programs.running:
        process.kill()
        process.communicate(timeout=30)


def attach(pid: int, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Attaches, and writes files to the folder of the test."""
    return subprocess.run(
        [sys.executable, "-m", "offlock", "attach", str(pid), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=os.environ["XDG_RUNTIME_DIR"],
        env={**os.environ, "PYTHONPATH": str(PACKAGES), **variables},
    )


def refusal(pid: int, *arguments: str) -> str:
    """What the command says where it cannot attach."""
    done = attach(pid, "--for", "0.1", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    message = done.stderr.removeprefix(f"offlock: process {pid}: ")
    assert message != done.stderr
    return message.rstrip("\n")


def summary_of(path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "offlock", "summary", "--json", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


@from_3_14
def test_a_program_that_runs_is_recorded_again_and_again(
    programs: Programs, folder: Path, tmp_path: Path
) -> None:
    server = programs.start(SERVER)
    for _ in range(2):
        path = tmp_path / "web.offlock"
        done = attach(server.pid, "--for", "0.5s", "-o", str(path))
        assert done.returncode == 0, done.stderr
        assert f"recording process {server.pid} for 500ms" in done.stderr
        assert "computing" in done.stdout, "the summary"
        summary = summary_of(path)
        threads = {thread["name"]: thread for thread in summary["threads"]}
        assert {"MainThread", "computing"} <= threads.keys()
        assert (summary["damage"], summary["lost"], summary["violations"]) == (None, 0, 0)
        assert threads["MainThread"]["contended"]["count"] > 10
        assert "compute" in str([line["function"] for line in summary["code"]["lines"]])
    assert server.poll() is None
    assert list(folder.iterdir()) == []
    server.kill()
    assert server.communicate(timeout=30) == ("", "")


@from_3_14
def test_nothing_is_left_behind_in_the_program(programs: Programs) -> None:
    server = programs.start(
        """if True:
        import sys, time
        before = sorted(globals()), list(sys.path)
        print("ready", flush=True)
        while "offlock.lock" not in sys.modules:
            time.sleep(0.01)
        time.sleep(0.5)
        print(sorted(globals().keys() - {"before"}) == before[0], sys.path == before[1], flush=True)
        sys.stdin.read()
        """
    )
    assert attach(server.pid, "--for", "0.1", "--no-summary").returncode == 0
    assert server.stdout is not None
    assert server.stdout.readline() == "True True\n"


@from_3_14
def test_remote_debugging_may_be_forbidden(programs: Programs, folder: Path) -> None:
    for options, variables in (
        ((), {"PYTHON_DISABLE_REMOTE_DEBUG": "1"}),
        (("-X", "disable-remote-debug"), {}),
    ):
        message = refusal(programs.start(SERVER, *options, **variables).pid)
        assert message.startswith("PYTHON_DISABLE_REMOTE_DEBUG or -X disable-remote-debug forbids to ask it")
    assert list(folder.iterdir()) == []


@from_3_14
def test_the_program_may_have_switched_tracing_off(programs: Programs, folder: Path) -> None:
    assert refusal(programs.start(SERVER, OFFLOCK_LOCK="off").pid) == (
        "tracing is switched off by OFFLOCK_LOCK=off"
    )
    assert list(folder.iterdir()) == []


@from_3_14
def test_a_thread_that_waits_cannot_be_asked_and_goes_on_unchanged(programs: Programs, folder: Path) -> None:
    waiting = programs.start(WAITS)
    started = time.monotonic()
    message = refusal(waiting.pid)
    assert message.startswith("its main thread has executed no Python code for 10 s")
    assert 10 <= time.monotonic() - started < 20
    assert [path.name for path in folder.glob("*/*")] == ["script.py"]
    out, err = waiting.communicate("", timeout=30)
    assert (waiting.returncode, err) == (0, "")
    assert out.startswith("goes on")
    assert "publish" not in out
    assert list(folder.iterdir()) == []


@from_3_14
def test_a_missing_extension_is_named(programs: Programs, tmp_path: Path) -> None:
    package = tmp_path / "offlock"
    shutil.copytree(Path(lock.__file__).parents[1] / "_attach", package / "_attach")
    done = attach(programs.start(SERVER).pid, OFFLOCK_PYTHONPATH=str(package / "_autotrace"))
    assert done.returncode == 1
    version = "{}.{}".format(*sys.version_info)
    assert f"it runs CPython {version}, for which {package} has no extension module" in done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="it can be attached to")
def test_an_older_python_is_named(programs: Programs) -> None:
    message = refusal(programs.start(SERVER).pid)
    version = "{}.{}".format(*sys.version_info)
    needs = "attach needs CPython 3.14 or newer: start the program with `offlock run -- PROGRAM` instead"
    assert message == f"it runs CPython {version}, and {needs}"


def test_other_processes_are_refused() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        try:
            assert refusal(sleeping.pid).startswith("it is not a process of CPython")
        finally:
            sleeping.kill()
    assert refusal(sleeping.pid) == "there is no such process"


def test_only_root_attaches_to_processes_of_others() -> None:
    if os.geteuid() == 0 or os.stat("/proc/1").st_uid == os.geteuid():
        pytest.skip("there is no process of another user")
    assert refusal(1).startswith("it belongs to the user 0: attach as that user, or as root")


@from_3_14
@pytest.mark.skipif(os.geteuid() != 0, reason="only root attaches to processes of others")
def test_root_attaches_to_processes_of_others(folder: Path, tmp_path: Path) -> None:
    nobody = 65534
    for path in (folder, tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("XDG_RUNTIME_DIR", "TMPDIR")
    }
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        user=nobody,
        group=nobody,
        extra_groups=[],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            done = attach(server.pid, "--for", "0.2", "-o", str(tmp_path / "web.offlock"))
            assert done.returncode == 0, done.stderr
        finally:
            server.kill()
    assert summary_of(tmp_path / "web.offlock")["violations"] == 0
    assert list(folder.iterdir()) == []
