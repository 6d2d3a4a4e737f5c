"""`offlock top` shows what the threads of running processes do."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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
def start(number):
    threading.Thread(target=compute, name=f"computing-{number}", daemon=True).start()
    threading.Thread(target=serve, name=f"serving-{number}", daemon=True).start()

children = []
for number in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        start(number)
        time.sleep(600)
    children.append(child)
if not children:
    start("alone")
print(*children, flush=True)
sys.stdin.read()
"""
)


class Server:
    """A program with some forked workers."""

    def __init__(self, workers: int) -> None:
        command = [*OFFLOCK, "run", "--", sys.executable, "-c", SERVER, str(workers)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.pid = self.process.pid
        self.workers = [int(pid) for pid in self.process.stdout.readline().split()]

    def end(self) -> None:
        for worker in self.workers:
            os.kill(worker, signal.SIGKILL)
        self.process.kill()
        self.process.communicate(timeout=30)


@pytest.fixture
def start() -> Iterator[Callable[[int], Server]]:
    servers = []

    def start(workers: int) -> Server:
        servers.append(Server(workers))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


def wait_for_sockets(socket_folder: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(list(socket_folder.glob("offlock/*.sock"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def top(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "140"}
    command = [*OFFLOCK, "top", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def rows(text: str) -> dict[str, list[str]]:
    """The lines by their first word."""
    return {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}


def test_the_numbers_are_printed_if_there_is_no_terminal(start: Callable[[int], Server]) -> None:
    server = start(0)
    done = top("-n", "2", "-d", "500ms", "--window", "2s")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.split("offlock top")[1:]
    for text in (first, second):
        assert text.startswith(" · 1 process · last 2s · every 500ms\n")
        found = rows(text)
        assert float(found[str(server.pid)][1].rstrip("%")) > 50, "the lock is held most of the time"
        assert float(found["computing-alone"][2].rstrip("%")) > 50, "it runs"
        assert float(found["serving-alone"][3].rstrip("%")) > 10, "it waits"
        assert "computing-alone (" in " ".join(found["serving-alone"]), "behind that thread"
        assert " compute" in text, "the code that others waited for"
        assert re.search(r"<string>:\d+", text)
    assert server.process.poll() is None


def test_a_server_is_shown_with_its_workers_and_no_others(
    start: Callable[[int], Server], socket_folder: Path
) -> None:
    other, server = start(0), start(2)
    wait_for_sockets(socket_folder, 4)
    done = top(str(server.pid), "-b", "-n", "8", "-d", "500ms")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.split("offlock top")[1:]
    assert all(text.startswith(" · 3 processes ·") for text in shown)
    found = rows(shown[-1])
    for worker in server.workers:
        # On a busy machine a worker may send nothing for some time, and then has no numbers.
        words = [rows(text)[str(worker)] for text in shown]
        assert max([float(row[1].rstrip("%")) for row in words if row[1].endswith("%")], default=0) > 30, (
            done.stdout
        )
    assert float(found[str(server.pid)][1].rstrip("%")) < 5, "the parent is idle"
    assert str(other.pid) not in found
    assert "· 4 processes ·" in top("-n", "1").stdout


def test_a_worker_that_ends_is_shown_no_more_and_the_view_ends_with_the_server(
    start: Callable[[int], Server], socket_folder: Path
) -> None:
    server = start(2)
    wait_for_sockets(socket_folder, 3)
    command = [*OFFLOCK, "top", str(server.pid), "-b", "-d", "300ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view:
        assert view.stdout is not None
        heads = (line for line in view.stdout if line.startswith("offlock top"))
        assert "3 processes" in next(heads)
        os.kill(server.workers.pop(), signal.SIGKILL)
        assert any("2 processes" in head for head in heads)
        server.end()
        server.workers.clear()
        view.stdout.read()
        assert view.wait(30) == 0


def test_a_process_that_is_stopped_is_said_to_be_silent(start: Callable[[int], Server]) -> None:
    server = start(0)
    command = [*OFFLOCK, "top", "-b", "-d", "500ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view:
        assert view.stdout is not None
        assert any("computing-alone" in line for line in view.stdout)
        os.kill(server.pid, signal.SIGSTOP)
        try:
            assert any("nothing new for 4 s: is it stopped?" in line for line in view.stdout)
        finally:
            os.kill(server.pid, signal.SIGCONT)
            view.kill()


def test_what_cannot_be_watched_is_explained(start: Callable[[int], Server]) -> None:
    nobody = top()
    assert nobody.returncode == 1
    assert "no process can be recorded. Start it with `offlock run -- PROGRAM`" in nobody.stderr
    start(0)
    assert "process 1: no process of this user" in top("1").stderr
    for wrong in (
        ["-n", "0"],
        ["-d", "soon"],
        ["-d", "0"],
        ["--window", "0s"],
        ["web"],
        ["--stacks", "often"],
    ):
        assert top(*wrong).returncode == 2, wrong


def words_of(text: str) -> str:
    """The text without escape sequences: those that move the cursor stand for blanks."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-ln-z]", " ", re.sub(r"\x1b\[[0-9;]*m", "", text))


class Terminal:
    """A terminal in which the view runs."""

    def __init__(self, *arguments: str, controls: bool = True) -> None:
        self.master, slave = pty.openpty()
        self.resize(30, 100)
        command = [*OFFLOCK, "top", *arguments]
        # Only the terminal that controls a program sends it signals.
        prepare = (lambda: os.login_tty(slave)) if controls else None
        self.view = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=prepare)
        os.close(slave)
        self.text = ""

    def resize(self, height: int, width: int) -> None:
        """The view draws all of a terminal that has changed, not only what is new."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        self.text = ""
        os.write(self.master, keys.encode())

    def read(self, until: str) -> None:
        deadline = time.monotonic() + 30
        while until not in self.text and until not in words_of(self.text):
            assert time.monotonic() < deadline, self.text
            self.text += os.read(self.master, 1 << 16).decode(errors="replace")

    def redraw(self, height: int, width: int) -> None:
        """Lets the view take the keys, and draw all of what it then shows."""
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.1)[0]:
                os.read(self.master, 1 << 16)
        self.resize(height, width)

    def kill(self) -> None:
        self.view.kill()
        self.view.wait(30)
        self.close()

    def close(self) -> None:
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


@pytest.fixture
def show() -> Iterator[Callable[..., Terminal]]:
    terminals = []

    def show(*arguments: str, controls: bool = True) -> Terminal:
        terminals.append(Terminal(*arguments, controls=controls))
        return terminals[-1]

    yield show
    for terminal in terminals:
        terminal.kill()


def test_the_first_numbers_do_not_wait_for_workers_that_come_and_go(tmp_path: Path) -> None:
    program = """
import os, time
print("begins", flush=True)
while True:
    if os.fork() == 0:
        time.sleep(0.7)
        os._exit(0)
    time.sleep(0.35)
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass
"""
    with subprocess.Popen(
        [*OFFLOCK, "run", "--", sys.executable, "-c", program], stdout=subprocess.PIPE
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"begins\n"
            time.sleep(1.5)
            began = time.monotonic()
            shown = top("-n", "1", str(server.pid))
            assert time.monotonic() - began < 5, "it waits for 6 seconds at most"
            assert (shown.returncode, shown.stderr) == (0, "")
        finally:
            server.kill()


ENTERS, LEAVES = "\x1b[?1049h", "\x1b[?1049l"


def test_the_view_fills_the_terminal_and_keys_change_it(
    start: Callable[[int], Server], show: Callable[..., Terminal]
) -> None:
    start(0)
    terminal = show("-d", "200ms")
    terminal.read(ENTERS)
    terminal.read("offlock top")
    terminal.read("holds the lock")
    terminal.press("h")
    terminal.redraw(31, 101)
    terminal.read("Help: any key goes back")
    terminal.press("x/serving\r")
    terminal.redraw(30, 100)
    terminal.read("filter (serving, c: all)")
    terminal.press("q")
    terminal.read(LEAVES)
    assert terminal.view.wait(30) == 0


def test_a_signal_ends_the_view_and_the_terminal_is_as_before(
    start: Callable[[int], Server], show: Callable[..., Terminal]
) -> None:
    server = start(0)
    terminal = show()
    before = termios.tcgetattr(terminal.master)
    terminal.read(ENTERS)
    terminal.read("offlock top")
    assert termios.tcgetattr(terminal.master) != before, "keys are read one by one"
    terminal.view.send_signal(signal.SIGTERM)
    terminal.read(LEAVES)
    assert termios.tcgetattr(terminal.master) == before
    assert terminal.view.wait(30) == 0
    assert server.process.poll() is None


@pytest.mark.parametrize("controls", [False, True])
def test_the_view_ends_quietly_with_its_terminal(
    start: Callable[[int], Server], show: Callable[..., Terminal], controls: bool
) -> None:
    start(0)
    terminal = show(controls=controls)
    terminal.read("offlock top")
    terminal.close()
    assert terminal.view.wait(30) == 0
