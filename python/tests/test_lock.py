"""Traces of scenarios with known results, and events that traces must survive."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from offlock import lock, tiktoken

pytestmark = pytest.mark.skipif(lock.obstacle() is not None, reason=f"{lock.obstacle()}")

MS = 1_000_000


def compute(seconds: float) -> None:
    """Hold the lock, except for time slices of others, for this much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def sleep_holding(seconds: float) -> None:
    """Sleep while holding the lock, as some extensions do."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def run_threads(**bodies: Callable[[], object]) -> None:
    threads = [threading.Thread(target=body, name=name) for name, body in bodies.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measured(scenario: Callable[[], object]) -> dict[str, Any]:
    """Return the summary of a scenario. Checks the invariants of every trace."""
    with lock.measure() as trace:
        scenario()
    assert trace.summary is not None
    summary = trace.summary.to_dict()
    assert summary["violations"] == 0
    assert summary["lost"] == 0
    assert summary["damage"] is None
    for thread in summary["threads"]:
        assert sum(thread["times"].values()) == thread["lifetime"], thread["name"]
    for held in summary["locks"]:
        assert held["held"] <= summary["length"]
    return summary


def thread_named(summary: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the thread of that name.

    A thread of an earlier scenario may still be ending in the trace, but never acquires the lock.
    """
    found: list[dict[str, Any]] = [
        thread for thread in summary["threads"] if thread["name"] == name and thread["acquisitions"] > 0
    ]
    assert len(found) == 1, name
    return found[0]


def test_in_a_notebook_names_are_text() -> None:
    with lock.measure() as trace:
        run_threads(**{"<script>": lambda: None})
    assert trace.summary is not None
    shown = trace.summary._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert re.fullmatch(r"<pre [^>]*>[^<]*\nThreads [^<]*</pre>", shown)


def test_two_computing_threads_share_the_lock_and_blame_each_other() -> None:
    summary = measured(lambda: run_threads(a=lambda: compute(0.15), b=lambda: compute(0.15)))
    a, b = thread_named(summary, "a"), thread_named(summary, "b")
    for thread in (a, b):
        # Waiting takes processor time, too, on a busy machine.
        assert thread["times"]["running"] >= 100 * MS
        assert thread["times"]["waiting"] >= 50 * MS
    (gil,) = summary["locks"]
    names = [thread["name"] for thread in summary["threads"]]
    rows = {names[row["thread"]]: row for row in gil["blame"]}
    for waiter, holder in (("a", "b"), ("b", "a")):
        by = {names[index]: waited for index, waited in rows[waiter]["by"]}
        assert by[holder] >= 0.8 * rows[waiter]["waited"]


def test_ten_computing_threads_take_turns() -> None:
    names = [f"counter {number}" for number in range(10)]
    summary = measured(lambda: run_threads(**dict.fromkeys(names, lambda: compute(0.05))))
    for name in names:
        assert thread_named(summary, name)["times"]["running"] >= 25 * MS
    (gil,) = summary["locks"]
    assert gil["mean_waiters"] > 2
    assert any("held" in finding["text"] for finding in summary["findings"])


