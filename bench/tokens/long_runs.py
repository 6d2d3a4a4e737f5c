"""Measures the time per byte of unusual texts as a multiple of that of prose. On such runs of characters other tokenizers
take quadratic time or crash.

    script/python bench/tokens/long_runs.py [--json FILE] [PROSE.txt.gz]
"""

from __future__ import annotations

import gzip
import os
import statistics
import sys
import time
from pathlib import Path

import offlock.tiktoken

sys.path.append(str(Path(__file__).resolve().parents[1]))
from bench import keep, make_parser, make_row

ROUNDS = 5
BYTES = 1_000_000
RUNS = {
    "one letter": "a",
    "one capital": "A",
    "two letters": "ab",
    "spaces": " ",
    "line feeds": "\n",
    "spaces and line feeds": " \n",
    "digits": "0",
    "exclamation marks": "!",
    "dashes": "-",
    "lines of 1,000 dashes": "-" * 1_000 + "\nword\n",
    "lines of box drawing": "─" * 200 + "\n",
    "one Chinese character": "的",
    "combining accents": "\u0301",
    "emoji": "👍",
    "special tokens' text": "<|endoftext|>",
}


def main() -> None:
    parser = make_parser()
    data = Path(os.environ.get("OFFLOCK_DATA", Path(__file__).parents[2] / ".cache/corpora"))
    parser.add_argument("prose", nargs="?", type=Path, default=data / "prose.txt.gz")
    args = parser.parse_args()
    with gzip.open(args.prose, "rt", encoding="utf-8") as file:
        prose = file.read(BYTES)
    results = {name: compare(name, prose) for name in ("cl100k_base", "o200k_base")}
    runs = [(f"{name}, {run}", ratio) for name, ratios in results.items() for run, ratio in ratios.items()]
    keep(args.json, [make_row(case, {"times_prose": ratio}) for case, ratio in runs])


def compare(name: str, prose: str) -> dict[str, float]:
    """Returns the time per byte of each run as a multiple of that of prose, from medians over the rounds."""
    encoding = offlock.tiktoken.get_encoding(name)
    texts = {"prose": prose} | {run: unit * (BYTES // len(unit.encode())) for run, unit in RUNS.items()}
    times: dict[str, list[float]] = {run: [] for run in texts}
    for _ in range(ROUNDS):
        for run, text in texts.items():
            start = time.perf_counter()
            encoding.count(text, disallowed_special=())
            times[run].append((time.perf_counter() - start) / len(text.encode()))
    usual = statistics.median(times.pop("prose"))
    ratios = {run: round(statistics.median(values) / usual, 2) for run, values in times.items()}
    print(f"{name}: time per byte, as a multiple of prose ({1e-6 / usual:.0f} MB/s)")
    for run, ratio in ratios.items():
        print(f"  {run:24}{ratio:6.2f}")
    return ratios


if __name__ == "__main__":
    main()
