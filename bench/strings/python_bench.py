"""Compares offlock.strings with the usual ways to make many str: script/python bench/strings/python_bench.py [--json FILE]

The lines of Moby Dick are made into a tuple that is freed at once, from bytes and from lines found before; short
strings are made from an Arrow array. The program first builds the baseline in bench/strings/baseline. It reads the text
from the folder OFFLOCK_DATA or .cache/corpora. `--seconds` sets the length of one sample.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from offlock import strings

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import by_contestant, by_figure, keep, make_parser, make_row

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = Path(os.environ.get("OFFLOCK_DATA", ROOT / ".cache/corpora"))
NOVEL = next(
    (file for file in (DATA / "mobydick.txt", DATA / "lines.txt") if file.exists()), DATA / "lines.txt"
)
"""Moby Dick if its file exists, otherwise other prose."""
THREADS = [2, 4, 16]
ARROW = {
    "1M short Arrow strings, 9,973 different ones": 9973,
    "1M short Arrow strings, all different": 1_000_000,
}
Call = Callable[[], Any]


def baseline() -> Any:
    """Builds and imports the extension module that makes strings in the usual ways."""
    target = ROOT / "target" / f"strings-baseline-{sys.version_info[0]}.{sys.version_info[1]}"
    manifest = HERE / "baseline/Cargo.toml"
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", manifest]
    environment = os.environ | {"PYO3_PYTHON": sys.executable}
    subprocess.run([*command, "--target-dir", target], check=True, env=environment)
    [library] = [path for path in (target / "release").glob("lib*") if path.suffix in (".so", ".dylib")]
    spec = importlib.util.spec_from_file_location("offlock_strings_baseline", library)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts() -> dict[str, bytes]:
    text = NOVEL.read_bytes().decode()
    dashes = str.maketrans({"—": "-", "’": "'", "‘": "'", "“": '"', "”": '"'})
    folded = unicodedata.normalize("NFKD", text.translate(dashes)).encode("ascii", "ignore")
    return {"as it is": text.encode(), "ASCII": folded}


def contestants(raw: bytes, usual: Any) -> dict[str, Call]:
    lines = raw.decode().splitlines()
    prepared = usual.Lines(lines)
    arena = strings.lines(raw, into=strings.Arena)
    calls: dict[str, Call] = {
        "PyUnicode_New": prepared.copied,
        "PyUnicode_DecodeUTF8": prepared.decoded,
        "splitlines": lambda: tuple(raw.decode().splitlines()),
    }
    for kind in ("str", "block", "view"):
        calls[f"{kind}, prepared"] = lambda kind=kind: arena.tuple(kind)  # type: ignore[misc]
        calls[f"{kind}, from bytes"] = lambda kind=kind: strings.lines(raw, kind=kind, into=tuple)  # type: ignore[misc]
    assert all(call() == tuple(lines) for call in calls.values())
    return calls


def arrow_contestants(different: int) -> dict[str, Call]:
    """Returns the contestants for a million strings, of which `different` are different."""
    array = pa.array([f"name {number % different}" for number in range(1_000_000)])
    calls: dict[str, Call] = {"to_pylist": array.to_pylist}
    for kind in ("str", "block", "view"):
        calls[kind] = lambda kind=kind: strings.from_arrow(array, kind=kind)  # type: ignore[misc]
    expected = array.to_pylist()
    assert all(call() == expected for call in calls.values())
    return calls


def alone(call: Call, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


def together(call: Call, count: int, threads: int) -> float:
    """Returns the wall time in seconds for one call, with this number of threads."""
    each = max(1, count // threads)

    def work() -> None:
        for _ in range(each):
            call()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return (time.perf_counter() - start) / (each * threads)


def measure(
    calls: dict[str, Call], run: Callable[[Call, int], float], seconds: float, rounds: int = 9
) -> dict[str, float]:
    """Returns the median seconds of one call for each contestant. They take turns; the first round only warms up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    counts = {name: max(1, round(seconds / alone(call, 3))) for name, call in calls.items()}
    for turn in range(rounds + 1):
        for name in sorted(calls, key=lambda name: hash((name, turn))):
            gc.collect()
            used = run(calls[name], counts[name])
            if turn:
                times[name].append(used)
    return {name: statistics.median(values) for name, values in times.items()}


