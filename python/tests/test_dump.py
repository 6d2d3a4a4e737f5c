"""`offlock dump` prints what the threads of running processes do, with their stacks."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from interpreter import HAS_GIL
from published import OFFLOCK, WORK

from offlock import lock

pytestmark = [
    pytest.mark.skipif(
        not HAS_GIL or sys.platform != "linux" or lock.stacks_obstacle() is not None,
        reason="no stacks can be read",
    ),
    pytest.mark.usefixtures("socket_folder"),
]

BEGIN = (
    WORK
    + """
import asyncio, ctypes

def ready():
    time.sleep(0.2)
    print(os.getpid(), flush=True)

def start(name, run, *arguments):
    threading.Thread(target=run, args=arguments, name=name, daemon=True).start()

def holds_in_c(seconds):
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
"""
)


Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program that calls `ready` once it can be dumped, and then goes on."""
    programs: list[subprocess.Popen[str]] = []

    def start(program: str) -> subprocess.Popen[str]:
        path = tmp_path / f"app{len(programs)}.py"
        path.write_text(BEGIN + textwrap.dedent(program))
        command = [*OFFLOCK, "run", "--", sys.executable, str(path)]
        programs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True))
        process = programs[-1]
        assert process.stdout is not None
        assert process.stdout.readline() == f"{process.pid}\n"
        return process

    yield start
    for process in programs:
        process.kill()
        process.communicate(timeout=30)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*OFFLOCK, "dump", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def threads_of(*arguments: object) -> dict[str, dict[str, Any]]:
    """The threads of one process, by name."""
    done = run("--json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    dump = json.loads(done.stdout)
    assert dump["obstacle"] is None
    return {thread["name"]: thread for thread in dump["threads"]}


def functions(thread: dict[str, Any]) -> list[str]:
    return [frame["function"] for frame in thread["frames"]]


def test_every_thread_is_shown_with_its_state_and_stack(start: Start) -> None:
    server = start("start('computing', compute); start('serving', serve); ready(); sys.stdin.read()")
    time.sleep(0.5)  # until the main thread reads
    for _ in range(3):
        threads = threads_of(server.pid)
        main = threads["MainThread"]
        assert main["native_id"] == server.pid
        assert (main["state"], main["behind"]) == ("idle", None)
        assert main["frames"][-1]["function"] == "<module>"
        assert main["frames"][-1]["file"].endswith("app0.py")
        assert functions(threads["serving"])[0] == "serve"
    states = [threads_of(server.pid) for _ in range(20)]
    assert {state["serving"]["state"] for state in states} & {"idle", "waiting"}, states
    # Between two turns a thread is off the lock, and of one that runs the stack may change while it is read.
    assert {state["computing"]["state"] for state in states} & {"running", "waiting"}, states
    stacks = [set(functions(state["computing"])) for state in states]
    assert any({"compute", "Thread.run", "Thread._bootstrap"} <= stack for stack in stacks), stacks
    done = run(server.pid)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{server.pid}: ")
    assert f"\nMainThread ({server.pid}): idle\n  " in done.stdout
    assert "app0.py:" in done.stdout
    assert server.poll() is None


def test_a_thread_that_holds_the_lock_in_c_does_not_keep_the_stacks_away(start: Start) -> None:
    server = start("start('serving', serve); ready(); holds_in_c(20)")
    time.sleep(0.5)
    begun = time.monotonic()
    threads = threads_of(server.pid)
    assert time.monotonic() - begun < 4, "nobody waits for the lock"
    main, serving = threads["MainThread"], threads["serving"]
    assert main["state"] == "running"
    assert 0.3e9 < main["nanoseconds"] < 20e9
    assert functions(main)[-2:] == ["holds_in_c", "<module>"]
    assert (serving["state"], serving["behind"]) == ("waiting", "MainThread")
    assert 0.3e9 < serving["nanoseconds"] < 20e9
    assert functions(serving)[0] == "serve"
    text = run(server.pid).stdout
    assert "has held the lock for " in text
    assert ", behind MainThread\n" in text


def test_many_dumps_at_once_and_many_threads(start: Start) -> None:
    server = start(
        """
        gate = threading.Event()
        for number in range(1000):
            start(f"many-{number}", gate.wait)
        start("computing", compute)
        ready()
        sys.stdin.read()
        """
    )
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: threads_of(server.pid, "--timeout", "20s"), range(20)))
    for threads in found:
        many = [thread for name, thread in threads.items() if name.startswith("many-")]
        assert len(many) == 1000
        assert all(functions(thread)[0] == "Condition.wait" for thread in many)
        assert all(thread["state"] == "idle" for thread in many)
    assert server.poll() is None


def test_tasks_have_names(start: Start) -> None:
    server = start(
        """
        async def fetch():
            start('serving', serve)
            ready()
            helper()

        def helper():
            time.sleep(30)

        async def main():
            await asyncio.create_task(fetch(), name="orders of today")

        def another(): asyncio.run(unnamed())

        async def unnamed():
            await asyncio.sleep(0)
            time.sleep(60)

        start('another', another)
        asyncio.run(main())
        """
    )
    threads = threads_of(server.pid)
    assert threads["MainThread"]["task"] == "orders of today (fetch)"
    assert functions(threads["MainThread"])[:2] == ["helper", "fetch"]
    assert threads["another"]["task"].startswith("Task-")
    assert threads["another"]["task"].endswith(" (unnamed)")
    assert threads["serving"]["task"] is None
    assert ": idle, in orders of today (fetch)\n" in run(server.pid).stdout


