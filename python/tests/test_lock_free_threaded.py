"""Tests what a trace tells of an interpreter that runs without a lock: pauses, and waits for the locks of objects."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from interpreter import HAS_GIL

pytestmark = pytest.mark.skipif(HAS_GIL, reason="about free-threaded builds, without the GIL")

BEGINNING = """
    import gc, os, sys, threading, time
    from offlock import lock

    def compute(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(1000))

    def collect(seconds):
        kept = [[i] for i in range(200_000)]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            gc.collect()

    shared = list(range(100_000))

    def fight(seconds):
        # Copying a list keeps its lock for long, so that others park instead of spinning.
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shared.copy()

    def run_threads(*bodies):
        threads = [threading.Thread(target=body, args=args, name=name) for name, body, *args in bodies]
        for thread in threads: thread.start()
        for thread in threads: thread.join()

    workers = [(f"worker {i}", compute, 0.6) for i in range(3)]
"""


def run(program: str, **environment: str) -> str:
    source = textwrap.dedent(BEGINNING) + textwrap.dedent(program)
    outcome = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def checked(output: str) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(output)
    assert summary["violations"] == 0
    assert ["lock", "none"] in summary["about"]
    assert "GIL" not in json.dumps(summary["findings"]) + json.dumps(summary["locks"])
    for thread in summary["threads"]:
        assert sum(thread["times"].values()) == thread["lifetime"], thread["name"]
    return summary


def finding(summary: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = [each for each in summary["findings"] if each["kind"] == kind]
    assert isinstance(found, dict)
    return found


def locks(summary: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each for each in summary["locks"] if each["kind"] == kind]


def kinds(summary: dict[str, Any]) -> set[str]:
    return {each["kind"] for each in summary["findings"]}


def test_threads_that_share_nothing_have_no_problem() -> None:
    summary = checked(
        run("""
        with lock.measure() as trace:
            run_threads(*workers)
        print(trace.summary.to_json())
    """)
    )
    assert ["obstacle", "this interpreter runs without a lock"] in summary["about"]
    assert "waits_obstacle" not in dict(summary["about"])
    assert not kinds(summary) & {"waits", "lock", "lock_enabled", "shared_objects"}, summary["findings"]
    assert "recorded exactly" in finding(summary, "estimate")["text"]


def test_pauses_are_told_with_the_thread_that_collects() -> None:
    summary = checked(
        run("""
        with lock.measure() as trace:
            run_threads(("collector", collect, 0.6), *workers)
        print(trace.summary.to_json())
    """)
    )
    pauses = finding(summary, "stop_the_world")
    assert pauses["group"] == "collector"
    assert "mostly to collect garbage" in pauses["text"]
    assert pauses["weight"] == "problem"
    assert "gc.collect()" in pauses["advice"]
    (stopped,) = locks(summary, "stop_the_world")
    assert stopped["waits"]["count"] >= 10
    assert stopped["holds"] >= 5
    names = [summary["threads"][thread]["name"] for thread, _ in stopped["holders"]]
    assert names[0] == "collector"
    workers = [thread for thread in summary["threads"] if thread["name"].startswith("worker")]
    assert all(thread["times"]["waiting"] > 0 for thread in workers)
    (sampler,) = [thread for thread in summary["threads"] if thread["name"] == "offlock sampler"]
    assert sampler["waits"]["count"] == 0


def test_other_pauses_are_not_said_to_collect_garbage() -> None:
    summary = checked(
        run("""
        kept = [[i] for i in range(200_000)]
        def list_objects():
            gc.disable()
            for _ in range(20):
                gc.get_objects()
                time.sleep(0.005)
        with lock.measure() as trace:
            run_threads(("lister", list_objects), *workers)
        print(trace.summary.to_json())
    """)
    )
    pauses = finding(summary, "stop_the_world")
    assert pauses["group"] == "lister"
    assert "garbage" not in pauses["text"]
    (stopped,) = locks(summary, "stop_the_world")
    assert stopped["holds"] >= 10


def test_threads_that_fight_for_an_object_are_told_so() -> None:
    summary = checked(
        run("""
        with lock.measure() as trace:
            run_threads(*[(f"fighter {i}", fight, 1) for i in range(4)])
        print(trace.summary.to_json())
    """)
    )
    objects = finding(summary, "shared_objects")
    assert "for the locks of `list` objects" in objects["text"]
    (fought,) = [each for each in locks(summary, "objects") if each["name"] == "objects of type list"]
    assert fought["waits"]["count"] >= 10
    assert fought["holders"] == []
    assert finding(summary, "waits")["group"] == "fighter *"


def test_a_lock_of_the_program_and_a_queue_are_no_locks_of_objects() -> None:
    summary = checked(
        run("""
        import queue
        mine, reentrant, items = threading.Lock(), threading.RLock(), queue.SimpleQueue()
        def use():
            for _ in range(50):
                with mine: time.sleep(0.001)
                with reentrant: time.sleep(0.001)
                items.get()
        def put():
            for _ in range(150):
                time.sleep(0.001)
                items.put(1)
        with lock.measure() as trace:
            run_threads(*[(f"user {i}", use) for i in range(3)], ("putter", put))
        print(trace.summary.to_json())
    """)
    )
    assert not locks(summary, "objects")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the tables of one machine")
def test_calls_are_redirected_only_while_something_is_recorded() -> None:
    printed = run(f"""
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from imports import slot_of, word
        def targets():
            return [word(slot_of(name)) for name in (b"sem_wait", b"sem_post", b"sched_yield")]
        before = targets()
        for _ in range(2):
            with lock.measure():
                hooks = targets()
            # The linker resolves a target at its first call.
            print(not set(hooks) & set(before), not set(hooks) & set(targets()))
    """)
    assert printed == "True True\n" * 2


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("OFFLOCK_FEED", "samples", "OFFLOCK_FEED asks for samples"),
        ("OFFLOCK_INTERNALS", "0", "OFFLOCK_INTERNALS=0"),
    ],
)
def test_what_is_forbidden_is_not_done_and_said(variable: str, value: str, reason: str) -> None:
    summary = checked(
        run(
            """
        with lock.measure() as trace:
            run_threads(("collector", collect, 0.3), *workers)
        print(trace.summary.to_json())
    """,
            **{variable: value},
        )
    )
    assert summary["locks"] == []
    assert reason in dict(summary["about"])["waits_obstacle"]
    assert f"are not seen, because {reason}" in finding(summary, "estimate")["text"]


def test_switched_off_nothing_is_recorded() -> None:
    printed = run(
        """
        with lock.measure() as trace:
            run_threads(("collector", collect, 0.2), *workers)
        print(trace.summary.to_dict()["locks"])
    """,
        OFFLOCK_LOCK="off",
    )
    assert printed == "[]\n"


def test_forked_children_and_their_parent_go_on(tmp_path: Path) -> None:
    run(f"""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside other threads
        collector = threading.Thread(target=collect, args=(1,), name="collector")
        with lock.trace("{tmp_path}/parent.json"):
            collector.start()
            threads = [threading.Thread(target=compute, args=(1,)) for _ in range(2)]
            for thread in threads: thread.start()
            for number in range(5):
                pid = os.fork()
                if pid == 0:
                    gc.collect()
                    with lock.trace(f"{tmp_path}/child-{{number}}.json"):
                        run_threads(("child collector", collect, 0.1), ("child worker", compute, 0.2))
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
            for thread in threads: thread.join()
            collector.join()
    """)
    parent = checked((tmp_path / "parent.json").read_text())
    assert locks(parent, "stop_the_world")
    for number in range(5):
        child = checked((tmp_path / f"child-{number}.json").read_text())
        assert {thread["name"] for thread in child["threads"]} >= {"child collector", "child worker"}


def test_threads_that_come_and_go_and_the_end_of_the_program_do_no_harm() -> None:
    run("""
        def churn():
            for _ in range(40):
                thread = threading.Thread(target=compute, args=(0.001,))
                thread.start()
                thread.join()
        for body in (compute, collect, fight):
            threading.Thread(target=body, args=(60,), daemon=True).start()
        recorder = lock.FlightRecorder()
        run_threads(*[(f"churn {i}", churn) for i in range(4)])
        print(recorder.memory > 0)
    """)


def test_pauses_are_in_the_exports(tmp_path: Path) -> None:
    run(f"""
        with lock.trace("{tmp_path}/a.offlock"):
            run_threads(("collector", collect, 0.4), *workers)
    """)
    trace = str(tmp_path / "a.offlock")
    for command in (["export", "--format", "firefox"], ["export", "--format", "perfetto"], ["report"]):
        written = str(tmp_path / command[-1])
        subprocess.run([sys.executable, "-m", "offlock", *command, trace, "-o", written], check=True)
    assert b"stop the world" in (tmp_path / "firefox").read_bytes()
