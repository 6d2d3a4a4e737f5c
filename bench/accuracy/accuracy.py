"""Compares what tools say of programs with what these noted themselves: accuracy.py python|ruby [--json FILE] [NAME...]

- Each program holds the lock for known times on known lines, while other threads want it every millisecond. A function in
  C that the program calls keeps the lock, and another one tells when a thread that slept begins to want it. The program
  notes both with the monotonic clock, so it is known how long others waited for each line.
- The tools run it in turn, in another order each round. A figure is the median over the rounds, in percent.
- `right_function` and `right_line`: the part of the shares of functions, or lines, that agrees with the truth. What others
  waited (`lost_`) and how long the lock was held (`held_`) are different questions; samplers answer the second one, and
  are compared with both.
- `moments_right`: of the time that threads waited, the part for which the tool names the function, or the line, that held
  the lock at that very moment; `known`: the part for which it names any.
- `waits_error`: the difference of the sum of all waits. `long_waits_with_stack`, `long_waits_right_line`: of the waits of
  more than 5 ms.
- Vernier and gvl-tracing are compared where ACCURACY_VERNIER and ACCURACY_GVL_TRACING name their folders `lib`, built.
- `time`: the program's time as a multiple of the untraced one of the same round.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comparison.tools import (
    PROGRAMS,
    PY_SPY,
    ROOT,
    GvlTracing,
    Offlock,
    Profile,
    PySpy,
    Tool,
    Untraced,
    Vernier,
)
from comparison.truth import LONG, Frame, Place, Span, Truth

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import bench

RUBY = os.environ.get("RUBY", "ruby")
ROUNDS = 3
SECONDS = 120
ATTEMPTS = 5


def run(tool: Tool, program: list[str], library: Path) -> tuple[Truth, Profile | None]:
    """Runs a program under a tool, and returns what happened and what the tool says."""
    folder = Path(tempfile.mkdtemp(prefix="accuracy-"))
    try:
        notes = folder / "notes.json"
        ours = {
            "ACCURACY_LIBRARY": str(library),
            "ACCURACY_NOTES": str(notes),
            "PYTHONPATH": str(ROOT / "python"),
            "OFFLOCK_RUBYLIB": os.environ.get("RUBYLIB", ""),
        }
        result = subprocess.run(
            tool.command(program, folder),
            env=os.environ | ours | tool.environment(folder),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        if result.returncode:
            raise AssertionError(f"{tool.name}: {program}: {result.stderr}")
        return Truth.read(notes), None if isinstance(tool, Untraced) else tool.profile(folder)
    finally:
        shutil.rmtree(folder)


def attempt(tool: Tool, program: list[str], library: Path) -> tuple[Truth, Profile | None]:
    """Runs a program, again if the tool fails: py-spy at times cannot read a process that has just begun."""
    for _ in range(ATTEMPTS - 1):
        try:
            return run(tool, program, library)
        except AssertionError as error:
            print(f"again: {error}", file=sys.stderr)
    return run(tool, program, library)


def compare(tool: Tool, truth: Truth, profile: Profile) -> dict[str, float]:
    """Returns the figures of one run."""
    figures: dict[str, float] = {}
    if profile.weights:
        figures |= by_share(truth.lost, profile, "lost")
        if not tool.blames_waits:
            figures |= by_share(truth.held, profile, "held")
    if profile.pieces is not None:
        figures |= by_time(truth, profile.pieces)
    if profile.waits is not None:
        figures |= by_wait(truth, profile)
    return figures


def by_time(truth: Truth, pieces: list[tuple[Span, Frame]]) -> dict[str, float]:
    """Compares what is said of each moment in which threads waited for known lines."""
    pieces = sorted(pieces)
    begins = [span.begin for span, _ in pieces]
    right_function = right_line = known = lost = 0
    at = 0
    for span, place in sorted(truth.holds):
        lost += truth.waiting.during(span)
        while at and pieces[at - 1][0].end > span.begin:
            at -= 1
        while at < len(pieces) and pieces[at][0].end <= span.begin:
            at += 1
        next_piece = at
        while next_piece < len(pieces) and begins[next_piece] < span.end:
            piece, frame = pieces[next_piece]
            next_piece += 1
            if common := piece.within(span):
                waited = truth.waiting.during(common)
                known += waited
                right_function += waited * place.is_function_of(frame)
                right_line += waited * place.is_line_of(frame)
    return {
        "moments_right_function_percent": percent(right_function, known),
        "moments_right_line_percent": percent(right_line, known),
        "known_percent": percent(known, lost),
    }


def by_share(expected: Mapping[Place, int], profile: Profile, what: str) -> dict[str, float]:
    """Compares shares of functions and lines. What the program has not noted, such as its start, is left out."""
    functions: dict[tuple[str, str], float] = defaultdict(float)
    lines: dict[tuple[Place, bool], float] = defaultdict(float)
    for frame, weight in profile.weights.items():
        places = [place for place in expected if place.is_function_of(frame)]
        if places:
            functions[places[0][:2]] += weight
            place = next((place for place in places if place.is_line_of(frame)), None)
            lines[place or places[0], place is not None] += weight
    expected_functions: dict[tuple[str, str], float] = defaultdict(float)
    for place, time in expected.items():
        expected_functions[place[:2]] += time
    expected_lines = {(place, True): time for place, time in expected.items()}
    return {
        f"{what}_right_function_percent": agreement(expected_functions, functions),
        f"{what}_right_line_percent": agreement(expected_lines, lines),
    }


def agreement(expected: Mapping[Any, float], told: Mapping[Any, float]) -> float:
    """The part of two divisions of a whole that is the same, in percent."""
    whole, all_told = sum(expected.values()), sum(told.values())
    if not whole or not all_told:
        return 0.0
    return 100 * sum(min(time / whole, told.get(name, 0) / all_told) for name, time in expected.items())


def by_wait(truth: Truth, profile: Profile) -> dict[str, float]:
    """Compares the waits while the program worked. Of a long one, a known line held the lock for most of the time."""
    assert profile.waits is not None
    waits = [wait for wait in profile.waits if wait.span.within(truth.span)]
    waited = sum(wait.span.end - wait.span.begin for wait in waits)
    expected = sum(wait.end - wait.begin for wait in truth.waits if wait.within(truth.span))
    figures = {"waits_error_percent": percent(abs(waited - expected), expected)}
    if profile.pieces is None:
        return figures
    with_stack = right = number = 0
    for span, line in waits:
        if span.end - span.begin <= LONG:
            continue
        holders = truth.holders_during(span)
        if sum(holders.values()) * 2 <= span.end - span.begin:
            continue  # it was being handed over: the system did not run the thread that it was given to
        number += 1
        with_stack += line is not None
        right += line is not None and truth.has_line(line, max(holders, key=holders.__getitem__))
    return figures | {
        "long_waits": number,
        "long_waits_with_stack_percent": percent(with_stack, number),
        "long_waits_right_line_percent": percent(right, number),
    }


def percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 100.0


def tools_of(language: str) -> list[Tool]:
    if language == "python":
        return [Untraced(), Offlock(), *([PySpy()] if PY_SPY.exists() else [])]
    optional = {"ACCURACY_VERNIER": Vernier, "ACCURACY_GVL_TRACING": GvlTracing}
    return [Untraced(), Offlock(), *(tool() for name, tool in optional.items() if name in os.environ)]


def programs_of(language: str) -> dict[str, list[str]]:
    if language == "python":
        file, start, interpreter = PROGRAMS / "programs.py", "@program\ndef ", sys.executable
    else:
        file, start, interpreter = PROGRAMS / "programs.rb", "program def ", RUBY
    parts = file.read_text(encoding="utf-8").split(start)[1:]
    names = [part.split("\n")[0].split("(")[0] for part in parts]
    return {name: [interpreter, str(file), name] for name in names}


def measure(name: str, program: list[str], tools: list[Tool], library: Path) -> list[bench.Row]:
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(ROUNDS):
        elapsed = {}
        for tool in random.Random(number).sample(tools, len(tools)):
            truth, profile = attempt(tool, program, library)
            elapsed[tool.name] = truth.elapsed
            if profile is not None:
                for figure, value in compare(tool, truth, profile).items():
                    figures[tool.name][figure].append(value)
        for tool_name, time in elapsed.items():
            figures[tool_name]["time"].append(time / elapsed["untraced"])
    rows = []
    for tool in tools[1:]:
        medians = {
            figure: round(statistics.median(values), 3) for figure, values in figures[tool.name].items()
        }
        rows.append(bench.make_row(name, medians, tool.name))
        print(
            f"{name:16} {tool.name:14} " + "  ".join(f"{key} {value:g}" for key, value in medians.items()),
            flush=True,
        )
    return rows


def compile_library(language: str, folder: Path) -> Path:
    """Compiles what the programs call."""
    compiler = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", str(folder / "lock.so")]
    if language == "ruby":
        headers = (
            'print RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { "-I#{_1}" }.join(" ")'
        )
        ask = [RUBY, "-rrbconfig", "-e", headers]
        compiler += subprocess.run(ask, check=True, capture_output=True, text=True).stdout.split()
    subprocess.run([*compiler, PROGRAMS / ("lock_ruby.c" if language == "ruby" else "lock.c")], check=True)
    return folder / "lock.so"


def main() -> None:
    parser = bench.make_parser()
    parser.add_argument("language", choices=("python", "ruby"))
    parser.add_argument("names", nargs="*", help="programs; default: all")
    options = parser.parse_args()
    programs = programs_of(options.language)
    with tempfile.TemporaryDirectory() as folder:
        library = compile_library(options.language, Path(folder))
        rows = []
        for name in options.names or programs:
            rows += measure(name, programs[name], tools_of(options.language), library)
    ruby = ruby_version() if options.language == "ruby" else {}
    bench.keep(options.json, rows, *([] if ruby else ["py-spy"]), **ruby)


def ruby_version() -> dict[str, str]:
    return {"ruby": subprocess.run([RUBY, "-v"], check=True, capture_output=True, text=True).stdout.strip()}


if __name__ == "__main__":
    main()