def test_tasks_of_uvloop_have_names(start: Start) -> None:
    pytest.importorskip("uvloop")
    server = start(
        """
        import uvloop

        async def fetch():
            ready()
            time.sleep(30)

        async def main():
            await asyncio.create_task(fetch(), name="orders")

        uvloop.run(main())
        """
    )
    assert threads_of(server.pid)["MainThread"]["task"] == "orders (fetch)"


def test_deep_stacks_are_cut_at_the_outer_end(start: Start) -> None:
    server = start(
        """
        def deep(number):
            time.sleep(60) if number == 0 else deep(number - 1)

        start('deep', deep, 400)
        ready()
        sys.stdin.read()
        """
    )
    deep = threads_of(server.pid)["deep"]
    assert len(deep["frames"]) == 256
    assert set(functions(deep)) == {"deep"}
    assert deep["left_out"] == 401 - 256 + 4, "and four functions of threads"
    assert f"  … {deep['left_out']} more\n" in run(server.pid).stdout


def test_forked_workers_are_dumped_by_their_own_numbers(start: Start, socket_folder: Path) -> None:
    server = start(
        """
        child = os.fork()
        if child == 0:
            start('worker', serve)
            def wait(): time.sleep(600)
            wait()
        ready()
        print(child, flush=True)
        sys.stdin.read()
        """
    )
    assert server.stdout is not None
    child = int(server.stdout.readline())
    try:
        deadline = time.monotonic() + 20
        while not (socket_folder / "offlock" / f"{child}.sock").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.3)
        threads = threads_of(child)
        assert threads["MainThread"]["native_id"] == child
        assert functions(threads["MainThread"])[0] == "wait"
        assert "serve" in functions(threads["worker"])
        several = run("--json")
        assert several.returncode == 0
        assert {dump["pid"] for dump in json.loads(several.stdout)["processes"]} >= {server.pid, child}
        several = run(server.pid, child, server.pid)
        assert [
            line for line in several.stdout.splitlines() if line.startswith((f"{child}: ", f"{server.pid}: "))
        ]
        assert several.stdout.count("MainThread (") == 2
    finally:
        os.kill(child, signal.SIGKILL)


def test_forks_meanwhile_disturb_nothing(start: Start) -> None:
    server = start(
        """
        start('computing', compute)
        ready()
        while True:
            child = os.fork()
            if child == 0:
                time.sleep(0.005)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    for _ in range(10):
        assert "compute" in functions(threads_of(server.pid)["computing"])
    assert server.poll() is None


def test_threads_that_begin_and_end_meanwhile_disturb_nothing(start: Start) -> None:
    server = start(
        """
        def brief(number):
            time.sleep(0.001)

        def breed():
            while True:
                threads = [threading.Thread(target=brief, args=[number]) for number in range(20)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()

        start('breeding', breed)
        ready()
        sys.stdin.read()
        """
    )
    for _ in range(30):
        assert functions(threads_of(server.pid)["MainThread"])[-1] == "<module>"
    assert server.poll() is None


def test_what_cannot_be_dumped_is_explained(start: Start, socket_folder: Path) -> None:
    nobody = run()
    assert nobody.returncode == 1
    assert "no process can be recorded. Start it with `offlock run -- PROGRAM`" in nobody.stderr
    server = start("ready(); sys.stdin.read()")
    some = run(server.pid, 1)
    assert some.returncode == 1
    assert some.stdout.startswith(f"{server.pid}: ")
    assert "offlock: process 1: no process of this user and number can be recorded" in some.stderr
    for wrong in (["web"], ["--timeout", "soon"]):
        assert run(*wrong).returncode == 2, wrong
    os.kill(server.pid, signal.SIGSTOP)
    try:
        done = run(server.pid)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the process does not answer: is it stopped?" in done.stderr
    server.kill()
    server.wait(30)
    assert (socket_folder / "offlock" / f"{server.pid}.sock").exists(), "it is left"
    assert "no process can be recorded" in run().stderr
    assert "there is no such process" in run(server.pid).stderr


def test_a_process_that_is_killed_while_it_is_dumped_is_no_trouble(start: Start) -> None:
    server = start(
        """
        gate = threading.Event()
        for number in range(500):
            start(f"many-{number}", gate.wait)
        ready()
        sys.stdin.read()
        """
    )
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        dumps = [pool.submit(run, server.pid) for _ in range(8)]
        time.sleep(0.1)
        server.kill()
        for dump in dumps:
            done = dump.result()
            assert done.returncode in (0, 1)
            assert "panicked" not in done.stderr


def test_a_program_without_stacks_says_so() -> None:
    assert lock.publish(stacks=None) is True
    try:
        done = run("--json", os.getpid())
    finally:
        lock.unpublish()
    dump = json.loads(done.stdout)
    assert dump["obstacle"] == "the program publishes itself without stacks"
    main = next(thread for thread in dump["threads"] if thread["name"] == "MainThread")
    assert main["frames"] == []


def test_the_own_process_can_be_dumped_while_it_is_recorded(tmp_path: Path) -> None:
    with lock.trace(tmp_path / "own.offlock"):
        assert lock.publish() is True
        try:
            threads = threads_of(os.getpid())
        finally:
            lock.unpublish()
    name = test_the_own_process_can_be_dumped_while_it_is_recorded.__name__
    assert name in functions(threads["MainThread"])
