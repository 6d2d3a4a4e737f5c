"""Tests the estimate from samples, for interpreters whose lock cannot be traced exactly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path
from typing import Any

from interpreter import with_gil

BEGINNING = """
    import sys, threading, time
    from offlock import lock, tiktoken

    def compute(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    def run_threads(**bodies):
        threads = [threading.Thread(target=body, name=name) for name, body in bodies.items()]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
"""


def run(program: str) -> str:
    """Returns the output of a program whose lock is not traced exactly."""
    source = textwrap.dedent(BEGINNING) + textwrap.dedent(program)
    command = [sys.executable, "-W", "error", "-c", source]
    environment = {**os.environ, "OFFLOCK_FEED": "samples"}
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def threads(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {thread["name"]: thread for thread in summary["threads"]}


def checked(output: str) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(output)
    assert summary["violations"] == 0
    assert ["exact", "false"] in summary["about"]
    caveat = summary["findings"][0]
    assert caveat["weight"] == "caveat"
    assert "estimated from samples" in caveat["text"]
    assert "OFFLOCK_FEED asks for samples" in caveat["text"]
    for thread in summary["threads"]:
        assert sum(thread["times"].values()) == thread["lifetime"], thread["name"]
    return summary


def test_it_tells_what_is_missing() -> None:
    assert run("print(lock.obstacle())") == "OFFLOCK_FEED asks for samples\n"


@with_gil
def test_computing_threads_run_and_sleeping_ones_do_not() -> None:
    summary = checked(
        run("""
        with lock.measure() as trace:
            run_threads(a=lambda: compute(0.2), b=lambda: compute(0.2), c=lambda: time.sleep(0.4))
        print(trace.summary.to_json())
    """)
    )
    found = threads(summary)
    for name in "ab":
        assert 150e6 <= found[name]["times"]["running"] <= 220e6
    assert found["c"]["times"]["running"] < 50e6
    sampler = found["offlock sampler"]
    assert sampler["waits"]["count"] > 5
    assert sampler["times"]["waiting"] > 0
    assert {summary["threads"][holder]["name"] for holder, _ in summary["locks"][0]["holders"]} >= {"a", "b"}


def test_operations_off_the_lock_are_still_exact() -> None:
    summary = checked(
        run("""
        encoding = tiktoken.get_encoding("cl100k_base")
        text = "some words and 1234 " * 50_000
        with lock.measure() as trace:
            encoding.encode_ordinary(text)
        print(trace.summary.to_json())
    """)
    )
    (operation,) = [each for each in summary["operations"] if each["name"].startswith("tokens.")]
    assert operation["times"]["off_lock"] > 0


def test_without_a_lock_threads_compute_off_it() -> None:
    summary = checked(
        run("""
        sys._is_gil_enabled = lambda: False
        with lock.measure() as trace:
            run_threads(a=lambda: compute(0.1), b=lambda: compute(0.1))
        print(trace.summary.to_json())
    """)
    )
    assert summary["locks"] == []
    for name in "ab":
        assert threads(summary)[name]["times"]["off_lock"] >= 75e6


def test_estimates_are_labelled_wherever_they_are_shown(tmp_path: Path) -> None:
    run(f"""
        for name in ("a.pftrace", "a.gvl.json", "a.firefox.json", "a.html"):
            with lock.trace("{tmp_path}/" + name):
                run_threads(a=lambda: compute(0.05))
        lock.trace("{tmp_path}/again.offlock").__enter__()
    """)
    for name in ("a.gvl.json", "a.firefox.json"):
        assert b"estimated from samples" in (tmp_path / name).read_bytes(), name
    packets = (tmp_path / "a.pftrace").read_bytes()
    first = packets[packets.index(b"\x78\x9c") :]  # a zlib stream within a packet
    assert b"estimated from samples" in zlib.decompressobj().decompress(first)
    shown = subprocess.run(
        [sys.executable, "-m", "offlock", "summary", str(tmp_path / "again.offlock")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "estimated from samples" in shown
    assert "\n? These numbers are estimated" in shown


def test_live_numbers_stay_zero_and_say_so() -> None:
    printed = run("""
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lock.GlobalTimer.enable()
            lock.GlobalTimer.enable()
        print(lock.GlobalTimer.enabled(), lock.GlobalTimer.monotonic_time(), *[w.message for w in caught])
    """)
    assert printed == "True 0 the numbers of GlobalTimer stay zero: OFFLOCK_FEED asks for samples\n"


@with_gil
def test_a_forked_child_samples_anew(tmp_path: Path) -> None:
    run(f"""
        import os, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside the thread that samples
        with lock.trace("{tmp_path}/parent.offlock"):
            if os.fork() == 0:
                with lock.trace("{tmp_path}/child.json"):
                    run_threads(a=lambda: compute(0.1))
                os._exit(0)
            assert os.wait()[1] == 0
    """)
    child = checked((tmp_path / "child.json").read_text())
    assert threads(child)["a"]["times"]["running"] >= 60e6
