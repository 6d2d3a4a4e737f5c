"""A call that is interrupted or cancelled ends promptly and frees its memory."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgpackoperations
import operations
import pytest
from processes import PRELUDE, crowd, run, started

import offlock
from offlock import _offlock, tiktoken

pytestmark = pytest.mark.timing

TEXT = "The quick brown fox jumps over the lazy dog, 12345 times.\n" * 100_000

KEPT_BY_THE_ALLOCATOR = 16 << 20
"""What the process may grow by although nothing leaks. One call's ids take tens of kilobytes by the time it is
interrupted: a thousand of them would be far more."""

INTERRUPTED = """
for call in {calls}:
    code = compile(call, "<call>", "exec")
    while True:
        say("ready")
        try:
            while True:  # some calls take less time than it takes until the interrupt
                exec(code)
        except KeyboardInterrupt:
            say(time.monotonic())
        if sys.stdin.readline() == "enough\\n":
            break
"""


def assert_each_ends_within_50_ms(calls: list[str], prelude: str) -> None:
    """The machine may be busy, so the quickest of up to five answers counts."""
    late = {}
    with started(INTERRUPTED.format(calls=calls), prelude=prelude, stdin=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        for call in calls:
            delays: list[float] = []
            while not delays or (len(delays) < 5 and min(delays) >= 0.05):
                if delays:
                    print("again", file=process.stdin, flush=True)
                assert process.stdout.readline() == "ready\n"
                time.sleep(0.1)
                sent = time.monotonic()
                os.kill(process.pid, signal.SIGINT)
                delays.append(float(process.stdout.readline()) - sent)
            print("enough", file=process.stdin, flush=True)
            if min(delays) >= 0.05:
                late[call] = delays
        assert process.wait(timeout=60) == 0
    assert not late


LETTERS = "xé日"


def test_ctrl_c_ends_a_long_call_within_50_ms() -> None:
    calls = [
        "enc.encode_ordinary(text)",
        "enc.encode_ordinary(text, release='never')",
        "enc.count(text)",
        "enc.stream().feed(text)",
        "enc.stream().count(text.encode(), release='never')",
        *(f"enc.{stream}count(letters[{letter!r}])" for letter in LETTERS for stream in ("", "stream().")),
        "enc.encode_batch([text, text], num_threads=2)",
        "enc.encode_batch([text[:100]] + [text] * 2, num_threads=2)",
    ]
    # Making and freeing the letters would take a part of the 50 ms.
    letters = (
        f"letters = {{letter: letter * (100_000_000 // len(letter.encode())) for letter in {LETTERS!r}}}\n"
    )
    assert_each_ends_within_50_ms(calls, PRELUDE + letters)


ZLIB = """
import signal, sys, time
import offlock.gzip as gzip, offlock.zlib as zlib

def say(*words):
    print(*words, flush=True)

def repeated(wbits, count):
    "A stream of much text, whose checksum nobody comes to."
    maker = zlib.compressobj(wbits=-15)
    part = maker.compress(text[: 16 << 20]) + maker.flush(zlib.Z_FULL_FLUSH)
    header = {15: b"\\x78\\x9c", 31: b"\\x1f\\x8b\\x08" + bytes(7)}[wbits]
    return header + part * count + b"\\x03\\x00" + bytes(8)

import random
text = random.Random(1).randbytes(500_000).hex().encode() * 400
small, packed, packed_gzip = zlib.compress(b"small"), repeated(15, 40), repeated(31, 40)
members = gzip.compress(text[: 1 << 20]) * 600
"""


def test_ctrl_c_ends_compression_within_50_ms() -> None:
    calls = [
        "zlib.compress(text)",
        "zlib.compress(text, 9)",
        "zlib.compressobj().compress(text)",
        "zlib.deflate_all([text, text[:100]], threads=2)",
        "zlib.deflate_all([text[:100], text], threads=2)",
        "gzip.compress(text)",
        "gzip.compress(text, threads=2)",
        "zlib.decompress(packed)",
        "zlib.decompressobj().decompress(packed)",
        "zlib._ZlibDecompressor().decompress(packed)",
        "zlib.inflate_all([packed, small], threads=2)",
        "zlib.inflate_all([small, packed], threads=2)",
        "gzip.decompress(packed_gzip)",
        "gzip.decompress(members, threads=2)",
    ]
    assert_each_ends_within_50_ms(calls, ZLIB)


VOCABULARY = """
import random, sys, time
from offlock import tiktoken