def shown(title: str, times: dict[str, float], count: int, against: str) -> dict[str, Any]:
    """Prints and returns the nanoseconds for one string, and the speed as a multiple of that of `against`."""
    print(f"\n{title}")
    rows = {}
    for name, seconds in times.items():
        rows[name] = {
            "ns_per_string": round(seconds / count * 1e9, 2),
            "ratio": round(times[against] / seconds, 2),
        }
        print(f"  {name:22} {rows[name]['ns_per_string']:7.1f} ns  x{rows[name]['ratio']:.2f}")
    return rows


def memory(raw: bytes) -> dict[str, float]:
    """Returns the bytes that a string takes on average, with all memory that it keeps allocated."""
    lines = raw.decode().splitlines()
    usual = sum(map(sys.getsizeof, lines)) / len(lines)
    kinds = {
        kind: strings.retained(strings.lines(raw, kind=kind)) / len(lines)
        for kind in ("str", "block", "view")
    }
    return {name: round(value, 1) for name, value in {"splitlines": usual, **kinds}.items()}


def judged(rows: dict[str, Any]) -> dict[str, Any]:
    """Returns the measured ratios. The names have the targets."""
    bars = {}
    for text in ("as it is", "ASCII"):
        one, two, four, many = (rows[f"{text}, {threads} threads"] for threads in (1, *THREADS))

        def ratio(where: dict[str, Any], name: str, against: str) -> float:
            return round(where[against]["ns_per_string"] / where[name]["ns_per_string"], 2)

        bars[text] = {
            "view, >= 4 PyUnicode_New": ratio(one, "view, prepared", "PyUnicode_New"),
            "view, 16 threads, >= 5 PyUnicode_New": ratio(many, "view, prepared", "PyUnicode_New"),
            "block, >= 1.4 PyUnicode_New": ratio(one, "block, prepared", "PyUnicode_New"),
            "block, >= 2.5 PyUnicode_DecodeUTF8": ratio(one, "block, prepared", "PyUnicode_DecodeUTF8"),
            **{
                f"block, {threads} threads against 1, > 1": round(
                    one["block, prepared"]["ns_per_string"] / row["block, prepared"]["ns_per_string"], 2
                )
                for threads, row in zip(THREADS, (two, four, many), strict=True)
            },
            "str from bytes, >= 2 splitlines": ratio(one, "str, from bytes", "splitlines"),
            "view from bytes against PyUnicode_New": ratio(one, "view, from bytes", "PyUnicode_New"),
            "block from bytes against PyUnicode_New": ratio(one, "block, from bytes", "PyUnicode_New"),
            "view from bytes against splitlines": ratio(one, "view, from bytes", "splitlines"),
            "block from bytes against splitlines": ratio(one, "block, from bytes", "splitlines"),
        }
    for title in ARROW:
        kinds = ("str", "block", "view")
        bars[title] = {f"{kind}, >= 3 to_pylist": rows[title][kind]["ratio"] for kind in kinds}
    return bars


def main() -> None:
    parser = make_parser()
    parser.add_argument("--seconds", type=float, default=0.1, help="seconds of one sample of one contestant")
    options = parser.parse_args()
    usual = baseline()
    strings.enable_blocks()
    rows: dict[str, Any] = {}
    for name, raw in texts().items():
        calls, count = contestants(raw, usual), len(raw.decode().splitlines())
        for threads in (1, *THREADS):
            run = alone if threads == 1 else functools.partial(together, threads=threads)
            title = f"{name}, {threads} threads"
            rows[title] = shown(title, measure(calls, run, options.seconds), count, "PyUnicode_New")
    for title, different in ARROW.items():
        times = measure(arrow_contestants(different), alone, 2 * options.seconds, rounds=5)
        rows[title] = shown(title, times, 1_000_000, "to_pylist")
    more = {name: {"bytes_per_string": memory(raw)} for name, raw in texts().items()}
    for name, bars in judged(rows).items():
        more[name] = more.get(name, {}) | {"ratio": bars}
    print(json.dumps(more, indent=1))
    peak = {"peak_rss_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}
    keep(
        options.json, [*by_contestant(rows), *by_figure(more), make_row("the whole program", peak)], "pyarrow"
    )


if __name__ == "__main__":
    main()
