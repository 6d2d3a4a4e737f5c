"""Flight recorders: the last seconds, written on request, for a reason, or at the end of a traced program."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
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

OFFLOCK = [sys.executable, "-m", "offlock"]


def hold(seconds: float) -> None:
    """Hold the lock without letting it go, as a C extension does, while the main thread waits for it."""
    usleep = ctypes.PyDLL(None).usleep
    begun = threading.Event()

    def keep() -> None:
        begun.set()
        time.sleep(0.01)  # the main thread comes back from its wait
        usleep(int(seconds * 1e6))

    thread = threading.Thread(target=keep, name="keeper")
    thread.start()
    begun.wait()
    while thread.is_alive():
        time.sleep(0.001)
    thread.join()


def summary_of(path: Path) -> dict[str, Any]:
    command = [*OFFLOCK, "summary", "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def eventually(found: Any) -> Any:
    for _ in range(500):
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("nothing came")


@pytest.fixture
def recorder() -> Iterator[lock.FlightRecorder]:
    with lock.FlightRecorder(seconds=60) as running:
        assert isinstance(running, lock.FlightRecorder)
        yield running
    assert not running.is_running


def test_a_dump_names_the_code_that_held_the_lock(recorder: lock.FlightRecorder, tmp_path: Path) -> None:
    for holds in (1, 2):
        hold(0.05)
        path = tmp_path / f"{holds}.offlock"
        stats = recorder.dump(path)
        assert stats is not None
        summary = summary_of(path)
        assert (summary["events"], summary["lost"], summary["damage"]) == (stats.events, 0, None)
        assert path.stat().st_size == stats.bytes
        assert summary["code"]["lines"][0]["function"].endswith("keep")
        assert sum(thread["name"] == "keeper" for thread in summary["threads"]) == holds
    assert 0 < recorder.memory < 1 << 20


def test_a_watch_is_told_of_a_long_hold_and_of_a_long_wait(recorder: lock.FlightRecorder) -> None:
    holds: list[lock.Alarm] = []
    waits: list[lock.Alarm] = []
    recorder.on_hold(0.1, holds.append)
    recorder.on_wait(0.1, waits.append)
    hold(1.0)
    of_keeper = [alarm for alarm in eventually(lambda: holds and waits and holds) if alarm.holder == "keeper"]
    assert len(of_keeper) == 1
    (alarm,) = of_keeper
    assert (alarm.waiting, alarm.is_over) == ("MainThread", False)
    assert 0.1e9 <= alarm.nanoseconds < 1e9
    assert alarm.stack[0][0].endswith("keep")
    assert alarm.stack[0][1] == __file__
    assert str(alarm).startswith('"keeper" has held the lock for ')
    assert f"{Path(__file__).name}:{alarm.stack[0][2]}" in alarm.text
    assert any(wait.waiting == "MainThread" and wait.holder == "keeper" for wait in waits)


def test_a_function_that_raises_is_called_for_the_next_wait_too(
    recorder: lock.FlightRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[lock.Alarm] = []

    def call(alarm: lock.Alarm) -> None:
        calls.append(alarm)
        raise ValueError("a fault in the function")

    recorder.on_wait(0.05, call)
    for number in range(2):
        hold(0.2)
        eventually(lambda number=number: len(calls) > number)
    assert not [alarm for alarm in calls if alarm.waiting == "offlock watch"]
    logged = [record for record in caplog.records if record.name == "offlock.lock"]
    assert "what on_wait was given raised an exception" in logged[0].getMessage()
    assert logged[0].exc_info is not None


def test_a_stuck_lock_is_written_while_it_is_stuck(tmp_path: Path) -> None:
    path = tmp_path / "stuck.offlock"
    with lock.FlightRecorder(path=path, dump_on_hold=0.1):
        hold(2.0)
        ended = time.time()
    assert ended - path.stat().st_mtime > 0.3
    summary = summary_of(path)
    assert summary["code"]["lines"][0]["function"].endswith("keep")
    assert os.listdir(tmp_path) == ["stuck.offlock"], "one in a minute"


def test_memory_is_bounded(tmp_path: Path) -> None:
    with lock.FlightRecorder(seconds=3600, memory=1 << 20) as recorder:
        assert isinstance(recorder, lock.FlightRecorder)
        for _ in range(40):
            for _ in range(4_000):
                time.sleep(0)
            assert recorder.memory <= 1 << 20
        stats = recorder.dump(tmp_path / "last.offlock")
        assert stats is not None
        assert stats.bytes < 2 << 20
    assert stats.events < 40 * 4_000 * 3, "some were dropped"
    assert summary_of(tmp_path / "last.offlock")["damage"] is None


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    for arguments in (
        {"seconds": -1},
        {"stacks": float("nan")},
        {"dump_on_wait": -0.1},
        {"interval": float("inf")},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(arguments))}="):
            lock.FlightRecorder(path=tmp_path / "x.offlock", **arguments)
    with pytest.raises(OSError, match="1048576"):
        lock.FlightRecorder(memory=1)
    with pytest.raises(OSError, match="no path"):
        lock.FlightRecorder(dump_on_hold=1)
    with lock.FlightRecorder() as recorder:
        assert isinstance(recorder, lock.FlightRecorder)
        with pytest.raises(FileNotFoundError):
            recorder.dump(tmp_path / "no folder" / "x.offlock")
        with pytest.raises(ValueError, match="seconds="):
            recorder.on_hold(-1, print)
        with pytest.raises(TypeError, match="not callable: 5"):
            recorder.on_wait(1, 5)  # type: ignore[arg-type]
    assert recorder.dump(tmp_path / "late.offlock") is None
    with pytest.raises(RuntimeError, match="stopped"):
        recorder.on_hold(1, print)
    assert os.listdir(tmp_path) == []


def run(program: str, *options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "app.py"
    script.write_text(textwrap.dedent(program))
    command = [
        *OFFLOCK,
        "trace",
        "-o",
        str(folder / "app.offlock"),
        *options,
        "--",
        sys.executable,
        str(script),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


HOLD = """
import ctypes, os, signal, sys, threading, time
usleep = ctypes.PyDLL(None).usleep
def keep(seconds):
    def work():
        time.sleep(0.01)
        usleep(int(seconds * 1e6))
    thread = threading.Thread(target=work, name="keeper")
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
"""


@pytest.mark.parametrize("end", ["", "raise ValueError", "os._exit(3)", "sys.exit(3)"])
def test_the_command_keeps_the_last_seconds_until_the_end(end: str, tmp_path: Path) -> None:
    done = run(f"{HOLD}\ntime.sleep(2.5)\nkeep(0.05)\n{end}", "--keep", "2s", folder=tmp_path)
    assert done.returncode == {"": 0, "raise ValueError": 1}.get(end, 3)
    assert "app.py" in done.stderr
    summary = summary_of(tmp_path / "app.offlock")
    assert summary["damage"] is None
    assert summary["code"]["lines"][0]["function"].endswith("work")


def test_the_command_writes_them_at_a_signal_and_for_a_reason(tmp_path: Path) -> None:
    program = f"{HOLD}\nkeep(0.2)\nos.kill(os.getpid(), signal.SIGUSR1)\nkeep(0.01)"
    options = ["--keep", "30s", "--signal", "USR1", "--dump-on-hold", "100ms"]
    done = run(program, *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"keeper" ' in done.stderr
    assert f"the last seconds are in {tmp_path}/app-2.offlock" in done.stderr
    for name in ("app.offlock", "app-2.offlock", "app-3.offlock"):
        assert summary_of(tmp_path / name)["damage"] is None


def test_a_killed_program_leaves_a_message(tmp_path: Path) -> None:
    kill = "import os, sys, time\nos.spawnlp(os.P_NOWAIT, 'kill', 'kill', '-9', str(os.getpid()))\ntime.sleep(60)"
    done = run(kill, "--keep", "1s", folder=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert "killed before it wrote its last seconds" in done.stderr
    command = [*OFFLOCK, "summary", str(tmp_path / "app.offlock")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 1
    assert "app.offlock: the process was killed before it wrote its last seconds" in outcome.stderr


@pytest.mark.parametrize(
    "end", ["signal.raise_signal(signal.SIGTERM)", "os.kill(os.getpid(), signal.SIGTERM)"]
)
def test_a_program_that_ends_itself_by_a_signal_writes_its_last_seconds(end: str, tmp_path: Path) -> None:
    # As uvicorn does, which handles the signal first.
    program = f"{HOLD}\nsignal.signal(signal.SIGTERM, signal.default_int_handler)\nkeep(0.05)"
    done = run(
        f"{program}\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\n{end}", "--keep", "5s", folder=tmp_path
    )
    assert done.returncode == -signal.SIGTERM
    assert summary_of(tmp_path / "app.offlock")["damage"] is None


def test_a_program_that_replaces_itself_writes_its_last_seconds_to_the_same_file(tmp_path: Path) -> None:
    again = "os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])"
    program = f"{HOLD}\nif len(sys.argv) < 3: {again}\nkeep(0.05)"
    done = run(program, "--keep", "5s", folder=tmp_path)
    assert done.returncode == 0
    assert "killed" not in done.stderr
    assert [path.name for path in tmp_path.glob("*.offlock")] == ["app.offlock"]
    assert summary_of(tmp_path / "app.offlock")["code"]["lines"][0]["function"].endswith("work")


def test_a_forked_child_has_a_recorder_of_its_own(tmp_path: Path) -> None:
    program = f"""
    import os, sys
    from offlock import lock
    recorder = lock.FlightRecorder(path={str(tmp_path / "app.offlock")!r}, dump_on_hold=0.1)
    alarms = []
    recorder.on_hold(0.1, alarms.append)
    pid = os.fork()
    if pid == 0:
        keep(0.3)
        for _ in range(500):
            if alarms and os.path.exists({str(tmp_path)!r} + f"/app.{{os.getpid()}}.offlock"):
                break
            time.sleep(0.02)
        recorder.dump({str(tmp_path / "child.offlock")!r})
        recorder.stop()
        os._exit(0 if alarms[0].holder == "keeper" else 1)
    assert os.waitpid(pid, 0)[1] == 0
    recorder.dump({str(tmp_path / "parent.offlock")!r})
    print(pid)
    """
    script = tmp_path / "app.py"
    script.write_text(HOLD + textwrap.dedent(program))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in tmp_path.iterdir()} - {"app.py"}
    assert names == {"child.offlock", "parent.offlock", f"app.{done.stdout.strip()}.offlock"}
    for name in names:
        summary = summary_of(tmp_path / name)
        assert any(thread["name"] == "keeper" for thread in summary["threads"]) == (name != "parent.offlock")
