"""The code that others waited for, in programs whose truth is known by construction."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import linecache
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offlock import lock

pytestmark = pytest.mark.skipif(lock.stacks_obstacle() is not None, reason=f"{lock.stacks_obstacle()}")

MS = 1_000_000


def hold(seconds: float) -> None:
    """Keep the lock for exactly this long, as some functions in C do."""
    usleep(int(seconds * 1e6))  # holds


usleep = ctypes.PyDLL(None).usleep


def run_beside_waiter(body: Callable[[], object], stacks: float = 0.001) -> dict[str, Any]:
    """Return what is said of `body`, while a thread wants the lock every millisecond."""
    is_done = threading.Event()

    def wait_often() -> None:
        while not is_done.wait(0.001):
            pass

    with lock.measure(stacks=stacks) as trace:
        waiter = threading.Thread(target=wait_often, name="waiter")
        worker = threading.Thread(target=body, name="holder")
        waiter.start()
        worker.start()
        worker.join()
        is_done.set()
        waiter.join()
    assert trace.summary is not None
    summary = trace.summary.to_dict()
    assert summary["violations"] == 0
    code: dict[str, Any] = summary["code"]
    return code


def share(code: dict[str, Any], function: str, text: str) -> float:
    """Return the part of the known time that was lost to a line with `text` in a function."""
    lines = (line for line in code["lines"] if line["function"].endswith(function))
    lost = sum(line["lost"] for line in lines if text in linecache.getline(line["file"], line["line"]))
    return float(lost / max(code["known"], 1))


class Nested:
    def outer(self) -> None:
        def inner() -> None:
            hold(0.02)

        for _ in range(5):
            inner()
            time.sleep(0.001)


def numbers() -> Iterator[int]:
    for number in range(5):
        usleep(20_000)  # in a generator
        yield number


def consume() -> None:
    for _ in numbers():
        time.sleep(0.001)


PATTERN = re.compile(r"(a|a)*b")
UNSORTED = [str(number * 7_919 % 1_000_003) for number in range(60_000)]


def match_slowly() -> None:
    for _ in range(5):
        PATTERN.match("a" * 17)  # matches slowly
        time.sleep(0.001)


def sort_slowly() -> None:
    for _ in range(5):
        sorted(UNSORTED)  # sorts slowly
        time.sleep(0.001)


def compute_and_sleep() -> None:
    for _ in range(20):
        end = time.perf_counter() + 0.008
        while time.perf_counter() < end:
            sum(range(100))  # computes
        time.sleep(0.001)  # sleeps


@pytest.mark.parametrize(
    ("body", "function", "text", "stacks"),
    [
        (Nested().outer, "hold", "# holds", 0.001),
        (consume, "numbers", "# in a generator", 0.001),
        (match_slowly, "match_slowly", "# matches slowly", 0.001),
        (sort_slowly, "sort_slowly", "# sorts slowly", 0.001),
        # Of waits that are shorter than the least, no stack is taken; some are, at the end of each turn.
        (compute_and_sleep, "compute_and_sleep", "", 0.0),
    ],
)
def test_the_line_that_held_the_lock_is_named(
    body: Callable[[], object], function: str, text: str, stacks: float
) -> None:
    # On a machine that is full, the system may not run the thread while it holds the lock somewhere else.
    codes = [run_beside_waiter(body, stacks) for _ in range(3)]
    best = max(codes, key=lambda code: share(code, function, text))
    assert best["known"] > 20 * MS
    assert best["known"] > 20 * best["unknown"]
    assert share(best, function, text) >= 0.95, best["lines"][:5]


def test_the_end_of_a_hold_is_not_taken_for_the_whole() -> None:
    code = run_beside_waiter(compute_and_sleep)
    assert share(code, "compute_and_sleep", "# sleeps") < 0.2, code["lines"][:5]


def test_a_long_call_into_c_is_one_hold() -> None:
    code = run_beside_waiter(lambda: hold(0.2))
    worst = code["lines"][0]
    assert worst["function"] == "hold"
    assert "# holds" in linecache.getline(worst["file"], worst["line"])
    assert worst["longest_hold"] > 190 * MS
    assert worst["samples"] > 20


def traced(tmp_path: Path, program: str, *options: str, **environment: str) -> str:
    """Return the collapsed stacks of a program that was run by the command."""
    script, path = tmp_path / "app.py", tmp_path / "app.offlock"
    script.write_text(textwrap.dedent(program))
    runs = [
        [*OFFLOCK, "trace", "--no-summary", "-o", str(path), "--", sys.executable, *options, str(script)],
        [*OFFLOCK, "export", "--format", "collapsed", "-o", "-", str(path)],
    ]
    for run in runs:
        done = subprocess.run(
            run, capture_output=True, text=True, env=os.environ | environment, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
    return done.stdout


OFFLOCK = [sys.executable, "-m", "offlock"]

BESIDE_WAITER = """
    import ctypes, sys, threading, time
    usleep = ctypes.PyDLL(None).usleep
    def beside_waiter(body):
        is_done = threading.Event()
        def wait_often():
            while not is_done.wait(0.001):
                pass
        waiter = threading.Thread(target=wait_often)
        waiter.start()
        body()
        is_done.set()
        waiter.join()