def requests(count: int) -> None:
    """Send requests to a server in another thread of this process."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        while theirs.recv(1):
            time.sleep(0.002)
            theirs.send(b"y")

    server = threading.Thread(target=serve, name="server")
    server.start()
    for _ in range(count):
        ours.send(b"x")
        ours.recv(1)
    ours.close()
    server.join()
    theirs.close()


def test_a_network_thread_waits_only_beside_a_counter() -> None:
    alone = measured(lambda: run_threads(network=lambda: requests(20)))
    assert not [finding for finding in alone["findings"] if "briefly" in finding["text"]]

    counts, done = threading.Event(), threading.Event()

    def count() -> None:
        counts.set()
        while not done.is_set():
            compute(0.001)

    def network() -> None:
        counts.wait()
        requests(20)
        done.set()

    summary = measured(lambda: run_threads(network=network, counter=count))
    names = [thread["name"] for thread in summary["threads"]]
    rows = [row for row in summary["locks"][0]["blame"] if names[row["thread"]] in ("network", "server")]
    waited = sum(row["waited"] for row in rows)
    behind = sum(time for row in rows for index, time in row["by"] if names[index] == "counter")
    assert waited > 20 * MS
    assert behind >= 0.5 * waited


def test_times_agree_with_the_clock() -> None:
    inner: list[int] = []

    def body() -> None:
        began = time.monotonic_ns()
        compute(0.05)
        time.sleep(0.05)
        inner.append(time.monotonic_ns() - began)

    began = time.monotonic_ns()
    summary = measured(lambda: run_threads(a=body))
    outer = time.monotonic_ns() - began
    assert 0.999 * inner[0] <= thread_named(summary, "a")["lifetime"] <= summary["length"] <= 1.001 * outer


def test_a_sleeping_thread_is_idle() -> None:
    summary = measured(lambda: run_threads(sleeper=lambda: time.sleep(0.1)))
    assert thread_named(summary, "sleeper")["times"]["idle"] >= 95 * MS


@pytest.mark.timing  # beside other programs it gets less than half of the processor's time
@pytest.mark.skipif(
    sys.platform != "linux", reason="the system does not tell one thread about another's time"
)
def test_a_thread_in_other_code_that_releases_the_lock_computes() -> None:
    def body() -> None:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 200_000)

    summary = measured(lambda: run_threads(hasher=body))
    hasher = thread_named(summary, "hasher")
    assert hasher["usage"]["others"] >= 20 * MS
    assert hasher["times"]["off_lock"] > 0
    assert 0 < summary["useful_parallelism"] <= summary["processors"] + 0.1


def test_a_thread_that_sleeps_with_the_lock_keeps_others_waiting() -> None:
    held = threading.Event()

    def hold() -> None:
        held.set()
        sleep_holding(0.1)

    def wait() -> None:
        held.wait()

    summary = measured(lambda: run_threads(holder=hold, waiter=wait))
    assert thread_named(summary, "holder")["longest_hold"] >= 95 * MS
    assert summary["waits"]["max"] >= 80 * MS
    # On a busy machine a holder that does not run may as well lack a processor, unless the system tells.
    is_busy = (summary["machine_busy"] or 0) > 0.7
    assert is_busy or any("holder" in finding["text"] for finding in summary["findings"])


def test_an_operation_off_the_lock_is_shown_with_its_name_and_bytes() -> None:
    encoding = tiktoken.get_encoding("cl100k_base")
    text = "some words and 1234 " * 50_000
    summary = measured(lambda: encoding.encode_ordinary(text))
    (operation,) = summary["operations"]
    assert operation["name"].startswith("tokens.")
    assert operation["bytes"] == len(text)
    assert operation["times"]["off_lock"] > 0


def test_marks_and_collections_are_shown() -> None:
    @lock.mark("decorated")
    def decorated() -> None:
        compute(0.01)

    def scenario() -> None:
        with lock.mark("checkout <script>"):
            gc.collect()
        decorated()

    summary = measured(scenario)
    assert {mark["name"] for mark in summary["marks"]} == {"checkout <script>", "decorated"}
    assert summary["times"]["gc"] > 0


def test_ten_thousand_threads_come_and_go() -> None:
    def scenario() -> None:
        for _ in range(10_000):
            run_threads(short=lambda: None)

    summary = measured(scenario)
    assert sum(thread["name"] == "short" for thread in summary["threads"]) == 10_000


def test_traces_may_overlap_and_start_and_stop_concurrently(tmp_path: Path) -> None:
    def one(number: int) -> lock.Stats | None:
        with lock.trace(tmp_path / f"{number}.offlock") as trace:
            compute(0.005)
        return trace.stop()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(64)))
    assert threading.Thread._bootstrap_inner.__qualname__ == "Thread._bootstrap_inner"  # type: ignore[attr-defined]
    assert not [callback for callback in gc.callbacks if "on_gc" in repr(callback)]


def test_the_process_has_one_trace_of_its_own(tmp_path: Path) -> None:
    assert lock.start(tmp_path / "a.offlock")
    assert not lock.start(tmp_path / "b.offlock")
    assert lock.stop()
    assert lock.stop() is None
    assert not (tmp_path / "b.offlock").exists()


def test_a_name_that_stands_for_a_format_gets_that_format(tmp_path: Path) -> None:
    with lock.trace(tmp_path / "a.pftrace"):
        compute(0.01)
    assert (tmp_path / "a.pftrace").stat().st_size > 0
    assert (tmp_path / "a.offlock").read_bytes().startswith(b"offlock")


def test_what_the_program_has_not_named_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "report.offlock").write_text("mine")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "link.offlock").symlink_to(tmp_path / "victim")
    with lock.trace(tmp_path / "report.json"):
        pass
    assert (tmp_path / "report-2.offlock").exists()
    with pytest.raises(OSError, match="symbolic link"):
        lock.Trace(tmp_path / "link.offlock")
    assert (tmp_path / "report.offlock").read_text() == "mine"
    assert (tmp_path / "victim").read_text() == "precious"


def test_only_its_owner_can_read_a_file_and_arguments_are_kept_only_if_asked(tmp_path: Path) -> None:
    program = f"""