def say(*words):
    print(*words, flush=True)

dice = random.Random(1)
tokens = [bytes([byte]) for byte in range(256)]
tokens += {{dice.randbytes(dice.randint(3, 12)) for _ in range(500_000)}}
ranks = {{token: rank for rank, token in enumerate(tokens)}}
if {shuffled}:
    dice.shuffle(tokens)
    ranks = {{token: ranks[token] for token in tokens}}
"""

MOMENTS = [0.1, 0.25, 0.4, 0.6]
"""Parts of the time that the whole call takes."""

MAKE_AN_ENCODING = """
def make():
    return tiktoken.Encoding("own", pat_str=r"\\w+|\\W+", mergeable_ranks=ranks, special_tokens={})

def duration():
    began = time.monotonic()
    make()
    return time.monotonic() - began

say(min(duration() for _ in range(2)))
while True:
    say("ready")
    try:
        make()
        say("not interrupted")
    except KeyboardInterrupt:
        say(time.monotonic())
    sys.stdin.readline()
"""


@pytest.mark.parametrize("shuffled", [False, True])
def test_ctrl_c_ends_the_making_of_an_encoding_at_once(shuffled: bool) -> None:
    late = {}
    with started(MAKE_AN_ENCODING, prelude=VOCABULARY.format(shuffled=shuffled), stdin=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        whole = float(process.stdout.readline())
        for moment in MOMENTS:
            delays: list[float] = []
            while not delays or (len(delays) < 3 and min(delays) > 0.1 * crowd()):
                assert process.stdout.readline() == "ready\n"
                time.sleep(whole * moment)
                sent = time.monotonic()
                os.kill(process.pid, signal.SIGINT)
                delays.append(float(process.stdout.readline()) - sent)
                print("again", file=process.stdin, flush=True)
            if min(delays) > 0.1 * crowd():
                late[moment] = delays
    assert not late


REPEATED = f"""
import os, sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import msgpackoperations, operations
import numpy  # which cannot be imported again once that was interrupted
msgpackoperations.MANY //= 3
msgpackoperations.MEGABYTES //= 2
operations.shrink(operations.MANY // 3, operations.SIZE // 2)
for name in {{names!r}}:
    call = {{module}}.LARGE[name]()
    for _ in range({{most}}):
        try:
            print(name, flush=True)
            while True:
                call()
        except KeyboardInterrupt:
            print(time.monotonic(), flush=True)
        if sys.stdin.readline() == "enough\\n":
            break
    del call
"""

MOST = 12
"""Interrupts of one operation."""


def operations_of(kind: str) -> tuple[str, list[str]]:
    """Returns the operations of one kind, and the module that makes their inputs."""
    if kind == "msgpack":
        return "msgpackoperations", list(msgpackoperations.LARGE)
    return "operations", [name for name in operations.LARGE if name.startswith(kind)]


KINDS = ["strings", "Encoding", "Tokenizer", "Stream", "pipeline", "zlib", "gzip", "zstd", "jsonl", "msgpack"]


def test_every_operation_is_of_some_kind() -> None:
    names = [name for kind in KINDS for name in operations_of(kind)[1]]
    assert sorted(names) == sorted([*operations.LARGE, *msgpackoperations.LARGE])


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_ends_every_operation_at_once(kind: str) -> None:
    """At random moments of its work. The machine may be busy with other things: a third of the answers in time shows what
    the call does."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice, late = random.Random(seed), {}
    module, names = operations_of(kind)
    with started(REPEATED.format(names=names, module=module, most=MOST), prelude="", stdin=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        for name in names:
            delays: list[float] = []
            while len(delays) < 3 or (len(delays) < MOST and not are_short(delays)):
                if delays:
                    print("again", file=process.stdin, flush=True)
                assert process.stdout.readline() == f"{name}\n"
                time.sleep(dice.uniform(0.005, 0.06))
                delays.append(interrupted(process))
            print("enough", file=process.stdin, flush=True)
            if not are_short(delays):
                late[name] = delays
        assert process.wait(timeout=60) == 0
    assert not late


def interrupted(process: subprocess.Popen[str]) -> float:
    """Interrupts a process and returns how long it took to say so, in seconds.

    CPython drops an exception that a signal handler raises in a finalizer, such as that of a file that is dropped unclosed. So
    the process is interrupted again if it goes on for long.
    """
    assert process.stdout is not None
    for _ in range(10):
        sent = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        if select.select([process.stdout], [], [], 5)[0]:
            return float(process.stdout.readline()) - sent
    raise AssertionError("the process does not react to interrupts")


def are_short(delays: list[float]) -> bool:
    return sorted(delays)[len(delays) // 3] < 0.05 * crowd()


def test_what_a_signal_handler_raises_is_what_the_call_raises() -> None:
    out = run(
        """
        class Alarm(Exception): pass
        def raise_alarm(*_): raise Alarm("now")
        signal.signal(signal.SIGALRM, raise_alarm)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            enc.encode_ordinary(text)
        except Alarm as alarm:
            say(repr(alarm))
        """
    )
    assert out == "Alarm('now')\n"


def test_a_handler_that_raises_nothing_lets_the_call_finish() -> None:
    out = run(
        """
        calls = []
        part = text[:20_000_000]
        expected = enc.count(part)
        signal.signal(signal.SIGALRM, lambda *_: calls.append(enc.count("one two three")))
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        count = enc.count(part)
        signal.setitimer(signal.ITIMER_REAL, 0)
        say(count == expected, set(calls))
        """
    )
    assert out == "True {3}\n"


def test_other_threads_are_not_interrupted() -> None:
    program = """
        part = text[:5_000_000]
        expected = enc.count(part)
        counts = []
        def work():
            for _ in range(20):
                counts.append(enc.count(part))
        worker = threading.Thread(target=work)
        try:
            worker.start()
            say("ready")
            while True:
                time.sleep(0.001)
        except KeyboardInterrupt:
            say("interrupted while it works:", len(counts) < 20)
        worker.join()
        say(counts == [expected] * 20)
    """
    with started(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.read() == "interrupted while it works: True\nTrue\n"
        assert process.wait(timeout=60) == 0


def test_interrupted_calls_leave_no_memory_behind() -> None:
    out = run(
        """
        class Alarm(Exception): pass
        def raise_alarm(*_): raise Alarm
        signal.signal(signal.SIGALRM, raise_alarm)
        def interrupted():
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                enc.encode_ordinary(text)
                say("not interrupted")
            except Alarm:
                pass
        for _ in range(30):
            interrupted()
        before = rss()
        for _ in range(300):
            interrupted()
        say(rss() - before)
        """
    )
    assert int(out) < KEPT_BY_THE_ALLOCATOR


def test_cancelled_calls_leave_no_memory_behind() -> None:
    out = run(
        """
        import concurrent.futures
        part = text[:1_000_000]
        def cancelled():
            cancel = offlock.Cancel()
            timer = threading.Timer(0.001, cancel.cancel)
            timer.start()
            try:
                while True:
                    enc.encode_ordinary(part, cancel=cancel)
            except concurrent.futures.CancelledError:
                pass
            timer.join()
        for _ in range(4):
            before = rss()
            for _ in range(250):
                cancelled()
            say(rss() - before)
        """
    )
    # How far a call comes, and so how much the allocator keeps, differs; what is left behind grows each time.
    assert min(map(int, out.split())) < 1 << 20


def repeat_for_ever(call: Callable[..., object], *args: object, **named: object) -> NoReturn:
    while True:
        call(*args, **named)


def test_cancel_ends_a_call_from_another_thread() -> None:
    from concurrent.futures import CancelledError

    enc = tiktoken.get_encoding("cl100k_base")
    for call in (enc.encode, enc.encode_ordinary, enc.count, enc.encode_packed):
        cancel = offlock.Cancel()
        assert not cancel.cancelled
        timer = threading.Timer(0.01, cancel.cancel)
        timer.start()
        with pytest.raises(CancelledError):
            repeat_for_ever(call, TEXT, cancel=cancel)
        timer.join()
        assert cancel.cancelled
        with pytest.raises(CancelledError):
            call("a" * 100, cancel=cancel)


@pytest.mark.parametrize("wrong", ["sometimes", "", None, 1])
def test_release_is_checked(wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"must be 'auto', 'always' or 'never', not {wrong!r}"):
        tiktoken.get_encoding("cl100k_base").encode("hello world", release=wrong)


def test_the_classes_are_where_they_say() -> None:
    assert offlock.InternalError.__module__ == "offlock"
    assert issubclass(offlock.InternalError, RuntimeError)
    assert offlock.Cancel is _offlock.Cancel