"""


def test_code_at_the_same_address_never_gets_another_name(tmp_path: Path) -> None:
    stacks = traced(
        tmp_path,
        BESIDE_WAITER
        + """
    def body():
        for number in range(200):
            source = "\\n" * (number % 7) + f"def f{number}():\\n  usleep(3000)\\nf{number}()"
            exec(compile(source, f"<made {number}>", "exec"), {"usleep": usleep})
            time.sleep(0.001)
    beside_waiter(body)
    """,
    )
    made = re.findall(r"<module> \(<made (\d+)>:(\d+)\);f(\d+) \(<made (\d+)>:(\d+)\) ", stacks)
    assert len(made) > 50, stacks[:2000]
    for outer, outer_line, function, file, line in made:
        assert outer == function == file
        first = int(function) % 7 + 1
        assert (int(outer_line), int(line)) == (first + 2, first + 1)


def test_functions_that_differ_in_their_place_only_are_told_apart(tmp_path: Path) -> None:
    stacks = traced(
        tmp_path,
        BESIDE_WAITER
        + """
    def body():
        for _ in range(10):
            for number in range(5):
                source = "\\n" * 10 * number + "def f():\\n  usleep(3000)\\nf()"
                exec(compile(source, "<made>", "exec"), {"usleep": usleep})
                time.sleep(0.001)
    beside_waiter(body)
    """,
    )
    lines = {int(line) for line in re.findall(r";f \(<made>:(\d+)\) ", stacks)}
    assert lines == {2, 12, 22, 32, 42}, stacks[:2000]


PROGRAMS = {
    "threads that die": """
    def short():
        usleep(2_000)
    def body():
        for _ in range(100):
            threads = [threading.Thread(target=short) for _ in range(3)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
    beside_waiter(body)
    """,
    "deep recursion": """
    sys.setrecursionlimit(20_000)
    def deep(n):
        if n == 0:
            for _ in range(50):
                usleep(3_000); time.sleep(0.0005)
            return
        deep(n - 1)
    threading.stack_size(256 << 20)
    thread = threading.Thread(target=lambda: beside_waiter(lambda: deep(10_000)))
    thread.start(); thread.join()
    """,
    "fork": """
    import os
    def body():
        for _ in range(10):
            usleep(3_000)
            if (pid := os.fork()) == 0:
                beside_waiter(lambda: usleep(5_000))
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
    beside_waiter(body)
    """,
    "many threads that call, raise and collect": """
    import gc, json
    def calls(n):
        return n if n < 2 else calls(n - 1) + calls(n - 2)
    def body():
        end = time.monotonic() + 1
        while time.monotonic() < end:
            calls(12)
            try:
                json.loads("[1, 2, {")
            except ValueError:
                pass
            list(map(lambda x: x, (i for i in range(100))))
            exec("def g(x):\\n  return [y for y in range(x)]\\ng(50)")
            gc.collect(0)
    threads = [threading.Thread(target=body) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """,
}


@pytest.mark.parametrize("options", [(), ("-X", "dev")], ids=["usual", "dev"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_survive(tmp_path: Path, program: str, options: tuple[str, ...]) -> None:
    stacks = traced(tmp_path, BESIDE_WAITER + PROGRAMS[program], *options)
    assert stacks.count("app.py") > 0, stacks
    for line in stacks.splitlines():
        assert re.fullmatch(r".+ \d+", line)
    if program == "deep recursion":
        assert "frames left out;deep" in stacks


def test_stacks_can_be_switched_off(tmp_path: Path) -> None:
    program = BESIDE_WAITER + "    beside_waiter(lambda: usleep(20_000))"
    assert "usleep" not in traced(tmp_path, program, OFFLOCK_TRACE_STACKS="off")
    with lock.measure(stacks=None) as trace:
        thread = threading.Thread(target=hold, args=(0.02,))
        thread.start()
        thread.join()
    assert trace.summary is not None
    assert trace.summary.to_dict()["code"]["lines"] == []
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="stacks="):
            lock.measure(stacks=wrong)


def test_nothing_is_kept_alive() -> None:
    class Witness:
        pass

    def body() -> None:
        names: dict[str, Any] = {"usleep": usleep, "witness": Witness()}
        exec("def f(w=witness):\n  usleep(20_000)\nf()", names)

    run_beside_waiter(body)
    gc.collect()
    assert not any(isinstance(each, Witness) for each in gc.get_objects())


def test_tasks_are_named_in_stacks_and_in_the_summary(tmp_path: Path) -> None:
    async def fetch() -> None:
        for _ in range(3):
            hold(0.02)
            await asyncio.sleep(0.001)

    def deep(left: int) -> None:
        hold(0.02) if left == 0 else deep(left - 1)

    async def recursive() -> None:
        for _ in range(3):
            deep(100)
            await asyncio.sleep(0.001)

    async def main() -> None:
        tasks = [asyncio.create_task(fetch(), name="orders"), asyncio.create_task(recursive())]
        await asyncio.gather(*tasks)

    code = run_beside_waiter(lambda: asyncio.run(main()))
    line = max(code["lines"], key=lambda line: line["lost"])
    assert line["function"].endswith("hold")
    tasks = dict(line["tasks"])
    assert len(tasks) == 2
    orders = next(lost for name, lost in tasks.items() if name == f"orders ({fetch.__qualname__})")
    other = tasks["Task-* (…)"]
    assert abs(orders - other) < 0.3 * (orders + other)


def test_tasks_are_frames_in_exports(tmp_path: Path) -> None:
    path = tmp_path / "tasks.offlock"
    program = """
        import asyncio, ctypes, threading
        from offlock import lock

        async def inner():
            ctypes.PyDLL(None).usleep(50_000)

        async def outer():
            await inner()

        done = threading.Event()

        def wait_often():
            while not done.wait(0.001): pass

        with lock.trace(PATH):
            waiter = threading.Thread(target=wait_often)
            waiter.start()
            asyncio.run(outer())
            done.set()
            waiter.join()
    """
    program = textwrap.dedent(program).replace("PATH", repr(str(path)))
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    export = [sys.executable, "-m", "offlock", "export", "--format", "collapsed", "-o", "-", str(path)]
    stacks = subprocess.run(export, capture_output=True, text=True, check=True, timeout=60).stdout
    frames = max(stacks.splitlines(), key=lambda line: int(line.rsplit(" ", 1)[1])).split(";")
    names = [frame.split(" (<string>")[0] for frame in frames]
    at = names.index("outer")
    assert names[at - 1] == "Task-* (outer)"
    assert names[at + 1].startswith("inner")


def test_without_a_task_there_is_no_name() -> None:
    async def by_hand() -> None:
        hold(0.03)

    def run() -> None:
        with pytest.raises(StopIteration):
            by_hand().send(None)

    code = run_beside_waiter(run)
    assert all(line["tasks"] == [] for line in code["lines"])
