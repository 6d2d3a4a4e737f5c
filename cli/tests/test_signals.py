"""A traced program gets each signal once. The environment variable OFFLOCK is the path of the command."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OFFLOCK = os.environ["OFFLOCK"]

# Counts the signals in the second after the first one, then exits.
COUNT = """
import signal, sys, time
got = []
number = int(sys.argv[1])
signal.signal(number, lambda *_: got.append(1))
print("ready", flush=True)
end = time.monotonic() + 30
while not got and time.monotonic() < end:
    time.sleep(0.05)
end = time.monotonic() + 1
while time.monotonic() < end:
    time.sleep(0.05)
print("got", len(got), flush=True)
"""


def command(number: int) -> list[str]:
    program = [sys.executable, "-c", COUNT, str(number)]
    return [OFFLOCK, "trace", "--summary", "--", *program]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_a_signal_sent_to_the_command_reaches_the_program_once(number: int, tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(command(number), cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.read() == "got 1\n"
    assert process.returncode == 0


@pytest.mark.parametrize(("key", "number"), [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
def test_a_key_in_a_terminal_reaches_the_program_once(key: bytes, number: int, tmp_path: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv(OFFLOCK, command(number))
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 1_000)
    os.write(terminal, key)
    while b"got" not in shown:
        shown += os.read(terminal, 1_000)
    while not shown.endswith(b"\n"):
        shown += os.read(terminal, 1_000)
    assert b"got 1\r\n" in shown
    os.close(terminal)
    os.waitpid(child, 0)


ENDS = [OFFLOCK, "trace", "--summary", "--", sys.executable, "-c", "import sys; sys.exit(3)"]


def test_the_status_is_known_where_children_are_ignored(tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    assert subprocess.run(ENDS, cwd=tmp_path, preexec_fn=ignore, check=False).returncode == 3


def test_the_status_is_the_programs_when_nobody_reads_the_summary(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as broken, open("/dev/full", "wb") as full:
        for stderr in (broken, full):
            assert subprocess.run(ENDS, cwd=tmp_path, stderr=stderr, check=False).returncode == 3
