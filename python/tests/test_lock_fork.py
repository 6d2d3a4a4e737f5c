"""Tests children of traced programs, and the exit of programs with threads."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from offlock import lock

pytestmark = pytest.mark.skipif(lock.obstacle() is not None, reason=f"{lock.obstacle()}")

SECONDS = float(os.environ.get("OFFLOCK_SOAK_SECONDS", "10"))
"""How long to fork children; the environment may set a longer time."""


def traced(
    folder: Path, *program: str, seconds: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "offlock", "trace", "-o", str(folder / "app.offlock"), "--"]
    variables = {**os.environ, **environment}
    # Output goes to files: children of a killed process may keep pipes open.
    return subprocess.run(
        [*command, sys.executable, *program], capture_output=True, text=True, timeout=seconds, env=variables
    )


def state_of(paths: list[Path]) -> str:
    """Returns the states of the traces as "name status" with their faults. One process reads all of them."""
    program = """
        import os, sys
        from offlock._offlock import run_cli
        for path in sys.stdin.read().split():
            status = run_cli(["offlock", "export", "-f", "json", path, "-o", os.devnull])
            print(os.path.basename(path), status, file=sys.stderr, flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    names = "\n".join(map(str, paths))
    return subprocess.run(command, input=names, capture_output=True, text=True, check=True).stderr


def test_children_of_a_traced_program_with_threads_end_and_leave_a_readable_trace(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"children forked for {SECONDS} s with seed {seed}")
    program = Path(__file__).with_name("prefork.py")
    outcome = traced(tmp_path, str(program), str(SECONDS), str(seed), seconds=SECONDS + 600)
    assert outcome.returncode == 0, outcome.stderr
    children = [line.split() for line in outcome.stdout.splitlines()]
    assert children
    assert [child for child in children if child[2] != "ended"] == [], (
        f"seed {seed}: {outcome.stderr[-2_000:]}"
    )
    states = state_of([tmp_path / f"app.{pid}.offlock" for pid, *_ in children])
    assert [pid for pid, *_ in children if f"app.{pid}.offlock 0\n" not in states] == [], f"seed {seed}"
    damaged = re.findall(r"app\.(\d+)\.offlock: (.*)", states)
    assert all(re.search("complete up to its last flush|cut off", damage) for _, damage in damaged), states
    killed = {pid for pid, way, *_ in children if way == "be_killed"}
    assert {pid for pid, _ in damaged} <= killed, f"only what a signal ends has no end; seed {seed}"


def test_a_child_that_cannot_be_traced_runs_all_the_same(tmp_path: Path) -> None:
    program = """
        import os
        os.environ["OFFLOCK_TRACE"] = "/missing/a.offlock"
        child = os.fork()
        if child == 0:
            print(2, flush=True)
            os._exit(0)
        print(os.waitpid(child, 0)[1])
    """
    outcome = traced(tmp_path, "-c", textwrap.dedent(program))
    assert (outcome.returncode, outcome.stdout) == (0, "2\n0\n")
    assert re.search(r"process \d+ is not traced: No such file", outcome.stderr), outcome.stderr


def test_the_summary_is_that_of_the_busy_child(tmp_path: Path) -> None:
    program = """
        import os, threading, time
        def work():
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                sum(range(1000))
        if os.fork() == 0:
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os._exit(0)
        os.wait()
    """
    outcome = traced(tmp_path, "-c", textwrap.dedent(program))
    summary, others = outcome.stderr.split("Other processes")
    assert re.search(r"process \d+ \(child of \d+\), which lost most of 2 processes", summary), summary
    assert "slows this program down" in " ".join(summary.split()), summary
    assert re.search(r"process \d+ \(parent of 1\)", others), others


def test_a_signal_starts_and_stops_traces(tmp_path: Path) -> None:
    program = """
        import os, signal
        for _ in range(4):
            os.kill(os.getpid(), signal.SIGURG)
    """
    outcome = traced(tmp_path, "-c", textwrap.dedent(program), OFFLOCK_SIGNAL="URG")
    traces = sorted(path.name for path in tmp_path.iterdir())
    assert len(traces) == 2, outcome.stderr
    assert traces[1] == "app.offlock"
    assert re.fullmatch(r"app\.\d+\.offlock", traces[0])
    assert "not stopped" not in outcome.stderr


def test_a_program_with_daemon_threads_ends_well(tmp_path: Path) -> None:
    program = """
        import threading, time
        def work():
            while True:
                time.sleep(0.0001)
                sum(range(100))
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
        print("end")
    """
    for run in range(10):
        outcome = traced(tmp_path, "-c", textwrap.dedent(program))
        assert (outcome.returncode, outcome.stdout) == (0, "end\n"), (run, outcome.stderr)
        assert "Threads" in outcome.stderr
        assert "not stopped" not in outcome.stderr


def test_spawned_programs_have_traces_of_their_own(tmp_path: Path) -> None:
    program = """
        import multiprocessing, os, subprocess, sys
        def work():
            pass
        if __name__ == "__main__":
            child = [sys.executable, "-c", "pass"]
            subprocess.run(child, check=True)
            subprocess.run(child, check=True, preexec_fn=os.getpid)
            os.waitpid(os.posix_spawn(sys.executable, child, os.environ), 0)
            process = multiprocessing.get_context("spawn").Process(target=work)
            process.start()
            process.join()
            assert process.exitcode == 0
    """
    (tmp_path / "app.py").write_text(textwrap.dedent(program))
    outcome = traced(tmp_path, str(tmp_path / "app.py"))
    assert outcome.returncode == 0, outcome.stderr
    traces = sorted(tmp_path.glob("app*.offlock"))
    assert len(traces) >= 5, traces
    states = state_of(traces)
    assert all(f"{path.name} 0\n" in states for path in traces), states
    assert "complete up to" not in states


def test_threads_may_begin_to_watch_at_the_same_time() -> None:
    """The first search for the lock releases it for a moment, in which another thread may call the module or fork."""
    program = """
        import os, sys, threading, warnings
        from offlock import lock
        warnings.simplefilter("ignore")
        sys.setswitchinterval(1e-6)
        go = False
        def work(number):
            while not go:
                pass
            lock.obstacle()
            if number % 4 == 0:
                child = os.fork()
                if child == 0:
                    with lock.measure():
                        pass
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads: thread.start()
        go = True
        for thread in threads: thread.join()
        with lock.measure() as trace:
            sum(range(1000))
        assert trace.summary.to_dict()["locks"]
        print("end")
    """
    for _ in range(20):
        command = [sys.executable, "-c", textwrap.dedent(program)]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (outcome.returncode, outcome.stdout) == (0, "end\n"), outcome.stderr


def test_another_version_of_python_is_told_what_is_missing(tmp_path: Path) -> None:
    package = Path(lock.__file__).parents[1]
    copy = tmp_path / "packages" / "offlock"
    copy.mkdir(parents=True)
    for source in (*package.glob("*.py"), *package.glob("_autotrace/*.py")):
        target = copy / source.relative_to(package)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(source.read_bytes())
    (copy / "_offlock.cpython-39-x86_64-linux-gnu.so").write_bytes(b"")
    importing = [sys.executable, "-P", "-c", "import offlock"]
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
    outcome = subprocess.run(importing, capture_output=True, text=True, env=environment, timeout=60)
    said = outcome.stderr.splitlines()[-1]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert said.startswith(f"ModuleNotFoundError: offlock's extension module for cpython {version} ")
    assert "holds the one for cpython-39-x86_64-linux-gnu. " in said
    assert "pip install --force-reinstall offlock" in said
    outcome = traced(
        tmp_path, "-c", "print('runs')", OFFLOCK_PYTHONPATH=str(copy / "_autotrace"), PYTHONPATH=""
    )
    assert (outcome.returncode, outcome.stdout) == (0, "runs\n")
    assert "is not traced: offlock's extension module for" in outcome.stderr