import sys
from offlock import lock
sys.argv[:] = []
with lock.trace("{tmp_path}/a.offlock"): pass
with lock.trace("{tmp_path}/b.offlock", arguments=True): pass
"""
    (tmp_path / "app.py").write_text(program)
    packages = str(Path(lock.__file__).parents[2])
    for flags in ((), ("-X", "dev", "-W", "ignore"), ("-Wignore", "-Bu")):
        command = [sys.executable, *flags, str(tmp_path / "app.py"), "--password=secret"]
        subprocess.run(command, check=True, timeout=60, env={**os.environ, "PYTHONPATH": packages})
        texts = [(tmp_path / f"{name}.offlock").read_bytes() for name in "ab"]
        assert [b"secret" in text for text in texts] == [False, True]
        assert all(b"app.py" in text for text in texts)
        assert [(tmp_path / f"{name}.offlock").stat().st_mode & 0o777 for name in "ab"] == [0o600] * 2
    code = f"from offlock import lock; lock.start('{tmp_path}/c.offlock'); password = 'secret'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert b"secret" not in (tmp_path / "c.offlock").read_bytes()


def test_reprs_are_short() -> None:
    with lock.measure() as trace:
        assert repr(trace) == "<Trace: running>"
    assert re.fullmatch(r"<Trace: stopped, \d+ events>", repr(trace))
    shown = r"<Summary: [\d.e-]+ s, \d+ events, \d+ threads, \d+ locks, \d+ findings>"
    assert re.fullmatch(shown, repr(trace.summary))


def test_a_signal_handler_may_start_and_stop_the_trace(tmp_path: Path) -> None:
    outcome = run(f"""
        import os, signal, threading, time
        from offlock import lock
        path = "{tmp_path}/a.offlock"
        signal.signal(signal.SIGUSR1, lambda *_: lock.start(path))
        signal.signal(signal.SIGUSR2, lambda *_: lock.stop())
        ended = False
        def send():
            for number in range(300):
                os.kill(os.getpid(), signal.SIGUSR2 if number % 2 else signal.SIGUSR1)
                time.sleep(0.0005)
        sender = threading.Thread(target=send)
        sender.start()
        while sender.is_alive():
            lock.start(path)
            lock.stop()
        sender.join()
        lock.stop()
        print(lock.start(path), lock.stop() is not None)
        assert threading.Thread._bootstrap_inner.__name__ == "_bootstrap_inner"
    """)
    assert (outcome.returncode, outcome.stdout) == (0, "True True\n"), outcome.stderr


def test_threads_without_a_native_id_are_no_obstacle() -> None:
    """Tests programs that eventlet or gevent have patched."""
    outcome = run("""
        import threading
        main = threading.main_thread()
        class Patched(type(main)):
            @property
            def native_id(self):
                raise AttributeError("'_MainThread' object has no attribute 'native_id'")
        main.__class__ = Patched
        from offlock import lock
        with lock.measure() as trace:
            threading.Thread(target=sum, args=([],), name="other").start()
        names = [thread["name"] for thread in trace.summary.to_dict()["threads"]]
        assert "MainThread" in names and "other" in names, names
        lock.LocalTimer.enable()
        print(lock.LocalTimer().acquisitions() >= 0, lock.LocalTimer(main).acquisitions())
    """)
    assert (outcome.returncode, outcome.stdout) == (0, "True 0\n"), outcome.stderr


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the system's names of threads are read on Linux"
)
def test_a_thread_without_a_name_has_the_one_that_the_system_shows() -> None:
    outcome = run("""
        import _thread, ctypes, re, time
        from offlock import lock
        PR_SET_NAME = 15
        prctl = ctypes.CDLL(None).prctl
        def serve(name, begun):
            prctl(PR_SET_NAME, name, 0, 0, 0)
            begun.release()
            while True:
                time.sleep(0.001)
        for name in b"pool-worker", b"queue_7", b"python":
            begun = _thread.allocate_lock()
            begun.acquire()
            _thread.start_new_thread(serve, (name, begun))
            begun.acquire()
        prctl(PR_SET_NAME, b"python", 0, 0, 0)
        with lock.measure() as trace:
            time.sleep(0.1)
        names = [re.sub(r"\\d{2,}", "N", thread["name"]) for thread in trace.summary.to_dict()["threads"]]
        print(*sorted(names), sep=", ")
    """)
    assert (outcome.returncode, outcome.stdout) == (0, "MainThread, pool-worker (N), queue_7, thread N\n"), (
        outcome.stderr
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="redirects calls by machine code")
def test_another_tools_hook_is_called_and_put_back() -> None:
    outcome = run(
        """
        import ctypes, os, time
        from imports import Hook, libc, put, slot_of, word
        from offlock import lock
        slot = slot_of(b"pthread_cond_signal")
        hook = Hook(ctypes.cast(libc.pthread_cond_signal, ctypes.c_void_p).value)
        put(slot, hook.address)
        for _ in range(2):
            before = hook.calls
            with lock.measure() as trace:
                assert word(slot) != hook.address
                for _ in range(10):
                    time.sleep(0.0001)
            assert trace.summary.to_dict()["threads"][0]["releases"] >= 10
            assert word(slot) == hook.address
            assert hook.calls >= before + 10
        # One that comes while a trace runs, and stays.
        with lock.measure():
            late = Hook(word(slot))
            put(slot, late.address)
        assert word(slot) == late.address
        for _ in range(2):
            with lock.measure() as trace:
                for _ in range(10):
                    time.sleep(0.0001)
            assert trace.summary.to_dict()["threads"][0]["releases"] >= 10
            assert word(slot) == late.address
        print("end", flush=True)
        os._exit(0)  # the interpreter would call the hooks when their memory is gone
        """,
        PYTHONPATH=os.pathsep.join([str(Path(__file__).parent), str(Path(lock.__file__).parents[2])]),
    )
    assert (outcome.returncode, outcome.stdout) == (0, "end\n"), outcome.stderr


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        lock.Trace(tmp_path / "missing" / "a.offlock")


def test_the_module_has_the_name_of_the_lock_too() -> None:
    import offlock.gil
    from offlock.gil import measure

    assert offlock.gil is lock
    assert measure is lock.measure


def test_live_numbers() -> None:
    timers: list[lock.LocalTimer] = []
    was_seen, is_done, parked = threading.Event(), threading.Event(), threading.Semaphore(0)

    def body() -> None:
        timers.append(lock.LocalTimer())
        compute(0.1)
        while not was_seen.is_set():
            compute(0.01)
        parked.release()
        is_done.wait(10)

    for metric in (lock.GlobalTimer, lock.LocalTimer, lock.WaitingThreads):
        assert not metric.enabled()
        metric.enable()
        metric.enable()
        assert metric.enabled()
    try:
        lock.GlobalTimer.reset()
        threads = [threading.Thread(target=body) for _ in range(3)]
        for thread in threads:
            thread.start()
        most, deadline = 0, time.monotonic() + 30
        while most < 1 or len(timers) < 3 or any(timer.acquisitions() < 4 for timer in timers):
            assert time.monotonic() < deadline
            time.sleep(0.005)
            most = max(most, lock.WaitingThreads.count())
        assert most <= 3
        was_seen.set()
        for _ in threads:
            parked.acquire()
        assert all(timer.monotonic_time() > 10 * MS for timer in timers)
        assert all(sum(count for _, count in timer.histogram()) >= 1 for timer in timers)
        assert lock.GlobalTimer.monotonic_time() >= sum(timer.monotonic_time() for timer in timers)
        assert lock.GlobalTimer.acquisitions() >= sum(timer.acquisitions() for timer in timers)
        is_done.set()
        for thread in threads:
            thread.join()
    finally:
        for metric in (lock.GlobalTimer, lock.LocalTimer, lock.WaitingThreads):
            metric.disable()
    lock.WaitingThreads.reset()
    assert lock.WaitingThreads.count() == 0


def run(program: str, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *flags, "-c", textwrap.dedent(program)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


def summary_of(path: Path) -> str:
    return subprocess.run(
        [sys.executable, "-m", "offlock", "summary", str(path)], capture_output=True, text=True, check=True
    ).stdout


def test_a_forked_child_leaves_the_parents_trace_alone_and_makes_its_own(tmp_path: Path) -> None:
    outcome = run(f"""
        import os, threading, time
        from offlock import lock
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
        with lock.trace("{tmp_path}/parent.offlock") as trace:
            if os.fork() == 0:
                assert not trace.is_running and trace.stop() is None
                with lock.trace("{tmp_path}/child.offlock"):
                    sum(range(10**6))
                os._exit(0)
            assert os.wait()[1] == 0
        assert trace.stop().events > 0
    """)
    assert outcome.returncode == 0, outcome.stderr
    for name in ("parent", "child"):
        assert "exact" in summary_of(tmp_path / f"{name}.offlock")


def test_a_trace_is_complete_when_the_program_ends_without_stopping_it(tmp_path: Path) -> None:
    outcome = run(f"""
        from offlock import lock
        lock.start("{tmp_path}/a.offlock")
        sum(range(10**6))
    """)
    assert outcome.returncode == 0, outcome.stderr
    assert "not stopped" not in summary_of(tmp_path / "a.offlock")


def test_after_a_kill_the_file_is_readable_up_to_the_last_flush(tmp_path: Path) -> None:
    outcome = run(f"""
        import os, signal, time
        from offlock import lock
        lock.start("{tmp_path}/a.offlock")
        for _ in range(100):
            time.sleep(0.001)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert outcome.returncode == -signal.SIGKILL
    assert "not stopped" in summary_of(tmp_path / "a.offlock")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters have a lock of their own from 3.12 on")
