"""The tools that are compared: how each runs a program, and what it says of it."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .truth import Frame, Span

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).resolve().parents[1] / "programs"


class Wait(NamedTuple):
    """A wait for the lock, and the line that held it longest meanwhile; None if the tool does not say."""

    span: Span
    line: Frame | None


@dataclass
class Profile:
    """What a tool says.

    Attributes:
        weights: for each line the time that it blames on it, or its samples.
        pieces: when which line held the lock; None if the tool does not say.
        waits: all waits for the lock; None if the tool does not say.
    """

    weights: Mapping[Frame, float] = field(default_factory=dict)
    pieces: list[tuple[Span, Frame]] | None = None
    waits: list[Wait] | None = None


class Tool(ABC):
    """A tool that records one run of a program."""

    name: str
    blames_waits = False
    """Whether its weights are what others waited, not for how long a line held the lock."""

    @abstractmethod
    def command(self, program: list[str], folder: Path) -> list[str]:
        """The command that runs the program, given as a command."""

    @abstractmethod
    def profile(self, folder: Path) -> Profile:
        """What it has recorded."""

    def environment(self, folder: Path) -> dict[str, str]:
        return {}


class Untraced(Tool):
    name = "untraced"

    def command(self, program: list[str], folder: Path) -> list[str]:
        return program

    def profile(self, folder: Path) -> Profile:
        raise NotImplementedError


class Offlock(Tool):
    """Waits and holders are taken from its exports."""

    blames_waits = True

    def __init__(self, name: str = "offlock", *options: str) -> None:
        self.name = name
        self.options = options

    def command(self, program: list[str], folder: Path) -> list[str]:
        trace = ("trace", "--no-summary", *self.options, "--output", str(folder / "trace.offlock"))
        return [*_OFFLOCK, *trace, "--", *program]

    def profile(self, folder: Path) -> Profile:
        told = json.loads(self._export(folder, "json"))
        begin = int(dict(told["about"])["start"])
        frames = told["frames"]
        pieces = []
        weights: dict[Frame, float] = defaultdict(float)
        for sample in told["samples"]:
            frame = _own_frame(frames, sample["frame"])
            pieces.append((Span(begin + sample["start"], begin + sample["end"]), frame))
            weights[frame] += sample["lost"]
        waits = _waits(json.loads(self._export(folder, "gvl-tracing")), begin)
        return Profile(weights, pieces, list(waits))

    def _export(self, folder: Path, form: str) -> str:
        command = [*_OFFLOCK, "export", "--format", form, "--output", "-", str(folder / "trace.offlock")]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=_environment()).stdout


_OFFLOCK = (sys.executable, "-m", "offlock")


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "python")}


def _own_frame(frames: list[dict[str, Any]], number: int) -> Frame:
    """The innermost function of the program's language: one in C, of Ruby, has the line of its caller."""
    frame = frames[number]
    while frame["caller"] is not None:
        caller = frames[frame["caller"]]
        if (caller["file"], caller["line"]) != (frame["file"], frame["line"]):
            break
        frame = caller
    return Frame.of(frame["function"], frame["file"], frame["line"])


def _waits(events: list[dict[str, Any]], start: int) -> Iterator[Wait]:
    """The waits in a file in the format of gvl-tracing, which begins at a time."""
    open_waits: dict[int, dict[str, Any]] = {}
    for event in events:
        thread = event.get("tid", 0)
        if event["ph"] == "B" and event["name"] == "wants_gvl":
            open_waits[thread] = event
        elif event["ph"] in "BE" and (begun := open_waits.pop(thread, None)):
            code = re.fullmatch(r"(.*) \((.*):(\d+)\)", begun.get("args", {}).get("code", ""))
            line = Frame.of(code[1], code[2], int(code[3])) if code else None
            yield Wait(Span(start + round(begun["ts"] * 1e3), start + round(event["ts"] * 1e3)), line)


PY_SPY = Path(sys.executable).with_name("py-spy")


class PySpy(Tool):
    """Samples of the thread that holds the lock, a thousand a second."""

    name = "py-spy --gil"

    def command(self, program: list[str], folder: Path) -> list[str]:
        spy = str(PY_SPY)
        options = ("--gil", "--rate", "1000", "--format", "raw", "--full-filenames")
        return [spy, "record", *options, "--output", str(folder / "raw"), "--", *program]

    def profile(self, folder: Path) -> Profile:
        return Profile(_collapsed((folder / "raw").read_text(encoding="utf-8")))


def _collapsed(text: str) -> Mapping[Frame, float]:
    """The innermost lines of collapsed stacks."""
    weights: dict[Frame, float] = defaultdict(float)
    for stack in text.splitlines():
        frames, _, count = stack.rpartition(" ")
        if inner := re.fullmatch(r"(.*?) ?[(:]([^(]*):(\d+)\)?", frames.split(";")[-1]):
            weights[Frame.of(inner[1], inner[2], int(inner[3]))] += float(count)
    return weights


class Vernier(Tool):
    """Samples of the threads that run Ruby, every 500 µs."""

    name = "vernier"

    def command(self, program: list[str], folder: Path) -> list[str]:
        ruby, *rest = program
        return [ruby, "-I", os.environ["ACCURACY_VERNIER"], "-r", "vernier/autorun", *rest]

    def environment(self, folder: Path) -> dict[str, str]:
        return {"VERNIER_OUTPUT": str(folder / "vernier.json.gz")}

    def profile(self, folder: Path) -> Profile:
        with gzip.open(folder / "vernier.json.gz") as file:
            told = json.load(file)
        categories = [category["name"] for category in told["meta"]["categories"]]
        weights: dict[Frame, float] = defaultdict(float)
        for thread in told["threads"]:
            stacks, samples = thread["stackTable"], thread["samples"]
            for stack, weight in zip(samples["stack"], samples["weight"], strict=True):
                if categories[stacks["category"][stack]] not in ("Idle", "Stalled"):
                    weights[self._own_frame(thread, stack)] += weight
        return Profile(weights)

    @staticmethod
    def _own_frame(thread: dict[str, Any], stack: int | None) -> Frame:
        frames, functions, strings = thread["frameTable"], thread["funcTable"], thread["stringArray"]
        while stack is not None:
            frame = thread["stackTable"]["frame"][stack]
            function = frames["func"][frame]
            file = strings[functions["fileName"][function]]
            if file != "<cfunc>" and not file.startswith("<internal:"):
                return Frame.of(
                    strings[functions["name"][function]], os.path.abspath(file), frames["line"][frame] or 0
                )
            stack = thread["stackTable"]["prefix"][stack]
        return Frame("", "", 0)


class GvlTracing(Tool):
    """Waits of each thread, without code."""

    name = "gvl-tracing"

    def command(self, program: list[str], folder: Path) -> list[str]:
        ruby, *rest = program
        return [
            ruby,
            "-I",
            os.environ["ACCURACY_GVL_TRACING"],
            "-r",
            str(PROGRAMS / "with_gvl_tracing.rb"),
            *rest,
        ]

    def environment(self, folder: Path) -> dict[str, str]:
        return {"GVL_TRACING_OUTPUT": str(folder / "gvl")}

    def profile(self, folder: Path) -> Profile:
        events = json.loads((folder / "gvl.json").read_text(encoding="utf-8"))
        begin = int((folder / "gvl.begin").read_text())
        return Profile(waits=list(_waits(events, begin)))
