"""Compares offlock.msgpack with msgpack, ormsgpack and msgspec: script/python bench/msgpack/python_bench.py [--json FILE]"""

from __future__ import annotations

import functools
import gc
import json
import math
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import ormsgpack

from offlock import msgpack as ours
from offlock import strings

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import by_figure, keep, make_parser

Call = Callable[[], Any]


def record(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "login": f"user{number}",
        "name": "Call me Ishmael",
        "email": f"user{number}@example.com",
        "active": number % 3 == 0,
        "score": number * 1.5,
        "tags": ["a", "bb", "ccc"],
        "address": {"street": "1 Main St", "city": "Nantucket", "zip": "02554"},
        "created_at": "2026-11-21T07:00:00Z",
        "bio": "Some years ago, never mind how long precisely",
    }


WORDS = [
    "some",
    "years",
    "ago",
    "never",
    "mind",
    "how",
    "long",
    "precisely",
    "having",
    "little",
    "or",
    "no",
    "money",
    "in",
    "my",
    "purse",
]

VALUES: dict[str, Any] = {
    "small map": {"id": 12345, "name": "Ishmael", "active": True, "score": 0.75},
    "records 100 KB": [record(number) for number in range(400)],
    "strings 5 MB": [
        " ".join(WORDS[number % 13 : number % 13 + 1 + number % 5]) + str(number) for number in range(220_000)
    ],
    "records 5 MB": [record(number) for number in range(21_000)],
}


def contestants(value: Any) -> dict[str, dict[str, Call]]:
    message = msgpack.packb(value)
    assert ours.packb(value) == message == ormsgpack.packb(value) == msgspec.msgpack.encode(value)
    assert ours.unpackb(message) == value == ours.unpackb(message, release="always")
    return {
        "pack": {
            "offlock": lambda: ours.packb(value),
            "msgpack": lambda: msgpack.packb(value),
            "ormsgpack": lambda: ormsgpack.packb(value),
            "msgspec": lambda: msgspec.msgpack.encode(value),
        },
        "unpack": {
            "offlock": lambda: ours.unpackb(message),
            "offlock, under the lock": lambda: ours.unpackb(message, release="never"),
            "msgpack": lambda: msgpack.unpackb(message),
            "ormsgpack": lambda: ormsgpack.unpackb(message),
            "msgspec": lambda: msgspec.msgpack.decode(message),
        },
    }


def measure(calls: dict[str, Call], seconds: float = 0.02, rounds: int = 15) -> dict[str, float]:
    """Returns the median CPU seconds of one call for each contestant. The contestants take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name in sorted(calls, key=lambda name: hash((name, turn))):
            call = calls[name]
            call()
            count, used = 0, 0.0
            gc.collect()
            start = time.process_time()
            while used < seconds:
                for _ in range(max(1, count)):
                    call()
                count += max(1, count)
                used = time.process_time() - start
            times[name].append(used / count)
    return {name: statistics.median(values) for name, values in times.items()}


def stall(call: Call) -> float:
    """Returns the longest time in seconds for which a thread that wakes up every 0.2 ms did not run during `call`.

    Garbage collection and freeing the result are not part of it.
    """
    longest, going = 0.0, True

    def beat() -> None:
        nonlocal longest
        last = time.perf_counter()
        while going:
            time.sleep(0.0002)
            now = time.perf_counter()
            longest = max(longest, now - last)
            last = now

    thread = threading.Thread(target=beat)
    thread.start()
    time.sleep(0.01)
    gc.disable()
    longest = 0.0
    result = call()
    time.sleep(0.01)  # the thread counts a late wake-up only when it runs
    found = longest
    gc.enable()
    going = False
    thread.join()
    del result
    return found


def scaling(call: Call) -> float:
    """Returns the speed of two threads as a multiple of that of one. The calls' results are dropped."""
    count = math.ceil(0.2 / measure({"": call}, rounds=1)[""])

    def work() -> None:
        for _ in range(count):
            call()

    def run(threads: int) -> float:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - start

    return statistics.median(2 * run(1) / run(2) for _ in range(7))


def large(message: bytes) -> dict[str, Any]:
    calls: dict[str, Call] = {
        "offlock": lambda: ours.unpackb(message),
        "msgpack": lambda: msgpack.unpackb(message),
        "msgspec": lambda: msgspec.msgpack.decode(message),
    }
    return {
        "stall_ms": {
            name: round(statistics.median(stall(call) for _ in range(9)) * 1e3, 2)
            for name, call in calls.items()
        },
        "two_threads": {name: round(scaling(call), 2) for name, call in calls.items()},
    }


def in_blocks(message: bytes, value: Any) -> dict[str, Any]:
    """Measures unpacking with strings in blocks, which must have been enabled."""
    calls: dict[str, Call] = {
        "offlock": lambda: ours.unpackb(message),
        "msgspec": lambda: msgspec.msgpack.decode(message),
    }
    assert ours.unpackb(message) == value
    times = measure(calls, rounds=7)
    return {
        "ratio": round(times["msgspec"] / times["offlock"], 2),
        "stall_ms": round(statistics.median(stall(calls["offlock"]) for _ in range(9)) * 1e3, 2),
        "two_threads": round(scaling(calls["offlock"]), 2),
    }


def extracting(message: bytes) -> dict[str, Any]:
    """Measures the extraction of columns whose strings are all different, and all the same, in one thread and two."""
    calls: dict[str, Call] = {
        name: functools.partial(ours.extract, message, name) for name in ("login", "name")
    }
    times = measure(calls)
    return {
        f"extract {name}, records 5 MB": {
            "ms": round(times[name] * 1e3, 2),
            "two_threads": round(scaling(call), 2),
        }
        for name, call in calls.items()
    }


def main() -> None:
    options = make_parser().parse_args()
    rows: dict[str, Any] = {}
    for name, value in VALUES.items():
        for direction, calls in contestants(value).items():
            times = measure(calls, rounds=15 if len(str(value)) < 10**6 else 7)
            best = min(seconds for library, seconds in times.items() if not library.startswith("offlock"))
            ratio = round(best / times["offlock"], 2)
            rows[f"{direction} {name}"] = {"seconds": times, "ratio": ratio}
            print(
                f"{direction:6} {name:15} x{ratio:.2f}",
                {library: f"{t * 1e6:.2f} us" for library, t in times.items()},
            )
    messages = {name: msgpack.packb(VALUES[name]) for name in ("strings 5 MB", "records 5 MB")}
    more = {f"unpack {name}": large(message) for name, message in messages.items()}
    more |= extracting(messages["records 5 MB"])
    strings.enable_blocks()
    more |= {
        f"unpack {name}, in blocks": in_blocks(message, VALUES[name]) for name, message in messages.items()
    }
    more |= {f"{case}, in blocks": figures for case, figures in extracting(messages["records 5 MB"]).items()}
    print(json.dumps(more, indent=1))
    for case, figures in more.items():
        rows[case] = rows.get(case, {}) | figures
    keep(options.json, by_figure(rows), "msgpack", "ormsgpack", "msgspec")


if __name__ == "__main__":
    main()
