"""Programs that hold the lock for known times on known lines: programs.py NAME"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator

from witness import clock, hold, note, note_between, note_loop, rest, run

MS = 1_000_000
ROUNDS = 25

PROGRAMS: dict[str, Callable[[], None]] = {}


def program(body: Callable[[], None]) -> Callable[[], None]:
    PROGRAMS[body.__name__] = body
    return body


def crunch(milliseconds: float = 20) -> None:
    note(hold(round(milliseconds * MS)))


def often(work: Callable[[], object], rounds: int = ROUNDS, pause: float = 2) -> Callable[[], None]:
    def repeat() -> None:
        for _ in range(rounds):
            work()
            rest(pause)

    return repeat


@program
def one_line() -> None:
    run(often(crunch))


@program
def long_hold() -> None:
    run(often(lambda: crunch(300), rounds=4))


@program
def nested_calls() -> None:
    def outer() -> None:
        middle()

    def middle() -> None:
        note(hold(3 * MS))
        inner()

    def inner() -> None:
        note(hold(17 * MS))

    run(often(outer))


@program
def two_lines() -> None:
    def both() -> None:
        note(hold(5 * MS))
        note(hold(15 * MS))

    run(often(both))


@program
def c_functions() -> None:
    # Their results are small, as dropping them holds the lock, too.
    text = json.dumps("a line of text\n" * 400_000)
    scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
    search, letters = re.compile(r"(a+)+c").match, "a" * 19 + "b"
    power = 3**60_000
    numbers = list(range(1_500_000))

    def expression() -> None:
        note_between(clock(), search(letters), clock())

    def integers() -> None:
        note_between(clock(), power * power % (power - 1), clock())

    def parse() -> None:
        note_between(clock(), scan(text, 0), clock())

    def add() -> None:
        note_between(clock(), sum(numbers), clock())

    sys.setswitchinterval(10)
    run(*(often(work, rounds=10) for work in (expression, integers, parse, add)))


@program
def generator() -> None:
    def numbers() -> Iterator[int]:
        for number in range(ROUNDS):
            note(hold(20 * MS))
            yield number

    def consume() -> None:
        for _ in numbers():
            rest(2)

    run(consume)


@program
def lambda_and_eval() -> None:
    short = lambda: note(hold(5 * MS))  # noqa: E731
    made = compile("note(hold(10 * MS))", "<made>", "eval")
    space = {"note": note, "hold": hold, "MS": MS}

    def each() -> None:
        short()
        rest(2)
        eval(made, space)
        rest(2)
        [note(hold(8 * MS)) for _ in range(1)]

    run(often(each))


@program
def recursion() -> None:
    def descend(depth: int) -> None:
        if depth:
            descend(depth - 1)
        else:
            note(hold(20 * MS))

    run(often(lambda: descend(90)))


@program
def callbacks() -> None:
    class Key:
        def __init__(self, number: int) -> None:
            self.number = number

        def __lt__(self, other: Key) -> bool:
            note(hold(8 * MS))
            return self.number < other.number

        def __del__(self) -> None:
            note(hold(6 * MS))

    def compare() -> None:
        sorted([Key(2), Key(1)])

    run(often(compare))


@program
def coroutine() -> None:
    async def late() -> None:
        note(hold(20 * MS))

    async def serve() -> None:
        for _ in range(ROUNDS):
            await late()
            rest(2)

    run(lambda: asyncio.run(serve()))


@program
def fifty_threads() -> None:
    run(often(lambda: crunch(10)), lights=50)


@program
def two_holders() -> None:
    def heavy() -> None:
        note(hold(20 * MS))

    def small() -> None:
        note(hold(5 * MS))

    run(often(heavy), often(small))


@program
def rotating_pool() -> None:
    def first() -> None:
        until, times = clock() + 1_000 * MS, [clock()]
        while (now := clock()) < until:
            times.append(now)
            sum(range(500))
        note_loop(times, 3)

    def second() -> None:
        until, times = clock() + 1_000 * MS, [clock()]
        while (now := clock()) < until:
            times.append(now)
            sum(range(500))
        note_loop(times, 3)

    def third() -> None:
        until, times = clock() + 1_000 * MS, [clock()]
        while (now := clock()) < until:
            times.append(now)
            sum(range(500))
        note_loop(times, 3)

    run(first, second, third)


@program
def short_holds() -> None:
    def first() -> None:
        note(hold(MS // 5))

    def second() -> None:
        note(hold(MS // 5))

    run(*(often(work, rounds=800, pause=0.1) for work in (first, second) * 4))


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
