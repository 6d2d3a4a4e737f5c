"""Writes the results of the Python benchmarks as data, in the form of result.schema.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import __main__
import offlock

ROOT = Path(__file__).resolve().parents[1]
Row = dict[str, Any]
Figures = Mapping[str, float]


def make_parser() -> argparse.ArgumentParser:
    """Makes the command line of the program, which its docstring describes, with the option for the results."""
    parser = argparse.ArgumentParser(
        description=__main__.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    return parser


def keep(file: str | Path | None, rows: list[Row], *peers: str, **versions: str) -> None:
    """Writes rows into a file, with the method, the machine and the versions of the peers.

    Does nothing without a file.
    """
    if not file:
        return
    result = {
        "program": str(Path(__main__.__file__).resolve().relative_to(ROOT)),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine(),
        "versions": {"offlock": offlock.__version__, "python": platform.python_version()}
        | dict(installed(peers))
        | versions,
        "method": " ".join((__main__.__doc__ or "").split()),
        "rows": rows,
    }
    Path(file).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def machine() -> dict[str, str | int | None]:
    """Describes the machine. The cores are those that the program may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return {
        "architecture": platform.machine(),
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count(),
        "remark": None,
    }


def cpu() -> str | None:
    """Returns the system's name of the processor, or None."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def installed(peers: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for peer in peers:
        try:
            yield peer, version(peer)
        except PackageNotFoundError:
            continue


def make_row(case: str, figures: Figures, contestant: str | None = None) -> Row:
    """Makes one row of a result. Figures without a contestant are about the case itself, or about a comparison."""
    return {"case": case, "contestant": contestant, "figures": dict(figures)}


def by_contestant(table: Mapping[str, Mapping[str, Figures]]) -> list[Row]:
    """Makes the rows of a table of the form case: contestant: figure: number."""
    return [make_row(case, figures, name) for case, ways in table.items() for name, figures in ways.items()]


def by_figure(table: Mapping[str, Mapping[str, Figures | float]]) -> list[Row]:
    """Makes the rows of a table of the form case: figure: contestant: number, or case: figure: number."""
    rows = []
    for case, figures in table.items():
        ways: dict[str | None, dict[str, float]] = {}
        for figure, values in figures.items():
            for name, number in values.items() if isinstance(values, Mapping) else [(None, values)]:
                ways.setdefault(name, {})[figure] = number
        rows += [make_row(case, numbers, name) for name, numbers in ways.items()]
    return rows