def test_an_interpreter_with_a_lock_of_its_own_is_told_apart(tmp_path: Path) -> None:
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    made = "create('isolated')" if sys.version_info >= (3, 13) else "create(isolated=True)"
    outcome = run(f"""
        import threading
        import {module} as interpreters
        from offlock import lock
        program = "import time\\nfor _ in range(50): time.sleep(0.001)"
        with lock.trace("{tmp_path}/a.json"):
            other = interpreters.{made}
            thread = threading.Thread(target=interpreters.run_string, args=(other, program), name="guest")
            thread.start(); thread.join()
            interpreters.destroy(other)
    """)
    assert outcome.returncode == 0, outcome.stderr
    text = (tmp_path / "a.json").read_text()
    assert '"violations": 0' in text
    assert '"GIL 2"' in text


def test_the_command_traces_an_unchanged_program_and_its_children(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        textwrap.dedent("""
        import subprocess, sys
        print(input(), flush=True)
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
        sys.exit(7)
    """)
    )
    command = [sys.executable, "-m", "offlock", "trace", "-o", str(tmp_path / "app.offlock"), "--"]
    outcome = subprocess.run(
        [*command, sys.executable, str(tmp_path / "app.py")],
        input="hello\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert outcome.returncode == 7, outcome.stderr
    assert outcome.stdout == "hello\nchild\n"
    assert "MainThread" in outcome.stderr
    assert len(list(tmp_path.glob("app*.offlock"))) == 2


def test_a_program_that_replaces_itself_keeps_its_file(tmp_path: Path) -> None:
    program = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(input())'])"
    outcome = subprocess.run(
        [
            *f"{sys.executable} -m offlock trace --keep-arguments -o {tmp_path}/a.offlock --".split(),
            sys.executable,
            "-c",
            program,
        ],
        input="hello\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (outcome.returncode, outcome.stdout) == (0, "hello\n"), outcome.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.offlock"]
    assert "rint(input())" in summary_of(tmp_path / "a.offlock")  # long commands are cut in the middle
