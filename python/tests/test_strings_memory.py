"""Tests how much memory strings keep allocated, for how long, and that all of it is freed."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
import time
from typing import Any

import pytest
from interpreter import HAS_GIL
from processes import run
from stringmaking import KINDS, MANY

from offlock import strings
from offlock._offlock import strings as native

PRELUDE = """
import gc, os, random, sys, threading, time
from offlock import strings
from offlock._offlock import strings as native
text = "\\n".join(["plain ASCII", "naïve café", "día—noche", "a 𐩡 letter", "x", ""] * 500).encode()
expected = text.decode().splitlines()

def kinds():
    try:
        strings.enable_blocks()
    except RuntimeError:
        pass
    return [kind for kind, found in strings.capabilities().items() if found.available]
"""
TEXT = "\n".join(MANY).encode()


def blocks_in_use() -> int:
    gc.collect()
    return native.blocks()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_come_back(kind: Any) -> None:
    before = blocks_in_use()
    made = strings.lines(TEXT, kind=kind)
    if kind != "str":
        assert blocks_in_use() > before
    kept = made[5000:5001]
    del made
    assert blocks_in_use() <= before + 1
    del kept
    assert blocks_in_use() == before


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_come_back_when_nothing_was_made(kind: Any) -> None:
    before = blocks_in_use()
    for _ in range(20):
        with pytest.raises(UnicodeDecodeError):
            strings.decode_many([*[b"fine"] * 5000, b"\xff"], kind=kind)
    assert blocks_in_use() == before


@pytest.mark.parametrize("kind", KINDS)
def test_what_strings_retain_can_be_asked_for(kind: Any) -> None:
    text = "\n".join(f"line of text, number {number}" for number in range(100_000)).encode()
    made = strings.lines(text, kind=kind)
    assert len(text) < strings.retained(made) < 5 * len(text)
    one = strings.retained(made[:1])
    assert one < {"str": 200, "block": 20_000, "view": 3_000_000}[kind]
    for plain in strings.compact(made[:1]), strings.compact(tuple(made[:1])):
        assert list(plain) == made[:1]
        assert type(plain[0]) is str
        assert strings.retained(plain) == sys.getsizeof(str(made[0]))
    assert isinstance(strings.compact(tuple(made)), tuple)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_one_string_counts_once_and_stays_one(kind: Any) -> None:
    made = strings.lines(b"one line\nanother line\n" * 5000, kind=kind)
    assert strings.retained(made) == strings.retained(made[:2])
    plain = strings.compact(made)
    assert plain == made
    assert len(set(map(id, plain))) == 2


def test_compact_leaves_plain_strings_alone() -> None:
    plain = ["a string", "another — one"]
    assert [a is b for a, b in zip(plain, strings.compact(plain), strict=True)] == [True, True]
    with pytest.raises(TypeError):
        strings.compact([b"bytes"])  # type: ignore[type-var]
    with pytest.raises(TypeError):
        strings.retained([1])  # type: ignore[list-item]


def test_memory_does_not_grow() -> None:
    out = run(
        """
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        many = "\\n".join(f"{line} {number}" for number, line in enumerate(expected * 10)).encode()
        for kind in kinds():
            for _ in range(20):
                strings.lines(many, kind=kind)
            before = resident()
            for _ in range(100):
                strings.lines(many, kind=kind)
            print(kind, resident() - before < 10_000_000)
        """,
        prelude=PRELUDE,
    )
    assert {line.split()[1] for line in out.splitlines()} == {"True"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "str"])
def test_strings_stay_cheap_after_a_peak(kind: Any) -> None:
    offered = native.blocks()[2]
    text = b"".join(b"some words that make line %d\n" % number for number in range(2_000_000))
    many = strings.lines(text, kind=kind)
    assert len(many) == 2_000_000
    del many
    after_peak = native.blocks()[2]
    assert after_peak > offered
    for _ in range(100):
        strings.lines(text[:300_000], kind=kind)
    assert native.blocks()[2] == after_peak


@pytest.mark.parametrize("kind", KINDS)
def test_threads_make_and_drop_across_each_other(kind: Any) -> None:
    """Each thread frees strings that another thread has made. OFFLOCK_SOAK_SECONDS sets the seconds for each kind."""
    end = time.monotonic() + float(os.environ.get("OFFLOCK_SOAK_SECONDS", "0"))
    shelves: list[Any] = [None] * 4
    wrong: list[object] = []
    expected = TEXT.decode().splitlines()

    def work(seed: int) -> None:
        for turn in itertools.takewhile(lambda turn: turn < 60 or time.monotonic() < end, itertools.count()):
            made = strings.lines(TEXT, kind=kind, release="always" if turn % 2 else "auto")
            shelf = (seed + turn) % len(shelves)
            taken, shelves[shelf] = shelves[shelf], made[turn % 7 :: 3]
            if taken is not None and taken != expected[taken_from(taken) :: 3]:
                wrong.append(taken)

    def taken_from(taken: list[str]) -> int:
        return next(start for start in range(7) if taken[:9] == expected[start::3][:9])

    before = blocks_in_use()
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    shelves.clear()
    assert blocks_in_use() == before


FLAGS = [(), ("-X", "dev"), ("-X", "faulthandler", "-W", "error")]


@pytest.mark.parametrize("flags", FLAGS)
def test_strings_may_be_alive_at_the_end(flags: tuple[str, ...]) -> None:
    run(
        """
        alive = [strings.lines(text, kind=kind) for kind in kinds()]
        class Late:
            def __del__(self, lines=strings.lines(text, kind="view")):
                assert lines == expected
        sys.late = Late()
        cycle = [strings.lines(text, kind=kind, into=tuple) for kind in kinds()]
        cycle.append(cycle)
        def work():
            while True:
                for kind in kinds():
                    strings.lines(text * 20, kind=kind, release="always")
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        """,
        *flags,
        prelude=PRELUDE,
    )


def test_a_forked_child_has_strings_and_makes_more() -> None:
    out = run(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        stop = False
        def work():
            while not stop:
                for kind in kinds():
                    strings.lines(text * 10, kind=kind, release="always")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        alive = [strings.lines(text, kind=kind) for kind in kinds()]
        for _ in range(30):
            child = os.fork()
            if child == 0:
                right = all(made == expected for made in alive)
                alive.clear()
                for kind in kinds():
                    right &= strings.lines(text * 10, kind=kind) == (text * 10).decode().splitlines()
                os._exit(0 if right else 1)
            print(os.waitpid(child, 0)[1])
        stop = True
        for thread in threads:
            thread.join()
        assert all(made == expected for made in alive)
        """,
        prelude=PRELUDE,
    )
    assert out.split() == ["0"] * 30


@pytest.mark.parametrize("allocator", ["malloc", "debug", "malloc_debug", "pymalloc_debug"])
def test_every_allocator_will_do(allocator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not HAS_GIL and "malloc" in allocator:
        pytest.skip("needs an allocator that a build without a GIL does not have")
    monkeypatch.setenv("PYTHONMALLOC", allocator)
    run(
        """
        for kind in kinds():
            made = strings.lines(text, kind=kind)
            assert made == expected
            grown = [line + "!" for line in made]
            for line in made[:100]:
                line += " and more"
                line += line * 40
                hash(line), line.encode("utf-16"), line.upper()
            del made[::2]
            gc.collect()
            assert made == expected[1::2]
        """,
        prelude=PRELUDE,
    )
